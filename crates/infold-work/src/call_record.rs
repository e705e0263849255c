//! Records calls in the log, each before and after it runs, so that a worker that starts again knows which calls ran.

use std::collections::HashMap;
use std::time::Duration;

use infold_log::{EventId, Seq};
use infold_store::{CallStartedLine, Log, LogError, ToolError, What, Writer};
use infold_wire::{ClientCall, Json, JsonKind, quote};

/// The position of a call in the log. It identifies the call for ever, because seqs are never reused; some wires give
/// calls no ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallKey {
    /// The message that contains the call.
    pub message: Seq,
    /// The number of calls before it in the message.
    pub index: u64,
}

/// The state of a call according to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallRecord {
    /// The call was started, and its end was not recorded: it may or may not have taken effect.
    Started,
    /// The call ended with this result, or with this error.
    Ended(Result<String, String>),
}

/// Returns the recorded states of the calls in messages from `first` on. Calls that were never started are not in it.
pub(crate) fn call_records(
    log: &Log,
    first: Seq,
) -> Result<HashMap<CallKey, CallRecord>, LogError> {
    let mut records = HashMap::new();
    // Newest first: the end of a call is read before its start.
    let events = (1..=log.state().at().event).rev();
    for id in events.filter_map(EventId::new) {
        let event = log.event(id)?;
        // The events of a call come after its message, so this event and all older ones belong to earlier messages.
        if event.after < first.get() {
            break;
        }
        match event.what {
            What::CallStarted(call) => {
                let key = CallKey {
                    message: call.message,
                    index: call.index,
                };
                records.entry(key).or_insert(CallRecord::Started);
            }
            What::Tool(record) => {
                if let Some((key, result)) = read_record(&record) {
                    records.insert(key, CallRecord::Ended(result));
                }
            }
            _ => {}
        }
    }
    Ok(records)
}

/// Records that a call is about to be run.
pub(crate) fn record_start(
    writer: &mut Writer,
    key: CallKey,
    call: &ClientCall,
) -> Result<(), LogError> {
    let line = CallStartedLine {
        message: key.message,
        index: key.index,
        tool: call.name.clone(),
    };
    writer.call_started(line).map(drop)
}

/// Records how a call ended.
pub(crate) fn record_end(
    writer: &mut Writer,
    key: CallKey,
    call: &ClientCall,
    result: &Result<String, String>,
    duration: Duration,
) -> Result<(), ToolError> {
    let record = write_record(key, call, result, duration);
    writer.tool(record.as_bytes()).map(drop)
}

/// Returns the record of a call that ended, as a line of `tools.jsonl`. Arguments that are no JSON object are stored as
/// a string.
fn write_record(
    key: CallKey,
    call: &ClientCall,
    result: &Result<String, String>,
    duration: Duration,
) -> String {
    let name = match call.name.as_str() {
        "" => "(unnamed)",
        name => name,
    };
    let arguments = Json::parse(call.arguments.as_bytes());
    let args = match arguments {
        Ok(json) if json.kind() == JsonKind::Object => call.arguments.clone(),
        _ if call.arguments.trim().is_empty() => "{}".to_owned(),
        _ => quote(&call.arguments),
    };
    let (member, status, text) = match result {
        Ok(text) => ("result", "success", text),
        Err(text) => ("error", "error", text),
    };
    let (message, index, took) = (key.message, key.index, duration.as_millis());
    format!(
        r#"{{"tool":{},"args":{args},"{member}":{},"status":"{status}","duration_ms":{took},"message":{message},"index":{index}}}"#,
        quote(name),
        quote(text)
    )
}

/// Reads the position and the result of a call from a record; `None` if the record is not one of [`write_record`].
fn read_record(record: &str) -> Option<(CallKey, Result<String, String>)> {
    let json = Json::parse(record.as_bytes()).ok()?;
    let number = |name: &str| {
        let digits = std::str::from_utf8(json.get(name)?.bytes()).ok()?;
        digits.parse::<u64>().ok()
    };
    let key = CallKey {
        message: Seq::new(number("message")?)?,
        index: number("index")?,
    };
    let [result, error] = json.pick(["result", "error"]);
    let result = match (result.and_then(Json::text), error.and_then(Json::text)) {
        (Some(result), _) => Ok(result.into_owned()),
        (None, Some(error)) => Err(error.into_owned()),
        (None, None) => return None,
    };
    Some((key, result))
}

#[cfg(test)]
mod tests {
    use infold_wire::Message;

    use super::*;

    #[test]
    fn what_is_recorded_of_a_call_reads_back() {
        let reply = br#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"run","arguments":"{\"x\": [1}"}}]}"#;
        let calls = ClientCall::all(&Message::parse(reply).unwrap());
        let key = CallKey {
            message: Seq::new(4).unwrap(),
            index: 2,
        };
        for result in [Ok("line\n\"x\"".to_owned()), Err("no\u{1}".to_owned())] {
            let record = write_record(key, &calls[0], &result, Duration::from_millis(12));
            assert_eq!(read_record(&record), Some((key, result)));
        }
        // A record that an agent sent has no `message` and `index`.
        assert_eq!(read_record(r#"{"tool":"ls","result":"x"}"#), None);
    }
}
