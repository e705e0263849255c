//! Strategies: when to fold, which messages to keep, and the form of the stand-in.

use std::fmt;
use std::str::FromStr;

use infold_log::Role;

use crate::KeepRecent;
use crate::extract::SummaryForm;

/// When to fold, which messages to keep, and the form of the stand-in: data, not code paths.
///
/// In every strategy the floor stays and the stand-in follows the first request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strategy {
    /// The strategy's name.
    pub name: &'static str,
    /// The percentage of the window from which on it folds.
    pub threshold: f64,
    /// How much of the end of a conversation is kept.
    pub keeps: KeepPolicy,
    /// The largest size of a summary relative to the messages that it replaces.
    pub ratio: f64,
    /// The largest size of a summary relative to the window.
    pub summary_share: f64,
    /// The size to which a pass folds, as a share of the size at which a pass is due.
    pub target_share: f64,
    /// Fewer messages than this are not worth a summary.
    pub least: u64,
    /// Whether old tool output may be shown as stubs, if a summary is not enough or the byte budget is exceeded.
    pub masks: bool,
    /// Whether a summary replaces old turns; else they are only hidden.
    pub condenses: bool,
    /// The messages in which a summary is shown.
    pub stand_in: StandIn,
    /// The layout of a summary.
    pub form: SummaryForm,
}

/// How much of the end of a conversation is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeepPolicy {
    /// This many messages, widened to rounds.
    Messages(u64),
    /// This share of the conversation; the kept part begins with a request of the user.
    Share(f64),
    /// The newest rounds up to this share of the window.
    Window(f64),
}

/// The messages in which a summary is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandIn {
    /// A message of the user.
    User,
    /// A message of the model.
    Assistant,
    /// A `<state_snapshot>` of the user, which the model acknowledges.
    Snapshot,
}

/// The default preset.
const INFOLD: Strategy = Strategy {
    name: "infold",
    threshold: 75.0,
    keeps: KeepPolicy::Window(0.15),
    ratio: 0.5,
    summary_share: 0.4,
    target_share: 0.65,
    least: 2,
    masks: true,
    condenses: true,
    stand_in: StandIn::User,
    form: SummaryForm::Sections,
};

/// The values that the other presets share. Most of these presets imitate another agent.
const OTHER: Strategy = Strategy {
    ratio: 0.25,
    summary_share: 0.25,
    target_share: 0.6,
    masks: false,
    ..INFOLD
};

/// All presets, the default first.
pub const STRATEGIES: [Strategy; 5] = [
    INFOLD,
    Strategy {
        name: "roo",
        keeps: KeepPolicy::Messages(3),
        stand_in: StandIn::Assistant,
        form: SummaryForm::SixParts,
        ..OTHER
    },
    Strategy {
        name: "gemini",
        threshold: 50.0,
        keeps: KeepPolicy::Share(0.3),
        stand_in: StandIn::Snapshot,
        form: SummaryForm::Snapshot,
        ..OTHER
    },
    Strategy {
        name: "file",
        threshold: 70.0,
        keeps: KeepPolicy::Messages(5),
        ratio: 0.35,
        least: 10,
        stand_in: StandIn::Assistant,
        form: SummaryForm::Report,
        ..OTHER
    },
    Strategy {
        name: "truncate",
        keeps: KeepPolicy::Window(0.2),
        condenses: false,
        ..OTHER
    },
];

/// The names of all presets.
pub const STRATEGY_NAMES: [&str; STRATEGIES.len()] =
    ["infold", "roo", "gemini", "file", "truncate"];

impl Strategy {
    /// Says whether threshold and target are shares of the foldable part, not of the whole window.
    pub fn is_relative(&self) -> bool {
        self.name == Strategy::default().name
    }

    /// Returns how much it keeps, in the terms of a profile.
    pub fn keep(&self) -> KeepRecent {
        match self.keeps {
            KeepPolicy::Messages(count) => {
                KeepRecent::Messages(u32::try_from(count).unwrap_or(u32::MAX))
            }
            KeepPolicy::Share(share) | KeepPolicy::Window(share) => KeepRecent::Share(share),
        }
    }

    /// Returns the same strategy, keeping as much at the end as a profile says.
    pub fn keeping(self, keep: KeepRecent) -> Strategy {
        let keeps = match (keep, self.keeps) {
            (KeepRecent::Messages(count), _) => KeepPolicy::Messages(u64::from(count)),
            (KeepRecent::Share(share), KeepPolicy::Share(_)) => KeepPolicy::Share(share),
            (KeepRecent::Share(share), _) => KeepPolicy::Window(share),
        };
        Strategy { keeps, ..self }
    }
}

impl Default for Strategy {
    fn default() -> Strategy {
        STRATEGIES[0]
    }
}

/// The requested strategy does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy `{name}` (known: {})", STRATEGY_NAMES.join(", "))]
pub struct UnknownStrategy {
    /// The name.
    pub name: String,
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Strategy, UnknownStrategy> {
        let found = STRATEGIES.iter().find(|strategy| strategy.name == name);
        found.copied().ok_or_else(|| UnknownStrategy {
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The model's reply to a snapshot, so that roles alternate.
const ACKNOWLEDGED: &str = "Got it. Thanks for the additional context!";

/// Follows the heading of a summary that was written without a model, in the layout of another agent.
const LEGEND: &str = "[[n] is message n. After → stands the message that says otherwise.]";

const SNAPSHOT_START: &str = "<state_snapshot>";
const SNAPSHOT_END: &str = "</state_snapshot>";

impl StandIn {
    /// Puts a summary under its heading and into the messages that are shown; `below` follows it and is not part of it.
    pub fn compose(self, heading: &str, summary: &str, below: &str) -> Vec<(Role, String)> {
        let below = match below.trim() {
            "" => String::new(),
            below => format!("\n\n{below}"),
        };
        let text = format!("{heading}\n\n{summary}{below}");
        match self {
            StandIn::User => vec![(Role::User, text)],
            StandIn::Assistant => vec![(Role::Assistant, text)],
            StandIn::Snapshot => {
                let snapshot =
                    format!("{heading}\n\n{SNAPSHOT_START}\n{summary}\n{SNAPSHOT_END}{below}");
                vec![
                    (Role::User, snapshot),
                    (Role::Assistant, ACKNOWLEDGED.to_owned()),
                ]
            }
        }
    }

    /// Returns the summary in the messages that show it.
    pub fn summary(stand_in: &[(Role, String)]) -> &str {
        let Some((_, text)) = stand_in.first() else {
            return "";
        };
        // The heading is one line in brackets; a summary written by a person may have none.
        let text = match text.split_once("\n\n") {
            Some((heading, rest)) if heading.starts_with('[') && heading.ends_with(']') => rest,
            _ => text,
        };
        let text = text.trim();
        let inner = text.strip_prefix(SNAPSHOT_START);
        let inner = inner.and_then(|text| Some(&text[..text.rfind(SNAPSHOT_END)?]));
        inner.unwrap_or(text).trim()
    }

    /// Returns the heading of a summary that was written without a model, in the layout of another agent.
    pub(crate) fn heading_by_code(heading: &str) -> String {
        format!("{heading}\n{LEGEND}")
    }

    /// Says whether the summary was written without a model, in the layout of another agent.
    pub(crate) fn is_by_code(stand_in: &[(Role, String)]) -> bool {
        let text = stand_in.first().map_or("", |(_, text)| text);
        text.lines().nth(1) == Some(LEGEND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_comes_out_as_it_went_in() {
        for form in [StandIn::User, StandIn::Assistant, StandIn::Snapshot] {
            let stand_in = form.compose("[Summary of messages 2..9]", "first\n\nsecond", "");
            assert_eq!(StandIn::summary(&stand_in), "first\n\nsecond");
        }
        let below = StandIn::Snapshot.compose("[Summary of messages 2..9]", "first", "asked");
        assert_eq!(StandIn::summary(&below), "first");
        assert_eq!(StandIn::summary(&[(Role::User, "plain".into())]), "plain");
        assert_eq!(StandIn::summary(&[]), "");
    }

    #[test]
    fn presets_are_found_by_name() {
        for strategy in STRATEGIES {
            assert_eq!(strategy.name.parse(), Ok(strategy));
        }
        assert_eq!(STRATEGY_NAMES, STRATEGIES.map(|strategy| strategy.name));
        assert!("rooo".parse::<Strategy>().is_err());
    }
}
