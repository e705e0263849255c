use super::{Made, named, or_else, pieces, said, text, with};
use crate::{Json, Kind, Reported, Stop, quote};

pub(super) fn whole(made: &Made<'_>) -> String {
    let items: Vec<_> = items(made).collect();
    let (status, why) = status(made.stop);
    response(
        made,
        status,
        &why,
        &format!("[{}]", items.join(",")),
        made.usage,
    )
}

pub(super) fn stream(made: &Made<'_>, size: usize) -> Vec<String> {
    let mut events = Events::default();
    let open = response(made, "in_progress", "null", "[]", None);
    events.push("response.created", &format!(r#","response":{open}"#));
    events.push("response.in_progress", &format!(r#","response":{open}"#));
    for (at, item) in items(made).enumerate() {
        if let Ok(item) = Json::parse(item.as_bytes()) {
            events.item(at, item, size);
        }
    }
    let ending = match status(made.stop).0 {
        "completed" => "response.completed",
        _ => "response.incomplete",
    };
    events.push(ending, &format!(r#","response":{}"#, whole(made)));
    events.take()
}

/// The items, each with an id and a status as the service gives them.
fn items(made: &Made<'_>) -> impl Iterator<Item = String> {
    let status = match status(made.stop).0 {
        "completed" => "\"completed\"",
        _ => "\"incomplete\"",
    };
    made.messages.iter().enumerate().map(move |(at, item)| {
        let kind = item.get("type").and_then(Json::text);
        let kind = kind.as_deref().unwrap_or("message");
        let prefix = match kind {
            "message" => "msg",
            "reasoning" => "rs",
            _ => "fc",
        };
        let id = format!("\"{prefix}_{}_{at}\"", made.id);
        match kind {
            "reasoning" => or_else(*item, &[("id", &id), ("summary", "[]")]),
            _ => or_else(
                *item,
                &[("id", &id), ("type", &quote(kind)), ("status", status)],
            ),
        }
    })
}

/// The events so far, and the number of the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    number: usize,
    out: Vec<String>,
}

impl Events {
    /// Appends an event; `rest` is what follows its type and number.
    pub fn push(&mut self, kind: &str, rest: &str) {
        let number = self.number;
        self.number += 1;
        let data = format!(r#"{{"type":"{kind}","sequence_number":{number}{rest}}}"#);
        self.out.push(named(kind, &data));
    }

    /// Hands over what there is.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.out)
    }

    pub fn item(&mut self, at: usize, item: Json<'_>, size: usize) {
        let place = format!(r#","output_index":{at}"#);
        let open = opened(item);
        self.push(
            "response.output_item.added",
            &format!(r#"{place},"item":{open}"#),
        );
        let id = item.get("id").map_or("\"\"", text);
        let within = format!(r#","item_id":{id}{place}"#);
        let kind = item.get("type").and_then(Json::text).unwrap_or_default();
        match &*kind {
            "message" => self.content(item, &within, size),
            "reasoning" => {
                self.summary(item, &within, size);
                self.content(item, &within, size);
            }
            "function_call" => {
                let name = item.get("name").map_or("\"\"", text);
                let done = format!(r#","name":{name}"#);
                let kind = "response.function_call_arguments";
                self.string(
                    kind,
                    &within,
                    ("arguments", item.get("arguments")),
                    &done,
                    size,
                );
            }
            "custom_tool_call" => {
                let kind = "response.custom_tool_call_input";
                self.string(kind, &within, ("input", item.get("input")), "", size);
            }
            _ => {}
        }
        let whole = text(item);
        self.push(
            "response.output_item.done",
            &format!(r#"{place},"item":{whole}"#),
        );
    }

    /// The pieces of a string, then the string, with what else is said at its end.
    fn string(
        &mut self,
        kind: &str,
        within: &str,
        (name, value): (&str, Option<Json<'_>>),
        done: &str,
        size: usize,
    ) {
        let whole = value.filter(|value| value.kind() == Kind::String);
        let whole = whole.map_or("\"\"", text);
        let chances = match kind {
            "response.output_text" => r#","logprobs":[]"#,
            _ => "",
        };
        for piece in pieces(whole, size) {
            let rest = format!(r#"{within},"delta":{piece}{chances}"#);
            self.push(&format!("{kind}.delta"), &rest);
        }
        let rest = format!(r#"{within},"{name}":{whole}{chances}{done}"#);
        self.push(&format!("{kind}.done"), &rest);
    }

    /// The parts of a message, or of reasoning that is shown.
    fn content(&mut self, item: Json<'_>, within: &str, size: usize) {
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
                .filter(|notes| notes.kind() == Kind::Array);
            empty.extend(notes.map(|_| ("annotations", "[]")));
            let open = format!(r#"{within},"part":{}"#, with(part, &empty));
            self.push("response.content_part.added", &open);
            self.string(stream, &within, (name, part.get(name)), "", size);
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

    fn summary(&mut self, item: Json<'_>, within: &str, size: usize) {
        let parts = item.get("summary").into_iter().flat_map(Json::elements);
        for (at, part) in parts.enumerate() {
            let within = format!(r#"{within},"summary_index":{at}"#);
            let open = with(part, &[("text", "\"\"")]);
            let kind = "response.reasoning_summary_part";
            self.push(
                &format!("{kind}.added"),
                &format!(r#"{within},"part":{open}"#),
            );
            let stream = "response.reasoning_summary_text";
            self.string(stream, &within, ("text", part.get("text")), "", size);
            let whole = text(part);
            self.push(
                &format!("{kind}.done"),
                &format!(r#"{within},"part":{whole}"#),
            );
        }
    }
}

/// An item as it is when nothing of it was said.
fn opened(item: Json<'_>) -> String {
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
    // What only its end can say.
    if said(item, "encrypted_content").is_some() {
        empty.push(("encrypted_content", "\"\""));
    }
    with(item, &empty)
}

/// How a response stands, and what it lacks.
pub(super) fn status(stop: &Stop) -> (&'static str, String) {
    let lacks = |reason: &str| ("incomplete", format!(r#"{{"reason":{}}}"#, quote(reason)));
    match stop {
        Stop::End | Stop::Calls => ("completed", "null".to_owned()),
        Stop::Length => lacks("max_output_tokens"),
        Stop::Declined => lacks("content_filter"),
        Stop::Other(word) => lacks(word),
    }
}

pub(super) fn response(
    made: &Made<'_>,
    status: &str,
    why: &str,
    output: &str,
    usage: Option<Reported>,
) -> String {
    let Made { id, model, .. } = made;
    let usage = usage.map_or_else(|| "null".to_owned(), counts);
    format!(
        r#"{{"id":"resp_{id}","object":"response","created_at":0,"status":"{status}","background":false,"error":null,"incomplete_details":{why},"instructions":null,"max_output_tokens":null,"metadata":{{}},"model":{model},"output":{output},"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{{"effort":null,"summary":null}},"store":false,"temperature":1.0,"text":{{"format":{{"type":"text"}}}},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","usage":{usage},"user":null}}"#
    )
}

fn counts(usage: Reported) -> String {
    // Most do not tell what they keep.
    let written = match usage.cache_write {
        0 => String::new(),
        written => format!(r#","cache_write_tokens":{written}"#),
    };
    format!(
        r#"{{"input_tokens":{},"input_tokens_details":{{"cached_tokens":{}{written}}},"output_tokens":{},"output_tokens_details":{{"reasoning_tokens":{}}},"total_tokens":{}}}"#,
        usage.sent(),
        usage.cache_read,
        usage.output,
        usage.reasoning,
        usage.total()
    )
}
