//! Reads from a tool's output how it ended, and the line that says most about it.

use memchr::{memchr, memmem, memrchr};

use crate::shorten;

/// The outcome of a command or another tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutcome {
    /// Whether it failed, if known.
    pub failed: Option<bool>,
    /// The exit code, if there is one.
    pub code: Option<i64>,
    /// The line that says most: of an error the cause, of tests how many passed.
    pub key: Option<String>,
}

/// Read from each end of an output.
const READ_BYTES: usize = 6 * 1024;
/// The distance from an end of the output within which an exit code is recognised; elsewhere it is part of the output.
const EXIT_CODE_BYTES: usize = 300;
const KEY_LINE_CHARS: usize = 200;
/// A message of a tool about itself is shorter.
const MAX_TOOL_MESSAGE_BYTES: usize = 2000;
/// A longer line is data.
const MAX_LINE_BYTES: usize = 4000;
const MAX_LINES_PER_WORD: usize = 100;
/// The weight of the exception that ends a traceback.
const TRACEBACK_WEIGHT: u8 = 9;

/// Returns the outcome of a tool by its output; `marked` is whether it is marked as failed.
///
/// `ran` says that it was a command: only then are errors searched for inside the output, since a file that was read
/// may mention errors.
pub fn read_outcome(text: &str, marked: Option<bool>, ran: bool) -> ToolOutcome {
    let front = &text[..text.floor_char_boundary(READ_BYTES)];
    let back_at = text.len().saturating_sub(READ_BYTES).max(front.len());
    let back = &text[text.floor_char_boundary(back_at)..];
    // A file that was read may mention exit codes, too.
    let look = ran || text.len() < MAX_TOOL_MESSAGE_BYTES;
    let first = &front[..front.floor_char_boundary(EXIT_CODE_BYTES)];
    let last_at = text.len().saturating_sub(EXIT_CODE_BYTES);
    let last = &text[text.floor_char_boundary(last_at)..];
    let code = look
        .then(|| exit_code(last).or_else(|| exit_code(first)))
        .flatten();
    let failed = marked.filter(|failed| *failed);
    let failed = failed.or(code.map(|code| code != 0));
    let starts_with_error = text.len() < MAX_TOOL_MESSAGE_BYTES && starts_with_error(text);
    let (failed, key) = if ran {
        let lines = [front, back].into_iter();
        let lines = lines.flat_map(|text| lines_with(text, &["pass", "fail"]));
        let tests = lines.rev().find(|line| counts_tests(line, false));
        let error = (failed != Some(false))
            .then(|| error_line(front, back))
            .flatten();
        let tests_failed = tests.is_some_and(|line| counts_tests(line, true));
        let failed = match failed {
            Some(failed) => Some(failed),
            None if tests_failed || starts_with_error => Some(true),
            None if error.is_some() && tests.is_none() => Some(true),
            None => marked.or(tests.map(|_| false)),
        };
        let tests = tests.map(key_line);
        let key = match failed {
            Some(true) => error.or(tests).or_else(|| last_line(front, back)),
            _ => tests,
        };
        (failed, key.filter(|key| !key.is_empty()))
    } else {
        let failed = failed.or(starts_with_error.then_some(true)).or(marked);
        let key = (failed == Some(true))
            .then(|| error_line(front, back).or_else(|| last_line(front, back)));
        (failed, key.flatten())
    };
    ToolOutcome { failed, code, key }
}

/// Returns the lines that have one of these words, in order.
///
/// Searches for the words, not line by line: most outputs have none.
fn lines_with<'a>(text: &'a str, words: &[&str]) -> Vec<&'a str> {
    let bytes = text.as_bytes();
    let found = words
        .iter()
        .flat_map(|word| memmem::find_iter(bytes, word.as_bytes()).take(MAX_LINES_PER_WORD));
    let mut starts: Vec<usize> = found
        .map(|at| memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1))
        .collect();
    starts.sort_unstable();
    starts.dedup();
    let line = |start: usize| {
        let end = memchr(b'\n', &bytes[start..]);
        &text[start..end.map_or(text.len(), |end| start + end)]
    };
    let lines = starts.into_iter().map(line);
    lines.filter(|line| line.len() < MAX_LINE_BYTES).collect()
}

/// Returns the line that says most about an error: of equal ones the first, but of exceptions the last.
fn error_line(front: &str, back: &str) -> Option<String> {
    const SIGNS: [&str; 14] = [
        "rror",
        "RROR",
        "ERR!",
        "xception",
        "ail",
        "AIL",
        "fatal",
        "panicked",
        "not found",
        "No such",
        "denied",
        "Cannot",
        "not ok",
        "Traceback",
    ];
    let mut best: Option<(u8, &str)> = None;
    let mut in_traceback = false;
    let lines = [front, back].into_iter();
    for line in lines.flat_map(|text| lines_with(text, &SIGNS)) {
        in_traceback |= line.starts_with("Traceback (most recent");
        let weight = error_weight(line, in_traceback);
        let is_better = best.is_none_or(|(most, _)| {
            weight > most || weight == TRACEBACK_WEIGHT && most == TRACEBACK_WEIGHT
        });
        if weight > 0 && is_better {
            best = Some((weight, line));
        }
    }
    best.map(|(_, line)| key_line(line))
}

/// Returns how much a line says about an error, zero if nothing.
fn error_weight(line: &str, in_traceback: bool) -> u8 {
    let line = line.trim_start();
    let head: String = line.chars().take(60).collect::<String>().to_lowercase();
    let starts = |words: &[&str]| words.iter().any(|word| head.starts_with(word));
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    // A task runner writes `[lint] ERROR task failed`.
    let task = head
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    let task_failed = || {
        task.is_some_and(|(_, message)| message.starts_with("error") && message.contains("failed"))
    };
    let is_exception = || {
        let name = line.split([':', ' ']).next().unwrap_or_default();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
        (name.ends_with("Error") || name.ends_with("Exception"))
            && name.len() > 5
            && name.chars().all(is_name)
    };
    if in_traceback && is_exception() {
        TRACEBACK_WEIGHT
    } else if starts(&["error[e"]) || has(&[": error TS", "error: "]) {
        8
    } else if is_exception()
        || starts(&["error:", "fatal:"])
        || head.contains("panicked at")
        || has(&["AssertionError"])
    {
        7
    } else if starts(&["npm err", "e   "]) || task_failed() {
        5
    } else if has(&["command not found", "No such file or directory"])
        || has(&["Permission denied", "Cannot find module"])
    {
        6
    } else if starts(&["failed ", "fail ", "--- fail", "not ok"]) {
        4
    } else {
        0
    }
}

fn starts_with_error(text: &str) -> bool {
    let text = text.trim_start().trim_start_matches("<tool_use_error>");
    let head: String = text.chars().take(24).collect::<String>().to_lowercase();
    let starts = ["error", "failed to ", "failed:", "traceback (", "exception"];
    let commands = ["command failed", "command aborted"];
    let mut starts = starts.iter().chain(&commands);
    starts.any(|start| head.starts_with(start))
}

/// Returns whether a line counts tests, such as `3 failed, 10 passed` or `test result: ok. 7 passed`;
/// with `failing`, whether it counts any that fail.
fn counts_tests(line: &str, failing: bool) -> bool {
    let is_count = |(at, _): (usize, &str)| {
        let before = line[..at].trim_end();
        let rest = before.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &before[rest.len()..];
        !digits.is_empty() && (!failing || digits.bytes().any(|digit| digit != b'0'))
    };
    let words = ["failed", "failing", "passed", "passing"];
    let mut words = words.iter().take(if failing { 2 } else { 4 });
    words.any(|word| line.match_indices(word).any(is_count))
}

/// Finds the last exit code, in any of its spellings.
fn exit_code(text: &str) -> Option<i64> {
    const SPELLINGS: [&str; 8] = [
        "xit_code\":",
        "xit code:",
        "xit code ",
        "xit Code:",
        "xited with code ",
        "xit status ",
        "xit status: ",
        "returncode>",
    ];
    let starts = memmem::find_iter(text.as_bytes(), "xit")
        .chain(memmem::find_iter(text.as_bytes(), "returncode>"));
    let codes = starts.filter_map(|at| {
        let rest = text.get(at..)?;
        let rest = SPELLINGS.iter().find_map(|it| rest.strip_prefix(it))?;
        let rest = rest.trim_start();
        let is_digit = |(at, c): (usize, char)| c.is_ascii_digit() || at == 0 && c == '-';
        let end = rest.char_indices().find(|found| !is_digit(*found));
        rest[..end.map_or(rest.len(), |(at, _)| at)].parse().ok()
    });
    codes.last()
}

/// Returns the last line that says more than the exit code: errors come last.
fn last_line(front: &str, back: &str) -> Option<String> {
    let says_more = |line: &&str| {
        line.len() < MAX_LINE_BYTES
            && line.chars().any(char::is_alphanumeric)
            && exit_code(line).is_none()
    };
    let mut lines = back.lines().rev().chain(front.lines().rev());
    lines.find(says_more).map(key_line)
}

/// Returns a line without the colours of a terminal, shortened.
fn key_line(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        if chars.next() == Some('[') {
            // The sequence ends with a letter.
            let _ = chars.find(char::is_ascii_alphabetic);
        }
    }
    shorten(out.trim(), KEY_LINE_CHARS)
}
