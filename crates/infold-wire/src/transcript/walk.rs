use memchr::{memchr, memchr2};

/// Finds where a JSON value ends, however it is cut into pieces.
///
/// Only brackets and quotes are looked at: whether it *is* JSON is found out by whoever reads it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    depth: usize,
    quoted: bool,
    escaped: bool,
    bare: bool,
}

impl Walk {
    /// Takes the next piece; returns how much of it belongs to the value, if the value ends in it.
    pub fn feed(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < piece.len() {
            if self.escaped {
                self.escaped = false;
                at += 1;
                continue;
            }
            if self.quoted {
                at += memchr2(b'"', b'\\', &piece[at..])?;
                self.escaped = piece[at] == b'\\';
                self.quoted = self.escaped;
                at += 1;
                if !self.quoted && self.depth == 0 {
                    return Some(at);
                }
                continue;
            }
            match piece[at] {
                b'"' if !self.bare => self.quoted = true,
                b'{' | b'[' if !self.bare => self.depth += 1,
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                // Behind a number or a word, which has no end of its own.
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

    /// Says whether a value that was cut off here may be whole: a number or a word.
    pub fn is_bare(&self) -> bool {
        self.bare
    }
}

/// How many line breaks there are.
pub fn breaks(text: &[u8]) -> u64 {
    match memchr(b'\n', text) {
        Some(_) => memchr::memchr_iter(b'\n', text).count() as u64,
        None => 0,
    }
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
                let (mut walk, mut done) = (Walk::default(), 0);
                for piece in text.as_bytes().chunks(size) {
                    match walk.feed(piece) {
                        Some(more) => {
                            done += more;
                            break;
                        }
                        None => done += piece.len(),
                    }
                }
                assert_eq!(done, end, "{text} by {size}");
            }
        }
    }
}
