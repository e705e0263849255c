use std::fmt;
use std::str::FromStr;

use infold_log::Role;

use crate::extract::Form;
use crate::{Keep, Preset, Threshold};

/// What to keep, when to fold, and how the stand-in looks: data, not code paths.
///
/// In every strategy the floor stays and the stand-in follows the first request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strategy {
    /// Its name.
    pub name: &'static str,
    /// From what percentage of the window on it folds.
    pub threshold: f64,
    /// What stays at the end.
    pub keeps: Keeps,
    /// How large a summary may be against the messages it stands for,
    pub ratio: f64,
    /// and against the window.
    pub summary_share: f64,
    /// To what share of what made a pass due it folds.
    pub target_share: f64,
    /// It is not worth summarising fewer messages than this.
    pub least: u64,
    /// Old tool output may be shown as stubs where a summary is not enough, or bytes are the trouble.
    pub masks: bool,
    /// Old turns are condensed; else they are only hidden.
    pub condenses: bool,
    /// How a summary is shown,
    pub stand_in: StandIn,
    /// and how it is laid out.
    pub form: Form,
}

impl Strategy {
    /// Threshold and target are shares of what can be folded, not of the whole window.
    pub fn is_relative(&self) -> bool {
        self.name == Strategy::default().name
    }
}

/// What a strategy leaves as it is at the end of a conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keeps {
    /// So many messages, widened to rounds.
    Messages(u64),
    /// So large a share of the conversation, from a request on.
    Share(f64),
    /// The newest rounds up to so large a share of the window.
    Window(f64),
}

/// How a summary is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandIn {
    /// As the user's words.
    User,
    /// As the model's.
    Assistant,
    /// As a `<state_snapshot>` of the user's, which the model acknowledges.
    Snapshot,
}

/// All presets, the default first.
pub const STRATEGIES: [Strategy; 5] = [
    Strategy {
        name: "infold",
        threshold: 75.0,
        keeps: Keeps::Window(0.15),
        ratio: 0.5,
        summary_share: 0.4,
        target_share: 0.65,
        least: 2,
        masks: true,
        condenses: true,
        stand_in: StandIn::User,
        form: Form::Sections,
    },
    Strategy {
        name: "roo",
        threshold: 75.0,
        keeps: Keeps::Messages(3),
        ratio: 0.25,
        summary_share: 0.25,
        target_share: 0.6,
        least: 2,
        masks: false,
        condenses: true,
        stand_in: StandIn::Assistant,
        form: Form::SixParts,
    },
    Strategy {
        name: "gemini",
        threshold: 50.0,
        keeps: Keeps::Share(0.3),
        ratio: 0.25,
        summary_share: 0.25,
        target_share: 0.6,
        least: 2,
        masks: false,
        condenses: true,
        stand_in: StandIn::Snapshot,
        form: Form::Snapshot,
    },
    Strategy {
        name: "file",
        threshold: 70.0,
        keeps: Keeps::Messages(5),
        ratio: 0.35,
        summary_share: 0.25,
        target_share: 0.6,
        least: 10,
        masks: false,
        condenses: true,
        stand_in: StandIn::Assistant,
        form: Form::Report,
    },
    Strategy {
        name: "truncate",
        threshold: 75.0,
        keeps: Keeps::Window(0.2),
        ratio: 0.25,
        summary_share: 0.25,
        target_share: 0.6,
        least: 2,
        masks: false,
        condenses: false,
        stand_in: StandIn::User,
        form: Form::Sections,
    },
];

/// The names of all presets.
pub const NAMES: [&str; STRATEGIES.len()] = {
    let mut names = [""; STRATEGIES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = STRATEGIES[at].name;
        at += 1;
    }
    names
};

impl Strategy {
    /// What it brings along for a profile that does not say otherwise.
    pub fn preset(&self) -> Preset {
        let threshold = Threshold::new(self.threshold).expect("presets have valid thresholds");
        let keep = match self.keeps {
            Keeps::Messages(count) => Keep::Messages(u32::try_from(count).unwrap_or(u32::MAX)),
            Keeps::Share(share) | Keeps::Window(share) => Keep::Share(share),
        };
        Preset {
            threshold,
            keep,
            ratio: self.ratio,
        }
    }

    /// The same, keeping as much at the end as a profile says.
    pub fn keeping(self, keep: Keep) -> Strategy {
        let keeps = match (keep, self.keeps) {
            (Keep::Messages(count), _) => Keeps::Messages(u64::from(count)),
            (Keep::Share(share), Keeps::Share(_)) => Keeps::Share(share),
            (Keep::Share(share), _) => Keeps::Window(share),
        };
        Strategy { keeps, ..self }
    }
}

impl Default for Strategy {
    fn default() -> Strategy {
        STRATEGIES[0]
    }
}

/// A strategy nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy `{name}` (known: {})", NAMES.join(", "))]
pub struct UnknownStrategy {
    /// What was asked for.
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

/// What the model says to a snapshot, so that roles alternate.
const ACKNOWLEDGED: &str = "Got it. Thanks for the additional context!";

/// Stands beside the heading of a summary that code wrote in the form of an agent.
const LEGEND: &str = "[[n] is message n. After → stands the message that says otherwise.]";

const OPEN: &str = "<state_snapshot>";
const CLOSE: &str = "</state_snapshot>";

impl StandIn {
    /// Puts a summary under its heading and into the messages that are shown; what does not belong
    /// to the summary stands below it.
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
                let snapshot = format!("{heading}\n\n{OPEN}\n{summary}\n{CLOSE}{below}");
                vec![
                    (Role::User, snapshot),
                    (Role::Assistant, ACKNOWLEDGED.to_owned()),
                ]
            }
        }
    }

    /// Takes the summary out of the messages that show it.
    pub fn summary(stand_in: &[(Role, String)]) -> &str {
        let Some((_, text)) = stand_in.first() else {
            return "";
        };
        // The heading is one line in brackets; a summary made by hand may have none.
        let text = match text.split_once("\n\n") {
            Some((heading, rest)) if heading.starts_with('[') && heading.ends_with(']') => rest,
            _ => text,
        };
        let text = text.trim();
        let inner = text.strip_prefix(OPEN);
        let inner = inner.and_then(|text| Some(&text[..text.rfind(CLOSE)?]));
        inner.unwrap_or(text).trim()
    }

    /// The heading of a summary that code wrote in the form of an agent.
    pub(crate) fn heading_by_code(heading: &str) -> String {
        format!("{heading}\n{LEGEND}")
    }

    /// Says whether code wrote the summary in the form of an agent.
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
        assert!("rooo".parse::<Strategy>().is_err());
    }
}
