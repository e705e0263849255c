//! Shows a task: the command prints it and the server returns it, in the same words.

mod task;
mod entries;
mod pieces;
mod folds;
mod recall;
mod describe;
mod text;

pub use describe::{describe, kind};
pub use entries::{LogEntry, RecalledMessage};
pub use folds::{FoldEntry, fold_json, fold_texts};
pub use pieces::ViewEntry;
pub use recall::{RecallTarget, RecallTargetError, RecalledSpans};
pub use task::{TaskReport, row};
pub use text::{LineKind, LineVisitor, ViewLine, fold_lines, speaker};

use infold_log::steer::{Side, Target, locate};
use infold_log::{Past as _, Point, Seq, Shown, Span};
use infold_store::{Log, LogError, StepError};

/// A log at a point in the past.
#[derive(Debug)]
pub struct LogSnapshot {
    /// The log.
    pub log: Log,
    /// The point.
    pub at: Point,
    /// The view at the point.
    pub shown: Shown,
}

impl LogSnapshot {
    /// Takes a log in its current state, or in the state right after a target.
    pub fn new(log: Log, at: Option<Target>) -> Result<LogSnapshot, StepError> {
        let at = match at {
            Some(at) => {
                let at = log.with_lookups(Side::To, at)?;
                locate(log.state(), Side::To, at, &log)?
            }
            None => log.state().at(),
        };
        let shown = log.shown(at)?;
        Ok(LogSnapshot { log, at, shown })
    }

    /// Returns the span of all messages; none if there are none.
    pub fn all(&self) -> Option<Span> {
        Seq::new(self.at.seq).and_then(|last| Span::new(Seq::FIRST, last))
    }
}

/// The number of messages that are read before an error of the visitor stops the reading.
const GROUP_MESSAGES: u64 = 256;

/// Visits messages until the visitor returns an error.
fn each_message<E: From<LogError>>(
    log: &Log,
    span: Span,
    mut visit: impl FnMut(Seq, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut from = span.from();
    while from <= span.to() {
        let last = Seq::new(from.get() + GROUP_MESSAGES - 1).unwrap_or(from);
        let group = Span::new(from, last.min(span.to())).unwrap_or(Span::one(from));
        let mut visited = Ok(());
        log.each_message(group, &mut |source, bytes| {
            if let (infold_log::Source::Message(seq), Ok(())) = (source, &visited) {
                visited = visit(seq, bytes);
            }
            Ok(())
        })?;
        visited?;
        from = group.to().next();
    }
    Ok(())
}
