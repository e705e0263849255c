//! Words of the user inside of what a tool gave back.

use std::borrow::Cow;

use memchr::memmem;

use super::join;
use super::table::Holds;
use super::tags::elements;
use super::walk::sent;
use crate::{Json, Kind};

/// How a result starts that says the user refused the call.
const REFUSALS: [&str; 6] = [
    "The user doesn't want to ",
    "The user does not want to ",
    "Permission for this tool use was denied.",
    "The user rejected ",
    "User rejected ",
    "Plan rejected.",
];
/// What stands before the user's reason.
const REASONS: [&str; 6] = [
    "the user said:\n",
    "The user said:\n",
    "The user provided the following reason for the rejection:",
    "with the following feedback:",
    "User feedback:",
    "with the following message:",
];
/// What agents add behind it.
const REASON_ENDS: [&str; 5] = [
    "\n\nNote: The user's next message may contain",
    "\n\nThe plan is stored at:",
    "\n\nThe agent proposed",
    "\nRevise the plan based on",
    "\n<system-reminder>",
];
/// What the reason says if the user wants to talk of a question first.
const CLARIFIES: &str = "The user wants to clarify these questions.";
/// How a result starts that says what the user answered.
const ANSWERED: [&str; 4] = [
    "User has answered your questions:",
    "Your questions have been answered:",
    "The user answered:",
    "The user has answered your questions:",
];
/// What agents add behind the answers.
const ANSWER_ENDS: [&str; 2] = [
    ". You can now continue with",
    ". Read the answers carefully",
];
/// How a result of Cline and Roo Code starts that holds the user's words in an element.
const COMMENTED: [&str; 9] = [
    "The user denied this operation and provided",
    "The user approved this operation and provided",
    "The user provided the following feedback",
    "The user has provided feedback on",
    "The user provided feedback",
    "You seem to be having trouble proceeding. The user",
    "[The user ",
    "Command executed.",
    "Command is still running",
];
/// The elements that hold them.
const COMMENTS: [&str; 4] = ["feedback", "answer", "user_message", "user_feedback"];
/// A longer result is no JSON object with answers.
const MAX_JSON_BYTES: usize = 64 * 1024;

/// Returns the user's words.
pub fn words(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim();
    let starts = |list: &[&str]| list.iter().any(|start| text.starts_with(start));
    if starts(&REFUSALS) {
        return reason(text);
    }
    if let Some(given) = ANSWERED.iter().find_map(|start| text.strip_prefix(start)) {
        return join(answers(given).into_iter());
    }
    if starts(&COMMENTED) || is_comment(text) {
        return join(comments(text).into_iter());
    }
    if text.starts_with('{') && text.len() <= MAX_JSON_BYTES {
        return fields(text);
    }
    join(sent_meanwhile(text).into_iter())
}

fn reason(text: &str) -> Option<Cow<'_, str>> {
    let bytes = text.as_bytes();
    let found = REASONS.iter().filter_map(|words| {
        let at = memmem::find(bytes, words.as_bytes())?;
        Some(at + words.len())
    });
    let said = &text[found.min()?..];
    let ends = REASON_ENDS.iter().filter_map(|end| said.find(end));
    let said = said[..ends.min().unwrap_or(said.len())].trim();
    if !said.starts_with(CLARIFIES) {
        return join([said].into_iter());
    }
    let lines = said.lines().map(str::trim);
    let given = lines.filter_map(|line| {
        line.strip_prefix("Answer: ")
            .or_else(|| line.strip_prefix("User notes: "))
    });
    join(given)
}

/// `"Which?"="That one" notes: but smaller, "Where?"="There"`
fn answers(given: &str) -> Vec<&str> {
    let ends = ANSWER_ENDS.iter().filter_map(|end| given.rfind(end));
    let mut rest = &given[..ends.min().unwrap_or(given.len())];
    let mut out = Vec::new();
    while let Some(at) = memmem::find(rest.as_bytes(), b"\"=") {
        rest = &rest[at + 2..];
        // The next question starts where this answer ends.
        let next = memmem::find(rest.as_bytes(), b"\"=").map_or(rest, |next| &rest[..next]);
        let answer = match next.len() < rest.len() {
            true => next.rfind(", \"").map_or(next, |end| &next[..end]),
            false => next,
        };
        let (chosen, notes) = match answer.split_once(" notes: ") {
            Some((chosen, notes)) => (chosen.trim_end_matches(" user"), Some(notes)),
            None => (answer, None),
        };
        let chosen = chosen
            .split("\" selected preview:")
            .next()
            .unwrap_or(chosen);
        let chosen = chosen.strip_prefix('"').unwrap_or(chosen);
        let chosen = chosen.strip_suffix('"').unwrap_or(chosen);
        out.extend(Some(chosen).filter(|chosen| !chosen.starts_with("(no option selected)")));
        out.extend(notes);
    }
    out
}

/// One element that holds a comment, and nothing else.
fn is_comment(text: &str) -> bool {
    COMMENTS.iter().any(|name| {
        let inside = text
            .strip_prefix('<')
            .and_then(|text| text.strip_prefix(name));
        let closing = text
            .strip_suffix('>')
            .and_then(|text| text.strip_suffix(name));
        inside.is_some_and(|text| text.starts_with('>'))
            && closing.is_some_and(|text| text.ends_with("</"))
    })
}

fn comments(text: &str) -> Vec<&str> {
    let mut from = 0;
    let mut out = Vec::new();
    for element in elements(text) {
        if element.at >= from && COMMENTS.contains(&element.name) {
            out.push(element.inside);
            from = element.end;
        }
    }
    out
}

/// `{"answers": …}` of Codex and Gemini CLI, `{"status": "denied", "feedback": …}` of Roo Code.
fn fields(text: &str) -> Option<Cow<'_, str>> {
    let json = Json::parse(text.as_bytes()).ok()?;
    let feedback = json
        .get("feedback")
        .filter(|_| json.get("status").is_some());
    let mut said = Vec::new();
    match feedback {
        Some(feedback) => texts(feedback, &mut said),
        None => texts(json.get("answers")?, &mut said),
    }
    let said = said
        .iter()
        .map(|said| said.trim_start_matches("user_note: "));
    join(said).map(|said| Cow::Owned(said.into_owned()))
}

fn texts<'a>(json: Json<'a>, out: &mut Vec<Cow<'a, str>>) {
    match json.kind() {
        Kind::String => out.extend(json.text()),
        Kind::Object => json.members().for_each(|(_, value)| texts(value, out)),
        Kind::Array => json.elements().for_each(|value| texts(value, out)),
        _ => {}
    }
}

/// What the user sent while the tool ran: it comes in a reminder at the end of the result.
fn sent_meanwhile(text: &str) -> Vec<&str> {
    if !text.ends_with("</system-reminder>") {
        return Vec::new();
    }
    let mut tail = Vec::new();
    let mut from = 0;
    for element in elements(text) {
        if element.at < from {
            continue;
        }
        // Words of the tool behind a reminder say that it was quoted.
        if !text[from..element.at].trim().is_empty() {
            tail.clear();
        }
        if element.holds == Holds::Reminder {
            tail.push(element.inside);
        }
        from = element.end;
    }
    tail.into_iter().filter_map(sent).collect()
}
