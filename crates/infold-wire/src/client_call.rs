//! Calls that the sender of the request has to run, and the messages with their results.

use crate::lookup::{APPROVAL_REQUEST, is_client_item};
use crate::message::ContentItem;
use crate::neutral::unwrap_arguments;
use crate::reply::growing_json::object;
use crate::tool_list::qualified_name;
use crate::{ContentBlock, Form, Json, Message, Wire, quote};

/// A call that the sender of the request has to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCall {
    /// The call's id, if the wire has one.
    pub id: Option<String>,
    /// The name of the tool.
    pub name: String,
    /// The arguments as the model wrote them: the text of a JSON object, if the model made no mistake.
    pub arguments: String,
    /// The type of the call's item, on the wire of Responses.
    item: Option<String>,
}

impl ClientCall {
    /// Returns the calls of a message, without those that its provider runs itself.
    pub fn all(message: &Message<'_>) -> Vec<ClientCall> {
        let given = given_arguments(message);
        let blocks = ContentBlock::all(message).into_iter();
        let calls = blocks.filter_map(|block| match block {
            ContentBlock::Call { id, name, .. } => Some((id, name)),
            _ => None,
        });
        let [kind, space] = message.json().pick(["type", "namespace"]);
        let space = space.and_then(Json::text);
        let calls = calls.zip(given).filter_map(|((id, name), given)| {
            let GivenArguments::Client(given) = given else {
                return None;
            };
            Some(ClientCall {
                id: id.filter(|id| !id.is_empty()),
                name: match &space {
                    Some(space) => qualified_name(space, &name),
                    None => name,
                },
                arguments: given.map_or(String::new(), written),
                item: kind.and_then(Json::text).map(|kind| kind.into_owned()),
            })
        });
        calls.collect()
    }
}

/// Arguments as the model wrote them: the text of a string, or the value itself.
fn written(given: Json<'_>) -> String {
    let text = given.text();
    let parsed = text
        .as_deref()
        .and_then(|text| Json::parse(text.as_bytes()).ok());
    match unwrap_arguments(parsed.unwrap_or(given)) {
        Some(inner) => text_or_json(inner),
        None => text_or_json(given),
    }
}

fn text_or_json(json: Json<'_>) -> String {
    match json.text() {
        Some(text) => text.into_owned(),
        None => String::from_utf8_lossy(json.bytes()).into_owned(),
    }
}

/// Writes results as messages: one with all of them where the wire wants that, else one for each.
pub fn write_call_results(
    wire: Wire,
    results: &[(&ClientCall, Result<String, String>)],
) -> Vec<Vec<u8>> {
    let written = results.iter().map(|(call, result)| {
        let answered = AnsweredCall {
            id: call.id.as_deref(),
            name: &call.name,
            item: call.item.as_deref(),
        };
        answered.write(wire, result)
    });
    join_results(wire, written.collect())
}

/// The arguments of a call, in the order of the calls of a message.
pub(crate) enum GivenArguments<'a> {
    /// The provider runs it.
    Hosted,
    Client(Option<Json<'a>>),
}

pub(crate) fn given_arguments<'a>(message: &Message<'a>) -> Vec<GivenArguments<'a>> {
    let blocks: Vec<Json<'a>> = message
        .content()
        .into_iter()
        .flat_map(Json::elements)
        .collect();
    let is_hosted = |at: u32| match message.form() {
        Form::Item(_) => !is_client_item(message.json().get("type")),
        _ => blocks.get(at as usize).is_some_and(|block| {
            let kind = block.get("type").map(Json::name);
            kind.is_some_and(|kind| kind.ends_with(b"_tool_use"))
        }),
    };
    let calls = message.content_items().into_iter();
    let calls = calls.filter_map(|(at, item)| match item {
        ContentItem::Call { .. } if is_hosted(at) => Some(GivenArguments::Hosted),
        ContentItem::Call { given, .. } => Some(GivenArguments::Client(given)),
        _ => None,
    });
    calls.collect()
}

/// The parts of a call that its result repeats.
pub(crate) struct AnsweredCall<'a> {
    pub id: Option<&'a str>,
    pub name: &'a str,
    pub item: Option<&'a str>,
}

/// Puts results into messages.
pub(crate) fn join_results(wire: Wire, written: Vec<String>) -> Vec<Vec<u8>> {
    let messages = match wire {
        Wire::Anthropic => vec![format!(
            r#"{{"role":"user","content":[{}]}}"#,
            written.join(",")
        )],
        Wire::Gemini => vec![format!(
            r#"{{"role":"user","parts":[{}]}}"#,
            written.join(",")
        )],
        Wire::Chat | Wire::Responses | Wire::Ollama => written,
    };
    messages.into_iter().map(String::into_bytes).collect()
}

impl AnsweredCall<'_> {
    /// Writes the result of the call; an error is written as a failed result for the model.
    pub fn write(&self, wire: Wire, result: &Result<String, String>) -> String {
        let failed = result.is_err().then(|| "true".to_owned());
        let (Ok(text) | Err(text)) = result;
        let text = Some(quote(text));
        let (id, name) = (self.id.map(quote), Some(quote(self.name)));
        let string = |text: &str| Some(quote(text));
        match wire {
            Wire::Chat => object(&[
                ("role", string("tool")),
                ("tool_call_id", id),
                ("content", text),
            ]),
            Wire::Ollama => object(&[
                ("role", string("tool")),
                ("tool_name", name),
                ("tool_call_id", id),
                ("content", text),
            ]),
            Wire::Responses => match self.item {
                Some(APPROVAL_REQUEST) => object(&[
                    ("type", string("mcp_approval_response")),
                    ("approval_request_id", id),
                    ("approve", Some("false".to_owned())),
                    ("reason", text),
                ]),
                Some("apply_patch_call") => object(&[
                    ("type", string(&self.output_type())),
                    ("call_id", id),
                    (
                        "status",
                        string(if failed.is_some() {
                            "failed"
                        } else {
                            "completed"
                        }),
                    ),
                    ("output", text),
                ]),
                _ => object(&[
                    ("type", string(&self.output_type())),
                    ("call_id", id),
                    ("output", text),
                ]),
            },
            Wire::Anthropic => object(&[
                ("type", string("tool_result")),
                ("tool_use_id", id),
                ("content", text),
                ("is_error", failed),
            ]),
            Wire::Gemini => {
                let member = if failed.is_some() { "error" } else { "output" };
                let response = Some(object(&[(member, text)]));
                let answer = object(&[("id", id), ("name", name), ("response", response)]);
                object(&[("functionResponse", Some(answer))])
            }
        }
    }

    /// The type of the item that answers the call.
    fn output_type(&self) -> String {
        let item = self.item.unwrap_or("function_call");
        format!("{item}_output")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_and_its_result_are_one_round_on_every_wire() {
        let replies = [
            (
                Wire::Chat,
                r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{\"p\": 1"}}]}"#,
            ),
            (
                Wire::Anthropic,
                r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"tool_use","id":"a","name":"ls","input":{"p":1}}]}"#,
            ),
            (
                Wire::Responses,
                r#"{"type":"function_call","call_id":"a","name":"ls","arguments":"{}"}"#,
            ),
            (
                Wire::Gemini,
                r#"{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"p":1}}}]}"#,
            ),
            (
                Wire::Ollama,
                r#"{"role":"assistant","content":"","tool_calls":[{"function":{"name":"ls","arguments":{"p":1}}}]}"#,
            ),
        ];
        let round = |(wire, reply): (Wire, &str)| {
            let message = Message::parse(reply.as_bytes()).unwrap();
            let calls = ClientCall::all(&message);
            let [call] = calls.as_slice() else {
                panic!("{wire}: {calls:?}")
            };
            let results = write_call_results(wire, &[(call, Err("no".to_owned()))]);
            let results = String::from_utf8(results.concat()).unwrap();
            format!("{} {} {results}", call.name, call.arguments)
        };
        insta::assert_snapshot!(replies.map(round).join("\n"), @r#"
        ls {"p": 1 {"role":"tool","tool_call_id":"a","content":"no"}
        ls {"p":1} {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"no","is_error":true}]}
        ls {} {"type":"function_call_output","call_id":"a","output":"no"}
        ls {"p":1} {"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"error":"no"}}}]}
        ls {"p":1} {"role":"tool","tool_name":"ls","content":"no"}
        "#);
    }
}
