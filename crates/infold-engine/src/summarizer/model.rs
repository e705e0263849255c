use std::time::{Duration, Instant};

use infold_log::Role;
use infold_provider::{Body, CallError, Heard};
use infold_store::{Purpose, Usage};
use infold_wire::request::Frame;
use infold_wire::tokens::{Encoding, count};
use infold_wire::trouble::Refused;
use infold_wire::{Delta, Stop, Trouble, Wire, render_text};

use super::prompts::Prompt;
use super::record::{cut, record};
use super::{Brief, Summarizer, SummarizerError};
use crate::connection::Unanswered;
use crate::strategy::StandIn;
use crate::{Connection, Strategy};

/// Has a model write a summary.
pub struct Model {
    /// The model, and where it is.
    pub connection: Connection,
    /// How many tokens a request and its reply may have.
    pub window: u64,
    /// Somebody chose that window: a server that loads models is told.
    pub told: bool,
    /// How many the reply may have, if that is known.
    pub max_output: Option<u64>,
    /// Tokens of the model for each that we count.
    pub factor: f64,
    /// How long a summary may take, all its parts together.
    pub timeout: Duration,
    /// Has each summary looked over for what it leaves out: a second call.
    pub checks: bool,
    /// The model to ask when the provider does not have that one.
    pub instead: Option<Connection>,
    until: Instant,
    spent: Vec<Usage>,
}

/// Room for a model that reasons before it writes; a small window has less.
const REASONING: u64 = 16_384;

/// What of a window is not filled: templates add tokens that nobody counts.
const SLACK: f64 = 0.95;

/// With less to read, nothing can be summarised.
const LEAST: u64 = 64;

impl Model {
    /// A model with this window, that counts as we do.
    pub fn new(connection: Connection, window: u64) -> Model {
        Model {
            connection,
            window,
            told: false,
            max_output: None,
            factor: 1.0,
            timeout: Duration::from_secs(120),
            checks: false,
            instead: None,
            until: Instant::now(),
            spent: Vec::new(),
        }
    }

    /// How long the reply may be, in the model's tokens.
    fn reply(&self, budget: u64) -> u64 {
        let summary = (budget as f64 * self.factor * 2.0) as u64;
        let most = self.max_output.unwrap_or(u64::MAX).min(self.window / 4);
        summary.max(REASONING).min(most).max(1)
    }

    /// How much may be sent, in tokens as we count.
    fn room(&self, budget: u64) -> u64 {
        let left = self.window.saturating_sub(self.reply(budget));
        (left as f64 * SLACK / self.factor.max(0.1)) as u64
    }

    /// What of the earlier summary is sent.
    fn previous(&self, brief: &Brief<'_>) -> Option<String> {
        let most = self.room(brief.budget) / 4;
        brief.previous.map(|previous| cut(previous, most))
    }

    /// Posts a prompt and returns what was said to it.
    fn ask(&mut self, prompt: &str, budget: u64) -> Result<String, SummarizerError> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.late());
        }
        let most = self.reply(budget);
        let body = Body::Bytes(self.request(prompt, most));
        let mut text = String::new();
        let mut hear = |heard| match heard {
            Heard::Delta(Delta::Text(piece)) => text.push_str(&piece),
            // What was heard before it broke does not count.
            Heard::Again => text.clear(),
            Heard::Delta(_) | Heard::Sent { .. } | Heard::Waiting { .. } => {}
        };
        let called = match self.connection.send_within(left, body, true, &mut hear) {
            Ok(called) => called,
            Err(Unanswered::Cancelled) => return Err(SummarizerError::Cancelled),
            Err(Unanswered::Call(_)) if Instant::now() >= self.until => return Err(self.late()),
            Err(Unanswered::Call(error)) => {
                let unknown = error.trouble == Trouble::Refused(Refused::Model);
                let Some(instead) = self.instead.take().filter(|_| unknown) else {
                    return Err(SummarizerError::Call(error));
                };
                self.connection = instead;
                return self.ask(prompt, budget);
            }
        };
        if let Some(reported) = called.reply.usage {
            self.spent.push(Usage {
                provider: self.connection.endpoint.name.clone(),
                model: self.connection.model.clone(),
                tokens: reported.total(),
                cached: reported.cache_read,
                output: reported.output,
                frame: 0,
                cost: self.connection.cost(&reported),
                purpose: Purpose::Summary,
            });
        }
        match called.reply.stop {
            Stop::Length => Err(SummarizerError::Cut { most }),
            Stop::Declined => Err(SummarizerError::Declined),
            Stop::End | Stop::Calls | Stop::Other(_) => Ok(text),
        }
    }

    /// One message of the user's: some models take no other.
    fn request(&self, prompt: &str, most: u64) -> Vec<u8> {
        let wire = self.connection.wire();
        let frame = Frame {
            max_tokens: Some(most),
            window: Some(self.window).filter(|_| self.told && wire == Wire::Ollama),
            official: self.connection.endpoint.is_openai_itself(),
            ..Frame::new(wire, &self.connection.model)
        };
        let mut body = frame.head().into_bytes();
        body.extend(render_text(wire, Role::User, prompt));
        body.extend(Frame::TAIL.bytes());
        body
    }

    /// Has a summary looked over. If that fails or is too long, it stands as it was.
    fn checked(
        &mut self,
        prompt: &Prompt<'_>,
        record: &str,
        summary: String,
        brief: &Brief<'_>,
    ) -> Result<String, SummarizerError> {
        let again = self.ask(&prompt.check(record, &summary), brief.budget);
        let better = match again {
            Err(SummarizerError::Cancelled) => return Err(SummarizerError::Cancelled),
            Err(_) => return Ok(summary),
            Ok(said) => taken(&said, &brief.strategy).to_owned(),
        };
        let fits = tokens(&better) <= tokens(&summary).max(brief.budget);
        Ok(match fits && !better.is_empty() {
            true => better,
            false => summary,
        })
    }

    fn late(&self) -> SummarizerError {
        SummarizerError::Hung {
            command: self.connection.model.clone(),
            after: self.timeout,
        }
    }
}

impl Summarizer for Model {
    fn name(&self) -> String {
        format!("model:{}", self.connection.model)
    }

    fn is_paid(&self) -> bool {
        let to = &self.connection;
        to.prices.is_some() || !to.endpoint.is_local()
    }

    fn takes(&self, brief: &Brief<'_>) -> Option<u64> {
        let room = self.room(brief.budget);
        let previous = self.previous(brief);
        let asked = tokens(&prompt(brief, previous.as_deref()).write(""));
        // Later parts have the summary of the earlier ones before them.
        let summary = brief
            .budget
            .saturating_sub(previous.map_or(0, |text| tokens(&text)));
        let left = room.saturating_sub(asked + summary.min(room / 4));
        // Numbers and roles are written down too.
        Some((left - left / 10).max(LEAST))
    }

    fn summarize(&mut self, brief: &Brief<'_>) -> Result<String, SummarizerError> {
        if brief.part.0 <= 1 {
            self.until = Instant::now() + self.timeout;
        }
        let previous = self.previous(brief);
        let prompt = prompt(brief, previous.as_deref());
        let asked = tokens(&prompt.write(""));
        let room = self.room(brief.budget).saturating_sub(asked);
        if room < LEAST {
            let window = self.window;
            return Err(SummarizerError::Narrow { window });
        }
        let whole = record(brief, brief.prompt.is_none(), room)?;
        let mut text = cut(&whole, room);
        let said = match self.ask(&prompt.write(&text), brief.budget) {
            Err(SummarizerError::Call(error)) if is_too_long(&error) => {
                text = cut(&whole, tokens(&text) / 2);
                self.ask(&prompt.write(&text), brief.budget)?
            }
            said => said?,
        };
        let summary = taken(&said, &brief.strategy).to_owned();
        match summary.is_empty() {
            true => Err(SummarizerError::Empty),
            false if self.checks => self.checked(&prompt, &text, summary, brief),
            false => Ok(summary),
        }
    }

    fn spent(&mut self) -> Vec<Usage> {
        std::mem::take(&mut self.spent)
    }
}

fn tokens(text: &str) -> u64 {
    count(Encoding::O200k, text)
}

fn prompt<'a>(brief: &'a Brief<'_>, previous: Option<&'a str>) -> Prompt<'a> {
    Prompt {
        strategy: brief.strategy.name,
        own: brief.prompt,
        previous,
        part: brief.part,
        budget: brief.budget,
    }
}

fn is_too_long(error: &CallError) -> bool {
    matches!(
        error.trouble,
        Trouble::TooLong { .. } | Trouble::TooLarge | Trouble::Unexplained { .. }
    )
}

/// What of an answer is the summary.
fn taken<'a>(answer: &'a str, strategy: &Strategy) -> &'a str {
    let answer = without(answer.trim(), "<think>", "</think>");
    if strategy.stand_in != StandIn::Snapshot {
        return unwrapped(answer);
    }
    // The scratchpad may speak of the snapshot: the last one is it.
    match answer.rfind("<state_snapshot>") {
        Some(at) => {
            let inner = &answer[at + "<state_snapshot>".len()..];
            let end = inner.rfind("</state_snapshot>").unwrap_or(inner.len());
            inner[..end].trim()
        }
        None => without(unwrapped(answer), "<scratchpad>", "</scratchpad>"),
    }
}

/// Leaves out what an answer begins with, if it is between these; all of it if that never ends.
fn without<'a>(answer: &'a str, from: &str, to: &str) -> &'a str {
    match answer.strip_prefix(from) {
        Some(rest) => rest.split_once(to).map_or("", |(_, rest)| rest.trim()),
        None => answer,
    }
}

/// Some models put all they write into one block of code.
fn unwrapped(answer: &str) -> &str {
    let inner = answer
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'));
    match inner {
        Some((_, inner)) if !inner.contains("```") => inner.trim(),
        _ => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_answer_only_the_summary_is_taken() {
        let taken = |strategy: &str, answer| taken(answer, &strategy.parse().unwrap());
        let whole = "<scratchpad>a <state_snapshot> must hold b</scratchpad>\n<state_snapshot>\n<overall_goal>b</overall_goal>\n</state_snapshot>\nDone!";
        assert_eq!(taken("gemini", whole), "<overall_goal>b</overall_goal>");
        assert_eq!(taken("gemini", "<scratchpad>a</scratchpad> b"), "b");
        assert_eq!(taken("gemini", "<scratchpad>a, a, a, a"), "");
        assert_eq!(taken("gemini", "<state_snapshot>b"), "b");
        assert_eq!(
            taken("infold", "<think>\nwell\n</think>\n\n## Goal\nb\n"),
            "## Goal\nb"
        );
        assert_eq!(taken("infold", "<think>and so on"), "");
        assert_eq!(taken("roo", "```markdown\n1. b\n```"), "1. b");
        assert_eq!(
            taken("roo", "```\nx\n```\nand\n```\ny\n```"),
            "```\nx\n```\nand\n```\ny\n```"
        );
    }
}
