//! Takes changes back.

use std::path::PathBuf;

use crate::apply::{ATTEMPTS, ApplyError, digest};
use crate::edit::{Applied, EditError, Unset, is_blank, path_text, unset};
use crate::file::{self, FileError, ReadFile};
use crate::moved::MovedValues;
use crate::state::{AgentRecord, FileRecord, SetupRecord};

/// The result of taking the lines of a file back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoneLines {
    /// It is what it was, byte for byte.
    Whole,
    /// It was made for this, and was removed.
    Removed,
    /// Others changed it meanwhile; our lines alone were taken out.
    LinesRemoved,
    /// Nothing of ours is in it.
    Nothing,
    /// Others deleted it; this copy of it as it was before stays.
    Deleted(PathBuf),
    /// These values were changed by others, and were left.
    Left(Vec<String>),
    /// It could not be done; the record keeps it.
    Failed(String),
}

/// Whether values that were left stay in the record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeftValues {
    /// They are told, and are the user's from now on.
    Forgotten,
    /// A write follows, whose undo has to tell of them.
    Recorded,
}

/// What became of a file.
struct UndoneFile {
    lines: UndoneLines,
    /// The values among those that were left that hold ours still.
    left: Vec<Applied>,
}

impl From<UndoneLines> for UndoneFile {
    fn from(lines: UndoneLines) -> UndoneFile {
        let left = Vec::new();
        UndoneFile { lines, left }
    }
}

/// Takes back the changes for an agent; returns the result for each file.
pub fn undo_agent(
    agent: &str,
    state: &mut SetupRecord,
    state_file: &std::path::Path,
) -> Result<Vec<(PathBuf, UndoneLines)>, ApplyError> {
    undo(agent, LeftValues::Forgotten, state, state_file)
}

/// Takes back the changes for an agent that is written again: values of ours that had to be left stay recorded.
pub fn undo_before_write(
    agent: &str,
    state: &mut SetupRecord,
    state_file: &std::path::Path,
) -> Result<Vec<(PathBuf, UndoneLines)>, ApplyError> {
    undo(agent, LeftValues::Recorded, state, state_file)
}

fn undo(
    agent: &str,
    left_values: LeftValues,
    state: &mut SetupRecord,
    state_file: &std::path::Path,
) -> Result<Vec<(PathBuf, UndoneLines)>, ApplyError> {
    let Some(record) = state.of(agent).cloned() else {
        return Ok(Vec::new());
    };
    let mut all: Vec<(PathBuf, UndoneLines)> = Vec::new();
    let mut kept = Vec::new();
    // The last write first: a file may have values of an earlier one.
    for file in record.files.iter().rev() {
        if let Some(heir) = heir(file, &record, state) {
            state.agents[heir].files.push(file.clone());
            continue;
        }
        let lines = match restore_file(file) {
            Ok(restored) => {
                if left_values == LeftValues::Recorded && !restored.left.is_empty() {
                    kept.insert(0, file.with_left(restored.left));
                }
                restored.lines
            }
            // The others are taken back all the same.
            Err(error) => {
                kept.insert(0, file.clone());
                UndoneLines::Failed(error.to_string())
            }
        };
        match all.iter_mut().find(|(name, _)| *name == file.file) {
            Some((_, later)) => *later = later.clone().and_earlier(lines),
            None => all.push((file.file.clone(), lines)),
        }
    }
    if kept.is_empty() {
        state.agents.retain(|record| record.agent != agent);
    }
    for record in &mut state.agents {
        if record.agent == agent {
            record.files.clone_from(&kept);
        }
    }
    state.save(state_file)?;
    Ok(all)
}

impl UndoneLines {
    /// Returns the result for a file of which first the last write was taken back, and then an earlier one.
    fn and_earlier(self, earlier: UndoneLines) -> UndoneLines {
        use UndoneLines::{Failed, Left, LinesRemoved, Nothing, Whole};
        match (self, earlier) {
            (Left(mut names), Left(more)) => {
                names.extend(more);
                Left(names)
            }
            (later @ Failed(_), _) => later,
            (_, earlier @ Failed(_)) => earlier,
            (later @ Left(_), _) => later,
            (Whole, Nothing) => LinesRemoved,
            (later, Nothing) => later,
            (_, earlier) => earlier,
        }
    }
}

impl FileRecord {
    /// Returns the record of values that were left: the file is not what it was with all of them.
    fn with_left(&self, applied: Vec<Applied>) -> FileRecord {
        FileRecord {
            applied,
            after: String::new(),
            ..self.clone()
        }
    }
}

/// The other agent that needs an upstream which was written for this one.
fn heir(file: &FileRecord, record: &AgentRecord, state: &SetupRecord) -> Option<usize> {
    let is_upstream = |text: &str| text.starts_with("serve.upstreams.");
    let names: Vec<String> = file
        .applied
        .iter()
        .map(|applied| path_text(&applied.path))
        .collect();
    if names.is_empty() || !names.iter().all(|name| is_upstream(name)) {
        return None;
    }
    state.agents.iter().position(|other| {
        other.agent != record.agent
            && names.iter().any(|name| {
                let api = &name["serve.upstreams.".len()..];
                other
                    .upstreams
                    .iter()
                    .any(|(of, url)| of == api && !url.is_empty())
            })
    })
}

/// Takes a file back; tries again if it changes meanwhile. The copy of it goes, unless it is needed.
fn restore_file(file: &FileRecord) -> Result<UndoneFile, ApplyError> {
    let mut restored = restore(file);
    for _ in 1..ATTEMPTS {
        if !matches!(restored, Err(ApplyError::File(FileError::Busy { .. }))) {
            break;
        }
        restored = restore(file);
    }
    let restored = restored?;
    let needs_copy = matches!(
        restored.lines,
        UndoneLines::Left(_) | UndoneLines::Deleted(_)
    );
    if let Some(backup) = file.backup.as_ref().filter(|_| !needs_copy) {
        file::remove(backup, &[])?;
    }
    Ok(restored)
}

fn restore(record: &FileRecord) -> Result<UndoneFile, ApplyError> {
    let is_made = record.backup.is_none();
    let Some(current) = file::read(&record.file)? else {
        return restore_missing(record);
    };
    let found = digest(&current.text);
    if found == record.before && !is_made {
        return Ok(UndoneLines::Nothing.into());
    }
    let copy = read_copy(record)?;
    if found == record.after {
        if is_made {
            file::remove(&record.file, &record.directories)?;
            return Ok(UndoneLines::Removed.into());
        }
        if let Some(copy) = copy {
            file::replace(&current, &copy.text)?;
            return Ok(UndoneLines::Whole.into());
        }
    }
    let copy = copy.map(|copy| copy.text);
    let values = take_values_back(record, &current.text, copy.as_deref())?;
    if is_made && is_blank(record.syntax, &values.text) {
        file::remove(&record.file, &record.directories)?;
        return Ok(UndoneLines::Removed.into());
    }
    let is_same = values.text == current.text;
    if !is_same {
        file::replace(&current, &values.text)?;
    }
    let lines = match (values.names.is_empty(), is_same) {
        (false, _) => UndoneLines::Left(values.names),
        (true, true) => UndoneLines::Nothing,
        (true, false) if digest(&values.text) == record.before => UndoneLines::Whole,
        (true, false) => UndoneLines::LinesRemoved,
    };
    let left = values.left;
    Ok(UndoneFile { lines, left })
}

/// Returns what becomes of a file that is not there.
fn restore_missing(record: &FileRecord) -> Result<UndoneFile, ApplyError> {
    match &record.backup {
        // A killed setup or undo may have left the directories without the file.
        None => file::remove(&record.file, &record.directories)?,
        // It is the last copy of the user's own text.
        Some(copy) if copy.exists() => return Ok(UndoneLines::Deleted(copy.clone()).into()),
        Some(_) => {}
    }
    Ok(UndoneLines::Nothing.into())
}

/// Reads the copy of a file as it was before, if nobody changed the copy.
fn read_copy(record: &FileRecord) -> Result<Option<ReadFile>, ApplyError> {
    let copy = record.backup.as_deref().map(file::read).transpose()?;
    let copy = copy.flatten();
    Ok(copy.filter(|copy| digest(&copy.text) == record.before))
}

/// A text from which values were taken.
struct TakenBack {
    text: String,
    /// The names of the values that were left.
    names: Vec<String>,
    left: Vec<Applied>,
}

/// Takes all values of a record out of a text. `copy` is the text as it was before.
fn take_values_back(
    record: &FileRecord,
    text: &str,
    copy: Option<&str>,
) -> Result<TakenBack, ApplyError> {
    let syntax = record.syntax;
    let failed = |error| ApplyError::Edit {
        file: record.file.clone(),
        source: error,
    };
    let mut back = TakenBack {
        text: text.to_owned(),
        names: Vec::new(),
        left: Vec::new(),
    };
    let mut moved = MovedValues::new(syntax, copy);
    for applied in record.applied.iter().rev() {
        match unset(syntax, &back.text, applied) {
            Ok(Unset::Done(new)) => back.text = new,
            Ok(Unset::Gone) => moved.add(applied),
            Ok(Unset::Changed(_)) | Err(EditError::Shape(_)) => {
                back.names.push(path_text(&applied.path));
                // A text that others replaced is theirs; a mapping that they changed still holds ours.
                if !applied.value.is_string() {
                    back.left.insert(0, applied.clone());
                }
            }
            Err(error @ EditError::Syntax(_)) => return Err(failed(error)),
        }
    }
    back.text = moved.take_back(back.text);
    // The user may have copied an element of ours, or moved a value.
    let in_place = back.names.clone();
    for applied in &record.applied {
        let names = moved.names_in(&back.text, applied);
        let is_new = |name: &String| !is_within(name, &in_place) && !back.names.contains(name);
        let names: Vec<String> = names.into_iter().filter(is_new).collect();
        if !names.is_empty() && moved.contains(applied) {
            back.left.push(applied.clone());
        }
        back.names.extend(names);
    }
    Ok(back)
}

/// Returns whether a place is one of `names`, or in one of them.
fn is_within(place: &str, names: &[String]) -> bool {
    let is_in = |name: &String| {
        let rest = place.strip_prefix(name.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    names.iter().any(is_in)
}
