//! Writes transcripts.

use std::collections::BTreeMap;

use infold_log::Role;

use super::neutral::{CallRound, NeutralBlock, NeutralMessage, numbered_uuid, read_block};
use super::{
    AgentSession, TranscriptFormat, TranscriptLayout, chat, claude_code, codex, gemini, gemini_cli,
    pi, roo,
};
use crate::tags::{TagId, TagKind};
use crate::{Form, Json, Message, MessageError, quote};

/// The error for writing a format that can only be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{format} transcripts can be read, but not written")]
pub struct ReadOnlyFormat {
    format: TranscriptFormat,
}

/// Writes a transcript, message by message.
///
/// Contents that the format does not have are left out, and counted.
#[derive(Debug)]
pub struct TranscriptWriter {
    format: TranscriptFormat,
    layout: TranscriptLayout,
    /// Whether the bytes before the records have been written.
    has_begun: bool,
    /// The texts of the system prompt, which some formats have before the messages.
    system: Vec<String>,
    to: RecordOutput,
    names: gemini::CallNames,
    round: CallRound,
    pending: Option<gemini_cli::PendingMessage>,
    /// The tags of this message's records.
    tags: Vec<(TagKind, TagId)>,
}

/// The records that the formats' writers produce.
#[derive(Debug, Default)]
pub struct RecordOutput {
    /// Records that are not yet written.
    pub records: Vec<String>,
    /// The number of records written.
    pub count: u64,
    /// The number of ids made up.
    pub ids_made: u64,
    /// The id of the record before, as a JSON string, in formats that are trees.
    pub parent: Option<String>,
    /// The time of the last message.
    pub time: u64,
    /// The session that the records belong to.
    pub session: AgentSession,
    /// The number of omissions of each kind of content.
    pub lost: BTreeMap<&'static str, u64>,
}

impl RecordOutput {
    /// Returns the id of the session as a JSON string, generated if none is known.
    pub fn session_id(&self) -> String {
        quote(self.session.id.as_deref().unwrap_or(&numbered_uuid(0)))
    }

    /// Returns the directory of the session as a JSON string.
    pub fn cwd(&self) -> String {
        quote(self.session.cwd.as_deref().unwrap_or("."))
    }

    /// Counts content that the format does not have.
    pub fn lose(&mut self, what: &'static str) {
        *self.lost.entry(what).or_default() += 1;
    }
}

/// Returns the texts of a result as one JSON string; other content is left out, and counted.
pub fn join_texts(content: &[NeutralBlock<'_>], to: &mut RecordOutput) -> String {
    let mut texts = Vec::new();
    for block in content {
        match block {
            NeutralBlock::Text(text) => texts.push(&text[1..text.len() - 1]),
            _ => to.lose("images in results"),
        }
    }
    format!("\"{}\"", texts.join("\\n"))
}

impl TranscriptWriter {
    /// Starts a transcript, by default in the usual layout of the format.
    pub fn new(
        format: TranscriptFormat,
        layout: Option<TranscriptLayout>,
    ) -> Result<TranscriptWriter, ReadOnlyFormat> {
        let usual = match format {
            TranscriptFormat::OpenAi
            | TranscriptFormat::ClaudeCode
            | TranscriptFormat::Codex
            | TranscriptFormat::Pi => TranscriptLayout::Lines,
            TranscriptFormat::Anthropic | TranscriptFormat::GeminiCli => {
                TranscriptLayout::Objects("messages")
            }
            TranscriptFormat::Gemini => TranscriptLayout::Objects("contents"),
            TranscriptFormat::Roo => TranscriptLayout::Array,
            TranscriptFormat::SweAgent | TranscriptFormat::Aider => {
                return Err(ReadOnlyFormat { format });
            }
        };
        Ok(TranscriptWriter {
            format,
            layout: layout.unwrap_or(usual),
            has_begun: false,
            system: Vec::new(),
            to: RecordOutput::default(),
            names: gemini::CallNames::default(),
            round: CallRound::default(),
            pending: None,
            tags: Vec::new(),
        })
    }

    /// Continues a transcript that has records.
    pub fn behind(
        format: TranscriptFormat,
        layout: TranscriptLayout,
    ) -> Result<TranscriptWriter, ReadOnlyFormat> {
        let mut writer = TranscriptWriter::new(format, Some(layout))?;
        writer.has_begun = true;
        writer.to.count = 1;
        Ok(writer)
    }

    /// Sets the session, for formats that record it.
    pub fn session(mut self, session: AgentSession) -> TranscriptWriter {
        self.to.session = session;
        self
    }

    /// Sets whether there is a record in the list so far.
    pub fn set_has_records(&mut self, has_records: bool) {
        self.to.count = u64::from(has_records);
    }

    /// Reads the existing bytes of a file to append to: trees continue from their last record.
    pub fn follow(&mut self, bytes: &[u8]) {
        let last = match self.format {
            TranscriptFormat::ClaudeCode => claude_code::last_id(bytes),
            TranscriptFormat::Pi => pi::last_id(bytes),
            _ => None,
        };
        self.to.parent = last.or(self.to.parent.take());
    }

    /// Returns the number of omissions of each kind of content.
    pub fn lost(&self) -> &BTreeMap<&'static str, u64> {
        &self.to.lost
    }

    /// Writes a message.
    pub fn message(
        &mut self,
        text: &[u8],
        time: Option<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), MessageError> {
        // A log may have messages without content, which clients send back. They are written like any other.
        let message = Message::read(text)?;
        self.to.time = time.unwrap_or(self.to.time).max(self.to.time);
        let is_leading = !self.has_begun && self.has_system_apart();
        if message.role() == Role::System && is_leading {
            let said = NeutralMessage::of(&message);
            self.system.extend(said.blocks.iter().map(|block| {
                let mut text = String::new();
                block.write_anthropic(&mut text);
                text
            }));
            return Ok(());
        }
        self.begin(out);
        let said = self.said(&message);
        let to = &mut self.to;
        match self.format {
            TranscriptFormat::OpenAi => chat::write_chat(&message, &said, to),
            TranscriptFormat::Anthropic => chat::write_anthropic(&message, &said, to),
            TranscriptFormat::Roo if message.role() == Role::System => to.lose("system messages"),
            TranscriptFormat::Roo => chat::write_anthropic(&message, &said, to),
            TranscriptFormat::ClaudeCode => claude_code::write(&message, &said, to),
            TranscriptFormat::Gemini if message.form() == Form::Content => {
                self.names.add_calls(&said);
                to.records.push(chat::one_line(&message));
            }
            TranscriptFormat::Gemini => gemini::write(&said, &mut self.names, to),
            TranscriptFormat::GeminiCli => gemini_cli::write(&said, &mut self.pending, to),
            TranscriptFormat::Codex if matches!(message.form(), Form::Item(_)) => {
                codex::write_item(&chat::one_line(&message), to);
            }
            TranscriptFormat::Codex => codex::write(&said, to),
            TranscriptFormat::Pi => pi::write(&said, to),
            TranscriptFormat::SweAgent | TranscriptFormat::Aider => {}
        }
        self.flush(out);
        Ok(())
    }

    /// Splits a message into blocks. Gemini's calls need no ids; elsewhere they do.
    fn said<'a>(&mut self, message: &Message<'a>) -> NeutralMessage<'a> {
        let mut said = NeutralMessage::of(message);
        if message.form() == Form::Content {
            if said.role == Role::Assistant {
                self.round.clear();
            }
            let blocks = said.blocks.iter_mut();
            blocks.for_each(|block| self.round.assign_id(block));
        }
        said
    }

    /// Like [`TranscriptWriter::message`], with tags.
    pub fn tagged(
        &mut self,
        text: &[u8],
        time: Option<u64>,
        tags: Vec<(TagKind, TagId)>,
        out: &mut Vec<u8>,
    ) -> Result<(), MessageError> {
        self.tags = tags;
        let written = self.message(text, time, out);
        self.tags.clear();
        written
    }

    /// Writes a record unchanged.
    pub fn record(&mut self, record: &[u8], out: &mut Vec<u8>) {
        self.begin(out);
        let record = String::from_utf8_lossy(record).into_owned();
        self.to.records.push(record);
        self.flush(out);
    }

    /// Writes the bytes after the last message.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.flush_pending(out);
        match self.layout {
            TranscriptLayout::Lines | TranscriptLayout::Text => {}
            TranscriptLayout::Array => out.extend_from_slice(b"\n]\n"),
            TranscriptLayout::Objects(_) => out.extend_from_slice(b"\n]}\n"),
        }
    }

    /// Writes all that is pending, and leaves the list open.
    pub fn flush_pending(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        gemini_cli::flush(&mut self.pending, &mut self.to);
        self.flush(out);
    }

    /// Returns whether a leading system prompt is outside of the messages.
    fn has_system_apart(&self) -> bool {
        match self.format {
            TranscriptFormat::Codex => true,
            TranscriptFormat::Anthropic | TranscriptFormat::Gemini => {
                matches!(self.layout, TranscriptLayout::Objects(_))
            }
            _ => false,
        }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let system = std::mem::take(&mut self.system);
        let head = match (self.format, self.layout) {
            (TranscriptFormat::Anthropic, TranscriptLayout::Objects(_)) if !system.is_empty() => {
                format!("{{\"system\":[{}],\"messages\":[\n", system.join(","))
            }
            (TranscriptFormat::Gemini, TranscriptLayout::Objects(_)) if !system.is_empty() => {
                let parts: Vec<String> = system
                    .iter()
                    .filter_map(|text| {
                        let json = Json::parse(text.as_bytes()).ok()?;
                        gemini::write_part(&read_block(json), &mut self.names, &mut self.to)
                    })
                    .collect();
                let parts = parts.join(",");
                format!("{{\"systemInstruction\":{{\"parts\":[{parts}]}},\"contents\":[\n")
            }
            (TranscriptFormat::GeminiCli, TranscriptLayout::Objects(_)) => {
                gemini_cli::header(&self.to) + "\n"
            }
            (_, TranscriptLayout::Objects(key)) => format!("{{\"{key}\":[\n"),
            (_, TranscriptLayout::Array) => "[\n".to_owned(),
            (TranscriptFormat::Pi, _) => return pi::header(&mut self.to),
            (TranscriptFormat::Codex, _) => return codex::header(&system, &mut self.to),
            (TranscriptFormat::GeminiCli, _) => return gemini_cli::header_line(&mut self.to),
            _ => String::new(),
        };
        out.extend(head.bytes());
    }

    /// Moves the records to `out`.
    fn flush(&mut self, out: &mut Vec<u8>) {
        for record in self.to.records.drain(..) {
            if self.layout != TranscriptLayout::Lines && self.to.count > 0 {
                out.extend_from_slice(b",\n");
            }
            match self.format {
                TranscriptFormat::Roo => out.extend(roo::record(&record, &self.tags, self.to.time)),
                _ => out.extend_from_slice(record.as_bytes()),
            }
            if self.layout == TranscriptLayout::Lines {
                out.push(b'\n');
            }
            self.to.count += 1;
        }
    }
}
