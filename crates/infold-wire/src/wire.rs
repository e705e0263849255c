//! The provider APIs that messages, requests and replies are written for.

use std::fmt;
use std::str::FromStr;

/// The form in which a provider's API takes messages and gives replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// OpenAI chat completions, and everything compatible with them.
    Chat,
    /// OpenAI Responses: items.
    Responses,
    /// Anthropic messages: content blocks.
    Anthropic,
    /// Gemini generateContent: contents with parts.
    Gemini,
    /// Ollama chat: JSON lines.
    Ollama,
}

/// The name is that of no wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no wire `{0}` (known: chat, responses, anthropic, gemini, ollama)")]
pub struct UnknownWire(String);

impl Wire {
    /// Every wire.
    pub const ALL: [Wire; 5] = [
        Wire::Chat,
        Wire::Responses,
        Wire::Anthropic,
        Wire::Gemini,
        Wire::Ollama,
    ];

    /// Returns the wire's name in metadata, scripts and errors.
    pub fn name(self) -> &'static str {
        match self {
            Wire::Chat => "chat",
            Wire::Responses => "responses",
            Wire::Anthropic => "anthropic",
            Wire::Gemini => "gemini",
            Wire::Ollama => "ollama",
        }
    }

    /// Returns whether a request holds the system prompt beside the messages, not among them.
    pub fn has_separate_system_prompt(self) -> bool {
        matches!(self, Wire::Anthropic | Wire::Gemini)
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Wire {
    type Err = UnknownWire;

    fn from_str(name: &str) -> Result<Wire, UnknownWire> {
        let found = Wire::ALL.into_iter().find(|wire| wire.name() == name);
        found.ok_or_else(|| UnknownWire(name.to_owned()))
    }
}

/// A set of wires: those on which a message can be sent byte for byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wires(u8);

impl Wires {
    /// Returns whether a wire is in the set.
    pub fn has(self, wire: Wire) -> bool {
        self.0 & 1 << wire as u8 != 0
    }

    /// Returns the set with one more wire.
    pub fn with(self, wire: Wire) -> Wires {
        Wires(self.0 | 1 << wire as u8)
    }

    /// Returns the set as bits, for a sidecar.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Reads the bits of a sidecar.
    pub const fn from_bits(bits: u8) -> Wires {
        Wires(bits & 0b1_1111)
    }
}

impl FromIterator<Wire> for Wires {
    fn from_iter<I: IntoIterator<Item = Wire>>(wires: I) -> Wires {
        wires.into_iter().fold(Wires::default(), Wires::with)
    }
}
