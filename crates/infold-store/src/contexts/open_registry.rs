//! The registry of a contexts directory: opened for one call or kept open, corrected, and rebuilt if it is
//! damaged.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::PLACES;
use super::reconcile::ignore_unreadable;
use crate::database::{self, Identity};
use crate::{Contexts, LogError, Registry, RegistryError, TaskError, TaskRow, file};

/// A registry that is open, for this call or for as long as the contexts are held.
#[derive(Clone, Debug)]
pub(crate) struct OpenRegistry {
    /// None if it was closed to be rebuilt and that failed.
    registry: Arc<Mutex<Option<Registry>>>,
    /// Rows of new tasks, which are entered before any other request. If they are lost, the next process that
    /// opens the registry enters them from the task directories.
    unentered: Arc<Mutex<Vec<TaskRow>>>,
    /// The contexts from which it is rebuilt; they keep no registry open.
    contexts: Arc<Contexts>,
}

impl OpenRegistry {
    fn new(registry: Registry, contexts: &Contexts) -> OpenRegistry {
        let contexts = Contexts {
            kept: None,
            ..contexts.clone()
        };
        OpenRegistry {
            registry: Arc::new(Mutex::new(Some(registry))),
            unentered: Arc::default(),
            contexts: Arc::new(contexts),
        }
    }

    /// Runs `work` on the registry, exclusively. If the registry turns out to be damaged, it is rebuilt, and
    /// `work` runs again.
    pub(crate) fn with<T, E: Into<TaskError>>(
        &self,
        work: impl Fn(&Registry) -> Result<T, E>,
    ) -> Result<T, TaskError> {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match registry.take() {
            Some(opened) => opened,
            None => self.contexts.registry()?,
        };
        let opened = registry.insert(opened);
        let done = self
            .enter_new(opened)
            .and_then(|()| work(opened).map_err(Into::into));
        match done {
            Err(TaskError::Registry(RegistryError::Damaged { reason, .. })) => {
                let identity = opened.identity();
                // Close it first: the last connection that closes removes the journal of the database.
                *registry = None;
                let renewed = self.contexts.renew_registry(identity, &reason)?;
                work(registry.insert(renewed)).map_err(Into::into)
            }
            done => done,
        }
    }

    /// Enters the row of a new task with the next use of the registry.
    pub(crate) fn enter_soon(&self, row: TaskRow) {
        self.new_rows().push(row);
    }

    /// Enters the rows of new tasks. What cannot be entered now waits for the next time, unless the registry is damaged.
    fn enter_new(&self, registry: &Registry) -> Result<(), TaskError> {
        let mut rows = self.new_rows();
        if rows.is_empty() {
            return Ok(());
        }
        match registry.insert_all(&rows) {
            Ok(()) => rows.clear(),
            Err(error @ RegistryError::Damaged { .. }) => return Err(error.into()),
            Err(_) => {}
        }
        Ok(())
    }

    fn new_rows(&self) -> MutexGuard<'_, Vec<TaskRow>> {
        self.unentered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contexts {
    /// Opens the registry and adds what a crash kept out of it. A damaged one is set aside and rebuilt.
    pub fn registry(&self) -> Result<Registry, TaskError> {
        database::check_path(&self.root)?;
        self.settle_redaction()?;
        for place in PLACES {
            file::make_dir(&self.root.join(place))?;
        }
        match self.open_and_reconcile() {
            Err(TaskError::Registry(RegistryError::Damaged { reason, .. })) => {
                self.renew_registry(None, &reason)
            }
            opened => opened,
        }
    }

    fn open_and_reconcile(&self) -> Result<Registry, TaskError> {
        let registry = Registry::open(&self.root)?;
        self.reconcile(&registry)?;
        if !registry.is_filled()? {
            self.fill(&registry)?;
        }
        Ok(registry)
    }

    /// Enters all tasks that a registry does not know, those that ended included.
    fn fill(&self, registry: &Registry) -> Result<(), TaskError> {
        for id in self.tasks()? {
            if registry.get(id)?.is_none() {
                ignore_unreadable(self.enter(id, registry))?;
            }
        }
        Ok(registry.set_filled()?)
    }

    /// Sets a damaged registry aside, and creates a new one from the directories and from the rows that can
    /// still be read.
    pub(crate) fn renew_registry(
        &self,
        opened: Option<Identity>,
        reason: &str,
    ) -> Result<Registry, TaskError> {
        let aside = database::set_aside(&self.root, Registry::NAME, opened)?;
        let registry = Registry::open(&self.root)?;
        let carried = aside.as_ref().map_or(0, |aside| registry.carry_over(aside));
        self.reconcile(&registry)?;
        self.fill(&registry)?;
        if let Some(aside) = aside {
            self.tell(&format!(
                "{} was damaged ({reason}) and made anew from the tasks, with {carried} of the things learned of models; the damaged one is {}",
                self.root.join(Registry::NAME).display(),
                aside.display()
            ));
        }
        Ok(registry)
    }

    /// Opens the registry once, puts it right, and keeps it open: for those who live long.
    ///
    /// From then on neither opening nor making a task takes longer the more tasks there are.
    pub fn keeping(self) -> Result<Contexts, TaskError> {
        let kept = OpenRegistry::new(self.registry()?, &self);
        Ok(Contexts {
            kept: Some(kept),
            ..self
        })
    }

    /// Works with the registry: with the one that is kept, or with one that is opened for this
    /// and put right.
    ///
    /// `work` must not ask for it again.
    pub fn with_registry<T, E: Into<TaskError>>(
        &self,
        work: impl Fn(&Registry) -> Result<T, E>,
    ) -> Result<T, TaskError> {
        self.reconciled()?.with(work)
    }

    /// As [`Contexts::with_registry`]; none where nothing may be written.
    ///
    /// All that the registry says of tasks can be read from the directories too, only more slowly.
    pub fn with_registry_if_writable<T, E: Into<TaskError>>(
        &self,
        work: impl Fn(&Registry) -> Result<T, E>,
    ) -> Result<Option<T>, TaskError> {
        match self.reconciled() {
            Err(error) if is_read_only(&error) => Ok(None),
            opened => opened?.with(work).map(Some),
        }
    }

    /// Opens the registry for looking; there is none where nothing may be written.
    pub fn registry_if_writable(&self) -> Result<Option<Registry>, TaskError> {
        match self.registry() {
            Err(error) if is_read_only(&error) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// The registry, put right.
    pub(super) fn reconciled(&self) -> Result<OpenRegistry, TaskError> {
        match &self.kept {
            Some(kept) => Ok(kept.clone()),
            None => Ok(OpenRegistry::new(self.registry()?, self)),
        }
    }

    /// The registry as it is.
    pub(crate) fn opened(&self) -> Result<OpenRegistry, TaskError> {
        match &self.kept {
            Some(kept) => Ok(kept.clone()),
            None => match Registry::open(&self.root) {
                Err(RegistryError::Damaged { reason, .. }) => {
                    Ok(OpenRegistry::new(self.renew_registry(None, &reason)?, self))
                }
                opened => Ok(OpenRegistry::new(opened?, self)),
            },
        }
    }
}

fn is_read_only(error: &TaskError) -> bool {
    matches!(
        error,
        TaskError::Registry(RegistryError::ReadOnly { .. })
            | TaskError::Log(LogError::Denied { .. })
    )
}
