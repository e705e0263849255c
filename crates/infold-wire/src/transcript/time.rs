//! Reads and writes the times of transcripts: ISO 8601, as milliseconds since 1970.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// Reads a time such as `2026-11-15T12:00:00.123Z`, in UTC if it names no zone; `None` for any other text.
pub fn parse(text: &str) -> Option<u64> {
    let civil = || {
        let time = text.parse::<DateTime>().ok()?;
        Offset::UTC.to_timestamp(time).ok()
    };
    let time = text.parse::<Timestamp>().ok().or_else(civil)?;
    u64::try_from(time.as_millisecond()).ok()
}

/// Writes a time as `2026-11-15T12:00:00.123Z`.
pub fn iso(millis: u64) -> String {
    let time = i64::try_from(millis).ok();
    let time = time.and_then(|millis| Timestamp::from_millisecond(millis).ok());
    format!("{:.3}", time.unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_there_and_back() {
        for time in [0, 951_782_400_000, 1_767_225_600_123, 4_107_542_399_999] {
            assert_eq!(parse(&iso(time)), Some(time));
        }
        assert_eq!(iso(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(parse("2026-01-01T01:00+01:00"), Some(1_767_225_600_000));
        assert_eq!(parse("2026-01-01T00:00:00.5"), Some(1_767_225_600_500));
        assert_eq!(parse("2026-01-01 00:00:00"), Some(1_767_225_600_000));
        assert_eq!(parse("yesterday"), None);
        assert_eq!(parse("2026-13-01T00:00:00Z"), None);
        assert_eq!(parse("2026-02-31T00:00:00Z"), None);
    }
}
