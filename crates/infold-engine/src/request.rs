//! A request, put together from files: head, view, tail.

use std::collections::BTreeMap;

use infold_log::{Floor, Past as _, Role, Seq, Shows, Size, Source, View};
use infold_provider::Body;
use infold_store::{Aside, Log, LogError, Quirks, Working};
use infold_wire::request::{
    Frame, MOST_MARKERS, blanked, marked, markers, plain_chat, system_texts, unmarked,
};
use infold_wire::tokens::{Encoding, count};
use infold_wire::{Alternation, Converter, Message, Wire, without_thinking};

/// A request that lies in `request.json`.
#[derive(Debug)]
pub struct Request {
    file: Aside,
    /// What is sent before what lies in the file from there on, if it must not lie there.
    head: Option<(Vec<u8>, u64)>,
    /// What was counted for it: the view, and what stands around it.
    pub counted: u64,
    /// Its size.
    pub bytes: u64,
    /// What of the conversation the wire has no words for, what became of it, and how often.
    pub lost: BTreeMap<&'static str, u64>,
}

impl Request {
    /// Writes the request for what a log shows.
    ///
    /// What the wire takes as it came is copied; memory does not depend on how much that is.
    pub fn write(log: &Log, frame: &Frame, quirks: Quirks) -> Result<Request, LogError> {
        let view = View::of(log.state().shown(), log)?;
        let floor = Floor::of(log.state().shown(), log)?;
        let mut frame = frame.clone();
        if frame.wire.system_apart() {
            frame.system = system(log, &floor)?;
        }
        let mut sheet = Sheet {
            file: log.aside(Working::Request)?,
            bytes: 0,
            first: true,
            alternation: Alternation::of(frame.wire, quirks.alternate),
            seam: false,
            plain: quirks.plain && frame.wire == Wire::Chat,
            held: None,
            marks: frame.cache && frame.wire == Wire::Anthropic,
        };
        let places = match sheet.marks {
            true => Places::of(log, &view, &frame)?,
            false => Places::default(),
        };
        frame.cache = places.system;
        let head = frame.head();
        let lies = Frame {
            tools: frame.tools.as_deref().map(|tools| kept(log, tools)),
            ..frame.clone()
        };
        let lies = lies.head();
        sheet.raw(lies.as_bytes())?;
        let skip = lies.len() as u64;
        let head = (head != lies).then(|| (head.into_bytes(), skip));
        let stale = match quirks.bound && frame.wire == Wire::Anthropic {
            true => log.changed_before()?,
            false => None,
        };
        let mut converter = Converter::new(frame.wire);
        for (at, piece) in view.pieces().iter().enumerate() {
            let native = match &piece.shows {
                Shows::Verbatim(span) => log.is_native(*span, frame.wire)?,
                _ => false,
            };
            if native {
                converted(&mut sheet, |out| converter.finish(out))?;
            }
            sheet.seam = true;
            log.render_piece(piece, &mut |source, bytes| {
                let apart = frame.wire.system_apart() && is_system(source, &floor);
                if apart {
                    return Ok(());
                }
                let thoughtless =
                    stale.filter(|stale| source.seq().is_some_and(|seq| seq <= *stale));
                let thoughtless = thoughtless.and_then(|_| without_thinking(bytes));
                let bytes = thoughtless.as_deref().unwrap_or(bytes);
                if native {
                    sheet.message(bytes)?;
                } else {
                    let mut read = Ok(());
                    converted(&mut sheet, |out| read = converter.push(bytes, out))?;
                    read.map_err(|error| {
                        LogError::damaged(&log.dir().join("messages.jsonl"), 0, error.to_string())
                    })?;
                }
                if places.before.is_some() && source.seq() == places.before {
                    converted(&mut sheet, |out| converter.finish(out))?;
                    sheet.mark()?;
                }
                Ok(())
            })?;
            if Some(at) == places.stable {
                converted(&mut sheet, |out| converter.finish(out))?;
                sheet.mark()?;
            }
        }
        converted(&mut sheet, |out| converter.finish(out))?;
        if places.last {
            sheet.mark()?;
        }
        sheet.release()?;
        sheet.raw(Frame::TAIL.as_bytes())?;
        sheet.file.flush()?;
        Ok(Request {
            file: sheet.file,
            head,
            counted: view.tokens() + size(&frame).tokens,
            bytes: sheet.bytes,
            lost: converter.lost().clone(),
        })
    }

    /// What is sent.
    pub fn body(&self) -> Body<'_> {
        let file = self.file.path();
        match &self.head {
            Some((head, skip)) => Body::Spliced {
                head: head.clone(),
                file,
                skip: *skip,
            },
            None => Body::File(file),
        }
    }

    /// Leaves it where it is, for a person to read.
    pub fn keep(self) {
        self.file.keep();
    }
}

/// Tools as they lie on the disk: without credentials, and without secrets if those are replaced.
fn kept(log: &Log, tools: &str) -> String {
    let blanked = blanked(tools);
    String::from_utf8_lossy(&log.without_secrets(blanked.as_bytes())).into_owned()
}

/// What stands beside the view in a request: tools and parameters, not the system prompt.
pub fn size(frame: &Frame) -> Size {
    let tools = frame.tools.as_deref().unwrap_or_default();
    Size {
        tokens: count(Encoding::O200k, tools),
        bytes: (frame.head().len() + Frame::TAIL.len()) as u64,
    }
}

/// The texts of the system prompt.
fn system(log: &Log, floor: &Floor) -> Result<Vec<String>, LogError> {
    let mut texts = Vec::new();
    for seq in floor.seqs() {
        if Some(*seq) == floor.request() {
            continue;
        }
        let bytes = log.message(*seq)?;
        if let Ok(message) = Message::parse(&bytes) {
            texts.extend(system_texts(&message));
        }
    }
    Ok(texts)
}

fn is_system(source: Source, floor: &Floor) -> bool {
    source
        .seq()
        .is_some_and(|seq| floor.holds(seq) && floor.request() != Some(seq))
}

/// What of a request is marked for the provider's cache.
#[derive(Default)]
struct Places {
    /// Its last message.
    last: bool,
    /// The end of the request before.
    before: Option<Seq>,
    /// The last piece that stays as it is.
    stable: Option<usize>,
    /// The system prompt.
    system: bool,
}

impl Places {
    /// What is worth the most comes first: tools may have taken some of the few that there are.
    fn of(log: &Log, view: &View, frame: &Frame) -> Result<Places, LogError> {
        let taken = frame.tools.as_deref().map_or(0, markers);
        let mut left = MOST_MARKERS.saturating_sub(taken);
        let mut take = || {
            let free = left > 0;
            left -= usize::from(free);
            free
        };
        Ok(Places {
            last: take(),
            before: sent_before(log)?.filter(|_| take()),
            stable: stable(view).filter(|_| take()),
            system: !frame.system.is_empty() && take(),
        })
    }
}

/// The last piece that stays as it is until the next fold, whatever is said.
fn stable(view: &View) -> Option<usize> {
    let stands = |shows: &Shows| matches!(shows, Shows::StandIn(_) | Shows::Note(_));
    view.pieces()
        .iter()
        .rposition(|piece| stands(&piece.shows))
        .filter(|at| at + 1 < view.pieces().len())
}

/// The last message of the request before this one: what stood before the model's last output.
fn sent_before(log: &Log) -> Result<Option<Seq>, LogError> {
    let path = log.state().shown().path();
    let mut seqs = path.iter().rev().flat_map(|run| run.seqs().rev());
    while let Some(seq) = seqs.next() {
        if log.record(seq)?.role == Role::Assistant {
            let round = log.record(seq)?.round;
            return Ok(seqs.find(|seq| *seq < round));
        }
    }
    Ok(None)
}

/// Writes what a converter hands out.
fn converted(sheet: &mut Sheet, work: impl FnOnce(&mut dyn FnMut(&[u8]))) -> Result<(), LogError> {
    let mut written = Ok(());
    work(&mut |bytes| {
        if written.is_ok() {
            written = sheet.message(bytes);
        }
    });
    written
}

/// The file that a request is written on.
struct Sheet {
    file: Aside,
    bytes: u64,
    first: bool,
    /// What stands between turns of one role, where roles must alternate.
    alternation: Option<Alternation>,
    /// The next message begins a piece of the view.
    seam: bool,
    /// Members that not every provider knows are left out.
    plain: bool,
    /// The message before, which may yet be marked.
    held: Option<Vec<u8>>,
    /// What stays the same is marked for the provider's cache.
    marks: bool,
}

impl Sheet {
    fn raw(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        self.bytes += bytes.len() as u64;
        self.file.write(bytes)
    }

    fn message(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        let plain = self.plain.then(|| plain_chat(bytes)).flatten();
        let bytes = plain.as_deref().unwrap_or(bytes);
        let seam = std::mem::take(&mut self.seam);
        let alternation = self.alternation.as_mut();
        if let Some(separator) = alternation.and_then(|turns| turns.separator(bytes, seam)) {
            self.put(&separator)?;
        }
        self.put(bytes)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        if !self.marks {
            return self.line(bytes);
        }
        self.release()?;
        // Markers that it came with would count against ours.
        self.held = Some(unmarked(bytes).unwrap_or_else(|| bytes.to_vec()));
        Ok(())
    }

    /// Marks the last message as the end of what stays the same.
    fn mark(&mut self) -> Result<(), LogError> {
        if let Some(held) = self.held.take() {
            let marked = marked(&held);
            self.line(marked.as_deref().unwrap_or(&held))?;
        }
        Ok(())
    }

    fn release(&mut self) -> Result<(), LogError> {
        match self.held.take() {
            Some(held) => self.line(&held),
            None => Ok(()),
        }
    }

    fn line(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        if !std::mem::take(&mut self.first) {
            self.raw(b",")?;
        }
        self.raw(bytes)
    }
}
