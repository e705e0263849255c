//! Keeps the beginning and the end of an output of any length.

use std::collections::VecDeque;

use crate::excerpt::omission;

/// Keeps the beginning and the end of an output, in equal halves.
#[derive(Debug)]
pub(crate) struct OutputBuffer {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    max_half_bytes: usize,
    total_bytes: u64,
}

impl OutputBuffer {
    pub fn new(max_bytes: usize) -> OutputBuffer {
        OutputBuffer {
            head: Vec::new(),
            tail: VecDeque::new(),
            max_half_bytes: max_bytes / 2,
            total_bytes: 0,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let room = self.max_half_bytes - self.head.len();
        let (head, tail) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let kept = &tail[tail.len().saturating_sub(self.max_half_bytes)..];
        let excess = (self.tail.len() + kept.len()).saturating_sub(self.max_half_bytes);
        self.tail.drain(..excess);
        self.tail.extend(kept);
    }

    /// Returns the size of the whole output, including the part that was dropped.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Returns the output as text, with a mark where something is left out.
    pub fn into_text(self) -> String {
        let kept = (self.head.len() + self.tail.len()) as u64;
        let mut bytes = self.head;
        if self.total_bytes > kept {
            let left_out = self.total_bytes - kept;
            let mark = omission(left_out, "the output was too long");
            bytes.extend_from_slice(mark.as_bytes());
        }
        bytes.extend(self.tail);
        match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_output_is_whole_however_it_comes() {
        for chunk in 1..12 {
            let mut buffer = OutputBuffer::new(12);
            for bytes in b"hello world!".chunks(chunk) {
                buffer.push(bytes);
            }
            assert_eq!(buffer.into_text(), "hello world!");
        }
    }

    #[test]
    fn a_long_output_keeps_beginning_and_end() {
        for chunk in [1, 3, 7, 1000] {
            let mut buffer = OutputBuffer::new(8);
            let output: Vec<u8> = (0..100).map(|i| b'a' + i % 26).collect();
            for bytes in output.chunks(chunk) {
                buffer.push(bytes);
            }
            assert_eq!(buffer.total_bytes(), 100);
            assert_eq!(
                buffer.into_text(),
                "abcd\n[… 92 bytes left out: the output was too long …]\nstuv"
            );
        }
    }
}
