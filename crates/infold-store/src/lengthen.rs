//! Fills the end of a log that lost entries which another task continues.

use infold_log::{Point, Role};
use infold_wire::{Wire, render_text};
use uuid::Uuid;

use crate::mend::MAX_GONE_LINES;
use crate::{AppendError, Contexts, Durability, TaskError, What, Writer};

impl Contexts {
    /// Appends notes and events that change nothing to a task until it reaches the point from which another one
    /// continues it. Says how many messages were lost; nothing if none was, or too many to be believed.
    pub(crate) fn lengthen(
        &self,
        task: Uuid,
        to: Point,
        wire: Wire,
    ) -> Result<Option<String>, TaskError> {
        let dir = match self.place(task) {
            Some(dir) => dir,
            None if to.seq.max(to.event) > MAX_GONE_LINES => return Ok(None),
            None => self.replace_lost(task, wire)?,
        };
        let opened = Writer::open(&dir, Durability::Turn, &self.dirs());
        let (mut writer, _) = opened.map_err(|source| TaskError::opening(task, source))?;
        let end = writer.log().state().at();
        let lost = to.seq.saturating_sub(end.seq);
        let is_short = lost > 0 || to.event > end.event;
        if !is_short || lost.max(to.event.saturating_sub(end.event)) > MAX_GONE_LINES {
            return Ok(None);
        }
        let wire = writer.log().wire();
        for seq in end.seq + 1..=to.seq {
            let note = render_text(wire, Role::User, &note_of_loss(seq));
            match writer.append(&[note]) {
                Err(AppendError::Log(error)) => return Err(error.into()),
                appended => appended.expect("a note of ours is a message"),
            };
        }
        while writer.log().state().at().event < to.event {
            writer.step(What::Other("damaged".to_owned()))?;
        }
        Ok(Some(format!(
            "{lost} messages that others continue were lost, and replaced by notes"
        )))
    }
}

/// Returns the note in place of a lost message.
pub(crate) fn note_of_loss(seq: u64) -> String {
    format!("[message {seq} was lost from the disk]")
}
