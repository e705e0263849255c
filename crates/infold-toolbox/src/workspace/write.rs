//! The tools `write` and `edit`.

use super::Workspace;
use super::file::{existing, read_whole, write_whole};
use super::read::refuse_binary;
use super::root::MissingParents;
use crate::arguments::CallArguments;
use crate::failure::CallProblem;

/// The arguments of the tool `write`.
pub const WRITE_ARGUMENTS: &[&str] = &["path", "content"];

/// The arguments of the tool `edit`.
pub const EDIT_ARGUMENTS: &[&str] = &["path", "old_string", "new_string", "replace_all"];

pub fn write(workspace: &Workspace, arguments: &CallArguments) -> Result<String, CallProblem> {
    let shown = arguments.text("path")?;
    let content = arguments.text("content")?;
    let _writing = workspace.writing();
    let place = workspace
        .root
        .locate(shown, MissingParents::Create)
        .map_err(|error| CallProblem::new(error.to_string()))?;
    let verb = match existing(&place, shown)? {
        Some(_) => "replaced",
        None => "created",
    };
    write_whole(&place, shown, content.as_bytes())?;
    let lines = content.lines().count();
    Ok(format!(
        "{verb} `{shown}`: {lines} lines, {} bytes",
        content.len()
    ))
}

pub fn edit(workspace: &Workspace, arguments: &CallArguments) -> Result<String, CallProblem> {
    let shown = arguments.text("path")?;
    let replacement = Replacement {
        old: arguments.text("old_string")?,
        new: arguments.text("new_string")?,
        replace_all: arguments.flag("replace_all")?,
    };
    replacement.check(shown)?;
    // Two edits of one file at the same time: the second one sees the outcome of the first.
    let _writing = workspace.writing();
    let place = workspace
        .root
        .locate(shown, MissingParents::Refuse)
        .map_err(|error| CallProblem::new(error.to_string()))?;
    let bytes = read_whole(&place, shown, workspace.limits.max_file_bytes)?;
    refuse_binary(&bytes, shown, bytes.len() as u64)?;
    let (edited, lines) = replacement.apply(&bytes, shown)?;
    if edited.len() as u64 > workspace.limits.max_file_bytes {
        return Err(CallProblem::new(format!(
            "`{shown}` would have {} bytes, the limit is {}",
            edited.len(),
            workspace.limits.max_file_bytes
        )));
    }
    write_whole(&place, shown, &edited)?;
    Ok(match lines.as_slice() {
        [line] => format!("edited `{shown}` at line {line}"),
        lines => format!(
            "edited `{shown}` in {} places: {}",
            lines.len(),
            numbers(lines)
        ),
    })
}

/// A text to find, and its replacement.
struct Replacement<'a> {
    old: &'a str,
    new: &'a str,
    replace_all: bool,
}

impl Replacement<'_> {
    fn check(&self, shown: &str) -> Result<(), CallProblem> {
        if self.old.is_empty() {
            return Err(CallProblem::new(format!(
                "`old_string` is empty: give the text in `{shown}` to replace, or use `write` for the whole file"
            )));
        }
        if self.old == self.new {
            return Err(CallProblem::new(
                "`old_string` and `new_string` are the same: nothing would change",
            ));
        }
        Ok(())
    }

    /// Returns the edited bytes, and the numbers of the edited lines.
    ///
    /// Works on bytes, so text elsewhere in the file that is not UTF-8 stays unchanged.
    fn apply(&self, bytes: &[u8], shown: &str) -> Result<(Vec<u8>, Vec<usize>), CallProblem> {
        let (mut old, mut new) = (self.old.to_owned(), self.new.to_owned());
        let mut found = occurrences(bytes, &old);
        if found.is_empty() && memchr::memmem::find(bytes, b"\r\n").is_some() {
            // Models write lines without carriage returns.
            (old, new) = (with_crlf(&old), with_crlf(&new));
            found = occurrences(bytes, &old);
        }
        let lines = line_numbers(bytes, &found);
        match found.len() {
            0 => return Err(self.not_found(bytes, shown)),
            1 => {}
            _ if self.replace_all => {}
            count => {
                return Err(CallProblem::new(format!(
                    "`old_string` is in `{shown}` {count} times ({}): give more of the text around it, or set `replace_all`",
                    numbers(&lines)
                )));
            }
        }
        let mut edited = Vec::with_capacity(bytes.len());
        let mut rest = 0;
        for at in found {
            edited.extend_from_slice(&bytes[rest..at]);
            edited.extend_from_slice(new.as_bytes());
            rest = at + old.len();
        }
        edited.extend_from_slice(&bytes[rest..]);
        Ok((edited, lines))
    }

    fn not_found(&self, bytes: &[u8], shown: &str) -> CallProblem {
        let first_line = self
            .old
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty());
        let near = first_line.map_or_else(Vec::new, |line| occurrences(bytes, line));
        let hint = if near.is_empty() {
            "read the file to see what it holds".to_owned()
        } else {
            let lines = numbers(&line_numbers(bytes, &near));
            format!("its first line is at {lines}: compare the rest, white space too")
        };
        CallProblem::new(format!("`old_string` is not in `{shown}`: {hint}"))
    }
}

fn occurrences(bytes: &[u8], text: &str) -> Vec<usize> {
    memchr::memmem::find_iter(bytes, text.as_bytes()).collect()
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Returns the lines of ascending offsets, counted from 1.
fn line_numbers(bytes: &[u8], offsets: &[usize]) -> Vec<usize> {
    let mut line = 1;
    let mut rest = 0;
    let mut lines = Vec::with_capacity(offsets.len());
    for &offset in offsets {
        line += memchr::memchr_iter(b'\n', &bytes[rest..offset]).count();
        rest = offset;
        lines.push(line);
    }
    lines
}

/// Names lines, the first few of many.
fn numbers(lines: &[usize]) -> String {
    const MAX_NAMED_LINES: usize = 8;
    let named: Vec<String> = lines
        .iter()
        .take(MAX_NAMED_LINES)
        .map(usize::to_string)
        .collect();
    let more = if lines.len() > MAX_NAMED_LINES {
        ", …"
    } else {
        ""
    };
    format!("line {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(text: &str, old: &str, new: &str, replace_all: bool) -> Result<String, String> {
        let replacement = Replacement {
            old,
            new,
            replace_all,
        };
        replacement.check("f").map_err(|failure| failure.reason)?;
        let edited = replacement.apply(text.as_bytes(), "f");
        let edited = edited.map_err(|failure| failure.reason)?;
        Ok(String::from_utf8(edited.0).unwrap())
    }

    #[test]
    fn one_occurrence_is_replaced() {
        assert_eq!(applied("a b c", "b", "x", false).unwrap(), "a x c");
    }

    #[test]
    fn several_occurrences_are_refused_with_their_lines() {
        let refused = applied("b\nb\nc b", "b", "x", false).unwrap_err();
        assert!(refused.contains("3 times (line 1, 2, 3)"), "{refused}");
        assert_eq!(applied("b\nb\nc b", "b", "x", true).unwrap(), "x\nx\nc x");
    }

    #[test]
    fn occurrences_that_overlap_are_one() {
        assert_eq!(applied("aaa", "aa", "x", false).unwrap(), "xa");
    }

    #[test]
    fn carriage_returns_are_kept() {
        assert_eq!(
            applied("a\r\nb\r\nc", "a\nb", "x\ny", false).unwrap(),
            "x\r\ny\r\nc"
        );
    }

    #[test]
    fn empty_edits_are_refused() {
        assert!(applied("a", "", "x", false).is_err());
        assert!(applied("a", "a", "a", false).is_err());
    }

    #[test]
    fn what_is_missing_is_looked_for_by_its_first_line() {
        let refused = applied("fn a() {\n    b\n}", "fn a() {\n  b", "x", false).unwrap_err();
        assert!(refused.contains("line 1"), "{refused}");
        let refused = applied("abc", "xyz", "x", false).unwrap_err();
        assert!(refused.contains("read the file"), "{refused}");
    }
}
