//! Generates canaries, texts that look like secrets, from the rules' expressions: so the repository contains none.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Returns a text that is built to match an expression. It need not match, because assertions such as `\b` are ignored.
pub fn canary(source: &str, seed: u64) -> String {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
    let hir = parser.parse(source).expect("it is an expression");
    let mut generator = Generator(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut out = Vec::new();
    generator.write(&hir, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A pseudorandom generator (xorshift) whose numbers are the same on all systems.
struct Generator(u64);

impl Generator {
    /// Returns a number less than `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }

    /// Appends a text that the expression describes.
    fn write(&mut self, hir: &Hir, out: &mut Vec<u8>) {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => out.extend_from_slice(&literal.0),
            HirKind::Class(class) => out.push(self.byte(class)),
            HirKind::Repetition(repeated) => {
                let most = repeated.max.unwrap_or(repeated.min + 4);
                // The fewest repetitions, or up to two more.
                let more = self.below((most - repeated.min).min(2) as usize + 1);
                for _ in 0..repeated.min as usize + more {
                    self.write(&repeated.sub, out);
                }
            }
            HirKind::Capture(capture) => self.write(&capture.sub, out),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.write(part, out)),
            HirKind::Alternation(parts) => {
                let at = self.below(parts.len());
                self.write(&parts[at], out);
            }
        }
    }

    /// Returns a byte of a class: a letter or digit if the class has any.
    fn byte(&mut self, class: &Class) -> u8 {
        let all: Vec<u8> = match class {
            Class::Bytes(class) => class.iter().flat_map(|it| it.start()..=it.end()).collect(),
            Class::Unicode(class) => {
                let all = class.iter().flat_map(|it| it.start()..=it.end());
                all.filter_map(|c| u8::try_from(c).ok()).collect()
            }
        };
        let alphanumeric: Vec<u8> = all
            .iter()
            .copied()
            .filter(u8::is_ascii_alphanumeric)
            .collect();
        let bytes = if alphanumeric.is_empty() {
            all
        } else {
            alphanumeric
        };
        bytes[self.below(bytes.len())]
    }
}
