use std::collections::HashMap;

use infold_log::Role;
use infold_wire::acts::Words;
use infold_wire::tokens::{Encoding, count};
use infold_wire::{Message, MessageError};

use super::Session;
use crate::refs::{self, Finder};

/// What a session says, read once: references, and where each occurs.
pub struct Material {
    /// Its messages.
    pub(super) messages: Vec<Said>,
    /// The references that its user and its assistant make, each once.
    pub(super) references: Vec<String>,
    /// All names that stand anywhere in it, for counting which are frequent.
    pub(super) names: Vec<String>,
    /// The messages in which each reference occurs.
    pub(super) occurs: Vec<Vec<usize>>,
    finder: Finder,
}

/// What one message says.
pub(super) struct Said {
    pub role: Role,
    pub words: Words,
    /// References it makes, each once: by user and assistant, not by what tools gave back.
    pub makes: Vec<usize>,
    /// References that occur in what it says and calls, each once.
    pub holds: Vec<usize>,
    /// References that occur in what tools gave back, by part.
    pub given: Vec<(u32, Vec<usize>)>,
    /// All names in it, and how often.
    pub names: Vec<(usize, u32)>,
    /// Sentences of what is said, and their tokens.
    pub sentences: Vec<(String, u64)>,
}

impl Material {
    /// Reads a session. Takes time in its size, and holds its text.
    pub fn of(session: &Session) -> Result<Material, MessageError> {
        let mut made = Index::default();
        let mut named = Index::default();
        let mut messages = Vec::with_capacity(session.messages.len());
        for bytes in &session.messages {
            let message = Message::parse(bytes)?;
            messages.push(Said::read(&message, &mut made, &mut named));
        }
        let finder = Finder::new(made.names.iter().map(|name| &**name));
        let mut material = Material {
            messages: Vec::new(),
            occurs: vec![Vec::new(); made.names.len()],
            references: made.names,
            names: named.names,
            finder,
        };
        for (place, said) in messages.iter_mut().enumerate() {
            let words = &said.words;
            said.holds = material.found(&[&words.said, &words.called]);
            let given = words.given.iter();
            said.given = given
                .map(|(part, text)| (*part, material.found(&[text])))
                .collect();
            for reference in said.all() {
                material.occurs[reference].push(place);
            }
        }
        material.messages = messages;
        Ok(material)
    }

    /// How many messages it has.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// It has no message.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// How many requests it has: messages of the model that follow another message.
    pub fn requests(&self) -> u64 {
        let replies = self.messages.iter().skip(1);
        replies.filter(|said| said.role == Role::Assistant).count() as u64
    }

    /// The references that occur in texts, each once, in order.
    pub(super) fn found(&self, texts: &[&str]) -> Vec<usize> {
        let mut found = Vec::new();
        for text in texts {
            self.finder.find(text, |index| found.push(index));
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl Said {
    fn read(message: &Message<'_>, made: &mut Index, named: &mut Index) -> Said {
        let words = Words::of(message);
        let mut makes = Vec::new();
        if matches!(message.role(), Role::User | Role::Assistant) {
            for text in [&words.said, &words.called] {
                refs::each(text, |reference| makes.push(made.index(reference)));
            }
            makes.sort_unstable();
            makes.dedup();
        }
        let mut names: HashMap<usize, u32> = HashMap::new();
        let given = words.given.iter().map(|(_, text)| text);
        for text in [&words.said, &words.called].into_iter().chain(given) {
            refs::each(text, |name| {
                *names.entry(named.index(name)).or_default() += 1
            });
        }
        let sentences = match message.role() {
            Role::User | Role::Assistant => sentences(&words.said),
            Role::System | Role::Tool => Vec::new(),
        };
        Said {
            role: message.role(),
            words,
            makes,
            holds: Vec::new(),
            given: Vec::new(),
            names: names.into_iter().collect(),
            sentences,
        }
    }

    /// Its whole text: what is said, called and given.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n{}", self.words.said, self.words.called);
        for (_, given) in &self.words.given {
            text.push('\n');
            text.push_str(given);
        }
        text.trim().to_owned()
    }

    /// All references that occur in it, wherever, each once.
    fn all(&self) -> Vec<usize> {
        let given = self.given.iter().flat_map(|(_, list)| list);
        let mut all: Vec<usize> = self.holds.iter().chain(given).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Numbers for names.
#[derive(Default)]
struct Index {
    numbers: HashMap<String, usize>,
    names: Vec<String>,
}

impl Index {
    fn index(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len();
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

/// The sentences of a text with their tokens, one that ends with a line too; code blocks are none.
fn sentences(text: &str) -> Vec<(String, u64)> {
    let mut out = Vec::new();
    let mut push = |sentence: &str| {
        let sentence = sentence.trim();
        if sentence.chars().any(char::is_alphanumeric) {
            // The space or the end of line that parts it from the next one weighs, too.
            let tokens = count(Encoding::O200k, sentence) + 1;
            out.push((sentence.to_owned(), tokens));
        }
    };
    let mut code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
            continue;
        }
        if code {
            continue;
        }
        let mut rest = line;
        while let Some(end) = [". ", "! ", "? "]
            .iter()
            .filter_map(|end| rest.find(end))
            .min()
        {
            push(&rest[..=end]);
            rest = &rest[end + 2..];
        }
        push(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_with_marks_or_lines_and_code_is_none() {
        let text = "First one. Is it? Yes!\n- a point\n```\nlet x = 1. y\n```\n---\nlast a.b";
        let all: Vec<String> = sentences(text).into_iter().map(|(text, _)| text).collect();
        assert_eq!(
            all,
            ["First one.", "Is it?", "Yes!", "- a point", "last a.b"]
        );
    }
}
