//! Separates the text that a person typed from the text that their agent injected into the user's messages.
//!
//! Agents write in the user's name: reminders, the state of the editor, output of commands, files of skills, results of
//! tools. `typed_text/markers.txt` lists the markers of each of them; text without a marker counts as typed.

mod answers;
mod code_fences;
mod elements;
mod markers;
mod only_elements;
mod parse;
mod sections;
mod slash_command;
mod text_protocol;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parse::{ParsedText, PassageOrigin};
use slash_command::SlashCommand;
pub(crate) use text_protocol::tool_output;

/// Finds the typed text in the user's messages of one conversation.
///
/// Takes the texts in order: some are recognised only by the texts before them.
#[derive(Debug, Default)]
pub struct TypedTextFilter {
    /// A slash command whose prompt may follow.
    command: SlashCommand,
    /// A result announced the prompt of a skill. The flag is set through a shared reference, and is no `Cell` so that a
    /// filter may be shared between threads.
    skill_follows: AtomicBool,
    /// Whether the next text is a tool's output: the one before was only its heading.
    output_follows: bool,
    /// Whether the model has spoken, so that a text may be the result of a call.
    replied: bool,
}

impl Clone for TypedTextFilter {
    fn clone(&self) -> TypedTextFilter {
        TypedTextFilter {
            skill_follows: AtomicBool::new(self.skill_follows.load(Relaxed)),
            ..*self
        }
    }
}

impl TypedTextFilter {
    /// Returns the words that a person typed in one text (block) of a message of the user; none if all of it was injected.
    ///
    /// Injected parts inside are cut out, wrappers around typed words are taken off; a text with nothing
    /// injected is borrowed unchanged, trimmed at most.
    pub fn text<'a>(&mut self, text: &'a str) -> Option<Cow<'a, str>> {
        let text = text.trim();
        if std::mem::take(&mut self.output_follows) {
            return self.result(text);
        }
        // Only after a reply of the model can a text be a result whose words a person may begin with too.
        let possible = || text_protocol::possible_output(text).filter(|_| self.replied);
        if let Some(output) = tool_output(text).or_else(possible) {
            self.output_follows = output.is_empty() && text.starts_with('[');
            return self.result(output);
        }
        let parsed = ParsedText::parse(text);
        if std::mem::take(self.skill_follows.get_mut()) {
            self.command = SlashCommand::Prompt;
        }
        let (is_prompt, next) = self.command.follow(&parsed);
        self.command = next;
        let passages = parsed.passages.into_iter();
        let typed = passages.filter(|passage| passage.origin == PassageOrigin::User || !is_prompt);
        join_lines(typed.map(|passage| passage.text))
    }

    /// Returns the user's words inside a tool result: the reason of a rejected call, answers to the agent's questions,
    /// feedback on a plan.
    pub fn result<'a>(&self, text: &'a str) -> Option<Cow<'a, str>> {
        // The model called a skill, or a command with a prompt, which is injected next.
        if text.starts_with("Launching skill: ") {
            self.skill_follows.store(true, Relaxed);
        }
        answers::user_words(text)
    }

    /// Notes that the model spoke: a new turn follows.
    pub fn reply(&mut self) {
        *self = TypedTextFilter {
            replied: true,
            ..TypedTextFilter::default()
        };
    }
}

/// Returns whether a message of the user is a summary that an agent wrote when it compacted its conversation.
pub fn is_compaction(text: &str) -> bool {
    let text = text.trim_start();
    let mut starts = markers::COMPACTIONS.iter();
    starts.any(|start| text.starts_with(start))
}

/// Joins passages that are not blank, each on lines of its own.
fn join_lines<'a>(passages: impl Iterator<Item = &'a str>) -> Option<Cow<'a, str>> {
    let mut passages = passages.map(str::trim).filter(|text| !text.is_empty());
    let first = Cow::Borrowed(passages.next()?);
    Some(passages.fold(first, |joined, passage| joined + "\n" + passage))
}
