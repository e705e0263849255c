//! Steps that files go back with.

use infold_log::steer::{self, Side, Target};
use infold_store::{Restoration, StepError, Writer};

use crate::checkpoint::{BegunRestore, FileHistory, RestoreReport};

/// Saves the present files, before a rewind to a target whose files are restored.
pub fn begin_rewind(
    writer: &mut Writer,
    side: Side,
    target: Target,
    history: &FileHistory,
) -> Result<BegunRestore, StepError> {
    let log = writer.log();
    let whole = steer::whole_output(log.state(), side, target, log)?;
    let files = history.files_of(log, side, whole)?;
    Ok(history.begin(writer, &files.workspace, files.at)?)
}

/// Records a step, and puts the files in place that it was begun with.
pub fn carry_out<T>(
    begun: Option<BegunRestore>,
    step: impl FnOnce(Option<Restoration>) -> Result<T, StepError>,
) -> Result<(T, Option<RestoreReport>), StepError> {
    let Some(begun) = begun else {
        return Ok((step(None)?, None));
    };
    match step(Some(begun.restoration())) {
        Ok(done) => Ok((done, Some(begun.carry_out()?))),
        Err(error) => {
            begun.abandon()?;
            Err(error)
        }
    }
}
