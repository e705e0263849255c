//! The summarizer that runs a command.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use super::{Summarizer, SummarizerError, SummaryRequest};
use crate::subprocess::{self, CommandEnd};

/// Runs a command that writes a summary: it gets the transcript on its standard input, and prints the summary on its
/// standard output.
///
/// The environment has the budget in `INFOLD_SUMMARY_TOKENS` and a configured prompt in `INFOLD_PROMPT`.
#[derive(Clone, Debug)]
pub struct CommandSummarizer {
    /// The command line for the shell.
    pub command: String,
    /// The time limit of the command.
    pub timeout: Duration,
    /// The most tokens of text that it takes at once; `None` means any number.
    pub takes: Option<u64>,
}

/// A longer output is refused.
const MAX_SUMMARY_BYTES: u64 = 4 << 20;

impl Summarizer for CommandSummarizer {
    fn name(&self) -> String {
        format!("command:{}", self.command)
    }

    fn takes(&self, _: &SummaryRequest<'_>) -> Option<u64> {
        self.takes
    }

    fn summarize(&mut self, request: &SummaryRequest<'_>) -> Result<String, SummarizerError> {
        let transcript = request.transcript()?;
        let start = |source| SummarizerError::Start {
            command: self.command.clone(),
            source,
        };
        let mut shell = subprocess::shell(&self.command);
        shell.env("INFOLD_SUMMARY_TOKENS", request.budget.to_string());
        if let Some(prompt) = request.prompt {
            shell.env("INFOLD_PROMPT", prompt);
        }
        shell.stdin(Stdio::from(File::open(transcript.path()).map_err(start)?));
        let ended = subprocess::run(shell, None, MAX_SUMMARY_BYTES, self.timeout).map_err(start)?;
        let command = self.command.clone();
        match ended {
            CommandEnd::TimedOut => Err(SummarizerError::Hung {
                command,
                after: self.timeout,
            }),
            CommandEnd::TooMuchOutput => Err(SummarizerError::Endless {
                command,
                most: MAX_SUMMARY_BYTES,
            }),
            CommandEnd::Failed { status, stderr } => Err(SummarizerError::Failed {
                command,
                status: status.to_string(),
                stderr,
            }),
            CommandEnd::Succeeded { stdout } => {
                String::from_utf8(stdout).map_err(|_| SummarizerError::NotText)
            }
        }
    }
}
