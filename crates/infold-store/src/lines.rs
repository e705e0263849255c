//! Reads a file line by line from an offset.

use crate::LogError;
use crate::file::Growing;

/// Reads a file line by line from an offset, a piece at a time.
pub struct Lines<'a> {
    file: &'a Growing,
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    used: usize,
}

/// A line and where it stands.
#[derive(Debug)]
pub struct RawLine<'a> {
    /// Where it starts.
    pub offset: u64,
    /// Its bytes, without the line break.
    pub bytes: &'a [u8],
    /// Whether it ends with a line break.
    pub whole: bool,
}

const PIECE: usize = 256 * 1024;

impl<'a> Lines<'a> {
    /// Starts at `at`, which is the start of a line.
    pub fn new(file: &'a Growing, at: u64) -> Lines<'a> {
        Lines {
            file,
            at,
            end: file.len(),
            buffer: Vec::new(),
            used: 0,
        }
    }

    /// Returns the next line; the last one may lack its line break.
    pub fn next(&mut self) -> Result<Option<RawLine<'_>>, LogError> {
        let mut searched = self.used;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                let start = self.used;
                let end = searched + found;
                self.used = end + 1;
                return Ok(Some(self.line(start, end, true)));
            }
            searched = self.buffer.len();
            if !self.fill(&mut searched)? {
                break;
            }
        }
        let (start, end) = (self.used, self.buffer.len());
        self.used = end;
        Ok((start < end).then(|| self.line(start, end, false)))
    }

    fn line(&self, start: usize, end: usize, whole: bool) -> RawLine<'_> {
        RawLine {
            offset: self.at - (self.buffer.len() - start) as u64,
            bytes: &self.buffer[start..end],
            whole,
        }
    }

    /// Reads one more piece; returns whether there was one.
    fn fill(&mut self, searched: &mut usize) -> Result<bool, LogError> {
        let more = (self.end - self.at).min(PIECE as u64) as usize;
        if more == 0 {
            return Ok(false);
        }
        self.buffer.drain(..self.used);
        *searched -= self.used;
        self.used = 0;
        let old = self.buffer.len();
        self.buffer.resize(old + more, 0);
        self.file.read(self.at, &mut self.buffer[old..])?;
        self.at += more as u64;
        Ok(true)
    }
}
