//! Tracks slash commands, to recognise the prompt that Claude Code puts in after one.

use super::markers::LOCAL_COMMANDS;
use super::parse::{ParsedText, PassageOrigin};

/// A shorter text is no template, unless its command certainly has a prompt.
const MIN_TEMPLATE_BYTES: usize = 400;

/// The slash command that may still be followed by its prompt, until the model speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlashCommand {
    /// There is none.
    #[default]
    None,
    /// The command's prompt follows.
    Prompt,
    /// A prompt follows, or words of the user.
    Unclear,
    /// Words of the user follow: the agent ran the command itself.
    Local,
}

impl SlashCommand {
    /// Returns whether the words of a text are the command's prompt, and the command that may affect the next text.
    ///
    /// The wrapper of a command with a prompt starts with its message, that of a command that the agent runs itself
    /// with its name; the latter has a caveat before it and its output behind it.
    pub fn follow(self, text: &ParsedText<'_>) -> (bool, SlashCommand) {
        // The file of a skill is the prompt of its command.
        if text.is_interruption || text.is_skill {
            return (false, SlashCommand::None);
        }
        if let Some(name) = text.command {
            let next = if text.is_local || LOCAL_COMMANDS.contains(&name) {
                SlashCommand::Local
            } else if text.message_first {
                SlashCommand::Prompt
            } else if self == SlashCommand::Local {
                SlashCommand::Local
            } else {
                SlashCommand::Unclear
            };
            // The prompt may be in the text of the wrapper.
            let expands = next.expands(text);
            return (expands, if expands { SlashCommand::Unclear } else { next });
        }
        if text.is_local {
            return (false, SlashCommand::Local);
        }
        if !has_words(text) {
            return (false, self);
        }
        if self.expands(text) {
            // The prompt may come in several texts.
            (true, SlashCommand::Unclear)
        } else {
            (false, SlashCommand::None)
        }
    }

    fn expands(self, text: &ParsedText<'_>) -> bool {
        match self {
            SlashCommand::Prompt => has_words(text),
            SlashCommand::Unclear => looks_like_template(text),
            SlashCommand::None | SlashCommand::Local => false,
        }
    }
}

fn has_words(text: &ParsedText<'_>) -> bool {
    let mut passages = text.passages.iter();
    passages.any(|passage| passage.origin != PassageOrigin::User)
}

/// Returns whether a text is written for every use of a command: long, with headings, a role or a slot for arguments.
fn looks_like_template(text: &ParsedText<'_>) -> bool {
    let mut passages = text.passages.iter();
    let Some(first) = passages.find(|passage| passage.origin == PassageOrigin::Loose) else {
        return false;
    };
    let text = first.text;
    if text.len() < MIN_TEMPLATE_BYTES {
        return false;
    }
    let headings = text.lines().filter(|line| {
        let title = line.trim_start_matches('#');
        title.len() < line.len() && title.starts_with(' ')
    });
    ["# ", "You are ", "---\n"]
        .iter()
        .any(|start| text.starts_with(start))
        || text.contains("\nARGUMENTS: ")
        || headings.take(2).count() == 2
}
