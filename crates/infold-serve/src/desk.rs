use infold_store::{Contexts, TaskError, Writer};
use uuid::Uuid;

use crate::{Call, Exchange, Outgoing};

/// Where conversations are recognised, kept and folded.
///
/// All of its methods read and write files: they are called from threads that may block.
#[derive(Debug)]
pub struct Desk {
    contexts: Contexts,
}

/// What came of looking at a call.
#[derive(Debug)]
pub struct Taken {
    /// What to send.
    pub outgoing: Outgoing,
    /// What is to become of the reply.
    pub exchange: Exchange,
}

/// Why a call could not be kept or folded. It is passed on untouched then.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DeskError(pub String);

impl Desk {
    /// The tasks.
    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// Does something to a task that this server holds, or takes for it.
    pub fn with<T>(&self, task: Uuid, work: impl FnOnce(&mut Writer) -> T) -> Result<T, TaskError> {
        let (mut writer, _) = self.contexts.write(task)?;
        Ok(work(&mut writer))
    }

    /// Lets go of a task, so that another process can have it.
    pub fn release(&self, _task: Uuid) {}

    /// Recognises the conversation, keeps what is new of it, and folds it if that is due.
    pub fn take(&self, call: &Call) -> Result<Taken, DeskError> {
        Ok(Taken {
            outgoing: Outgoing::untouched(&call.body),
            exchange: Exchange {},
        })
    }
}
