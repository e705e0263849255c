//! Parses and names a target of a rewind or a fork.

use infold_log::steer::{Side, Target};
use infold_store::{iso, parse_iso};

/// Numbers from here on are times in milliseconds; no log has as many messages.
const FIRST_TIME_MS: u64 = 100_000_000_000;

/// Parses a target in a log: a message (`32`), an event (`e3`), or a time.
pub fn target(text: &str) -> Result<Target, String> {
    let event = text.strip_prefix('e').map(str::parse);
    if let Some(Ok(event)) = event {
        return Ok(Target::Event(event));
    }
    if let Ok(number) = text.parse() {
        return Ok(match number {
            FIRST_TIME_MS.. => Target::Time(number),
            _ => Target::Message(number),
        });
    }
    let time = parse_iso(text).or_else(|| parse_iso(&format!("{text}Z")));
    let time = time.or_else(|| parse_iso(&format!("{text}T00:00Z")));
    time.map(Target::Time).ok_or_else(|| {
        format!("`{text}` is neither a seq (32), an event (e3) nor a time (2026-11-15T12:00Z)")
    })
}

/// Returns the words for a target and its side.
pub fn name(side: Side, target: Target) -> String {
    let side = match side {
        Side::To => "to",
        Side::Before => "to before",
    };
    match target {
        Target::Message(seq) => format!("{side} {seq}"),
        Target::Event(event) => format!("{side} e{event}"),
        Target::Time(time) => format!("{side} {}", iso(time)),
    }
}
