//! Times in transcripts: ISO 8601 in UTC, as milliseconds since 1970.

/// Reads a time such as `2026-11-15T12:00:00.123Z`; none if it is not one.
pub fn parse(text: &str) -> Option<u64> {
    let (date, clock) = text.split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, offset) = zone(clock)?;
    let mut parts = clock.splitn(3, ':');
    let hour: i64 = parts.next()?.parse().ok()?;
    let minute: i64 = parts.next()?.parse().ok()?;
    let (whole, fraction) = match parts.next().unwrap_or("0").split_once('.') {
        Some((whole, fraction)) => (whole.parse::<i64>().ok()?, fraction),
        None => (clock.splitn(3, ':').nth(2).unwrap_or("0").parse().ok()?, ""),
    };
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(3);
    let millis = digits.fold(0, |sum, digit| {
        sum * 10 + i64::from(digit.wrapping_sub(b'0') % 10)
    });
    let valid = (1..=12).contains(&month) && (1..=31).contains(&day) && (0..=9999).contains(&year);
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + whole - offset;
    valid.then_some(())?;
    u64::try_from(seconds * 1000 + millis).ok()
}

/// Splits a clock from its zone, in seconds east.
fn zone(clock: &str) -> Option<(&str, i64)> {
    if let Some(clock) = clock.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = clock.rfind(['+', '-']) else {
        return Some((clock, 0));
    };
    let (clock, zone) = clock.split_at(at);
    let (hours, minutes) = zone[1..].split_once(':').unwrap_or((&zone[1..], "0"));
    let east = hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60;
    Some((clock, if zone.starts_with('-') { -east } else { east }))
}

/// Writes a time as `2026-11-15T12:00:00.123Z`.
pub fn iso(millis: u64) -> String {
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = date(days as i64);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Days from 1970 to a date; years are counted from March, so that leap days come last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
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
        assert_eq!(parse("yesterday"), None);
        assert_eq!(parse("2026-13-01T00:00:00Z"), None);
    }
}
