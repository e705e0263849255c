//! Reads texts that consist of elements only, under names that people use too or that no list has.

use memchr::memmem;

use super::elements::{TextElement, is_name_byte};
use super::markers::{ELEMENT_STARTS, ELEMENTS, ElementContent};
use super::parse::{Passage, PassageOrigin};

/// Takes the wrappers off loose passages that consist of elements only.
///
/// Elements with loose words beside them were pasted. A common name counts only beside an
/// element that is certainly an agent's (`has_injection`).
pub fn unwrap(passages: &mut Vec<Passage<'_>>, has_injection: bool) {
    let mut out = Vec::new();
    for passage in passages.iter() {
        if passage.origin != PassageOrigin::Loose {
            out.push(*passage);
            continue;
        }
        let Some(elements) = split(passage.text) else {
            return;
        };
        let is_certain = has_injection || elements.iter().any(LoneElement::is_certain);
        for element in elements {
            match element.typed_text(is_certain) {
                Typed::Text(text) => out.push(Passage {
                    origin: PassageOrigin::Wrapper,
                    text,
                }),
                Typed::Nothing => {}
                Typed::Unknown => return,
            }
        }
    }
    *passages = out;
}

/// Whether a text consists of elements only, so that common names count in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementsOnly {
    /// There are loose words.
    No,
    /// There are none.
    Yes,
    /// There are none, and an agent certainly wrote one of the elements.
    Certain,
}

impl ElementsOnly {
    /// Returns whether `text` consists of elements only.
    pub fn of(text: &str) -> ElementsOnly {
        match split(text) {
            None => ElementsOnly::No,
            Some(found) if found.iter().any(LoneElement::is_certain) => ElementsOnly::Certain,
            Some(_) => ElementsOnly::Yes,
        }
    }

    /// Returns whether an element has the meaning that its list gives it.
    pub fn allows(self, element: &TextElement<'_>) -> bool {
        match element.content {
            ElementContent::CommonTyped => self != ElementsOnly::No,
            // Agents name the file in an attribute; people who quote one seldom write attributes.
            ElementContent::LoneContext => self != ElementsOnly::No || element.has_attributes,
            ElementContent::Output => self != ElementsOnly::No || element.at == 0,
            ElementContent::CommonContext => {
                self == ElementsOnly::Certain || starts_as_agents(element)
            }
            _ => true,
        }
    }
}

/// Returns whether the inside of an element starts with words that only its agent writes.
fn starts_as_agents(element: &TextElement<'_>) -> bool {
    let inside = element.inside.trim_start();
    let mut starts = ELEMENT_STARTS.iter();
    starts.any(|row| row[0] == element.name && inside.starts_with(row[1]))
}

/// Returns whether a text is the one with which Gemini CLI and its forks start a conversation, each with its own name.
pub fn sets_up_context(text: &str) -> bool {
    let mut lines = text.lines();
    text.starts_with("This is the ")
        && lines
            .next()
            .is_some_and(|line| line.ends_with("We are setting up the context for our chat."))
}

/// An element of a text that may consist of elements only.
struct LoneElement<'a> {
    name: &'a str,
    has_attributes: bool,
    inside: &'a str,
}

/// The typed text in an element.
enum Typed<'a> {
    Text(&'a str),
    Nothing,
    /// The element may be an agent's or the user's own.
    Unknown,
}

impl<'a> LoneElement<'a> {
    fn content(&self) -> Option<ElementContent> {
        let row = ELEMENTS.iter().find(|(name, _)| *name == self.name);
        row.map(|(_, content)| *content)
    }

    /// Returns whether an agent certainly wrote it.
    fn is_certain(&self) -> bool {
        use ElementContent::{CommonContext, CommonTyped, LoneContext};
        let content = self.content();
        content.is_some_and(|it| !matches!(it, CommonContext | CommonTyped | LoneContext))
    }

    fn typed_text(&self, is_certain: bool) -> Typed<'a> {
        use ElementContent::{Arguments, CommonContext, CommonTyped, Typed as TypedContent};
        match self.content() {
            Some(TypedContent | CommonTyped | Arguments) => Typed::Text(self.inside),
            Some(CommonContext) if !is_certain => Typed::Unknown,
            Some(_) => Typed::Nothing,
            None if self.has_attributes => Typed::Unknown,
            None if names_user(self.name) => Typed::Text(self.inside),
            None if names_harness(self.name) => Typed::Nothing,
            None => Typed::Unknown,
        }
    }
}

/// Splits a text into its elements; `None` if there is other text.
fn split(text: &str) -> Option<Vec<LoneElement<'_>>> {
    let mut out = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let tag = rest.strip_prefix('<')?;
        let length = tag.bytes().position(|byte| !is_name_byte(byte))?;
        let name = &tag[..length];
        let open = tag.find('>')?;
        if length == 0 || tag[..open].contains('<') || tag[..open].ends_with('/') {
            return None;
        }
        let inside = &tag[open + 1..];
        let close = format!("</{name}>");
        let length = memmem::find(inside.as_bytes(), close.as_bytes())?;
        out.push(LoneElement {
            name,
            has_attributes: open > name.len(),
            inside: &inside[..length],
        });
        rest = inside[length + close.len()..].trim_start();
    }
    Some(out)
}

/// Returns whether a name says that the user speaks: `user_input`, `userQuestion`.
fn names_user(name: &str) -> bool {
    const SPEECH: &str = "input message query question request prompt task words said text";
    let name = name.to_ascii_lowercase();
    name.contains("user") && SPEECH.split(' ').any(|word| name.ends_with(word))
}

/// Returns whether a program gave the name: it has several words, and is no component of a page.
fn names_harness(name: &str) -> bool {
    let is_camel = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.contains(|letter: char| letter.is_ascii_uppercase());
    name.len() > 3 && (name.contains(['_', '-']) || is_camel)
}
