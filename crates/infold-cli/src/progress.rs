//! A progress line on the terminal for long work.

use std::io::{self, IsTerminal as _, Read, Write as _};
use std::time::{Duration, Instant};

/// Shows on a terminal how far long work has come. Silent elsewhere, and while the work is short.
pub struct ProgressLine {
    what: &'static str,
    total: u64,
    done: u64,
    next: Option<Instant>,
    shown: bool,
}

/// Work that ends within this time shows no progress.
const FIRST_UPDATE_AFTER: Duration = Duration::from_millis(400);
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

impl ProgressLine {
    /// Starts work of `total` units; 0 if the number is unknown, and units are bytes.
    pub fn new(json: bool, what: &'static str, total: u64) -> ProgressLine {
        let watched = !json && io::stderr().is_terminal();
        ProgressLine {
            what,
            total,
            done: 0,
            next: watched.then(|| Instant::now() + FIRST_UPDATE_AFTER),
            shown: false,
        }
    }

    /// Adds completed units.
    pub fn advance(&mut self, units: u64) {
        self.done += units;
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            self.next = Some(now + UPDATE_INTERVAL);
            self.shown = true;
            let _ = write!(io::stderr(), "\r\x1b[K{}", self.text());
        }
    }

    /// Wraps a reader whose bytes are the units.
    pub fn watch<R: Read>(&mut self, from: R) -> WatchedReader<'_, R> {
        WatchedReader {
            from,
            progress: self,
        }
    }

    fn text(&self) -> String {
        match self.total {
            0 => format!("{} {}", self.what, crate::output::bytes(self.done)),
            total => format!("{} {} %", self.what, (self.done * 100 / total).min(100)),
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// A reader that reports its bytes as progress.
pub struct WatchedReader<'a, R> {
    from: R,
    progress: &'a mut ProgressLine,
}

impl<R: Read> Read for WatchedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.progress.advance(count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is_can_be_told_with_and_without_a_total() {
        let mut known = ProgressLine::new(true, "checking", 8);
        let mut copy = Vec::new();
        let read = known.watch(&b"two"[..]).read_to_end(&mut copy);
        assert_eq!((read.unwrap(), &copy[..]), (3, &b"two"[..]));
        assert_eq!(known.text(), "checking 37 %");
        let mut unknown = ProgressLine::new(true, "reading", 0);
        unknown.advance(2048);
        assert_eq!(unknown.text(), "reading 2.0 KiB");
    }
}
