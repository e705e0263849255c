use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A time as ISO 8601 in UTC, to the millisecond.
pub fn iso(time: u64) -> String {
    let stamp = i64::try_from(time)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", stamp.unwrap_or(Timestamp::MAX))
}

/// Reads an ISO 8601 time with its offset (`Z`, `+02:00`).
pub fn parse_iso(text: &str) -> Option<u64> {
    let stamp: Timestamp = text.parse().ok()?;
    u64::try_from(stamp.as_millisecond()).ok()
}
