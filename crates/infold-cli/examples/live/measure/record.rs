//! A recorded session in the form of Anthropic's API, with an index of its contents.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use infold_eval::RecordedSession;
use infold_log::Role;
use infold_wire::tokens::{Encoding, count};
use infold_wire::tool_action::MessageText;
use infold_wire::{Converter, JsonKind, Message, Wire, append_plain_text};

use super::Failure;
use super::terms::{Term, Terms};

/// A session that can be played through the proxy.
pub struct Record {
    /// The system prompt; empty if there is none.
    pub system: String,
    /// The messages, as a client sends them.
    pub messages: Vec<Recorded>,
    /// The references of user and assistant.
    pub terms: Terms,
    /// The first message that holds each term.
    pub first: Vec<usize>,
    /// The places of a block, by the hash of its bytes.
    blocks: HashMap<u64, Vec<(usize, usize)>>,
}

/// One message.
pub struct Recorded {
    /// The message's bytes.
    pub bytes: Vec<u8>,
    /// The message's role.
    pub role: Role,
    /// The terms that the message uses, without those in tool results.
    pub makes: Vec<Term>,
    /// The terms that each of its blocks holds.
    pub blocks: Vec<Vec<Term>>,
    /// The texts that a person typed, with normalised white space, and the tokens of each.
    pub typed: Vec<(String, u64)>,
    /// The message's tokens.
    pub tokens: u64,
}

impl Record {
    /// Reads a session.
    pub fn of(session: &RecordedSession) -> Result<Record, Failure> {
        let (system, all) = anthropic(session)?;
        let mut read = Vec::new();
        for bytes in &all {
            let message = Message::parse(bytes)?;
            let texts: Vec<String> = block_bytes(&message)
                .into_iter()
                .map(|block| text_of(message.role(), block))
                .collect();
            read.push((message.role(), MessageText::of(&message), texts));
        }
        let said = read.iter().filter(|(role, ..)| *role != Role::System);
        let said = said.flat_map(|(_, words, _)| [&*words.text, &*words.arguments]);
        let terms = Terms::of(said);
        let mut record = Record {
            system,
            messages: Vec::new(),
            first: vec![usize::MAX; terms.len()],
            terms,
            blocks: HashMap::new(),
        };
        for (bytes, (role, words, texts)) in all.into_iter().zip(read) {
            record.push(bytes, role, &words, &texts)?;
        }
        Ok(record)
    }

    fn push(
        &mut self,
        bytes: Vec<u8>,
        role: Role,
        words: &MessageText,
        texts: &[String],
    ) -> Result<(), Failure> {
        let place = self.messages.len();
        let message = Message::parse(&bytes)?;
        for (at, block) in block_bytes(&message).into_iter().enumerate() {
            let places = self.blocks.entry(hash(block)).or_default();
            places.push((place, at));
        }
        let blocks: Vec<Vec<Term>> = texts.iter().map(|text| self.terms.found(text)).collect();
        for term in blocks.iter().flatten() {
            let first = &mut self.first[*term];
            *first = place.min(*first);
        }
        let mut makes = self.terms.made(&words.text);
        makes.extend(self.terms.made(&words.arguments));
        makes.sort_unstable();
        makes.dedup();
        let typed = typed(&message);
        let tokens = infold_wire::tokens::message(&message);
        self.messages.push(Recorded {
            bytes,
            role,
            makes,
            blocks,
            typed,
            tokens,
        });
        Ok(())
    }

    /// Returns the places of all messages that answer a request: those of the model that follow another role's.
    pub fn replies(&self) -> Vec<usize> {
        let is_model = |place: usize| self.messages[place].role == Role::Assistant;
        (1..self.messages.len())
            .filter(|place| is_model(*place) && !is_model(place - 1))
            .collect()
    }

    /// Returns the places of a block with these bytes.
    pub fn find_block(&self, bytes: &[u8]) -> &[(usize, usize)] {
        self.blocks.get(&hash(bytes)).map_or(&[], |places| places)
    }

    /// Returns the terms that messages from `from` to `to` use and that occur before `from`.
    ///
    /// Each counts once: it is in view again with the first of these messages that contains it.
    pub fn needed(&self, from: usize, to: usize) -> Vec<Term> {
        let mut is_known = vec![false; self.first.len()];
        let mut needed = Vec::new();
        for message in &self.messages[from..to] {
            let old = message.makes.iter().copied();
            needed.extend(old.filter(|term| self.first[*term] < from && !is_known[*term]));
            let held = message.blocks.iter().flatten().chain(&message.makes);
            held.for_each(|term| is_known[*term] = true);
        }
        needed
    }

    /// Returns the newest typed requests before a message that together have at most `most_tokens` tokens.
    pub fn typed_before(&self, place: usize, most_tokens: u64) -> Vec<&str> {
        let mut left = most_tokens;
        let all = self.messages[..place].iter().rev();
        all.flat_map(|message| message.typed.iter().rev())
            .take_while(|(_, tokens)| {
                let fits = *tokens <= left;
                left -= if fits { *tokens } else { 0 };
                fits
            })
            .map(|(text, _)| &**text)
            .collect()
    }
}

/// The system prompt and the messages of a session as Anthropic's API takes them.
fn anthropic(session: &RecordedSession) -> Result<(String, Vec<Vec<u8>>), Failure> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut converter = Converter::new(Wire::Anthropic);
    for bytes in &session.messages {
        converter.push(bytes, &mut |message| all.push(message.to_vec()))?;
    }
    converter.finish(&mut |message| all.push(message.to_vec()));
    let mut system = String::new();
    let mut messages = Vec::new();
    for bytes in all {
        let message = Message::parse(&bytes)?;
        if message.role() == Role::System {
            append_plain_text(&message, &mut system);
            system.push('\n');
        } else {
            messages.push(bytes);
        }
    }
    Ok((system, messages))
}

/// The blocks of a message; a content that is a text is one.
pub fn block_bytes<'a>(message: &Message<'a>) -> Vec<&'a [u8]> {
    match message.content() {
        Some(content) if content.kind() == JsonKind::Array => content
            .elements()
            .map(|block| block.bytes().trim_ascii())
            .collect(),
        content => content.iter().map(|content| content.bytes()).collect(),
    }
}

/// Returns all text of one block: text, arguments, results.
pub fn text_of(role: Role, block: &[u8]) -> String {
    let content = match block.first() {
        Some(b'{') => [b"[".as_slice(), block, b"]"].concat(),
        _ => block.to_vec(),
    };
    let role = match role {
        Role::Assistant => "assistant",
        _ => "user",
    };
    let head = format!(r#"{{"role":"{role}","content":"#);
    let bytes = [head.as_bytes(), &content, b"}"].concat();
    let Ok(message) = Message::parse(&bytes) else {
        return String::new();
    };
    let words = MessageText::of(&message);
    let given = words.results.into_iter().map(|(_, text)| text);
    let all: Vec<String> = [words.text, words.arguments]
        .into_iter()
        .chain(given)
        .collect();
    all.join("\n")
}

/// The beginnings of a user's texts that no person typed.
const NOT_TYPED: [&str; 4] = [
    "<",
    "[Request interrupted",
    "Caveat:",
    "Base directory for this skill",
];

/// The texts in a message that a person typed.
fn typed(message: &Message<'_>) -> Vec<(String, u64)> {
    if message.role() != Role::User {
        return Vec::new();
    }
    let texts = match message.content() {
        Some(content) if content.kind() == JsonKind::Array => content
            .elements()
            .filter(|block| block.get("type").is_some_and(|kind| kind.is("text")))
            .filter_map(|block| block.get("text").and_then(|text| text.text()))
            .collect(),
        content => content
            .and_then(|content| content.text())
            .into_iter()
            .collect::<Vec<_>>(),
    };
    let texts = texts.iter().map(|text| normal_space(text));
    texts
        .filter(|text| !text.is_empty() && !NOT_TYPED.iter().any(|start| text.starts_with(start)))
        .map(|text| {
            let tokens = count(Encoding::O200k, &text);
            (text, tokens)
        })
        .collect()
}

/// Returns a text with each run of white space replaced by one space.
pub fn normal_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A number that two different texts hardly share.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
