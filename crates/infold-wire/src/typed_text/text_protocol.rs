//! Recognises results of tools that agents hand to the model as text of the user.

use std::sync::LazyLock;

use super::markers::{ELEMENTS, ElementContent, phrases};
use crate::phrase_list::PhraseList;

static RESULTS: PhraseList = LazyLock::new(|| phrases("result"));
static POSSIBLE_RESULTS: PhraseList = LazyLock::new(|| phrases("possible result"));
static OPEN_HANDS_ENDS: PhraseList = LazyLock::new(|| phrases("OpenHands result end"));
static SWE_AGENT_TASKS: PhraseList = LazyLock::new(|| phrases("SWE-agent task"));
/// The prompt at the end of a result of SWE-agent.
const PROMPT: &str = "bash-$";
/// The beginning of the line before the prompt.
const DIRECTORY: &str = "\n(Current directory: ";
/// The beginnings of optional lines before that line.
const SHELL_STATE: [&str; 2] = ["(Open file: ", "(Interactive session: "];
/// The distance in bytes from the end within which the line with the directory is searched for.
const MAX_TRAILER_BYTES: usize = 1000;
/// The bytes within which the task of a SWE-agent run is recognised.
const MAX_HEADING_BYTES: usize = 600;
/// A longer text does not address the model.
const MAX_TALK_BYTES: usize = 600;
/// Words of a person who addresses the model.
const TALK: [&str; 8] = ["i", "i'm", "i'd", "i've", "my", "we", "let's", "please"];

/// Returns the output of a tool, if this text of the user is only that; empty if there is only the heading.
pub fn tool_output(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_whole = || {
        RESULTS.iter().any(|start| text.starts_with(start))
            || is_open_hands(text)
            || is_output_element(text)
    };
    cline_output(text)
        .or_else(|| swe_agent_output(text))
        .or_else(|| aider_output(text))
        .or_else(|| is_whole().then_some(text))
}

/// Returns the output of a tool, if this text looks like one: words alone do not prove it.
pub fn possible_output(text: &str) -> Option<&str> {
    let mut starts = POSSIBLE_RESULTS.iter();
    let output = starts.find_map(|start| text.strip_prefix(start))?.trim();
    (output.len() > MAX_TALK_BYTES || !is_talk(output)).then_some(output)
}

/// `[read_file for 'a.rs'] Result:`
fn cline_output(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('[')?;
    let line = inside.lines().next()?;
    let (call, rest) = line.split_once("] Result:")?;
    let name = call.split(' ').next()?;
    let is_tool = name.contains('_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let at = line.len() - rest.len() + 1;
    is_tool.then(|| text[at..].trim())
}

/// A result of SWE-agent ends with the shell's state and prompt.
fn swe_agent_output(text: &str) -> Option<&str> {
    let output = without_prompt(text);
    let heading = &text[..text.ceil_char_boundary(MAX_HEADING_BYTES)];
    let is_task = SWE_AGENT_TASKS.iter().any(|words| heading.contains(words));
    (output.len() < text.len() && !is_task).then(|| output.trim())
}

/// Returns a text without the state and the prompt of the shell at its end.
pub fn without_prompt(text: &str) -> &str {
    let Some(rest) = text.trim_end().strip_suffix(PROMPT) else {
        return text;
    };
    let from = rest.ceil_char_boundary(rest.len().saturating_sub(MAX_TRAILER_BYTES));
    let mut end = match rest[from..].rfind(DIRECTORY) {
        Some(at) => from + at,
        None if rest.starts_with(&DIRECTORY[1..]) => 0,
        None => return text,
    };
    // More lines of the shell's state precede it.
    while let Some(at) = rest[..end]
        .rfind('\n')
        .map(|at| at + 1)
        .or((end > 0).then_some(0))
    {
        let line = &rest[at..end];
        if !SHELL_STATE.iter().any(|start| line.starts_with(start)) {
            break;
        }
        end = at.saturating_sub(1);
    }
    &rest[..end]
}

/// Returns the output of a command that the user ran in aider.
fn aider_output(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("I ran this command:\n\n")?;
    let (_, output) = rest.split_once("\n\nAnd got this output:\n\n")?;
    Some(output)
}

fn is_open_hands(text: &str) -> bool {
    let line = text.lines().next_back().unwrap_or_default();
    line.ends_with(']') && OPEN_HANDS_ENDS.iter().any(|start| line.starts_with(start))
}

/// Returns whether a text is one element that holds a result, or several.
fn is_output_element(text: &str) -> bool {
    let Some(tag) = text.strip_prefix('<') else {
        return false;
    };
    let mut outputs = ELEMENTS
        .iter()
        .filter(|(_, content)| *content == ElementContent::Output);
    outputs.any(|(name, _)| {
        let opens = tag
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['>', ' ']));
        let closing = text
            .strip_suffix('>')
            .and_then(|text| text.strip_suffix(name));
        opens && closing.is_some_and(|text| text.ends_with("</"))
    })
}

/// Returns whether a person addresses the model: in the first person, politely, or with a question.
fn is_talk(text: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '\'';
    let mut words = text.split(|letter| !is_part(letter));
    text.ends_with('?') || words.any(|word| TALK.contains(&&*word.to_ascii_lowercase()))
}
