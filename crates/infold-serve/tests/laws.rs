//! Any actions of clients, in any order: no conversation gets into another.

mod office;

use infold_serve::{ConversationName, Exchange};
use office::{Office, assistant, reply, user};
use proptest::prelude::*;
use serde_json::Value;

/// The next action of a client. Its numbers choose among the existing conversations and requests.
#[derive(Clone, Debug)]
enum Act {
    /// Continues a conversation.
    Say(usize, u8),
    /// Goes back in a conversation and says something else.
    Edit(usize, usize, u8),
    /// Starts a conversation.
    Begin(u8),
    /// Asks and does not wait.
    Sample(usize, u8),
    /// A request gets its answer.
    Answer(usize, u8),
    /// The client of a request disconnected.
    Leave(usize),
    /// The server ends and starts again.
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    // Few words, so that conversations often coincide.
    let word = 0..3_u8;
    prop_oneof![
        6 => (any::<usize>(), word.clone()).prop_map(|(at, word)| Act::Say(at, word)),
        3 => (any::<usize>(), any::<usize>(), word.clone()).prop_map(|(at, to, word)| Act::Edit(at, to, word)),
        2 => word.clone().prop_map(Act::Begin),
        3 => (any::<usize>(), word.clone()).prop_map(|(at, word)| Act::Sample(at, word)),
        4 => (any::<usize>(), word).prop_map(|(at, word)| Act::Answer(at, word)),
        1 => any::<usize>().prop_map(Act::Leave),
        1 => Just(Act::Restart),
    ]
}

/// A text that is long enough to make folding happen now and then.
fn text(word: u8, words: usize) -> String {
    format!(
        "{}{}",
        ["yes", "no", "why"][usize::from(word) % 3],
        " well".repeat(words)
    )
}

/// Texts by their first words.
fn short(texts: &[String]) -> Vec<&str> {
    let first = |text: &String| text.find(' ').unwrap_or(text.len());
    texts.iter().map(|text| &text[..first(text)]).collect()
}

struct World {
    office: Office,
    words: usize,
    name: Option<ConversationName>,
    /// The history of each client, which ends with an answer unless it is empty.
    clients: Vec<Vec<Value>>,
    /// The requests that are not answered yet.
    asked: Vec<(Vec<Value>, Exchange)>,
}

impl World {
    fn ask(&mut self, history: Vec<Value>) -> Result<(), TestCaseError> {
        let (exchange, sent) = self.office.ask(&history, self.name.clone());
        let sent = sent["messages"].as_array().cloned().unwrap_or_default();
        prop_assert_eq!(sent.first(), history.first());
        prop_assert_eq!(sent.last(), history.last());
        // The request is the history, in order, with stand-ins for the messages that are left out.
        let mut rest = history.iter();
        for message in &sent {
            let stands_in = message["content"]
                .as_str()
                .is_some_and(|text| text.starts_with('['));
            prop_assert!(
                stands_in || rest.any(|other| other == message),
                "{message} is out of place"
            );
        }
        self.asked.push((history, exchange));
        Ok(())
    }

    fn answer(&mut self, at: usize, word: u8) -> Result<(), TestCaseError> {
        if self.asked.is_empty() {
            return Ok(());
        }
        let (mut history, mut exchange) = self.asked.remove(at % self.asked.len());
        let answer = text(word, self.words);
        exchange.record(reply(&answer)).expect("it is recorded");
        history.push(assistant(&answer));
        // A repeated answer is recorded already, with the messages after it. An answer that the conversation continued
        // without is recorded beside its path.
        let texts = history
            .iter()
            .filter_map(|message| message["content"].as_str());
        let texts: Vec<String> = texts.map(str::to_owned).collect();
        let held = self.office.held(exchange.task());
        prop_assert!(
            held.iter().any(|held| held.starts_with(&texts)),
            "{:?}\n{:?}",
            held.iter().map(|held| short(held)).collect::<Vec<_>>(),
            short(&texts)
        );
        self.clients.push(history);
        Ok(())
    }

    fn client(&self, at: usize) -> Vec<Value> {
        match self.clients.len() {
            0 => Vec::new(),
            count => self.clients[at % count].clone(),
        }
    }

    fn act(&mut self, act: &Act) -> Result<(), TestCaseError> {
        match *act {
            Act::Begin(word) => {
                self.ask(vec![user(&text(word, self.words))])?;
                self.answer(usize::MAX - 1, word)?;
            }
            Act::Say(at, word) | Act::Sample(at, word) => {
                let mut history = self.client(at);
                history.push(user(&text(word, self.words)));
                self.ask(history)?;
                if matches!(act, Act::Say(..)) {
                    let last = self.asked.len() - 1;
                    self.answer(last, word)?;
                }
            }
            Act::Edit(at, to, word) => {
                let mut history = self.client(at);
                history.truncate(to % (history.len() + 1) / 2 * 2);
                history.push(user(&text(word, self.words)));
                self.ask(history)?;
                let last = self.asked.len() - 1;
                self.answer(last, word.wrapping_add(1))?;
            }
            Act::Answer(at, word) => self.answer(at, word)?,
            Act::Leave(at) if !self.asked.is_empty() => {
                let (_, mut exchange) = self.asked.remove(at % self.asked.len());
                exchange
                    .fail("the client went away")
                    .expect("it is recorded");
            }
            Act::Leave(_) => {}
            Act::Restart => {
                // Unanswered requests end with the server.
                self.asked.clear();
                self.office.restart();
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// After each answer, its task has exactly the messages of its client.
    #[test]
    fn no_conversation_gets_into_another(
        acts in prop::collection::vec(act(), 1..40),
        words in prop_oneof![Just(0_usize), Just(150)],
        named in any::<bool>(),
    ) {
        let mut world = World {
            office: Office::new(2_000),
            words,
            name: named.then(|| ConversationName::Given("mine".to_owned())),
            clients: Vec::new(),
            asked: Vec::new(),
        };
        for act in &acts {
            world.act(act)?;
        }
    }
}
