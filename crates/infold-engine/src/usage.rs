//! The usage that providers report, and the facts about models that are learned from it.

use infold_store::{Contexts, LearnedWindow, Quirks, Report, TaskError, Usage, Writer};
use infold_wire::TokenUsage;

use crate::models::{Prices, binds_thinking};

/// Records the usage that a provider reported for the last request and its reply, and learns the model's ratio of
/// tokens from it.
///
/// `counted` is our count of the whole request, and the factor used. Returns the new factor.
pub fn report(
    contexts: &Contexts,
    writer: &mut Writer,
    usage: &Usage,
    counted: (u64, f64),
) -> Result<f64, TaskError> {
    writer.usage(usage.clone())?;
    forget_smaller_windows(contexts, usage)?;
    learn(contexts, usage, counted)
}

/// Learns from reported usage how a model counts; returns the factor from now on.
pub fn learn(
    contexts: &Contexts,
    usage: &Usage,
    (counted, guess): (u64, f64),
) -> Result<f64, TaskError> {
    let report = Report {
        provider: &usage.provider,
        model: &usage.model,
        guess,
        counted,
        reported: usage.tokens.saturating_sub(usage.output),
    };
    contexts.with_registry(|registry| registry.learn(&report, jiff::Timestamp::now()))
}

/// Returns how many tokens a model counts for each counted one, if that was learned.
pub fn learned_factor(
    contexts: &Contexts,
    provider: &str,
    model: &str,
) -> Result<Option<f64>, TaskError> {
    let factor = contexts.with_registry_if_writable(|registry| registry.factor(provider, model))?;
    Ok(factor.flatten())
}

/// Returns the window that a provider named for a model lately.
pub fn named_window(
    contexts: &Contexts,
    provider: &str,
    model: &str,
) -> Result<Option<u64>, TaskError> {
    let now = jiff::Timestamp::now();
    let window =
        contexts.with_registry_if_writable(|registry| registry.window(provider, model, now))?;
    Ok(window.flatten())
}

/// Remembers the window that a provider named for a model.
pub fn remember_window(
    contexts: &Contexts,
    provider: &str,
    model: &str,
    window: u64,
) -> Result<(), TaskError> {
    let now = jiff::Timestamp::now();
    contexts.with_registry(|registry| registry.set_window(provider, model, window, now))
}

/// Returns the learned requirements of a model for its messages.
pub fn quirks(contexts: &Contexts, provider: &str, model: &str) -> Result<Quirks, TaskError> {
    let quirks = contexts.with_registry_if_writable(|registry| registry.quirks(provider, model))?;
    let mut quirks = quirks.unwrap_or_default();
    quirks.bound |= binds_thinking(model);
    Ok(quirks)
}

/// Remembers the learned requirements of a model for its messages.
pub fn remember_quirks(
    contexts: &Contexts,
    provider: &str,
    model: &str,
    quirks: Quirks,
) -> Result<(), TaskError> {
    let now = jiff::Timestamp::now();
    contexts.with_registry(|registry| registry.set_quirks(provider, model, quirks, now))
}

/// Returns the windows that providers named for a model lately.
pub fn learned_windows(contexts: &Contexts, model: &str) -> Result<Vec<LearnedWindow>, TaskError> {
    let now = jiff::Timestamp::now();
    let found =
        contexts.with_registry_if_writable(|registry| registry.learned_windows(model, now))?;
    Ok(found.unwrap_or_default())
}

/// Forgets the windows that providers named for a model; returns how many there were.
pub fn forget_windows(contexts: &Contexts, model: &str) -> Result<usize, TaskError> {
    contexts.with_registry(|registry| registry.forget_windows(model))
}

/// Drops the learned windows of a model that a request has just exceeded without a refusal; says whether there were
/// any.
pub fn forget_smaller_windows(contexts: &Contexts, usage: &Usage) -> Result<bool, TaskError> {
    let Usage {
        provider,
        model,
        tokens,
        ..
    } = usage;
    contexts.with_registry(|registry| registry.forget_smaller_windows(provider, model, *tokens))
}

/// Returns the cost of a call, in millionths of a dollar.
pub fn cost(prices: Option<Prices>, usage: &TokenUsage) -> u64 {
    let Some(prices) = prices else { return 0 };
    let spent = usage.input as f64 * prices.input
        + usage.cache_read as f64 * prices.cached
        + usage.cache_write as f64 * prices.write
        + usage.output as f64 * prices.output;
    // Dollars per million tokens are millionths of a dollar per token.
    spent.round() as u64
}

#[cfg(test)]
mod tests {
    use infold_store::{Durability, Metadata, Purpose};

    use super::*;

    #[test]
    fn what_is_reported_is_kept_and_learned_from() {
        let dir = tempfile::tempdir().unwrap();
        let contexts = Contexts::new(dir.path(), Durability::Never);
        let task = contexts.create(Metadata::default()).unwrap();
        let (mut writer, _) = contexts.write(task).unwrap();
        let usage = Usage {
            provider: "anthropic".to_owned(),
            model: "claude".to_owned(),
            tokens: 14_100,
            cached: 9_000,
            output: 100,
            frame: 0,
            cost: 0,
            purpose: Purpose::Reply,
        };
        let learned = || learned_factor(&contexts, "anthropic", "claude").unwrap();
        assert_eq!(learned(), None);
        for _ in 0..30 {
            report(&contexts, &mut writer, &usage, (10_000, 1.45)).unwrap();
        }
        let factor = learned();
        assert!(factor.is_some_and(|factor| (factor - 1.4).abs() < 0.01));
        assert_eq!(writer.log().last_usage().unwrap(), Some((usage, 0)));
    }

    #[test]
    fn a_request_that_exceeds_a_learned_window_disproves_it() {
        let dir = tempfile::tempdir().unwrap();
        let contexts = Contexts::new(dir.path(), Durability::Never);
        let task = contexts.create(Metadata::default()).unwrap();
        let (mut writer, _) = contexts.write(task).unwrap();
        let named = |model: &str| named_window(&contexts, "openai", model).unwrap();
        remember_window(&contexts, "openai", "gpt-5", 30_000).unwrap();
        remember_window(&contexts, "openai", "gpt-4o", 30_000).unwrap();
        for (tokens, left) in [(29_000, Some(30_000)), (31_000, None)] {
            let usage = Usage {
                provider: "openai".to_owned(),
                model: "gpt-5".to_owned(),
                tokens,
                cached: 0,
                output: 100,
                frame: 0,
                cost: 0,
                purpose: Purpose::Reply,
            };
            report(&contexts, &mut writer, &usage, (tokens, 1.0)).unwrap();
            assert_eq!(named("gpt-5"), left);
        }
        assert_eq!(named("gpt-4o"), Some(30_000));
    }
}
