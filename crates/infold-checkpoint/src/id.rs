//! Names of snapshots and objects.

use std::fmt;

use uuid::Uuid;

/// A snapshot: the task that it was taken for, and its number in that task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotRef {
    /// The task.
    pub task: Uuid,
    /// Counts from one in each task; never reused.
    pub number: u64,
}

impl fmt::Display for SnapshotRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of task {}", self.number, self.task)
    }
}

/// The id of an object of the shadow repository.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectId(pub [u8; 20]);

impl ObjectId {
    pub fn parse(hex: &[u8]) -> Option<ObjectId> {
        let mut id = [0; 20];
        if hex.len() != 40 {
            return None;
        }
        for (byte, digits) in id.iter_mut().zip(hex.chunks_exact(2)) {
            let high = char::from(digits[0]).to_digit(16)?;
            let low = char::from(digits[1]).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        Some(ObjectId(id))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
