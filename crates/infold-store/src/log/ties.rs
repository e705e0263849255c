//! Looks for the earlier round that a new message is tied to by an id.

use infold_log::{
    EventId, Facts, Mark, Past, Point, Record, Rounds, Seq, Shown, goes_with_previous, reach,
    tied_to,
};
use memchr::memmem::Finder;

use crate::entry::MessageEntry;
use crate::{Log, LogError};

/// A log, and messages that are about to be appended to it.
pub(crate) struct Ahead<'a, M> {
    pub log: &'a Log,
    /// The messages as they came,
    pub messages: &'a [M],
    /// and what the index will know of them.
    pub added: &'a [MessageEntry],
}

impl<M: AsRef<[u8]>> Ahead<'_, M> {
    /// The earlier round that the message behind these is tied to.
    ///
    /// Only messages that hold an id which no open use explains are worth a look, and those are few.
    pub fn tied(&self, rounds: &Rounds, facts: &Facts) -> Result<Option<Seq>, LogError> {
        let ids = rounds.unresolved(facts);
        let follows = goes_with_previous(facts);
        if ids.is_empty() && !follows {
            return Ok(None);
        }
        let quoted: Vec<String> = ids.iter().map(|id| infold_wire::quote(id)).collect();
        let finders: Vec<Finder<'_>> = quoted.iter().map(|id| Finder::new(id)).collect();
        let holds = |bytes: &[u8]| finders.iter().any(|finder| finder.find(bytes).is_some());
        let after = self.log.state().at().seq;
        let last = after + self.added.len() as u64;
        let mut shown = self.log.state().shown().clone();
        shown.append_up_to(after, last);
        let reach = reach(&shown, self)?;
        let mut holders = Vec::new();
        if follows {
            let last = reach.last().map(|span| span.to());
            holders.extend(last.filter(|last| Some(*last) == shown.last()));
        }
        let spans = reach.into_iter().filter(|_| !follows);
        for seq in spans.flat_map(|span| span.seqs()) {
            let held = match self.ahead(seq) {
                Some(at) => holds(self.messages[at].as_ref()),
                None => holds(&self.log.message(seq)?),
            };
            holders.extend(Some(seq).filter(|_| held));
        }
        match Seq::new(last + 1) {
            Some(seq) => tied_to(seq, &holders, self),
            None => Ok(None),
        }
    }

    /// Where a message stands among those that are about to be appended.
    fn ahead(&self, seq: Seq) -> Option<usize> {
        let at = seq.get().checked_sub(self.log.state().at().seq + 1)?;
        usize::try_from(at).ok().filter(|at| *at < self.added.len())
    }
}

impl<M: AsRef<[u8]>> Past for Ahead<'_, M> {
    type Error = LogError;

    fn record(&self, seq: Seq) -> Result<Record, LogError> {
        match self.ahead(seq) {
            Some(at) => Ok(self.added[at].record),
            None => self.log.record(seq),
        }
    }

    fn mark(&self, event: EventId) -> Result<Mark, LogError> {
        self.log.mark(event)
    }

    fn shown(&self, point: Point) -> Result<Shown, LogError> {
        self.log.shown(point)
    }
}
