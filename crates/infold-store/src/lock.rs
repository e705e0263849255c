//! The lock of a task, held by the operating system.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use infold_wire::{Json, quote};

use crate::{LogError, file, time};

/// The right to write to a task, held by the operating system: it ends with the process.
#[derive(Debug)]
pub struct Lock {
    file: File,
    claim: Claim,
    in_order: bool,
}

/// Tells whether a lock is still the one that others meet.
///
/// A person may remove the file while it is held; the next process creates another one, and both would write.
#[derive(Clone, Debug)]
pub struct Claim {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl Claim {
    /// Returns whether the file is still there, and no other has its name.
    pub fn holds(&self) -> bool {
        identity(std::fs::metadata(&self.path)) == Some(self.identity)
    }
}

/// The process that holds, or held, a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// Where it answers requests, if it does.
    pub address: Option<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)?;
        match &self.address {
            Some(address) => write!(f, " (infold serve at {address})"),
            None => Ok(()),
        }
    }
}

/// The result of trying to take a lock.
#[derive(Debug)]
pub enum Taken {
    /// The lock is ours; a holder that died may have left its name.
    Ours(Lock, Option<Holder>),
    /// Another process has it.
    Held(Option<Holder>),
}

impl Lock {
    /// Tries to take the lock of the task in `dir`, without waiting. `address` is
    /// where the holder answers requests.
    pub fn take(dir: &Path, address: Option<&str>) -> Result<Taken, LogError> {
        let path = dir.join("lock");
        loop {
            let opened = file::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path);
            let file = opened.map_err(|error| LogError::io(&path, "opened for writing", error))?;
            match patiently(&file) {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Taken::Held(read(&file))),
                Err(TryLockError::Error(error)) => {
                    return Err(LogError::io(&path, "locked", error));
                }
            }
            // The task may have been moved between opening and locking.
            if let Some(identity) = identity(file.metadata())
                && let claim = (Claim {
                    path: path.clone(),
                    identity,
                })
                && claim.holds()
            {
                let left = read(&file);
                let lock = Lock {
                    file,
                    claim,
                    in_order: left.is_none(),
                };
                lock.sign(&path, address)?;
                return Ok(Taken::Ours(lock, left));
            }
        }
    }

    /// Returns whether the task will be in good order when the lock is given up.
    ///
    /// At first it is unless the last holder died: opening the task may yet fail.
    pub fn in_order(&mut self, yes: bool) {
        self.in_order = yes;
    }

    /// The claim that shows whether the lock is still in force.
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Fails once the file was removed or replaced: another process may write by now.
    pub fn check(&self) -> Result<(), LogError> {
        if self.claim.holds() {
            Ok(())
        } else {
            Err(LogError::LockLost {
                path: self.claim.path.clone(),
            })
        }
    }

    fn sign(&self, path: &Path, address: Option<&str>) -> Result<(), LogError> {
        let host = quote(&host());
        let (pid, since) = (std::process::id(), time::iso(time::now()));
        let address = address.map_or(String::new(), |address| {
            format!(",\"address\":{}", quote(address))
        });
        let name = format!("{{\"pid\":{pid},\"host\":{host},\"since\":\"{since}\"{address}}}\n");
        // On a full disk the name is missing; the lock holds all the same.
        let signed = self
            .file
            .write_all_at(name.as_bytes(), 0)
            .and_then(|()| self.file.set_len(name.len() as u64));
        match signed.map_err(|error| LogError::io(path, "signed", error)) {
            Err(LogError::Full { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // An empty lock file says that its last holder closed the task in good order.
        if self.in_order {
            let _ = self.file.set_len(0);
        }
        // Closing the file is not enough: a process that is being started from this one holds
        // a copy of it for a moment, and with it the lock.
        let _ = self.file.unlock();
    }
}

/// Tries to lock a file, for a moment: [`is_held`] has it for an instant, too.
fn patiently(file: &File) -> Result<(), TryLockError> {
    for _ in 0..10 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            tried => return tried,
        }
    }
    file.try_lock()
}

/// Returns whether the last writer of the task in `dir` is gone without having closed it.
pub fn is_left(dir: &Path) -> bool {
    let named = std::fs::metadata(dir.join("lock")).is_ok_and(|meta| meta.len() > 0);
    named && !is_held(dir)
}

/// Returns the last writer of the task in `dir`, if it is gone without having closed it.
pub fn left_by(dir: &Path) -> Option<Holder> {
    let file = File::open(dir.join("lock")).ok()?;
    // The shared lock is held only briefly: a writer that fails to lock meanwhile tries again.
    file.try_lock_shared().ok()?;
    read(&file)
}

/// Returns whether some process holds the lock of the task in `dir`, without taking it.
pub fn is_held(dir: &Path) -> bool {
    let probe = File::open(dir.join("lock")).map(|file| file.try_lock_shared());
    matches!(probe, Ok(Err(TryLockError::WouldBlock)))
}

/// The name of this machine.
pub fn host() -> String {
    hostname::get().map_or("unknown".into(), |name| name.to_string_lossy().into_owned())
}

fn read(file: &File) -> Option<Holder> {
    let mut text = Vec::new();
    let mut file = file;
    file.read_to_end(&mut text).ok()?;
    let json = Json::parse(&text).ok()?;
    let pid = json.get("pid")?.number()?;
    let host = json.get("host")?.text()?.into_owned();
    Some(Holder {
        // A process id that a u32 cannot hold was not written by us.
        pid: (pid >= 0.0 && pid <= f64::from(u32::MAX)).then_some(pid as u32)?,
        host,
        address: json
            .get("address")
            .and_then(Json::text)
            .map(|address| address.into_owned()),
    })
}

fn identity(meta: std::io::Result<std::fs::Metadata>) -> Option<(u64, u64)> {
    meta.ok().map(|meta| (meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_file_in_a_process_just_started_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let Taken::Ours(lock, _) = Lock::take(dir.path(), None).unwrap() else {
            panic!("nobody else holds it");
        };
        let copy = lock.file.try_clone().unwrap();
        assert!(is_held(dir.path()));
        drop(lock);
        assert!(matches!(
            Lock::take(dir.path(), None).unwrap(),
            Taken::Ours(_, None)
        ));
        drop(copy);
    }

    #[test]
    fn who_finds_a_lock_held_learns_where_its_holder_answers() {
        let dir = tempfile::tempdir().unwrap();
        for address in [Some("http://127.0.0.1:7333"), None] {
            let Taken::Ours(lock, _) = Lock::take(dir.path(), address).unwrap() else {
                panic!("nobody else holds it");
            };
            let Taken::Held(Some(holder)) = Lock::take(dir.path(), None).unwrap() else {
                panic!("it is held, and signed");
            };
            assert_eq!(holder.address.as_deref(), address);
            assert_eq!(holder.pid, std::process::id());
            drop(lock);
        }
        let holder = Holder {
            pid: 12,
            host: "vm".to_owned(),
            address: Some("http://127.0.0.1:7333".to_owned()),
        };
        assert_eq!(
            holder.to_string(),
            "process 12 on vm (infold serve at http://127.0.0.1:7333)"
        );
    }
}
