//! The record of a message: its role, its calls and answers, and its size.

use std::fmt;

use crate::{RoundPlacement, Seq};

/// The author of a message.
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
    /// Returns its name on the wires.
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

/// A tool call, as far as pairing needs it: the name of the tool, and the id of the call.
///
/// Both may be missing: some wires have no ids, some results no names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Call {
    /// The id that its result should carry.
    pub id: Option<String>,
    /// The tool's name.
    pub name: Option<String>,
}

/// A tie between messages beside calls and their results: a use of one of the provider's own
/// tools, which may end in a later message, an approval, or a block of a type we do not know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// The id that ties them together.
    pub id: String,
    /// The relation of this message to the others.
    pub kind: LinkKind,
}

/// The relation of a message to others with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkKind {
    /// The message begins a use that the provider ends, here or in a later message.
    Opens,
    /// The message belongs to a use that has not ended.
    Continues,
    /// The message ends a use.
    Ends,
    /// The message has the id in a block of an unknown type.
    Mentions,
}

/// The facts about a message that planning needs: everything but its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Who speaks.
    pub role: Role,
    /// The calls it makes.
    pub calls: Vec<Call>,
    /// The calls that it answers with results.
    pub answers: Vec<Call>,
    /// Links to other messages, in order.
    pub links: Vec<Link>,
    /// Whether it has reasoning or thinking.
    pub reasoning: bool,
    /// Whether it has no content that a provider would accept.
    pub empty: bool,
    /// Whether it is one item of an output that may continue with the next message.
    pub item: bool,
    /// Its size in tokens.
    pub tokens: u64,
    /// Its size in bytes, as it came.
    pub bytes: u64,
}

impl Facts {
    /// Returns whether the user said it and it is neither a tool result nor an approval.
    pub fn is_request(&self) -> bool {
        let answers = |link: &Link| matches!(link.kind, LinkKind::Continues | LinkKind::Ends);
        self.role == Role::User && self.answers.is_empty() && !self.links.iter().any(answers)
    }
}

/// The facts about one message that the log keeps in memory.
///
/// Its `sums` run over the whole log in seq order, so the size of any span of messages is a difference of two
/// records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who speaks.
    pub role: Role,
    /// The first message of its round.
    pub round: Seq,
    /// The first message of the earliest round that its round is tied to; its own if there is none.
    pub tied: Seq,
    /// Calls of its exchange that still wait for a result after it.
    pub waiting: u32,
    /// Whether it has a result without a call, or one that is late.
    pub late: bool,
    /// Whether it starts a round while the one before still waits for results, and so interrupts that one.
    pub cuts: bool,
    /// Whether it has no content that a provider would accept.
    pub empty: bool,
    /// Whether it is one item of an output that may continue with the next message.
    pub item: bool,
    /// Whether a use of its round has not ended after it, so that the round may continue.
    pub unended: bool,
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
    /// Messages after which a round cannot be shown byte for byte: late or empty ones, or ones that interrupt a round.
    pub odd: u64,
    /// Messages that are tied to an earlier round.
    pub ties: u64,
}

impl Record {
    /// Makes the record of the message that follows one with these sums.
    pub fn following(before: Sums, facts: &Facts, placement: RoundPlacement, time: u64) -> Record {
        let odd = placement.late || placement.cuts || facts.empty;
        let request = facts.is_request();
        let reply = facts.role == Role::Assistant && !placement.continues_output;
        Record {
            role: facts.role,
            round: placement.round,
            tied: placement.tied,
            waiting: placement.waiting,
            late: placement.late,
            cuts: placement.cuts,
            empty: facts.empty,
            item: facts.item,
            unended: placement.unended,
            time,
            sums: Sums {
                tokens: before.tokens + facts.tokens,
                bytes: before.bytes + facts.bytes,
                requests: before.requests + u64::from(request),
                replies: before.replies + u64::from(reply),
                odd: before.odd + u64::from(odd),
                ties: before.ties + u64::from(placement.is_tied),
            },
        }
    }
}
