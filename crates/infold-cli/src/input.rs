use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Seek, SeekFrom};
use std::path::Path;

use infold_wire::transcript::Seen;

use crate::failure::{Failure, Kind};
use crate::out::{DIM, paint, say};
use crate::progress::Progress;

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
