use super::Digest;
use crate::{Json, Kind};

/// How deep members are put in order; what is deeper counts as its bytes.
const DEEPEST: usize = 64;

/// What is gathered before it is hashed: texts come in small bits, and hashing likes large ones.
const GATHERED: usize = 16 << 10;

/// What a digest is written with.
///
/// Everything begins with a mark: a byte that no text has, and one that says what follows.
/// So no two messages are written alike.
pub struct Ink {
    /// What did not fit into what is gathered. A hash of nothing is no small thing to make.
    hash: Option<Box<blake3::Hasher>>,
    gathered: Vec<u8>,
    /// Where, in what is gathered, the row of texts begins that is being written.
    texts: Option<usize>,
    /// Something was written but who speaks.
    wrote: bool,
}

impl Ink {
    /// Begins with who speaks, in a message of so many bytes.
    pub fn new(role: u8, bytes: usize) -> Ink {
        let mut gathered = Vec::with_capacity(bytes.min(GATHERED));
        gathered.push(role);
        Ink {
            hash: None,
            gathered,
            texts: None,
            wrote: false,
        }
    }

    /// Returns the digest; none if nothing was written.
    pub fn dry(mut self) -> Option<Digest> {
        self.end_texts();
        let hash = match &mut self.hash {
            Some(hash) => hash.update(&self.gathered).finalize(),
            None => blake3::hash(&self.gathered),
        };
        self.wrote.then(|| short(&hash))
    }

    /// Marks what follows, and ends a row of texts.
    pub fn tag(&mut self, tag: u8) {
        self.end_texts();
        self.wrote = true;
        self.bytes(&[0xff, tag]);
    }

    /// A text that belongs to those right before it; white space around all of them is left out.
    pub fn text(&mut self, text: Json<'_>) {
        text.chunks(|mut bit| {
            if self.texts.is_none() {
                bit = bit.trim_start();
                if bit.is_empty() {
                    return;
                }
                self.tag(b't');
                self.texts = Some(self.gathered.len());
            }
            match self.gathered.len() + bit.len() > GATHERED {
                true => self.spill(bit),
                false => self.gathered.extend_from_slice(bit.as_bytes()),
            }
        });
    }

    /// More of a text than there is room for. White space at its end waits for what follows.
    fn spill(&mut self, bit: &str) {
        let body = bit.trim_end();
        if !body.is_empty() {
            self.bytes_spill(body.as_bytes());
            self.texts = Some(0);
        }
        self.gathered
            .extend_from_slice(&bit.as_bytes()[body.len()..]);
    }

    /// Leaves out white space at the end of a row of texts.
    fn end_texts(&mut self) {
        let Some(from) = self.texts.take() else {
            return;
        };
        let is_plain = |byte: &u8| byte.is_ascii_graphic();
        if !self.gathered[from..].last().is_some_and(is_plain) {
            let texts = std::str::from_utf8(&self.gathered[from..]);
            let length = texts.map_or(0, |texts| texts.trim_end().len());
            self.gathered.truncate(from + length);
        }
    }

    /// A text that stands for itself.
    pub fn string(&mut self, text: Json<'_>) {
        self.tag(b's');
        text.chunks(|bit| self.bytes(bit.as_bytes()));
    }

    /// A value in the one way it can be written; members that `leave` names at their depth
    /// are left out.
    pub fn value(&mut self, value: Json<'_>, leave: impl Fn(&[u8], usize) -> bool) {
        self.nested(value, 0, &leave);
    }

    fn nested(&mut self, value: Json<'_>, depth: usize, leave: &dyn Fn(&[u8], usize) -> bool) {
        match value.kind() {
            Kind::Object | Kind::Array if depth > DEEPEST => {
                self.tag(b'x');
                self.bytes(value.bytes());
            }
            Kind::Object => {
                self.tag(b'{');
                let named = value.members().map(|(name, value)| (name.name(), value));
                let mut members: Vec<_> = named.filter(|(name, _)| !leave(name, depth)).collect();
                // Stable: of duplicates the last one stays the last.
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                for (at, (name, value)) in members.iter().enumerate() {
                    if members.get(at + 1).is_some_and(|(next, _)| next == name) {
                        continue;
                    }
                    self.tag(b'k');
                    self.bytes(name);
                    self.nested(*value, depth + 1, leave);
                }
                self.tag(b'}');
            }
            Kind::Array => {
                self.tag(b'[');
                value
                    .elements()
                    .for_each(|each| self.nested(each, depth + 1, leave));
                self.tag(b']');
            }
            Kind::String => self.string(value),
            Kind::Number => {
                self.tag(b'#');
                self.number(value);
            }
            Kind::Bool | Kind::Null => {
                self.tag(b'#');
                self.bytes(value.bytes());
            }
        }
    }

    /// A client that reads `1.0` or `1e3` may write `1` or `1000`.
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
        match self.gathered.len() + bytes.len() > GATHERED {
            true => self.bytes_spill(bytes),
            false => self.gathered.extend_from_slice(bytes),
        }
    }

    /// Hashes what is gathered to make room; what is larger than that is hashed at once.
    fn bytes_spill(&mut self, bytes: &[u8]) {
        let hash = self.hash.get_or_insert_default();
        hash.update(&self.gathered);
        self.gathered.clear();
        match bytes.len() > GATHERED {
            true => drop(hash.update(bytes)),
            false => self.gathered.extend_from_slice(bytes),
        }
    }
}

/// The start of a hash: enough to tell messages apart.
pub fn short(hash: &blake3::Hash) -> Digest {
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash.as_bytes()[..16]);
    digest
}
