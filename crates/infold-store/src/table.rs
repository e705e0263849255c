//! Sidecars with a record of fixed size for each message or event.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use crate::LogError;
use crate::file::{Access, Growing};

/// A record of fixed size in a sidecar.
pub trait Fixed: Copy {
    /// Tells files of one kind and version from all others.
    const MAGIC: [u8; 8];
    /// Bytes of one record.
    const RECORD_BYTES: usize;
    /// Returns where the line of this record ends in its file.
    fn line_end(&self) -> u64;
    /// Writes the record, `RECORD_BYTES` bytes.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads a record from `RECORD_BYTES` bytes; none if they are not one.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// A sidecar: records by number, without reading the others.
///
/// Derived, so nothing depends on its being on disk: new records wait in memory and
/// are written some at a time. Missing ones are derived when it is opened next. Each
/// record ends with a checksum: a power cut may leave a file its length and not its bytes.
#[derive(Debug)]
pub struct Table<T> {
    file: Growing,
    base: u64,
    written: u64,
    tail: Vec<T>,
    /// Whether none of it is in its file.
    is_derived: bool,
    /// Whether a record that was read is damaged.
    is_damaged: Cell<bool>,
    /// The two that were read last, the last one first: the beginning and the end are wanted in turns.
    blocks: RefCell<[Block<T>; 2]>,
}

/// Records that stand together, and the index of the first. One that is damaged is none.
#[derive(Debug)]
struct Block<T> {
    first: u64,
    records: Vec<Option<T>>,
}

const HEADER_BYTES: usize = 16;
const RECORDS_PER_BLOCK: u64 = 64;
const FLUSH_AFTER_RECORDS: usize = 256;
/// The most records that are derived in memory; beyond it they are written to an unnamed file.
const MAX_DERIVED: usize = 1 << 14;

impl<T: Copy> Block<T> {
    fn get(&self, index: u64) -> Option<Option<T>> {
        let at = usize::try_from(index.checked_sub(self.first)?).ok()?;
        self.records.get(at).copied()
    }
}

impl<T> Default for Block<T> {
    fn default() -> Block<T> {
        Block {
            first: 0,
            records: Vec::new(),
        }
    }
}

impl<T: Fixed> Table<T> {
    const STRIDE_BYTES: usize = T::RECORD_BYTES + 8;

    /// Opens a sidecar whose first record has number `base + 1`. One that does not fit is taken as empty.
    pub fn open(path: PathBuf, base: u64, access: Access) -> Result<Table<T>, LogError> {
        let file = match access {
            Access::Rederive => Growing::missing(path),
            _ => Growing::open_derived(path, access)?,
        };
        let mut header = [0; HEADER_BYTES];
        let fits = file.len() >= HEADER_BYTES as u64 && {
            file.read(0, &mut header)?;
            header == Table::<T>::header(base)
        };
        let written = if fits {
            (file.len() - HEADER_BYTES as u64) / Table::<T>::STRIDE_BYTES as u64
        } else {
            0
        };
        Ok(Table {
            file,
            base,
            written,
            tail: Vec::new(),
            is_derived: access == Access::Rederive,
            is_damaged: Cell::new(false),
            blocks: RefCell::default(),
        })
    }

    /// Closes the file and frees its blocks until [`Table::reopen`]; records that are not in the file stay in
    /// memory.
    pub fn release(&mut self) {
        self.file.release();
        self.blocks = RefCell::default();
    }

    /// Makes it readable again.
    pub fn reopen(&mut self) -> Result<(), LogError> {
        self.file.reopen()
    }

    /// The number of the last record.
    pub fn last(&self) -> u64 {
        self.base + self.written + self.tail.len() as u64
    }

    /// Returns a record by its number, which lies above the base.
    pub fn get(&self, number: u64) -> Result<T, LogError> {
        let Some(index) = number.checked_sub(self.base + 1) else {
            return Err(self.missing(0));
        };
        if let Some(at) = index.checked_sub(self.written) {
            return self
                .tail
                .get(at as usize)
                .copied()
                .ok_or_else(|| self.missing(index));
        }
        let mut blocks = self.blocks.borrow_mut();
        let [last, other] = &mut *blocks;
        if last.get(index).is_none() {
            std::mem::swap(last, other);
        }
        if last.get(index).is_none() {
            let first = index - index % RECORDS_PER_BLOCK;
            let records = self.load(first, RECORDS_PER_BLOCK.min(self.written - first))?;
            *last = Block { first, records };
        }
        let found = last.get(index).flatten();
        found.ok_or_else(|| self.missing(index))
    }

    /// Returns the number of the last record whose line ends within the first `len` bytes of its file.
    pub fn last_within(&self, len: u64) -> Result<u64, LogError> {
        let (mut low, mut high) = (self.base, self.last());
        // Mostly all of them do, and then one is looked at.
        if high > low && self.get(high)?.line_end() <= len {
            return Ok(high);
        }
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.get(middle)?.line_end() <= len {
                low = middle
            } else {
                high = middle - 1
            }
        }
        Ok(low)
    }

    /// Drops from the file of a sidecar all records after number `last`. One that is not such a file stays as it is.
    pub fn cut_file(path: &Path, last: u64) -> Result<(), LogError> {
        if !path.is_file() {
            return Ok(());
        }
        let mut file = Growing::open(path.to_owned(), Access::Write)?;
        if file.len() < HEADER_BYTES as u64 {
            return Ok(());
        }
        let header = file.bytes(0, HEADER_BYTES)?;
        let base = Numbers(&header[8..]).u64().unwrap_or(0);
        let end = HEADER_BYTES as u64 + last.saturating_sub(base) * Table::<T>::STRIDE_BYTES as u64;
        if header == Table::<T>::header(base) && end < file.len() {
            file.cut(end)?;
        }
        Ok(())
    }

    /// Checks that no record of those that were read so far is damaged.
    pub fn check_read(&self) -> Result<(), LogError> {
        if self.is_damaged.get() {
            Err(LogError::damaged(self.file.path(), 0, "a damaged record"))
        } else {
            Ok(())
        }
    }

    /// Adds a record; it reaches the disk with the next [`Table::flush`], or soon after.
    pub fn push(&mut self, record: T) {
        self.tail.push(record);
        if self.is_derived && self.tail.len() == MAX_DERIVED && !self.file.is_writable() {
            // Without a scratch file it continues in memory.
            let scratch = Growing::scratch(self.file.path().to_owned());
            scratch.into_iter().for_each(|scratch| self.file = scratch);
        }
        // Flush only now and then: if it fails, the tail only grows.
        if self.file.is_writable() && self.tail.len().is_multiple_of(FLUSH_AFTER_RECORDS) {
            // A sidecar that cannot be written (a full disk) costs a scan later, nothing else.
            let _ = self.flush();
        }
    }

    /// Writes the records that wait.
    pub fn flush(&mut self) -> Result<(), LogError> {
        if self.tail.is_empty() {
            return self.file.make();
        }
        let mut bytes = Vec::new();
        if self.written == 0 {
            bytes.extend_from_slice(&Table::<T>::header(self.base));
        }
        for (record, index) in self.tail.iter().zip(self.written..) {
            let start = bytes.len();
            record.encode(&mut bytes);
            let sum = checksum(self.base + index, &bytes[start..]);
            put(&mut bytes, &[sum]);
        }
        let at = if self.written == 0 {
            0
        } else {
            self.position(self.written)
        };
        self.file.overwrite(at, &bytes)?;
        self.written += self.tail.len() as u64;
        self.tail.clear();
        Ok(())
    }

    /// Drops all records after number `last`.
    pub fn cut(&mut self, last: u64) -> Result<(), LogError> {
        let keep = last.saturating_sub(self.base);
        self.tail
            .truncate(keep.saturating_sub(self.written) as usize);
        if keep < self.written {
            self.written = keep;
            self.is_damaged.set(false);
            *self.blocks.borrow_mut() = Default::default();
        }
        Ok(())
    }

    /// Shortens the file to the records in use, so that nothing stale lies behind them.
    pub fn trim(&mut self) -> Result<(), LogError> {
        let end = if self.written == 0 {
            0
        } else {
            self.position(self.written)
        };
        // Also if some records were written over stale ones in the meantime.
        self.file.cut(end)
    }

    fn header(base: u64) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&T::MAGIC);
        header[8..].copy_from_slice(&base.to_le_bytes());
        header
    }

    fn position(&self, index: u64) -> u64 {
        HEADER_BYTES as u64 + index * Table::<T>::STRIDE_BYTES as u64
    }

    fn load(&self, start: u64, count: u64) -> Result<Vec<Option<T>>, LogError> {
        let bytes = self.file.bytes(
            self.position(start),
            count as usize * Table::<T>::STRIDE_BYTES,
        )?;
        let records = bytes.chunks_exact(Table::<T>::STRIDE_BYTES).zip(start..);
        let decoded = records.map(|(bytes, at)| {
            let bytes =
                unsealed(self.base + at, bytes).filter(|bytes| bytes.len() == T::RECORD_BYTES);
            let record = bytes.and_then(T::decode);
            if record.is_none() {
                self.is_damaged.set(true);
            }
            record
        });
        Ok(decoded.collect())
    }

    fn missing(&self, index: u64) -> LogError {
        LogError::damaged(self.file.path(), self.position(index), "no such record")
    }
}

/// Returns a checksum that depends on the bytes and on their place.
///
/// It takes eight bytes at a time, because it is computed for every message. Each step is invertible, so a
/// change within eight bytes is always detected.
pub fn checksum(place: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain(std::iter::once(&last));
    words.fold(place ^ bytes.len() as u64, |sum, word| {
        let mixed = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    })
}

/// Takes the checksum off the end of some bytes; none if it is not theirs.
pub fn unsealed(place: u64, bytes: &[u8]) -> Option<&[u8]> {
    let (bytes, sum) = bytes.split_last_chunk::<8>()?;
    (u64::from_le_bytes(*sum) == checksum(place, bytes)).then_some(bytes)
}

/// Takes little-endian numbers off the front of some bytes.
pub struct Numbers<'a>(pub &'a [u8]);

impl Numbers<'_> {
    /// The next eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    /// The next four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }
}

/// Appends numbers in little-endian order.
pub fn put(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers
        .iter()
        .for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}
