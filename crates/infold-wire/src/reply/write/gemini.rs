use super::{Made, event, pieces, said, stop_word, text, with};
use crate::{Json, Reported};

/// That tools are called is seen from the parts alone.
pub(super) const STOPS: [&str; 4] = ["STOP", "MAX_TOKENS", "STOP", "SAFETY"];

pub(super) fn whole(made: &Made<'_>) -> String {
    let parts = made.message().get("parts").map_or("[]", text);
    let stop = stop_word(made.stop, STOPS);
    response(made, parts, Some(&stop), made.usage)
}

pub(super) fn stream(made: &Made<'_>, size: usize) -> Vec<String> {
    let parts = made.message().get("parts");
    let parts = parts.into_iter().flat_map(Json::elements);
    let mut parts: Vec<_> = parts.flat_map(|part| taken_apart(part, size)).collect();
    let last = parts.pop();
    // The reply is counted as it grows; what was sent is known from the start.
    let begun = made.usage.map(|usage| Reported {
        output: 0,
        reasoning: 0,
        ..usage
    });
    let early = parts
        .iter()
        .map(|part| response(made, &format!("[{part}]"), None, begun));
    let mut events: Vec<_> = early.map(|data| event(&data)).collect();
    let last = last.map_or("[]".to_owned(), |part| format!("[{part}]"));
    let stop = stop_word(made.stop, STOPS);
    events.push(event(&response(made, &last, Some(&stop), made.usage)));
    events
}

/// A part as several; calls and data come whole, and a signature with the last piece.
fn taken_apart(part: Json<'_>, size: usize) -> Vec<String> {
    let Some(said) = said(part, "text") else {
        return vec![text(part).to_owned()];
    };
    let mut pieces = pieces(said, size);
    let last = pieces.pop().unwrap_or_default();
    let thought = part.get("thought").is_some_and(Json::is_true);
    let thought = if thought { r#","thought":true"# } else { "" };
    let early = pieces
        .iter()
        .map(|piece| format!(r#"{{"text":{piece}{thought}}}"#));
    let mut parts: Vec<_> = early.collect();
    parts.push(with(part, &[("text", &last)]));
    parts
}

pub(super) fn response(
    made: &Made<'_>,
    parts: &str,
    stop: Option<&str>,
    usage: Option<Reported>,
) -> String {
    let Made { id, model, .. } = made;
    let stop = stop.map_or_else(String::new, |stop| format!(r#","finishReason":{stop}"#));
    let usage = usage.map_or_else(String::new, |usage| {
        format!(",\"usageMetadata\":{}", counts(usage))
    });
    format!(
        r#"{{"candidates":[{{"content":{{"parts":{parts},"role":"model"}}{stop},"index":0}}]{usage},"modelVersion":{model},"responseId":"{id}"}}"#
    )
}

fn counts(usage: Reported) -> String {
    let mut out = format!(r#"{{"promptTokenCount":{}"#, usage.sent());
    let mut add = |name: &str, count: u64| {
        if count > 0 {
            out.push_str(&format!(",\"{name}\":{count}"));
        }
    };
    add("cachedContentTokenCount", usage.cache_read);
    add(
        "candidatesTokenCount",
        usage.output.saturating_sub(usage.reasoning),
    );
    add("thoughtsTokenCount", usage.reasoning);
    add("totalTokenCount", usage.total());
    out + "}"
}
