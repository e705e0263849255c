//! The floor: messages that are never hidden.

use crate::{Past, Role, Seq, Shown, Span, Sums};

/// The messages that are never hidden: the system prompt and the first request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Floor {
    /// In ascending order.
    seqs: Vec<Seq>,
    request: Option<Seq>,
}

impl Floor {
    /// Finds the floor of a view. The time is proportional to the number of runs, not of messages.
    pub fn of<P: Past>(shown: &Shown, past: &P) -> Result<Floor, P::Error> {
        let path = shown.path();
        let mut seqs = Vec::new();
        for seq in path.iter().flat_map(|run| run.seqs()) {
            if past.record(seq)?.role != Role::System {
                break;
            }
            seqs.push(seq);
        }
        let request = first_request(&path, past)?;
        seqs.extend(request);
        Ok(Floor { seqs, request })
    }

    /// Says whether a message belongs to the floor.
    pub fn holds(&self, seq: Seq) -> bool {
        self.seqs.binary_search(&seq).is_ok()
    }

    /// Returns its messages in order.
    pub fn seqs(&self) -> &[Seq] {
        &self.seqs
    }

    /// Returns the first request; in a view, notes and stand-ins follow it.
    pub fn request(&self) -> Option<Seq> {
        self.request
    }
}

/// Returns the totals of all messages before `seq`.
pub(crate) fn sums_before<P: Past>(seq: Seq, past: &P) -> Result<Sums, P::Error> {
    match seq.prev() {
        Some(previous) => Ok(past.record(previous)?.sums),
        None => Ok(Sums::default()),
    }
}

/// Returns the first request of the user on a path. Each run is searched by the running total of requests, not message
/// by message.
fn first_request<P: Past>(path: &[Span], past: &P) -> Result<Option<Seq>, P::Error> {
    for run in path {
        let before = sums_before(run.from(), past)?.requests;
        let found = first_above(*run, before, |sums| sums.requests, past)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Returns the first message of a run at which a running total exceeds `before`, by binary search.
pub(crate) fn first_above<P: Past>(
    run: Span,
    before: u64,
    total: impl Fn(Sums) -> u64,
    past: &P,
) -> Result<Option<Seq>, P::Error> {
    if total(past.record(run.to())?.sums) <= before {
        return Ok(None);
    }
    let (mut low, mut high) = (run.from().get(), run.to().get());
    while low < high {
        let middle = low + (high - low) / 2;
        let seq = Seq::new(middle).expect("seqs of a run are not zero");
        if total(past.record(seq)?.sums) > before {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(Seq::new(low))
}
