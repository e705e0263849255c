use std::time::Duration;

use super::said::Said;

/// No provider means more; a larger number is a mistake.
const MOST: f64 = 7.0 * 24.0 * 3600.0;

/// How long a body asks to wait.
pub(super) fn asked(said: &Said) -> Option<Duration> {
    let delay = said.delay.as_deref().and_then(duration);
    let spoken = || {
        ["try again in ", "retry in ", "retry after "]
            .into_iter()
            .find_map(|words| duration(said.after(words)?))
    };
    delay.or_else(spoken)
}

/// Reads `37s`, `1.2s`, `20ms`, `6m0s`, `1h2m`, `20 seconds` at the start of a text.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds: Option<f64> = None;
    loop {
        let number = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
                .len();
        let Ok(value) = rest[..number].trim_end_matches('.').parse::<f64>() else {
            break;
        };
        let after = rest[number..].trim_start();
        let unit = after.len()
            - after
                .trim_start_matches(|c: char| c.is_ascii_alphabetic())
                .len();
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
    Duration::try_from_secs_f64(seconds.filter(|seconds| *seconds <= MOST)?).ok()
}
