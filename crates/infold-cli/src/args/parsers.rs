//! Parses the values of arguments for clap: each function is a `value_parser`, and its error is shown to the user.

use infold_log::steer::Target;
use infold_log::{EventId, Seq};

/// Parses the place in a log that follows a message (`32`) or an event (`e3`).
pub(super) fn parse_point(text: &str) -> Result<Target, String> {
    let target = match text.strip_prefix('e') {
        Some(event) => event.parse().map(Target::Event),
        None => text.parse().map(Target::Message),
    };
    target.map_err(|_| format!("`{text}` is neither a seq such as 32 nor an event such as e3"))
}

/// Parses the seq of a message, at least 1.
pub(super) fn parse_seq(text: &str) -> Result<Seq, String> {
    let seq = text.parse().ok().and_then(Seq::new);
    seq.ok_or_else(|| format!("`{text}` is not a seq such as 32"))
}

/// Parses the id of an event. The `e` may be missing, because nothing but an event is possible here.
pub(super) fn parse_event(text: &str) -> Result<EventId, String> {
    let number = text.strip_prefix('e').unwrap_or(text).parse().ok();
    let id = number.and_then(EventId::new);
    id.ok_or_else(|| format!("`{text}` is not an event such as e3"))
}

/// Parses a fraction of a whole, such as `0.5`.
pub(super) fn parse_fraction(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    let valid = number.filter(|number| *number > 0.0 && *number <= 1.0);
    valid.ok_or_else(|| "must be more than 0 and at most 1".to_owned())
}

/// Parses an age: a whole number and its unit.
pub(super) fn parse_age(text: &str) -> Result<jiff::SignedDuration, String> {
    let parse = || {
        let unit = text.chars().last()?;
        let seconds = match unit {
            'd' => 86_400,
            'h' => 3_600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        let count: i64 = text[..text.len() - 1].parse().ok()?;
        count.checked_mul(seconds).filter(|total| *total >= 0)
    };
    let seconds =
        parse().ok_or_else(|| format!("`{text}` is not an age such as 30d, 12h, 90m or 10s"))?;
    Ok(jiff::SignedDuration::from_secs(seconds))
}
