//! The bytes between the messages of an imported transcript (`imported.jsonl`), which its export gives back.

use std::fs::File;
use std::io::{
    BufRead as _, BufReader, BufWriter, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _,
};
use std::path::{Path, PathBuf};

use infold_log::{Point, Seq};
use infold_wire::transcript::{TranscriptFormat, TranscriptLayout};
use infold_wire::{Json, quote};
use memchr::memmem;

use crate::{Log, LogError, file};

pub(crate) const NAME: &str = "imported.jsonl";
/// The last line is shorter than this.
const TAIL: u64 = 256;

/// The transcript that a task was imported from, except its messages.
///
/// Each line is `{"text":…}`, `{"bytes":…}` in hexadecimal for bytes that are not text, or `{"seq":…}` in the
/// place of a stored message; `{"list":…}` marks the end of the list of records; the last line says how far the
/// import has read.
#[derive(Debug)]
pub struct Imported {
    path: PathBuf,
    from: BufReader<File>,
    /// Its format, as the wire crate names it.
    pub format: String,
    /// Its layout, likewise.
    pub layout: String,
}

/// A piece of a transcript that was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportedPiece {
    /// Bytes that stood there.
    Bytes(Vec<u8>),
    /// A message that stood there as it is stored.
    Message(Seq),
    /// The list of records ends here; whether there is one in it.
    ListEnd(bool),
    /// The import ended, and the log was there.
    End(Point),
}

impl Log {
    /// The transcript that the task was made from, if it was.
    pub fn imported(&self) -> Result<Option<Imported>, LogError> {
        let path = self.dir().join(NAME);
        let from = match File::open(&path) {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LogError::io(&path, "opened", error)),
        };
        let mut imported = Imported {
            path,
            from,
            format: String::new(),
            layout: String::new(),
        };
        let line = imported.line()?.unwrap_or_default();
        let json = Json::parse(&line).ok();
        let text = |name| Some(json?.get(name)?.text()?.into_owned());
        let (Some(format), Some(layout)) = (text("format"), text("layout")) else {
            return Err(LogError::damaged(&imported.path, 0, "no \"format\""));
        };
        imported.format = format;
        imported.layout = layout;
        Ok(Some(imported))
    }
}

impl Log {
    /// Checks that the transcript which the task was made from, if it was, can be given back.
    pub(crate) fn check_imported(&self) -> Result<(), LogError> {
        let Some(mut imported) = self.imported()? else {
            return Ok(());
        };
        let path = self.dir().join(NAME);
        let damaged = |reason: &str| Err(LogError::damaged(&path, 0, reason));
        if imported.format.parse::<TranscriptFormat>().is_err()
            || imported.layout.parse::<TranscriptLayout>().is_err()
        {
            return damaged("its format or its layout is none that is known");
        }
        let last = self.state().at();
        imported.end()?;
        while let Some(kept) = imported.next_piece()? {
            match kept {
                ImportedPiece::Message(seq) if seq.get() > last.seq => {
                    return damaged("it names messages that are not there");
                }
                ImportedPiece::End(at) if at.seq > last.seq => {
                    return damaged("it ends with messages that are not there");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Imported {
    /// How far the log was when the import ended.
    pub fn end(&self) -> Result<Point, LogError> {
        let fail = |error| LogError::io(&self.path, "read", error);
        let mut file = File::open(&self.path).map_err(fail)?;
        let size = file.metadata().map_err(fail)?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))
            .map_err(fail)?;
        let mut tail = Vec::new();
        file.read_to_end(&mut tail).map_err(fail)?;
        let line = tail
            .trim_ascii_end()
            .split(|byte| *byte == b'\n')
            .next_back();
        match line.and_then(decode_line) {
            Some(ImportedPiece::End(at)) => Ok(at),
            _ => Err(LogError::damaged(
                &self.path,
                size,
                "its last line is missing",
            )),
        }
    }

    /// Returns the next piece; the last one is [`ImportedPiece::End`].
    pub fn next_piece(&mut self) -> Result<Option<ImportedPiece>, LogError> {
        let Some(line) = self.line()? else {
            return Ok(None);
        };
        let kept = decode_line(&line);
        let damaged = || LogError::damaged(&self.path, 0, "a line that says nothing");
        kept.ok_or_else(damaged).map(Some)
    }

    fn line(&mut self) -> Result<Option<Vec<u8>>, LogError> {
        let mut line = Vec::new();
        let read = self.from.read_until(b'\n', &mut line);
        let read = read.map_err(|error| LogError::io(&self.path, "read", error))?;
        Ok((read > 0).then_some(line))
    }
}

/// Reads a line after the first.
pub(crate) fn decode_line(line: &[u8]) -> Option<ImportedPiece> {
    Json::parse(line).ok().and_then(decode)
}

/// How a transcript is laid out, by the first line of its file.
pub(crate) fn layout_of(line: &[u8]) -> Option<TranscriptLayout> {
    let json = Json::parse(line).ok()?;
    json.get("layout")?.text()?.parse().ok()
}

/// The line that holds bytes of a transcript, without its line break.
pub(crate) fn encode_bytes(raw: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(raw) {
        return format!("{{\"text\":{}}}", quote(text));
    }
    let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{{\"bytes\":\"{hex}\"}}")
}

fn decode(json: Json<'_>) -> Option<ImportedPiece> {
    let number = |name: &str| {
        let value = json.get(name)?;
        std::str::from_utf8(value.bytes()).ok()?.parse::<u64>().ok()
    };
    if let Some(text) = json.get("text") {
        return Some(ImportedPiece::Bytes(text.text()?.into_owned().into_bytes()));
    }
    if let Some(hex) = json.get("bytes") {
        let hex = hex.text()?;
        let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
        return bytes.map(ImportedPiece::Bytes);
    }
    if let Some(list) = json.get("list") {
        return Some(ImportedPiece::ListEnd(list.is("filled")));
    }
    if let Some(seq) = number("seq") {
        return Some(ImportedPiece::Message(Seq::new(seq)?));
    }
    Some(ImportedPiece::End(Point {
        seq: number("messages")?,
        event: number("events")?,
    }))
}

/// Writes `imported.jsonl`.
#[derive(Debug)]
pub(crate) struct Keeper {
    path: PathBuf,
    to: BufWriter<File>,
}

impl Keeper {
    pub fn new(dir: &Path, format: &str, layout: &str) -> Result<Keeper, LogError> {
        let path = dir.join(NAME);
        file::replace(&path, b"")?;
        let opened = File::options().write(true).open(&path);
        let opened = opened.map_err(|error| LogError::io(&path, "written", error))?;
        let to = BufWriter::with_capacity(64 << 10, opened);
        let mut keeper = Keeper { path, to };
        let (format, layout) = (quote(format), quote(layout));
        keeper.write(&format!("{{\"format\":{format},\"layout\":{layout}}}\n"))?;
        Ok(keeper)
    }

    /// Keeps bytes, in which messages from `first` on may stand as they are stored.
    pub fn keep(&mut self, raw: &[u8], messages: &[Vec<u8>], first: Seq) -> Result<(), LogError> {
        let mut at = 0;
        let mut seq = first;
        for message in messages {
            // Line breaks between tokens are not stored, so such a message differs from the original.
            let whole = memchr::memchr2(b'\n', b'\r', message).is_none();
            if let Some(found) = whole.then(|| memmem::find(&raw[at..], message)).flatten() {
                self.bytes(&raw[at..at + found])?;
                self.write(&format!("{{\"seq\":{seq}}}\n"))?;
                at += found + message.len();
            }
            seq = seq.next();
        }
        self.bytes(&raw[at..])
    }

    fn bytes(&mut self, raw: &[u8]) -> Result<(), LogError> {
        if raw.is_empty() {
            return Ok(());
        }
        self.write(&(encode_bytes(raw) + "\n"))
    }

    pub fn list_end(&mut self, filled: bool) -> Result<(), LogError> {
        let how = if filled { "filled" } else { "empty" };
        self.write(&format!("{{\"list\":\"{how}\"}}\n"))
    }

    /// Says how far the import went, and puts all of it onto the disk.
    pub fn end(mut self, at: Point, sync: bool) -> Result<(), LogError> {
        let (messages, events) = (at.seq, at.event);
        self.write(&format!(
            "{{\"messages\":{messages},\"events\":{events}}}\n"
        ))?;
        let done = self.to.flush();
        let done = done.and_then(|()| {
            if sync {
                self.to.get_ref().sync_data()
            } else {
                Ok(())
            }
        });
        done.map_err(|error| LogError::io(&self.path, "written", error))
    }

    fn write(&mut self, line: &str) -> Result<(), LogError> {
        let written = self.to.write_all(line.as_bytes());
        written.map_err(|error| LogError::io(&self.path, "written", error))
    }
}
