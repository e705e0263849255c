//! The tool `list`: lists a directory.

use rustix::fs::{AtFlags, FileType, readlinkat, statat};

use super::file::size_of_file;
use super::glob::glob;
use super::walk::{WalkEntry, WalkOptions, WalkStep, walk};
use super::{CallContext, Workspace};
use crate::arguments::CallArguments;
use crate::failure::CallProblem;

/// The arguments of the tool.
pub const ARGUMENTS: &[&str] = &["path", "depth", "glob", "all"];

const MAX_LISTED_ENTRIES: usize = 2000;

pub fn list(
    workspace: &Workspace,
    arguments: &CallArguments,
    context: &CallContext,
) -> Result<String, CallProblem> {
    let shown = arguments.optional_text("path")?.unwrap_or(".");
    let pattern = arguments.optional_text("glob")?;
    let filter = pattern.map(path_filter).transpose()?;
    // A pattern is meant for the names of the whole tree, unless `depth` says otherwise.
    let default_depth = if filter.is_some() { usize::MAX } else { 1 };
    let depth = arguments.count("depth")?;
    let options = WalkOptions {
        max_depth: depth
            .and_then(|depth| usize::try_from(depth).ok())
            .unwrap_or(default_depth),
        with_ignored: arguments.flag("all")?,
    };
    let start = workspace
        .root
        .directory(shown)
        .map_err(|error| CallProblem::new(error.to_string()))?;
    let base = start.path_prefix();
    let mut lines = Vec::new();
    let is_whole = walk(&start, options, context, &mut |entry| {
        if filter
            .as_ref()
            .is_some_and(|filter| !filter.is_match(entry.path))
        {
            return WalkStep::Continue;
        }
        if lines.len() == MAX_LISTED_ENTRIES {
            return WalkStep::Stop;
        }
        lines.push(describe(entry, &base));
        WalkStep::Continue
    });
    if lines.is_empty() {
        return Ok(match pattern {
            Some(pattern) => format!("(no file in `{shown}` matches `{pattern}`)"),
            None => format!("(`{shown}` is empty, or all in it is ignored: `all` shows that, too)"),
        });
    }
    if !is_whole {
        lines.push(format!(
            "[the first {} entries: list a directory below, or use `glob`]",
            lines.len()
        ));
    }
    Ok(lines.join("\n"))
}

/// Returns a filter of paths. A pattern without a slash is one of names, in any directory.
pub fn path_filter(pattern: &str) -> Result<regex::bytes::Regex, CallProblem> {
    let at_any_depth = !pattern.contains('/');
    let anchored = pattern.trim_start_matches("./").trim_start_matches('/');
    glob(anchored, at_any_depth).ok_or_else(|| {
        CallProblem::new(format!(
            "`{pattern}` is not a valid glob: use `*`, `?`, `[abc]` and `**/`"
        ))
    })
}

fn describe(entry: &WalkEntry<'_>, base: &str) -> String {
    let path = format!("{base}{}", String::from_utf8_lossy(entry.path));
    match entry.kind {
        FileType::Directory => format!("{path}/"),
        FileType::Symlink => match readlinkat(entry.directory, entry.name, Vec::new()) {
            Ok(target) => format!("{path} -> {}", target.to_string_lossy()),
            Err(_) => format!("{path} -> ?"),
        },
        FileType::RegularFile => {
            match statat(entry.directory, entry.name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => format!("{path} ({} bytes)", size_of_file(&stat)),
                Err(_) => path,
            }
        }
        FileType::Fifo => format!("{path} (named pipe)"),
        FileType::Socket => format!("{path} (socket)"),
        _ => format!("{path} (device)"),
    }
}
