//! Means and ratios with bootstrap intervals, which show how much a figure would change with other sessions and points.

/// The number of times that points are resampled.
const RESAMPLES: usize = 2_000;
/// A fixed seed, so that the same points give the same interval.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// A figure, and the bounds between which 95 percent of the resamples lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// A value at one point of a session, and the value that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The number of the session.
    pub session: usize,
    /// The value.
    pub value: f64,
    /// The value that it is compared with.
    pub base: f64,
}

/// Returns the mean over points; none without points.
pub fn mean(points: &[Observation]) -> Option<Estimate> {
    let points = points.iter().map(|point| Observation {
        base: 1.0,
        ..*point
    });
    ratio(&points.collect::<Vec<_>>())
}

/// Returns the ratio of the means of value and base; none if the base is zero.
///
/// Each resample draws sessions with replacement, and points with replacement within each of them: points of one
/// session are alike, so drawing points alone would make the interval too narrow.
pub fn ratio(points: &[Observation]) -> Option<Estimate> {
    let ratio = |drawn: &[Observation]| {
        let sum: f64 = drawn.iter().map(|point| point.value).sum();
        let base: f64 = drawn.iter().map(|point| point.base).sum();
        (base > 0.0).then(|| sum / base)
    };
    let value = ratio(points)?;
    let mut sorted = points.to_vec();
    sorted.sort_by_key(|point| point.session);
    let sessions: Vec<&[Observation]> = sorted.chunk_by(|a, b| a.session == b.session).collect();
    let mut random = XorShift::new(SEED);
    let mut values = Vec::with_capacity(RESAMPLES);
    let mut drawn = Vec::new();
    for _ in 0..RESAMPLES {
        drawn.clear();
        for _ in 0..sessions.len() {
            let session = sessions[random.below(sessions.len())];
            drawn.extend((0..session.len()).map(|_| session[random.below(session.len())]));
        }
        // A resample whose base is zero has no ratio, and is skipped.
        values.extend(ratio(&drawn));
    }
    values.sort_by(f64::total_cmp);
    let quantile = |share: f64| values.get((values.len() as f64 * share) as usize).copied();
    Some(Estimate {
        value,
        low: quantile(0.025).unwrap_or(value),
        high: quantile(0.975).unwrap_or(value),
    })
}

/// A small pseudorandom number generator (xorshift64*): its numbers are the same on all systems and with all versions
/// of dependencies.
pub struct XorShift(u64);

impl XorShift {
    /// Starts with a seed; its lowest bit is set because zero would stay zero.
    pub fn new(seed: u64) -> XorShift {
        XorShift(seed | 1)
    }

    /// Returns the next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number less than `count`, or zero.
    pub fn below(&mut self, count: usize) -> usize {
        // The upper bits are more random than the lower ones.
        ((self.next() >> 33) as usize) % count.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[(usize, f64)]) -> Vec<Observation> {
        let points = values.iter().map(|(session, value)| Observation {
            session: *session,
            value: *value,
            base: value / 2.0,
        });
        points.collect()
    }

    #[test]
    fn an_interval_is_the_same_each_time_and_holds_the_mean() {
        let points = points(&[(0, 0.1), (0, 0.3), (1, 0.2), (2, 0.6), (2, 0.5)]);
        let first = mean(&points).unwrap();
        assert_eq!(Some(first), mean(&points));
        assert!((first.value - 0.34).abs() < 1e-9);
        assert!(first.low < first.value && first.value < first.high);
        assert!(first.low >= 0.1 && first.high <= 0.6, "{first:?}");
    }

    #[test]
    fn a_ratio_of_values_that_go_together_has_no_spread() {
        let ratio = ratio(&points(&[(0, 0.1), (1, 0.3), (2, 0.7)])).unwrap();
        for value in [ratio.value, ratio.low, ratio.high] {
            assert!((value - 2.0).abs() < 1e-9, "{ratio:?}");
        }
    }

    #[test]
    fn nothing_has_no_mean_and_sessions_that_differ_widen_the_interval() {
        assert_eq!(mean(&[]), None);
        assert_eq!(ratio(&points(&[(0, 0.0)])), None);
        let alike = mean(&points(&[(0, 0.2), (0, 0.8), (1, 0.2), (1, 0.8)])).unwrap();
        let apart = mean(&points(&[(0, 0.2), (0, 0.2), (1, 0.8), (1, 0.8)])).unwrap();
        assert!(apart.high - apart.low >= alike.high - alike.low);
    }
}
