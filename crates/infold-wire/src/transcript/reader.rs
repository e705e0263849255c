use super::{
    Entry, Format, Layout, Seen, aider, chat, claude_code, codex, gemini, gemini_cli, pi, roo,
    swe_agent,
};

/// What reads the records of a format, and what it remembers.
pub enum Reader {
    Chat(chat::Chat),
    Roo(roo::Roo),
    Gemini(gemini::Gemini),
    ClaudeCode(Box<claude_code::ClaudeCode>),
    Codex(codex::Codex),
    GeminiCli(Box<gemini_cli::GeminiCli>),
    Pi(Box<pi::Pi>),
    SweAgent(swe_agent::SweAgent),
    Aider(aider::Aider),
}

/// Where a reader puts what it found.
pub struct Found<'a> {
    /// What came out of records before this one.
    pub earlier: Vec<Entry>,
    /// What came out of this one.
    pub entries: Vec<Entry>,
    pub seen: &'a mut Seen,
}

impl Found<'_> {
    pub fn message(&mut self, text: Vec<u8>, time: Option<u64>) {
        self.entries.push(Entry::Message { text, time });
    }
}

impl Reader {
    pub fn of(format: Format) -> Reader {
        match format {
            Format::OpenAi | Format::Anthropic => Reader::Chat(chat::Chat),
            Format::Roo => Reader::Roo(roo::Roo::default()),
            Format::Gemini => Reader::Gemini(gemini::Gemini::default()),
            Format::ClaudeCode => Reader::ClaudeCode(Box::default()),
            Format::Codex => Reader::Codex(codex::Codex::default()),
            Format::GeminiCli => Reader::GeminiCli(Box::default()),
            Format::Pi => Reader::Pi(Box::default()),
            Format::SweAgent => Reader::SweAgent(swe_agent::SweAgent),
            Format::Aider => Reader::Aider(aider::Aider::default()),
        }
    }

    /// Says whether it must see all records before it can read the first.
    pub fn plans(&self, layout: Layout) -> bool {
        match self {
            Reader::ClaudeCode(_) | Reader::Pi(_) => true,
            Reader::GeminiCli(_) => layout == Layout::Lines,
            _ => false,
        }
    }

    /// Sees a record beforehand.
    pub fn plan(&mut self, text: &[u8]) {
        match self {
            Reader::ClaudeCode(reader) => reader.plan(text),
            Reader::GeminiCli(reader) => reader.plan(text),
            Reader::Pi(reader) => reader.plan(text),
            _ => {}
        }
    }

    /// All records have been seen.
    pub fn planned(&mut self) {
        match self {
            Reader::ClaudeCode(reader) => reader.planned(),
            Reader::GeminiCli(reader) => reader.planned(),
            Reader::Pi(reader) => reader.planned(),
            _ => {}
        }
    }

    /// Reads one record; says what is wrong with it.
    pub fn record(&mut self, text: &[u8], found: &mut Found<'_>) -> Result<(), String> {
        match self {
            Reader::Chat(reader) => reader.record(text, found),
            Reader::Roo(reader) => reader.record(text, found),
            Reader::Gemini(reader) => reader.record(text, found),
            Reader::ClaudeCode(reader) => reader.record(text, found),
            Reader::Codex(reader) => reader.record(text, found),
            Reader::GeminiCli(reader) => reader.record(text, found),
            Reader::Pi(reader) => reader.record(text, found),
            Reader::SweAgent(reader) => reader.record(text, found),
            Reader::Aider(reader) => {
                reader.record(text, found);
                Ok(())
            }
        }
    }

    /// Reads a system prompt that stands beside the records.
    pub fn system(
        &mut self,
        name: &str,
        value: &[u8],
        found: &mut Found<'_>,
    ) -> Result<(), String> {
        match self {
            Reader::Chat(reader) if name == "system" => reader.system(value, found),
            Reader::Gemini(reader) if name != "system" => reader.system(value, found),
            _ => Ok(()),
        }
    }

    /// Says whether it waits for more of something that is not yet whole.
    pub fn holds(&self) -> bool {
        match self {
            Reader::ClaudeCode(reader) => reader.holds(),
            Reader::Codex(reader) => reader.holds(),
            Reader::Aider(reader) => reader.holds(),
            _ => false,
        }
    }

    /// No more records come.
    pub fn end(&mut self, found: &mut Found<'_>) {
        match self {
            Reader::Roo(reader) => reader.end(found),
            Reader::ClaudeCode(reader) => reader.end(found),
            Reader::Codex(reader) => reader.end(found),
            Reader::Aider(reader) => reader.end(found),
            _ => {}
        }
    }
}
