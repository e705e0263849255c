//! Transcripts: conversations as files, in the formats of providers and agents.
//!
//! A transcript is read as a stream of [`Entry`]s whose messages are in a form that
//! [`Message`](crate::Message) takes: OpenAI chat and Anthropic messages as they are, all
//! others converted to Anthropic blocks. Memory is bounded by the largest record; of formats
//! that are trees a few bytes per record are kept, too.
//!
//! ```
//! use infold_wire::transcript::{Entry, Format, Transcript, Write};
//! use std::io::Cursor;
//!
//! let file = br#"{"contents":[{"role":"user","parts":[{"text":"name it"}]}]}"#;
//! let mut transcript = Transcript::open(Cursor::new(&file[..]), None)?;
//! assert_eq!(transcript.format(), Format::Gemini);
//!
//! let mut out = Vec::new();
//! let mut write = Write::new(Format::Pi, None)?;
//! for entry in transcript {
//!     if let Entry::Message { text, time } = entry? {
//!         assert_eq!(text, br#"{"role":"user","content":[{"type":"text","text":"name it"}]}"#);
//!         write.message(&text, time, &mut out)?;
//!     }
//! }
//! write.finish(&mut out);
//! assert!(out.starts_with(br#"{"type":"session""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod walk;
mod time;
mod records;
mod detect;
use crate::said;
mod tree;
mod chat;
mod roo;
mod gemini;
mod claude_code;
mod codex;
mod gemini_cli;
mod pi;
mod swe_agent;
mod aider;
mod session;
mod reader;
mod write;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{BufRead, Read as _, Seek, SeekFrom};
use std::str::FromStr;

use infold_log::{Cause, Role, Span};

pub use detect::{DetectError, detect};
pub use records::{Layout, MAX_RECORD};
pub use roo::{Slot, fold as tag_fold, slots};
pub use session::Session;
pub use write::{NotWritten, Write};

use reader::{Found, Reader};
use records::{Cut, Records, What};

/// The formats of transcripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// OpenAI chat messages: JSON Lines, an array, or objects with `messages`.
    OpenAi,
    /// Anthropic messages, likewise, perhaps with `system`.
    Anthropic,
    /// Gemini contents: `{"contents":[…],"systemInstruction":…}`, an array or JSON Lines.
    Gemini,
    /// Roo Code's `api_conversation_history.json`, folds kept as tags.
    Roo,
    /// Claude Code's session log.
    ClaudeCode,
    /// Codex's rollout log.
    Codex,
    /// Gemini CLI's chats.
    GeminiCli,
    /// pi's session log.
    Pi,
    /// SWE-agent's trajectories; read only.
    SweAgent,
    /// aider's Markdown history; read only.
    Aider,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 10] = [
        Format::OpenAi,
        Format::Anthropic,
        Format::Gemini,
        Format::Roo,
        Format::ClaudeCode,
        Format::Codex,
        Format::GeminiCli,
        Format::Pi,
        Format::SweAgent,
        Format::Aider,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::OpenAi => "openai",
            Format::Anthropic => "anthropic",
            Format::Gemini => "gemini",
            Format::Roo => "roo",
            Format::ClaudeCode => "claude-code",
            Format::Codex => "codex",
            Format::GeminiCli => "gemini-cli",
            Format::Pi => "pi",
            Format::SweAgent => "swe-agent",
            Format::Aider => "aider",
        }
    }

    /// Says whether a record is one of another format.
    fn excludes(self, record: &[u8]) -> bool {
        let chat = |format| matches!(format, Format::OpenAi | Format::Anthropic | Format::Roo);
        let other = match self {
            Format::SweAgent | Format::Aider => None,
            _ => detect::kind_of(record),
        };
        other.is_some_and(|other| other != self && !(chat(other) && chat(self)))
    }

    /// Says whether transcripts can be written in it.
    pub fn is_written(self) -> bool {
        !matches!(self, Format::SweAgent | Format::Aider)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        let known = Format::ALL.into_iter().find(|format| format.name() == text);
        known.ok_or_else(|| format!("`{text}` is no format (known: {})", names()))
    }
}

/// Says whether the last bytes of a file of lines are the beginning of a record.
fn is_torn(layout: Layout, raw: &[u8]) -> bool {
    layout == Layout::Lines && !raw.ends_with(b"\n") && crate::Json::parse(raw).is_err()
}

fn differs(record: &[u8], expected: Format) -> String {
    match detect::kind_of(record) {
        Some(other) => format!("this is a record of {other}, and those before are of {expected}"),
        None => format!("this is no record of {expected}"),
    }
}

/// The names of all formats, in a row.
fn names() -> String {
    Format::ALL.map(Format::name).join(", ")
}

/// What a transcript holds, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A message, in a form that [`Message`](crate::Message) takes.
    Message {
        /// Its bytes.
        text: Vec<u8>,
        /// When it was said, in milliseconds since 1970, if that is known.
        time: Option<u64>,
    },
    /// The agent condensed its conversation here.
    Compaction {
        /// What it put in place of what it left out.
        summary: String,
        /// The first message that it kept, by its place in the conversation, counted from
        /// zero; the number of messages so far if it kept none.
        kept: usize,
    },
    /// A fold that tags stand for. They come after the messages, inner ones first.
    Fold {
        /// Condensed or truncated.
        cause: Cause,
        /// The messages it covers, counted from one in this conversation.
        covers: Span,
        /// Who speaks in its stand-in.
        role: Role,
        /// What its stand-in says.
        text: String,
    },
    /// Another conversation begins.
    Next,
}

/// A stretch of the input, and what came out of it. All raw bytes, in order, are the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The bytes.
    pub raw: Vec<u8>,
    /// What they hold; [`Entry::Next`] comes first.
    pub entries: Vec<Entry>,
    /// Set if the list of records ends behind these bytes: whether there is one in it.
    pub list_end: Option<bool>,
}

/// Why a transcript cannot be read, and where.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// Nobody knows what it is.
    #[error(transparent)]
    Detect(#[from] DetectError),
    /// A record is not what the format has.
    #[error("line {line}, {noun} {count}: {reason}")]
    Record {
        /// The line on which it starts, counted from one.
        line: u64,
        /// What such a record is called.
        noun: &'static str,
        /// Which one it is, counted from one.
        count: u64,
        /// What is wrong.
        reason: String,
    },
    /// A record is too large to be one.
    #[error("line {line}: a record of more than {} MiB", MAX_RECORD >> 20)]
    TooLarge {
        /// The line on which it starts, counted from one.
        line: u64,
    },
    /// The JSON around the records is broken.
    #[error("line {line}: {what}")]
    Shape {
        /// Where, counted from one.
        line: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// It could not be read.
    #[error("the input could not be read")]
    Read(#[from] std::io::Error),
}

/// A transcript being read.
pub struct Transcript<R> {
    records: Records<R>,
    format: Format,
    reader: Reader,
    /// What was read and not yet handed over.
    pieces: VecDeque<Piece>,
    /// Bytes of something that is not yet whole.
    held: Vec<u8>,
    entries: VecDeque<Entry>,
    /// System prompts that stand behind the messages, by conversation.
    late: BTreeMap<u64, (String, Vec<u8>)>,
    /// Conversations begun.
    begun: u64,
    session: Session,
    seen: Seen,
    over: bool,
}

/// What was seen in a transcript beside messages.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Records that hold no message, by what they are.
    pub skipped: BTreeMap<String, u64>,
    /// The line at the end of the file that is no whole record: it is still being written, or was cut off.
    pub torn: Option<u64>,
}

impl Seen {
    fn skip(&mut self, what: impl Into<String>) {
        *self.skipped.entry(what.into()).or_default() += 1;
    }
}

/// Raw bytes are not held back for longer than this.
const HELD: usize = 1 << 20;

/// The members that hold a system prompt.
const SYSTEM: &[&str] = &["system", "systemInstruction", "system_instruction"];

impl<R: BufRead + Seek> Transcript<R> {
    /// Reads a transcript from its start; without a format it is recognised by what it holds.
    pub fn open(mut input: R, format: Option<Format>) -> Result<Transcript<R>, TranscriptError> {
        let mut prefix = Vec::new();
        input.seek(SeekFrom::Start(0))?;
        (&mut input).take(detect::PREFIX).read_to_end(&mut prefix)?;
        input.seek(SeekFrom::Start(0))?;
        let (format, layout) = detect::survey(&prefix, format)?;
        let mut transcript = Transcript {
            records: Records::new(input, layout, SYSTEM),
            format,
            reader: Reader::of(format),
            pieces: VecDeque::new(),
            held: Vec::new(),
            entries: VecDeque::new(),
            late: BTreeMap::new(),
            begun: 0,
            session: Session::default(),
            seen: Seen::default(),
            over: false,
        };
        transcript.session = session::find(format, &mut transcript.records, &prefix)?;
        transcript.plan()?;
        Ok(transcript)
    }

    /// Which session of an agent it is, as far as its first records say so.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How it is laid out.
    pub fn layout(&self) -> Layout {
        self.records.layout()
    }

    /// What was seen beside messages so far.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Returns the next stretch of the input with what came out of it; none at the end.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, TranscriptError> {
        while self.pieces.is_empty() && !self.over {
            let read = self.read();
            self.over = read.is_err() || self.over;
            read?;
        }
        Ok(self.pieces.pop_front())
    }

    /// Goes through the input once where what comes first depends on what comes last.
    fn plan(&mut self) -> Result<(), TranscriptError> {
        let document = matches!(self.layout(), Layout::Objects(_));
        let plans = self.reader.plans(self.layout());
        if !plans && !document {
            return Ok(());
        }
        let (mut begun, mut spoke) = (0, false);
        while let Some(Cut { raw, what, .. }) = self.records.next_cut()? {
            match what {
                What::Record(range) => {
                    spoke = true;
                    if plans {
                        self.reader.plan(&raw[range]);
                    }
                }
                What::Begin => {
                    begun += 1;
                    spoke = false;
                }
                // A system prompt may stand behind the messages, but belongs before them.
                What::Member(name, range) if spoke => {
                    self.late.insert(begun, (name, raw[range].to_vec()));
                }
                What::Between | What::End | What::ListEnd(_) | What::Member(..) => {}
            }
        }
        if plans {
            self.reader.planned();
        }
        self.records.rewind()
    }

    /// Reads one stretch more.
    fn read(&mut self) -> Result<(), TranscriptError> {
        let mut found = Found {
            earlier: Vec::new(),
            entries: Vec::new(),
            seen: &mut self.seen,
        };
        let Some(Cut { raw, what, line }) = self.records.next_cut()? else {
            self.over = true;
            self.reader.end(&mut found);
            let Found {
                earlier, entries, ..
            } = found;
            self.push(earlier, Vec::new(), entries, None);
            return Ok(());
        };
        let mut list_end = None;
        let read = match what {
            What::Between | What::End => Ok(()),
            What::ListEnd(filled) => {
                list_end = Some(filled);
                Ok(())
            }
            What::Begin => {
                self.begun += 1;
                if self.begun > 1 {
                    found.entries.push(Entry::Next);
                }
                let late = self.late.get(&self.begun);
                late.map_or(Ok(()), |(name, value)| {
                    self.reader.system(name, value, &mut found)
                })
            }
            What::Record(range) => {
                let record = &raw[range];
                let read = self.reader.record(record, &mut found);
                // What says nothing here may belong elsewhere.
                match found.entries.is_empty() && self.format.excludes(record) {
                    true => Err(differs(record, self.format)),
                    false => read,
                }
            }
            What::Member(..) if self.late.contains_key(&self.begun) => Ok(()),
            What::Member(name, range) => self.reader.system(&name, &raw[range], &mut found),
        };
        let Found {
            earlier, entries, ..
        } = found;
        let read = match read {
            Err(_) if self.records.count() > 1 && is_torn(self.records.layout(), &raw) => {
                self.seen.torn = Some(line);
                Ok(())
            }
            read => read,
        };
        read.map_err(|reason| TranscriptError::Record {
            line,
            noun: match self.format {
                Format::OpenAi | Format::Anthropic | Format::Roo => "message",
                _ => "record",
            },
            count: self.records.count(),
            reason,
        })?;
        self.push(earlier, raw, entries, list_end);
        Ok(())
    }

    /// Puts what was found beside the bytes it came out of.
    fn push(
        &mut self,
        earlier: Vec<Entry>,
        raw: Vec<u8>,
        entries: Vec<Entry>,
        list_end: Option<bool>,
    ) {
        if !earlier.is_empty() {
            let raw = std::mem::take(&mut self.held);
            self.pieces.push_back(Piece {
                raw,
                entries: earlier,
                list_end: None,
            });
        }
        let raw = match self.held.is_empty() {
            true => raw,
            false => {
                let mut held = std::mem::take(&mut self.held);
                held.extend_from_slice(&raw);
                held
            }
        };
        if self.reader.holds() && entries.is_empty() && list_end.is_none() && raw.len() < HELD {
            self.held = raw;
        } else if !raw.is_empty() || !entries.is_empty() || list_end.is_some() {
            self.pieces.push_back(Piece {
                raw,
                entries,
                list_end,
            });
        }
    }
}

impl<R: BufRead + Seek> Iterator for Transcript<R> {
    type Item = Result<Entry, TranscriptError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.entries.pop_front() {
                return Some(Ok(entry));
            }
            match self.next_piece() {
                Ok(Some(piece)) => self.entries.extend(piece.entries),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
