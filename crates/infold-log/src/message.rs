use std::fmt;

use crate::{Heard, Seq};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions (`system`, or OpenAI's newer `developer`).
    System,
    /// The person, or, on some wires, the carrier of tool results.
    User,
    /// The model.
    Assistant,
    /// A tool's result (`tool`, or OpenAI's older `function`).
    Tool,
}

impl Role {
    /// Its name on the wires.
    pub fn wire_name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "model",
            Role::Tool => "tool",
        })
    }
}

/// A tool call as far as pairing goes: who is called, and under which id.
///
/// Both may be missing: some wires have no ids, some results no names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Call {
    /// The id that its result should carry.
    pub id: Option<String>,
    /// The tool's name.
    pub name: Option<String>,
}

/// What planning knows of a message: everything but its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Who speaks.
    pub role: Role,
    /// The calls it makes.
    pub calls: Vec<Call>,
    /// The calls it brings results for.
    pub answers: Vec<Call>,
    /// It holds reasoning or thinking.
    pub reasoning: bool,
    /// It says nothing that a provider would accept as content.
    pub empty: bool,
    /// It is one item of an output that may go on with the next message.
    pub item: bool,
    /// Its size in tokens.
    pub tokens: u64,
    /// Its size in bytes, as it came.
    pub bytes: u64,
}

/// What the log keeps in memory-sized form about one message.
///
/// Its `sums` run over the whole log in seq order, so what any span of messages
/// weighs is a difference of two records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who speaks.
    pub role: Role,
    /// The first message of its round.
    pub round: Seq,
    /// Calls of its round that still wait for a result after it.
    pub waiting: u32,
    /// It holds a result that answers nothing, or too late.
    pub late: bool,
    /// It starts a round while the one before still waits: that one is interrupted.
    pub cuts: bool,
    /// It says nothing that a provider would accept as content.
    pub empty: bool,
    /// It is one item of an output that may go on with the next message.
    pub item: bool,
    /// When it was recorded, in milliseconds since 1970.
    pub time: u64,
    /// Running totals, this message included.
    pub sums: Sums,
}

/// Running totals over a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Tokens of all messages.
    pub tokens: u64,
    /// Bytes of all messages.
    pub bytes: u64,
    /// User messages that are requests, not tool results.
    pub requests: u64,
    /// Outputs of the model, however many items each has.
    pub replies: u64,
    /// Messages that cannot be shown, or followed, byte for byte (late, cutting or empty).
    pub odd: u64,
}

impl Record {
    /// Makes the record of the message that follows one with these sums.
    pub fn following(before: Sums, facts: &Facts, heard: Heard, time: u64) -> Record {
        let odd = heard.late || heard.cuts || facts.empty;
        let request = facts.role == Role::User && facts.answers.is_empty();
        let reply = facts.role == Role::Assistant && !heard.goes_on;
        Record {
            role: facts.role,
            round: heard.round,
            waiting: heard.waiting,
            late: heard.late,
            cuts: heard.cuts,
            empty: facts.empty,
            item: facts.item,
            time,
            sums: Sums {
                tokens: before.tokens + facts.tokens,
                bytes: before.bytes + facts.bytes,
                requests: before.requests + u64::from(request),
                replies: before.replies + u64::from(reply),
                odd: before.odd + u64::from(odd),
            },
        }
    }
}
