//! The summarizer that asks a model.

use std::time::{Duration, Instant};

use infold_log::Role;
use infold_provider::{CallError, CallEvent, RequestBody};
use infold_store::{Purpose, Usage};
use infold_wire::provider_error::RefusalCause;
use infold_wire::request::RequestFrame;
use infold_wire::tokens::{Encoding, count};
use infold_wire::{ProviderError, ReplyDelta, StopReason, Wire, render_text};

use super::prompts::SummaryPrompt;
use super::transcript::{cut_to_tokens, write_transcript};
use super::{Summarizer, SummarizerError, SummaryRequest};
use crate::connection::CallFailure;
use crate::strategy::StandIn;
use crate::{Connection, Strategy};

/// Asks a model for summaries.
pub struct ModelSummarizer {
    /// The model and its provider.
    pub connection: Connection,
    /// The most tokens of a request and its reply together, as the model counts them.
    pub window: u64,
    /// Whether the window was configured. If so, it is sent to Ollama, which loads the model with that window.
    pub is_window_configured: bool,
    /// The most tokens of the reply, if known.
    pub max_output: Option<u64>,
    /// The model's tokens for each token that we count.
    pub factor: f64,
    /// The time limit of a summary with all its parts.
    pub timeout: Duration,
    /// Whether a second call checks each summary for omissions.
    pub checks: bool,
    /// The fallback if the provider does not have the model.
    pub fallback: Option<Connection>,
    /// When the time limit of the current summary ends.
    deadline: Instant,
    /// The usage of the calls since [`Summarizer::spent`] was last called.
    spent: Vec<Usage>,
}

/// A reply may have at least this many tokens, because models reason before they write the summary; the window and the
/// model may allow fewer.
const REASONING_TOKENS: u64 = 16_384;

/// The share of a window that is filled: chat templates add tokens that are not counted.
const WINDOW_SHARE: f64 = 0.95;

/// The fewest tokens of messages that can be summarised.
const MIN_READ_TOKENS: u64 = 64;

impl ModelSummarizer {
    /// Returns a summarizer for a model with this window that counts tokens as we do.
    pub fn new(connection: Connection, window: u64) -> ModelSummarizer {
        ModelSummarizer {
            connection,
            window,
            is_window_configured: false,
            max_output: None,
            factor: 1.0,
            timeout: Duration::from_secs(120),
            checks: false,
            fallback: None,
            deadline: Instant::now(),
            spent: Vec::new(),
        }
    }

    /// Returns the most tokens of a reply, as the model counts them, for a summary of `budget` tokens.
    fn max_reply_tokens(&self, budget: u64) -> u64 {
        let summary = (budget as f64 * self.factor * 2.0) as u64;
        let most = self.max_output.unwrap_or(u64::MAX).min(self.window / 4);
        summary.max(REASONING_TOKENS).min(most).max(1)
    }

    /// Returns the most tokens of a prompt, as we count them: the rest of the window is for the reply.
    fn max_prompt_tokens(&self, budget: u64) -> u64 {
        let left = self.window.saturating_sub(self.max_reply_tokens(budget));
        (left as f64 * WINDOW_SHARE / self.factor.max(0.1)) as u64
    }

    /// Returns the earlier summary, cut to a quarter of the prompt.
    fn previous(&self, request: &SummaryRequest<'_>) -> Option<String> {
        let most = self.max_prompt_tokens(request.budget) / 4;
        request
            .previous
            .map(|previous| cut_to_tokens(previous, most))
    }

    /// Sends a prompt and returns the reply.
    fn ask(&mut self, prompt: &str, budget: u64) -> Result<String, SummarizerError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.timeout_error());
        }
        let most = self.max_reply_tokens(budget);
        let body = RequestBody::Bytes(self.request(prompt, most));
        let mut text = String::new();
        let mut on_event = |event| match event {
            CallEvent::Delta(ReplyDelta::Text(piece)) => text.push_str(&piece),
            // The text so far is part of a reply that broke off; a retry gets the reply from its start.
            CallEvent::Discarded => text.clear(),
            CallEvent::Delta(_) | CallEvent::Sent { .. } | CallEvent::Retrying { .. } => {}
        };
        let called = match self.connection.send_within(left, body, true, &mut on_event) {
            Ok(called) => called,
            Err(CallFailure::Cancelled) => return Err(SummarizerError::Cancelled),
            Err(CallFailure::Call(_)) if Instant::now() >= self.deadline => {
                return Err(self.timeout_error());
            }
            Err(CallFailure::Call(error)) => {
                let is_unknown_model = error.trouble == ProviderError::Refused(RefusalCause::Model);
                let Some(fallback) = self.fallback.take().filter(|_| is_unknown_model) else {
                    return Err(SummarizerError::Call(error));
                };
                // The fallback stays in use for the following parts and summaries.
                self.connection = fallback;
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
            StopReason::Length => Err(SummarizerError::Cut { most }),
            StopReason::Declined => Err(SummarizerError::Declined),
            StopReason::End | StopReason::Calls | StopReason::Other(_) => Ok(text),
        }
    }

    /// Returns the body of a request with one user message: some models accept no system message.
    fn request(&self, prompt: &str, most: u64) -> Vec<u8> {
        let wire = self.connection.wire();
        let frame = RequestFrame {
            max_tokens: Some(most),
            window: Some(self.window).filter(|_| self.is_window_configured && wire == Wire::Ollama),
            official: self.connection.endpoint.is_openai_itself(),
            ..RequestFrame::new(wire, &self.connection.model)
        };
        let mut body = frame.head().into_bytes();
        body.extend(render_text(wire, Role::User, prompt));
        body.extend(RequestFrame::TAIL.bytes());
        body
    }

    /// Asks the model to check a summary for omissions, and returns its improved summary. Returns the old one if the
    /// call fails or the new one is too long.
    fn improve(
        &mut self,
        prompt: &SummaryPrompt<'_>,
        record: &str,
        summary: String,
        request: &SummaryRequest<'_>,
    ) -> Result<String, SummarizerError> {
        let checked = self.ask(&prompt.check(record, &summary), request.budget);
        let better = match checked {
            Err(SummarizerError::Cancelled) => return Err(SummarizerError::Cancelled),
            Err(_) => return Ok(summary),
            Ok(said) => extract_summary(&said, &request.strategy).to_owned(),
        };
        let fits = tokens(&better) <= tokens(&summary).max(request.budget);
        Ok(if fits && !better.is_empty() {
            better
        } else {
            summary
        })
    }

    fn timeout_error(&self) -> SummarizerError {
        SummarizerError::Hung {
            command: self.connection.model.clone(),
            after: self.timeout,
        }
    }
}

impl Summarizer for ModelSummarizer {
    fn name(&self) -> String {
        format!("model:{}", self.connection.model)
    }

    fn is_paid(&self) -> bool {
        let to = &self.connection;
        to.prices.is_some() || !to.endpoint.is_local()
    }

    fn takes(&self, request: &SummaryRequest<'_>) -> Option<u64> {
        let room = self.max_prompt_tokens(request.budget);
        let previous = self.previous(request);
        let asked = tokens(&prompt(request, previous.as_deref()).write(""));
        // Later parts are sent with the summary of the earlier ones, which may be longer than the previous one.
        let summary = request
            .budget
            .saturating_sub(previous.map_or(0, |text| tokens(&text)));
        let left = room.saturating_sub(asked + summary.min(room / 4));
        // A tenth is left for the seqs and roles that the transcript adds to the messages.
        Some((left - left / 10).max(MIN_READ_TOKENS))
    }

    fn summarize(&mut self, request: &SummaryRequest<'_>) -> Result<String, SummarizerError> {
        // The time limit holds for all parts of a summary together.
        if request.part.0 <= 1 {
            self.deadline = Instant::now() + self.timeout;
        }
        let previous = self.previous(request);
        let prompt = prompt(request, previous.as_deref());
        let asked = tokens(&prompt.write(""));
        let room = self.max_prompt_tokens(request.budget).saturating_sub(asked);
        if room < MIN_READ_TOKENS {
            let window = self.window;
            return Err(SummarizerError::Narrow { window });
        }
        let whole = write_transcript(request, request.prompt.is_none(), room)?;
        let mut text = cut_to_tokens(&whole, room);
        let said = match self.ask(&prompt.write(&text), request.budget) {
            // The tokens are an estimate: the text is halved once.
            Err(SummarizerError::Call(error)) if is_too_long(&error) => {
                text = cut_to_tokens(&whole, tokens(&text) / 2);
                self.ask(&prompt.write(&text), request.budget)?
            }
            said => said?,
        };
        let summary = extract_summary(&said, &request.strategy).to_owned();
        if summary.is_empty() {
            Err(SummarizerError::Empty)
        } else if self.checks {
            self.improve(&prompt, &text, summary, request)
        } else {
            Ok(summary)
        }
    }

    fn spent(&mut self) -> Vec<Usage> {
        std::mem::take(&mut self.spent)
    }
}

/// Counts the tokens of a text, as we count them; [`ModelSummarizer::factor`] converts them to the model's.
fn tokens(text: &str) -> u64 {
    count(Encoding::O200k, text)
}

/// Returns the prompt of a request, to which the record of the messages is added later.
fn prompt<'a>(request: &'a SummaryRequest<'_>, previous: Option<&'a str>) -> SummaryPrompt<'a> {
    SummaryPrompt {
        strategy: request.strategy.name,
        own: request.prompt,
        previous,
        part: request.part,
        budget: request.budget,
    }
}

/// Says whether the request may have been too long. Some providers refuse such requests without an explanation.
fn is_too_long(error: &CallError) -> bool {
    matches!(
        error.trouble,
        ProviderError::TooLong { .. } | ProviderError::TooLarge | ProviderError::Unexplained { .. }
    )
}

/// Returns the summary in an answer, without reasoning, scratchpad and code fence.
fn extract_summary<'a>(answer: &'a str, strategy: &Strategy) -> &'a str {
    let answer = without_leading_block(answer.trim(), "<think>", "</think>");
    if strategy.stand_in != StandIn::Snapshot {
        return without_code_fence(answer);
    }
    // The scratchpad before the snapshot may mention the tag, so the last one counts.
    match answer.rfind("<state_snapshot>") {
        Some(at) => {
            let inner = &answer[at + "<state_snapshot>".len()..];
            let end = inner.rfind("</state_snapshot>").unwrap_or(inner.len());
            inner[..end].trim()
        }
        None => without_leading_block(without_code_fence(answer), "<scratchpad>", "</scratchpad>"),
    }
}

/// Removes a block at the start of an answer. An unclosed block is everything: the reply was all reasoning.
fn without_leading_block<'a>(answer: &'a str, from: &str, to: &str) -> &'a str {
    match answer.strip_prefix(from) {
        Some(rest) => rest.split_once(to).map_or("", |(_, rest)| rest.trim()),
        None => answer,
    }
}

/// Removes the code block that some models put around everything.
fn without_code_fence(answer: &str) -> &str {
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
    fn only_the_summary_of_an_answer_is_extracted() {
        let taken = |strategy: &str, answer| extract_summary(answer, &strategy.parse().unwrap());
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
