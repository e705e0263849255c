use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use clap::Args;
use infold_wire::transcript::Seen;

use crate::failure::{Failure, Kind};
use crate::out::{DIM, paint, say};
use crate::progress::Progress;
use crate::sessions::Agent;

/// The transcripts that a command reads.
#[derive(Clone, Debug, Args)]
pub struct Inputs {
    /// The transcripts; - for standard input, which is read if none is named
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The newest session of an agent on this machine
    #[arg(long, value_name = "AGENT", value_enum, conflicts_with = "files")]
    last: Option<Agent>,
}

impl Inputs {
    /// The files to read, in order.
    pub fn paths(&self, json: bool) -> Result<Vec<PathBuf>, Failure> {
        if let Some(agent) = self.last {
            let newest = agent.newest_session()?;
            say(json, paint(DIM, newest.display().to_string()));
            return Ok(vec![newest]);
        }
        if self.files.is_empty() && io::stdin().is_terminal() {
            return Err(Failure::new(Kind::Usage, "there is nothing to read")
                .hint("name a file, - for standard input, or --last claude"));
        }
        Ok(match self.files.is_empty() {
            true => vec![PathBuf::from("-")],
            false => self.files.clone(),
        })
    }
}

/// A source of bytes that can be read again.
pub trait Staged: Read + Seek {}
impl<T: Read + Seek> Staged for T {}

/// What is kept in memory of an input that is no file; the rest goes into a temporary one.
const KEPT: usize = 4 << 20;

/// Opens an input so that it can be read again: a file, or standard input put into one.
pub fn staged(file: &Path, json: bool) -> Result<Box<dyn Staged>, Failure> {
    if file.as_os_str() != "-" {
        let opened = File::open(file).map_err(unreadable(file))?;
        let kind = opened.metadata().map_err(unreadable(file))?;
        if kind.is_dir() {
            let error = io::Error::from(io::ErrorKind::IsADirectory);
            return Err(unreadable(file)(error));
        }
        return match kind.is_file() {
            true => Ok(Box::new(opened)),
            false => spooled(opened, file, json),
        };
    }
    if io::stdin().is_terminal() {
        say(
            false,
            paint(DIM, "reading from the terminal; end with Ctrl-D"),
        );
    }
    spooled(io::stdin().lock(), file, json)
}

fn spooled(from: impl Read, file: &Path, json: bool) -> Result<Box<dyn Staged>, Failure> {
    let mut to = tempfile::SpooledTempFile::new(KEPT);
    let mut progress = Progress::new(json, "reading", 0);
    io::copy(&mut progress.watch(from), &mut to).map_err(unreadable(file))?;
    to.seek(SeekFrom::Start(0)).map_err(unreadable(file))?;
    Ok(Box::new(to))
}

/// Tells that the end of a transcript was not read, if it was not.
pub fn warn_of_torn_line(seen: &Seen, json: bool) {
    if let Some(line) = seen.torn {
        let text = format!(
            "line {line}, the last one, is no whole record and was left out: the session is still being written, or the file was cut off"
        );
        Failure::new(Kind::Usage, text).warn(json);
    }
}

/// Says that an input could not be read.
pub fn unreadable(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| {
        Failure::new(
            Kind::Usage,
            format!("{} could not be read: {error}", path.display()),
        )
        .hint("say which file holds the messages, or - for standard input")
    }
}
