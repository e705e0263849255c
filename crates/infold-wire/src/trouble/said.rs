use super::own::own;
use crate::Json;
use crate::json::Kind;

/// How much of an error body is looked at.
const MOST: usize = 64 << 10;

/// How deep errors are wrapped in errors: a body, its error, JSON in the error's text, and again.
const DEPTH: u32 = 12;

/// What an error body says, whatever its shape.
#[derive(Default)]
pub(super) struct Said {
    /// The first message, as it is.
    pub message: String,
    /// Everything it says, in lower case.
    text: String,
    /// The same without what it quotes.
    own: String,
    /// Types, codes, states and reasons, in lower case.
    codes: Vec<String>,
    /// Where in the request something is wrong: paths, in lower case.
    places: Vec<String>,
    /// The status that it claims, where it is that of an error.
    pub status: Option<u16>,
    /// How long it asks to wait, as written.
    pub delay: Option<String>,
    /// Tokens sent, where that is a field.
    pub tokens: Option<u64>,
    /// Tokens allowed, where that is a field.
    pub limit: Option<u64>,
}

impl Said {
    /// Reads the start of a body; what is not JSON is a text.
    pub fn read(body: &[u8]) -> Said {
        let body = &body[..body.len().min(MOST)];
        let mut said = Said::default();
        match Json::parse(body) {
            Ok(json) => said.value(json, DEPTH),
            Err(_) => said.words(&String::from_utf8_lossy(body), 0),
        }
        said
    }

    /// Says whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.codes.is_empty()
    }

    /// Says whether this is a page for people.
    pub fn is_html(&self) -> bool {
        self.text.starts_with("<!doctype") || self.text.starts_with("<html")
    }

    /// Says whether these words are there, in lower case.
    pub fn says(&self, words: &str) -> bool {
        self.text.contains(words)
    }

    /// Says whether any of these words are there.
    pub fn says_any(&self, words: &[&str]) -> bool {
        words.iter().any(|words| self.says(words))
    }

    /// Says whether any of these words are its own, and not quoted.
    pub fn states_any(&self, words: &[&str]) -> bool {
        words.iter().any(|words| self.own.contains(words))
    }

    /// Says whether this word is there, and not only within an address.
    pub fn speaks_of(&self, word: &str) -> bool {
        let address = |text: &str| {
            let text = text.trim_start_matches(|c: char| c.is_ascii_punctuation() && c != '/');
            text.starts_with('/') || text.contains("://")
        };
        let mut texts = self.text.split_whitespace();
        texts.any(|text| text.contains(word) && !address(text))
    }

    /// Everything it says, and each place it names.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.text)
            .chain(&self.places)
            .map(|text| &**text)
    }

    /// Says whether any of these codes is there.
    pub fn has_code(&self, codes: &[&str]) -> bool {
        self.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    /// Returns the number that follows these words of its own closely.
    pub fn number_after(&self, words: &str) -> Option<u64> {
        number(self.stated_after(words)?)
    }

    /// Returns what follows these words of its own.
    pub fn stated_after(&self, words: &str) -> Option<&str> {
        let at = self.own.find(words)? + words.len();
        Some(&self.own[at..])
    }

    /// Returns what follows these words.
    pub fn after(&self, words: &str) -> Option<&str> {
        let at = self.text.find(words)? + words.len();
        Some(&self.text[at..])
    }

    /// Only members with known names are read: some services send back the request
    /// within the error, and what a conversation says is nobody's error.
    fn value(&mut self, json: Json<'_>, depth: u32) {
        if depth == 0 {
            return;
        }
        match json.kind() {
            Kind::String => self.words(&json.text().unwrap_or_default(), depth - 1),
            Kind::Array => json.elements().for_each(|each| self.value(each, depth - 1)),
            Kind::Object => {
                for (name, value) in json.members() {
                    self.member(&name.name(), value, depth);
                }
            }
            Kind::Number | Kind::Bool | Kind::Null => {}
        }
    }

    fn member(&mut self, name: &[u8], value: Json<'_>, depth: u32) {
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
                self.value(value, depth - 1);
            }
            b"type" | b"__type" | b"code" | b"status" | b"reason" => self.code(value),
            b"param" => self
                .places
                .extend(value.text().map(|text| text.to_lowercase())),
            b"loc" => {
                let steps = value.elements().filter_map(Json::text);
                let steps: Vec<String> = steps.map(|step| step.to_lowercase()).collect();
                self.places.push(steps.join("."));
            }
            b"retryDelay" => self.delay = value.text().map(|text| text.into_owned()),
            b"n_prompt_tokens" => self.tokens = whole(value),
            b"n_ctx" => self.limit = whole(value),
            _ => {}
        }
    }

    fn code(&mut self, value: Json<'_>) {
        match value.kind() {
            Kind::String => {
                let code = value.text().unwrap_or_default();
                self.claim(code.parse().ok());
                self.codes.push(code.to_lowercase());
            }
            Kind::Number => self.claim(whole(value)),
            _ => {}
        }
    }

    fn claim(&mut self, status: Option<u64>) {
        let status = status.and_then(|status| u16::try_from(status).ok());
        self.status = self.status.or(status.filter(|s| (400..600).contains(s)));
    }

    /// Takes a text; one that holds JSON is an error wrapped in a text.
    fn words(&mut self, text: &str, depth: u32) {
        let mut text = text.trim();
        let brace = text.find('{').filter(|_| depth > 0);
        if let Some(at) = brace
            && let Ok(json) = Json::parse(&text.as_bytes()[at..])
        {
            self.value(json, depth);
            text = &text[..at];
        }
        if self.message.is_empty() {
            self.message = text.to_owned();
        }
        if !text.is_empty() {
            let lower = text.to_lowercase();
            self.own.push_str(&own(&lower));
            self.own.push('\n');
            self.text.push_str(&lower);
            self.text.push('\n');
        }
    }
}

/// Reads a whole number.
fn whole(value: Json<'_>) -> Option<u64> {
    std::str::from_utf8(value.bytes()).ok()?.parse().ok()
}

/// Reads the number at the start of a text, a few words aside; "128,000" is one.
pub(super) fn number(text: &str) -> Option<u64> {
    const NEAR: usize = 16;
    let start = text.bytes().take(NEAR).position(|b| b.is_ascii_digit())?;
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
