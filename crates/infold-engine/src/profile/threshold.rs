//! The share of the window at which folding starts.

use std::fmt;

/// The fill level of the window at which folding starts: 5 to 100 percent.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Threshold(f64);

/// A number that is no valid threshold.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is no threshold: give a fraction from 0.05 to 1 or a percentage from 5 to 100")]
pub struct InvalidThreshold(pub f64);

impl Threshold {
    /// Converts a number as people write it: up to 1 it is a fraction, above it is a percentage.
    pub fn new(number: f64) -> Result<Threshold, InvalidThreshold> {
        let percent = if number <= 1.0 {
            number * 100.0
        } else {
            number
        };
        // Written so that NaN is refused too.
        if (5.0..=100.0).contains(&percent) {
            return Ok(Threshold(percent));
        }
        Err(InvalidThreshold(number))
    }

    /// Converts a number where `-1` leaves the threshold to the next layer.
    pub fn inherit(number: f64) -> Result<Option<Threshold>, InvalidThreshold> {
        match number {
            -1.0 => Ok(None),
            _ => Threshold::new(number).map(Some),
        }
    }

    /// Returns the percentage, from 5 to 100.
    pub fn percent(self) -> f64 {
        self.0
    }

    /// Returns the fraction of the window, to the hundredth of a percent.
    pub fn share(self) -> f64 {
        (self.0 * 100.0).round() / 10_000.0
    }

    /// Returns the threshold in tokens of a window, rounded up.
    pub fn of(self, window: u64) -> u64 {
        (window as f64 * self.0 / 100.0).ceil() as u64
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Two places are enough, and 0.07 × 100 would show more.
        write!(f, "{} %", (self.0 * 100.0).round() / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_threshold_is_a_fraction_up_to_one_and_a_percentage_above() {
        for (number, percent) in [
            (0.05, 5.0),
            (0.75, 75.0),
            (1.0, 100.0),
            (5.0, 5.0),
            (70.0, 70.0),
            (100.0, 100.0),
        ] {
            let threshold = Threshold::new(number).map(Threshold::percent);
            assert_eq!(threshold, Ok(percent), "{number}");
        }
        for number in [
            0.0, 0.04, 1.01, 4.0, 4.99, 100.5, 101.0, -0.5, -1.0, -2.0, 1e300,
        ] {
            assert_eq!(
                Threshold::new(number),
                Err(InvalidThreshold(number)),
                "{number}"
            );
        }
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Threshold::new(number).is_err(), "{number}");
        }
        assert_eq!(Threshold::inherit(-1.0), Ok(None));
        assert_eq!(Threshold::inherit(-1.5), Err(InvalidThreshold(-1.5)));
    }

    #[test]
    fn a_threshold_shows_no_more_places_than_were_written() {
        let shown = |number| Threshold::new(number).map(|threshold| threshold.to_string());
        assert_eq!(shown(0.07).as_deref(), Ok("7 %"));
        assert_eq!(shown(62.5).as_deref(), Ok("62.5 %"));
    }

    proptest! {
        /// Every number is a threshold from 5 to 100 percent, or refused.
        #[test]
        fn a_threshold_is_in_range(number in any::<f64>()) {
            if let Ok(threshold) = Threshold::new(number) {
                prop_assert!((5.0..=100.0).contains(&threshold.percent()));
                prop_assert!(threshold.of(1_000_000) <= 1_000_000);
            }
        }
    }
}
