//! The tool `search`: a regular expression over files.

use std::io::Read as _;
use std::time::{Duration, Instant};

use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::FileType;

use super::file::{open_entry, open_file};
use super::list::path_filter;
use super::read::is_binary;
use super::root::{MissingParents, PathError};
use super::walk::{WalkEntry, WalkOptions, WalkStep, walk};
use super::{CallContext, Workspace};
use crate::arguments::CallArguments;
use crate::failure::CallProblem;

/// The arguments of the tool.
pub const ARGUMENTS: &[&str] = &["pattern", "path", "glob", "ignore_case", "limit", "all"];

const DEFAULT_MATCHES: usize = 100;
const MAX_MATCHES: usize = 1000;
/// Larger files are passed over: they are data, mostly.
const MAX_SEARCHED_FILE_BYTES: u64 = 16 << 20;
const MAX_SHOWN_LINE_BYTES: usize = 400;
const MAX_SEARCH_TIME: Duration = Duration::from_secs(60);

pub fn search(
    workspace: &Workspace,
    arguments: &CallArguments,
    context: &CallContext,
) -> Result<String, CallProblem> {
    let pattern = arguments.text("pattern")?;
    let shown = arguments.optional_text("path")?.unwrap_or(".");
    let filter = arguments.optional_text("glob")?;
    let filter = filter.map(path_filter).transpose()?;
    let limit = arguments.count("limit")?;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    let expression = compile(pattern, arguments.flag("ignore_case")?)?;
    let mut found = Matches {
        expression,
        lines: Vec::new(),
        limit: limit.unwrap_or(DEFAULT_MATCHES).min(MAX_MATCHES),
        large_files: 0,
        unreadable_files: 0,
        base: String::new(),
    };
    let options = WalkOptions {
        max_depth: usize::MAX,
        with_ignored: arguments.flag("all")?,
    };
    let is_whole = match workspace.root.directory(shown) {
        Ok(start) => {
            let until = Instant::now() + MAX_SEARCH_TIME;
            found.base = start.path_prefix();
            walk(&start, options, context, &mut |entry| {
                let is_meant = entry.kind == FileType::RegularFile
                    && filter
                        .as_ref()
                        .is_none_or(|filter| filter.is_match(entry.path));
                if is_meant {
                    found.search_entry(entry);
                }
                if found.is_full() || Instant::now() > until {
                    return WalkStep::Stop;
                }
                WalkStep::Continue
            })
        }
        Err(PathError::NotADirectory { .. }) => {
            let place = workspace.root.locate(shown, MissingParents::Refuse);
            let place = place.map_err(|error| CallProblem::new(error.to_string()))?;
            let (file, size) = open_file(&place, shown)?;
            found.search_file(file, size, shown);
            !found.is_full()
        }
        Err(error) => return Err(CallProblem::new(error.to_string())),
    };
    Ok(found.describe(pattern, is_whole))
}

fn compile(pattern: &str, ignore_case: bool) -> Result<Regex, CallProblem> {
    RegexBuilder::new(pattern)
        .multi_line(true)
        .crlf(true)
        .case_insensitive(ignore_case)
        .build()
        .map_err(|error| {
            let error = error.to_string();
            let last = error.lines().last().unwrap_or_default();
            CallProblem::new(format!(
                "`{pattern}` is not a valid regular expression ({last}): put a backslash before special characters that are meant as themselves"
            ))
        })
}

/// The matching lines that were found so far.
struct Matches {
    expression: Regex,
    lines: Vec<String>,
    limit: usize,
    large_files: usize,
    unreadable_files: usize,
    /// The prefix of reported paths.
    base: String,
}

impl Matches {
    fn is_full(&self) -> bool {
        self.lines.len() >= self.limit
    }

    fn search_entry(&mut self, entry: &WalkEntry<'_>) {
        let path = format!("{}{}", self.base, String::from_utf8_lossy(entry.path));
        match open_entry(entry.directory, entry.name, &path) {
            Ok((file, size)) => self.search_file(file, size, &path),
            Err(_) => self.unreadable_files += 1,
        }
    }

    fn search_file(&mut self, file: std::fs::File, size: u64, path: &str) {
        if size > MAX_SEARCHED_FILE_BYTES {
            self.large_files += 1;
            return;
        }
        let mut bytes = Vec::new();
        if file
            .take(MAX_SEARCHED_FILE_BYTES)
            .read_to_end(&mut bytes)
            .is_err()
        {
            self.unreadable_files += 1;
            return;
        }
        if !is_binary(&bytes) {
            self.search_bytes(&bytes, path);
        }
    }

    /// Adds each line on which a match begins.
    fn search_bytes(&mut self, bytes: &[u8], path: &str) {
        let (mut from, mut line, mut counted) = (0, 1, 0);
        while !self.is_full() && from < bytes.len() {
            let Some(found) = self.expression.find_at(bytes, from) else {
                return;
            };
            if found.start() == bytes.len() {
                return;
            }
            line += memchr::memchr_iter(b'\n', &bytes[counted..found.start()]).count();
            counted = found.start();
            let start = memchr::memrchr(b'\n', &bytes[..found.start()]).map_or(0, |end| end + 1);
            let end = memchr::memchr(b'\n', &bytes[found.start()..])
                .map_or(bytes.len(), |end| found.start() + end);
            let text = shown_line(&bytes[start..end], found.start() - start);
            self.lines.push(format!("{path}:{line}: {text}"));
            from = end + 1;
        }
    }

    fn describe(mut self, pattern: &str, is_whole: bool) -> String {
        let mut notes = Vec::new();
        if self.lines.is_empty() {
            self.lines.push(format!("(no line matches `{pattern}`)"));
        } else if self.is_full() {
            notes.push(format!(
                "the first {} matches: narrow the search by `path` or `glob`, or raise `limit` (at most {MAX_MATCHES})",
                self.lines.len()
            ));
        }
        if !is_whole && !self.is_full() {
            notes.push("not everything was searched: narrow the search by `path`".to_owned());
        }
        if self.large_files > 0 {
            notes.push(format!(
                "{} files of more than {MAX_SEARCHED_FILE_BYTES} bytes were not searched",
                self.large_files
            ));
        }
        if self.unreadable_files > 0 {
            notes.push(format!("{} files could not be read", self.unreadable_files));
        }
        if !notes.is_empty() {
            self.lines.push(format!("[{}]", notes.join("; ")));
        }
        self.lines.join("\n")
    }
}

/// Returns a line; of a long one, the text around the match.
fn shown_line(line: &[u8], match_start: usize) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_SHOWN_LINE_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let start = match_start
        .saturating_sub(MAX_SHOWN_LINE_BYTES / 4)
        .min(line.len() - MAX_SHOWN_LINE_BYTES);
    let end = start + MAX_SHOWN_LINE_BYTES;
    let text = String::from_utf8_lossy(&line[start..end]);
    // A cut within a character leaves marks at the ends.
    let text = text.trim_matches('\u{fffd}');
    let before = if start > 0 { "…" } else { "" };
    let after = if end < line.len() { "…" } else { "" };
    format!("{before}{text}{after}")
}
