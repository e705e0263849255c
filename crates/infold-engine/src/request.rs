//! Writes a request into a file: head, view, tail.

use std::collections::BTreeMap;

use infold_log::{Floor, Past as _, Role, Seq, Shows, Size, Source, View};
use infold_provider::RequestBody;
use infold_store::{Log, LogError, Quirks, Working, WorkingFile};
use infold_wire::request::{
    MAX_CACHE_MARKERS, RequestFrame, add_cache_marker, blank_credentials, count_cache_markers,
    plain_chat, remove_cache_markers, system_texts,
};
use infold_wire::tokens::{Encoding, count};
use infold_wire::{Alternation, Converter, Message, Wire, quote, render_text, without_thinking};

/// A request in `request.json`.
#[derive(Debug)]
pub struct RequestFile {
    file: WorkingFile,
    /// The head that is sent instead of the first bytes of the file, if it holds secrets.
    head: Option<(Vec<u8>, u64)>,
    /// The counted tokens of the view and the frame.
    pub counted: u64,
    /// The size in bytes.
    pub bytes: u64,
    /// The parts that the wire cannot express, and how often each occurred.
    pub lost: BTreeMap<&'static str, u64>,
}

impl RequestFile {
    /// Writes the request for the view of a log.
    ///
    /// Messages that the wire takes as they came are copied; memory does not depend on how many.
    pub fn write(log: &Log, frame: &RequestFrame, quirks: Quirks) -> Result<RequestFile, LogError> {
        let view = View::of(log.state().shown(), log)?;
        let floor = Floor::of(log.state().shown(), log)?;
        let counted = view.tokens() + size(frame).tokens;
        let mut frame = frame.clone();
        if frame.wire.has_separate_system_prompt() {
            frame.system = system(log, &floor)?;
            frame
                .system
                .extend(frame.context.take().as_deref().map(quote));
        }
        let mut sheet = RequestWriter {
            file: log.create_working_file(Working::Request)?,
            bytes: 0,
            first: true,
            alternation: Alternation::of(frame.wire, quirks.alternate),
            seam: false,
            plain: quirks.plain && frame.wire == Wire::Chat,
            held: None,
            marks: frame.cache && frame.wire == Wire::Anthropic,
        };
        let marks = if sheet.marks {
            CacheMarks::of(log, &view, &frame)?
        } else {
            CacheMarks::default()
        };
        frame.cache = marks.system;
        let (stored, head) = heads(log, &frame);
        sheet.raw(stored.as_bytes())?;
        let stale = if quirks.bound && frame.wire == Wire::Anthropic {
            log.changed_before()?
        } else {
            None
        };
        let mut converter = Converter::new(frame.wire);
        let mut context = frame.context.as_deref();
        for (at, piece) in view.pieces().iter().enumerate() {
            let native = match &piece.shows {
                Shows::Verbatim(span) => log.is_native(*span, frame.wire)?,
                _ => false,
            };
            if native {
                write_converted(&mut sheet, |out| converter.finish(out))?;
            }
            sheet.seam = true;
            log.render_piece(piece, &mut |source, bytes| {
                if frame.wire.has_separate_system_prompt() && is_system(source, &floor) {
                    return Ok(());
                }
                if !is_system(source, &floor)
                    && let Some(text) = context.take()
                {
                    // The text follows the system prompt, which such a wire has in the first messages.
                    write_converted(&mut sheet, |out| converter.finish(out))?;
                    sheet.message(&render_text(frame.wire, Role::System, text))?;
                }
                let is_stale =
                    stale.is_some_and(|stale| source.seq().is_some_and(|seq| seq <= stale));
                let thoughtless = is_stale.then(|| without_thinking(bytes)).flatten();
                let bytes = thoughtless.as_deref().unwrap_or(bytes);
                if native {
                    sheet.message(bytes)?;
                } else {
                    let mut read = Ok(());
                    write_converted(&mut sheet, |out| read = converter.push(bytes, out))?;
                    read.map_err(|error| {
                        LogError::damaged(&log.dir().join("messages.jsonl"), 0, error.to_string())
                    })?;
                }
                if marks.before.is_some() && source.seq() == marks.before {
                    write_converted(&mut sheet, |out| converter.finish(out))?;
                    sheet.mark()?;
                }
                Ok(())
            })?;
            if Some(at) == marks.stable {
                write_converted(&mut sheet, |out| converter.finish(out))?;
                sheet.mark()?;
            }
        }
        write_converted(&mut sheet, |out| converter.finish(out))?;
        if marks.last {
            sheet.mark()?;
        }
        sheet.release()?;
        sheet.raw(RequestFrame::TAIL.as_bytes())?;
        sheet.file.flush()?;
        Ok(RequestFile {
            file: sheet.file,
            head,
            counted,
            bytes: sheet.bytes,
            lost: converter.losses().clone(),
        })
    }

    /// Returns the body to send.
    pub fn body(&self) -> RequestBody<'_> {
        let file = self.file.path();
        match &self.head {
            Some((head, skip)) => RequestBody::Spliced {
                head: head.clone(),
                file,
                skip: *skip,
            },
            None => RequestBody::File(file),
        }
    }

    /// Keeps the file, for a person to read.
    pub fn keep(self) {
        self.file.keep();
    }
}

/// Returns the head of a request as it is stored; and, if that lacks secrets, the one that is sent, and the number of
/// bytes it replaces.
fn heads(log: &Log, frame: &RequestFrame) -> (String, Option<(Vec<u8>, u64)>) {
    let tools = frame.tools.as_deref();
    let stored = RequestFrame {
        tools: tools.map(|tools| without_secrets(log, tools)),
        ..frame.clone()
    };
    let (head, stored) = (frame.head(), stored.head());
    let skip = stored.len() as u64;
    let sent = (head != stored).then(|| (head.into_bytes(), skip));
    (stored, sent)
}

/// Returns tools as they are stored: without credentials, and without secrets if those are redacted.
fn without_secrets(log: &Log, tools: &str) -> String {
    let blanked = blank_credentials(tools);
    String::from_utf8_lossy(&log.without_secrets(blanked.as_bytes())).into_owned()
}

/// Returns the size of the frame of a request: tools, parameters and the text behind the system prompt, not the prompt
/// itself.
pub fn size(frame: &RequestFrame) -> Size {
    let tools = frame.tools.as_deref().unwrap_or_default();
    let context = frame.context.as_deref().unwrap_or_default();
    Size {
        tokens: count(Encoding::O200k, tools) + count(Encoding::O200k, context),
        bytes: (frame.head().len() + context.len() + RequestFrame::TAIL.len()) as u64,
    }
}

/// Returns the texts of the system prompt.
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

/// The parts of a request that are marked for the provider's cache.
#[derive(Default)]
struct CacheMarks {
    /// The last message.
    last: bool,
    /// The last message of the request before.
    before: Option<Seq>,
    /// The last piece of the view that does not change.
    stable: Option<usize>,
    /// The system prompt.
    system: bool,
}

impl CacheMarks {
    /// The most useful marks come first: their number is limited, and tools may have taken some.
    fn of(log: &Log, view: &View, frame: &RequestFrame) -> Result<CacheMarks, LogError> {
        let taken = frame.tools.as_deref().map_or(0, count_cache_markers);
        let mut left = MAX_CACHE_MARKERS.saturating_sub(taken);
        let mut take = || {
            let free = left > 0;
            left -= usize::from(free);
            free
        };
        Ok(CacheMarks {
            last: take(),
            before: sent_before(log)?.filter(|_| take()),
            stable: stable(view).filter(|_| take()),
            system: !frame.system.is_empty() && take(),
        })
    }
}

/// Returns the last piece of a view that does not change until the next fold.
fn stable(view: &View) -> Option<usize> {
    let stands = |shows: &Shows| matches!(shows, Shows::StandIn(_) | Shows::Note(_));
    view.pieces()
        .iter()
        .rposition(|piece| stands(&piece.shows))
        .filter(|at| at + 1 < view.pieces().len())
}

/// Returns the last message of the previous request: the one before the model's last output.
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

/// Writes the messages that a converter emits.
fn write_converted(
    sheet: &mut RequestWriter,
    work: impl FnOnce(&mut dyn FnMut(&[u8])),
) -> Result<(), LogError> {
    let mut written = Ok(());
    work(&mut |bytes| {
        if written.is_ok() {
            written = sheet.message(bytes);
        }
    });
    written
}

/// Writes the messages of a request into its file.
struct RequestWriter {
    file: WorkingFile,
    bytes: u64,
    first: bool,
    /// Separates turns of one role, if roles must alternate.
    alternation: Option<Alternation>,
    /// Whether the next message begins a piece of the view.
    seam: bool,
    /// Whether members are left out that some providers do not know.
    plain: bool,
    /// The message before, which may still be marked.
    held: Option<Vec<u8>>,
    /// Whether messages are marked for the provider's cache.
    marks: bool,
}

impl RequestWriter {
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
        // The message's own cache marks would count against ours.
        self.held = Some(remove_cache_markers(bytes).unwrap_or_else(|| bytes.to_vec()));
        Ok(())
    }

    /// Marks the last message as the end of a stable part.
    fn mark(&mut self) -> Result<(), LogError> {
        if let Some(held) = self.held.take() {
            let marked = add_cache_marker(&held);
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
