//! What is said of a task: the command prints it, the server answers with it, in the same words.

mod task;
mod entries;
mod pieces;
mod folds;
mod describe;

pub use describe::{describe, kind};
pub use entries::{Entry, Recalled};
pub use folds::Folded;
pub use pieces::Piece;
pub use task::{Whole, row};

use infold_log::steer::{Side, Target, locate};
use infold_log::{Past as _, Point, Seq, Shown, Span};
use infold_store::{Log, LogError, StepError};

/// A log as it was at a point.
#[derive(Debug)]
pub struct Seen {
    /// The log.
    pub log: Log,
    /// The point.
    pub at: Point,
    /// What was shown then.
    pub shown: Shown,
}

impl Seen {
    /// Looks at a log as it is, or as it was right after something.
    pub fn new(log: Log, at: Option<Target>) -> Result<Seen, StepError> {
        let at = match at {
            Some(at) => locate(log.state(), Side::To, at, &log)?,
            None => log.state().at(),
        };
        let shown = log.shown(at)?;
        Ok(Seen { log, at, shown })
    }

    /// All messages there were; none if there was none.
    pub fn all(&self) -> Option<Span> {
        Seq::new(self.at.seq).and_then(|last| Span::new(Seq::FIRST, last))
    }
}

/// How many messages are read before anybody asks whether to go on.
const GROUP: u64 = 256;

/// Visits messages until the visitor has enough.
fn each<E: From<LogError>>(
    log: &Log,
    span: Span,
    mut visit: impl FnMut(Seq, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut from = span.from();
    while from <= span.to() {
        let last = Seq::new(from.get() + GROUP - 1).unwrap_or(from);
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
