//! Texts that are nothing but elements, under names that people use too or that no row knows.

use super::table::{ELEMENTS, Holds};
use super::tags::{Element, is_name};
use super::walk::{Kind, Piece};

/// Reads the loose pieces of a text if they are elements and nothing else.
///
/// With loose words beside them they are what somebody pasted. A plain name says something only beside an
/// element that is an agent's for certain (`is_marked`).
pub fn read(pieces: &mut Vec<Piece<'_>>, is_marked: bool) {
    let mut out = Vec::new();
    for piece in pieces.iter() {
        match piece.kind {
            Kind::Loose => {
                let Some(found) = split(piece.text) else {
                    return;
                };
                let is_marked = is_marked || found.iter().any(Found::is_marked);
                let Some(read) = found
                    .iter()
                    .map(|found| found.read(is_marked))
                    .collect::<Option<Vec<_>>>()
                else {
                    return;
                };
                out.extend(read.into_iter().flatten());
            }
            Kind::Words | Kind::Sure => out.push(*piece),
        }
    }
    *pieces = out;
}

/// Whether a text is nothing but elements, so that plain names count in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sole {
    /// There are loose words.
    No,
    /// There are none.
    Elements,
    /// There are none, and an agent wrote one of the elements for certain.
    Marked,
}

impl Sole {
    pub fn of(text: &str) -> Sole {
        match split(text) {
            None => Sole::No,
            Some(found) if found.iter().any(Found::is_marked) => Sole::Marked,
            Some(_) => Sole::Elements,
        }
    }

    /// Whether an element counts as what its row says.
    pub fn allows(self, element: &Element<'_>) -> bool {
        match element.holds {
            Holds::PlainWords | Holds::LoneContext => self != Sole::No,
            Holds::Output => self != Sole::No || element.at == 0,
            Holds::PlainContext => self == Sole::Marked,
            _ => true,
        }
    }
}

/// Gemini CLI and those that grew out of it start a conversation so, each with its own name.
pub fn sets_up(text: &str) -> bool {
    text.starts_with("This is the ")
        && text
            .lines()
            .next()
            .is_some_and(|line| line.ends_with("We are setting up the context for our chat."))
}

/// An element without anything known of its surroundings.
struct Found<'a> {
    name: &'a str,
    has_attributes: bool,
    inside: &'a str,
}

impl<'a> Found<'a> {
    fn holds(&self) -> Option<Holds> {
        let row = ELEMENTS.iter().find(|(_, name, _)| *name == self.name);
        row.map(|(_, _, holds)| *holds)
    }

    fn is_marked(&self) -> bool {
        let plain = [Holds::PlainContext, Holds::PlainWords, Holds::LoneContext];
        self.holds().is_some_and(|holds| !plain.contains(&holds))
    }

    /// What is typed in it; nothing if that cannot be told.
    fn read(&self, is_marked: bool) -> Option<Option<Piece<'a>>> {
        let words = Some(Piece {
            kind: Kind::Words,
            text: self.inside,
        });
        match self.holds() {
            Some(Holds::Words | Holds::PlainWords | Holds::Arguments) => Some(words),
            Some(Holds::PlainContext) if !is_marked => None,
            Some(_) => Some(None),
            None if self.has_attributes => None,
            None if names_user(self.name) => Some(words),
            None if names_harness(self.name) => Some(None),
            None => None,
        }
    }
}

/// Splits a text into the elements that it is made of.
fn split(text: &str) -> Option<Vec<Found<'_>>> {
    let mut out = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let tag = rest.strip_prefix('<')?;
        let length = tag.bytes().position(|byte| !is_name(byte))?;
        let name = &tag[..length];
        let open = tag.find('>')?;
        if length == 0 || tag[..open].contains('<') || tag[..open].ends_with('/') {
            return None;
        }
        let inside = &tag[open + 1..];
        let close = format!("</{name}>");
        let length = memchr::memmem::find(inside.as_bytes(), close.as_bytes())?;
        out.push(Found {
            name,
            has_attributes: open > name.len(),
            inside: &inside[..length],
        });
        rest = inside[length + close.len()..].trim_start();
    }
    Some(out)
}

/// Whether a name says that the user speaks: `user_input`, `userQuestion`.
fn names_user(name: &str) -> bool {
    const SPOKEN: [&str; 10] = [
        "input", "message", "query", "question", "request", "prompt", "task", "words", "said",
        "text",
    ];
    let name = name.to_ascii_lowercase();
    name.contains("user") && SPOKEN.iter().any(|word| name.ends_with(word))
}

/// Whether a name is one that programs give: of several words, and no component of a page.
fn names_harness(name: &str) -> bool {
    let is_camel = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.contains(|letter: char| letter.is_ascii_uppercase());
    name.len() > 3 && (name.contains(['_', '-']) || is_camel)
}
