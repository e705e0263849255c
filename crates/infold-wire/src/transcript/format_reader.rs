//! The interface of the readers of all formats.

use super::{
    SkippedRecords, TranscriptEntry, TranscriptFormat, TranscriptLayout, aider, chat, claude_code,
    codex, gemini, gemini_cli, pi, roo, swe_agent,
};

/// Reads the records of one format.
pub trait FormatReader: Send + Sync {
    /// Returns whether it must see all records before it can read the first.
    fn plans(&self, _layout: TranscriptLayout) -> bool {
        false
    }

    /// Reads a record in advance, before the first is read.
    fn plan(&mut self, _text: &[u8]) {}

    /// Ends the reading in advance, after all records.
    fn finish_plan(&mut self) {}

    /// Reads one record; fails with a description of the error.
    fn record(&mut self, text: &[u8], output: &mut ReaderOutput<'_>) -> Result<(), String>;

    /// Reads the system prompt in the member `_name` beside the records.
    fn system(
        &mut self,
        _name: &str,
        _value: &[u8],
        _output: &mut ReaderOutput<'_>,
    ) -> Result<(), String> {
        Ok(())
    }

    /// Returns whether it waits for more of a message that is not yet complete.
    fn is_pending(&self) -> bool {
        false
    }

    /// Adds the entries that are still pending at the end.
    fn finish(&mut self, _output: &mut ReaderOutput<'_>) {}
}

/// The entries that a reader found.
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

/// Returns the reader of a format.
pub fn reader_of(format: TranscriptFormat) -> Box<dyn FormatReader> {
    match format {
        TranscriptFormat::OpenAi | TranscriptFormat::Anthropic => Box::new(chat::ChatReader),
        TranscriptFormat::Roo => Box::new(roo::RooReader::default()),
        TranscriptFormat::Gemini => Box::new(gemini::GeminiReader::default()),
        TranscriptFormat::ClaudeCode => Box::new(claude_code::ClaudeCodeReader::default()),
        TranscriptFormat::Codex => Box::new(codex::CodexReader::default()),
        TranscriptFormat::GeminiCli => Box::new(gemini_cli::GeminiCliReader::default()),
        TranscriptFormat::Pi => Box::new(pi::PiReader::default()),
        TranscriptFormat::SweAgent => Box::new(swe_agent::SweAgentReader),
        TranscriptFormat::Aider => Box::new(aider::AiderReader::default()),
    }
}
