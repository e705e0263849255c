//! The ancestors of a log that are open: a few at a time, whatever the depth.

use std::collections::HashMap;

use infold_log::Point;
use uuid::Uuid;

use super::ancestor::Ancestor;
use super::lineage::Lineage;
use crate::file::Access;
use crate::{Log, LogError};

/// Ancestors that are open, and those that are closed but whose sidecars had to be derived.
#[derive(Debug, Default)]
pub(super) struct Ancestors {
    /// The one that was used last comes last.
    open: Vec<Ancestor>,
    derived: HashMap<Uuid, Ancestor>,
    /// How many derivations are under way, one for the sake of another.
    nesting: u32,
}

/// The most logs that are open at a time: look-ups concern the beginning, the end, or the log next to that.
const MAX_OPEN: usize = 3;
/// A damaged sidecar is found while another is derived, and so on: further than this only a repair helps.
const MAX_NESTING: u32 = 16;

impl Ancestors {
    /// How many files are open at most.
    pub const MAX_DESCRIPTORS: u64 = 5 * MAX_OPEN as u64;

    /// Counts one more nested derivation; returns the depth.
    fn enter(&mut self) -> u32 {
        self.nesting += 1;
        self.nesting
    }

    /// Takes one out that is known.
    fn take(&mut self, task: Uuid) -> Option<Ancestor> {
        match self.open.iter().position(|one| one.task == task) {
            Some(at) => Some(self.open.remove(at)),
            None => self.derived.remove(&task),
        }
    }

    /// Takes one in, and closes those that were not used for the longest time.
    fn put(&mut self, ancestor: Ancestor) {
        self.open.push(ancestor);
        while self.open.len() > MAX_OPEN {
            let mut oldest = self.open.remove(0);
            if oldest.is_derived {
                oldest.close();
                self.derived.insert(oldest.task, oldest);
            }
        }
    }
}

impl Lineage {
    /// Runs a look-up on an ancestor. If its sidecars cannot be used, they are derived first.
    pub(super) fn with<T>(
        &self,
        index: usize,
        ask: impl Fn(&mut Ancestor) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        match self.ask(index, &ask) {
            Err(error) if error.is_of_sidecar() => self.derive_older(index)?,
            asked => return asked,
        }
        // The sidecars were behind; or a record in their middle is damaged, which the second look-up finds
        // again.
        self.derive(index, Access::Read)?;
        match self.ask(index, &ask) {
            Err(error) if error.is_of_sidecar() => self.derive(index, Access::Rederive)?,
            asked => return asked,
        }
        self.ask(index, &ask)
    }

    fn ask<T>(
        &self,
        index: usize,
        ask: &impl Fn(&mut Ancestor) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let task = self.link(index)?.map(|link| link.task);
        let known = task.and_then(|task| self.ancestors.borrow_mut().take(task));
        let mut ancestor = match known {
            Some(known) => known,
            None => self.open_ancestor(index)?,
        };
        let answer = ask(&mut ancestor);
        if !matches!(&answer, Err(error) if error.is_of_sidecar()) {
            self.ancestors.borrow_mut().put(ancestor);
        }
        answer
    }

    /// Derives the sidecars of the ancestors of an ancestor that lack theirs.
    ///
    /// The oldest come first: a derivation looks up entries of older tasks, which then need no derivation
    /// themselves.
    fn derive_older(&self, index: usize) -> Result<(), LogError> {
        let mut last = index;
        while self.link(last + 1)?.is_some() {
            last += 1;
        }
        for older in (index + 1..=last).rev() {
            match self.ask(older, &Ancestor::check_end) {
                Err(error) if error.is_of_sidecar() => self.derive(older, Access::Read)?,
                checked => checked?,
            }
        }
        Ok(())
    }

    fn derive(&self, index: usize, access: Access) -> Result<(), LogError> {
        self.check_link(index)?;
        let opened = self.open_ancestor(index)?;
        let (task, end) = (opened.task, opened.end());
        let mut log = Log::with_base(opened.dir(), access, opened.base())?;
        log.lineage = self.of_ancestor(index);
        let nesting = log.lineage.ancestors.get_mut().enter();
        let derived = if nesting > MAX_NESTING {
            Err(log.sidecar_damaged("so are those of other tasks"))
        } else {
            log.catch_up(Some(end)).map(drop)
        };
        self.ancestors.replace(log.lineage.ancestors.take());
        let mut ancestors = self.ancestors.borrow_mut();
        ancestors.nesting -= 1;
        derived?;
        let Point { seq, event } = log.state().at();
        if seq < end.seq || event < end.event {
            return Err(LogError::NoParent {
                parent: task.to_string(),
                reason: "ends before the point where it was forked",
            });
        }
        ancestors.put(Ancestor::derived(task, log, end));
        Ok(())
    }
}
