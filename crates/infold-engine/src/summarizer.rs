//! Whatever writes a summary.

mod extractive;
mod command;
mod prompts;
mod record;
mod model;
mod pen;

use std::time::Duration;

use infold_log::Span;
use infold_provider::CallError;
use infold_store::{Aside, Log, LogError, Usage, Working};
use infold_wire::{Message, plain};

use crate::Strategy;
use crate::extract::Extract;
pub use command::Command;
pub use extractive::Extractive;
pub use model::Model;
pub use pen::{Pen, Who};

/// Whatever writes a summary: the built-in one, a command, a model.
pub trait Summarizer {
    /// What it is called in events.
    fn name(&self) -> String;

    /// How many tokens of text it takes at once for such a brief; none for any number.
    fn takes(&self, brief: &Brief<'_>) -> Option<u64>;

    /// Writes a summary.
    fn summarize(&mut self, brief: &Brief<'_>) -> Result<String, SummarizerError>;

    /// Says whether a summary may cost money.
    fn is_paid(&self) -> bool {
        false
    }

    /// What its calls took since this was last asked, also those that no summary came of.
    fn spent(&mut self) -> Vec<Usage> {
        Vec::new()
    }
}

/// What is to be summarised, and how.
pub struct Brief<'a> {
    /// The log it comes from.
    pub log: &'a Log,
    /// The messages, as runs of seqs.
    pub runs: &'a [Span],
    /// An earlier summary of what came before, to be integrated.
    pub previous: Option<&'a str>,
    /// What was read from the messages' structure.
    pub extract: &'a Extract,
    /// Which part of the text it is, counted from one, and of how many.
    pub part: (usize, usize),
    /// How the conversation is folded, which says what a summary holds.
    pub strategy: Strategy,
    /// How many tokens the summary should have at most.
    pub budget: u64,
    /// What to ask for instead of the summarizer's own words.
    pub prompt: Option<&'a str>,
}

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
pub enum SummarizerError {
    /// It could not be started.
    #[error("`{command}` could not be run: {source}")]
    Start {
        /// The command.
        command: String,
        /// Why.
        source: std::io::Error,
    },
    /// It ended badly.
    #[error("`{command}` ended with {status}{}", said(.stderr))]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        status: String,
        /// The last thing it said.
        stderr: String,
    },
    /// It took too long.
    #[error("`{command}` gave no summary within {} s and was stopped", .after.as_secs())]
    Hung {
        /// The command.
        command: String,
        /// How long it had.
        after: Duration,
    },
    /// The provider did not answer, or not well.
    #[error(transparent)]
    Call(Box<CallError>),
    /// Whoever asked changed their mind.
    #[error("cancelled")]
    Cancelled,
    /// The model would not do it.
    #[error("the model declined to write it")]
    Declined,
    /// The model wrote more than it may.
    #[error("the model was still writing after {most} tokens")]
    Cut {
        /// How many it could write.
        most: u64,
    },
    /// The model can read next to nothing.
    #[error("a window of {window} tokens leaves no room for anything to summarise")]
    Narrow {
        /// The window.
        window: u64,
    },
    /// It returned nothing.
    #[error("the summary is empty")]
    Empty,
    /// What it returned is no text.
    #[error("the summary is not valid UTF-8")]
    NotText,
    /// The summary would not make the view smaller.
    #[error("the summary has {summary} tokens, and what it would replace has {replaced}")]
    Larger {
        /// Tokens of the summary.
        summary: u64,
        /// Tokens of what it would replace.
        replaced: u64,
    },
    /// The view would not fit with it.
    #[error("the summary has {summary} tokens, and there is room for {room}")]
    TooLong {
        /// Tokens of the summary.
        summary: u64,
        /// Tokens it could have.
        room: u64,
    },
    /// The summary was longer than anything worth reading.
    #[error("`{command}` returned more than {most} bytes")]
    Endless {
        /// The command.
        command: String,
        /// How much is read at most.
        most: u64,
    },
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

fn said(stderr: &str) -> String {
    match stderr.trim().lines().next_back() {
        Some(line) => format!(": {}", line.trim()),
        None => String::new(),
    }
}

impl Brief<'_> {
    /// Writes the text to be summarised into a file: a line `[role]: content` for each message.
    ///
    /// The file is gone with the value.
    pub fn transcript(&self) -> Result<Aside, LogError> {
        let mut file = self.log.aside(Working::Transcript)?;
        if let Some(previous) = self.previous {
            file.write(format!("[summary]: {previous}\n").as_bytes())?;
        }
        let mut text = String::new();
        for run in self.runs {
            self.log.each_message(*run, &mut |_, bytes| {
                if let Ok(message) = Message::parse(bytes) {
                    text.clear();
                    text.push('[');
                    text.push_str(message.role().wire_name());
                    text.push_str("]: ");
                    plain(&message, &mut text);
                    text.push('\n');
                    file.write(text.as_bytes())?;
                }
                Ok(())
            })?;
        }
        file.flush()?;
        Ok(file)
    }
}
