use memchr::{memchr, memmem, memrchr};

use crate::shorten;

/// How a command or another tool ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Whether it failed, if that can be told.
    pub failed: Option<bool>,
    /// The exit code, where it is given.
    pub code: Option<i64>,
    /// The line that says most: of an error what is wrong, of tests how many passed.
    pub key: Option<String>,
}

/// Looked at from each end of an output.
const LOOK: usize = 6 * 1024;
/// How a command ended is said before its output or behind it, so near the end; elsewhere it is output.
const CODE_LOOK: usize = 300;
const WIDTH: usize = 200;
/// Whatever a tool says of itself is shorter.
const SHORT: usize = 2000;
/// A longer line is data.
const LONGEST: usize = 4000;

/// Tells how something ended from what it gave back; `marked` is what the tool says itself.
///
/// `ran` says that it was a command: only then are errors looked for inside the output,
/// since a file that was read may speak of errors without being one.
pub fn ending(text: &str, marked: Option<bool>, ran: bool) -> Ending {
    let front = &text[..floor(text, LOOK.min(text.len()))];
    let back = &text[floor(text, text.len().saturating_sub(LOOK).max(front.len()))..];
    // A file that was read may speak of codes, too.
    let look = ran || text.len() < SHORT;
    let first = &front[..floor(front, CODE_LOOK.min(front.len()))];
    let last = &text[floor(text, text.len().saturating_sub(CODE_LOOK))..];
    let code = look
        .then(|| exit_code(last).or_else(|| exit_code(first)))
        .flatten();
    let failed = marked
        .filter(|failed| *failed)
        .or(code.map(|code| code != 0));
    let starts_badly = text.len() < SHORT && starts_badly(text);
    if !ran {
        let failed = failed.or(starts_badly.then_some(true)).or(marked);
        let key =
            (failed == Some(true)).then(|| best(front, back).or_else(|| last_line(front, back)));
        return Ending {
            failed,
            code,
            key: key.flatten(),
        };
    }
    let counted = [front, back]
        .into_iter()
        .flat_map(|text| with(text, &["pass", "fail"]));
    let tests = counted.rev().find(|line| counts_tests(line));
    let worst = (failed != Some(false)).then(|| best(front, back)).flatten();
    let failing_tests = tests.is_some_and(failing);
    let failed = match failed {
        Some(failed) => Some(failed),
        None if failing_tests || starts_badly => Some(true),
        None if worst.is_some() && tests.is_none() => Some(true),
        None => marked.or(tests.map(|_| false)),
    };
    let tests = tests.map(|line| shorten(&plain(line), WIDTH));
    let key = match failed {
        Some(true) => worst.or(tests).or_else(|| last_line(front, back)),
        _ => tests,
    };
    Ending {
        failed,
        code,
        key: key.filter(|key| !key.is_empty()),
    }
}

/// The lines that have one of these words, in order. Found by word: most outputs have none, and few lines do.
fn with<'a>(text: &'a str, words: &[&str]) -> Vec<&'a str> {
    const MOST: usize = 100;
    let bytes = text.as_bytes();
    let found = words
        .iter()
        .flat_map(|word| memmem::find_iter(bytes, word.as_bytes()).take(MOST));
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
    lines.filter(|line| line.len() < LONGEST).collect()
}

/// The line that tells most of what went wrong. Of equals the first, but the last of exceptions: they come last.
fn best(front: &str, back: &str) -> Option<String> {
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
    let mut trace = false;
    for line in [front, back]
        .into_iter()
        .flat_map(|text| with(text, &SIGNS))
    {
        trace |= line.starts_with("Traceback (most recent");
        let weight = weight(line, trace);
        let better = best.is_none_or(|(most, _)| weight > most || weight == 9 && most == 9);
        if weight > 0 && better {
            best = Some((weight, line));
        }
    }
    best.map(|(_, line)| shorten(&plain(line), WIDTH))
}

fn weight(line: &str, trace: bool) -> u8 {
    let line = line.trim_start();
    let head: String = line.chars().take(60).collect::<String>().to_lowercase();
    // What a runner of tasks puts in front: `[lint] ERROR task failed`.
    let task = head
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    let task_failed =
        task.is_some_and(|(_, said)| said.starts_with("error") && said.contains("failed"));
    let exception = || {
        let name = line.split([':', ' ']).next().unwrap_or_default();
        (name.ends_with("Error") || name.ends_with("Exception"))
            && name.len() > 5
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_')
    };
    if trace && exception() {
        9
    } else if head.starts_with("error[e") || line.contains(": error TS") || line.contains("error: ")
    {
        8
    } else if exception()
        || head.starts_with("error:")
        || head.starts_with("fatal:")
        || head.contains("panicked at")
        || line.contains("AssertionError")
    {
        7
    } else if head.starts_with("npm err") || head.starts_with("e   ") || task_failed {
        5
    } else if line.contains("command not found")
        || line.contains("No such file or directory")
        || line.contains("Permission denied")
        || line.contains("Cannot find module")
    {
        6
    } else if head.starts_with("failed ")
        || head.starts_with("fail ")
        || head.starts_with("--- fail")
        || head.starts_with("not ok")
    {
        4
    } else {
        0
    }
}

fn starts_badly(text: &str) -> bool {
    let text = text.trim_start().trim_start_matches("<tool_use_error>");
    let head: String = text.chars().take(24).collect::<String>().to_lowercase();
    [
        "error",
        "failed to ",
        "failed:",
        "traceback (",
        "exception",
        "command failed",
        "command aborted",
    ]
    .iter()
    .any(|start| head.starts_with(start))
}

/// A line such as `3 failed, 10 passed` or `test result: ok. 7 passed`.
fn counts_tests(line: &str) -> bool {
    let number_before = |word: &str| {
        line.match_indices(word).any(|(at, _)| {
            let before = line[..at].trim_end();
            before.ends_with(|c: char| c.is_ascii_digit())
        })
    };
    number_before("passed")
        || number_before("failed")
        || number_before("passing")
        || number_before("failing")
}

fn failing(line: &str) -> bool {
    ["failed", "failing"].iter().any(|word| {
        line.match_indices(word).any(|(at, _)| {
            let before = line[..at].trim_end();
            let digits = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
            digits > 0
                && !before[before.len() - digits..]
                    .trim_start_matches('0')
                    .is_empty()
        })
    })
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
        let spelling = SPELLINGS
            .iter()
            .find(|spelling| rest.starts_with(**spelling))?;
        let rest = rest[spelling.len()..].trim_start();
        let digits = |(at, c): (usize, char)| !(c.is_ascii_digit() || at == 0 && c == '-');
        let end = rest
            .char_indices()
            .find(|found| digits(*found))
            .map_or(rest.len(), |(at, _)| at);
        rest[..end].parse().ok()
    });
    codes.last()
}

/// The last line that says more than the exit code: what went wrong comes last.
fn last_line(front: &str, back: &str) -> Option<String> {
    let says = |line: &&str| {
        line.len() < LONGEST && line.chars().any(char::is_alphanumeric) && exit_code(line).is_none()
    };
    let mut lines = back.lines().rev().chain(front.lines().rev());
    lines.find(says).map(|line| shorten(&plain(line), WIDTH))
}

/// Colours are for terminals.
fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        if chars.next() == Some('[') {
            // Ends with a letter.
            let _ = chars.find(char::is_ascii_alphabetic);
        }
    }
    out.trim().to_owned()
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
