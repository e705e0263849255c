//! Metadata of files, from the file system.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Stat};

/// The metadata of a file. As long as it stays the same, so do the contents, unless they were changed within
/// the same tick of the file system's clock: [`FileStat::is_settled`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStat {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    /// In nanoseconds since 1970.
    pub modified: i128,
    pub changed: i128,
    /// Type and permissions.
    pub mode: u32,
}

/// How coarse the clock of a file system may be that knows fractions of seconds.
const TICK: Duration = Duration::from_millis(100);

/// How coarse it may be where all times are whole seconds.
const COARSE_TICK: Duration = Duration::from_millis(2100);

const SECOND: i128 = 1_000_000_000;

impl FileStat {
    #[allow(clippy::unnecessary_cast)] // Systems differ in the types of these.
    pub fn of(stat: &Stat) -> FileStat {
        let time = |seconds: i128, nanoseconds: i128| seconds * SECOND + nanoseconds;
        FileStat {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: time(stat.st_mtime as i128, stat.st_mtime_nsec as i128),
            changed: time(stat.st_ctime as i128, stat.st_ctime_nsec as i128),
            mode: stat.st_mode as u32,
        }
    }

    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Returns the permissions.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    /// Returns whether a change after `now` would show.
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let newest = self.modified.max(self.changed);
        let is_coarse = self.modified % SECOND == 0 && self.changed % SECOND == 0;
        let tick = if is_coarse { COARSE_TICK } else { TICK };
        now.saturating_sub(tick).as_nanos() as i128 > newest
    }
}
