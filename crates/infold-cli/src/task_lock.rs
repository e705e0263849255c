//! Waits for the lock of a task, with the token of the environment.

use infold_store::TaskError;

/// Opens a task as [`infold_serve::acquire_task`] does.
pub fn acquire<T>(open: impl FnMut() -> Result<T, TaskError>) -> Result<T, TaskError> {
    let token = std::env::var("INFOLD_TOKEN").ok();
    infold_serve::acquire_task(token.as_deref(), open)
}
