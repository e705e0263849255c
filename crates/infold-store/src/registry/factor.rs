//! How models count tokens, learned from the usage that providers report.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::row::instant;
use super::{Registry, RegistryError};

/// A provider's token count of a request, and ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report<'a> {
    /// The provider that reported it.
    pub provider: &'a str,
    /// The model that was called.
    pub model: &'a str,
    /// The factor that was used as long as nothing was known.
    pub guess: f64,
    /// The tokens we counted.
    pub counted: u64,
    /// The tokens that were reported.
    pub reported: u64,
}

impl Registry {
    /// Returns the factor from our token counts to those of a provider's model.
    ///
    /// None if nothing was learned about it yet.
    pub fn factor(&self, provider: &str, model: &str) -> Result<Option<f64>, RegistryError> {
        let sql = "SELECT factor FROM token_factors WHERE provider = ?1 AND model = ?2";
        self.run(|db| {
            db.query_row(sql, [provider, model], |row| row.get(0))
                .optional()
        })
    }

    /// Learns from a request that was counted as so many tokens and reported as so many.
    ///
    /// Returns the factor from now on. It moves a bounded step at a time; reports
    /// too small or too strange to learn from leave it where it was.
    pub fn learn(&self, report: &Report<'_>, at: Timestamp) -> Result<f64, RegistryError> {
        let Report {
            provider,
            model,
            guess,
            counted,
            reported,
        } = *report;
        self.write(|db| {
            let sql = "SELECT factor FROM token_factors WHERE provider = ?1 AND model = ?2";
            let old: Option<f64> = db
                .query_row(sql, [provider, model], |row| row.get(0))
                .optional()?;
            let old = old.unwrap_or(guess);
            let Some(factor) = moved(old, counted, reported) else {
                return Ok(old);
            };
            let sql = "INSERT INTO token_factors (provider, model, factor, reports, updated_at)
                       VALUES (?1, ?2, ?3, 1, ?4)
                       ON CONFLICT (provider, model) DO UPDATE SET
                           factor = excluded.factor,
                           reports = reports + 1,
                           updated_at = excluded.updated_at";
            db.execute(sql, params![provider, model, factor, instant(at)])?;
            Ok(factor)
        })
    }
}

/// Fewer tokens than this say more about the frame of a request than about its text.
const LEAST: u64 = 200;
/// The largest plausible factor: no tokenizer differs more from ours, so a report beyond it concerns something
/// else.
const ABSURD: f64 = 8.0;
/// The most a factor grows by at a time; it shrinks by as much at most.
const STEP: f64 = 1.1;
const LOWEST: f64 = 0.5;
const HIGHEST: f64 = 3.0;

/// The factor after a report; none if the report says nothing.
fn moved(factor: f64, counted: u64, reported: u64) -> Option<f64> {
    let ratio = reported as f64 / counted as f64;
    if counted < LEAST || !(1.0 / ABSURD..=ABSURD).contains(&ratio) {
        return None;
    }
    // Take half the step, measured in factors: the factor approaches the true value quickly, and a wrong report
    // is half undone by the next correct one.
    let step = (ratio / factor).sqrt().clamp(1.0 / STEP, STEP);
    Some((factor * step).clamp(LOWEST, HIGHEST))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A constant ratio is learned, from wherever one starts.
        #[test]
        fn a_constant_ratio_is_learned(start in LOWEST..HIGHEST, ratio in LOWEST..HIGHEST) {
            let mut factor = start;
            for _ in 0..40 {
                factor = moved(factor, 1_000_000, (ratio * 1e6) as u64).unwrap();
            }
            prop_assert!((factor / ratio - 1.0).abs() < 0.001, "{factor}");
        }

        /// Whatever is reported, a factor stays within its bounds and moves a step at most.
        #[test]
        fn a_factor_stays_in_bounds(start in LOWEST..=HIGHEST, counted: u64, reported: u64, small in 0..5000u64) {
            for (counted, reported) in [(counted, reported), (small, reported), (counted, small), (small, 700)] {
                let factor = moved(start, counted, reported).unwrap_or(start);
                prop_assert!((LOWEST..=HIGHEST).contains(&factor));
                prop_assert!(factor / start < STEP + 1e-9 && start / factor < STEP + 1e-9);
            }
        }
    }

    #[test]
    fn one_outlier_moves_it_little_and_is_forgotten() {
        let mut factor = moved(1.2, 10_000, 70_000).unwrap();
        assert!(factor < 1.33);
        for _ in 0..6 {
            factor = moved(factor, 10_000, 12_000).unwrap();
        }
        assert!((factor - 1.2).abs() < 0.01, "{factor}");
    }

    #[test]
    fn reports_that_say_nothing_are_ignored() {
        for (counted, reported) in [
            (0, 0),
            (0, 9),
            (199, 300),
            (1000, 0),
            (1000, 100),
            (1000, 9000),
        ] {
            assert_eq!(moved(1.0, counted, reported), None, "{counted} {reported}");
        }
    }

    #[test]
    fn what_was_learned_is_kept_for_each_model() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        let at: Timestamp = "2026-11-15T20:51:34Z".parse().unwrap();
        assert_eq!(registry.factor("anthropic", "opus").unwrap(), None);
        let learn = |registry: &Registry, provider, model, counted, reported| {
            let report = Report {
                provider,
                model,
                guess: 1.0,
                counted,
                reported,
            };
            registry.learn(&report, at).unwrap()
        };
        let learned = learn(&registry, "anthropic", "opus", 1000, 1050);
        assert!(1.0 < learned && learned < 1.05);
        assert_eq!(learn(&registry, "anthropic", "opus", 10, 90), learned);
        drop(registry);
        let registry = Registry::open(dir.path()).unwrap();
        assert_eq!(registry.factor("anthropic", "opus").unwrap(), Some(learned));
        assert_eq!(registry.factor("anthropic", "haiku").unwrap(), None);
        assert_eq!(learn(&registry, "openai", "gpt", 10, 90), 1.0);
        assert_eq!(registry.factor("openai", "gpt").unwrap(), None);
    }
}
