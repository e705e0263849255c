//! The records of the sidecars `messages.idx` and `events.idx`.

use infold_log::{EventId, Mark, Point, Record, Role, Seq, Sums};
use infold_wire::Wires;

use crate::table::{Fixed, Numbers, put};

/// An entry of the sidecar `messages.idx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageEntry {
    /// Where its line starts in `messages.jsonl`.
    pub offset: u64,
    /// Bytes of its line, line break included.
    pub len: u32,
    /// Bytes of the message before its last brace.
    pub cut: u32,
    /// The checksum of its line.
    pub sum: u32,
    /// The facts that planning needs.
    pub record: Record,
    /// The wires on which it can be sent as it is.
    pub wires: Wires,
}

/// Where the wires stand among the flags.
const WIRES: u32 = 8;

/// Where it stands how far back the round is tied.
const TIE: u32 = 16;

const ROLES: [Role; 4] = [Role::System, Role::User, Role::Assistant, Role::Tool];

impl Fixed for MessageEntry {
    const MAGIC: [u8; 8] = *b"infoldm4";
    const RECORD_BYTES: usize = 96;

    fn line_end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let record = &self.record;
        let role = ROLES
            .iter()
            .position(|role| *role == record.role)
            .unwrap_or(0) as u64;
        let flags = [
            record.late,
            record.cuts,
            record.empty,
            record.item,
            record.unended,
        ];
        let flags = flags
            .iter()
            .zip(2..)
            .fold(role, |bits, (flag, at)| bits | u64::from(*flag) << at);
        // Ties do not reach further.
        let tie = (record.round.get() - record.tied.get()).min(u64::from(u16::MAX));
        let flags = flags | u64::from(self.wires.bits()) << WIRES | tie << TIE;
        let sums = &record.sums;
        let numbers = [
            self.offset,
            u64::from(self.len) | u64::from(self.cut) << 32,
            record.round.get(),
            record.time,
            u64::from(record.waiting) | flags << 32,
            sums.tokens,
            sums.bytes,
            sums.requests,
            sums.replies,
            sums.odd,
            sums.ties,
            u64::from(self.sum),
        ];
        put(out, &numbers);
    }

    fn decode(bytes: &[u8]) -> Option<MessageEntry> {
        let mut numbers = Numbers(bytes);
        let (offset, len, cut) = (numbers.u64()?, numbers.u32()?, numbers.u32()?);
        let (round, time) = (Seq::new(numbers.u64()?)?, numbers.u64()?);
        let (waiting, flags) = (numbers.u32()?, numbers.u32()?);
        let flag = |at: u32| flags >> at & 1 == 1;
        let record = Record {
            role: ROLES[(flags & 3) as usize],
            round,
            tied: Seq::new(round.get().checked_sub(u64::from(flags >> TIE))?)?,
            waiting,
            late: flag(2),
            cuts: flag(3),
            empty: flag(4),
            item: flag(5),
            unended: flag(6),
            time,
            sums: Sums {
                tokens: numbers.u64()?,
                bytes: numbers.u64()?,
                requests: numbers.u64()?,
                replies: numbers.u64()?,
                odd: numbers.u64()?,
                ties: numbers.u64()?,
            },
        };
        Some(MessageEntry {
            offset,
            len,
            cut,
            sum: u32::try_from(numbers.u64()?).ok()?,
            record,
            wires: Wires::from_bits((flags >> WIRES) as u8),
        })
    }
}

/// An entry of the sidecar `events.idx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventEntry {
    /// Where its line starts in `events.jsonl`.
    pub offset: u64,
    /// Bytes of its line, line break included.
    pub len: u32,
    /// The checksum of its line.
    pub sum: u32,
    /// The facts that the algebra needs.
    pub mark: Mark,
    /// Where the view after it is found.
    pub base: Base,
    /// The newest event up to it that has a snapshot; zero if there is none.
    pub snapshot: u64,
    /// The newest event up to it that changed the view; zero if there is none.
    pub change: u64,
    /// Summary folds so far.
    pub summaries: u64,
    /// Tool records so far.
    pub tools: u64,
    /// Usage totals so far.
    pub spent: Spent,
    /// The newest event up to it that reports the usage of a reply; zero if there is none.
    pub report: u64,
    /// The newest event up to it that says that messages were pushed with a key; zero if there is none.
    pub keyed: u64,
    /// The newest event up to it that says which files a workspace has; zero if there is none.
    pub files: u64,
}

/// Usage totals, as providers reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// How many.
    pub calls: u64,
    /// Tokens sent and received.
    pub tokens: u64,
    /// Tokens read from a cache.
    pub cached: u64,
    /// Millionths of a dollar.
    pub cost: u64,
}

/// Where the view after an event is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// By applying the event to the view before it.
    Before,
    /// The same as at an earlier point.
    Same(Point),
    /// Kept in `states.idx`.
    Snapshot {
        /// Where it starts.
        offset: u64,
        /// How long it is.
        len: u64,
    },
}

impl Fixed for EventEntry {
    const MAGIC: [u8; 8] = *b"infolde6";
    const RECORD_BYTES: usize = 160;

    fn line_end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let id = |id: Option<EventId>| id.map_or(0, EventId::get);
        let mark = &self.mark;
        let (kind, first, second) = match self.base {
            Base::Before => (0, 0, 0),
            Base::Same(point) => (1, point.seq, point.event),
            Base::Snapshot { offset, len } => (2, offset, len),
        };
        let kinds = kind | u64::from(mark.rewinds) << 2;
        put(out, &[self.offset, u64::from(self.len) | kinds << 32]);
        put(
            out,
            &[mark.after, mark.time, id(mark.step), id(mark.undone)],
        );
        put(out, &[first, second, self.snapshot, self.change]);
        let spent = &self.spent;
        put(out, &[self.summaries, self.tools]);
        put(out, &[spent.calls, spent.tokens, spent.cached, spent.cost]);
        put(out, &[self.report, self.keyed, self.files]);
        put(out, &[u64::from(self.sum)]);
    }

    fn decode(bytes: &[u8]) -> Option<EventEntry> {
        let mut numbers = Numbers(bytes);
        let (offset, len, kinds) = (numbers.u64()?, numbers.u32()?, numbers.u32()?);
        let mark = Mark {
            after: numbers.u64()?,
            time: numbers.u64()?,
            step: EventId::new(numbers.u64()?),
            undone: EventId::new(numbers.u64()?),
            rewinds: kinds >> 2 & 1 == 1,
        };
        let (first, second) = (numbers.u64()?, numbers.u64()?);
        let base = match kinds & 3 {
            0 => Base::Before,
            1 => Base::Same(Point {
                seq: first,
                event: second,
            }),
            2 => Base::Snapshot {
                offset: first,
                len: second,
            },
            _ => return None,
        };
        Some(EventEntry {
            offset,
            len,
            mark,
            base,
            snapshot: numbers.u64()?,
            change: numbers.u64()?,
            summaries: numbers.u64()?,
            tools: numbers.u64()?,
            spent: Spent {
                calls: numbers.u64()?,
                tokens: numbers.u64()?,
                cached: numbers.u64()?,
                cost: numbers.u64()?,
            },
            report: numbers.u64()?,
            keyed: numbers.u64()?,
            files: numbers.u64()?,
            sum: u32::try_from(numbers.u64()?).ok()?,
        })
    }
}
