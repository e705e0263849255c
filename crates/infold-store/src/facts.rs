//! The file of facts that a summarizer collected from the messages of a task: derived from the log, so it may
//! be deleted at any time.

use std::fs;
use std::io::{self, Write};

use crate::{Log, file};

const NAME: &str = "facts.bin";
const NEW_NAME: &str = "facts.new";
/// A larger file was not written by us.
const MAX_BYTES: u64 = 64 << 20;

impl Log {
    /// Returns the facts that were written last; none if there are none, or they cannot be read.
    pub fn facts(&self) -> Option<Vec<u8>> {
        let path = self.dir().join(NAME);
        let size = fs::metadata(&path).ok()?.len();
        (size <= MAX_BYTES).then(|| fs::read(path).ok())?
    }

    /// Replaces the facts. If they cannot be written, the next fold collects them again.
    pub fn keep_facts(&self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) {
        let (new, path) = (self.dir().join(NEW_NAME), self.dir().join(NAME));
        let written = file::create(&new).is_ok_and(|mut made| write(&mut made).is_ok());
        if !written || fs::rename(&new, &path).is_err() {
            let _ = fs::remove_file(&new);
        }
    }
}
