//! A request to read a part of a log in full: messages, or a fold with the messages that it covers.

use std::str::FromStr;

use infold_log::steer::Refused;
use infold_log::{EventId, Item, Past as _, Point, Seq, Span};
use infold_store::{EventLine, Log, StepError, What};

/// Messages, or a fold, to be read in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecallTarget {
    /// From one message to another; to the last one if none is named.
    Messages(Seq, Option<Seq>),
    /// A fold: its text, and the covered messages.
    Fold(EventId),
}

/// A text that names neither messages nor a fold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecallTargetError {
    /// Name something else.
    #[error("`{0}` is neither a message (12), a range (12..40, 12-40, 12..) nor a fold (e3)")]
    Unknown(String),
    /// Turn it round.
    #[error("the range `{0}` ends before it starts")]
    Reversed(String),
}

impl FromStr for RecallTarget {
    type Err = RecallTargetError;

    fn from_str(text: &str) -> Result<RecallTarget, RecallTargetError> {
        let unknown = || RecallTargetError::Unknown(text.to_owned());
        if let Some(event) = text.strip_prefix('e') {
            let event = event.parse().ok().and_then(EventId::new);
            return event.map(RecallTarget::Fold).ok_or_else(unknown);
        }
        let seq = |text: &str| text.parse().ok().and_then(Seq::new).ok_or_else(unknown);
        let ends = text.split_once("..").or_else(|| text.split_once('-'));
        let (from, to) = match ends {
            None => (seq(text)?, Some(seq(text)?)),
            Some((from, "")) => (seq(from)?, None),
            Some((from, to)) => (seq(from)?, Some(seq(to)?)),
        };
        if to.is_some_and(|to| to < from) {
            return Err(RecallTargetError::Reversed(text.to_owned()));
        }
        Ok(RecallTarget::Messages(from, to))
    }
}

/// The parts of a log that a target stands for.
#[derive(Clone, Debug)]
pub struct RecalledSpans {
    /// The fold, if the target is one.
    pub fold: Option<EventLine>,
    /// The messages, in order.
    pub spans: Vec<Span>,
}

impl RecallTarget {
    /// Finds the messages of a target, all of which must be there.
    pub fn find(self, log: &Log) -> Result<RecalledSpans, StepError> {
        let last = log.state().at().seq;
        match self {
            RecallTarget::Messages(from, to) => {
                let to = to.or(Seq::new(last)).unwrap_or(from).max(from);
                if to.get() > last {
                    let seq = to.get();
                    return Err(Refused::NoMessage { seq, last });
                }
                let spans = Span::new(from, to).into_iter().collect();
                Ok(RecalledSpans { fold: None, spans })
            }
            RecallTarget::Fold(id) => {
                let last = log.state().at().event;
                if id.get() > last {
                    let event = id.get();
                    return Err(Refused::NoEvent { event, last });
                }
                let line = log.event(id)?;
                let spans = match &line.what {
                    What::Fold(fold) => covered(log, &line)?.unwrap_or(vec![fold.span]),
                    What::Mask(mask) => vec![Span::one(mask.seq)],
                    _ => return Err(Refused::NotAFold { event: id }),
                };
                let fold = Some(line);
                Ok(RecalledSpans { fold, spans })
            }
        }
    }
}

/// The messages that a fold covered when it was made, without those between them that a rewind had hidden.
fn covered(log: &Log, line: &EventLine) -> Result<Option<Vec<Span>>, StepError> {
    let shown = log.shown(Point {
        seq: line.after,
        event: line.id.get(),
    })?;
    Ok(shown.items().iter().find_map(|item| match item {
        Item::Fold(fold) if fold.id == line.id => Some(fold.runs.clone()),
        _ => None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_in_many_ways() {
        let seq = |number| Seq::new(number).unwrap();
        let table = [
            ("12", RecallTarget::Messages(seq(12), Some(seq(12)))),
            ("12..40", RecallTarget::Messages(seq(12), Some(seq(40)))),
            ("12-40", RecallTarget::Messages(seq(12), Some(seq(40)))),
            ("12..", RecallTarget::Messages(seq(12), None)),
            ("e239", RecallTarget::Fold(EventId::new(239).unwrap())),
        ];
        for (text, target) in table {
            assert_eq!(text.parse(), Ok(target), "{text}");
        }
        for wrong in ["", "0", "..", "..4", "e", "e0", "x", "1..x", "40..12", "-3"] {
            assert!(wrong.parse::<RecallTarget>().is_err(), "{wrong}");
        }
    }
}
