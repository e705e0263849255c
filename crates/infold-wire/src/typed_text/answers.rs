//! Finds words of the user inside tool results.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;

use super::elements::find_elements;
use super::join_lines;
use super::markers::{ElementContent, phrases};
use super::parse::sent_meanwhile;
use crate::phrase_list::PhraseList;
use crate::{Json, JsonKind};

static REFUSALS: PhraseList = LazyLock::new(|| phrases("refusal"));
static REASONS: PhraseList = LazyLock::new(|| phrases("reason"));
static REASON_ENDS: PhraseList = LazyLock::new(|| phrases("reason end"));
static ANSWERS: PhraseList = LazyLock::new(|| phrases("answers"));
static ANSWERS_ENDS: PhraseList = LazyLock::new(|| phrases("answers end"));
static COMMENTS: PhraseList = LazyLock::new(|| phrases("comment"));
/// The elements that hold comments.
const COMMENT_ELEMENTS: [&str; 4] = ["feedback", "answer", "user_message", "user_feedback"];
/// The reason says this if the user wants to discuss a question first.
const CLARIFICATION: &str = "The user wants to clarify these questions.";
/// A longer result is no JSON object with answers.
const MAX_JSON_BYTES: usize = 64 * 1024;

/// Returns the user's words in a result.
pub fn user_words(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim();
    let starts = |list: &PhraseList| list.iter().any(|start| text.starts_with(start));
    if let Some(given) = ANSWERS.iter().find_map(|start| text.strip_prefix(start)) {
        return join_lines(answers(given).into_iter());
    }
    if starts(&COMMENTS) || is_comment(text) {
        return join_lines(comments(text).into_iter());
    }
    if starts(&REFUSALS) {
        return refusal_reason(text);
    }
    if text.starts_with('{') && text.len() <= MAX_JSON_BYTES {
        return json_answers(text);
    }
    join_lines(messages_in_reminders(text).into_iter())
}

fn refusal_reason(text: &str) -> Option<Cow<'_, str>> {
    let bytes = text.as_bytes();
    let found = REASONS.iter().filter_map(|words| {
        let at = memmem::find(bytes, words.as_bytes())?;
        Some(at + words.len())
    });
    let reason = &text[found.min()?..];
    let ends = REASON_ENDS.iter().filter_map(|end| reason.find(end));
    let reason = reason[..ends.min().unwrap_or(reason.len())].trim();
    if !reason.starts_with(CLARIFICATION) {
        return join_lines([reason].into_iter());
    }
    let lines = reason.lines().map(str::trim);
    let given = lines.filter_map(|line| {
        line.strip_prefix("Answer: ")
            .or_else(|| line.strip_prefix("User notes: "))
    });
    join_lines(given)
}

/// Reads `"Which?"="That one" notes: but smaller, "Where?"="There"`.
fn answers(given: &str) -> Vec<&str> {
    let ends = ANSWERS_ENDS.iter().filter_map(|end| given.rfind(end));
    let mut rest = &given[..ends.min().unwrap_or(given.len())];
    let mut out = Vec::new();
    while let Some(at) = memmem::find(rest.as_bytes(), b"\"=") {
        rest = &rest[at + 2..];
        // The next question starts where this answer ends.
        let next = memmem::find(rest.as_bytes(), b"\"=").map_or(rest, |next| &rest[..next]);
        let end = next.rfind(", \"").filter(|_| next.len() < rest.len());
        let answer = &next[..end.unwrap_or(next.len())];
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

/// Returns whether a text is one element that holds a comment, and nothing else.
fn is_comment(text: &str) -> bool {
    COMMENT_ELEMENTS.iter().any(|name| {
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
    for element in find_elements(text) {
        if element.at >= from && COMMENT_ELEMENTS.contains(&element.name) {
            out.push(element.inside);
            from = element.end;
        }
    }
    out
}

/// Reads `{"answers": …}` of Codex and Gemini CLI, `{"status": "denied", "feedback": …}` of Roo Code.
fn json_answers(text: &str) -> Option<Cow<'_, str>> {
    let json = Json::parse(text.as_bytes()).ok()?;
    let feedback = json
        .get("feedback")
        .filter(|_| json.get("status").is_some());
    let mut texts = Vec::new();
    collect_texts(feedback.or_else(|| json.get("answers"))?, &mut texts);
    let texts = texts.iter();
    let texts = texts.map(|text| text.trim_start_matches("user_note: "));
    join_lines(texts).map(|joined| Cow::Owned(joined.into_owned()))
}

fn collect_texts<'a>(json: Json<'a>, out: &mut Vec<Cow<'a, str>>) {
    match json.kind() {
        JsonKind::String => out.extend(json.text()),
        JsonKind::Object => json
            .members()
            .for_each(|(_, value)| collect_texts(value, out)),
        JsonKind::Array => json.elements().for_each(|value| collect_texts(value, out)),
        _ => {}
    }
}

/// Returns the user's messages during the tool's run: they are in a reminder at the end of the result.
fn messages_in_reminders(text: &str) -> Vec<&str> {
    if !text.ends_with("</system-reminder>") {
        return Vec::new();
    }
    let mut tail = Vec::new();
    let mut from = 0;
    for element in find_elements(text) {
        if element.at < from {
            continue;
        }
        // Words behind a reminder show that the tool quoted it.
        if !text[from..element.at].trim().is_empty() {
            tail.clear();
        }
        if element.content == ElementContent::Reminder {
            tail.push(element.inside);
        }
        from = element.end;
    }
    tail.into_iter().filter_map(sent_meanwhile).collect()
}
