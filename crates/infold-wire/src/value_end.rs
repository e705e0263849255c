//! Finds the end of a JSON value in a stream.

use memchr::{memchr_iter, memchr2};

/// Finds the end of a JSON value that arrives in chunks.
///
/// It examines brackets and quotes only, and does not check that the value *is* JSON.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValueEnd {
    depth: usize,
    quoted: bool,
    escaped: bool,
    bare: bool,
}

impl ValueEnd {
    /// Reads the next chunk; returns how much of it belongs to the value, if the value ends in it.
    pub fn feed(&mut self, chunk: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < chunk.len() {
            if self.escaped {
                self.escaped = false;
                at += 1;
                continue;
            }
            if self.quoted {
                at += memchr2(b'"', b'\\', &chunk[at..])?;
                self.escaped = chunk[at] == b'\\';
                self.quoted = self.escaped;
                at += 1;
                if !self.quoted && self.depth == 0 {
                    return Some(at);
                }
                continue;
            }
            match chunk[at] {
                b'"' if !self.bare => self.quoted = true,
                b'{' | b'[' if !self.bare => self.depth += 1,
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                // A number or a word ends before the next byte.
                b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => {
                    return Some(at);
                }
                _ if self.depth == 0 => self.bare = true,
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Returns whether a value that is cut off here may be whole: a number or a word.
    pub fn is_bare(&self) -> bool {
        self.bare
    }
}

/// Counts line breaks.
pub fn count_lines(text: &[u8]) -> u64 {
    memchr_iter(b'\n', text).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_where_it_ends_however_it_is_cut() {
        for (text, end) in [
            (r#"{"a":"}\"]","b":[1,{}]} ,"#, 23),
            (r#""x\\" "#, 5),
            ("12,", 2),
            ("true]", 4),
            ("[] ", 2),
        ] {
            for size in 1..text.len() {
                let (mut end_of, mut done) = (ValueEnd::default(), 0);
                for chunk in text.as_bytes().chunks(size) {
                    match end_of.feed(chunk) {
                        Some(more) => {
                            done += more;
                            break;
                        }
                        None => done += chunk.len(),
                    }
                }
                assert_eq!(done, end, "{text} by {size}");
            }
        }
    }
}
