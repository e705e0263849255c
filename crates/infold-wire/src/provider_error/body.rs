//! Reads the error bodies of all providers and gateways into one form.

use super::unquoted::without_quotes;
use crate::{Json, JsonKind};

/// The bytes of an error body that are read.
const MAX_BODY_BYTES: usize = 64 << 10;

/// Errors are wrapped in errors no deeper: a body, its error, JSON in the error's text, and again.
const MAX_DEPTH: u32 = 12;

/// The contents of an error body of any form.
#[derive(Default)]
pub(super) struct ErrorBody {
    /// The first message, unchanged.
    pub message: String,
    /// All messages of the body, in lower case.
    text: String,
    /// The same without quotations.
    own: String,
    /// Types, codes, states and reasons, in lower case.
    codes: Vec<String>,
    /// Paths of the invalid parts of the request, in lower case.
    paths: Vec<String>,
    /// The status in the body, if it is that of an error.
    pub status: Option<u16>,
    /// The delay that it asks for, as written.
    pub delay: Option<String>,
    /// Tokens sent, where that is a field.
    pub tokens: Option<u64>,
    /// Tokens allowed, where that is a field.
    pub limit: Option<u64>,
}

impl ErrorBody {
    /// Reads the start of a body, which is JSON or a text.
    pub fn read(body: &[u8]) -> ErrorBody {
        let body = &body[..body.len().min(MAX_BODY_BYTES)];
        let mut read = ErrorBody::default();
        match Json::parse(body) {
            Ok(json) => read.read_value(json, MAX_DEPTH),
            Err(_) => read.read_text(&String::from_utf8_lossy(body), 0),
        }
        read
    }

    /// Returns whether it has neither messages nor codes.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.codes.is_empty()
    }

    /// Returns whether the body is a web page.
    pub fn is_html(&self) -> bool {
        self.text.starts_with("<!doctype") || self.text.starts_with("<html")
    }

    /// Returns whether these words, in lower case, are there.
    pub fn says(&self, words: &str) -> bool {
        self.text.contains(words)
    }

    /// Returns whether any of these words are there.
    pub fn says_any(&self, words: &[&str]) -> bool {
        words.iter().any(|words| self.says(words))
    }

    /// Returns whether any of these words are there outside quotations.
    pub fn states_any(&self, words: &[&str]) -> bool {
        words.iter().any(|words| self.own.contains(words))
    }

    /// Returns whether this word is there, and not only within an address.
    pub fn mentions(&self, word: &str) -> bool {
        let is_address = |text: &str| {
            let text = text.trim_start_matches(|c: char| c.is_ascii_punctuation() && c != '/');
            text.starts_with('/') || text.contains("://")
        };
        let mut texts = self.text.split_whitespace();
        texts.any(|text| text.contains(word) && !is_address(text))
    }

    /// Returns all its messages as one text, and each path.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.text)
            .chain(&self.paths)
            .map(|text| &**text)
    }

    /// Returns whether any of these codes is there.
    pub fn has_code(&self, codes: &[&str]) -> bool {
        self.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    /// Returns the number that closely follows these words outside quotations.
    pub fn number_after(&self, words: &str) -> Option<u64> {
        number(self.stated_after(words)?)
    }

    /// Returns the text that follows these words outside quotations.
    pub fn stated_after(&self, words: &str) -> Option<&str> {
        let at = self.own.find(words)? + words.len();
        Some(&self.own[at..])
    }

    /// Returns the text that follows these words.
    pub fn text_after(&self, words: &str) -> Option<&str> {
        let at = self.text.find(words)? + words.len();
        Some(&self.text[at..])
    }

    /// Reads members with known names only: some services send the request back
    /// within the error, and a conversation's words must not be taken for the error's.
    fn read_value(&mut self, json: Json<'_>, depth: u32) {
        if depth == 0 {
            return;
        }
        match json.kind() {
            JsonKind::String => self.read_text(&json.text().unwrap_or_default(), depth - 1),
            JsonKind::Array => json
                .elements()
                .for_each(|each| self.read_value(each, depth - 1)),
            JsonKind::Object => {
                for (name, value) in json.members() {
                    self.read_member(&name.name(), value, depth);
                }
            }
            JsonKind::Number | JsonKind::Bool | JsonKind::Null => {}
        }
    }

    fn read_member(&mut self, name: &[u8], value: Json<'_>, depth: u32) {
        match name {
            b"error"
            | b"errors"
            | b"message"
            | b"Message"
            | b"msg"
            | b"detail"
            | b"details"
            | b"response"
            | b"incomplete_details"
            | b"metadata"
            | b"raw" => {
                self.read_value(value, depth - 1);
            }
            b"type" | b"__type" | b"code" | b"status" | b"reason" => self.read_code(value),
            b"param" => self
                .paths
                .extend(value.text().map(|text| text.to_lowercase())),
            b"loc" => {
                let steps = value.elements().filter_map(Json::text);
                let steps: Vec<String> = steps.map(|step| step.to_lowercase()).collect();
                self.paths.push(steps.join("."));
            }
            b"retryDelay" => self.delay = value.text().map(|text| text.into_owned()),
            b"n_prompt_tokens" => self.tokens = whole_number(value),
            b"n_ctx" => self.limit = whole_number(value),
            _ => {}
        }
    }

    fn read_code(&mut self, value: Json<'_>) {
        match value.kind() {
            JsonKind::String => {
                let code = value.text().unwrap_or_default();
                self.set_status(code.parse().ok());
                self.codes.push(code.to_lowercase());
            }
            JsonKind::Number => self.set_status(whole_number(value)),
            _ => {}
        }
    }

    fn set_status(&mut self, status: Option<u64>) {
        let status = status.and_then(|status| u16::try_from(status).ok());
        self.status = self.status.or(status.filter(|s| (400..600).contains(s)));
    }

    /// Reads a text; JSON inside is an error wrapped in a text.
    fn read_text(&mut self, text: &str, depth: u32) {
        let mut text = text.trim();
        let brace = text.find('{').filter(|_| depth > 0);
        if let Some(at) = brace
            && let Ok(json) = Json::parse(&text.as_bytes()[at..])
        {
            self.read_value(json, depth);
            text = &text[..at];
        }
        if self.message.is_empty() {
            self.message = text.to_owned();
        }
        if !text.is_empty() {
            let lower = text.to_lowercase();
            self.own.push_str(&without_quotes(&lower));
            self.own.push('\n');
            self.text.push_str(&lower);
            self.text.push('\n');
        }
    }
}

/// Reads a whole number.
fn whole_number(value: Json<'_>) -> Option<u64> {
    std::str::from_utf8(value.bytes()).ok()?.parse().ok()
}

/// Reads the number at the start of a text, behind a few words at most; "128,000" is one.
pub(super) fn number(text: &str) -> Option<u64> {
    const MAX_GAP_BYTES: usize = 16;
    let start = text
        .bytes()
        .take(MAX_GAP_BYTES)
        .position(|b| b.is_ascii_digit())?;
    let mut value: u64 = 0;
    let bytes = &text.as_bytes()[start..];
    for (at, byte) in bytes.iter().enumerate() {
        let digit_next = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        match byte {
            b'0'..=b'9' => value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?,
            b',' | b'_' if digit_next => {}
            _ => break,
        }
    }
    Some(value)
}
