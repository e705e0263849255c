//! Looks for the earlier round that a new message is tied to by an id.

use infold_log::{
    EventId, Facts, Item, Mark, Past, Point, Record, Rounds, Seq, Shown, goes_with_previous, reach,
    tied_to,
};
use memchr::memmem::Finder;

use crate::entry::MessageEntry;
use crate::{Log, LogError};

/// The most messages at the end of a fold that are searched for the counterpart of a new one.
const MAX_FOLDED_LOOKED_AT: usize = 256;

/// Finds ids in messages.
struct Finders(Vec<Finder<'static>>);

impl Finders {
    fn of(ids: &[&str]) -> Finders {
        let quoted = ids.iter().map(|id| infold_wire::quote(id));
        Finders(quoted.map(|id| Finder::new(&id).into_owned()).collect())
    }

    fn find(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|finder| finder.find(bytes).is_some())
    }
}

/// A log, and messages that are about to be appended to it.
pub(crate) struct Ahead<'a, M> {
    pub log: &'a Log,
    /// The messages as they came,
    pub messages: &'a [M],
    /// and their new index entries.
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
        let finders = Finders::of(&ids);
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
                Some(at) => finders.find(self.messages[at].as_ref()),
                None => finders.find(&self.log.message(seq)?),
            };
            holders.extend(Some(seq).filter(|_| held));
        }
        match Seq::new(last + 1) {
            Some(seq) => tied_to(seq, &holders, self),
            None => Ok(None),
        }
    }

    /// Returns the newest fold, if it or an older one hides the counterpart of the message after these:
    /// providers refuse one without the other.
    pub fn hidden_by(&self, rounds: &Rounds, facts: &Facts) -> Result<Option<EventId>, LogError> {
        let ids = rounds.unresolved(facts);
        if ids.is_empty() {
            return Ok(None);
        }
        let items = self.log.state().shown().items().iter().rev();
        let mut folds = items.filter_map(|item| match item {
            Item::Fold(fold) => Some(fold),
            Item::Run(_) => None,
        });
        let newest = folds.clone().next().map(|fold| fold.id);
        let runs = folds.by_ref().flat_map(|fold| fold.runs.iter().rev());
        let finders = Finders::of(&ids);
        for seq in runs
            .flat_map(|run| run.seqs().rev())
            .take(MAX_FOLDED_LOOKED_AT)
        {
            if finders.find(&self.log.message(seq)?) {
                return Ok(newest);
            }
        }
        Ok(None)
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
