//! Writes the items of fields as XML elements, and the elements around them.

use crate::xml::{escape_attribute, escape_text, needs_marking};
use crate::{Attribute, Field, LayerItem};

/// The element of the whole document.
pub const ROOT: &str = "context";

/// Returns the line of the document with an item, the `index`-th of its field counted from zero.
///
/// `is_condensed` says whether the text of the item was shortened.
pub fn line(field: Field, index: usize, item: &LayerItem, is_condensed: bool) -> String {
    let element = field.element();
    // Marked elements have one more level of escapes, for characters that XML cannot represent.
    let mut texts = item.attributes.values().chain([&item.text]);
    let is_marked = texts.any(|text| needs_marking(text));
    let text = |text: &str| escape_text(text, is_marked);
    let mut out = format!("<{element}");
    let mut put = |name: &str, value: &str| {
        let value = escape_attribute(value, is_marked);
        out.push_str(&format!(r#" {name}="{value}""#));
    };
    if field == Field::Plan {
        put("id", &(index + 1).to_string());
    }
    let has_children = field == Field::Retrieved;
    for (attribute, value) in &item.attributes {
        if !(has_children && *attribute == Attribute::Source) {
            put(attribute.name(), value);
        }
    }
    if is_condensed {
        put("condensed", "true");
    }
    if is_marked {
        put("escaped", "true");
    }
    out.push('>');
    if has_children {
        if let Some(source) = item.attribute(Attribute::Source) {
            out.push_str(&format!("<source>{}</source>", text(source)));
        }
        out.push_str(&format!("<content>{}</content>", text(&item.text)));
    } else {
        out.push_str(&text(&item.text));
    }
    out.push_str(&format!("</{element}>\n"));
    out
}

/// Returns the elements around the items of a field, outermost first, without [`ROOT`].
pub fn containers(field: Field) -> impl Iterator<Item = &'static str> {
    std::iter::once(field.layer().element()).chain(field.wrappers().iter().copied())
}

/// Assembles the document from the lines of items, which are in the order of [`Field`]; none if there are no lines.
pub fn document<'a>(lines: impl Iterator<Item = (Field, &'a str)>) -> Option<String> {
    let mut out = String::new();
    let mut open: Vec<&str> = Vec::new();
    for (field, line) in lines {
        let wanted: Vec<&str> = std::iter::once(ROOT).chain(containers(field)).collect();
        let common = open.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
        close(&mut out, &mut open, common);
        for element in &wanted[common..] {
            out.push_str(&opening(element));
        }
        open = wanted;
        out.push_str(line);
    }
    close(&mut out, &mut open, 0);
    (!out.is_empty()).then_some(out)
}

/// Closes the innermost open elements until `keep` are left.
fn close(out: &mut String, open: &mut Vec<&str>, keep: usize) {
    while open.len() > keep
        && let Some(element) = open.pop()
    {
        out.push_str(&closing(element));
    }
}

/// Returns the line that opens an element.
pub fn opening(element: &str) -> String {
    format!("<{element}>\n")
}

/// Returns the line that closes an element.
pub fn closing(element: &str) -> String {
    format!("</{element}>\n")
}
