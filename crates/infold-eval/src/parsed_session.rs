//! Reads a session once: the words of each message, the terms it uses, and where each term occurs.

use std::collections::HashMap;

use infold_log::Role;
use infold_wire::tool_action::MessageText;
use infold_wire::{Message, MessageError};

use crate::RecordedSession;
use crate::measure::{TermVocabulary, each_reference};

/// A session, read once, with the terms that are measured.
#[derive(Default)]
pub struct ParsedSession {
    pub(crate) messages: Vec<ParsedMessage>,
    /// The terms that its user and its assistant use.
    pub(crate) vocabulary: TermVocabulary,
    /// All names in the session, for counting frequent ones.
    pub(crate) names: Vec<String>,
    /// The messages in which each term occurs.
    pub(crate) occurs: Vec<Vec<u32>>,
}

/// One message of a session.
pub(crate) struct ParsedMessage {
    pub role: Role,
    pub words: MessageText,
    /// The terms that user or assistant use in the message, each once; those of tool results are excluded.
    pub uses: Vec<u32>,
    /// Terms that occur in its text and calls, each once.
    pub own_terms: Vec<u32>,
    /// Terms that occur in tool results, by part.
    pub result_terms: Vec<(u32, Vec<u32>)>,
    /// All names in the message, with their counts.
    pub names: Vec<(usize, u32)>,
}

impl ParsedSession {
    /// Reads a session. Takes time in its size, and holds its text.
    pub fn of(session: &RecordedSession) -> Result<ParsedSession, MessageError> {
        let mut parsed = ParsedSession::without_terms(session)?;
        let mut numbers = HashMap::new();
        for message in &mut parsed.messages {
            message.learn_terms(&mut parsed.vocabulary);
            message.count_names(&mut numbers, &mut parsed.names);
        }
        parsed.occurs = vec![Vec::new(); parsed.vocabulary.len()];
        for (place, message) in parsed.messages.iter_mut().enumerate() {
            message.find_terms(&parsed.vocabulary);
            for term in message.all_terms() {
                parsed.occurs[term as usize].push(place as u32);
            }
        }
        Ok(parsed)
    }

    /// Reads a session for writing stand-ins only, without terms.
    pub(crate) fn without_terms(session: &RecordedSession) -> Result<ParsedSession, MessageError> {
        let messages = session.messages.iter().map(|bytes| {
            let message = Message::parse(bytes)?;
            Ok(ParsedMessage {
                role: message.role(),
                words: MessageText::of(&message),
                uses: Vec::new(),
                own_terms: Vec::new(),
                result_terms: Vec::new(),
                names: Vec::new(),
            })
        });
        Ok(ParsedSession {
            messages: messages.collect::<Result<_, MessageError>>()?,
            ..ParsedSession::default()
        })
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Says whether it has no message.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns the number of requests: messages of the model that follow another message.
    pub fn requests(&self) -> u64 {
        let replies = self.messages.iter().skip(1);
        replies
            .filter(|message| message.role == Role::Assistant)
            .count() as u64
    }

    /// Returns the system prompt and the first request, which are never folded.
    pub(crate) fn floor(&self) -> Vec<usize> {
        let messages = || self.messages.iter();
        let is_system = |message: &&ParsedMessage| message.role == Role::System;
        let system = messages().take_while(is_system).count();
        let request = messages().position(ParsedMessage::is_request);
        (0..system).chain(request).collect()
    }
}

impl ParsedMessage {
    fn learn_terms(&mut self, vocabulary: &mut TermVocabulary) {
        if matches!(self.role, Role::User | Role::Assistant) {
            for text in [&self.words.text, &self.words.arguments] {
                self.uses.extend(vocabulary.learn(text));
            }
            self.uses.sort_unstable();
            self.uses.dedup();
        }
    }

    fn count_names(&mut self, numbers: &mut HashMap<String, usize>, names: &mut Vec<String>) {
        let mut counts: HashMap<usize, u32> = HashMap::new();
        for text in self.texts() {
            each_reference(text, |range| {
                let name = &text[range];
                let number = numbers.get(name).copied().unwrap_or_else(|| {
                    numbers.insert(name.to_owned(), names.len());
                    names.push(name.to_owned());
                    names.len() - 1
                });
                *counts.entry(number).or_default() += 1;
            });
        }
        self.names = counts.into_iter().collect();
    }

    /// Finds the terms of the whole session in it.
    fn find_terms(&mut self, vocabulary: &TermVocabulary) {
        let words = &self.words;
        self.own_terms = vocabulary.find(&format!("{}\n{}", words.text, words.arguments));
        let results = words.results.iter();
        self.result_terms = results
            .map(|(part, text)| (*part, vocabulary.find(text)))
            .collect();
    }

    /// Returns all terms that occur in it, each once.
    fn all_terms(&self) -> Vec<u32> {
        let results = self.result_terms.iter().flat_map(|(_, terms)| terms);
        let mut all: Vec<u32> = self.own_terms.iter().chain(results).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Says whether the message is a request of the user: it has no tool result.
    pub fn is_request(&self) -> bool {
        self.role == Role::User && self.words.results.is_empty()
    }

    /// Returns the whole text of the message with its calls and results.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.texts().collect();
        texts.join("\n").trim().to_owned()
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let results = self.words.results.iter().map(|(_, text)| &**text);
        [&*self.words.text, &*self.words.arguments]
            .into_iter()
            .chain(results)
    }
}
