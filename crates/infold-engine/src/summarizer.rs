//! The summarizers: the built-in one, a command, a model.

mod extractive;
mod command;
mod prompts;
mod transcript;
mod model;
mod factory;

use std::time::Duration;

use infold_log::Span;
use infold_provider::CallError;
use infold_store::{Log, LogError, Usage, Working, WorkingFile};
use infold_wire::{Message, append_plain_text};

use crate::Strategy;
use crate::extract::Extract;
pub use command::CommandSummarizer;
pub use extractive::Extractive;
pub use factory::{SummarizerChoice, SummarizerFactory};
pub use model::ModelSummarizer;

/// Writes summaries: the built-in one, a command, a model.
pub trait Summarizer {
    /// Returns its name in events.
    fn name(&self) -> String;

    /// Returns how many tokens of text it takes at once for a request; none for any number.
    fn takes(&self, request: &SummaryRequest<'_>) -> Option<u64>;

    /// Writes a summary.
    fn summarize(&mut self, request: &SummaryRequest<'_>) -> Result<String, SummarizerError>;

    /// Says whether a summary may cost money.
    fn is_paid(&self) -> bool {
        false
    }

    /// Returns the usage of its calls since the last call of this method, failed ones included.
    fn spent(&mut self) -> Vec<Usage> {
        Vec::new()
    }
}

/// The messages to summarise, and how.
pub struct SummaryRequest<'a> {
    /// The log it comes from.
    pub log: &'a Log,
    /// The messages as runs of seqs.
    pub runs: &'a [Span],
    /// The summary of earlier messages, to be integrated.
    pub previous: Option<&'a str>,
    /// The facts that the extractive summarizer collected.
    pub extract: &'a Extract,
    /// The number of this part of the text, counted from one, and the number of parts.
    pub part: (usize, usize),
    /// The strategy, which defines the form of the summary.
    pub strategy: Strategy,
    /// The most tokens of the summary.
    pub budget: u64,
    /// A configured prompt instead of the summarizer's own.
    pub prompt: Option<&'a str>,
}

/// The reason that there is no summary.
#[derive(Debug, thiserror::Error)]
pub enum SummarizerError {
    /// The command could not be started.
    #[error("`{command}` could not be run: {source}")]
    Start {
        /// The command.
        command: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The command ended with an error.
    #[error("`{command}` ended with {status}{}", last_line(.stderr))]
    Failed {
        /// The command.
        command: String,
        /// The exit status.
        status: String,
        /// The standard error.
        stderr: String,
    },
    /// The command took too long.
    #[error("`{command}` gave no summary within {} s and was stopped", .after.as_secs())]
    Hung {
        /// The command.
        command: String,
        /// The time limit.
        after: Duration,
    },
    /// The provider did not answer, or refused.
    #[error(transparent)]
    Call(Box<CallError>),
    /// The caller cancelled it.
    #[error("cancelled")]
    Cancelled,
    /// The model refused to write it.
    #[error("the model declined to write it")]
    Declined,
    /// The model reached its output limit.
    #[error("the model was still writing after {most} tokens")]
    Cut {
        /// The limit.
        most: u64,
    },
    /// The model's window is too small.
    #[error("a window of {window} tokens leaves no room for anything to summarise")]
    Narrow {
        /// The window.
        window: u64,
    },
    /// The summary is empty.
    #[error("the summary is empty")]
    Empty,
    /// The output is not text.
    #[error("the summary is not valid UTF-8")]
    NotText,
    /// The summary would not make the view smaller.
    #[error("the summary has {summary} tokens, and what it would replace has {replaced}")]
    Larger {
        /// Tokens of the summary.
        summary: u64,
        /// The tokens of the messages that it would replace.
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
    /// The output exceeds the limit.
    #[error("`{command}` returned more than {most} bytes")]
    Endless {
        /// The command.
        command: String,
        /// The limit in bytes.
        most: u64,
    },
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

fn last_line(stderr: &str) -> String {
    match stderr.trim().lines().next_back() {
        Some(line) => format!(": {}", line.trim()),
        None => String::new(),
    }
}

impl SummaryRequest<'_> {
    /// Writes the text to be summarised into a file: a line `[role]: content` for each message.
    ///
    /// The file is gone with the value.
    pub fn transcript(&self) -> Result<WorkingFile, LogError> {
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
                    append_plain_text(&message, &mut text);
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
