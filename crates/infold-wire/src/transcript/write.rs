use std::collections::BTreeMap;

use infold_log::Role;

use super::said::Said;
use super::{Format, Layout, chat, pi};
use crate::{Message, MessageError};

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
}

/// What writers of formats write on.
#[derive(Debug, Default)]
pub struct Sheet {
    /// Records on their way.
    pub records: Vec<String>,
    /// Records written.
    pub count: u64,
    /// When the last message was said.
    pub time: u64,
    /// What could not be written, and how often.
    pub lost: BTreeMap<&'static str, u64>,
}

impl Sheet {
    /// Counts something that the format has no room for.
    pub fn lose(&mut self, what: &'static str) {
        *self.lost.entry(what).or_default() += 1;
    }
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
        })
    }

    /// As [`Write::new`], behind records that stand there already.
    pub fn behind(format: Format, layout: Layout) -> Result<Write, NotWritten> {
        let mut write = Write::new(format, Some(layout))?;
        write.begun = true;
        write.to.count = 1;
        Ok(write)
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
        let to = &mut self.to;
        match self.format {
            Format::OpenAi => chat::write_chat(&message, to),
            Format::Anthropic => chat::write_anthropic(&message, to),
            _ => pi::write(&Said::of(&message), to),
        }
        self.flush(out);
        Ok(())
    }

    /// Writes what comes after the last message.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        self.flush(out);
        match self.layout {
            Layout::Lines | Layout::Text => {}
            Layout::Array => out.extend_from_slice(b"\n]\n"),
            Layout::Objects(_) => out.extend_from_slice(b"\n]}\n"),
        }
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
        let system = (!system.is_empty()).then(|| format!("[{}]", system.join(",")));
        match (self.format, self.layout) {
            (Format::Anthropic, Layout::Objects(_)) => {
                let system = system.map(|system| format!("\"system\":{system},"));
                out.extend(format!("{{{}\"messages\":[\n", system.unwrap_or_default()).bytes());
            }
            (_, Layout::Objects(key)) => out.extend(format!("{{\"{key}\":[\n").bytes()),
            (_, Layout::Array) => out.extend_from_slice(b"[\n"),
            (Format::Pi, _) => pi::header(&mut self.to),
            _ => {}
        }
    }

    /// Moves records out.
    fn flush(&mut self, out: &mut Vec<u8>) {
        for record in self.to.records.drain(..) {
            if self.layout != Layout::Lines && self.to.count > 0 {
                out.extend_from_slice(b",\n");
            }
            out.extend_from_slice(record.as_bytes());
            if self.layout == Layout::Lines {
                out.push(b'\n');
            }
            self.to.count += 1;
        }
    }
}
