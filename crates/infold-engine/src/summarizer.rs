//! The trait of summarizers, its request and its errors. The modules implement it: the built-in extractive summarizer, a
//! command, a model.

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

/// Writes the text of a summary fold.
pub trait Summarizer {
    /// Returns the name that the events of its folds record, such as `model:NAME`.
    fn name(&self) -> String;

    /// Returns the most tokens of messages that one call may summarise; none if there is no limit.
    ///
    /// The messages of a larger fold are split into parts, one call for each.
    fn takes(&self, request: &SummaryRequest<'_>) -> Option<u64>;

    /// Writes the summary of one part; the summary of the parts before it is `request.previous`.
    fn summarize(&mut self, request: &SummaryRequest<'_>) -> Result<String, SummarizerError>;

    /// Says whether a call may cost money.
    fn is_paid(&self) -> bool {
        false
    }

    /// Returns the usage of the model calls since this method was last called, failed ones included: they cost, too.
    fn spent(&mut self) -> Vec<Usage> {
        Vec::new()
    }
}

/// The messages to summarise, and how.
pub struct SummaryRequest<'a> {
    /// The log that contains the messages.
    pub log: &'a Log,
    /// The messages as runs of seqs.
    pub runs: &'a [Span],
    /// The summary of earlier messages. The new summary replaces it, and so must include it.
    pub previous: Option<&'a str>,
    /// The facts that the extractive summarizer collected.
    pub extract: &'a Extract,
    /// The number of this part of the text, counted from one, and the number of parts.
    pub part: (usize, usize),
    /// The strategy, which defines the form of the summary.
    pub strategy: Strategy,
    /// The most tokens that the summary may have.
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
    /// The caller cancelled the summary.
    #[error("cancelled")]
    Cancelled,
    /// The model refused to write the summary.
    #[error("the model declined to write it")]
    Declined,
    /// The model reached its output limit before the summary was complete.
    #[error("the model was still writing after {most} tokens")]
    Cut {
        /// The limit in tokens.
        most: u64,
    },
    /// The model's window is too small.
    #[error("a window of {window} tokens leaves no room for anything to summarise")]
    Narrow {
        /// The window in tokens.
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
    /// The view would not fit into its budget with the summary.
    #[error("the summary has {summary} tokens, and there is room for {room}")]
    TooLong {
        /// Tokens of the summary.
        summary: u64,
        /// Tokens that the budget leaves for it.
        room: u64,
    },
    /// The output of the command exceeds the limit, so the command was stopped.
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

/// Returns the last line of a command's standard error, which usually is the one that names the error.
fn last_line(stderr: &str) -> String {
    match stderr.trim().lines().next_back() {
        Some(line) => format!(": {}", line.trim()),
        None => String::new(),
    }
}

impl SummaryRequest<'_> {
    /// Writes the text to be summarised into a file: a line `[role]: content` for each message.
    ///
    /// A message that cannot be parsed is left out. Dropping the value removes the file.
    pub fn transcript(&self) -> Result<WorkingFile, LogError> {
        let mut file = self.log.create_working_file(Working::Transcript)?;
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
