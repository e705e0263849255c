//! Writes a reply as a response.

use super::{
    ReplyData, named_event, prompt_details, split_string, text, text_member, with_defaults,
    with_members,
};
use infold_wire::{Json, JsonKind, StopReason, TokenUsage, quote};

pub(super) fn write_body(data: &ReplyData<'_>) -> String {
    let items: Vec<_> = items(data).collect();
    let (status, why) = status(data.stop);
    response(
        data,
        status,
        &why,
        &format!("[{}]", items.join(",")),
        data.usage,
    )
}

pub(super) fn write_stream(data: &ReplyData<'_>, size: usize) -> Vec<String> {
    let mut events = ResponseEvents::default();
    let open = response(data, "in_progress", "null", "[]", None);
    events.push("response.created", &format!(r#","response":{open}"#));
    events.push("response.in_progress", &format!(r#","response":{open}"#));
    for (at, item) in items(data).enumerate() {
        if let Ok(item) = Json::parse(item.as_bytes()) {
            events.push_item(at, item, size);
        }
    }
    let ending = match status(data.stop).0 {
        "completed" => "response.completed",
        _ => "response.incomplete",
    };
    events.push(ending, &format!(r#","response":{}"#, write_body(data)));
    events.take()
}

/// Returns the items, each with an id and a status as the service has them.
fn items(data: &ReplyData<'_>) -> impl Iterator<Item = String> {
    let status = match status(data.stop).0 {
        "completed" => "\"completed\"",
        _ => "\"incomplete\"",
    };
    data.messages.iter().enumerate().map(move |(at, item)| {
        let kind = item.get("type").and_then(Json::text);
        let kind = kind.as_deref().unwrap_or("message");
        let prefix = match kind {
            "message" => "msg",
            "reasoning" => "rs",
            _ => "fc",
        };
        let id = format!("\"{prefix}_{}_{at}\"", data.id);
        match kind {
            "reasoning" => with_defaults(*item, &[("id", &id), ("summary", "[]")]),
            _ => with_defaults(
                *item,
                &[("id", &id), ("type", &quote(kind)), ("status", status)],
            ),
        }
    })
}

/// The events so far, and the number of the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct ResponseEvents {
    number: usize,
    out: Vec<String>,
}

impl ResponseEvents {
    /// Appends an event; `rest` follows its type and number.
    pub fn push(&mut self, kind: &str, rest: &str) {
        let number = self.number;
        self.number += 1;
        let data = format!(r#"{{"type":"{kind}","sequence_number":{number}{rest}}}"#);
        self.out.push(named_event(kind, &data));
    }

    /// Returns the number of the next event.
    pub fn next_number(&self) -> u64 {
        self.number as u64
    }

    /// Takes the events so far.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.out)
    }

    /// Appends the events of an output item.
    pub fn push_item(&mut self, at: usize, item: Json<'_>, size: usize) {
        let place = format!(r#","output_index":{at}"#);
        let open = empty_item(item);
        self.push(
            "response.output_item.added",
            &format!(r#"{place},"item":{open}"#),
        );
        let id = item.get("id").map_or("\"\"", text);
        let within = format!(r#","item_id":{id}{place}"#);
        let kind = item.get("type").and_then(Json::text).unwrap_or_default();
        match &*kind {
            "message" => self.push_content(item, &within, size),
            "reasoning" => {
                self.push_summary(item, &within, size);
                self.push_content(item, &within, size);
            }
            "function_call" => {
                let name = item.get("name").map_or("\"\"", text);
                let done = format!(r#","name":{name}"#);
                let kind = "response.function_call_arguments";
                self.push_string(
                    kind,
                    &within,
                    ("arguments", item.get("arguments")),
                    &done,
                    size,
                );
            }
            "custom_tool_call" => {
                let kind = "response.custom_tool_call_input";
                self.push_string(kind, &within, ("input", item.get("input")), "", size);
            }
            _ => {}
        }
        let whole = text(item);
        self.push(
            "response.output_item.done",
            &format!(r#"{place},"item":{whole}"#),
        );
    }

    /// Appends the pieces of a string, then the string with the members `done`.
    fn push_string(
        &mut self,
        kind: &str,
        within: &str,
        (name, value): (&str, Option<Json<'_>>),
        done: &str,
        size: usize,
    ) {
        let whole = value.filter(|value| value.kind() == JsonKind::String);
        let whole = whole.map_or("\"\"", text);
        let logprobs = match kind {
            "response.output_text" => r#","logprobs":[]"#,
            _ => "",
        };
        for piece in split_string(whole, size) {
            let rest = format!(r#"{within},"delta":{piece}{logprobs}"#);
            self.push(&format!("{kind}.delta"), &rest);
        }
        let rest = format!(r#"{within},"{name}":{whole}{logprobs}{done}"#);
        self.push(&format!("{kind}.done"), &rest);
    }

    /// Appends the parts of a message, or of reasoning.
    fn push_content(&mut self, item: Json<'_>, within: &str, size: usize) {
        let parts = item.get("content").into_iter().flat_map(Json::elements);
        for (at, part) in parts.enumerate() {
            let within = format!(r#"{within},"content_index":{at}"#);
            let kind = part.get("type").and_then(Json::text).unwrap_or_default();
            let (stream, name) = match &*kind {
                "refusal" => ("response.refusal", "refusal"),
                "reasoning_text" => ("response.reasoning_text", "text"),
                _ => ("response.output_text", "text"),
            };
            let mut empty = vec![(name, "\"\"")];
            let notes = part
                .get("annotations")
                .filter(|notes| notes.kind() == JsonKind::Array);
            empty.extend(notes.map(|_| ("annotations", "[]")));
            let open = format!(r#"{within},"part":{}"#, with_members(part, &empty));
            self.push("response.content_part.added", &open);
            self.push_string(stream, &within, (name, part.get(name)), "", size);
            for (at, note) in notes.into_iter().flat_map(Json::elements).enumerate() {
                let note = format!(
                    r#"{within},"annotation_index":{at},"annotation":{}"#,
                    text(note)
                );
                self.push("response.output_text.annotation.added", &note);
            }
            let whole = format!(r#"{within},"part":{}"#, text(part));
            self.push("response.content_part.done", &whole);
        }
    }

    fn push_summary(&mut self, item: Json<'_>, within: &str, size: usize) {
        let parts = item.get("summary").into_iter().flat_map(Json::elements);
        for (at, part) in parts.enumerate() {
            let within = format!(r#"{within},"summary_index":{at}"#);
            let open = with_members(part, &[("text", "\"\"")]);
            let kind = "response.reasoning_summary_part";
            self.push(
                &format!("{kind}.added"),
                &format!(r#"{within},"part":{open}"#),
            );
            let stream = "response.reasoning_summary_text";
            self.push_string(stream, &within, ("text", part.get("text")), "", size);
            let whole = text(part);
            self.push(
                &format!("{kind}.done"),
                &format!(r#"{within},"part":{whole}"#),
            );
        }
    }
}

/// Returns an item as it starts, without contents.
fn empty_item(item: Json<'_>) -> String {
    let mut empty = Vec::new();
    for (name, value) in [
        ("content", "[]"),
        ("summary", "[]"),
        ("arguments", "\"\""),
        ("input", "\"\""),
        ("status", "\"in_progress\""),
    ] {
        empty.extend(
            item.get(name)
                .filter(|it| !it.is_null())
                .map(|_| (name, value)),
        );
    }
    // The value is known only at the end.
    if text_member(item, "encrypted_content").is_some() {
        empty.push(("encrypted_content", "\"\""));
    }
    with_members(item, &empty)
}

/// Returns the status of a response, and the details of an incomplete one.
pub(super) fn status(stop: &StopReason) -> (&'static str, String) {
    let lacks = |reason: &str| ("incomplete", format!(r#"{{"reason":{}}}"#, quote(reason)));
    match stop {
        StopReason::End | StopReason::Calls => ("completed", "null".to_owned()),
        StopReason::Length => lacks("max_output_tokens"),
        StopReason::Declined => lacks("content_filter"),
        StopReason::Other(word) => lacks(word),
    }
}

pub(super) fn response(
    data: &ReplyData<'_>,
    status: &str,
    why: &str,
    output: &str,
    usage: Option<TokenUsage>,
) -> String {
    let ReplyData { id, model, .. } = data;
    let usage = usage.map_or_else(|| "null".to_owned(), usage_json);
    format!(
        r#"{{"id":"resp_{id}","object":"response","created_at":0,"status":"{status}","background":false,"error":null,"incomplete_details":{why},"instructions":null,"max_output_tokens":null,"metadata":{{}},"model":{model},"output":{output},"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{{"effort":null,"summary":null}},"store":false,"temperature":1.0,"text":{{"format":{{"type":"text"}}}},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","usage":{usage},"user":null}}"#
    )
}

fn usage_json(usage: TokenUsage) -> String {
    let input = prompt_details(usage);
    format!(
        r#"{{"input_tokens":{},"input_tokens_details":{input},"output_tokens":{},"output_tokens_details":{{"reasoning_tokens":{}}},"total_tokens":{}}}"#,
        usage.sent(),
        usage.output,
        usage.reasoning,
        usage.total()
    )
}
