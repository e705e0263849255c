//! Figures of a load test.

use std::io;
use std::time::{Duration, Instant};

use infold_wire::quote;

/// Measurements of one connection, or of all.
#[derive(Default)]
pub struct Figures {
    begun: Option<Instant>,
    ended: Option<Instant>,
    /// Until the last byte, and until the first.
    whole: Vec<Duration>,
    first: Vec<Duration>,
    identical: usize,
    errors: usize,
    error: Option<String>,
}

impl Figures {
    pub fn begin(&mut self) {
        self.begun = Some(Instant::now());
    }

    pub fn end(&mut self) {
        self.ended = Some(Instant::now());
    }

    /// Whether there is time left; a number of requests takes as long as it takes.
    pub fn goes_on(&self, end: Duration, requests: Option<u64>) -> bool {
        requests.is_some() || self.begun.is_some_and(|begun| begun.elapsed() < end)
    }

    pub fn answered(&mut self, start: Instant, first: Instant, identical: bool) {
        self.whole.push(start.elapsed());
        self.first.push(first - start);
        self.identical += usize::from(identical);
    }

    pub fn failed(&mut self, error: &io::Error) {
        self.errors += 1;
        self.error.get_or_insert_with(|| error.to_string());
    }

    /// Resets the times of answers, but not the counts of failures.
    pub fn forget_times(&mut self) {
        self.whole.clear();
        self.first.clear();
        self.identical = 0;
    }

    pub fn add(&mut self, other: Figures) {
        self.begun = self.begun.into_iter().chain(other.begun).min();
        self.ended = self.ended.into_iter().chain(other.ended).max();
        self.whole.extend(other.whole);
        self.first.extend(other.first);
        self.identical += other.identical;
        self.errors += other.errors;
        self.error = self.error.take().or(other.error);
    }

    /// Returns everything as one JSON object, times in microseconds.
    pub fn line(mut self) -> String {
        self.whole.sort_unstable();
        self.first.sort_unstable();
        let seconds = match (self.begun, self.ended) {
            (Some(begun), Some(ended)) => (ended - begun).as_secs_f64(),
            _ => 0.0,
        };
        format!(
            "{{\"requests\":{},\"errors\":{},\"identical\":{},\"seconds\":{seconds:.3},\"median\":{:.1},\"p99\":{:.1},\"first_median\":{:.1},\"first_p99\":{:.1},\"error\":{}}}\n",
            self.whole.len(),
            self.errors,
            self.identical,
            at(&self.whole, 50),
            at(&self.whole, 99),
            at(&self.first, 50),
            at(&self.first, 99),
            self.error.as_deref().map_or("null".to_owned(), quote),
        )
    }
}

#[cfg(test)]
impl Figures {
    pub fn requests(&self) -> usize {
        self.whole.len()
    }

    pub fn errors(&self) -> usize {
        self.errors
    }

    pub fn identical(&self) -> usize {
        self.identical
    }
}

/// The time that so many of a hundred stay within, in microseconds.
fn at(sorted: &[Duration], percent: usize) -> f64 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted
        .get(place)
        .map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_times() {
        let times: Vec<_> = (1..=200).map(Duration::from_micros).collect();
        assert_eq!(at(&times, 50).round(), 100.0);
        assert_eq!(at(&times, 99).round(), 198.0);
        assert_eq!(at(&times[..1], 99).round(), 1.0);
        assert_eq!(at(&[], 99), 0.0);
    }
}
