//! Rewrites the files of tasks without the redacted texts.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use infold_log::Seq;
use infold_wire::redact::{redact_json, redact_matches, redact_message};
use infold_wire::stand_in::{is_window_marker, mask_text, summary_heading_start};
use infold_wire::{Json, Message, digest, part_text, render_stub, tokens};

use super::forms::{FormCollector, KnownTexts};
use super::pieces::Pieces;
use super::staging::Staging;
use super::state_changes::redact_changes;
use super::texts::{TextRedactor, marker};
use super::tool_uses::ChangedToolUses;
use super::{Family, FamilyMember, Find, Search, damaged, holder};
use crate::event::{Extent, FoldLine, LookupLine, MaskLine, RedactLine, RefusalLine};
use crate::file::{Access, Growing};
use crate::lines::Lines;
use crate::redacted_values::FoundValues;
use crate::stored::{self, Marks};
use crate::{Contexts, EventLine, Log, LogError, TaskError, What, file, stand_in_tokens, time};

/// The prefix of each line of an excerpt that quotes a message.
const QUOTED: &str = "> ";

/// The context in which the tasks of a family are rewritten.
pub struct Rewrite<'a> {
    pub contexts: &'a Contexts,
    pub family: &'a Family,
    pub find: Find<'a>,
    known: KnownTexts<'a>,
    pub extent: Extent,
    /// The texts that go, as `find` finds them.
    pub values: &'a FoundValues,
    /// The number of the event of each of them that says so.
    pub events: Vec<u64>,
    tools: ChangedToolUses,
}

/// The result of staging one task.
#[derive(Default)]
pub struct Staged {
    /// The event that says so; none if nothing changes.
    pub event: Option<u64>,
    /// The number of redacted texts outside messages.
    pub texts: u64,
    /// The number of remaining matches in texts outside messages.
    pub left: usize,
    /// Names in the conversation index that change, in the form in which they are kept then.
    pub names: Vec<String>,
}

impl<'a> Rewrite<'a> {
    pub fn new(
        contexts: &'a Contexts,
        family: &'a Family,
        (search, values): (Search<'a>, &'a FoundValues),
        extent: Extent,
    ) -> Result<Rewrite<'a>, TaskError> {
        let mut events = Vec::with_capacity(family.len());
        for one in family {
            let (log, _) = Log::open(&one.dir, Access::Read, &contexts.dirs())?;
            events.push(log.state().next_event().get());
        }
        let mut rewrite = Rewrite {
            contexts,
            family,
            find: search.find,
            known: search.known,
            extent,
            values,
            events,
            tools: ChangedToolUses::default(),
        };
        if extent == Extent::Matches {
            rewrite.tools = rewrite.tool_uses()?;
        }
        Ok(rewrite)
    }

    /// Returns the changes to a task's files. Nothing is written.
    pub fn preview(&self, at: usize) -> Result<Staged, TaskError> {
        let one = &self.family[at];
        let (log, _) = Log::open(&one.dir, Access::Read, &self.contexts.dirs())?;
        let mut text = self.texts(at);
        self.events(one, &log, &mut text)?;
        self.beside_messages(one, &mut text, None)?;
        Ok(Staged {
            event: None,
            texts: text.changed,
            left: text.left,
            names: self.names(one.task)?,
        })
    }

    /// Writes the new files of a task.
    pub fn stage(&self, at: usize, staging: &Staging) -> Result<Staged, TaskError> {
        let one = &self.family[at];
        let (log, _) = Log::open(&one.dir, Access::Read, &self.contexts.dirs())?;
        let to = staging.of_task(one.task)?;
        let mut text = self.texts(at);
        // Words of redacted messages are recorded as values only when they are replaced in frames.
        self.values
            .is_collecting
            .set(self.extent == Extent::Matches);
        let mut forms = FormCollector::new(self.known, self.values);
        let originals = if one.messages.is_empty() {
            Vec::new()
        } else {
            self.messages(one, &text.marker, &to, &mut forms)?
        };
        let mut events = self.events(one, &log, &mut text)?;
        self.beside_messages(one, &mut text, Some(&to))?;
        let names = self.names(one.task)?;
        let values = self.values.take();
        if originals.is_empty() && text.changed == 0 && names.is_empty() {
            return Ok(Staged {
                left: text.left,
                ..Staged::default()
            });
        }
        let event = EventLine {
            id: log.state().next_event(),
            ts: time::now().max(log.last_time()?),
            after: log.state().at().seq,
            pass: None,
            what: What::Redact(RedactLine {
                extent: self.extent,
                messages: originals,
                texts: text.changed,
                names: names.clone(),
                values,
                forms: forms.forms,
                contents: Vec::new(),
            }),
        };
        events.extend(event.encode());
        file::write_new(&to.join("events.jsonl"), &events, true)?;
        Ok(Staged {
            event: Some(event.id.get()),
            texts: text.changed,
            left: text.left,
            names,
        })
    }

    pub fn texts(&self, at: usize) -> TextRedactor<'a> {
        TextRedactor::new(self.find, marker(self.events[at]), self.extent)
    }

    /// Returns the redacted form of a message.
    pub fn redacted(
        &self,
        body: &[u8],
        marker: &str,
    ) -> Result<Vec<u8>, infold_wire::MessageError> {
        match self.extent {
            Extent::Whole => redact_message(body, marker),
            Extent::Matches => {
                let redacted = redact_matches(body, marker, &mut |text| (self.find)(text))?;
                Ok(redacted.bytes.unwrap_or_else(|| body.to_vec()))
            }
        }
    }

    /// Rewrites `messages.jsonl`; returns the original digests of the changed messages.
    fn messages(
        &self,
        one: &FamilyMember,
        marker: &str,
        to: &Path,
        forms: &mut FormCollector<'_>,
    ) -> Result<Vec<(Seq, Option<digest::Digest>)>, TaskError> {
        let path = to.join("messages.jsonl");
        let fail = |error| LogError::io(&path, "written", error);
        let mut out = BufWriter::with_capacity(1 << 18, file::create(&path)?);
        let from = Growing::open(one.dir.join("messages.jsonl"), Access::Read)?;
        let mut originals = Vec::new();
        let mut pieces = Pieces::default();
        let mut lines = Lines::new(&from, 0);
        while let Some(line) = lines.next()? {
            let offset = line.offset;
            let wrong = |error: &dyn std::error::Error| damaged(&from, offset, error);
            let Some(stored) = stored::split(line.bytes) else {
                let reason = "a line that is no message";
                return Err(LogError::damaged(from.path(), offset, reason).into());
            };
            let came = stored.body(line.bytes);
            let is_gone = one.messages.contains_key(&stored.seq.get());
            let original = pieces.original(&came, is_gone);
            let original = original.map_err(|error| wrong(&error))?;
            if !is_gone && original.is_none() {
                out.write_all(line.bytes).map_err(fail)?;
                out.write_all(b"\n").map_err(fail)?;
                continue;
            }
            let original = stored.redacted.or(original).flatten();
            let body = if is_gone {
                let body = self.redacted(&came, marker);
                body.and_then(|body| forms.add(stored.seq, &came, &body).map(|()| body))
            } else {
                Ok(came)
            };
            let body = body.map_err(|error| wrong(&error))?;
            let message = Message::read(&body).map_err(|error| wrong(&error))?;
            let marks = Marks {
                seq: stored.seq,
                stamp: &time::iso(stored.time),
                tokens: if is_gone {
                    tokens::message(&message)
                } else {
                    stored.tokens
                },
                role: (!message.has_role()).then_some(message.role()),
                redacted: Some(original),
            };
            let mut bytes = Vec::new();
            stored::write(message.bytes(), marks, &mut bytes);
            out.write_all(&bytes).map_err(fail)?;
            if is_gone {
                originals.push((stored.seq, original));
            }
        }
        let done = out.into_inner().map_err(|error| fail(error.into_error()))?;
        done.sync_data().map_err(fail)?;
        Ok(originals)
    }

    /// Returns the lines of `events.jsonl` without the redacted texts.
    fn events(
        &self,
        one: &FamilyMember,
        log: &Log,
        text: &mut TextRedactor<'_>,
    ) -> Result<Vec<u8>, TaskError> {
        let file = Growing::open(one.dir.join("events.jsonl"), Access::Read)?;
        let mut out = Vec::new();
        let mut lines = Lines::new(&file, 0);
        // A torn line is not part of the log, and is set aside before anything is written.
        while let Some(line) = lines.next()?.filter(|line| line.whole) {
            let raw = [line.bytes, b"\n"].concat();
            let event = EventLine::decode(line.bytes);
            let event = event.map_err(|reason| LogError::damaged(file.path(), line.offset, reason));
            let event = event?;
            let changed = text.changed;
            let what = match event.what.clone() {
                What::Fold(fold) => What::Fold(self.fold(fold, text)),
                What::Mask(mask) => {
                    let mask = self.mask(one, log, mask, text)?;
                    let what = What::Mask(mask);
                    if what != event.what && text.changed == changed {
                        // Only its place in the message is another.
                        out.extend(EventLine { what, ..event }.encode());
                        continue;
                    }
                    what
                }
                What::Note { text: note, .. } => {
                    let note = text.replaced(&note).unwrap_or(note);
                    let tokens = tokens::text_message(&note);
                    What::Note { text: note, tokens }
                }
                What::Recall(mut recall) => {
                    recall.text = self.recalled(recall.text, text);
                    recall.reference = text.replaced(&recall.reference).unwrap_or(recall.reference);
                    recall.tokens = tokens::text_message(&recall.text);
                    What::Recall(recall)
                }
                What::Lookup(lookup) => What::Lookup(self.lookup(one, lookup, text)),
                What::Tool(record) => What::Tool(self.record(record, text)),
                What::State(mut state) => {
                    state.changes = redact_changes(state.changes, text);
                    state.base = state.base.map(|base| redact_changes(base, text));
                    What::State(state)
                }
                What::Manage(record) => What::Manage(self.record(record, text)),
                What::Failure(mut failure) => {
                    failure.error = text.replaced(&failure.error).unwrap_or(failure.error);
                    self.model(&mut failure.provider, &mut failure.model, text);
                    What::Failure(failure)
                }
                What::Refusal(refusal) => What::Refusal(redact_refusal(refusal, text)),
                What::Usage(mut usage) => {
                    self.model(&mut usage.provider, &mut usage.model, text);
                    What::Usage(usage)
                }
                What::Status {
                    status,
                    error,
                    is_idle,
                } => What::Status {
                    status,
                    error: error.map(|error| text.replaced(&error).unwrap_or(error)),
                    is_idle,
                },
                What::Append(mut append) if self.extent == Extent::Matches => {
                    append.key = text.name(&append.key).unwrap_or(append.key);
                    What::Append(append)
                }
                What::Checkpoint(mut line) if self.extent == Extent::Matches => {
                    text.path(&mut line.workspace);
                    What::Checkpoint(line)
                }
                What::Restore(mut line) if self.extent == Extent::Matches => {
                    text.path(&mut line.workspace);
                    What::Restore(line)
                }
                What::Other(_) => {
                    let raw = String::from_utf8_lossy(line.bytes);
                    let replaced = text.json(&raw).map(|line| line + "\n");
                    out.extend(replaced.map_or(raw_line(line.bytes), String::into_bytes));
                    continue;
                }
                what => what,
            };
            if text.changed == changed {
                out.extend(raw)
            } else {
                out.extend(EventLine { what, ..event }.encode())
            }
        }
        Ok(out)
    }

    /// Returns a look-up without its messages if one of them is redacted. Part of them would be neither the
    /// question nor the answer.
    fn lookup(
        &self,
        one: &FamilyMember,
        lookup: LookupLine,
        text: &mut TextRedactor<'_>,
    ) -> LookupLine {
        let is_redacted = |seq: Seq| {
            let held = holder(self.family, one.task, seq.get());
            held.is_some_and(|held| held.messages.contains_key(&seq.get()))
        };
        let results = lookup.results.iter().map(|result| &result.message);
        let mut all = lookup.messages.iter().chain(results);
        if lookup.span.seqs().any(is_redacted)
            || all.any(|it| text.json(&String::from_utf8_lossy(it)).is_some())
        {
            text.changed += 1;
            lookup.emptied()
        } else {
            lookup
        }
    }

    /// Rewrites the names of a model that was called.
    fn model(&self, provider: &mut String, model: &mut String, text: &mut TextRedactor<'_>) {
        if self.extent == Extent::Matches {
            for name in [provider, model] {
                if let Some(new) = text.replaced(name) {
                    *name = new;
                }
            }
        }
    }

    /// An excerpt of a message. Only its quoted lines were said in the conversation.
    fn recalled(&self, excerpt: String, text: &mut TextRedactor<'_>) -> String {
        if self.extent == Extent::Matches {
            return text.replaced(&excerpt).unwrap_or(excerpt);
        }
        let lines = excerpt.split('\n').map(|line| {
            let said = line
                .strip_prefix(QUOTED)
                .and_then(|said| text.replaced(said));
            said.map_or_else(|| line.to_owned(), |said| format!("{QUOTED}{said}"))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn fold(&self, mut fold: FoldLine, text: &mut TextRedactor<'_>) -> FoldLine {
        // The heading of a summary and a marker are generated, not part of the conversation.
        let begins = summary_heading_start(fold.span, fold.messages);
        for (_, said) in &mut fold.stand_in {
            if self.extent == Extent::Whole && is_window_marker(said) {
                continue;
            }
            let has_heading = self.extent == Extent::Whole && said.starts_with(&begins);
            let end = said.find('\n').filter(|_| has_heading);
            let (head, rest) = said.split_at(end.unwrap_or(0));
            if let Some(rest) = text.replaced(rest) {
                *said = format!("{head}{rest}");
            }
        }
        fold.tokens = stand_in_tokens(&fold.stand_in);
        fold
    }

    /// A record of a tool or of a pass. Only some of its members can be made of messages.
    fn record(&self, record: String, text: &mut TextRedactor<'_>) -> String {
        const MADE: [&[u8]; 5] = [b"args", b"result", b"error", b"errors", b"dropped"];
        let Ok(json) = Json::parse(record.as_bytes()) else {
            return record;
        };
        let mut out = record.clone();
        let members: Vec<_> = json.members().collect();
        for (key, value) in members.into_iter().rev() {
            let name = key.name();
            let is_name = matches!(&*name, b"tool" | b"status");
            if is_name {
                text.leave(&value.text().unwrap_or_default());
            }
            if is_name || self.extent == Extent::Whole && !MADE.contains(&&*name) {
                continue;
            }
            let raw = String::from_utf8_lossy(value.bytes()).into_owned();
            let changed = text.changed;
            let known = self.tools.get(&raw).map(str::to_owned);
            let new = text.values(known.as_deref().unwrap_or(&raw)).or(known);
            if let Some(new) = new {
                text.changed = changed + 1;
                out.replace_range(value.range(), &new);
            }
        }
        out
    }

    /// Returns a mask whose stub is redacted, for the new position of its part in the message.
    fn mask(
        &self,
        one: &FamilyMember,
        log: &Log,
        mut mask: MaskLine,
        text: &mut TextRedactor<'_>,
    ) -> Result<MaskLine, TaskError> {
        let seq = mask.seq.get();
        if let Some(held) = holder(self.family, one.task, seq)
            && held.messages.contains_key(&seq)
            && let Some(at) = self.family.iter().position(|one| one.task == held.task)
        {
            let wrong = |error: &dyn std::error::Error| damaged(&log.events, 0, error);
            let body = log.message(mask.seq)?;
            let body = self
                .redacted(&body, &marker(self.events[at]))
                .map_err(|error| wrong(&error))?;
            let message = Message::read(&body).map_err(|error| wrong(&error))?;
            let parts = message.parts();
            let part = parts.into_iter().find(|part| part.index == mask.part);
            let part = part.ok_or_else(|| {
                let reason = format!("part {} of message {seq} is not there", mask.part);
                LogError::damaged(log.events.path(), 0, reason)
            })?;
            let hidden = tokens::part(&message, &part.range);
            // A stub may hold a piece of a match, cut where nothing would find it.
            let stub = mask_text(mask.seq, hidden, &part_text(&message, &part), None);
            mask.original_tokens = hidden;
            mask.tokens = tokens::count(tokens::Encoding::O200k, &stub);
            mask.stub = render_stub(&message, &part, &stub);
            mask.bytes = part.range;
            return Ok(mask);
        }
        if let Some(stub) = text.json(&mask.stub) {
            mask.tokens = Json::parse(stub.as_bytes()).map_or(mask.tokens, |stub| {
                tokens::count(tokens::Encoding::O200k, &said_in(stub))
            });
            mask.stub = stub;
        }
        Ok(mask)
    }
}

fn raw_line(bytes: &[u8]) -> Vec<u8> {
    [bytes, b"\n"].concat()
}

/// All that a stub says.
fn said_in(stub: Json<'_>) -> String {
    let mut said = String::new();
    let mut take = |text: &str| {
        said.push_str(text);
        Vec::new()
    };
    let _ = redact_json(stub.bytes(), "", &mut take);
    said
}

/// Redacts the text sent to the model for a refused call: it may quote the arguments of the call.
fn redact_refusal(refusal: RefusalLine, text: &mut TextRedactor<'_>) -> RefusalLine {
    RefusalLine {
        told: text.replaced(&refusal.told).unwrap_or(refusal.told),
        ..refusal
    }
}
