//! Reads and writes transcripts: files of conversations, in the formats of providers and agents.
//!
//! A transcript is read as a stream of [`TranscriptEntry`]s whose messages are in a form that
//! [`Message`](crate::Message) takes: OpenAI chat and Anthropic messages unchanged, all others converted to Anthropic
//! blocks. Memory is bounded by the largest record, and in formats that are trees a few bytes per record.
//!
//! ```
//! use infold_wire::transcript::{TranscriptEntry, TranscriptFormat, Transcript, TranscriptWriter};
//! use std::io::Cursor;
//!
//! let file = br#"{"contents":[{"role":"user","parts":[{"text":"name it"}]}]}"#;
//! let mut transcript = Transcript::open(Cursor::new(&file[..]), None)?;
//! assert_eq!(transcript.format(), TranscriptFormat::Gemini);
//!
//! let mut out = Vec::new();
//! let mut writer = TranscriptWriter::new(TranscriptFormat::Pi, None)?;
//! for entry in transcript {
//!     if let TranscriptEntry::Message { text, time } = entry? {
//!         assert_eq!(text, br#"{"role":"user","content":[{"type":"text","text":"name it"}]}"#);
//!         writer.message(&text, time, &mut out)?;
//!     }
//! }
//! writer.finish(&mut out);
//! assert!(out.starts_with(br#"{"type":"session""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod time;
mod record_reader;
mod detect;
mod record_tree;
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
mod format_reader;
mod writer;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{BufRead, Read as _, Seek, SeekFrom};
use std::str::FromStr;

use infold_log::{Cause, Role, Span};

use crate::neutral;

pub use detect::{DetectError, detect};
pub use record_reader::{
    InputChunk, MAX_RECORD_BYTES, RecordError, RecordReader, RecordToken, TranscriptLayout,
};
pub use roo::{Slot, fold as tag_fold, slots};
pub use session::AgentSession;
pub use writer::{ReadOnlyFormat, TranscriptWriter};

use format_reader::{FormatReader, ReaderOutput, reader_of};

/// The formats of transcripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TranscriptFormat {
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

impl TranscriptFormat {
    /// All formats.
    pub const ALL: [TranscriptFormat; 10] = [
        TranscriptFormat::OpenAi,
        TranscriptFormat::Anthropic,
        TranscriptFormat::Gemini,
        TranscriptFormat::Roo,
        TranscriptFormat::ClaudeCode,
        TranscriptFormat::Codex,
        TranscriptFormat::GeminiCli,
        TranscriptFormat::Pi,
        TranscriptFormat::SweAgent,
        TranscriptFormat::Aider,
    ];

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TranscriptFormat::OpenAi => "openai",
            TranscriptFormat::Anthropic => "anthropic",
            TranscriptFormat::Gemini => "gemini",
            TranscriptFormat::Roo => "roo",
            TranscriptFormat::ClaudeCode => "claude-code",
            TranscriptFormat::Codex => "codex",
            TranscriptFormat::GeminiCli => "gemini-cli",
            TranscriptFormat::Pi => "pi",
            TranscriptFormat::SweAgent => "swe-agent",
            TranscriptFormat::Aider => "aider",
        }
    }

    /// Returns whether a record is one of another format.
    fn excludes(self, record: &[u8]) -> bool {
        let is_chat = |format| {
            matches!(
                format,
                TranscriptFormat::OpenAi | TranscriptFormat::Anthropic | TranscriptFormat::Roo
            )
        };
        let other = match self {
            TranscriptFormat::SweAgent | TranscriptFormat::Aider => None,
            _ => detect::record_format(record),
        };
        other.is_some_and(|other| other != self && !(is_chat(other) && is_chat(self)))
    }

    /// Returns whether transcripts can be written in it.
    pub fn is_writable(self) -> bool {
        !matches!(self, TranscriptFormat::SweAgent | TranscriptFormat::Aider)
    }
}

impl fmt::Display for TranscriptFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TranscriptFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<TranscriptFormat, String> {
        let known = TranscriptFormat::ALL
            .into_iter()
            .find(|format| format.name() == text);
        known.ok_or_else(|| format!("`{text}` is not a format (known: {})", format_names()))
    }
}

/// Returns whether the last bytes of a file of lines are the beginning of a record.
fn is_torn(layout: TranscriptLayout, raw: &[u8]) -> bool {
    layout == TranscriptLayout::Lines && !raw.ends_with(b"\n") && crate::Json::parse(raw).is_err()
}

fn describe_mismatch(record: &[u8], expected: TranscriptFormat) -> String {
    match detect::record_format(record) {
        Some(other) => format!("this record is of {other}, and those before are of {expected}"),
        None => format!("this record is not of {expected}"),
    }
}

/// Returns the names of all formats, as a list.
fn format_names() -> String {
    TranscriptFormat::ALL.map(TranscriptFormat::name).join(", ")
}

/// An element of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TranscriptEntry {
    /// A message, in a form that [`Message`](crate::Message) takes.
    Message {
        /// The message's bytes.
        text: Vec<u8>,
        /// The message's time in milliseconds since 1970, if known.
        time: Option<u64>,
    },
    /// The agent condensed its conversation here.
    Compaction {
        /// The summary of the messages that were left out.
        summary: String,
        /// The index of the first message that was kept; the number of messages so far if none was.
        kept: usize,
    },
    /// A fold that tags describe. They come after the messages, inner ones first.
    Fold {
        /// The cause of the fold.
        cause: Cause,
        /// The messages it covers, counted from one in this conversation.
        covers: Span,
        /// The role of the stand-in.
        role: Role,
        /// The text of the stand-in.
        text: String,
    },
    /// Another conversation begins.
    Next,
}

/// A chunk of the input with the entries it holds. All raw bytes, in order, are the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptChunk {
    /// The bytes.
    pub raw: Vec<u8>,
    /// Their entries; [`TranscriptEntry::Next`] comes first.
    pub entries: Vec<TranscriptEntry>,
    /// Set if the list of records ends behind these bytes: whether it has a record.
    pub list_end: Option<bool>,
}

/// The reason that a transcript cannot be read, with the place.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// The format is unknown.
    #[error(transparent)]
    Detect(#[from] DetectError),
    /// A record is not one of the format.
    #[error("line {line}, {noun} {count}: {reason}")]
    Record {
        /// The line on which it starts, counted from one.
        line: u64,
        /// The word for such a record.
        noun: &'static str,
        /// The record's number, counted from one.
        count: u64,
        /// The defect.
        reason: String,
    },
    /// The input could not be split into records.
    #[error(transparent)]
    Input(#[from] RecordError),
}

impl From<std::io::Error> for TranscriptError {
    fn from(error: std::io::Error) -> TranscriptError {
        TranscriptError::Input(RecordError::Read(error))
    }
}

/// Reads a transcript.
pub struct Transcript<R> {
    records: RecordReader<R>,
    format: TranscriptFormat,
    reader: Box<dyn FormatReader>,
    /// Chunks that were read and not yet returned.
    chunks: VecDeque<TranscriptChunk>,
    /// Bytes of a message that is not yet complete.
    pending: Vec<u8>,
    entries: VecDeque<TranscriptEntry>,
    /// System prompts that are behind the messages, by conversation.
    late_prompts: BTreeMap<u64, (String, Vec<u8>)>,
    /// The number of the conversation, counted from one.
    conversation: u64,
    session: AgentSession,
    skipped: SkippedRecords,
    is_over: bool,
}

/// The records of a transcript that hold no message.
#[derive(Clone, Debug, Default)]
pub struct SkippedRecords {
    /// The number of skipped records of each kind.
    pub skipped: BTreeMap<String, u64>,
    /// The number of the incomplete line at the end of the file: it is still being written, or was cut off.
    pub torn: Option<u64>,
}

impl SkippedRecords {
    pub(super) fn add(&mut self, kind: impl Into<String>) {
        *self.skipped.entry(kind.into()).or_default() += 1;
    }
}

/// The most raw bytes that are held back.
const MAX_PENDING_BYTES: usize = 1 << 20;

/// The members that hold a system prompt.
const SYSTEM_NAMES: &[&str] = &["system", "systemInstruction", "system_instruction"];

impl<R: BufRead + Seek> Transcript<R> {
    /// Opens a transcript from its start; without a format, that is recognised by the contents.
    pub fn open(
        mut input: R,
        format: Option<TranscriptFormat>,
    ) -> Result<Transcript<R>, TranscriptError> {
        let mut prefix = Vec::new();
        input.seek(SeekFrom::Start(0))?;
        (&mut input)
            .take(detect::PREFIX_BYTES)
            .read_to_end(&mut prefix)?;
        input.seek(SeekFrom::Start(0))?;
        let (format, layout) = detect::detect_layout(&prefix, format)?;
        let mut transcript = Transcript {
            records: RecordReader::new(input, layout, SYSTEM_NAMES),
            format,
            reader: reader_of(format),
            chunks: VecDeque::new(),
            pending: Vec::new(),
            entries: VecDeque::new(),
            late_prompts: BTreeMap::new(),
            conversation: 0,
            session: AgentSession::default(),
            skipped: SkippedRecords::default(),
            is_over: false,
        };
        transcript.session = session::find(format, &mut transcript.records, &prefix)?;
        transcript.plan()?;
        Ok(transcript)
    }

    /// Returns the agent's session, as far as the first records tell.
    pub fn session(&self) -> &AgentSession {
        &self.session
    }

    /// Returns its format.
    pub fn format(&self) -> TranscriptFormat {
        self.format
    }

    /// Returns its layout.
    pub fn layout(&self) -> TranscriptLayout {
        self.records.layout()
    }

    /// Returns the records without a message so far.
    pub fn skipped(&self) -> &SkippedRecords {
        &self.skipped
    }

    /// Returns the next chunk of the input with its entries; none at the end.
    pub fn next_chunk(&mut self) -> Result<Option<TranscriptChunk>, TranscriptError> {
        while self.chunks.is_empty() && !self.is_over {
            let read = self.read_chunk();
            self.is_over = read.is_err() || self.is_over;
            read?;
        }
        Ok(self.chunks.pop_front())
    }

    /// Reads the input once beforehand, where its first messages depend on its last records.
    fn plan(&mut self) -> Result<(), TranscriptError> {
        let is_document = matches!(self.layout(), TranscriptLayout::Objects(_));
        let plans = self.reader.plans(self.layout());
        if !plans && !is_document {
            return Ok(());
        }
        let (mut conversation, mut has_records) = (0, false);
        while let Some(InputChunk { raw, token, .. }) = self.records.next_chunk()? {
            match token {
                RecordToken::Record(range) => {
                    has_records = true;
                    if plans {
                        self.reader.plan(&raw[range]);
                    }
                }
                RecordToken::ObjectStart => {
                    conversation += 1;
                    has_records = false;
                }
                // A system prompt may be behind the messages, but belongs before them.
                RecordToken::Member(name, range) if has_records => {
                    self.late_prompts
                        .insert(conversation, (name, raw[range].to_vec()));
                }
                RecordToken::None
                | RecordToken::ObjectEnd
                | RecordToken::ListEnd(_)
                | RecordToken::Member(..) => {}
            }
        }
        if plans {
            self.reader.finish_plan();
        }
        Ok(self.records.rewind()?)
    }

    /// Reads one more chunk.
    fn read_chunk(&mut self) -> Result<(), TranscriptError> {
        let mut output = ReaderOutput {
            earlier: Vec::new(),
            entries: Vec::new(),
            skipped: &mut self.skipped,
        };
        let Some(InputChunk { raw, token, line }) = self.records.next_chunk()? else {
            self.is_over = true;
            self.reader.finish(&mut output);
            let ReaderOutput {
                earlier, entries, ..
            } = output;
            self.push(earlier, Vec::new(), entries, None);
            return Ok(());
        };
        let mut list_end = None;
        let read = match token {
            RecordToken::None | RecordToken::ObjectEnd => Ok(()),
            RecordToken::ListEnd(filled) => {
                list_end = Some(filled);
                Ok(())
            }
            RecordToken::ObjectStart => {
                self.conversation += 1;
                if self.conversation > 1 {
                    output.entries.push(TranscriptEntry::Next);
                }
                let late = self.late_prompts.get(&self.conversation);
                late.map_or(Ok(()), |(name, value)| {
                    self.reader.system(name, value, &mut output)
                })
            }
            RecordToken::Record(range) => {
                let record = &raw[range];
                let read = self.reader.record(record, &mut output);
                // A record without entries may be of another format.
                if output.entries.is_empty() && self.format.excludes(record) {
                    Err(describe_mismatch(record, self.format))
                } else {
                    read
                }
            }
            RecordToken::Member(..) if self.late_prompts.contains_key(&self.conversation) => Ok(()),
            RecordToken::Member(name, range) => self.reader.system(&name, &raw[range], &mut output),
        };
        let ReaderOutput {
            earlier, entries, ..
        } = output;
        let read = match read {
            Err(_) if self.records.count() > 1 && is_torn(self.records.layout(), &raw) => {
                self.skipped.torn = Some(line);
                Ok(())
            }
            read => read,
        };
        read.map_err(|reason| TranscriptError::Record {
            line,
            noun: match self.format {
                TranscriptFormat::OpenAi | TranscriptFormat::Anthropic | TranscriptFormat::Roo => {
                    "message"
                }
                _ => "record",
            },
            count: self.records.count(),
            reason,
        })?;
        self.push(earlier, raw, entries, list_end);
        Ok(())
    }

    /// Adds chunks with these entries and bytes.
    fn push(
        &mut self,
        earlier: Vec<TranscriptEntry>,
        raw: Vec<u8>,
        entries: Vec<TranscriptEntry>,
        list_end: Option<bool>,
    ) {
        if !earlier.is_empty() {
            let raw = std::mem::take(&mut self.pending);
            self.chunks.push_back(TranscriptChunk {
                raw,
                entries: earlier,
                list_end: None,
            });
        }
        let raw = if self.pending.is_empty() {
            raw
        } else {
            let mut pending = std::mem::take(&mut self.pending);
            pending.extend_from_slice(&raw);
            pending
        };
        if self.reader.is_pending()
            && entries.is_empty()
            && list_end.is_none()
            && raw.len() < MAX_PENDING_BYTES
        {
            self.pending = raw;
        } else if !raw.is_empty() || !entries.is_empty() || list_end.is_some() {
            self.chunks.push_back(TranscriptChunk {
                raw,
                entries,
                list_end,
            });
        }
    }
}

impl<R: BufRead + Seek> Iterator for Transcript<R> {
    type Item = Result<TranscriptEntry, TranscriptError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.entries.pop_front() {
                return Some(Ok(entry));
            }
            match self.next_chunk() {
                Ok(Some(chunk)) => self.entries.extend(chunk.entries),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
