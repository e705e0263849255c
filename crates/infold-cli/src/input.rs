//! Inputs of commands: files, standard input, and the newest session of an agent.

use std::fs::File;
use std::io::{self, BufReader, IsTerminal as _, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use infold_wire::transcript::SkippedRecords;
use tempfile::SpooledTempFile;

use crate::agent_sessions::AgentName;
use crate::error::{CliError, CliResult};
use crate::output::note;
use crate::progress::ProgressLine;

/// The transcripts that a command reads.
#[derive(Clone, Debug, Args)]
pub struct Inputs {
    /// The transcripts; - for standard input, which is the default
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The newest session of an agent on this machine
    #[arg(long, value_name = "AGENT", value_enum, conflicts_with = "files")]
    last: Option<AgentName>,
}

impl Inputs {
    /// Returns the files to read, in order.
    pub fn paths(&self, json: bool) -> CliResult<Vec<PathBuf>> {
        if let Some(agent) = self.last {
            let newest = agent.newest_session()?;
            note(json, newest.display().to_string());
            return Ok(vec![newest]);
        }
        if !self.files.is_empty() {
            return Ok(self.files.clone());
        }
        if io::stdin().is_terminal() {
            return Err(CliError::usage("no input")
                .hint("name a file, - for standard input, or --last claude"));
        }
        Ok(vec![PathBuf::from("-")])
    }
}

/// Names the file in an error, if it is one of several.
pub fn in_file(paths: &[PathBuf], path: &Path) -> impl Fn(CliError) -> CliError {
    let name = (paths.len() > 1).then(|| path.display().to_string());
    move |error| match &name {
        Some(name) => error.within(name),
        None => error,
    }
}

/// An input that can be read again.
pub trait SeekableInput: Read + Seek {}
impl<T: Read + Seek> SeekableInput for T {}

/// The bytes of a stream that are buffered in memory before they go into a temporary file.
const MAX_SPOOLED_BYTES: usize = 4 << 20;

/// Opens an input so that it can be read again: a file, or a copy of standard input.
pub fn open_seekable(file: &Path, json: bool) -> CliResult<Box<dyn SeekableInput>> {
    match OpenedInput::open(file)? {
        OpenedInput::File(opened, _) => Ok(Box::new(opened)),
        OpenedInput::Stream(from) => {
            let mut to = SpooledTempFile::new(MAX_SPOOLED_BYTES);
            let mut progress = ProgressLine::new(json, "reading", 0);
            io::copy(&mut progress.watch(from), &mut to).map_err(unreadable(file))?;
            to.rewind().map_err(unreadable(file))?;
            Ok(Box::new(to))
        }
    }
}

/// Opens an input and passes its bytes to `check` first.
///
/// A stream is copied while it is checked, so that a refused one is not read to its end.
pub fn open_checked<T>(
    file: &Path,
    json: bool,
    check: impl FnOnce(&mut dyn Read) -> CliResult<T>,
) -> CliResult<(Box<dyn SeekableInput>, T)> {
    match OpenedInput::open(file)? {
        OpenedInput::File(mut opened, size) => {
            let mut progress = ProgressLine::new(json, "checking", size);
            let checked = check(&mut progress.watch(&mut opened))?;
            Ok((Box::new(opened), checked))
        }
        OpenedInput::Stream(from) => {
            let to = SpooledTempFile::new(MAX_SPOOLED_BYTES);
            let mut copied = CopyingReader { from, to };
            let mut progress = ProgressLine::new(json, "reading", 0);
            let checked = check(&mut progress.watch(&mut copied))?;
            Ok((Box::new(copied.to), checked))
        }
    }
}

/// Opens a transcript at its end; also returns its size.
pub fn open_transcript(
    file: &Path,
    json: bool,
) -> CliResult<(BufReader<Box<dyn SeekableInput>>, u64)> {
    let mut input = open_seekable(file, json)?;
    let size = input.seek(SeekFrom::End(0)).map_err(unreadable(file))?;
    Ok((BufReader::with_capacity(1 << 18, input), size))
}

/// A regular file and its size, or standard input or a pipe.
enum OpenedInput {
    File(File, u64),
    Stream(Box<dyn Read>),
}

impl OpenedInput {
    fn open(file: &Path) -> CliResult<OpenedInput> {
        if file.as_os_str() == "-" {
            if io::stdin().is_terminal() {
                note(false, "reading from the terminal; end with Ctrl-D");
            }
            return Ok(OpenedInput::Stream(Box::new(io::stdin().lock())));
        }
        let opened = File::open(file).map_err(unreadable(file))?;
        let metadata = opened.metadata().map_err(unreadable(file))?;
        if metadata.is_dir() {
            return Err(unreadable(file)(io::ErrorKind::IsADirectory.into()));
        }
        Ok(if metadata.is_file() {
            OpenedInput::File(opened, metadata.len())
        } else {
            OpenedInput::Stream(Box::new(opened))
        })
    }
}

/// A reader that copies the bytes that are read.
struct CopyingReader<R> {
    from: R,
    to: SpooledTempFile,
}

impl<R: Read> Read for CopyingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.to.write_all(&buffer[..count])?;
        Ok(count)
    }
}

/// Warns if the last line of a transcript was incomplete.
pub fn warn_of_torn_line(seen: &SkippedRecords, json: bool) {
    if let Some(line) = seen.torn {
        let text = format!(
            "line {line}, the last one, is incomplete and was skipped: the session is still being written, or the file was cut off"
        );
        CliError::usage(text).warn(json);
    }
}

/// Makes the error for an input that could not be read.
pub fn unreadable(path: &Path) -> impl Fn(io::Error) -> CliError {
    move |error| {
        CliError::usage(format!("{} could not be read: {error}", path.display()))
            .hint("name the file with the messages, or - for standard input")
    }
}
