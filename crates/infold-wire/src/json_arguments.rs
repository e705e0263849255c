//! Replaces arguments of calls that a model did not finish writing, so that they can be sent again.

use crate::edits::splice_json;
use crate::neutral::arguments_object;
use crate::{Json, JsonKind, Message, quote};

/// Returns the message with arguments that are JSON in each call; none if they are already.
///
/// Some servers, such as llama.cpp's, refuse every request with a call whose arguments are not JSON.
pub fn with_json_arguments(message: &[u8]) -> Option<Vec<u8>> {
    let read = Message::parse(message).ok()?;
    let calls = read.json().get("tool_calls");
    let functions = calls
        .into_iter()
        .flat_map(Json::elements)
        .filter_map(|call| call.get("function"));
    let is_call = |kind: Json<'_>| kind.text().as_deref() == Some("function_call");
    let item = read.json().get("type").is_some_and(is_call);
    let calls = functions.chain(item.then(|| read.json()));
    let broken = calls
        .filter_map(|call| call.get("arguments"))
        .filter(|arguments| is_broken(*arguments));
    let edits = broken.map(|arguments| {
        let object = arguments_object(Some(arguments));
        (arguments.range(), quote(&object).into_bytes())
    });
    splice_json(read.json(), edits.collect())
}

fn is_broken(arguments: Json<'_>) -> bool {
    let text = || arguments.text().unwrap_or_default();
    arguments.kind() == JsonKind::String
        && !text().trim().is_empty()
        && Json::parse(text().as_bytes()).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClientCall;

    #[test]
    fn only_broken_arguments_are_replaced() {
        let chat = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{\"p\": 1}"}},{"id":"b","type":"function","function":{"name":"y", "arguments": "{\"path\":\"/ho"}}]}"#;
        let item = r#"{"type":"function_call","call_id":"b","name":"y","arguments":"{"}"#;
        for (message, was) in [(chat, "{\"path\":\"/ho"), (item, "{")] {
            let whole = with_json_arguments(message.as_bytes()).unwrap();
            assert_eq!(with_json_arguments(&whole), None);
            let read = Message::parse(&whole).unwrap();
            let calls = ClientCall::all(&read);
            // They are still told as the model wrote them.
            assert_eq!(calls.last().unwrap().arguments, was);
            let text = String::from_utf8(whole.clone()).unwrap();
            assert!(text.contains(r#"{\"_arguments\":"#), "{text}");
        }
        let custom = r#"{"type":"custom_tool_call","call_id":"c","name":"patch","input":"{"}"#;
        let empty = r#"{"type":"function_call","call_id":"b","name":"y","arguments":""}"#;
        let plain = r#"{"role":"user","content":"arguments"}"#;
        for message in [custom, empty, plain] {
            assert_eq!(with_json_arguments(message.as_bytes()), None, "{message}");
        }
    }
}
