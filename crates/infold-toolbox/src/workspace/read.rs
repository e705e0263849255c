//! The tool `read`: a file, or a range of its lines.

use std::io::{BufRead as _, BufReader};

use super::file::{open_file, read_failure};
use super::root::MissingParents;
use super::{CallContext, Workspace};
use crate::arguments::CallArguments;
use crate::failure::CallProblem;

/// The arguments of the tool.
pub const ARGUMENTS: &[&str] = &["path", "offset", "limit"];

/// Reads a file as a whole, or `limit` lines of it from the line `offset` on.
pub fn read(
    workspace: &Workspace,
    arguments: &CallArguments,
    context: &CallContext,
) -> Result<String, CallProblem> {
    let shown = arguments.text("path")?;
    let first = arguments.count("offset")?.unwrap_or(1);
    let limit = arguments.count("limit")?;
    let place = workspace
        .root
        .locate(shown, MissingParents::Refuse)
        .map_err(|error| CallProblem::new(error.to_string()))?;
    let (file, size) = open_file(&place, shown)?;
    if limit.is_none() && size > workspace.limits.max_file_bytes {
        return Err(CallProblem::new(format!(
            "`{shown}` is too large to read as a whole: it has {size} bytes. Read a range of lines with `offset` and `limit`"
        )));
    }
    let range = LineRange {
        first,
        count: limit.unwrap_or(u64::MAX),
    };
    let max_bytes = workspace.limits.max_result_bytes;
    let max_bytes = max_bytes.saturating_sub(MAX_NOTE_BYTES).max(max_bytes / 2);
    let mut reader = BufReader::with_capacity(CHUNK_BYTES, file);
    refuse_binary(
        reader
            .fill_buf()
            .map_err(|error| read_failure(&error, shown))?,
        shown,
        size,
    )?;
    let lines = range
        .read(&mut reader, max_bytes, context)
        .map_err(|error| read_failure(&error, shown))?;
    lines.describe(shown, &range)
}

const CHUNK_BYTES: usize = 64 << 10;

/// The maximum size of the note about the rest of the file.
const MAX_NOTE_BYTES: usize = 200;

/// Returns an error if the beginning of a file is not text.
pub fn refuse_binary(beginning: &[u8], shown: &str, size: u64) -> Result<(), CallProblem> {
    if is_binary(beginning) {
        return Err(CallProblem::new(format!(
            "`{shown}` is a binary file of {size} bytes, not text"
        )));
    }
    Ok(())
}

/// Says whether the beginning of a file has a zero byte, which text never has.
pub fn is_binary(beginning: &[u8]) -> bool {
    beginning[..beginning.len().min(8 << 10)].contains(&0)
}

/// The requested lines.
struct LineRange {
    /// Counted from 1.
    first: u64,
    count: u64,
}

/// The lines of the range that were read.
struct FoundLines {
    bytes: Vec<u8>,
    /// The number of the last line that was read, counted from 1; 0 if the file is empty.
    seen: u64,
    /// Whether the file ends with these lines.
    is_end: bool,
    /// Whether the last line is cut, because it did not fit into the result.
    is_cut: bool,
}

impl LineRange {
    /// Reads the range, and drops the text before it.
    fn read(
        &self,
        reader: &mut impl std::io::BufRead,
        max_bytes: usize,
        context: &CallContext,
    ) -> std::io::Result<FoundLines> {
        let mut lines = FoundLines {
            bytes: Vec::new(),
            seen: 0,
            is_end: false,
            is_cut: false,
        };
        let last = self.first.saturating_add(self.count) - 1;
        let mut is_line_start = true;
        loop {
            let chunk = reader.fill_buf()?;
            if chunk.is_empty() || context.cancel.is_set() {
                lines.is_end = true;
                return Ok(lines);
            }
            if is_line_start {
                if lines.seen >= last || lines.is_cut {
                    return Ok(lines);
                }
                lines.seen += 1;
            }
            let end = memchr::memchr(b'\n', chunk);
            let taken = end.map_or(chunk.len(), |end| end + 1);
            if lines.seen >= self.first {
                let room = max_bytes.saturating_sub(lines.bytes.len());
                lines.bytes.extend_from_slice(&chunk[..taken.min(room)]);
                if taken > room {
                    lines.is_cut = true;
                    return Ok(lines);
                }
            }
            is_line_start = end.is_some();
            reader.consume(taken);
        }
    }
}

impl FoundLines {
    /// Drops a line that was cut, if others come before it.
    fn drop_cut_line(&mut self, range: &LineRange) {
        if self.is_cut && self.seen > range.first {
            let end = memchr::memrchr(b'\n', &self.bytes).map_or(0, |end| end + 1);
            self.bytes.truncate(end);
            self.seen -= 1;
            self.is_cut = false;
        }
    }

    /// Returns the lines with a note about the rest of the file.
    fn describe(mut self, shown: &str, range: &LineRange) -> Result<String, CallProblem> {
        self.drop_cut_line(range);
        if self.seen == 0 {
            return Ok(format!("(`{shown}` is empty)"));
        }
        if self.seen < range.first {
            return Err(CallProblem::new(format!(
                "`{shown}` has only {} lines: use a smaller `offset`",
                self.seen
            )));
        }
        let is_text = std::str::from_utf8(&self.bytes).is_ok();
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        let mut notes = Vec::new();
        // If the result was cut, the cut may be within a character, so invalid UTF-8 says nothing about the file.
        if !is_text && !self.is_cut {
            notes.push("bytes that are not UTF-8 are shown as \u{fffd}".to_owned());
        }
        if self.is_cut {
            notes.push(format!(
                "cut within line {}, which is too long for one result",
                self.seen
            ));
        } else if !self.is_end {
            notes.push(format!(
                "lines {} to {}; the file goes on at offset {}",
                range.first,
                self.seen,
                self.seen + 1
            ));
        } else if range.first > 1 {
            notes.push(format!(
                "lines {} to {}, the end of the file",
                range.first, self.seen
            ));
        }
        if !notes.is_empty() {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[{}]", notes.join("; ")));
        }
        Ok(text)
    }
}
