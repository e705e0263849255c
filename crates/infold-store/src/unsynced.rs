//! Files that were written and may not be on the disk yet, and how they are synced.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use crate::{LogError, Metadata, Writer, file};

/// Files of a task whose last writes may not be on the disk yet.
///
/// Syncing needs no writer: another one may continue to write meanwhile, or have closed the task.
#[derive(Debug)]
pub struct UnsyncedFiles {
    files: Vec<PathBuf>,
    dir: PathBuf,
    names_synced: NamesSynced,
}

/// Whether the metadata of a task and the names of its files are synced, so that it is found after a power cut.
#[derive(Clone, Debug)]
pub(crate) struct NamesSynced(Arc<AtomicBool>);

impl Writer {
    /// Returns the files whose last writes may not be on the disk yet.
    pub fn unsynced_files(&self) -> UnsyncedFiles {
        let log = self.log();
        // Messages first: events name them.
        let mut growing = vec![&log.messages, &log.events];
        growing.extend(self.frames.as_ref().map(|frames| frames.file()));
        UnsyncedFiles {
            files: growing.iter().map(|one| one.path().to_owned()).collect(),
            dir: log.dir().to_owned(),
            names_synced: self.names_synced.clone(),
        }
    }
}

impl UnsyncedFiles {
    /// The most files that are synced one by one.
    const MAX_FILES_SYNCED_SINGLY: usize = 8;

    /// Syncs all of these files, which are below `root`, to the disk.
    pub fn force<'l>(
        root: &Path,
        all: impl IntoIterator<Item = &'l UnsyncedFiles>,
    ) -> Result<(), LogError> {
        let all: Vec<&UnsyncedFiles> = all.into_iter().collect();
        if all.len() > UnsyncedFiles::MAX_FILES_SYNCED_SINGLY {
            // Set the flags before syncing: a file created during the sync clears its flag again.
            let set_all = |yes| {
                for unsynced in &all {
                    unsynced.names_synced.0.store(yes, SeqCst);
                }
            };
            set_all(true);
            if whole(root).inspect_err(|_| set_all(false))? {
                return Ok(());
            }
            set_all(false);
        }
        all.into_iter().try_for_each(UnsyncedFiles::force_one)
    }

    fn force_one(&self) -> Result<(), LogError> {
        for path in &self.files {
            force(path)?;
        }
        self.names_synced.force(&self.dir)
    }

    /// Which files are brought to the disk, by name; those that name them come with them.
    #[cfg(test)]
    fn names(&self) -> Vec<String> {
        let mut names = self.files.clone();
        if !self.names_synced.0.load(SeqCst) {
            names.push(self.dir.join(Metadata::NAME));
        }
        let name = |path: &PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
        names.iter().filter_map(name).collect()
    }
}

impl NamesSynced {
    pub fn new(yes: bool) -> NamesSynced {
        NamesSynced(Arc::new(AtomicBool::new(yes)))
    }

    /// Records that the directory has a new name, which is not synced.
    pub fn clear(&self) {
        self.0.store(false, SeqCst);
    }

    /// Syncs the metadata of a task and the names of its files, if that was not done.
    pub fn force(&self, dir: &Path) -> Result<(), LogError> {
        // Set the flag before syncing: a file created during the sync clears it again.
        if self.0.swap(true, SeqCst) {
            return Ok(());
        }
        root(dir).inspect_err(|_| self.clear())
    }
}

fn root(dir: &Path) -> Result<(), LogError> {
    if force(&dir.join(Metadata::NAME))? {
        file::sync_dir(dir)?;
        dir.parent().map_or(Ok(()), file::sync_dir)?;
    }
    Ok(())
}

/// Syncs a file; returns false if it does not exist, because another process may have removed it.
fn force(path: &Path) -> Result<bool, LogError> {
    match File::open(path).and_then(|file| file.sync_data()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        synced => synced
            .map(|()| true)
            .map_err(|error| LogError::io(path, "synced", error)),
    }
}

/// Brings all there is of a file system onto the disk, which takes less than very many files one by one; says
/// whether that can be done here.
#[cfg(target_os = "linux")]
fn whole(root: &Path) -> Result<bool, LogError> {
    let synced = File::open(root).and_then(|root| Ok(rustix::fs::syncfs(root)?));
    synced
        .map(|()| true)
        .map_err(|error| LogError::io(root, "synced", error))
}

#[cfg(not(target_os = "linux"))]
fn whole(_: &Path) -> Result<bool, LogError> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use infold_wire::Wire;

    use crate::{Contexts, Durability, Metadata, UnsyncedFiles};

    const LOG: [&str; 2] = ["messages.jsonl", "events.jsonl"];

    #[test]
    fn all_that_is_not_derived_comes_onto_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let contexts = Contexts::new(dir.path(), Durability::Never);
        let task = contexts.create(Metadata::default()).unwrap();
        let (mut writer, _) = contexts.write(task).unwrap();
        let new = writer.unsynced_files();
        assert_eq!(new.names(), [LOG[0], LOG[1], "metadata.json"]);
        UnsyncedFiles::force(dir.path(), &[new]).unwrap();
        assert_eq!(writer.unsynced_files().names(), LOG);
        // A file that is new in the directory has a name that may be lost.
        writer.frame(Wire::Chat, &[("model", b"\"m\"")]).unwrap();
        let framed = [LOG[0], LOG[1], "frames.jsonl", "metadata.json"];
        assert_eq!(writer.unsynced_files().names(), framed);
        writer.force().unwrap();
        writer.frame(Wire::Chat, &[("model", b"\"n\"")]).unwrap();
        assert_eq!(writer.unsynced_files().names(), framed[..3]);
    }

    #[test]
    fn a_task_that_was_made_to_last_has_synced_names() {
        let dir = tempfile::tempdir().unwrap();
        let contexts = Contexts::new(dir.path(), Durability::Turn);
        let task = contexts.create(Metadata::default()).unwrap();
        let (writer, _) = contexts.write(task).unwrap();
        assert_eq!(writer.unsynced_files().names(), LOG);
    }

    #[test]
    fn very_many_are_brought_there_together() {
        let dir = tempfile::tempdir().unwrap();
        let contexts = Contexts::new(dir.path(), Durability::Never);
        let make = |_| {
            let task = contexts.create(Metadata::default()).unwrap();
            contexts.write(task).unwrap().0
        };
        let writers: Vec<_> = (0..20).map(make).collect();
        let all: Vec<UnsyncedFiles> = writers
            .iter()
            .map(|writer| writer.unsynced_files())
            .collect();
        UnsyncedFiles::force(dir.path(), &all).unwrap();
        for writer in &writers {
            assert_eq!(writer.unsynced_files().names(), LOG);
        }
    }

    #[test]
    fn a_task_that_is_gone_has_nothing_to_lose() {
        let dir = tempfile::tempdir().unwrap();
        let contexts = Contexts::new(dir.path(), Durability::Never);
        let task = contexts.create(Metadata::default()).unwrap();
        let (writer, _) = contexts.write(task).unwrap();
        let unsynced = writer.unsynced_files();
        std::fs::remove_dir_all(writer.log().dir()).unwrap();
        UnsyncedFiles::force(dir.path(), &[unsynced]).unwrap();
    }
}
