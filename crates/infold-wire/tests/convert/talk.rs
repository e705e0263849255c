//! Conversations that any wire can hold, written and read here without the code under test.

use infold_wire::Wire;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The turns of a conversation, in order.
#[derive(Clone, Debug)]
pub enum Turn {
    System(String),
    User {
        text: String,
        images: Vec<String>,
    },
    Output {
        text: Option<String>,
        calls: Vec<Call>,
    },
}

#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    pub arguments: Map<String, Value>,
    pub result: String,
    pub failed: bool,
    pub image: Option<String>,
}

/// Calls of one output, with their ids.
type Made<'a> = [(String, &'a Call)];

/// One element of a conversation, independent of the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    Text(&'static str, String),
    Image(&'static str, String),
    Call(String, String, Value),
    Result(String, String, bool),
}

fn text() -> impl Strategy<Value = String> {
    "[a-zé漢\"\\\\\n\u{1f600}{}]{1,10}".prop_filter("not blank", |text| !text.trim().is_empty())
}

fn image() -> impl Strategy<Value = String> {
    "[A-Za-z0-9+]{8}".prop_map(|data| format!("iVBOR{data}"))
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        text().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((text(), inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn call() -> impl Strategy<Value = Call> {
    let arguments = vec(("[a-z]{1,4}", value()), 0..3);
    let result = prop_oneof![text(), Just(String::new())];
    (
        "[a-c]",
        arguments,
        result,
        any::<bool>(),
        proptest::option::weighted(0.2, image()),
    )
        .prop_map(|(name, arguments, result, failed, image)| Call {
            name,
            arguments: arguments.into_iter().collect(),
            result,
            failed,
            image,
        })
}

pub fn talk() -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        (text(), vec(image(), 0..3)).prop_map(|(text, images)| Turn::User { text, images }),
        (proptest::option::of(text()), vec(call(), 1..4))
            .prop_map(|(text, calls)| Turn::Output { text, calls }),
        text().prop_map(|text| Turn::Output {
            text: Some(text),
            calls: Vec::new(),
        }),
    ];
    let system = proptest::option::of(text().prop_map(Turn::System));
    (system, vec(turn, 1..8)).prop_map(|(system, turns)| system.into_iter().chain(turns).collect())
}

fn id(number: usize) -> String {
    format!("call-{number}_x")
}

/// Returns the expected content of a conversation; with error marks if `marks`.
pub fn expected(turns: &[Turn], marks: bool) -> Vec<Said> {
    let mut said = Vec::new();
    let mut number = 0;
    for turn in turns {
        match turn {
            Turn::System(text) => said.push(Said::Text("system", text.clone())),
            Turn::User { text, images } => {
                said.push(Said::Text("user", text.clone()));
                said.extend(images.iter().map(|data| Said::Image("user", data.clone())));
            }
            Turn::Output { text, calls } => {
                said.extend(text.clone().map(|text| Said::Text("assistant", text)));
                let ids: Vec<String> = (0..calls.len()).map(|at| id(number + at)).collect();
                number += calls.len();
                for (call, id) in calls.iter().zip(&ids) {
                    let arguments = Value::Object(call.arguments.clone());
                    said.push(Said::Call(id.clone(), call.name.clone(), arguments));
                }
                for (call, id) in calls.iter().zip(&ids) {
                    let failed = call.failed && marks;
                    said.push(Said::Result(id.clone(), call.result.clone(), failed));
                }
                let images = calls.iter().filter_map(|call| call.image.clone());
                said.extend(images.map(|data| Said::Image("user", data)));
            }
        }
    }
    joined(said)
}

/// Texts of the same speaker that follow each other as one.
fn joined(said: Vec<Said>) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    for next in said {
        match (all.last_mut(), &next) {
            (Some(Said::Text(who, text)), Said::Text(other, more)) if who == other => {
                text.push('\n');
                text.push_str(more);
            }
            _ => all.push(next),
        }
    }
    all
}

/// Says whether results can be marked as errors.
pub fn marks(wire: Wire) -> bool {
    matches!(wire, Wire::Anthropic | Wire::Gemini)
}

/// Writes a conversation as a client of this wire would.
pub fn written(turns: &[Turn], wire: Wire) -> Vec<Vec<u8>> {
    let all = |calls: &Made<'_>, out: &mut Vec<Value>| results(wire, calls, out);
    spelled(turns, &mut || wire, &all)
}

/// Writes a conversation that went from wire to wire, between calls and results too.
pub fn mixed(turns: &[Turn], wire: &mut dyn FnMut() -> Wire) -> Vec<Vec<u8>> {
    let one_by_one = |calls: &Made<'_>, out: &mut Vec<Value>| {
        let wires = Wire::ALL.iter().cycle().skip(out.len());
        for (call, wire) in calls.iter().zip(wires) {
            results(*wire, std::slice::from_ref(call), out);
        }
    };
    spelled(turns, wire, &one_by_one)
}

fn spelled(
    turns: &[Turn],
    wire: &mut dyn FnMut() -> Wire,
    results: &dyn Fn(&Made<'_>, &mut Vec<Value>),
) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut number = 0;
    for turn in turns {
        match turn {
            Turn::System(text) => out.push(match wire() {
                Wire::Gemini => json!({"role":"system","parts":[{"text":text}]}),
                _ => json!({"role":"system","content":text}),
            }),
            Turn::User { text, images } => out.push(user(wire(), Some(text), images)),
            Turn::Output { text, calls } => {
                let calls: Vec<(String, &Call)> = calls
                    .iter()
                    .enumerate()
                    .map(|(at, call)| (id(number + at), call))
                    .collect();
                number += calls.len();
                output(wire(), text.as_deref(), &calls, &mut out);
                results(&calls, &mut out);
            }
        }
    }
    out.iter()
        .map(|value| value.to_string().into_bytes())
        .collect()
}

fn user(wire: Wire, text: Option<&String>, images: &[String]) -> Value {
    let url = |data: &String| format!("data:image/png;base64,{data}");
    let parts = |said: &dyn Fn(&String) -> Value, shown: &dyn Fn(&String) -> Value| {
        let texts = text.into_iter().map(said);
        Value::Array(texts.chain(images.iter().map(shown)).collect())
    };
    match wire {
        Wire::Chat if images.is_empty() => json!({"role":"user","content":text}),
        Wire::Chat => json!({"role":"user","content":parts(
            &|text| json!({"type":"text","text":text}),
            &|data| json!({"type":"image_url","image_url":{"url":url(data)}}),
        )}),
        Wire::Responses => json!({"type":"message","role":"user","content":parts(
            &|text| json!({"type":"input_text","text":text}),
            &|data| json!({"type":"input_image","image_url":url(data)}),
        )}),
        Wire::Anthropic => json!({"role":"user","content":parts(
            &|text| json!({"type":"text","text":text}),
            &|data| json!({"type":"image","source":{"type":"base64","media_type":"image/png","data":data}}),
        )}),
        Wire::Gemini => json!({"role":"user","parts":parts(
            &|text| json!({"text":text}),
            &|data| json!({"inlineData":{"mimeType":"image/png","data":data}}),
        )}),
        Wire::Ollama if images.is_empty() => json!({"role":"user","content":text}),
        Wire::Ollama => {
            json!({"role":"user","content":text.cloned().unwrap_or_default(),"images":images})
        }
    }
}

fn output(wire: Wire, text: Option<&str>, calls: &Made<'_>, out: &mut Vec<Value>) {
    let arguments = |call: &Call| Value::Object(call.arguments.clone());
    match wire {
        Wire::Chat | Wire::Ollama => {
            let list: Vec<Value> = calls
                .iter()
                .map(|(id, call)| match wire {
                    Wire::Chat => json!({"id":id,"type":"function","function":{"name":call.name,"arguments":arguments(call).to_string()}}),
                    _ => json!({"id":id,"function":{"name":call.name,"arguments":arguments(call)}}),
                })
                .collect();
            let mut message = json!({"role":"assistant","content":text});
            if wire == Wire::Ollama {
                message["content"] = Value::from(text.unwrap_or_default());
            }
            if !list.is_empty() {
                message["tool_calls"] = Value::from(list);
            }
            out.push(message);
        }
        Wire::Responses => {
            out.extend(text.map(|text| json!({"type":"message","role":"assistant","content":[{"type":"output_text","text":text}]})));
            out.extend(calls.iter().map(|(id, call)| json!({"type":"function_call","call_id":id,"name":call.name,"arguments":arguments(call).to_string()})));
        }
        Wire::Anthropic => {
            let text = text.map(|text| json!({"type":"text","text":text}));
            let calls = calls.iter().map(|(id, call)| json!({"type":"tool_use","id":id,"name":call.name,"input":arguments(call)}));
            let blocks: Vec<Value> = text.into_iter().chain(calls).collect();
            out.push(json!({"role":"assistant","content":blocks}));
        }
        Wire::Gemini => {
            let text = text.map(|text| json!({"text":text}));
            let calls = calls.iter().map(|(id, call)| json!({"functionCall":{"id":id,"name":call.name,"args":arguments(call)}}));
            let parts: Vec<Value> = text.into_iter().chain(calls).collect();
            out.push(json!({"role":"model","parts":parts}));
        }
    }
}

fn results(wire: Wire, calls: &Made<'_>, out: &mut Vec<Value>) {
    if calls.is_empty() {
        return;
    }
    let images: Vec<String> = calls
        .iter()
        .filter_map(|(_, call)| call.image.clone())
        .collect();
    match wire {
        Wire::Chat | Wire::Ollama => {
            for (id, call) in calls {
                let mut result = json!({"role":"tool","tool_call_id":id,"content":call.result});
                if wire == Wire::Ollama {
                    result["tool_name"] = Value::from(call.name.clone());
                }
                out.push(result);
            }
            if !images.is_empty() {
                out.push(user(wire, None, &images));
            }
        }
        Wire::Responses => {
            for (id, call) in calls {
                let output = match &call.image {
                    None => Value::from(call.result.clone()),
                    Some(data) => {
                        let url = format!("data:image/png;base64,{data}");
                        json!([{"type":"input_text","text":call.result},{"type":"input_image","image_url":url}])
                    }
                };
                out.push(json!({"type":"function_call_output","call_id":id,"output":output}));
            }
        }
        Wire::Anthropic => {
            let blocks: Vec<Value> = calls
                .iter()
                .map(|(id, call)| {
                    let mut content = Vec::new();
                    if !call.result.is_empty() {
                        content.push(json!({"type":"text","text":call.result}));
                    }
                    content.extend(call.image.as_ref().map(|data| json!({"type":"image","source":{"type":"base64","media_type":"image/png","data":data}})));
                    json!({"type":"tool_result","tool_use_id":id,"content":content,"is_error":call.failed})
                })
                .collect();
            out.push(json!({"role":"user","content":blocks}));
        }
        Wire::Gemini => {
            let results = calls.iter().map(|(id, call)| {
                let key = if call.failed { "error" } else { "output" };
                json!({"functionResponse":{"id":id,"name":call.name,"response":{key:call.result}}})
            });
            let images = images
                .iter()
                .map(|data| json!({"inlineData":{"mimeType":"image/png","data":data}}));
            let parts: Vec<Value> = results.chain(images).collect();
            out.push(json!({"role":"user","parts":parts}));
        }
    }
}
