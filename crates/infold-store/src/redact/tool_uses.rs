//! Arguments and results of tools in messages that change: records of tools repeat them.

use std::collections::HashMap;

use infold_wire::tool_use::{tool_calls, tool_results};
use infold_wire::{Message, MessageError, quote};

/// What arguments and results were, and what they are since: raw JSON, as records of tools have it.
///
/// A pattern may match in a message what it does not match in the record, where less stands around it.
#[derive(Debug, Default)]
pub struct ChangedToolUses(HashMap<String, String>);

impl ChangedToolUses {
    /// Adds those of a message that changes.
    pub fn add(&mut self, came: &[u8], redacted: &[u8]) -> Result<(), MessageError> {
        let (came, redacted) = (Message::read(came)?, Message::read(redacted)?);
        for (was, is) in tool_calls(&came).into_iter().zip(tool_calls(&redacted)) {
            self.put(was.args, is.args);
        }
        for (was, is) in tool_results(&came).into_iter().zip(tool_results(&redacted)) {
            self.put(quote(&was.text), quote(&is.text));
        }
        Ok(())
    }

    fn put(&mut self, was: String, is: String) {
        if was != is {
            self.0.insert(was, is);
        }
    }

    /// Returns what arguments or a result became.
    pub fn get(&self, raw: &str) -> Option<&str> {
        self.0.get(raw).map(String::as_str)
    }
}
