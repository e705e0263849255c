//! Rewrites the files beside messages and events (frames, the imported transcript, metadata), and plans the
//! changes in the databases.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use infold_wire::transcript::TranscriptLayout;
use infold_wire::{Json, quote};
use uuid::Uuid;

use super::FamilyMember;
use super::rewrite::Rewrite;
use super::staging::RedactionPlan;
use super::texts::TextRedactor;
use super::transcript::Batch;
use crate::event::Extent;
use crate::file::{Access, Growing};
use crate::frame::fingerprint;
use crate::lines::Lines;
use crate::redacted_name::{redacted_key, split_key};
use crate::{LogError, Metadata, TaskError, chain_index, file, imported};

impl Rewrite<'_> {
    /// Goes through the files of a task that hold neither messages nor events.
    pub fn beside_messages(
        &self,
        one: &FamilyMember,
        text: &mut TextRedactor<'_>,
        to: Option<&Path>,
    ) -> Result<(), TaskError> {
        self.frames(one, text, to)?;
        self.imported(one, text, to)?;
        self.metadata(one, text, to)
    }

    /// Redacts frames. For a message redacted as a whole, its texts are removed from them; the model stays,
    /// because it distinguishes conversations that begin alike.
    fn frames(
        &self,
        one: &FamilyMember,
        text: &mut TextRedactor<'_>,
        to: Option<&Path>,
    ) -> Result<(), TaskError> {
        let is_whole = self.extent == Extent::Whole;
        let is_collecting = self.values.is_collecting.replace(true);
        // Words of redacted messages may occur in the prompts of other tasks by chance.
        self.values.is_in_prompt.set(!is_whole);
        let done = self.lines(one, "frames.jsonl", to, text, |line, text| {
            let Ok(json) = Json::parse(line) else {
                return Some(Vec::new());
            };
            let Some(set) = json.get("set") else {
                let raw = String::from_utf8_lossy(line);
                return text.values(&raw).map(String::into_bytes);
            };
            let mut out = line.to_vec();
            let members: Vec<_> = set.members().collect();
            let mut originals = Vec::new();
            for (key, value) in members.into_iter().rev() {
                if is_whole && *key.name() == *b"model" {
                    continue;
                }
                let raw = String::from_utf8_lossy(value.bytes()).into_owned();
                let name = String::from_utf8_lossy(&key.name()).into_owned();
                if let Some(new) = text.member(&name, &raw) {
                    originals.push((fingerprint(&name, value.bytes()), name));
                    out.splice(value.range(), new.into_bytes());
                }
            }
            with_originals(&mut out, json.get("redacted"), originals);
            (out != line).then_some(out)
        });
        self.values.is_collecting.set(is_collecting);
        self.values.is_in_prompt.set(false);
        done
    }

    /// Redacts the data that an imported transcript held beside its messages.
    fn imported(
        &self,
        one: &FamilyMember,
        text: &mut TextRedactor<'_>,
        to: Option<&Path>,
    ) -> Result<(), TaskError> {
        let from = Growing::open(one.dir.join(imported::NAME), Access::Read)?;
        if from.len() == 0 {
            return Ok(());
        }
        let mut out = NewFile::create(to, imported::NAME)?;
        let mut lines = Lines::new(&from, 0);
        let mut next = lines.next()?;
        let layout = next
            .as_ref()
            .and_then(|line| imported::layout_of(line.bytes));
        if layout.is_some() {
            if let Some(line) = next {
                out.line(line.bytes)?;
            }
            next = lines.next()?;
        }
        let mut batch = Batch::new(layout.unwrap_or(TranscriptLayout::Lines));
        while let Some(line) = next {
            let is_whole = batch.add(line.bytes);
            next = lines.next()?;
            if !is_whole && next.is_some() {
                continue;
            }
            let new = batch.rewrite(&text.marker, text.find);
            text.take_left(new.left);
            if new.is_changed {
                text.changed += 1;
                out.is_changed = true;
            }
            for line in &new.lines {
                out.line(line)?;
            }
        }
        Ok(out.finish()?)
    }

    /// Redacts the metadata of the task. Redactions of whole messages skip it, because it is not derived from
    /// messages.
    fn metadata(
        &self,
        one: &FamilyMember,
        text: &mut TextRedactor<'_>,
        to: Option<&Path>,
    ) -> Result<(), TaskError> {
        if self.extent == Extent::Whole {
            return Ok(());
        }
        let path = one.dir.join(Metadata::NAME);
        let bytes = fs::read(&path).map_err(|error| LogError::io(&path, "read", error))?;
        let Ok(json) = Json::parse(&bytes) else {
            return Ok(());
        };
        let mut out = bytes.clone();
        let is_task_key = |key: &Json<'_>| *key.name() == *b"task_key";
        let members = json.members().flat_map(|(key, value)| {
            if is_task_key(&key) {
                value.members().collect()
            } else {
                vec![(key, value)]
            }
        });
        let members: Vec<_> = members.collect();
        for (key, value) in members.into_iter().rev() {
            let new = match &*key.name() {
                b"uuid" | b"created_at" | b"process_id" | b"wire" => continue,
                b"task_source" | b"task_type"
                    if value.text().is_some_and(|said| is_ours(&said)) =>
                {
                    text.leave(&value.text().unwrap_or_default());
                    continue;
                }
                b"task_source" | b"task_type" | b"task_id" | b"owner" | b"repo" | b"user" => {
                    let name = value.text().and_then(|name| text.name(&name));
                    name.map(|name| quote(&name))
                }
                _ => text.values(&String::from_utf8_lossy(value.bytes())),
            };
            if let Some(new) = new {
                out.splice(value.range(), new.into_bytes());
            }
        }
        if let Some(to) = to.filter(|_| out != bytes) {
            file::write_new(&to.join(Metadata::NAME), &out, true)?;
        }
        Ok(())
    }

    /// Rewrites a file of lines, if one of them changes.
    fn lines(
        &self,
        one: &FamilyMember,
        name: &str,
        to: Option<&Path>,
        text: &mut TextRedactor<'_>,
        mut change: impl FnMut(&[u8], &mut TextRedactor<'_>) -> Option<Vec<u8>>,
    ) -> Result<(), TaskError> {
        let from = Growing::open(one.dir.join(name), Access::Read)?;
        if from.len() == 0 {
            return Ok(());
        }
        let mut out = NewFile::create(to, name)?;
        let mut lines = Lines::new(&from, 0);
        while let Some(line) = lines.next()? {
            let new = change(line.bytes, text);
            out.is_changed |= new.is_some();
            let bytes = new.as_deref().unwrap_or(line.bytes);
            if !bytes.is_empty() {
                out.line(bytes)?;
            }
        }
        Ok(out.finish()?)
    }

    /// Plans the changes in the databases.
    pub fn stage_rows(&self, plan: &mut RedactionPlan) -> Result<(), TaskError> {
        for (at, one) in self.family.iter().enumerate() {
            let mut text = self.texts(at);
            let row = self
                .contexts
                .with_registry(|registry| registry.get(one.task))?;
            let Some(row) = row else {
                continue;
            };
            // These columns are derived from messages.
            let mut columns = vec![("title", row.title), ("error_message", row.error_message)];
            if self.extent == Extent::Matches {
                columns.extend([
                    ("task_source", row.task_source.filter(|said| !is_ours(said))),
                    ("task_type", row.task_type.filter(|said| !is_ours(said))),
                    ("owner", row.owner),
                    ("repo", row.repo),
                    ("task_id", row.task_id),
                    ("user", row.user),
                    ("agent", row.agent),
                    ("cwd", row.cwd),
                    ("hostname", row.hostname),
                    ("llm_provider", row.llm_provider),
                    ("model", row.model),
                ]);
            }
            for (column, said) in columns {
                let said = said.and_then(|said| match column {
                    "task_source" | "task_type" | "task_id" | "owner" | "repo" | "user" => {
                        text.name(&said)
                    }
                    _ => text.replaced(&said),
                });
                if let Some(said) = said {
                    plan.rows.push((one.task, column.to_owned(), said));
                }
            }
        }
        if self.extent == Extent::Matches {
            plan.models = self.contexts.with_registry(|registry| {
                registry.learned_models(|name| !(self.find)(name).is_empty())
            })?;
        }
        Ok(())
    }

    /// Returns the names of a task in the conversation index that change, in the form in which they are kept then.
    pub fn names(&self, task: Uuid) -> Result<Vec<String>, TaskError> {
        let chains = chain_index::if_there(self.contexts.root());
        let Some(mut chains) = chains.filter(|_| self.extent == Extent::Matches) else {
            return Ok(Vec::new());
        };
        let mut text = TextRedactor::new(self.find, String::new(), self.extent);
        let names = chains.names_of(task)?;
        let is_gone = |key: &String| {
            let name = split_key(key).and_then(|(_, name)| text.name(name));
            name.is_some()
        };
        let gone = names.into_iter().filter(is_gone);
        Ok(gone.filter_map(|key| redacted_key(&key)).collect())
    }
}

/// Returns whether a source or type of a task is one by which a conversation of the proxy is known.
fn is_ours(said: &str) -> bool {
    matches!(said, "proxy" | "named" | "session")
}

/// A rewritten file of lines, which is kept only if it differs from the old one.
struct NewFile {
    /// None if this is a dry run.
    out: Option<(PathBuf, BufWriter<File>)>,
    is_changed: bool,
}

impl NewFile {
    fn create(dir: Option<&Path>, name: &str) -> Result<NewFile, LogError> {
        let create = |dir: &Path| {
            let path = dir.join(name);
            let out = BufWriter::with_capacity(1 << 18, file::create(&path)?);
            Ok((path, out))
        };
        Ok(NewFile {
            out: dir.map(create).transpose()?,
            is_changed: false,
        })
    }

    fn line(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        let Some((path, out)) = &mut self.out else {
            return Ok(());
        };
        let written = out.write_all(bytes).and_then(|()| out.write_all(b"\n"));
        written.map_err(|error| LogError::io(path, "written", error))
    }

    fn finish(self) -> Result<(), LogError> {
        let Some((path, out)) = self.out else {
            return Ok(());
        };
        let fail = |error| LogError::io(&path, "written", error);
        let done = out.into_inner().map_err(|error| fail(error.into_error()))?;
        if self.is_changed {
            done.sync_data().map_err(fail)
        } else {
            fs::remove_file(&path).map_err(fail)
        }
    }
}

/// Adds the fingerprints of redacted members to a frame; those of an earlier redaction stay.
fn with_originals(line: &mut Vec<u8>, earlier: Option<Json<'_>>, new: Vec<(String, String)>) {
    let is_known = |name: &str| earlier.is_some_and(|earlier| earlier.get(name).is_some());
    let new: Vec<String> = new
        .iter()
        .filter(|(_, name)| !is_known(name))
        .map(|(fingerprint, name)| format!("{}:\"{fingerprint}\"", quote(name)))
        .collect();
    if new.is_empty() {
        return;
    }
    let new = new.join(",");
    // It is the last member of its line, so the line ends with its brace and that of the line.
    let (cut, text) = match earlier {
        Some(_) => (2, format!(",{new}}}}}")),
        None => (1, format!(",\"redacted\":{{{new}}}}}")),
    };
    line.truncate(line.trim_ascii_end().len() - cut);
    line.extend_from_slice(text.as_bytes());
}
