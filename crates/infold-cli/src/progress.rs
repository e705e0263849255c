use std::io::{self, IsTerminal as _, Read, Write as _};
use std::time::{Duration, Instant};

/// Says on a terminal how far long work has come. Silent elsewhere, and while it is short.
pub struct Progress {
    what: &'static str,
    total: u64,
    done: u64,
    next: Option<Instant>,
    shown: bool,
}

/// Work that is over by then needs no progress.
const PATIENCE: Duration = Duration::from_millis(400);
const PACE: Duration = Duration::from_millis(100);

impl Progress {
    /// Starts work of so many units; with zero, nobody knows how many.
    pub fn new(json: bool, what: &'static str, total: u64) -> Progress {
        let watched = !json && io::stderr().is_terminal();
        Progress {
            what,
            total,
            done: 0,
            next: watched.then(|| Instant::now() + PATIENCE),
            shown: false,
        }
    }

    /// Some units more are done.
    pub fn advance(&mut self, units: u64) {
        self.done += units;
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            self.next = Some(now + PACE);
            self.shown = true;
            let _ = write!(io::stderr(), "\r\x1b[K{}", self.text());
        }
    }

    /// Watches a reader: its bytes are the units.
    pub fn watch<R: Read>(&mut self, from: R) -> Watched<'_, R> {
        Watched {
            from,
            progress: self,
        }
    }

    fn text(&self) -> String {
        match self.total {
            0 => format!("{} {}", self.what, crate::out::bytes(self.done)),
            total => format!("{} {} %", self.what, (self.done * 100 / total).min(100)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// A reader whose bytes count as progress.
pub struct Watched<'a, R> {
    from: R,
    progress: &'a mut Progress,
}

impl<R: Read> Read for Watched<'_, R> {
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
        let mut known = Progress::new(true, "checking", 8);
        let mut copy = Vec::new();
        let read = known.watch(&b"two"[..]).read_to_end(&mut copy);
        assert_eq!((read.unwrap(), &copy[..]), (3, &b"two"[..]));
        assert_eq!(known.text(), "checking 37 %");
        let mut unknown = Progress::new(true, "reading", 0);
        unknown.advance(2048);
        assert_eq!(unknown.text(), "reading 2.0 KiB");
    }
}
