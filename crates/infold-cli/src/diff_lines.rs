//! Colours a difference, line by line.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::output::{BAD, DIM, GOOD};

/// Passes a difference on, and colours its lines.
pub struct DiffLines<'a> {
    out: &'a mut dyn Write,
    is_colored: bool,
    /// The beginning of a line whose end did not come yet.
    line: Vec<u8>,
    in_hunk: bool,
}

/// The limit of lines that are processed; longer ones are passed on unchanged.
const MAX_LINE_BYTES: usize = 64 << 10;
const HUNK: Style = AnsiColor::Cyan.on_default();

impl DiffLines<'_> {
    /// Writes to `out`.
    pub fn new(out: &mut dyn Write, is_colored: bool) -> DiffLines<'_> {
        DiffLines {
            out,
            is_colored,
            line: Vec::new(),
            in_hunk: false,
        }
    }

    /// Writes the remaining bytes.
    pub fn finish(mut self) -> io::Result<()> {
        self.end_line()
    }

    fn end_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        self.in_hunk = match text {
            [b'd', b'i', b'f', b'f', b' ', ..] => false,
            [b'@', ..] => true,
            _ => self.in_hunk,
        };
        let style = match (self.in_hunk, text.first()) {
            (true, Some(b'@')) => Some(HUNK),
            (true, Some(b'+')) => Some(GOOD),
            (true, Some(b'-')) => Some(BAD),
            (false, Some(_)) => Some(DIM),
            _ => None,
        };
        match style {
            Some(style) => {
                write!(self.out, "{style}")?;
                self.out.write_all(text)?;
                write!(self.out, "{style:#}")?;
                self.out.write_all(&line[text.len()..])
            }
            None => self.out.write_all(&line),
        }
    }
}

impl Write for DiffLines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_colored {
            return self.out.write(bytes);
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.line.len() > MAX_LINE_BYTES {
                self.end_line()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_coloured_line_by_line_however_it_comes() {
        let text = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n same\n-- old\n+new\n";
        let mut whole = Vec::new();
        for pieces in [1, 7, 1000] {
            let mut out = Vec::new();
            let mut lines = DiffLines::new(&mut out, true);
            for piece in text.chunks(pieces) {
                lines.write_all(piece).unwrap();
            }
            lines.finish().unwrap();
            assert!(whole.is_empty() || whole == out);
            whole = out;
        }
        let text = String::from_utf8(whole).unwrap();
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert!(plain.contains("\n-- old\n+new\n"));
        assert!(text.contains(&format!("{BAD}-- old{BAD:#}")), "{text:?}");
        assert!(text.contains(&format!("{DIM}--- a/x{DIM:#}")), "{text:?}");
    }
}
