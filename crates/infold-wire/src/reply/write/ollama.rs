use super::{Made, pieces, said, stop_word, text};
use crate::{Json, Reported};

/// That tools are called is seen from the message alone.
const STOPS: [&str; 4] = ["stop", "length", "stop", "content_filter"];

pub(super) fn whole(made: &Made<'_>) -> String {
    let message = made.message();
    let message = match message.get("role") {
        Some(_) => text(message),
        None => EMPTY,
    };
    line(made, message, &done(made))
}

pub(super) fn stream(made: &Made<'_>, size: usize) -> Vec<String> {
    let message = made.message();
    let mut lines = Vec::new();
    let mut add = |message: &str| lines.push(line(made, message, r#""done":false"#) + "\n");
    for piece in pieces(said(message, "thinking").unwrap_or("\"\""), size) {
        add(&format!(
            r#"{{"role":"assistant","content":"","thinking":{piece}}}"#
        ));
    }
    for piece in pieces(said(message, "content").unwrap_or("\"\""), size) {
        add(&format!(r#"{{"role":"assistant","content":{piece}}}"#));
    }
    // Calls come whole, one by one.
    let calls = message
        .get("tool_calls")
        .into_iter()
        .flat_map(Json::elements);
    for call in calls {
        let call = text(call);
        add(&format!(
            r#"{{"role":"assistant","content":"","tool_calls":[{call}]}}"#
        ));
    }
    lines.push(line(made, EMPTY, &done(made)) + "\n");
    lines
}

pub(super) const EMPTY: &str = r#"{"role":"assistant","content":""}"#;

pub(super) fn line(made: &Made<'_>, message: &str, rest: &str) -> String {
    let model = &made.model;
    format!(r#"{{"model":{model},"created_at":"1970-01-01T00:00:00Z","message":{message},{rest}}}"#)
}

pub(super) fn done(made: &Made<'_>) -> String {
    let stop = stop_word(made.stop, STOPS);
    let counts = made.usage.map_or_else(String::new, counts);
    format!(r#""done":true,"done_reason":{stop}{counts}"#)
}

/// Times are in nanoseconds, and made up: a millisecond for each token.
fn counts(usage: Reported) -> String {
    let (sent, output) = (usage.sent(), usage.output);
    let (reading, writing) = (sent * 1_000_000, output * 1_000_000);
    let total = reading + writing;
    format!(
        r#","total_duration":{total},"load_duration":0,"prompt_eval_count":{sent},"prompt_eval_duration":{reading},"eval_count":{output},"eval_duration":{writing}"#
    )
}
