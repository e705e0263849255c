//! Builds a response from output items, each of which arrives complete when it is done.

use std::collections::BTreeMap;

use super::growing_json::{
    GrowingText, OnDelta, object, pick, raw, text_of, token_count, with_members,
};
use super::reader::MissingPart;
use super::{Reply, ReplyDelta, ReplyError, StopReason, TokenUsage};
use crate::{Json, JsonKind};

/// Builds a response.
#[derive(Debug, Default)]
pub struct ResponsesBuilder {
    /// Items that are done, by index.
    done: BTreeMap<u64, Vec<u8>>,
    /// The text, reasoning and arguments so far.
    text: GrowingText,
    reasoning: GrowingText,
    arguments: GrowingText,
    has_begun: bool,
    /// Whether there was more than the announcement of a response.
    has_output: bool,
    /// The reply, once it is complete.
    reply: Option<Reply>,
    model: Option<String>,
}

impl ResponsesBuilder {
    /// Reads an event, or a whole response.
    pub fn push(
        &mut self,
        name: &[u8],
        json: Json<'_>,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<(), ReplyError> {
        let keys = "type response item output_index delta object summary_index";
        let [kind, response, item, index, delta, whole, part] = pick(keys, json);
        if whole.is_some_and(|whole| whole.is("response")) {
            self.has_output = true;
            return self.push_whole(json, on_delta);
        }
        let kind = kind.map(Json::name);
        match (kind.as_deref().unwrap_or(name), response, delta) {
            (b"response.created" | b"response.in_progress" | b"response.queued", _, _) => {
                self.has_begun = true;
                self.model = text_of(response.and_then(|response| response.get("model")));
                return Ok(());
            }
            (b"response.output_item.added", ..) => {
                let named = item
                    .filter(|item| is_call(*item))
                    .and_then(|item| item.get("name"));
                if let Some(name) = text_of(named) {
                    on_delta(ReplyDelta::Call(name));
                }
            }
            (b"response.output_item.done", ..) => {
                if let Some(item) = item {
                    self.done.insert(token_count(index), raw(item).into_bytes());
                }
            }
            (b"response.output_text.delta" | b"response.refusal.delta", _, Some(delta)) => {
                self.text.grow(delta, on_delta, ReplyDelta::Text);
            }
            (
                b"response.reasoning_summary_text.delta" | b"response.reasoning_text.delta",
                _,
                Some(delta),
            ) => self.reasoning.grow(delta, on_delta, ReplyDelta::Reasoning),
            (b"response.reasoning_summary_part.added", ..) if token_count(part) > 0 => {
                on_delta(ReplyDelta::Reasoning("\n\n".to_owned()));
            }
            (
                b"response.function_call_arguments.delta"
                | b"response.custom_tool_call_input.delta",
                _,
                Some(delta),
            ) => self.arguments.grow(delta, on_delta, ReplyDelta::Arguments),
            (b"response.failed", Some(response), _) => return Err(failed(response)),
            (
                b"response.completed" | b"response.incomplete" | b"response.cancelled",
                Some(response),
                _,
            ) => self.finish_response(response)?,
            _ => {}
        }
        self.has_output = true;
        Ok(())
    }

    /// Returns whether the end of the reply came.
    pub fn is_complete(&self) -> bool {
        self.reply.is_some()
    }

    /// Returns whether more came than the announcement of a response.
    pub fn is_begun(&self) -> bool {
        self.has_output
    }

    /// Reads a response that comes as one body.
    fn push_whole(
        &mut self,
        response: Json<'_>,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<(), ReplyError> {
        self.has_begun = true;
        let [status, output] = response.pick(["status", "output"]);
        let status = text_of(status).unwrap_or_default();
        if matches!(status.as_str(), "in_progress" | "queued") {
            return Ok(());
        }
        if status == "failed" {
            return Err(failed(response));
        }
        for item in output.into_iter().flat_map(Json::elements) {
            self.report_item(item, on_delta);
        }
        self.finish_response(response)
    }

    /// Reports the text of an item that came as a whole.
    fn report_item(&mut self, item: Json<'_>, on_delta: &mut OnDelta<'_>) {
        let keys = ["content", "summary", "name", "arguments", "input"];
        let [content, summary, name, arguments, input] = item.pick(keys);
        let is_reasoning = item.get("type").is_some_and(|kind| kind.is("reasoning"));
        let parts = content.into_iter().chain(summary).flat_map(Json::elements);
        for part in parts {
            let [text, refusal] = part.pick(["text", "refusal"]);
            let delta = if is_reasoning {
                ReplyDelta::Reasoning
            } else {
                ReplyDelta::Text
            };
            if let Some(text) = text_of(text.or(refusal)) {
                on_delta(delta(text));
            }
        }
        if is_call(item) {
            on_delta(ReplyDelta::Call(text_of(name).unwrap_or_default()));
            on_delta(ReplyDelta::Arguments(
                text_of(arguments.or(input)).unwrap_or_default(),
            ));
        }
    }

    /// Reads the end of the response.
    fn finish_response(&mut self, response: Json<'_>) -> Result<(), ReplyError> {
        let keys = "output status incomplete_details usage model id";
        let [output, status, details, usage, model, id] = pick(keys, response);
        let output = output.into_iter().flat_map(Json::elements);
        let mut items: Vec<Vec<u8>> = output.map(|item| raw(item).into_bytes()).collect();
        // Some servers omit all or some of them at the end.
        let done = std::mem::take(&mut self.done).into_values();
        if items.is_empty() {
            items = done.collect();
        } else {
            let known: Vec<Option<String>> = items
                .iter()
                .map(|item| call_id(Json::checked(item)))
                .collect();
            items.extend(done.filter(|item| {
                let item = Json::checked(item);
                is_call(item) && !known.contains(&call_id(item))
            }));
        }
        if items.is_empty() && !(self.text.is_empty() && self.arguments.is_empty()) {
            return Err(ReplyError::Malformed {
                reason: "a response ends without its output items".to_owned(),
            });
        }
        mark_unfinished_reasoning(&mut items);
        let reason = text_of(details.and_then(|details| details.get("reason")));
        let status = text_of(status).unwrap_or_default();
        let usage = usage.filter(|usage| usage.kind() == JsonKind::Object);
        self.reply = Some(Reply {
            stop: match (status.as_str(), reason.as_deref()) {
                (_, Some("max_output_tokens" | "max_tokens")) => StopReason::Length,
                (_, Some("content_filter")) => StopReason::Declined,
                (_, Some(other)) => StopReason::Other(other.to_owned()),
                ("completed" | "", None) => stop_of_items(&items),
                (other, None) => StopReason::Other(other.to_owned()),
            },
            messages: items,
            usage: usage.map(read_usage),
            model: text_of(model).or_else(|| self.model.take()),
            id: text_of(id),
        });
        Ok(())
    }

    /// Returns the reply, if it is complete.
    pub fn finish(self) -> Result<Result<Reply, MissingPart>, ReplyError> {
        let missing = if self.has_begun || !self.done.is_empty() {
            MissingPart::End
        } else {
            MissingPart::Everything
        };
        Ok(self.reply.ok_or(missing))
    }
}

/// Returns the error of a response that failed, as the body of an error.
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

/// Marks reasoning that no item follows as incomplete, since it cannot be sent back.
fn mark_unfinished_reasoning(items: &mut [Vec<u8>]) {
    for item in items.iter_mut().rev() {
        let json = Json::checked(item);
        if !json.get("type").is_some_and(|kind| kind.is("reasoning")) {
            return;
        }
        let status = Some("\"incomplete\"".to_owned());
        *item = with_members(json, &[("status", status)]).into_bytes();
    }
}

/// Returns whether an item is a call that the client must answer.
fn is_call(item: Json<'_>) -> bool {
    crate::lookup::is_client_item(item.get("type"))
}

/// Returns the id by which a call is answered.
fn call_id(item: Json<'_>) -> Option<String> {
    let [call, own] = item.pick(["call_id", "id"]);
    text_of(call.or(own))
}

/// Returns why a completed response ended.
fn stop_of_items(items: &[Vec<u8>]) -> StopReason {
    let items = || items.iter().map(|item| Json::checked(item));
    if items().any(is_call) {
        return StopReason::Calls;
    }
    let parts = items().filter_map(|item| item.get("content"));
    let mut parts = parts.flat_map(Json::elements);
    if parts.any(|part| crate::message::block_is(part, "refusal")) {
        StopReason::Declined
    } else {
        StopReason::End
    }
}

/// Reads usage, in which the input includes tokens from a cache, and the output reasoning.
fn read_usage(usage: Json<'_>) -> TokenUsage {
    let keys = "input_tokens output_tokens input_tokens_details output_tokens_details";
    let [sent, output, sent_of, output_of] = pick(keys, usage);
    let of = |details: Option<Json<'_>>, name| {
        token_count(details.and_then(|details| details.get(name)))
    };
    let (read, write) = (
        of(sent_of, "cached_tokens"),
        of(sent_of, "cache_write_tokens"),
    );
    let reasoning = of(output_of, "reasoning_tokens");
    TokenUsage::including_cache(
        token_count(sent),
        read,
        write,
        token_count(output),
        reasoning,
    )
}
