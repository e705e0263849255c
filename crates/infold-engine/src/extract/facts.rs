//! Stores the collected facts in a file, so that the next fold of a task reads only newer messages.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::io::{self, Write};

use infold_log::{Seq, Span};
use infold_wire::tool_action::{Todo, TodoState, ToolOutcome};

use super::Extract;

/// The first line of a file; another format has another number.
const HEADER: &[u8] = b"infold facts 3\n";

/// The facts that were collected from messages.
pub struct ExtractedFacts {
    /// The messages, as runs in order.
    pub runs: Vec<Span>,
    /// The collected facts.
    pub extract: Extract,
}

impl ExtractedFacts {
    /// Writes facts to a file.
    pub fn write(runs: &[Span], extract: &Extract, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(HEADER)?;
        let mut writer = FactsWriter::new(to);
        let runs: Vec<(u64, u64)> = runs
            .iter()
            .map(|run| (run.from().get(), run.to().get()))
            .collect();
        runs.put(&mut writer);
        extract.put(&mut writer);
        writer.finish()
    }

    /// Reads facts; `None` if they are damaged or of another version.
    pub fn read(bytes: &[u8]) -> Option<ExtractedFacts> {
        let body = bytes.strip_prefix(HEADER)?;
        let (mut rest, sum) = body.split_last_chunk()?;
        let mut checksum = FactsChecksum::default();
        checksum.add(rest);
        if checksum.sum() != u64::from_le_bytes(*sum) {
            return None;
        }
        let runs = Vec::<(u64, u64)>::get(&mut rest)?
            .into_iter()
            .map(|(from, to)| Span::new(Seq::new(from)?, Seq::new(to)?))
            .collect::<Option<Vec<Span>>>()?;
        let extract = Extract::get(&mut rest)?;
        Some(ExtractedFacts { runs, extract })
    }

    /// Returns the messages of `covered` that were not read yet; none if these facts are of other messages.
    pub fn rest(&self, covered: &[Span]) -> Option<Vec<Span>> {
        let mut seqs = self.runs.iter().flat_map(|run| run.seqs());
        let mut rest = Vec::new();
        for run in covered {
            let mut from = Some(run.from());
            for seq in run.seqs() {
                match seqs.next() {
                    Some(read) if read == seq => from = Some(seq.next()),
                    Some(_) => return None,
                    None => break,
                }
            }
            rest.extend(from.and_then(|from| Span::new(from, run.to())));
        }
        seqs.next().is_none().then_some(rest)
    }
}

/// Detects damage; it need not resist forgery, as the facts are derived.
struct FactsChecksum {
    state: u64,
    bytes: u64,
}

impl Default for FactsChecksum {
    fn default() -> FactsChecksum {
        FactsChecksum {
            state: 0xcbf2_9ce4_8422_2325,
            bytes: 0,
        }
    }
}

impl FactsChecksum {
    /// Adds bytes; all additions but the last have a multiple of eight.
    fn add(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.state ^= u64::from_le_bytes(word);
            self.state = self.state.wrapping_mul(0x0000_0100_0000_01b3);
            self.state ^= self.state >> 29;
        }
        self.bytes += bytes.len() as u64;
    }

    fn sum(&self) -> u64 {
        self.state ^ self.bytes
    }
}

/// Writes values to a file through a small buffer, and their checksum behind them.
pub(super) struct FactsWriter<'a> {
    to: &'a mut dyn Write,
    buffer: Vec<u8>,
    checksum: FactsChecksum,
    failed: Option<io::Error>,
}

/// A multiple of eight, which the checksum requires.
const WRITE_BUFFER_BYTES: usize = 64 << 10;

impl<'a> FactsWriter<'a> {
    fn new(to: &'a mut dyn Write) -> FactsWriter<'a> {
        FactsWriter {
            to,
            buffer: Vec::with_capacity(WRITE_BUFFER_BYTES),
            checksum: FactsChecksum::default(),
            failed: None,
        }
    }

    /// Writes bytes. An error is returned at the end.
    pub fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = WRITE_BUFFER_BYTES - self.buffer.len();
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = rest;
            if self.buffer.len() == WRITE_BUFFER_BYTES {
                self.flush();
            }
        }
    }

    fn flush(&mut self) {
        self.checksum.add(&self.buffer);
        if self.failed.is_none() {
            self.failed = self.to.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }

    fn finish(mut self) -> io::Result<()> {
        self.flush();
        match self.failed {
            Some(error) => Err(error),
            None => self.to.write_all(&self.checksum.sum().to_le_bytes()),
        }
    }
}

/// A value that can be written to a file of facts and read back.
pub(super) trait Persist: Sized {
    fn put(&self, out: &mut FactsWriter<'_>);
    fn get(from: &mut &[u8]) -> Option<Self>;
}

/// Writes the fields of a struct one after the other; those behind `;` are not written and read as their default.
macro_rules! persist {
    ($name:ident: $($field:ident),* $(; $($default:ident),*)?) => {
        impl $crate::extract::facts::Persist for $name {
            fn put(&self, out: &mut $crate::extract::facts::FactsWriter<'_>) {
                $($crate::extract::facts::Persist::put(&self.$field, out);)*
            }

            fn get(from: &mut &[u8]) -> Option<Self> {
                Some($name {
                    $($field: $crate::extract::facts::Persist::get(from)?,)*
                    $($($default: Default::default(),)*)?
                })
            }
        }
    };
}
pub(super) use persist;

/// Writes an enum without values as its number.
macro_rules! persist_enum {
    ($name:ident: $($choice:ident),*) => {
        impl $crate::extract::facts::Persist for $name {
            fn put(&self, out: &mut $crate::extract::facts::FactsWriter<'_>) {
                out.put(&[*self as u8]);
            }

            fn get(from: &mut &[u8]) -> Option<Self> {
                let number = u8::get(from)?;
                [$($name::$choice),*].into_iter().find(|choice| *choice as u8 == number)
            }
        }
    };
}
pub(super) use persist_enum;

macro_rules! persist_number {
    ($($number:ty),*) => {$(
        impl Persist for $number {
            fn put(&self, out: &mut FactsWriter<'_>) {
                out.put(&self.to_le_bytes());
            }

            fn get(from: &mut &[u8]) -> Option<$number> {
                let (head, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(<$number>::from_le_bytes(*head))
            }
        }
    )*};
}
persist_number!(u8, u16, u32, u64, i64, f32);

impl Persist for usize {
    fn put(&self, out: &mut FactsWriter<'_>) {
        (*self as u64).put(out);
    }

    fn get(from: &mut &[u8]) -> Option<usize> {
        u64::get(from)?.try_into().ok()
    }
}

impl Persist for bool {
    fn put(&self, out: &mut FactsWriter<'_>) {
        out.put(&[u8::from(*self)]);
    }

    fn get(from: &mut &[u8]) -> Option<bool> {
        Some(u8::get(from)? != 0)
    }
}

impl Persist for Box<str> {
    fn put(&self, out: &mut FactsWriter<'_>) {
        (self.len() as u32).put(out);
        out.put(self.as_bytes());
    }

    fn get(from: &mut &[u8]) -> Option<Box<str>> {
        let length = u32::get(from)? as usize;
        let (head, rest) = from.split_at_checked(length)?;
        *from = rest;
        std::str::from_utf8(head).ok().map(Box::from)
    }
}

impl Persist for String {
    fn put(&self, out: &mut FactsWriter<'_>) {
        (self.len() as u32).put(out);
        out.put(self.as_bytes());
    }

    fn get(from: &mut &[u8]) -> Option<String> {
        <Box<str>>::get(from).map(String::from)
    }
}

impl<T: Persist> Persist for Option<T> {
    fn put(&self, out: &mut FactsWriter<'_>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn get(from: &mut &[u8]) -> Option<Option<T>> {
        if bool::get(from)? {
            T::get(from).map(Some)
        } else {
            Some(None)
        }
    }
}

impl<A: Persist, B: Persist> Persist for (A, B) {
    fn put(&self, out: &mut FactsWriter<'_>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn get(from: &mut &[u8]) -> Option<(A, B)> {
        Some((A::get(from)?, B::get(from)?))
    }
}

fn get_all<T: Persist, C: FromIterator<T>>(from: &mut &[u8]) -> Option<C> {
    let count = u32::get(from)?;
    (0..count).map(|_| T::get(from)).collect()
}

/// Writes a list as its length and its values.
macro_rules! persist_list {
    ($($list:ident),*) => {$(
        impl<T: Persist> Persist for $list<T> {
            fn put(&self, out: &mut FactsWriter<'_>) {
                (self.len() as u32).put(out);
                self.iter().for_each(|value| value.put(out));
            }

            fn get(from: &mut &[u8]) -> Option<Self> {
                get_all(from)
            }
        }
    )*};
}
persist_list!(Vec, VecDeque);

fn put_map<'a, K: Persist + 'a, V: Persist + 'a>(
    map: impl ExactSizeIterator<Item = (&'a K, &'a V)>,
    out: &mut FactsWriter<'_>,
) {
    (map.len() as u32).put(out);
    for (key, value) in map {
        key.put(out);
        value.put(out);
    }
}

impl<K: Persist + Ord, V: Persist> Persist for BTreeMap<K, V> {
    fn put(&self, out: &mut FactsWriter<'_>) {
        put_map(self.iter(), out);
    }

    fn get(from: &mut &[u8]) -> Option<BTreeMap<K, V>> {
        get_all(from)
    }
}

impl<K: Persist + Eq + Hash, V: Persist, S: BuildHasher + Default> Persist for HashMap<K, V, S> {
    fn put(&self, out: &mut FactsWriter<'_>) {
        put_map(self.iter(), out);
    }

    fn get(from: &mut &[u8]) -> Option<HashMap<K, V, S>> {
        get_all(from)
    }
}

persist!(Todo: text, state);
persist_enum!(TodoState: Open, Doing, Done);
persist!(ToolOutcome: failed, code, key);

#[cfg(test)]
mod tests {
    use infold_wire::Message;

    use super::*;

    fn span(from: u64, to: u64) -> Span {
        let seq = |seq| Seq::new(seq).expect("not zero");
        Span::new(seq(from), seq(to)).expect("in order")
    }

    fn written(runs: &[Span], extract: &Extract) -> Vec<u8> {
        let mut bytes = Vec::new();
        ExtractedFacts::write(runs, extract, &mut bytes).expect("memory takes it");
        bytes
    }

    fn read(extract: &mut Extract, from: u64, to: u64) {
        for seq in from..=to {
            let text = if seq % 2 == 1 {
                format!(
                    r#"{{"role":"user","content":"Never drop ledger_{seq}; berth {seq} costs 30 euros."}}"#
                )
            } else {
                format!(
                    r#"{{"role":"assistant","content":[{{"type":"text","text":"Decided because of item_{seq}."}},{{"type":"tool_use","id":"t{seq}","name":"Edit","input":{{"file_path":"src/f{seq}.rs"}}}}]}}"#
                )
            };
            let message = Message::parse(text.as_bytes()).expect("a message");
            extract.message(Seq::new(seq).expect("not zero"), &message);
        }
    }

    #[test]
    fn a_summary_is_the_same_whether_facts_were_kept_in_between_or_not() {
        let mut whole = Extract::new();
        read(&mut whole, 1, 40);
        let mut front = Extract::new();
        read(&mut front, 1, 21);
        let bytes = written(&[span(1, 21)], &front);
        let facts = ExtractedFacts::read(&bytes).expect("what was just written");
        assert_eq!(facts.rest(&[span(1, 40)]), Some(vec![span(22, 40)]));
        let mut rest = facts.extract;
        read(&mut rest, 22, 40);
        for budget in [200, 600, 2_000] {
            assert_eq!(rest.write(budget), whole.write(budget));
        }
    }

    #[test]
    fn damaged_facts_and_facts_of_other_messages_are_not_used() {
        let mut extract = Extract::new();
        read(&mut extract, 1, 9);
        let bytes = written(&[span(1, 4), span(6, 9)], &extract);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert!(ExtractedFacts::read(&damaged).is_none(), "byte {at}");
        }
        assert!(ExtractedFacts::read(&bytes[..bytes.len() - 1]).is_none());
        let facts = ExtractedFacts::read(&bytes).expect("what was just written");
        assert_eq!(facts.rest(&[span(1, 9)]), None);
        assert_eq!(facts.rest(&[span(1, 4)]), None);
        let on = [span(1, 4), span(6, 12)];
        assert_eq!(facts.rest(&on), Some(vec![span(10, 12)]));
    }
}
