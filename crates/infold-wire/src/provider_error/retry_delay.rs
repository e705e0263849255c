//! Finds the delay after which an error body asks the client to retry.

use std::time::Duration;

use super::body::ErrorBody;

/// A longer delay is a mistake.
const MAX_DELAY_SECONDS: f64 = 7.0 * 24.0 * 3600.0;

/// Returns the delay that a body asks for.
pub(super) fn find(body: &ErrorBody) -> Option<Duration> {
    let delay = body.delay.as_deref().and_then(read_duration);
    let in_words = || {
        ["try again in ", "retry in ", "retry after "]
            .into_iter()
            .find_map(|words| read_duration(body.text_after(words)?))
    };
    delay.or_else(in_words)
}

/// Reads `37s`, `1.2s`, `20ms`, `6m0s`, `1h2m`, `20 seconds` at the start of a text.
fn read_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds: Option<f64> = None;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let number = end.unwrap_or(rest.len());
        let Ok(value) = rest[..number].trim_end_matches('.').parse::<f64>() else {
            break;
        };
        let after = rest[number..].trim_start();
        let end = after.find(|c: char| !c.is_ascii_alphabetic());
        let unit = end.unwrap_or(after.len());
        let scale = match &after[..unit] {
            "h" | "hour" | "hours" => 3600.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "ms" | "millisecond" | "milliseconds" => 0.001,
            _ => break,
        };
        seconds = Some(seconds.unwrap_or(0.0) + value * scale);
        rest = &after[unit..];
    }
    Duration::try_from_secs_f64(seconds.filter(|seconds| *seconds <= MAX_DELAY_SECONDS)?).ok()
}
