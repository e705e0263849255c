//! Reads SWE-agent's trajectories: chat messages with additional members.

use super::neutral::{ObjectMembers, RawJson, push_all, raw_json};
use super::{FormatReader, ReaderOutput};
use crate::Message;

/// Reads the history.
#[derive(Default)]
pub struct SweAgentReader;

impl FormatReader for SweAgentReader {
    fn record(&mut self, text: &[u8], output: &mut ReaderOutput<'_>) -> Result<(), String> {
        let json = ObjectMembers::parse(text)?;
        let role = json.or_empty("role");
        let mut out = format!("{{\"role\":{role}");
        let member = |name: &str| json.get(name).filter(|value| !value.is_null());
        if let Some(calls) = member("tool_calls").filter(|calls| calls.elements().next().is_some())
        {
            push_all(&mut out, &[",\"tool_calls\":", &raw_json(calls)]);
        }
        let ids = member("tool_call_ids").and_then(|ids| ids.elements().next());
        if let Some(id) = ids.or_else(|| member("tool_call_id"))
            && role == "\"tool\""
        {
            push_all(&mut out, &[",\"tool_call_id\":", &raw_json(id)]);
        }
        let content: RawJson<'_> = member("content").map_or("\"\"".into(), raw_json);
        push_all(&mut out, &[",\"content\":", &content, "}"]);
        Message::parse(out.as_bytes()).map_err(|error| error.to_string())?;
        output.message(out.into_bytes(), None);
        Ok(())
    }
}
