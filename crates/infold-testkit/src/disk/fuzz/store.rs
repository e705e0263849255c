//! The stores that are damaged: that of all runs, as a killed server leaves it, with something set aside already, and
//! one with a task that is large enough for what a summarizer collected to be kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::fixture::Fixture;
use crate::disk::holdings::Holdings;
use crate::disk::names::Names;
use crate::disk::proxy::DiskProxy;
use crate::disk::sandbox::Sandbox;

/// A store and the files in it.
#[derive(Debug)]
pub(super) struct Store {
    sandbox: Sandbox,
    pub(super) holdings: Holdings,
    pub(super) damaged_files: Vec<DamagedFile>,
}

/// A file that can be damaged.
#[derive(Debug)]
pub(super) struct DamagedFile {
    /// Its name: `messages.jsonl`.
    pub(super) file: String,
    /// Its path in the contexts directory.
    pub(super) path: PathBuf,
    /// The name of its task; `store` for a database.
    pub(super) task: String,
    /// The id of the task that commands are tried on: its own, or any.
    pub(super) id: String,
    pub(super) bytes: Vec<u8>,
}

/// SQLite's shared memory, which the next process derives anew.
const NOT_HARMED: [&str; 1] = ["-shm"];
/// Files that an earlier repair set aside.
pub(super) const ASIDE: (&str, &[u8]) = (
    "torn-messages-1700000000000",
    b"{\"role\":\"user\",\"content\":\"set aside\n",
);
/// The same, and the leftovers of a fold and a request that were cut off.
const LEFT: [(&str, &[u8]); 4] = [
    ASIDE,
    ("unsummarized.jsonl", b"{\"role\":\"user\"}\n"),
    ("transcript.txt", b"[user]: hello\n"),
    ("request.json", b"{\"model\":\"m\"}"),
];

/// A pass over messages that are worth keeping facts of.
const LARGE: [&str; 3] = [
    "main: task new",
    "task push @main =large.jsonl",
    "manage @main --force --window 400k",
];

impl Store {
    /// The store of all runs, copied while a server works on it, so that the databases have logs and a lock has a holder.
    pub(super) fn new(fixture: &Fixture) -> Result<Store, String> {
        let running = Sandbox::copy_of(&fixture.contexts()).map_err(|error| error.to_string())?;
        let started = DiskProxy::start(&running, &fixture.program, &fixture.upstream(), None);
        let proxy = started.map_err(|ran| format!("infold serve: {}", ran.ending()))?;
        let mut talk = fixture.talk().clone();
        talk.turn(proxy.port, "who keeps the light?")?;
        // A server that is dropped is killed.
        drop(proxy);
        Store::of(running, fixture.names(), &TASKS).map_err(|error| error.to_string())
    }

    /// A task with several megabytes in it.
    pub(super) fn large(fixture: &Fixture) -> Result<Store, String> {
        let sandbox = Sandbox::new().map_err(|error| error.to_string())?;
        let mut names = Names::new(fixture.inputs());
        for line in LARGE {
            names.perform(&fixture.program, &sandbox, line, None)?;
        }
        let store = Store::of(sandbox, &names, &["main"]);
        let mut store = store.map_err(|error| error.to_string())?;
        store
            .damaged_files
            .retain(|damaged| damaged.file == "facts.bin");
        if store.damaged_files.is_empty() {
            Err("infold manage: keeps no facts.bin".to_owned())
        } else {
            Ok(store)
        }
    }

    fn of(sandbox: Sandbox, names: &Names, tasks: &[&str]) -> io::Result<Store> {
        let contexts = sandbox.contexts();
        let main = contexts.join("running").join(names.task("main"));
        for (name, bytes) in LEFT {
            fs::write(main.join(name), bytes)?;
        }
        let mut store = Store {
            holdings: Holdings::read(&contexts),
            sandbox,
            damaged_files: Vec::new(),
        };
        store.list(names, tasks)?;
        Ok(store)
    }

    pub(super) fn contexts(&self) -> PathBuf {
        self.sandbox.contexts()
    }

    fn list(&mut self, names: &Names, tasks: &[&str]) -> io::Result<()> {
        let contexts = self.contexts();
        self.add(&contexts, Path::new(""), "store", names.task("main"))?;
        for name in tasks {
            let id = names.task(name).to_owned();
            let dir = self.holdings.dir(&contexts, &id);
            let below = dir.strip_prefix(&contexts).unwrap_or(&dir).to_owned();
            self.add(&dir, &below, name, &id)?;
        }
        Ok(())
    }

    fn add(&mut self, dir: &Path, below: &Path, task: &str, id: &str) -> io::Result<()> {
        let mut names: Vec<String> = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_file()
                && name != ASIDE.0
                && !NOT_HARMED.iter().any(|end| name.ends_with(end))
            {
                names.push(name);
            }
        }
        names.sort();
        for file in names {
            self.damaged_files.push(DamagedFile {
                path: below.join(&file),
                bytes: fs::read(dir.join(&file))?,
                file,
                task: task.to_owned(),
                id: id.to_owned(),
            });
        }
        Ok(())
    }
}

/// The tasks whose files are damaged.
const TASKS: [&str; 7] = [
    "main", "fork", "undone", "ended", "imported", "asked", "proxied",
];
