//! Arguments and results of tools in messages that change: records of tools repeat them.

use std::collections::HashMap;

use infold_wire::tool_use::{tool_calls, tool_results};
use infold_wire::{Message, MessageError, quote};

use super::damaged;
use super::rewrite::Rewrite;
use super::texts::marker;
use crate::file::{Access, Growing};
use crate::lines::Lines;
use crate::{TaskError, stored};

/// The changed arguments and results, by their original form: raw JSON, as records of tools have it.
///
/// A pattern may match in a message but not in the record, where less text surrounds it.
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

    /// Returns the redacted form of arguments or a result.
    pub fn get(&self, raw: &str) -> Option<&str> {
        self.0.get(raw).map(String::as_str)
    }
}

impl Rewrite<'_> {
    /// Finds the arguments and results of tools that change.
    pub fn tool_uses(&self) -> Result<ChangedToolUses, TaskError> {
        let mut tools = ChangedToolUses::default();
        for (one, event) in self.family.iter().zip(&self.events) {
            let file = Growing::open(one.dir.join("messages.jsonl"), Access::Read)?;
            let mut lines = Lines::new(&file, 0);
            while let Some(line) = lines.next()? {
                let Some(stored) = stored::split(line.bytes).filter(|_| line.whole) else {
                    continue;
                };
                if !one.messages.contains_key(&stored.seq.get()) {
                    continue;
                }
                let came = stored.body(line.bytes);
                let redacted = self.redacted(&came, &marker(*event));
                redacted
                    .and_then(|redacted| tools.add(&came, &redacted))
                    .map_err(|error| damaged(&file, line.offset, &error))?;
            }
        }
        Ok(tools)
    }
}
