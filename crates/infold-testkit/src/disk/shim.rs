//! The preloaded library that disturbs or records the file calls of a process, and its modes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

#[cfg(test)]
mod tests;

const SOURCE: &str = include_str!("../../shim/shim.c");

/// The library, compiled. It is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Shim {
    dir: TempDir,
}

/// The mode of the shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Lists the calls.
    List,
    /// Injects a fault into one call, counted from one.
    Fault(usize, DiskFault),
    /// Records the changes of all calls.
    Trace,
}

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Open,
    List,
    Create,
    Read,
    Write,
    Sync,
    Truncate,
    Rename,
    Unlink,
    Mkdir,
    Rmdir,
    Link,
    Allocate,
    Map,
}

/// A fault of a file call; `shim.c` defines each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DiskFault {
    Eio,
    Enospc,
    Emfile,
    Enomem,
    Eintr,
    Short,
    Torn,
    Full,
    ReadOnly,
    Broken,
    Kill,
    KillHalf,
    KillAfter,
}

/// A call that was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileCall {
    pub(crate) op: Op,
    pub(crate) path: PathBuf,
}

impl Shim {
    /// Compiles it with the C compiler that SQLite needs as well.
    pub(crate) fn build() -> Result<Shim, String> {
        if !cfg!(target_os = "linux") {
            return Err("calls are only intercepted on Linux".to_owned());
        }
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let shim = Shim { dir };
        let source = shim.dir.path().join("shim.c");
        fs::write(&source, SOURCE).map_err(|error| error.to_string())?;
        let compiled = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-Wall", "-shared", "-fPIC", "-o"])
            .args([&shim.library(), &source])
            .arg("-ldl")
            .output();
        match compiled {
            Ok(output) if output.status.success() => Ok(shim),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(format!("cc: {error}")),
        }
    }

    fn library(&self) -> PathBuf {
        self.dir.path().join("shim.so")
    }

    /// Loads the library into a command: `dir` is the directory that it watches, `log` its output.
    pub(crate) fn load(&self, command: &mut Command, dir: &Path, log: &Path, mode: Mode) {
        let name = match mode {
            Mode::List => "list",
            Mode::Fault(..) => "fault",
            Mode::Trace => "trace",
        };
        command
            .env("LD_PRELOAD", self.library())
            .env("SHIM_DIR", dir)
            .env("SHIM_LOG", log)
            .env("SHIM_MODE", name);
        if let Mode::Fault(at, fault) = mode {
            command
                .env("SHIM_AT", at.to_string())
                .env("SHIM_FAULT", fault.name());
        }
    }
}

impl Shim {
    /// Has a command take a file for the boot id of the machine.
    pub(crate) fn boot(&self, command: &mut Command, file: &Path) {
        command
            .env("LD_PRELOAD", self.library())
            .env("SHIM_BOOT", file);
    }
}

/// Reads the listed calls, or the disturbed one.
pub(crate) fn read_calls(log: &Path) -> Vec<FileCall> {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let calls = text.lines().filter_map(|line| {
        let (op, path) = line.split_once('\t')?;
        Some(FileCall {
            op: Op::named(op)?,
            path: path.into(),
        })
    });
    calls.collect()
}

impl Op {
    const ALL: [(Op, &'static str); 14] = [
        (Op::Open, "open"),
        (Op::List, "list"),
        (Op::Create, "create"),
        (Op::Read, "read"),
        (Op::Write, "write"),
        (Op::Sync, "sync"),
        (Op::Truncate, "truncate"),
        (Op::Rename, "rename"),
        (Op::Unlink, "unlink"),
        (Op::Mkdir, "mkdir"),
        (Op::Rmdir, "rmdir"),
        (Op::Link, "link"),
        (Op::Allocate, "allocate"),
        (Op::Map, "map"),
    ];

    fn named(name: &str) -> Option<Op> {
        let mut all = Op::ALL.iter();
        all.find(|(_, known)| *known == name).map(|(op, _)| *op)
    }

    pub(crate) fn name(self) -> &'static str {
        let mut all = Op::ALL.iter();
        all.find(|(op, _)| *op == self).map_or("", |(_, name)| name)
    }

    /// The faults that such a call may meet. A kill before a call that changes nothing is the same as one
    /// before the next that does.
    pub(crate) fn faults(self) -> &'static [DiskFault] {
        use DiskFault::{
            Broken, Eintr, Eio, Emfile, Enomem, Enospc, Full, Kill, KillHalf, ReadOnly, Short, Torn,
        };
        match self {
            Op::Open => &[Eio, Emfile, Eintr, Broken],
            Op::List => &[Eio, Emfile, Broken],
            Op::Create => &[Eio, Enospc, Emfile, Full, ReadOnly, Kill],
            Op::Read => &[Eio, Eintr, Short],
            Op::Write => &[
                Eio, Enospc, Eintr, Short, Torn, Full, ReadOnly, Broken, Kill, KillHalf,
            ],
            Op::Sync => &[Eio, Enospc, Broken, Kill],
            Op::Truncate => &[Eio, Eintr, ReadOnly, Kill],
            Op::Rename => &[Eio, Enospc, Full, ReadOnly, Kill],
            Op::Unlink | Op::Rmdir => &[Eio, ReadOnly, Kill],
            Op::Mkdir | Op::Link => &[Eio, Enospc, ReadOnly, Kill],
            Op::Allocate => &[Enospc, Kill],
            Op::Map => &[Enomem],
        }
    }
}

impl DiskFault {
    const ALL: [(DiskFault, &'static str); 13] = [
        (DiskFault::Eio, "eio"),
        (DiskFault::Enospc, "enospc"),
        (DiskFault::Emfile, "emfile"),
        (DiskFault::Enomem, "enomem"),
        (DiskFault::Eintr, "eintr"),
        (DiskFault::Short, "short"),
        (DiskFault::Torn, "torn"),
        (DiskFault::Full, "full"),
        (DiskFault::ReadOnly, "readonly"),
        (DiskFault::Broken, "broken"),
        (DiskFault::Kill, "kill"),
        (DiskFault::KillHalf, "kill-half"),
        (DiskFault::KillAfter, "kill-after"),
    ];

    pub(crate) fn name(self) -> &'static str {
        let mut all = DiskFault::ALL.iter();
        all.find(|(fault, _)| *fault == self)
            .map_or("", |(_, name)| name)
    }

    pub(crate) fn is_kill(self) -> bool {
        matches!(
            self,
            DiskFault::Kill | DiskFault::KillHalf | DiskFault::KillAfter
        )
    }

    /// Returns whether a process continues after this fault as if nothing had happened.
    pub(crate) fn is_harmless(self) -> bool {
        matches!(self, DiskFault::Eintr | DiskFault::Short)
    }
}
