//! Keeps what was collected in a file, so that the next fold of a task reads only what came since.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::io::{self, Write};

use infold_log::{Seq, Span};
use infold_wire::acts::{Ending, State, Todo};

use super::Extract;

/// What a version that writes another form starts its files with differs.
const HEADER: &[u8] = b"infold facts 3\n";

/// What was collected from some messages, and which these are.
pub struct Facts {
    /// The messages, as runs in order.
    pub runs: Vec<Span>,
    /// What was collected.
    pub extract: Extract,
}

impl Facts {
    /// Writes them down, a piece at a time.
    pub fn write(runs: &[Span], extract: &Extract, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(HEADER)?;
        let mut sink = Sink::new(to);
        let runs: Vec<(u64, u64)> = runs
            .iter()
            .map(|run| (run.from().get(), run.to().get()))
            .collect();
        runs.put(&mut sink);
        extract.put(&mut sink);
        sink.finish()
    }

    /// Reads them back; nothing if they are damaged or of another version.
    pub fn read(bytes: &[u8]) -> Option<Facts> {
        let body = bytes.strip_prefix(HEADER)?;
        let (mut rest, sum) = body.split_last_chunk()?;
        let mut checksum = Checksum::default();
        checksum.add(rest);
        if checksum.sum() != u64::from_le_bytes(*sum) {
            return None;
        }
        let runs = Vec::<(u64, u64)>::get(&mut rest)?
            .into_iter()
            .map(|(from, to)| Span::new(Seq::new(from)?, Seq::new(to)?))
            .collect::<Option<Vec<Span>>>()?;
        let extract = Extract::get(&mut rest)?;
        Some(Facts { runs, extract })
    }

    /// What of `covered` was not read yet; none if these facts are of other messages.
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

/// Tells damage from what was written; nobody forges a file of derived facts.
struct Checksum {
    state: u64,
    bytes: u64,
}

impl Default for Checksum {
    fn default() -> Checksum {
        Checksum {
            state: 0xcbf2_9ce4_8422_2325,
            bytes: 0,
        }
    }
}

impl Checksum {
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
pub(super) struct Sink<'a> {
    to: &'a mut dyn Write,
    buffer: Vec<u8>,
    checksum: Checksum,
    failed: Option<io::Error>,
}

/// A multiple of eight, as the checksum wants it.
const SINK_BUFFER_BYTES: usize = 64 << 10;

impl<'a> Sink<'a> {
    fn new(to: &'a mut dyn Write) -> Sink<'a> {
        Sink {
            to,
            buffer: Vec::with_capacity(SINK_BUFFER_BYTES),
            checksum: Checksum::default(),
            failed: None,
        }
    }

    /// Writes bytes. An error is told at the end.
    pub fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = SINK_BUFFER_BYTES - self.buffer.len();
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = rest;
            if self.buffer.len() == SINK_BUFFER_BYTES {
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

/// A value that can be written down and read back.
pub(super) trait Keep: Sized {
    fn put(&self, out: &mut Sink<'_>);
    fn get(from: &mut &[u8]) -> Option<Self>;
}

/// Writes the fields of a struct one after the other.
macro_rules! keep {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::extract::facts::Keep for $name {
            fn put(&self, out: &mut $crate::extract::facts::Sink<'_>) {
                $($crate::extract::facts::Keep::put(&self.$field, out);)*
            }

            fn get(from: &mut &[u8]) -> Option<Self> {
                Some($name { $($field: $crate::extract::facts::Keep::get(from)?),* })
            }
        }
    };
}
pub(super) use keep;

/// Writes a choice without values as its number.
macro_rules! keep_choice {
    ($name:ident { $($choice:ident),* $(,)? }) => {
        impl $crate::extract::facts::Keep for $name {
            fn put(&self, out: &mut $crate::extract::facts::Sink<'_>) {
                out.put(&[*self as u8]);
            }

            fn get(from: &mut &[u8]) -> Option<Self> {
                let number = u8::get(from)?;
                [$($name::$choice),*].into_iter().find(|choice| *choice as u8 == number)
            }
        }
    };
}
pub(super) use keep_choice;

macro_rules! keep_number {
    ($($number:ty),*) => {$(
        impl Keep for $number {
            fn put(&self, out: &mut Sink<'_>) {
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
keep_number!(u8, u16, u32, u64, i64, f32);

impl Keep for usize {
    fn put(&self, out: &mut Sink<'_>) {
        (*self as u64).put(out);
    }

    fn get(from: &mut &[u8]) -> Option<usize> {
        u64::get(from)?.try_into().ok()
    }
}

impl Keep for bool {
    fn put(&self, out: &mut Sink<'_>) {
        out.put(&[u8::from(*self)]);
    }

    fn get(from: &mut &[u8]) -> Option<bool> {
        Some(u8::get(from)? != 0)
    }
}

impl Keep for String {
    fn put(&self, out: &mut Sink<'_>) {
        (self.len() as u32).put(out);
        out.put(self.as_bytes());
    }

    fn get(from: &mut &[u8]) -> Option<String> {
        let length = u32::get(from)? as usize;
        let (head, rest) = from.split_at_checked(length)?;
        *from = rest;
        String::from_utf8(head.to_vec()).ok()
    }
}

impl Keep for Box<str> {
    fn put(&self, out: &mut Sink<'_>) {
        (self.len() as u32).put(out);
        out.put(self.as_bytes());
    }

    fn get(from: &mut &[u8]) -> Option<Box<str>> {
        String::get(from).map(Into::into)
    }
}

impl<T: Keep> Keep for Option<T> {
    fn put(&self, out: &mut Sink<'_>) {
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

impl<A: Keep, B: Keep> Keep for (A, B) {
    fn put(&self, out: &mut Sink<'_>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn get(from: &mut &[u8]) -> Option<(A, B)> {
        Some((A::get(from)?, B::get(from)?))
    }
}

fn put_all<'a, T: Keep + 'a>(count: usize, all: impl Iterator<Item = &'a T>, out: &mut Sink<'_>) {
    (count as u32).put(out);
    all.for_each(|value| value.put(out));
}

fn get_all<T: Keep, C: FromIterator<T>>(from: &mut &[u8]) -> Option<C> {
    let count = u32::get(from)?;
    (0..count).map(|_| T::get(from)).collect()
}

impl<T: Keep> Keep for Vec<T> {
    fn put(&self, out: &mut Sink<'_>) {
        put_all(self.len(), self.iter(), out);
    }

    fn get(from: &mut &[u8]) -> Option<Vec<T>> {
        get_all(from)
    }
}

impl<T: Keep> Keep for VecDeque<T> {
    fn put(&self, out: &mut Sink<'_>) {
        put_all(self.len(), self.iter(), out);
    }

    fn get(from: &mut &[u8]) -> Option<VecDeque<T>> {
        get_all(from)
    }
}

impl<K: Keep + Ord, V: Keep> Keep for BTreeMap<K, V> {
    fn put(&self, out: &mut Sink<'_>) {
        (self.len() as u32).put(out);
        for (key, value) in self {
            key.put(out);
            value.put(out);
        }
    }

    fn get(from: &mut &[u8]) -> Option<BTreeMap<K, V>> {
        get_all(from)
    }
}

impl<K: Keep + Eq + Hash, V: Keep, S: BuildHasher + Default> Keep for HashMap<K, V, S> {
    fn put(&self, out: &mut Sink<'_>) {
        (self.len() as u32).put(out);
        for (key, value) in self {
            key.put(out);
            value.put(out);
        }
    }

    fn get(from: &mut &[u8]) -> Option<HashMap<K, V, S>> {
        get_all(from)
    }
}

keep!(Todo { text, state });
keep_choice!(State { Open, Doing, Done });
keep!(Ending { failed, code, key });

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
        Facts::write(runs, extract, &mut bytes).expect("memory takes it");
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
        let facts = Facts::read(&bytes).expect("what was just written");
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
            assert!(Facts::read(&damaged).is_none(), "byte {at}");
        }
        assert!(Facts::read(&bytes[..bytes.len() - 1]).is_none());
        let facts = Facts::read(&bytes).expect("what was just written");
        assert_eq!(facts.rest(&[span(1, 9)]), None);
        assert_eq!(facts.rest(&[span(1, 4)]), None);
        let on = [span(1, 4), span(6, 12)];
        assert_eq!(facts.rest(&on), Some(vec![span(10, 12)]));
    }
}
