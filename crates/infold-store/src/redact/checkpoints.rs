//! Finds redacted texts in checkpoints: files with such texts, in all snapshots of the workspaces of the tasks.

use std::collections::BTreeSet;
use std::path::PathBuf;

use infold_checkpoint::{BlobId, ShadowInfo};
use infold_wire::redact::{redact_fragment, visit_texts};
use uuid::Uuid;

use super::forms::KnownTexts;
use super::words::Words;
use super::{Family, Find, Search};
use crate::file::{Access, Growing};
use crate::lines::Lines;
use crate::redacted_lines::{LineIndex, RedactedLine};
use crate::{Contexts, TaskError, stored};

/// A file that is removed from checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactedFile {
    /// The workspace.
    pub workspace: PathBuf,
    /// Its path there.
    pub path: PathBuf,
    /// How many snapshots have it.
    pub snapshots: usize,
}

/// The parts of checkpoints that a redaction removes.
#[derive(Debug, Default)]
pub struct FoundInCheckpoints {
    /// The blobs to remove.
    pub blobs: Vec<BlobId>,
    /// The files of these blobs, to show to the user.
    pub files: Vec<RedactedFile>,
    /// Directories that are removed as a whole: damaged repositories, and those of a workspace whose path has a
    /// match.
    pub removed: Vec<PathBuf>,
}

impl Contexts {
    /// Finds what to remove from the checkpoints of the workspaces of a family, whichever of its tasks they
    /// belong to.
    pub(super) fn find_in_checkpoints(
        &self,
        family: &Family,
        search: Search<'_>,
    ) -> Result<FoundInCheckpoints, TaskError> {
        let mut found = FoundInCheckpoints::default();
        let checkpoints = self.checkpoints();
        let is_of_family =
            |info: &ShadowInfo| family.iter().any(|one| info.tasks.contains_key(&one.task));
        let all = checkpoints.all()?.into_iter();
        let mut tasks: BTreeSet<Uuid> = BTreeSet::new();
        for info in all.filter(is_of_family) {
            let path = info.workspace.to_string_lossy();
            let is_match =
                matches!(search.known, KnownTexts::Matches(find) if !find(&path).is_empty());
            if is_match {
                found.removed.push(info.directory);
                continue;
            }
            found.removed.extend(info.set_aside);
            tasks.extend(info.tasks.keys());
        }
        if tasks.is_empty() {
            return Ok(found);
        }
        let tasks: Vec<Uuid> = tasks.into_iter().collect();
        let blobs = match search.known {
            KnownTexts::Matches(find) => {
                checkpoints.find_blobs(&tasks, &mut |bytes| has_match(bytes, find))?
            }
            KnownTexts::Words(words) => {
                let lines = self.gone_lines(family, words)?;
                checkpoints.find_blobs(&tasks, &mut |bytes| has_line(bytes, &lines))?
            }
        };
        for blob in blobs {
            let snapshots = blob.snapshots.len();
            found.files.extend(blob.paths.into_iter().map(|path| {
                let workspace = blob.workspace.clone();
                RedactedFile {
                    workspace,
                    path,
                    snapshots,
                }
            }));
            found.blobs.push(blob.id);
        }
        Ok(found)
    }

    /// The lines of messages that go whole, as far as no other message has them.
    fn gone_lines(&self, family: &Family, words: &Words) -> Result<LineIndex<()>, TaskError> {
        let mut lines = LineIndex::default();
        for one in family.iter().filter(|one| !one.messages.is_empty()) {
            let file = Growing::open(one.dir.join("messages.jsonl"), Access::Read)?;
            let mut read = Lines::new(&file, 0);
            while let Some(line) = read.next()? {
                let Some(stored) = stored::split(line.bytes).filter(|_| line.whole) else {
                    continue;
                };
                if !one.messages.contains_key(&stored.seq.get()) {
                    continue;
                }
                let body = stored.body(line.bytes);
                let mut take = |text: &str| {
                    for line in text.split('\n').filter(|line| words.has_text(line)) {
                        let known = [line, without_number(line)].map(RedactedLine::of);
                        known
                            .into_iter()
                            .flatten()
                            .for_each(|line| lines.add(line, ()));
                    }
                };
                visit_texts(&body, &mut take)
                    .map_err(|error| super::damaged(&file, line.offset, &error))?;
            }
        }
        Ok(lines)
    }
}

/// Returns a line of a file without the number that agents put before it.
fn without_number(line: &str) -> &str {
    let rest = line
        .trim_start()
        .trim_start_matches(|char: char| char.is_ascii_digit());
    match rest.strip_prefix(['\t', '→', '|', ':']) {
        Some(text) if rest.len() < line.trim_start().len() => text,
        _ => line,
    }
}

fn has_match(bytes: &[u8], find: Find<'_>) -> bool {
    let text = String::from_utf8_lossy(bytes);
    redact_fragment(&text, "", &mut |text| find(text)).is_some()
}

fn has_line(bytes: &[u8], lines: &LineIndex<()>) -> bool {
    let mut is_found = false;
    lines.find(&String::from_utf8_lossy(bytes), &mut |_, ()| {
        is_found = true
    });
    is_found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_before_lines_do_not_count() {
        for (line, text) in [
            ("    12\tlet x = 3;", "let x = 3;"),
            ("     7→fn main() {", "fn main() {"),
            ("12 monkeys", "12 monkeys"),
            ("12", "12"),
            (": no number", ": no number"),
        ] {
            assert_eq!(without_number(line), text);
        }
    }
}
