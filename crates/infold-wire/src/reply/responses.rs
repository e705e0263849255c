//! Responses: output items, each of which comes whole when it is done.

use std::collections::BTreeMap;

use super::reader::Missing;
use super::text::{Hear, Text, changed, count, object, raw, word};
use super::{Delta, Reply, ReplyError, Reported, Stop};
use crate::{Json, Kind};

/// Puts the events of a response together.
#[derive(Debug, Default)]
pub struct Responses {
    /// Items that are done, by their place.
    done: BTreeMap<u64, Vec<u8>>,
    /// What is being said now, by kind.
    text: Text,
    reasoning: Text,
    arguments: Text,
    begun: bool,
    /// More came than the news that there will be a response.
    answers: bool,
    /// How it ended, and with what.
    ended: Option<Reply>,
    model: Option<String>,
}

impl Responses {
    /// Takes an event, or a whole response.
    pub fn take(
        &mut self,
        name: &[u8],
        json: Json<'_>,
        hear: &mut Hear<'_>,
    ) -> Result<(), ReplyError> {
        let keys = [
            "type",
            "response",
            "item",
            "output_index",
            "delta",
            "object",
            "summary_index",
        ];
        let [kind, response, item, index, delta, whole, part] = json.pick(keys);
        if whole.is_some_and(|whole| whole.is("response")) {
            self.answers = true;
            return self.whole(json, hear);
        }
        let kind = kind.map(Json::name);
        match (kind.as_deref().unwrap_or(name), response, delta) {
            (b"response.created" | b"response.in_progress" | b"response.queued", _, _) => {
                self.begun = true;
                self.model = word(response.and_then(|response| response.get("model")));
                return Ok(());
            }
            (b"response.output_item.added", ..) => {
                let named = item
                    .filter(|item| is_call(*item))
                    .and_then(|item| item.get("name"));
                if let Some(name) = word(named) {
                    hear(Delta::Call(name));
                }
            }
            (b"response.output_item.done", ..) => {
                if let Some(item) = item {
                    self.done.insert(count(index), raw(item).into_bytes());
                }
            }
            (b"response.output_text.delta" | b"response.refusal.delta", _, Some(delta)) => {
                self.text.hear(delta, hear, Delta::Text);
            }
            (
                b"response.reasoning_summary_text.delta" | b"response.reasoning_text.delta",
                _,
                Some(delta),
            ) => self.reasoning.hear(delta, hear, Delta::Reasoning),
            (b"response.reasoning_summary_part.added", ..) if count(part) > 0 => {
                hear(Delta::Reasoning("\n\n".to_owned()));
            }
            (
                b"response.function_call_arguments.delta"
                | b"response.custom_tool_call_input.delta",
                _,
                Some(delta),
            ) => self.arguments.hear(delta, hear, Delta::Arguments),
            (b"response.failed", Some(response), _) => return Err(failed(response)),
            (
                b"response.completed" | b"response.incomplete" | b"response.cancelled",
                Some(response),
                _,
            ) => self.close(response)?,
            _ => {}
        }
        self.answers = true;
        Ok(())
    }

    /// Nothing of it is to come.
    pub fn is_complete(&self) -> bool {
        self.ended.is_some()
    }

    /// More came than that a response will.
    pub fn is_begun(&self) -> bool {
        self.answers
    }

    /// Takes a response that comes as one body.
    fn whole(&mut self, response: Json<'_>, hear: &mut Hear<'_>) -> Result<(), ReplyError> {
        self.begun = true;
        let [status, output] = response.pick(["status", "output"]);
        let status = word(status).unwrap_or_default();
        if matches!(status.as_str(), "in_progress" | "queued") {
            return Ok(());
        }
        if status == "failed" {
            return Err(failed(response));
        }
        for item in output.into_iter().flat_map(Json::elements) {
            self.tell(item, hear);
        }
        self.close(response)
    }

    /// Tells what an item says that was not told piece by piece.
    fn tell(&mut self, item: Json<'_>, hear: &mut Hear<'_>) {
        let keys = ["content", "summary", "name", "arguments", "input"];
        let [content, summary, name, arguments, input] = item.pick(keys);
        let reasons = item.get("type").is_some_and(|kind| kind.is("reasoning"));
        let parts = content.into_iter().chain(summary).flat_map(Json::elements);
        for part in parts {
            let [text, refusal] = part.pick(["text", "refusal"]);
            let delta = if reasons {
                Delta::Reasoning
            } else {
                Delta::Text
            };
            if let Some(text) = word(text.or(refusal)) {
                hear(delta(text));
            }
        }
        if is_call(item) {
            hear(Delta::Call(word(name).unwrap_or_default()));
            hear(Delta::Arguments(
                word(arguments.or(input)).unwrap_or_default(),
            ));
        }
    }

    /// The response has ended.
    fn close(&mut self, response: Json<'_>) -> Result<(), ReplyError> {
        let keys = [
            "output",
            "status",
            "incomplete_details",
            "usage",
            "model",
            "id",
        ];
        let [output, status, details, usage, model, id] = response.pick(keys);
        let output = output.into_iter().flat_map(Json::elements);
        let mut items: Vec<Vec<u8>> = output.map(|item| raw(item).into_bytes()).collect();
        // Some servers leave them out at the end.
        if items.is_empty() {
            items = std::mem::take(&mut self.done).into_values().collect();
        }
        if items.is_empty() && !(self.text.is_empty() && self.arguments.is_empty()) {
            return Err(ReplyError::Malformed {
                reason: "a response ends without the items it was made of".to_owned(),
            });
        }
        unfinished(&mut items);
        let reason = word(details.and_then(|details| details.get("reason")));
        let status = word(status).unwrap_or_default();
        let usage = usage.filter(|usage| usage.kind() == Kind::Object);
        self.ended = Some(Reply {
            stop: match (status.as_str(), reason.as_deref()) {
                (_, Some("max_output_tokens" | "max_tokens")) => Stop::Length,
                (_, Some("content_filter")) => Stop::Declined,
                (_, Some(other)) => Stop::Other(other.to_owned()),
                ("completed" | "", None) => said(&items),
                (other, None) => Stop::Other(other.to_owned()),
            },
            messages: items,
            usage: usage.map(reported),
            model: word(model).or_else(|| self.model.take()),
            id: word(id),
        });
        Ok(())
    }

    /// Returns the reply, if it is complete.
    pub fn end(self) -> Result<Result<Reply, Missing>, ReplyError> {
        let missing = match self.begun || !self.done.is_empty() {
            true => Missing::End,
            false => Missing::Everything,
        };
        Ok(self.ended.ok_or(missing))
    }
}

/// The error of a response that failed, as the body of an error.
fn failed(response: Json<'_>) -> ReplyError {
    let error = response.get("error").filter(|error| !error.is_null());
    let body = match error {
        Some(error) => object(&[("error", Some(raw(error)))]),
        None => raw(response),
    };
    ReplyError::Failed {
        body: body.into_bytes(),
    }
}

/// Marks reasoning that nothing followed as what it is: it cannot be sent back, and each
/// item has to say so itself.
fn unfinished(items: &mut [Vec<u8>]) {
    for item in items.iter_mut().rev() {
        let json = Json::checked(item);
        if !json.get("type").is_some_and(|kind| kind.is("reasoning")) {
            return;
        }
        let status = Some("\"incomplete\"".to_owned());
        *item = changed(json, &[("status", status)]).into_bytes();
    }
}

/// Says whether an item is a call that the client must answer.
fn is_call(item: Json<'_>) -> bool {
    let kind = item.get("type").map(Json::name).unwrap_or_default();
    matches!(
        &*kind,
        b"function_call"
            | b"custom_tool_call"
            | b"local_shell_call"
            | b"shell_call"
            | b"apply_patch_call"
            | b"computer_call"
            | b"mcp_approval_request"
    )
}

/// Why a completed response ended.
fn said(items: &[Vec<u8>]) -> Stop {
    let items = || items.iter().map(|item| Json::checked(item));
    if items().any(is_call) {
        return Stop::Calls;
    }
    let parts = items().filter_map(|item| item.get("content"));
    let mut parts = parts.flat_map(Json::elements);
    match parts.any(|part| crate::message::block_is(part, "refusal")) {
        true => Stop::Declined,
        false => Stop::End,
    }
}

/// What was sent includes what came from a cache, and the reply its reasoning.
fn reported(usage: Json<'_>) -> Reported {
    let keys = [
        "input_tokens",
        "output_tokens",
        "input_tokens_details",
        "output_tokens_details",
    ];
    let [sent, output, sent_of, output_of] = usage.pick(keys);
    let of = |details: Option<Json<'_>>, name| count(details.and_then(|details| details.get(name)));
    let (sent, output) = (count(sent), count(output));
    let cache_read = of(sent_of, "cached_tokens").min(sent);
    let cache_write = of(sent_of, "cache_write_tokens").min(sent - cache_read);
    Reported {
        input: sent - cache_read - cache_write,
        cache_read,
        cache_write,
        output,
        reasoning: of(output_of, "reasoning_tokens").min(output),
    }
}
