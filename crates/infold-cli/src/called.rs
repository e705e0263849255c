use infold_log::{Call as ToolCall, Span};
use infold_store::Writer;
use infold_wire::{Converter, Json, Message, Stop, Wire};
use serde_json::json;

use crate::failure::Failure;
use crate::out::say;
use crate::steps::short;

/// A call in a reply.
pub struct Called {
    call: ToolCall,
    /// Its arguments as the text of JSON, as far as the model wrote any.
    arguments: String,
    /// It is all that the model wanted to write.
    complete: bool,
}

impl Called {
    /// The call for scripts.
    pub fn json(&self) -> serde_json::Value {
        let value = serde_json::from_str(&self.arguments);
        json!({
            "id": self.call.id, "name": self.call.name, "complete": self.complete,
            "arguments": value.unwrap_or_else(|_| json!(self.arguments)),
        })
    }
}

/// The calls in a reply that ended so, if that is known.
pub fn calls(writer: &Writer, reply: Span, stop: Option<&Stop>) -> Result<Vec<Called>, Failure> {
    let mut calls = Vec::new();
    // Whatever the form of the reply, this one has arguments as texts.
    let mut plain = Converter::new(Wire::Chat);
    let mut texts = Vec::new();
    let mut take = |bytes: &[u8]| texts.extend(arguments(bytes));
    for seq in reply.seqs() {
        let bytes = writer.log().message(seq)?;
        if let Ok(message) = Message::parse(&bytes) {
            calls.extend(message.calls());
        }
        // What is no message has no calls either.
        let _ = plain.push(&bytes, &mut take);
    }
    plain.finish(&mut take);
    let mut texts = texts.into_iter();
    let ended = stop.is_some_and(|stop| *stop != Stop::Length);
    let called = calls.into_iter().map(|call| {
        let arguments = texts.next().unwrap_or_default();
        Called {
            complete: ended || Json::parse(arguments.as_bytes()).is_ok(),
            call,
            arguments,
        }
    });
    Ok(called.collect())
}

/// The arguments of the calls of a chat message, in order.
fn arguments(message: &[u8]) -> Vec<String> {
    let Ok(json) = Json::parse(message) else {
        return Vec::new();
    };
    let texts = json.get("tool_calls").into_iter().flat_map(Json::elements);
    let texts = texts.map(|call| {
        let [function, custom] = call.pick(["function", "custom"]);
        let inner = function.and_then(|inner| inner.get("arguments"));
        let inner = inner.or_else(|| custom?.get("input"));
        match inner.map(|inner| (inner.text(), inner)) {
            Some((Some(text), _)) => text.into_owned(),
            Some((None, inner)) => String::from_utf8_lossy(inner.bytes()).into_owned(),
            None => String::new(),
        }
    });
    texts.collect()
}

/// Says which results the model waits for.
pub fn wait_for(calls: &[Called], task: &str) {
    let named = |called: &Called| called.call.name.clone();
    let (whole, cut): (Vec<_>, Vec<_>) = calls.iter().partition(|called| called.complete);
    for name in cut.into_iter().filter_map(named) {
        say(
            false,
            format!("the call of {name} was cut off: do not run it; push a result that says so"),
        );
    }
    let names: Vec<String> = whole.into_iter().filter_map(named).collect();
    if !names.is_empty() {
        let (names, task) = (names.join(", "), short(task));
        say(
            false,
            format!(
                "waits for results of {names}; `infold task push {task}`, then `infold ask {task}`"
            ),
        );
    }
}
