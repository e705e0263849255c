//! A histogram of durations.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A histogram of durations with fixed bounds.
#[derive(Debug)]
pub struct Seconds<const N: usize> {
    /// The number of durations up to each bound that exceed the bound before.
    counts: [AtomicU64; N],
    /// The number of durations above the last bound.
    longer: AtomicU64,
    micros: AtomicU64,
}

impl<const N: usize> Default for Seconds<N> {
    fn default() -> Seconds<N> {
        Seconds {
            counts: [const { AtomicU64::new(0) }; N],
            longer: AtomicU64::new(0),
            micros: AtomicU64::new(0),
        }
    }
}

impl<const N: usize> Seconds<N> {
    /// Counts a duration.
    pub fn add(&self, bounds: &[Duration; N], took: Duration) {
        let at = bounds.iter().position(|bound| took <= *bound);
        let count = at.map_or(&self.longer, |at| &self.counts[at]);
        count.fetch_add(1, Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Relaxed);
    }

    /// Writes the histogram in the text format of Prometheus.
    pub fn render(&self, out: &mut String, name: &str, bounds: &[Duration; N]) {
        let mut sum = 0;
        for (bound, count) in bounds.iter().zip(&self.counts) {
            sum += count.load(Relaxed);
            let bound = bound.as_secs_f64();
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {sum}");
        }
        sum += self.longer.load(Relaxed);
        let micros = self.micros.load(Relaxed);
        let (whole, part) = (micros / 1_000_000, micros % 1_000_000);
        let _ = writeln!(
            out,
            "{name}_bucket{{le=\"+Inf\"}} {sum}\n{name}_sum {whole}.{part:06}\n{name}_count {sum}"
        );
    }
}
