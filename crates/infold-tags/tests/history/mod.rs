//! Histories in the tag form, and the actions of agents on them.

#![allow(dead_code, reason = "each test uses a part of this")]

use infold_tags::{
    Millis, OrphanTags, RewindTarget, TagId, TagKind, Tagged, TaskLists, UiEntry,
    keep_with_tool_blocks, rewind_to_ts, truncate,
};
use proptest::prelude::*;

/// The next turn in a conversation that began with a request.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// The model talks, and the user answers.
    Talk,
    /// The model calls this many tools, and gets their results.
    Work(u8),
}

/// An action of an agent on its history. Numbers are taken modulo the number of choices.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
    Say(Next),
    Truncate(u8),
    Condense,
    /// Cuts at the time of a message.
    Rewind(u16),
    /// Writes the history to disk and reads it again.
    Store,
}

/// An agent's history, and its entries on screen.
#[derive(Clone, Default)]
pub struct Agent {
    pub history: Vec<Tagged>,
    screen: Vec<UiEntry>,
    said: u64,
    folds: u64,
}

impl Agent {
    /// Returns an agent with a first request.
    pub fn asked() -> Agent {
        let mut agent = Agent::default();
        agent.hear("user", r#""do \ud83d it""#);
        agent
    }

    pub fn does(&mut self, deed: Deed) {
        match deed {
            Deed::Say(next) => self.say(next),
            Deed::Truncate(percent) => self.truncate(f64::from(percent) / 100.0),
            Deed::Condense => drop(self.condense()),
            Deed::Rewind(at) => self.rewind(self.time_of(at)),
            Deed::Store => self.history = stored(&self.history),
        }
    }

    pub fn say(&mut self, next: Next) {
        match next {
            Next::Talk => {
                self.hear("assistant", r#""so""#);
                self.hear("user", r#"[{"type":"text","text":"go on"}]"#);
            }
            Next::Work(count) => {
                let first = self.said;
                let blocks = |block: &dyn Fn(u64) -> String| {
                    let blocks: Vec<String> = (0..u64::from(count)).map(block).collect();
                    format!("[{}]", blocks.join(", "))
                };
                let call = |at| {
                    let id = first * 10 + at;
                    format!(r#"{{"type":"tool_use","id":"c{id}","name":"ls","input":{{"n":1.0}}}}"#)
                };
                let result = |at| {
                    let id = first * 10 + at;
                    format!(r#"{{"type":"tool_result","tool_use_id":"c{id}","content":"ok"}}"#)
                };
                self.hear("assistant", &blocks(&call));
                self.hear("user", &blocks(&result));
            }
        }
    }

    pub fn hear(&mut self, role: &str, content: &str) {
        self.said += 1;
        let ts = self.said * 10;
        let text = format!(r#"{{"role":"{role}", "content":{content},"ts":{ts}, "x":[ ] }}"#);
        self.history.push(tagged(&text));
        self.shows(ts, "");
    }

    fn shows(&mut self, ts: u64, more: &str) {
        let entry = format!(r#"{{"ts":{ts}{more}}}"#);
        let entry = UiEntry::parse(entry.as_bytes());
        self.screen.push(entry.expect("an entry is an object"));
    }

    pub fn truncate(&mut self, fraction: f64) {
        let id = self.new_id("T");
        let truncated = truncate(&self.history, fraction, &id, self.now());
        if truncated.reported > 0.0 {
            let id = id.json();
            let told = format!(
                r#","say":"sliding_window_truncation","contextTruncation":{{"truncationId":{id}}}"#
            );
            self.shows(self.said * 10 + 5, &told);
        }
        self.history = truncated.messages;
    }

    /// Puts a summary between the first message and the last three, as the peers do.
    ///
    /// Refused with fewer than two messages between, or with a summary among the last three.
    pub fn condense(&mut self) -> bool {
        let at = self.history.len().saturating_sub(3);
        let kept = &self.history[at..];
        if at < 3
            || kept
                .iter()
                .any(|message| message.is_stand_in(TagKind::Summary))
        {
            return false;
        }
        let id = self.new_id("C");
        let calls = keep_with_tool_blocks(&self.history, 3).calls;
        let calls: String = calls.iter().map(|call| format!(",{call:?}")).collect();
        let kept = self.history[at].ts().given().unwrap_or(self.now());
        let text = format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"in short"}}{calls}],"ts":{},"isSummary":true,"condenseId":{}}}"#,
            kept.0 - 1.0,
            id.json()
        );
        for message in &mut self.history[1..at] {
            if message.parent(TagKind::Summary).is_none() {
                message.tag(TagKind::Summary, &id);
            }
        }
        self.history.insert(at, tagged(&text));
        let id = id.json();
        let told = format!(r#","say":"condense_context","contextCondense":{{"condenseId":{id}}}"#);
        self.shows(self.said * 10 + 5, &told);
        true
    }

    /// Removes the messages of this time and later; the first message stays.
    pub fn rewind(&mut self, ts: Millis) {
        let task = TaskLists {
            ui: &self.screen,
            history: &self.history,
        };
        if ts.0 <= 10.0 {
            return;
        }
        let Ok(rewound) = rewind_to_ts(task, ts, RewindTarget::Cut, OrphanTags::Untag) else {
            return;
        };
        let (screen, history) = (rewound.ui.to_vec(), rewound.history);
        self.screen = screen;
        self.history = history.unwrap_or_else(|| std::mem::take(&mut self.history));
    }

    fn time_of(&self, at: u16) -> Millis {
        let at = usize::from(at) % self.history.len();
        self.history[at].ts().given().unwrap_or(Millis(0.0))
    }

    fn new_id(&mut self, kind: &str) -> TagId {
        self.folds += 1;
        TagId::new(&format!("{kind}{}", self.folds))
    }

    fn now(&self) -> Millis {
        Millis(self.said as f64 * 10.0 + 5.0)
    }
}

pub fn tagged(text: &str) -> Tagged {
    Tagged::parse(text.as_bytes()).expect("a message is an object")
}

/// Returns the same messages, read from their bytes.
pub fn stored(messages: &[Tagged]) -> Vec<Tagged> {
    messages
        .iter()
        .map(|message| tagged(&text(message)))
        .collect()
}

pub fn text(message: &Tagged) -> String {
    String::from_utf8(message.bytes().into_owned()).expect("messages are UTF-8")
}

pub fn texts(messages: &[Tagged]) -> Vec<String> {
    messages.iter().map(text).collect()
}

pub fn any_next() -> impl Strategy<Value = Next> {
    prop_oneof![2 => Just(Next::Talk), 3 => (1..4u8).prop_map(Next::Work)]
}
