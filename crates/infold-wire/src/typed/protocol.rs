//! Text protocols: agents that hand results of tools to the model as messages of the user.

use super::table::{ELEMENTS, Holds};

/// Words that only a result starts with.
const STARTS: [&str; 3] = ["OBSERVATION:", "EXECUTION RESULT of [", "<returncode>"];
/// Words that a result starts with, and maybe a person.
const UNSURE_STARTS: [&str; 9] = [
    "Observation:",
    "Tool result:",
    "Tool results:",
    "Tool output:",
    "Tool response:",
    "Tool execution result:",
    "Function result:",
    "Result of tool call:",
    "[Tool result",
];
/// The last line of a result of OpenHands.
const LAST_LINES: [&str; 7] = [
    "[The command completed with exit code ",
    "[The command has no new output after ",
    "[The command timed out after ",
    "[Command finished with exit code ",
    "[Current working directory: ",
    "[Python Interpreter: ",
    "[Python interpreter: ",
];
/// The last line of a result of SWE-agent,
const PROMPT: &str = "bash-$";
/// and one of those before it.
const DIRECTORY: &str = "\n(Current directory: ";
/// How the others start.
const STATE: [&str; 2] = ["(Open file: ", "(Interactive session: "];
/// How far from the end that line may be.
const MAX_TRAILER_BYTES: usize = 1000;
/// The request of such a run ends like its results. It says what it is within so many bytes.
const MAX_HEADING_BYTES: usize = 600;
const TASK_HEADINGS: [&str; 7] = [
    "solving the following issue",
    "the issue text",
    "\nISSUE:",
    "<issue_description>",
    "<pr_description>",
    "I've uploaded a",
    "following CTF challenge",
];
/// In a longer text nobody speaks to the model.
const MAX_TALK_BYTES: usize = 600;
/// Words of somebody who speaks to the model.
const TALK: [&str; 8] = ["i", "i'm", "i'd", "i've", "my", "we", "let's", "please"];

/// Returns what a tool gave back, if this text of the user is just that: nothing if the heading stands alone.
pub fn output(text: &str) -> Option<&str> {
    let text = text.trim();
    if let Some(output) = cline(text)
        .or_else(|| swe_agent(text))
        .or_else(|| aider(text))
    {
        return Some(output);
    }
    if STARTS.iter().any(|start| text.starts_with(start)) || open_hands(text) || is_element(text) {
        return Some(text);
    }
    None
}

/// Returns what a tool gave back, if this text looks like it: there is no telling from words alone.
pub fn observation(text: &str) -> Option<&str> {
    let start = UNSURE_STARTS
        .iter()
        .find(|start| text.starts_with(**start))?;
    let said = text[start.len()..].trim();
    (said.len() > MAX_TALK_BYTES || !is_talk(said)).then_some(said)
}

/// `[read_file for 'a.rs'] Result:`
fn cline(text: &str) -> Option<&str> {
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

/// Ends in the shell's state and prompt.
fn swe_agent(text: &str) -> Option<&str> {
    let output = without_prompt(text);
    let heading = &text[..ceil(text, MAX_HEADING_BYTES)];
    let is_task = TASK_HEADINGS.iter().any(|words| heading.contains(words));
    (output.len() < text.len() && !is_task).then(|| output.trim())
}

/// Returns a text without the state and the prompt of the shell at its end.
pub fn without_prompt(text: &str) -> &str {
    let Some(rest) = text.trim_end().strip_suffix(PROMPT) else {
        return text;
    };
    let from = ceil(rest, rest.len().saturating_sub(MAX_TRAILER_BYTES));
    let mut end = match rest[from..].rfind(DIRECTORY) {
        Some(at) => from + at,
        None if rest.starts_with(&DIRECTORY[1..]) => 0,
        None => return text,
    };
    // More lines of the kind stand above it.
    while let Some(at) = rest[..end]
        .rfind('\n')
        .map(|at| at + 1)
        .or((end > 0).then_some(0))
    {
        let line = &rest[at..end];
        if !STATE.iter().any(|start| line.starts_with(start)) {
            break;
        }
        end = at.saturating_sub(1);
    }
    &rest[..end]
}

/// What a command printed that the user ran in aider.
fn aider(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("I ran this command:\n\n")?;
    let (_, output) = rest.split_once("\n\nAnd got this output:\n\n")?;
    Some(output)
}

fn open_hands(text: &str) -> bool {
    let line = text.lines().next_back().unwrap_or_default();
    line.ends_with(']') && LAST_LINES.iter().any(|start| line.starts_with(start))
}

/// One element that holds a result, or several.
fn is_element(text: &str) -> bool {
    let Some(tag) = text.strip_prefix('<') else {
        return false;
    };
    let rows = ELEMENTS
        .iter()
        .filter(|(_, _, holds)| *holds == Holds::Output);
    let mut names = rows.map(|(_, name, _)| *name);
    names.any(|name| {
        let opens = tag
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['>', ' ']));
        let closing = text
            .strip_suffix('>')
            .and_then(|text| text.strip_suffix(name));
        opens && closing.is_some_and(|text| text.ends_with("</"))
    })
}

/// Whether somebody speaks to the model: of themselves, politely, or with a question.
fn is_talk(text: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '\'';
    let mut words = text.split(|letter| !is_part(letter));
    text.ends_with('?') || words.any(|word| TALK.contains(&&*word.to_ascii_lowercase()))
}

/// The start of the first character at `at` or behind it.
fn ceil(text: &str, at: usize) -> usize {
    (at..text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len())
}
