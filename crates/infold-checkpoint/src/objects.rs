//! Reads objects of a shadow repository.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::error::CheckpointError;
use crate::git::Git;
use crate::id::ObjectId;

/// Reads objects through one process of git, which is started when the first is read.
pub(crate) struct Objects<'a> {
    git: &'a Git,
    reader: Option<ObjectReader>,
}

struct ObjectReader {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl<'a> Objects<'a> {
    pub fn new(git: &'a Git) -> Objects<'a> {
        Objects { git, reader: None }
    }

    /// Returns the contents of an object.
    pub fn read(&mut self, id: ObjectId) -> Result<Vec<u8>, CheckpointError> {
        let mut contents = Vec::new();
        let read = |reader: &mut dyn Read| {
            let read = reader.read_to_end(&mut contents);
            read.map_err(|error| CheckpointError::io("read", "an object", error))?;
            Ok(())
        };
        self.stream(id, read)?;
        Ok(contents)
    }

    /// Hands the contents of an object to `consume`, which must read all of them or fail.
    pub fn stream(
        &mut self,
        id: ObjectId,
        consume: impl FnOnce(&mut dyn Read) -> Result<(), CheckpointError>,
    ) -> Result<(), CheckpointError> {
        let streamed = self.try_stream(id, consume);
        if streamed.is_err() {
            // The rest of the reply would be read as the next one.
            self.stop();
        }
        streamed
    }

    fn try_stream(
        &mut self,
        id: ObjectId,
        consume: impl FnOnce(&mut dyn Read) -> Result<(), CheckpointError>,
    ) -> Result<(), CheckpointError> {
        let unreadable = || CheckpointError::Damaged {
            dir: self.git.directory().to_owned(),
            what: format!("object {id} cannot be read"),
        };
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => self.reader.insert(start(self.git)?),
        };
        writeln!(reader.input, "{id}").map_err(|_| unreadable())?;
        let mut header = Vec::new();
        let read = reader.output.read_until(b'\n', &mut header);
        read.map_err(|_| unreadable())?;
        let size = size_of(&header).ok_or_else(unreadable)?;
        let mut contents = (&mut reader.output).take(size);
        consume(&mut contents)?;
        // A process that died in the middle ends the contents early.
        if contents.limit() != 0 {
            return Err(unreadable());
        }
        let mut end = [0];
        let ended = reader.output.read_exact(&mut end);
        ended.map_err(|_| unreadable())?;
        Ok(())
    }

    fn stop(&mut self) {
        if let Some(ObjectReader {
            mut child,
            input,
            output,
        }) = self.reader.take()
        {
            drop(input);
            drop(output);
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Objects<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

fn start(git: &Git) -> Result<ObjectReader, CheckpointError> {
    let mut command = git.command(["cat-file", "--batch"])?;
    command.stdin(Stdio::piped());
    let mut child = git.spawn(&mut command)?;
    let input = child.stdin.take().expect("its input is a pipe");
    let output = child.stdout.take().expect("its output is a pipe");
    Ok(ObjectReader {
        child,
        input,
        output: BufReader::with_capacity(1 << 16, output),
    })
}

/// Reads `ID TYPE SIZE`; none if the object is missing or cannot be read.
fn size_of(header: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(header.strip_suffix(b"\n")?).ok()?;
    let mut fields = text.split(' ').skip(1);
    fields.next().filter(|kind| *kind == "blob")?;
    fields.next()?.parse().ok()
}
