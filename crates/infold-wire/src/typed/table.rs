//! What agents put into the user's messages, as data: one row for each marker, with the agent it is of.

mod elements;
mod sections;
mod texts;

pub use elements::{ELEMENTS, Holds};
pub use sections::{At, NEVER, PHRASE_START, PHRASES, SECTIONS, SENT, SENT_ENDS, Section, Torn};
pub use texts::{COMPACTIONS, LOCAL_COMMANDS, PAIRS, TEXTS, WHOLE_TEXTS};

/// The agent that writes a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    Aider,
    ClaudeCode,
    /// Cline, and Roo Code, which grew out of it.
    Cline,
    Codex,
    Continue,
    Copilot,
    Cursor,
    /// Gemini CLI, and Qwen Code, which grew out of it.
    Gemini,
    Goose,
    Opencode,
    OpenHands,
    Pi,
    /// SWE-agent.
    Swe,
    /// Several agents, or none in particular: protocols in which results of tools are plain text.
    Any,
}
