use std::sync::{Arc, Mutex, PoisonError};

use super::PLACES;
use crate::{Contexts, LogError, Registry, RegistryError, TaskError, file};

/// A registry that is open, for this call or for as long as the contexts are held.
#[derive(Clone, Debug)]
pub(crate) struct Kept(Arc<Mutex<Registry>>);

impl Kept {
    fn new(registry: Registry) -> Kept {
        Kept(Arc::new(Mutex::new(registry)))
    }

    /// Asks it, or tells it something; nobody else does meanwhile.
    pub(crate) fn with<T, E: Into<TaskError>>(
        &self,
        work: impl FnOnce(&Registry) -> Result<T, E>,
    ) -> Result<T, TaskError> {
        let registry = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(&registry).map_err(Into::into)
    }
}

impl Contexts {
    /// Opens the registry and puts it right where a crash left it behind the directories.
    pub fn registry(&self) -> Result<Registry, TaskError> {
        for place in PLACES {
            file::make_dir(&self.root.join(place))?;
        }
        let registry = Registry::open(&self.root)?;
        self.reconcile(&registry)?;
        Ok(registry)
    }

    /// Opens the registry once, puts it right, and keeps it open: for those who live long.
    ///
    /// From then on neither opening nor making a task takes longer the more tasks there are.
    pub fn keeping(self) -> Result<Contexts, TaskError> {
        let registry = self.registry()?;
        Ok(Contexts {
            kept: Some(Kept::new(registry)),
            ..self
        })
    }

    /// Works with the registry: with the one that is kept, or with one that is opened for this
    /// and put right.
    ///
    /// `work` must not ask for it again.
    pub fn with_registry<T, E: Into<TaskError>>(
        &self,
        work: impl FnOnce(&Registry) -> Result<T, E>,
    ) -> Result<T, TaskError> {
        self.reconciled()?.with(work)
    }

    /// As [`Contexts::with_registry`]; none where nothing may be written.
    ///
    /// All that the registry says of tasks can be read from the directories too, only more slowly.
    pub fn with_registry_if_writable<T, E: Into<TaskError>>(
        &self,
        work: impl FnOnce(&Registry) -> Result<T, E>,
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
    pub(super) fn reconciled(&self) -> Result<Kept, TaskError> {
        match &self.kept {
            Some(kept) => Ok(kept.clone()),
            None => self.registry().map(Kept::new),
        }
    }

    /// The registry as it is.
    pub(crate) fn opened(&self) -> Result<Kept, TaskError> {
        match &self.kept {
            Some(kept) => Ok(kept.clone()),
            None => Ok(Kept::new(Registry::open(&self.root)?)),
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
