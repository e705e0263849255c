//! The limits of a task (steps, tokens, cost, time): the worker pauses a task that reaches one.

use infold::config::WorkConfig;
use infold_store::Counters;
use jiff::Timestamp;

/// The configured limits of a task. A task that reaches one is paused, so that a person can decide whether it
/// continues. `None` means that there is no limit.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkLimits {
    /// The most calls of the model.
    pub max_steps: u64,
    /// The most tokens sent to and received from the model.
    pub max_tokens: Option<u64>,
    /// The most that the calls of the model may cost, in millionths of a dollar.
    pub max_cost: Option<u64>,
    /// The most minutes since the task was first started, pauses included.
    pub max_minutes: Option<u64>,
    /// The most tokens of one tool result that the model is shown; `None` stands for a part of the window. This limit
    /// pauses no task.
    pub result_tokens: Option<u64>,
}

impl WorkLimits {
    /// Returns the configured limits.
    pub fn new(config: &WorkConfig) -> WorkLimits {
        WorkLimits {
            max_steps: config.max_steps(),
            max_tokens: config.max_tokens.as_ref().map(|set| set.value),
            max_cost: config.max_cost.as_ref().map(|set| (set.value * 1e6) as u64),
            max_minutes: config.max_minutes.as_ref().map(|set| set.value),
            result_tokens: config.result_tokens.as_ref().map(|set| set.value),
        }
    }

    /// Returns the reason why the model must not be called again; `None` if no limit is reached.
    pub(crate) fn reached(
        &self,
        used: &Counters,
        started: Timestamp,
        now: Timestamp,
    ) -> Option<String> {
        if used.llm_calls >= self.max_steps {
            let text = format!("stopped after {} steps (work.max_steps)", used.llm_calls);
            return Some(text);
        }
        if self.max_tokens.is_some_and(|most| used.tokens >= most) {
            let text = format!("stopped after {} tokens (work.max_tokens)", used.tokens);
            return Some(text);
        }
        if self.max_cost.is_some_and(|most| used.cost >= most) {
            let dollars = used.cost as f64 / 1e6;
            return Some(format!("stopped at ${dollars:.4} (work.max_cost)"));
        }
        let minutes = now.duration_since(started).as_mins().max(0).unsigned_abs();
        if self.max_minutes.is_some_and(|most| minutes >= most) {
            return Some(format!(
                "stopped after {minutes} minutes (work.max_minutes)"
            ));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_stops_and_says_which_it_is() {
        let limits = WorkLimits {
            max_steps: 3,
            max_tokens: Some(100),
            max_cost: Some(500_000),
            max_minutes: Some(10),
            result_tokens: None,
        };
        let start: Timestamp = "2026-11-18T12:00:00Z".parse().unwrap();
        let reached = |llm_calls, tokens, cost, minutes: i64| {
            let used = Counters {
                llm_calls,
                tokens,
                cost,
                ..Counters::default()
            };
            let now = start + jiff::SignedDuration::from_mins(minutes);
            limits.reached(&used, start, now).unwrap_or_default()
        };
        assert_eq!(reached(2, 99, 499_999, 9), "");
        assert_eq!(
            reached(3, 0, 0, 0),
            "stopped after 3 steps (work.max_steps)"
        );
        assert_eq!(
            reached(0, 100, 0, 0),
            "stopped after 100 tokens (work.max_tokens)"
        );
        assert_eq!(
            reached(0, 0, 500_000, 0),
            "stopped at $0.5000 (work.max_cost)"
        );
        assert_eq!(
            reached(0, 0, 0, 10),
            "stopped after 10 minutes (work.max_minutes)"
        );
        // A clock that moves backwards reaches no limit.
        assert_eq!(reached(0, 0, 0, -10), "");
    }
}
