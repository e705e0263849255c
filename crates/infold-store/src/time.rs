//! Times in milliseconds since 1970, as text and back.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Clocks that are set right by less than this, in milliseconds, do not make the times of a log go back.
const MAX_CORRECTION: u64 = 60_000;

/// Returns the time of an entry that follows one of `last`.
///
/// Times do not decrease, unless the last one lies in the future: then the clock was wrong for a while, and
/// later entries would have that one wrong time for years.
pub fn following(last: u64) -> u64 {
    let now = now();
    if last > now.saturating_add(MAX_CORRECTION) {
        now
    } else {
        now.max(last)
    }
}

/// A time as ISO 8601 in UTC, to the millisecond.
///
/// Written out by hand: it is made for every message, and a general formatter costs
/// more than all the rest of the bookkeeping.
pub fn iso(time: u64) -> String {
    let time = time.min(LAST);
    let (days, millis) = (time / DAY, time % DAY);
    let (year, month, day) = date(days);
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut out = String::with_capacity(24);
    for (number, width, after) in [
        (year, 4, '-'),
        (month, 2, '-'),
        (day, 2, 'T'),
        (hour, 2, ':'),
        (minute, 2, ':'),
        (second, 2, '.'),
        (millis, 3, 'Z'),
    ] {
        for place in (0..width).rev() {
            let digit = number / 10_u64.pow(place) % 10;
            out.push(char::from(b'0' + digit as u8));
        }
        out.push(after);
    }
    out
}

const DAY: u64 = 86_400_000;
/// The last millisecond of the year 9999.
const LAST: u64 = 253_402_300_799_999;

/// The year, month and day that lie so many days after 1 January 1970.
///
/// Years are counted from March, so that a leap day is the last of its year; four
/// hundred of them have 146,097 days.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let first = (153 * month + 2) / 5;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + later, month, day - first + 1)
}

/// Reads an ISO 8601 time with its offset (`Z`, `+02:00`).
pub fn parse_iso(text: &str) -> Option<u64> {
    let stamp: Timestamp = text.parse().ok()?;
    u64::try_from(stamp.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_a_calendar_writes_them() {
        let mut time = 0;
        while time < LAST {
            let stamp = Timestamp::from_millisecond(time as i64).unwrap();
            assert_eq!(iso(time), format!("{stamp:.3}"));
            assert_eq!(parse_iso(&iso(time)), Some(time));
            // A prime number of milliseconds, a little more than two weeks.
            time += 1_234_567_891;
        }
    }
}
