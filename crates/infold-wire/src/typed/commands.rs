//! Slash commands: the prompt that Claude Code puts in after one.

use super::table::LOCAL_COMMANDS;
use super::walk::{Kind, Walk};

/// A shorter text is no template, unless its command surely has a prompt.
const MIN_TEMPLATE_BYTES: usize = 400;

/// What may follow the wrapper of a slash command, until the model speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Command {
    /// Nothing.
    #[default]
    None,
    /// The prompt of the command.
    Prompt,
    /// A prompt, or words of the user.
    Unclear,
    /// Words of the user: the agent ran the command itself.
    Local,
}

impl Command {
    /// Returns whether the words of a text are the command's prompt, and what may follow that text.
    ///
    /// The wrapper of a command with a prompt starts with its message, that of a command that the agent runs
    /// itself with its name; the latter has a caveat before it and its output behind it.
    pub fn follow(self, walk: &Walk<'_>) -> (bool, Command) {
        // The file of a skill is the prompt of its command.
        if walk.is_interruption || walk.is_skill {
            return (false, Command::None);
        }
        if let Some(name) = walk.command {
            let next = match walk.message_first {
                _ if walk.is_local || LOCAL_COMMANDS.contains(&name) => Command::Local,
                true => Command::Prompt,
                false if self == Command::Local => Command::Local,
                false => Command::Unclear,
            };
            // The prompt may stand in the text of the wrapper.
            return match next.expands(walk) {
                true => (true, Command::Unclear),
                false => (false, next),
            };
        }
        if walk.is_local {
            return (false, Command::Local);
        }
        if !has_words(walk) {
            return (false, self);
        }
        match self.expands(walk) {
            // It may come in several texts.
            true => (true, Command::Unclear),
            false => (false, Command::None),
        }
    }

    fn expands(self, walk: &Walk<'_>) -> bool {
        match self {
            Command::Prompt => has_words(walk),
            Command::Unclear => looks_like_template(walk),
            Command::None | Command::Local => false,
        }
    }
}

fn has_words(walk: &Walk<'_>) -> bool {
    walk.pieces.iter().any(|piece| piece.kind != Kind::Sure)
}

/// Whether a text is written for every use of a command: long, with headings, a role or a place for arguments.
fn looks_like_template(walk: &Walk<'_>) -> bool {
    let Some(first) = walk.pieces.iter().find(|piece| piece.kind == Kind::Loose) else {
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
    text.starts_with("# ")
        || text.starts_with("You are ")
        || text.starts_with("---\n")
        || text.contains("\nARGUMENTS: ")
        || headings.take(2).count() == 2
}
