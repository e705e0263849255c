//! A file of lines that replaces another one if it differs from it.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::{LogError, file};

/// A file of lines on its way; kept only if it is not what it was.
pub(super) struct RewrittenFile {
    /// None if nothing is to be written.
    out: Option<(PathBuf, BufWriter<File>)>,
    pub is_changed: bool,
}

impl RewrittenFile {
    pub fn create(dir: Option<&Path>, name: &str) -> Result<RewrittenFile, LogError> {
        let create = |dir: &Path| {
            let path = dir.join(name);
            let out = BufWriter::with_capacity(1 << 18, file::create(&path)?);
            Ok((path, out))
        };
        Ok(RewrittenFile {
            out: dir.map(create).transpose()?,
            is_changed: false,
        })
    }

    pub fn line(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        let Some((path, out)) = &mut self.out else {
            return Ok(());
        };
        let written = out.write_all(bytes).and_then(|()| out.write_all(b"\n"));
        written.map_err(|error| LogError::io(path, "written", error))
    }

    pub fn finish(self) -> Result<(), LogError> {
        let Some((path, out)) = self.out else {
            return Ok(());
        };
        let fail = |error| LogError::io(&path, "written", error);
        let done = out.into_inner().map_err(|error| fail(error.into_error()))?;
        let ended = if self.is_changed {
            done.sync_data()
        } else {
            fs::remove_file(&path)
        };
        ended.map_err(fail)
    }
}
