use infold_wire::{Reply, Trouble};

use crate::{Call, DeskError, Outgoing};

/// A request under way, and what is to become of its reply.
///
/// All of its methods read and write files: they are called from threads that may block.
#[derive(Debug)]
pub struct Exchange {}

impl Exchange {
    /// The model that is asked.
    pub fn model(&self) -> &str {
        ""
    }

    /// The client wants the reply as it is made.
    pub fn is_stream(&self) -> bool {
        false
    }

    /// What the client is told of it: names and values of `x-infold-…` headers.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The provider found it too long: folds harder, and returns what to send instead; nothing if no more can be done.
    pub fn refused(
        &mut self,
        _call: &Call,
        _trouble: &Trouble,
    ) -> Result<Option<Outgoing>, DeskError> {
        Ok(None)
    }

    /// How long the request was at last, in the model's tokens, and how long it may be: for telling the client.
    pub fn size(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Records a whole reply.
    pub fn record(&mut self, _reply: Reply) -> Result<(), DeskError> {
        Ok(())
    }

    /// Records that no whole reply came, and why.
    pub fn failed(&mut self, _why: &str) -> Result<(), DeskError> {
        Ok(())
    }
}
