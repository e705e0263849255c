//! Classifies characters for the splitter.

/// The class of a character. The numbers are those of `data/classes.bin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Punctuation, symbols, controls, and what is not assigned.
    Other,
    /// A letter in upper or title case.
    Upper,
    /// A letter in lower case.
    Lower,
    /// A letter that has no case, or modifies others.
    Letter,
    /// A combining mark.
    Mark,
    /// A number of any kind.
    Number,
    /// White space within a line.
    Space,
    /// A line feed or carriage return.
    Newline,
}

const TABLE: &[u8] = include_bytes!("../../data/classes.bin");
const BLOCK_CHARS: usize = 128;
const BLOCKS: usize = 0x110000 / BLOCK_CHARS;

const ALL: [Class; 8] = [
    Class::Other,
    Class::Upper,
    Class::Lower,
    Class::Letter,
    Class::Mark,
    Class::Number,
    Class::Space,
    Class::Newline,
];

/// The classes of the ASCII characters, and `Other` for the bytes that begin or continue longer ones.
static ASCII: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut at = 0;
    while at < 128 {
        classes[at] = ALL[TABLE[BLOCKS + at] as usize];
        at += 1;
    }
    classes
};

impl Class {
    /// Returns the class of the character that starts at `at`, and where the next one starts.
    #[inline(always)]
    pub fn at(text: &[u8], at: usize) -> Option<(Class, usize)> {
        let first = *text.get(at)?;
        if first < 128 {
            return Some((ASCII[first as usize], at + 1));
        }
        Some(Class::of_long(text, at, first))
    }

    #[inline(never)]
    fn of_long(text: &[u8], at: usize, first: u8) -> (Class, usize) {
        let next = |by: usize| text.get(at + by).map_or(0, |byte| (byte & 0x3f) as usize);
        let first = first as usize;
        let (char, end) = match first {
            ..0xe0 => ((first & 0x1f) << 6 | next(1), at + 2),
            0xe0..0xf0 => ((first & 0xf) << 12 | next(1) << 6 | next(2), at + 3),
            _ => (
                (first & 7) << 18 | next(1) << 12 | next(2) << 6 | next(3),
                at + 4,
            ),
        };
        (Class::of(char), end)
    }

    fn of(char: usize) -> Class {
        let block = TABLE
            .get(char / BLOCK_CHARS)
            .map_or(0, |block| *block as usize);
        ALL[TABLE[BLOCKS + block * BLOCK_CHARS + char % BLOCK_CHARS] as usize & 7]
    }

    /// Returns whether the class is one of `\p{L}`.
    pub fn is_letter(self) -> bool {
        matches!(self, Class::Upper | Class::Lower | Class::Letter)
    }

    /// Returns whether the class is one of `\s`.
    pub fn is_space(self) -> bool {
        matches!(self, Class::Space | Class::Newline)
    }

    /// Returns whether the class is one of `[^\s\p{L}\p{N}]`.
    pub fn is_sign(self) -> bool {
        matches!(self, Class::Other | Class::Mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_every_length_have_their_class() {
        let class = |text: &str| Class::at(text.as_bytes(), 0).unwrap();
        let expected = [
            ("a", Class::Lower),
            ("Ä", Class::Upper),
            ("ǅ", Class::Upper),
            ("ʰ", Class::Letter),
            ("中", Class::Letter),
            ("\u{301}", Class::Mark),
            ("Ⅷ", Class::Number),
            ("٣", Class::Number),
            ("\u{3000}", Class::Space),
            ("\u{85}", Class::Space),
            ("\r", Class::Newline),
            ("€", Class::Other),
            ("😀", Class::Other),
            ("𝔸", Class::Upper),
            ("𠀀", Class::Letter),
            ("\u{10ffff}", Class::Other),
        ];
        for (text, found) in expected {
            assert_eq!(class(text), (found, text.len()), "{text}");
        }
    }
}
