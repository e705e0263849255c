//! Which words of a conversation's user side a person typed, and which their agent put in.
//!
//! Agents speak in the user's name: reminders, the state of the editor, output of commands, files of skills,
//! results of tools. What each of them writes is in one table ([`table`]); what is not known counts as typed.

mod answers;
mod commands;
mod fences;
mod plain;
mod protocol;
mod sections;
mod table;
mod tags;
mod walk;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use commands::Command;
pub(crate) use protocol::output;
use walk::{Kind, Walk};

/// Tells what a person typed from what their agent put into the user's messages.
///
/// Takes a conversation's texts in order: some are known only by what came before them.
#[derive(Clone, Debug, Default)]
pub struct Typist {
    /// A slash command whose prompt may follow.
    command: Command,
    /// A result said that the prompt of a skill follows.
    skill_follows: Flag,
    /// The next text is what a tool gave back: the one before was only its heading.
    output_follows: bool,
    /// The model has spoken, so that a text may be the result of a call.
    replied: bool,
}

impl Typist {
    /// Returns the words that a person typed in one text (block) of a message of the user; none if all of it was put in.
    ///
    /// Injected parts inside are cut out, wrappers around typed words are taken off; a text with nothing
    /// injected is borrowed unchanged, trimmed at most.
    pub fn text<'a>(&mut self, text: &'a str) -> Option<Cow<'a, str>> {
        let text = text.trim();
        if std::mem::take(&mut self.output_follows) {
            return self.result(text);
        }
        if let Some(output) = output(text).or_else(|| self.observation(text)) {
            self.output_follows = output.is_empty() && text.starts_with('[');
            return self.result(output);
        }
        let walk = Walk::over(text);
        if self.skill_follows.take() {
            self.command = Command::Prompt;
        }
        let (expands, next) = self.command.follow(&walk);
        self.command = next;
        let kept = walk.pieces.into_iter().filter(|piece| match piece.kind {
            Kind::Loose | Kind::Words => !expands,
            Kind::Sure => true,
        });
        join(kept.map(|piece| piece.text))
    }

    /// Returns the user's words inside a tool result: the reason of a rejected call, answers to questions the agent asked, feedback on a plan.
    pub fn result<'a>(&self, text: &'a str) -> Option<Cow<'a, str>> {
        // The model called a skill, or a command with a prompt: that is put in next.
        if text.starts_with("Launching skill: ") {
            self.skill_follows.set();
        }
        answers::words(text)
    }

    /// The model spoke: what follows is a new turn.
    pub fn reply(&mut self) {
        *self = Typist {
            replied: true,
            ..Typist::default()
        };
    }

    /// A result in words that a person may begin with too: only a model that was just asked gets one.
    fn observation<'a>(&self, text: &'a str) -> Option<&'a str> {
        protocol::observation(text).filter(|_| self.replied)
    }
}

/// A flag that is set through a shared reference: a result is only looked at. Not a `Cell`, so that a typist
/// may be shared between threads.
#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Flag {
    fn set(&self) {
        self.0.store(true, Relaxed);
    }

    fn take(&mut self) -> bool {
        std::mem::take(self.0.get_mut())
    }
}

impl Clone for Flag {
    fn clone(&self) -> Flag {
        Flag(AtomicBool::new(self.0.load(Relaxed)))
    }
}

/// Returns whether a message of the user is a summary that an agent wrote when it compacted its conversation.
pub fn is_compaction(text: &str) -> bool {
    let text = text.trim_start();
    let starts = |(_, start): &(_, &str)| text.starts_with(start);
    table::COMPACTIONS.iter().any(starts)
}

/// Puts pieces together, each on lines of its own.
fn join<'a>(pieces: impl Iterator<Item = &'a str>) -> Option<Cow<'a, str>> {
    let mut out: Option<Cow<'a, str>> = None;
    for piece in pieces.map(str::trim).filter(|piece| !piece.is_empty()) {
        match &mut out {
            None => out = Some(Cow::Borrowed(piece)),
            Some(out) => {
                let out = out.to_mut();
                out.push('\n');
                out.push_str(piece);
            }
        }
    }
    out
}
