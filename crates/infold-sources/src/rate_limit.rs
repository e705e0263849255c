//! How long a server asks to wait.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use infold_provider::requested_wait;
use jiff::Timestamp;

/// How long to wait at least where a server limits requests and does not say for how long.
const UNSTATED_WAIT: Duration = Duration::from_secs(60);

/// Returns how long to wait if a response is a refusal because of too many requests; none if it is not.
///
/// GitHub answers 403 or 429, GitLab 429. `attempt` counts from one.
pub fn limited(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    attempt: u32,
) -> Option<Duration> {
    if status != StatusCode::FORBIDDEN && status != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    let unstated = || {
        let is_limit = status == StatusCode::TOO_MANY_REQUESTS || mentions_limit(body);
        let doubled = 1u32 << attempt.saturating_sub(1).min(6);
        is_limit.then(|| UNSTATED_WAIT.saturating_mul(doubled))
    };
    requested_wait(headers)
        .or_else(|| until_reset(headers))
        .or_else(unstated)
}

/// Returns how long no request is left, by the headers of any response.
pub fn until_reset(headers: &HeaderMap) -> Option<Duration> {
    let number =
        |name: &str| -> Option<i64> { headers.get(name)?.to_str().ok()?.trim().parse().ok() };
    let either = |github, gitlab| number(github).or_else(|| number(gitlab));
    if either("x-ratelimit-remaining", "ratelimit-remaining")? > 0 {
        return None;
    }
    let reset = Timestamp::from_second(either("x-ratelimit-reset", "ratelimit-reset")?).ok()?;
    // The server's own clock counts, if it sends its date.
    let date = headers.get("date").and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
    let now = date.map_or_else(Timestamp::now, |date| date.timestamp());
    let wait = Duration::try_from(reset.duration_since(now)).unwrap_or_default();
    // Dates have no fractions of seconds.
    Some(wait + Duration::from_secs(1))
}

fn mentions_limit(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&body[..body.len().min(4096)]).to_lowercase();
    text.contains("rate limit") || text.contains("abuse detection")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(
        status: u16,
        lines: &[(&'static str, &str)],
        body: &str,
        attempt: u32,
    ) -> Option<u64> {
        let line = |(name, value): &(&'static str, &str)| {
            let name = http::HeaderName::from_static(name);
            (name, value.parse().expect("a header"))
        };
        let headers = lines.iter().map(line).collect();
        let status = StatusCode::from_u16(status).expect("a status");
        limited(status, &headers, body.as_bytes(), attempt).map(|wait| wait.as_secs())
    }

    #[test]
    fn servers_say_it_in_several_ways() {
        let date = ("date", "Sun, 15 Nov 2026 08:49:37 GMT");
        let none_left = ("x-ratelimit-remaining", "0");
        assert_eq!(seconds(403, &[("retry-after", "30")], "", 1), Some(30));
        assert_eq!(
            seconds(
                403,
                &[date, none_left, ("x-ratelimit-reset", "1794732600")],
                "",
                1
            ),
            Some(24)
        );
        assert_eq!(
            seconds(
                429,
                &[
                    date,
                    ("ratelimit-remaining", "0"),
                    ("ratelimit-reset", "1794732600")
                ],
                "",
                1
            ),
            Some(24)
        );
        // A reset that is over.
        assert_eq!(
            seconds(403, &[date, none_left, ("x-ratelimit-reset", "5")], "", 1),
            Some(1)
        );
        let secondary = r#"{"message":"You have exceeded a secondary rate limit"}"#;
        assert_eq!(seconds(403, &[], secondary, 1), Some(60));
        assert_eq!(seconds(403, &[], secondary, 3), Some(240));
        assert_eq!(seconds(429, &[], "", 1), Some(60));
    }

    #[test]
    fn other_refusals_are_no_limit() {
        let left = ("x-ratelimit-remaining", "4999");
        assert_eq!(
            seconds(403, &[left], r#"{"message":"Must have admin rights"}"#, 1),
            None
        );
        assert_eq!(seconds(404, &[("retry-after", "30")], "", 1), None);
        assert_eq!(seconds(403, &[("x-ratelimit-remaining", "x")], "", 1), None);
    }
}
