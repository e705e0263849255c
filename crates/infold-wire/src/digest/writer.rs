//! Writes values in their normal form into a hash.

use super::Digest;
use crate::{Json, JsonKind};

/// The depth to which members are sorted; deeper values count as their bytes.
const MAX_SORTED_DEPTH: usize = 64;

/// Texts come in small chunks, and hashing is faster in large ones.
const BUFFER_BYTES: usize = 16 << 10;

/// Computes a digest.
///
/// Every element begins with a tag: a byte that no text has, and one for the element's type. So different messages are
/// never written alike.
pub struct DigestWriter {
    /// Created when the buffer overflows for the first time, because it is large.
    hash: Option<Box<blake3::Hasher>>,
    buffer: Vec<u8>,
    /// The start of the current row of texts in the buffer.
    texts: Option<usize>,
    is_empty: bool,
}

impl DigestWriter {
    /// Begins a message with this role and length.
    pub fn new(role: u8, bytes: usize) -> DigestWriter {
        let mut buffer = Vec::with_capacity(bytes.min(BUFFER_BYTES));
        buffer.push(role);
        DigestWriter {
            hash: None,
            buffer,
            texts: None,
            is_empty: true,
        }
    }

    /// Returns the digest; none if nothing but the role was written.
    pub fn finish(mut self) -> Option<Digest> {
        self.end_texts();
        let hash = match &mut self.hash {
            Some(hash) => hash.update(&self.buffer).finalize(),
            None => blake3::hash(&self.buffer),
        };
        (!self.is_empty).then(|| truncate_hash(&hash))
    }

    /// Writes a tag, and ends a row of texts.
    pub fn tag(&mut self, tag: u8) {
        self.end_texts();
        self.is_empty = false;
        self.bytes(&[0xff, tag]);
    }

    /// Writes a text of a row; white space around the row is left out.
    pub fn text(&mut self, text: Json<'_>) {
        text.for_each_chunk(|mut chunk| {
            if self.texts.is_none() {
                chunk = chunk.trim_start();
                if chunk.is_empty() {
                    return;
                }
                self.tag(b't');
                self.texts = Some(self.buffer.len());
            }
            if self.buffer.len() + chunk.len() <= BUFFER_BYTES {
                self.buffer.extend_from_slice(chunk.as_bytes());
                return;
            }
            // White space at the end stays in the buffer: more text may follow it.
            let body = chunk.trim_end();
            if !body.is_empty() {
                self.flush_and_write(body.as_bytes());
                self.texts = Some(0);
            }
            self.buffer
                .extend_from_slice(&chunk.as_bytes()[body.len()..]);
        });
    }

    fn end_texts(&mut self) {
        let Some(from) = self.texts.take() else {
            return;
        };
        if !self.buffer[from..].last().is_some_and(u8::is_ascii_graphic) {
            let texts = std::str::from_utf8(&self.buffer[from..]);
            let length = texts.map_or(0, |texts| texts.trim_end().len());
            self.buffer.truncate(from + length);
        }
    }

    /// Writes a text that is not part of a row.
    pub fn string(&mut self, text: Json<'_>) {
        self.tag(b's');
        text.for_each_chunk(|chunk| self.bytes(chunk.as_bytes()));
    }

    /// Writes a value in its normal form, without the members that `skips` names at their depth.
    pub fn value(&mut self, value: Json<'_>, skips: impl Fn(&[u8], usize) -> bool) {
        self.nested(value, 0, &skips);
    }

    fn nested(&mut self, value: Json<'_>, depth: usize, skips: &dyn Fn(&[u8], usize) -> bool) {
        match value.kind() {
            JsonKind::Object | JsonKind::Array if depth > MAX_SORTED_DEPTH => {
                self.tag(b'x');
                self.bytes(value.bytes());
            }
            JsonKind::Object => {
                self.tag(b'{');
                let named = value.members().map(|(name, value)| (name.name(), value));
                let mut members: Vec<_> = named.filter(|(name, _)| !skips(name, depth)).collect();
                // The sort is stable: of duplicates the last one stays the last.
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                for (at, (name, value)) in members.iter().enumerate() {
                    if members.get(at + 1).is_some_and(|(next, _)| next == name) {
                        continue;
                    }
                    self.tag(b'k');
                    self.bytes(name);
                    self.nested(*value, depth + 1, skips);
                }
                self.tag(b'}');
            }
            JsonKind::Array => {
                self.tag(b'[');
                let elements = value.elements();
                elements.for_each(|element| self.nested(element, depth + 1, skips));
                self.tag(b']');
            }
            JsonKind::String => self.string(value),
            JsonKind::Number => {
                self.tag(b'#');
                self.number(value);
            }
            JsonKind::Bool | JsonKind::Null => {
                self.tag(b'#');
                self.bytes(value.bytes());
            }
        }
    }

    /// Writes `1.0` and `1e3` as `1` and `1000`, as clients do.
    fn number(&mut self, number: Json<'_>) {
        let bytes = number.bytes();
        let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
        let is_plain = digits.iter().all(u8::is_ascii_digit) && bytes != b"-0";
        match number.number().filter(|read| read.is_finite()) {
            Some(read) if !is_plain => {
                // Zero has no sign here.
                self.bytes((read + 0.0).to_string().as_bytes());
            }
            _ => self.bytes(bytes),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush_and_write(bytes);
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Hashes the buffer, and then bytes that are larger than it.
    fn flush_and_write(&mut self, bytes: &[u8]) {
        let hash = self.hash.get_or_insert_default();
        hash.update(&self.buffer);
        self.buffer.clear();
        if bytes.len() > BUFFER_BYTES {
            hash.update(bytes);
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }
}

/// Returns the first half of a hash, which is enough to distinguish messages.
pub fn truncate_hash(hash: &blake3::Hash) -> Digest {
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash.as_bytes()[..16]);
    digest
}
