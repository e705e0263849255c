use infold_log::EventId;
use infold_store::{LogError, What};

use super::Talk;
use crate::request::Quirks;

/// What the log says of a model that wants roles to alternate.
pub(super) const ALTERNATE: &str =
    "(roles must alternate: from now on something stands between them)";

/// What the log says of a model that takes only plain messages.
pub(super) const PLAIN: &str = "(from now on messages are sent without what it does not know)";

impl Talk<'_> {
    /// What the model has lately refused messages for.
    pub(super) fn quirks(&self) -> Result<Quirks, LogError> {
        /// So far back it is looked for; then it is found out again.
        const LOOK_BACK: u64 = 64;
        let mut quirks = Quirks::default();
        let log = self.writer.log();
        let newest = log.state().at().event;
        let oldest = newest.saturating_sub(LOOK_BACK);
        for id in (oldest + 1..=newest).rev().filter_map(EventId::new) {
            if let What::Failure(failure) = log.event(id)?.what
                && failure.model == self.connection.model
                && failure.provider == self.connection.endpoint.name
            {
                quirks.alternate |= failure.error.contains(ALTERNATE);
                quirks.plain |= failure.error.contains(PLAIN);
            }
        }
        Ok(quirks)
    }
}
