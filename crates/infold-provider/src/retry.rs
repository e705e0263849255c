//! When a failed call is tried again, and how long calls may take.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use infold_wire::ProviderError;
use jiff::Timestamp;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use tokio::time::Instant;

/// The limits of a call's attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// After this time no attempt is made, and a reply must have begun.
    pub deadline: Duration,
    /// The most attempts.
    pub attempts: u32,
    /// The longest wait before the second attempt; doubles with each further one.
    pub first_wait: Duration,
    /// The longest wait, unless the provider asks for more.
    pub longest_wait: Duration,
    /// The time limit without any bytes sent or received while a request or reply is in progress.
    pub idle: Duration,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            deadline: Duration::from_secs(600),
            attempts: 6,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
            idle: Duration::from_secs(120),
        }
    }
}

impl RetryPolicy {
    /// Returns how long to wait after this attempt, counted from one.
    ///
    /// The wait is random, so that clients that failed together do not come back together,
    /// but no shorter than the provider asks for.
    pub(crate) fn wait(&self, attempt: u32, trouble: &ProviderError) -> Duration {
        match trouble {
            ProviderError::Busy { after: Some(after) } => {
                after.saturating_add(random_part(self.longest(attempt).min(self.first_wait)))
            }
            _ => self.backoff(attempt),
        }
    }

    /// Returns how long to wait after this attempt, counted from one, if the server asks for nothing.
    pub fn backoff(&self, attempt: u32) -> Duration {
        random_part(self.longest(attempt))
    }

    /// Returns how long to wait at most after an attempt.
    fn longest(&self, attempt: u32) -> Duration {
        let doubled = 1u32
            .checked_shl(attempt.saturating_sub(1))
            .unwrap_or(u32::MAX);
        let longest = self.first_wait.saturating_mul(doubled);
        longest.min(self.longest_wait)
    }
}

/// Returns the moment after a wait, which is a year at most: more could overflow.
pub(crate) fn deadline(start: Instant, wait: Duration) -> Instant {
    start + wait.min(Duration::from_secs(365 * 24 * 3600))
}

/// Returns a random part of a duration. The randomness comes from the keys of the standard hash.
fn random_part(longest: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() >> 11;
    longest.mul_f64(random as f64 / (1u64 << 53) as f64)
}

/// Returns how long the headers of a response ask to wait.
pub fn requested_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.trim());
    let seconds = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
    let exact = text("retry-after-ms").and_then(seconds).map(|ms| ms / 1000);
    let after = text(RETRY_AFTER.as_str()).unwrap_or_default();
    exact.or_else(|| seconds(after)).or_else(|| {
        // The server's own clock counts, if it sends its date.
        let now = text(DATE.as_str()).and_then(parse_date);
        let left = parse_date(after)?.duration_since(now.unwrap_or_else(Timestamp::now));
        Some(left.try_into().unwrap_or_default())
    })
}

fn parse_date(text: &str) -> Option<Timestamp> {
    let parsed = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(parsed.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &str)| {
            let name = reqwest::header::HeaderName::from_static(name);
            (name, value.parse().expect("a header"))
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn headers_ask_in_seconds_milliseconds_or_by_date() {
        let ms = |lines: &[_]| requested_wait(&headers(lines)).map(|wait| wait.as_millis());
        assert_eq!(ms(&[("retry-after", "3")]), Some(3000));
        assert_eq!(ms(&[("retry-after", "0.5")]), Some(500));
        assert_eq!(
            ms(&[("retry-after-ms", "250"), ("retry-after", "1")]),
            Some(250)
        );
        assert_eq!(ms(&[("retry-after-ms", "250")]), Some(250));
        let date = ("date", "Sun, 15 Nov 2026 08:49:37 GMT");
        let at = |after| ms(&[date, ("retry-after", after)]);
        assert_eq!(at("Sun, 15 Nov 2026 08:50:07 GMT"), Some(30_000));
        assert_eq!(at("Sun, 15 Nov 2026 08:00:00 GMT"), Some(0));
        assert_eq!(
            ms(&[("retry-after", "Sun, 15 Nov 1998 08:50:07 GMT")]),
            Some(0)
        );
        for odd in ["-1", "soon", "", "NaN", "inf", "1e300"] {
            assert_eq!(ms(&[("retry-after", odd)]), None, "{odd}");
        }
    }

    #[test]
    fn waits_grow_and_stay_within_bounds() {
        let policy = RetryPolicy::default();
        for attempt in 1..200 {
            let most = policy
                .first_wait
                .mul_f64(2f64.powi(attempt.min(30) as i32 - 1));
            for _ in 0..20 {
                let wait = policy.wait(attempt, &ProviderError::Broken);
                assert!(wait <= most.min(policy.longest_wait), "{attempt}: {wait:?}");
            }
        }
        let waits: std::collections::HashSet<_> = (0..50)
            .map(|_| policy.wait(6, &ProviderError::Broken))
            .collect();
        assert!(waits.len() > 40);
    }

    #[test]
    fn what_a_provider_asks_for_is_the_least() {
        let policy = RetryPolicy::default();
        let after = Some(Duration::from_secs(90));
        let wait = policy.wait(1, &ProviderError::Busy { after });
        assert!(wait >= Duration::from_secs(90) && wait < Duration::from_secs(91));
    }
}
