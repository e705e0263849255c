//! Ends the output of a server that writes a line without end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Reads until a line is too long; then it is as if the output had ended.
///
/// A client that only skips the line would wait for an answer that never comes.
#[derive(Debug)]
pub struct LineLimit<R> {
    reader: R,
    max_line_bytes: usize,
    line_bytes: usize,
    is_exceeded: Arc<AtomicBool>,
}

impl<R> LineLimit<R> {
    /// `is_exceeded` becomes true if a line is too long.
    pub fn new(reader: R, max_line_bytes: usize, is_exceeded: Arc<AtomicBool>) -> LineLimit<R> {
        LineLimit {
            reader,
            max_line_bytes,
            line_bytes: 0,
            is_exceeded,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineLimit<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_exceeded.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(context, buffer))?;
        let read = &buffer.filled()[before..];
        self.line_bytes = match memchr::memrchr(b'\n', read) {
            Some(end) => read.len() - end - 1,
            None => self.line_bytes + read.len(),
        };
        if self.line_bytes > self.max_line_bytes {
            self.is_exceeded.store(true, Ordering::Relaxed);
            buffer.set_filled(before);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    async fn read(text: &str, max_line_bytes: usize) -> (String, bool) {
        let is_exceeded = Arc::new(AtomicBool::new(false));
        let mut limited = LineLimit::new(text.as_bytes(), max_line_bytes, Arc::clone(&is_exceeded));
        let mut output = String::new();
        let mut chunk = [0; 3];
        while let Ok(count @ 1..) = limited.read(&mut chunk).await {
            output.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
        }
        (output, is_exceeded.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn short_lines_pass() {
        let text = "12345\n12345\n\n12345";
        assert_eq!(read(text, 5).await, (text.to_owned(), false));
    }

    #[tokio::test]
    async fn a_long_line_ends_the_output() {
        let (output, is_exceeded) = read("12345\n1234567890\nmore", 5).await;
        assert!(is_exceeded);
        assert!("12345\n12345".starts_with(&output), "{output}");
    }
}
