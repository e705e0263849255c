//! Dispatches records to the reader of their format.

use super::{
    SkippedRecords, TranscriptEntry, TranscriptFormat, TranscriptLayout, aider, chat, claude_code,
    codex, gemini, gemini_cli, pi, roo, swe_agent,
};

/// Reads the records of one format.
pub enum FormatReader {
    Chat(chat::ChatReader),
    Roo(roo::RooReader),
    Gemini(gemini::GeminiReader),
    ClaudeCode(Box<claude_code::ClaudeCodeReader>),
    Codex(codex::CodexReader),
    GeminiCli(Box<gemini_cli::GeminiCliReader>),
    Pi(Box<pi::PiReader>),
    SweAgent(swe_agent::SweAgentReader),
    Aider(aider::AiderReader),
}

/// The entries that a reader output.
pub struct ReaderOutput<'a> {
    /// The entries of records before this one.
    pub earlier: Vec<TranscriptEntry>,
    /// The entries of this record.
    pub entries: Vec<TranscriptEntry>,
    pub skipped: &'a mut SkippedRecords,
}

impl ReaderOutput<'_> {
    /// Adds a message of this record.
    pub fn message(&mut self, text: Vec<u8>, time: Option<u64>) {
        self.entries.push(TranscriptEntry::Message { text, time });
    }
}

impl FormatReader {
    /// Returns the reader of a format.
    pub fn of(format: TranscriptFormat) -> FormatReader {
        match format {
            TranscriptFormat::OpenAi | TranscriptFormat::Anthropic => {
                FormatReader::Chat(chat::ChatReader)
            }
            TranscriptFormat::Roo => FormatReader::Roo(roo::RooReader::default()),
            TranscriptFormat::Gemini => FormatReader::Gemini(gemini::GeminiReader::default()),
            TranscriptFormat::ClaudeCode => FormatReader::ClaudeCode(Box::default()),
            TranscriptFormat::Codex => FormatReader::Codex(codex::CodexReader::default()),
            TranscriptFormat::GeminiCli => FormatReader::GeminiCli(Box::default()),
            TranscriptFormat::Pi => FormatReader::Pi(Box::default()),
            TranscriptFormat::SweAgent => FormatReader::SweAgent(swe_agent::SweAgentReader),
            TranscriptFormat::Aider => FormatReader::Aider(aider::AiderReader::default()),
        }
    }

    /// Returns whether it must see all records before it can read the first.
    pub fn plans(&self, layout: TranscriptLayout) -> bool {
        match self {
            FormatReader::ClaudeCode(_) | FormatReader::Pi(_) => true,
            FormatReader::GeminiCli(_) => layout == TranscriptLayout::Lines,
            _ => false,
        }
    }

    /// Sees a record beforehand.
    pub fn plan(&mut self, text: &[u8]) {
        match self {
            FormatReader::ClaudeCode(reader) => reader.plan(text),
            FormatReader::GeminiCli(reader) => reader.plan(text),
            FormatReader::Pi(reader) => reader.plan(text),
            _ => {}
        }
    }

    /// Notes that all records have been seen.
    pub fn finish_plan(&mut self) {
        match self {
            FormatReader::ClaudeCode(reader) => reader.finish_plan(),
            FormatReader::GeminiCli(reader) => reader.finish_plan(),
            FormatReader::Pi(reader) => reader.finish_plan(),
            _ => {}
        }
    }

    /// Reads one record; an error says what is wrong with it.
    pub fn record(&mut self, text: &[u8], output: &mut ReaderOutput<'_>) -> Result<(), String> {
        match self {
            FormatReader::Chat(reader) => reader.record(text, output),
            FormatReader::Roo(reader) => reader.record(text, output),
            FormatReader::Gemini(reader) => reader.record(text, output),
            FormatReader::ClaudeCode(reader) => reader.record(text, output),
            FormatReader::Codex(reader) => reader.record(text, output),
            FormatReader::GeminiCli(reader) => reader.record(text, output),
            FormatReader::Pi(reader) => reader.record(text, output),
            FormatReader::SweAgent(reader) => reader.record(text, output),
            FormatReader::Aider(reader) => {
                reader.record(text, output);
                Ok(())
            }
        }
    }

    /// Reads a system prompt that stands beside the records.
    pub fn system(
        &mut self,
        name: &str,
        value: &[u8],
        output: &mut ReaderOutput<'_>,
    ) -> Result<(), String> {
        match self {
            FormatReader::Chat(reader) if name == "system" => reader.system(value, output),
            FormatReader::Gemini(reader) if name != "system" => reader.system(value, output),
            _ => Ok(()),
        }
    }

    /// Returns whether it waits for more of a message that is not yet complete.
    pub fn is_pending(&self) -> bool {
        match self {
            FormatReader::ClaudeCode(reader) => reader.is_pending(),
            FormatReader::Codex(reader) => reader.is_pending(),
            FormatReader::Aider(reader) => reader.is_pending(),
            _ => false,
        }
    }

    /// Adds the entries that are still pending at the end.
    pub fn finish(&mut self, output: &mut ReaderOutput<'_>) {
        match self {
            FormatReader::Roo(reader) => reader.finish(output),
            FormatReader::ClaudeCode(reader) => reader.finish(output),
            FormatReader::Codex(reader) => reader.finish(output),
            FormatReader::Aider(reader) => reader.finish(output),
            _ => {}
        }
    }
}
