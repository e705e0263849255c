//! Reads a session once: what each message says, which terms it uses, and where each term occurs.

use std::collections::HashMap;

use infold_log::Role;
use infold_wire::acts::Words;
use infold_wire::{Message, MessageError};

use super::Session;
use super::score::{Vocabulary, each_reference};

/// What a session says, read once.
pub struct Material {
    /// Its messages.
    pub(super) messages: Vec<Said>,
    /// The terms that its user and its assistant use.
    pub(super) vocabulary: Vocabulary,
    /// All names that stand anywhere in it, for counting which are frequent.
    pub(super) names: Vec<String>,
    /// The messages in which each term occurs.
    pub(super) occurs: Vec<Vec<u32>>,
}

/// What one message says.
pub(super) struct Said {
    pub role: Role,
    pub words: Words,
    /// Terms it uses, each once: those of user and assistant, not those of what tools gave back.
    pub uses: Vec<u32>,
    /// Terms that occur in what it says and calls, each once.
    pub holds: Vec<u32>,
    /// Terms that occur in what tools gave back, by part.
    pub given: Vec<(u32, Vec<u32>)>,
    /// All names in it, and how often.
    pub names: Vec<(usize, u32)>,
}

impl Material {
    /// Reads a session. Takes time in its size, and holds its text.
    pub fn of(session: &Session) -> Result<Material, MessageError> {
        let mut vocabulary = Vocabulary::default();
        let mut named = Index::default();
        let mut messages = Vec::with_capacity(session.messages.len());
        for bytes in &session.messages {
            let message = Message::parse(bytes)?;
            messages.push(Said::read(&message, &mut vocabulary, &mut named));
        }
        let mut occurs = vec![Vec::new(); vocabulary.len()];
        for (place, said) in messages.iter_mut().enumerate() {
            said.find(&vocabulary);
            for term in said.all() {
                occurs[term as usize].push(place as u32);
            }
        }
        Ok(Material {
            messages,
            vocabulary,
            names: named.names,
            occurs,
        })
    }

    /// Reads a session for writing stand-ins only: what is used again is not looked for.
    pub(super) fn without_terms(session: &Session) -> Result<Material, MessageError> {
        let mut messages = Vec::with_capacity(session.messages.len());
        for bytes in &session.messages {
            let message = Message::parse(bytes)?;
            messages.push(Said::new(&message));
        }
        Ok(Material {
            messages,
            vocabulary: Vocabulary::default(),
            names: Vec::new(),
            occurs: Vec::new(),
        })
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

    /// The system prompt and the first request, which nothing folds.
    pub(super) fn floor(&self) -> Vec<usize> {
        let all = || self.messages.iter();
        let system = all().take_while(|said| said.role == Role::System).count();
        (0..system)
            .chain(all().position(Said::is_request))
            .collect()
    }
}

impl Said {
    fn new(message: &Message<'_>) -> Said {
        Said {
            role: message.role(),
            words: Words::of(message),
            uses: Vec::new(),
            holds: Vec::new(),
            given: Vec::new(),
            names: Vec::new(),
        }
    }

    fn read(message: &Message<'_>, vocabulary: &mut Vocabulary, named: &mut Index) -> Said {
        let mut said = Said::new(message);
        let words = &said.words;
        if matches!(said.role, Role::User | Role::Assistant) {
            for text in [&words.said, &words.called] {
                said.uses.extend(vocabulary.learn(text));
            }
            said.uses.sort_unstable();
            said.uses.dedup();
        }
        let mut names: HashMap<usize, u32> = HashMap::new();
        let given = words.given.iter().map(|(_, text)| text);
        for text in [&words.said, &words.called].into_iter().chain(given) {
            each_reference(text, |name| {
                *names.entry(named.index(&text[name])).or_default() += 1
            });
        }
        said.names = names.into_iter().collect();
        said
    }

    /// Finds the terms of the whole session in it.
    fn find(&mut self, vocabulary: &Vocabulary) {
        let words = &self.words;
        self.holds = vocabulary.find(&format!("{}\n{}", words.said, words.called));
        let given = words.given.iter();
        self.given = given
            .map(|(part, text)| (*part, vocabulary.find(text)))
            .collect();
    }

    /// A person asks something in it: it says more than what tools gave back.
    pub fn is_request(&self) -> bool {
        self.role == Role::User && self.words.given.is_empty()
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

    /// All terms that occur in it, wherever, each once.
    fn all(&self) -> Vec<u32> {
        let given = self.given.iter().flat_map(|(_, list)| list);
        let mut all: Vec<u32> = self.holds.iter().chain(given).copied().collect();
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
