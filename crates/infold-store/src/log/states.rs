//! The sidecar of states (`states.idx`): the view after some events, so that it is found without replaying the
//! log.

use std::path::PathBuf;

use infold_log::Shown;

use crate::LogError;
use crate::entry::Base;
use crate::file::Access;
use crate::file::Growing;
use crate::snapshot;
use crate::table::{checksum, put, unsealed};

/// Snapshots of states; new ones wait in memory like records of a table.
#[derive(Debug)]
pub struct States {
    file: Growing,
    tail: Vec<u8>,
}

impl States {
    /// Opens `states.idx`.
    pub fn open(path: PathBuf, access: Access) -> Result<States, LogError> {
        Ok(States {
            file: match access {
                // States that are derived again stay in memory, because they are small compared to the log.
                Access::Rederive => Growing::missing(path),
                _ => Growing::open_derived(path, access)?,
            },
            tail: Vec::new(),
        })
    }

    /// Gives the descriptor back until [`States::reopen`].
    pub fn release(&mut self) {
        self.file.release();
    }

    /// Makes it readable again.
    pub fn reopen(&mut self) -> Result<(), LogError> {
        self.file.reopen()
    }

    /// Stores the view after an event.
    pub fn push(&mut self, event: u64, shown: &Shown) -> Base {
        let mut bytes = snapshot::encode(shown);
        let sum = checksum(event, &bytes);
        put(&mut bytes, &[sum]);
        let offset = self.file.len() + self.tail.len() as u64;
        self.tail.extend_from_slice(&bytes);
        Base::Snapshot {
            offset,
            len: bytes.len() as u64,
        }
    }

    /// Returns the view after an event, if it is stored at this place.
    pub fn get(&self, event: u64, offset: u64, len: u64) -> Result<Shown, LogError> {
        let bytes = match offset.checked_sub(self.file.len()) {
            Some(at) => {
                let at = at as usize;
                self.tail
                    .get(at..at + len as usize)
                    .unwrap_or_default()
                    .to_vec()
            }
            None => self.file.bytes(offset, len as usize)?,
        };
        let damaged = || LogError::damaged(self.file.path(), offset, "not a snapshot");
        unsealed(event, &bytes)
            .and_then(snapshot::decode)
            .ok_or_else(damaged)
    }

    /// Writes the pending states.
    pub fn flush(&mut self) -> Result<(), LogError> {
        if self.tail.is_empty() {
            return self.file.make();
        }
        self.file.append(&self.tail)?;
        self.tail.clear();
        Ok(())
    }

    /// Truncates the file to the part in use.
    pub fn trim(&mut self) -> Result<(), LogError> {
        let end = self.file.len();
        self.file.cut(end)
    }

    /// Drops the states after `end`; new ones overwrite them.
    pub fn cut(&mut self, end: u64) {
        self.tail.clear();
        self.file.forget(end);
    }
}
