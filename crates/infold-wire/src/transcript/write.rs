use std::collections::BTreeMap;

use infold_log::Role;

use super::said::{Block, Round, Said, block, id};
use super::{Format, Layout, Session, chat, claude_code, codex, gemini, gemini_cli, pi, roo};
use crate::tags::{TagId, TagKind};
use crate::{Form, Json, Message, MessageError, quote};

/// Why a format is not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{format} transcripts are read, not written")]
pub struct NotWritten {
    format: Format,
}

/// Writes a transcript, message by message.
///
/// What the format has no room for is left out, and counted.
#[derive(Debug)]
pub struct Write {
    format: Format,
    layout: Layout,
    /// What stands around the records has been begun.
    begun: bool,
    /// The texts of the system prompt, which some formats keep in front of the messages.
    system: Vec<String>,
    to: Sheet,
    names: gemini::Names,
    round: Round,
    waiting: Option<gemini_cli::Waiting>,
    /// Tags for the records of this message.
    tags: Vec<(TagKind, TagId)>,
}

/// What writers of formats write on.
#[derive(Debug, Default)]
pub struct Sheet {
    /// Records on their way.
    pub records: Vec<String>,
    /// Records written.
    pub count: u64,
    /// Ids made up.
    pub made: u64,
    /// The id of the record before, as a JSON string, in formats that are trees.
    pub parent: Option<String>,
    /// When the last message was said.
    pub time: u64,
    /// The session that the records belong to.
    pub session: Session,
    /// What could not be written, and how often.
    pub lost: BTreeMap<&'static str, u64>,
}

impl Sheet {
    /// The id of the session as a JSON string; one made up if none is known.
    pub fn session_id(&self) -> String {
        quote(self.session.id.as_deref().unwrap_or(&id(0)))
    }

    /// The directory of the session as a JSON string.
    pub fn cwd(&self) -> String {
        quote(self.session.cwd.as_deref().unwrap_or("."))
    }

    /// Counts something that the format has no room for.
    pub fn lose(&mut self, what: &'static str) {
        *self.lost.entry(what).or_default() += 1;
    }
}

/// The texts of a result as one JSON string; what is no text is left out, and counted.
pub fn joined(content: &[Block<'_>], to: &mut Sheet) -> String {
    let mut texts = Vec::new();
    for block in content {
        match block {
            Block::Text(text) => texts.push(&text[1..text.len() - 1]),
            _ => to.lose("images in results"),
        }
    }
    format!("\"{}\"", texts.join("\\n"))
}

impl Write {
    /// Starts a transcript; without a layout, the one the format usually has.
    pub fn new(format: Format, layout: Option<Layout>) -> Result<Write, NotWritten> {
        let usual = match format {
            Format::OpenAi | Format::ClaudeCode | Format::Codex | Format::Pi => Layout::Lines,
            Format::Anthropic | Format::GeminiCli => Layout::Objects("messages"),
            Format::Gemini => Layout::Objects("contents"),
            Format::Roo => Layout::Array,
            Format::SweAgent | Format::Aider => return Err(NotWritten { format }),
        };
        Ok(Write {
            format,
            layout: layout.unwrap_or(usual),
            begun: false,
            system: Vec::new(),
            to: Sheet::default(),
            names: gemini::Names::default(),
            round: Round::default(),
            waiting: None,
            tags: Vec::new(),
        })
    }

    /// As [`Write::new`], behind records that stand there already.
    pub fn behind(format: Format, layout: Layout) -> Result<Write, NotWritten> {
        let mut write = Write::new(format, Some(layout))?;
        write.begun = true;
        write.to.count = 1;
        Ok(write)
    }

    /// Says whose session it is, for formats that tell.
    pub fn session(mut self, session: Session) -> Write {
        self.to.session = session;
        self
    }

    /// Says whether there is a record in the list so far.
    pub fn fill(&mut self, filled: bool) {
        self.to.count = u64::from(filled);
    }

    /// Sees bytes that stand before what is written: trees go on from their last record.
    pub fn follow(&mut self, bytes: &[u8]) {
        let last = match self.format {
            Format::ClaudeCode => claude_code::last(bytes),
            Format::Pi => pi::last(bytes),
            _ => None,
        };
        self.to.parent = last.or(self.to.parent.take());
    }

    /// What could not be written, and how often.
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
        let message = Message::parse(text)?;
        self.to.time = time.unwrap_or(self.to.time).max(self.to.time);
        let in_front = !self.begun && self.keeps_system();
        if message.role() == Role::System && in_front {
            let said = Said::of(&message);
            self.system.extend(said.blocks.iter().map(|block| {
                let mut text = String::new();
                block.anthropic(&mut text);
                text
            }));
            return Ok(());
        }
        self.begin(out);
        let said = self.said(&message);
        let to = &mut self.to;
        match self.format {
            Format::OpenAi => chat::write_chat(&message, &said, to),
            Format::Anthropic => chat::write_anthropic(&message, &said, to),
            Format::Roo if message.role() == Role::System => to.lose("system messages"),
            Format::Roo => chat::write_anthropic(&message, &said, to),
            Format::ClaudeCode => claude_code::write(&message, &said, to),
            Format::Gemini if message.form() == Form::Content => {
                self.names.learn(&said);
                to.records.push(chat::one_line(&message));
            }
            Format::Gemini => gemini::write(&said, &mut self.names, to),
            Format::GeminiCli => gemini_cli::write(&said, &mut self.waiting, to),
            Format::Codex if matches!(message.form(), Form::Item(_)) => {
                codex::record(&chat::one_line(&message), to);
            }
            Format::Codex => codex::write(&said, to),
            Format::Pi => pi::write(&said, to),
            Format::SweAgent | Format::Aider => {}
        }
        self.flush(out);
        Ok(())
    }

    /// Takes a message apart. Gemini's calls need no ids; elsewhere they do.
    fn said<'a>(&mut self, message: &Message<'a>) -> Said<'a> {
        let mut said = Said::of(message);
        if message.form() == Form::Content {
            if said.role == Role::Assistant {
                self.round.clear();
            }
            let blocks = said.blocks.iter_mut();
            blocks.for_each(|block| self.round.settle(block));
        }
        said
    }

    /// As [`Write::message`], with tags on it.
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

    /// Writes a record as it is.
    pub fn record(&mut self, record: &[u8], out: &mut Vec<u8>) {
        self.begin(out);
        let record = String::from_utf8_lossy(record).into_owned();
        self.to.records.push(record);
        self.flush(out);
    }

    /// Writes what comes after the last message.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.settle(out);
        match self.layout {
            Layout::Lines | Layout::Text => {}
            Layout::Array => out.extend_from_slice(b"\n]\n"),
            Layout::Objects(_) => out.extend_from_slice(b"\n]}\n"),
        }
    }

    /// Writes all that waits, and leaves the list open.
    pub fn settle(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        gemini_cli::flush(&mut self.waiting, &mut self.to);
        self.flush(out);
    }

    /// Says whether a leading system prompt stands outside of the messages.
    fn keeps_system(&self) -> bool {
        match self.format {
            Format::Codex => true,
            Format::Anthropic | Format::Gemini => matches!(self.layout, Layout::Objects(_)),
            _ => false,
        }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let system = std::mem::take(&mut self.system);
        let head = match (self.format, self.layout) {
            (Format::Anthropic, Layout::Objects(_)) if !system.is_empty() => {
                format!("{{\"system\":[{}],\"messages\":[\n", system.join(","))
            }
            (Format::Gemini, Layout::Objects(_)) if !system.is_empty() => {
                let parts: Vec<String> = system
                    .iter()
                    .filter_map(|text| {
                        let json = Json::parse(text.as_bytes()).ok()?;
                        gemini::written(&block(json), &mut self.names, &mut self.to)
                    })
                    .collect();
                let parts = parts.join(",");
                format!("{{\"systemInstruction\":{{\"parts\":[{parts}]}},\"contents\":[\n")
            }
            (Format::GeminiCli, Layout::Objects(_)) => gemini_cli::header(&self.to) + "\n",
            (_, Layout::Objects(key)) => format!("{{\"{key}\":[\n"),
            (_, Layout::Array) => "[\n".to_owned(),
            (Format::Pi, _) => return pi::header(&mut self.to),
            (Format::Codex, _) => return codex::header(&system, &mut self.to),
            (Format::GeminiCli, _) => return gemini_cli::header_line(&mut self.to),
            _ => String::new(),
        };
        out.extend(head.bytes());
    }

    /// Moves records out.
    fn flush(&mut self, out: &mut Vec<u8>) {
        for record in self.to.records.drain(..) {
            if self.layout != Layout::Lines && self.to.count > 0 {
                out.extend_from_slice(b",\n");
            }
            match self.format {
                Format::Roo => out.extend(roo::record(&record, &self.tags, self.to.time)),
                _ => out.extend_from_slice(record.as_bytes()),
            }
            if self.layout == Layout::Lines {
                out.push(b'\n');
            }
            self.to.count += 1;
        }
    }
}
