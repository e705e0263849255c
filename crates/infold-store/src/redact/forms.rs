//! Digests and lines by which copies of redacted messages are recognised in another form.

use std::collections::BTreeSet;

use infold_log::Seq;
use infold_wire::MessageError;
use infold_wire::digest::Digest;
use infold_wire::redact::{MessagePart, message_parts, visit_texts};

use super::Find;
use super::words::Words;
use crate::event::RedactedForms;
use crate::redacted_digests::{content_digest, structured};
use crate::redacted_lines::{RedactedLine, lines_with};
use crate::redacted_values::FoundValues;

/// How many digests of texts an event keeps, and how many lines.
const MAX_FORMS: usize = 4096;

/// Shorter codes could be guessed, and occur by chance.
const MIN_CODE_BYTES: usize = 12;

/// Tells which texts of redacted messages a copy is recognised by.
#[derive(Clone, Copy)]
pub enum KnownTexts<'a> {
    /// Texts with a match.
    Matches(Find<'a>),
    /// Texts with words that no other message has.
    Words(&'a Words),
}

impl KnownTexts<'_> {
    fn has(&self, text: &str) -> bool {
        match self {
            KnownTexts::Matches(find) => !find(text).is_empty(),
            KnownTexts::Words(words) => words.has_text(text),
        }
    }

    /// Returns the lines of a text that a copy is recognised by.
    fn lines(&self, text: &str) -> Vec<RedactedLine> {
        // The texts in JSON are visited one by one.
        if structured(text.trim()).is_some() {
            return Vec::new();
        }
        match self {
            KnownTexts::Matches(find) => {
                let lines: Vec<_> = lines_with(text, &find(text))
                    .map(RedactedLine::of)
                    .collect();
                // A line that is too short is known together with those around it.
                let is_short = lines.iter().any(Option::is_none);
                let all = is_short.then(|| RedactedLine::of(text)).flatten();
                lines.into_iter().flatten().chain(all).collect()
            }
            KnownTexts::Words(words) => {
                let lines = text.split('\n').filter(|line| words.has_text(line));
                lines.filter_map(RedactedLine::of).collect()
            }
        }
    }

    /// Calls `take` with the codes in redacted texts: words with letters and digits, such as keys and
    /// passwords.
    fn each_code(&self, text: &str, take: &mut dyn FnMut(&str)) {
        match self {
            KnownTexts::Matches(find) => {
                let found = find(text).into_iter();
                found.for_each(|range| codes(&text[range]).for_each(&mut *take));
            }
            KnownTexts::Words(words) => {
                let codes = codes(text).filter(|code| !words.find(code).is_empty());
                codes.for_each(take);
            }
        }
    }
}

fn codes(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split_whitespace();
    let words = words.map(|word| word.trim_matches(|char: char| !char.is_alphanumeric()));
    words.filter(|word| {
        word.len() >= MIN_CODE_BYTES
            && word.contains(|char: char| char.is_ascii_digit())
            && word.contains(char::is_alphabetic)
    })
}

/// Collects the digests and lines by which copies of messages are recognised.
pub struct FormCollector<'a> {
    known: KnownTexts<'a>,
    values: &'a FoundValues,
    pub forms: Vec<RedactedForms>,
    /// How many more digests and lines are kept.
    contents_left: usize,
    lines_left: usize,
}

impl<'a> FormCollector<'a> {
    pub fn new(known: KnownTexts<'a>, values: &'a FoundValues) -> FormCollector<'a> {
        FormCollector {
            known,
            values,
            forms: Vec::new(),
            contents_left: MAX_FORMS,
            lines_left: MAX_FORMS,
        }
    }

    /// Adds the digests and lines of a message, given in its original and in its redacted form.
    pub fn add(&mut self, seq: Seq, came: &[u8], redacted: &[u8]) -> Result<(), MessageError> {
        let mut contents = BTreeSet::new();
        let mut lines: Vec<RedactedLine> = Vec::new();
        visit_texts(came, &mut |text| {
            if !self.known.has(text) {
                return;
            }
            contents.extend(content_digest(text));
            let new = self.known.lines(text).into_iter();
            let new: Vec<_> = new.filter(|line| !lines.contains(line)).collect();
            lines.extend(new);
            self.known
                .each_code(text, &mut |code| self.values.add(code));
        })?;
        self.add_parts(came, redacted, &mut contents)?;
        let contents: Vec<Digest> = contents.into_iter().take(self.contents_left).collect();
        lines.truncate(self.lines_left);
        self.contents_left -= contents.len();
        self.lines_left -= lines.len();
        if !contents.is_empty() || !lines.is_empty() {
            self.forms.push(RedactedForms {
                seq,
                contents,
                lines,
            });
        }
        Ok(())
    }

    /// Adds arguments and results as a whole, and texts that a client may join.
    fn add_parts(
        &self,
        came: &[u8],
        redacted: &[u8],
        contents: &mut BTreeSet<Digest>,
    ) -> Result<(), MessageError> {
        let (came, redacted) = (message_parts(came)?, message_parts(redacted)?);
        let is_gone = |part: &MessagePart| match self.known {
            // A pattern may also match in the text around them.
            KnownTexts::Matches(_) => !redacted.contains(part),
            KnownTexts::Words(words) => words.has_text(part.text()),
        };
        let mut joined = Vec::new();
        let mut is_joined_gone = false;
        for part in &came {
            let is_gone = is_gone(part);
            if is_gone {
                contents.extend(content_digest(part.text()));
            }
            if let MessagePart::Text(text) = part {
                joined.push(text.as_str());
                is_joined_gone |= is_gone;
            }
        }
        if joined.len() > 1 && is_joined_gone {
            contents.extend(content_digest(&joined.concat()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_letters_and_digits() {
        let text =
            "key: \"sk-12ab34cd56ef\", at 2026-11-18T16:00 by an-ordinary-word, 1234567890123";
        let found: Vec<&str> = codes(text).collect();
        assert_eq!(found, ["sk-12ab34cd56ef", "2026-11-18T16:00"]);
    }
}
