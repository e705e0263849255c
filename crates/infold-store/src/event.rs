//! Events as recorded in `events.jsonl`.

mod redact;
mod state_change;
mod usage;
mod lookup;
mod recall;
mod append;
mod tools;
mod call;
mod checkpoint;
#[cfg(test)]
mod tests;

use std::ops::Range;

use infold_log::{Cause, Event, EventId, Fold, Hides, Pin, Pinned, Point, Recall, Role, Seq, Span};
use infold_wire::{Json, estimate_tokens, quote};

use crate::Status;
pub use append::AppendLine;
pub use call::CallStartedLine;
pub use checkpoint::{CheckpointLine, CheckpointNote, FileCounts, RestoreLine};
pub use lookup::LookupLine;
pub use recall::RecallLine;
pub(crate) use redact::each_redaction;
pub use redact::{Extent, RedactLine, RedactedForms};
pub use state_change::{StateAuthor, StateLine};
pub use tools::{RefusalLine, ToolsShownLine};
pub use usage::{Failure, Purpose, Usage};

/// An event as recorded in `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLine {
    /// Its number.
    pub id: EventId,
    /// When it happened, in milliseconds since 1970.
    pub ts: u64,
    /// The last seq before it.
    pub after: u64,
    /// The first event of the manage pass it belongs to.
    pub pass: Option<EventId>,
    /// What happened.
    pub what: What,
}

/// The kinds of events, with their data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Rounds were hidden.
    Fold(FoldLine),
    /// A part of a message was hidden.
    Mask(MaskLine),
    /// A fold was opened.
    Unfold(EventId),
    /// The state was reset to that of a point.
    Rewind(Point),
    /// A step was taken back.
    Undo(EventId),
    /// An undo was taken back.
    Redo(EventId),
    /// A round was pinned.
    Pin(Seq),
    /// A note was added to every view.
    Note {
        /// Its text.
        text: String,
        /// Its size in tokens.
        tokens: u64,
    },
    /// A pin was taken away.
    Unpin(Pinned),
    /// The log begins with another task's, up to a point.
    Fork {
        /// The other task.
        task: String,
        /// How much of it.
        at: Point,
    },
    /// The status of the task changed: it ended, or continues.
    Status {
        /// How.
        status: Status,
        /// Why, if it failed.
        error: Option<String>,
        /// Whether it ended for lack of activity, so that it continues on new activity.
        is_idle: bool,
    },
    /// A tool was run; its record as it came.
    Tool(String),
    /// A provider reported the usage of a request.
    Usage(Usage),
    /// A provider was called and gave no reply that could be used.
    Failure(Failure),
    /// A pass of `manage` ended; its record, a JSON object.
    Manage(String),
    /// Messages were pushed with a key.
    Append(AppendLine),
    /// Messages were redacted.
    Redact(RedactLine),
    /// An excerpt of a hidden message is shown at the end of the last one.
    Recall(RecallLine),
    /// Look-ups that a reply was made with.
    Lookup(LookupLine),
    /// The layered state of the task changed.
    State(StateLine),
    /// Other tools are shown to the model than before.
    ToolsShown(ToolsShownLine),
    /// A call was refused.
    Refusal(RefusalLine),
    /// A call is about to be run.
    CallStarted(CallStartedLine),
    /// The files of a workspace were kept.
    Checkpoint(CheckpointLine),
    /// The files of a workspace were restored.
    Restore(RestoreLine),
    /// An event of a later version; it does not change the view.
    Other(String),
}

/// A fold over rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldLine {
    /// Condensed or truncated.
    pub cause: Cause,
    /// The messages that it covers.
    pub span: Span,
    /// How many messages it hides.
    pub messages: u64,
    /// Tokens of those messages.
    pub original_tokens: u64,
    /// Tokens of the stand-in.
    pub tokens: u64,
    /// The trigger of the fold: `manual` or `auto`.
    pub trigger: String,
    /// The stand-in: messages shown instead.
    pub stand_in: Vec<(Role, String)>,
}

/// A fold over one part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskLine {
    /// The message.
    pub seq: Seq,
    /// Which of its parts.
    pub part: u32,
    /// The bytes of the message that the stub replaces.
    pub bytes: Range<usize>,
    /// Tokens of that part.
    pub original_tokens: u64,
    /// Tokens of the stub.
    pub tokens: u64,
    /// The JSON shown instead.
    pub stub: String,
}

impl EventLine {
    /// The event as the algebra knows it.
    pub fn event(&self) -> Event {
        match &self.what {
            What::Fold(fold) => Event::Fold(Fold {
                hides: Hides::Rounds(fold.cause, fold.span),
                tokens: fold.tokens,
            }),
            What::Mask(mask) => Event::Fold(Fold {
                hides: Hides::Part {
                    seq: mask.seq,
                    part: mask.part,
                    tokens: mask.original_tokens,
                },
                tokens: mask.tokens,
            }),
            What::Unfold(fold) => Event::Unfold(*fold),
            What::Rewind(point) => Event::Rewind(*point),
            What::Undo(_) => Event::Undo,
            What::Redo(_) => Event::Redo,
            What::Pin(seq) => Event::Pin(Pin::Message(*seq)),
            What::Note { tokens, .. } => Event::Pin(Pin::Note { tokens: *tokens }),
            What::Unpin(pinned) => Event::Unpin(*pinned),
            What::State(state) => Event::State {
                is_step: state.author == StateAuthor::Person,
            },
            What::Recall(recall) => Event::Recall(Recall {
                at: recall.at,
                source: recall.source.or(Some(recall.at)),
                tokens: recall.tokens,
            }),
            What::Lookup(lookup) => Event::Recall(Recall {
                at: lookup.span.to(),
                source: None,
                tokens: lookup.tokens,
            }),
            What::Fork { .. }
            | What::Status { .. }
            | What::Tool(_)
            | What::Usage(_)
            | What::Failure(_)
            | What::Manage(_)
            | What::Append(_)
            | What::Redact(_)
            | What::ToolsShown(_)
            | What::Refusal(_)
            | What::CallStarted(_)
            | What::Checkpoint(_)
            | What::Restore(_)
            | What::Other(_) => Event::Fact,
        }
    }

    /// Writes the line, line break included.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, rest) = self.what.encode();
        let pass = self
            .pass
            .map_or(String::new(), |pass| format!(r#","pass":{}"#, pass.get()));
        let (id, ts, after) = (self.id.get(), self.ts, self.after);
        let line = format!(
            r#"{{"id":{id},"ts":{ts},"after":{after},"type":{}{pass}{rest}}}"#,
            quote(kind)
        );
        (line + "\n").into_bytes()
    }

    /// Reads a line; the error says why it is not an event.
    pub fn decode(line: &[u8]) -> Result<EventLine, String> {
        let json = Json::parse(line).map_err(|error| error.to_string())?;
        let kind = json.get("type").and_then(Json::text).ok_or("no \"type\"")?;
        let what = decode_what(&kind, json).ok_or_else(|| format!("a broken `{kind}` event"))?;
        Ok(EventLine {
            id: number(json, "id")
                .and_then(EventId::new)
                .ok_or("no \"id\"")?,
            ts: number(json, "ts").ok_or("no \"ts\"")?,
            after: number(json, "after").ok_or("no \"after\"")?,
            pass: number(json, "pass").and_then(EventId::new),
            what,
        })
    }
}

impl What {
    fn encode(&self) -> (&str, String) {
        match self {
            What::Fold(fold) => ("fold", fold.encode()),
            What::Mask(mask) => ("fold", mask.encode()),
            What::Unfold(fold) => ("unfold", format!(r#","fold":{}"#, fold.get())),
            What::Rewind(to) => (
                "rewind",
                format!(r#","to":{{"seq":{},"event":{}}}"#, to.seq, to.event),
            ),
            What::Undo(step) => ("undo", format!(r#","step":{}"#, step.get())),
            What::Redo(undo) => ("redo", format!(r#","undo":{}"#, undo.get())),
            What::Pin(seq) => ("pin", format!(r#","seq":{seq}"#)),
            What::Note { text, tokens } => (
                "pin",
                format!(r#","note":{},"tokens":{tokens}"#, quote(text)),
            ),
            What::Unpin(Pinned::Message(seq)) => ("unpin", format!(r#","seq":{seq}"#)),
            What::Unpin(Pinned::Note(id)) => ("unpin", format!(r#","note":{}"#, id.get())),
            What::Fork { task, at } => (
                "fork",
                format!(
                    r#","task":{},"seq":{},"event":{}"#,
                    quote(task),
                    at.seq,
                    at.event
                ),
            ),
            What::Status {
                status,
                error,
                is_idle,
            } => {
                let error = error.as_ref().map_or(String::new(), |error| {
                    format!(r#","error":{}"#, quote(error))
                });
                let idle = if *is_idle { r#","idle":true"# } else { "" };
                ("status", format!(r#","status":"{status}"{error}{idle}"#))
            }
            What::Tool(record) => ("tool", format!(r#","record":{record}"#)),
            What::Usage(usage) => ("usage", usage.encode()),
            What::Failure(failure) => ("failure", failure.encode()),
            What::Manage(record) => ("manage", format!(r#","record":{record}"#)),
            What::Append(append) => ("append", append.encode()),
            What::Redact(redact) => ("redact", redact.encode()),
            What::Recall(recall) => ("recall", recall.encode()),
            What::Lookup(lookup) => ("lookup", lookup.encode()),
            What::State(state) => ("state", state.encode()),
            What::ToolsShown(shown) => ("tools_shown", shown.encode()),
            What::Refusal(refusal) => ("refusal", refusal.encode()),
            What::CallStarted(call) => ("call_started", call.encode()),
            What::Checkpoint(checkpoint) => ("checkpoint", checkpoint.encode()),
            What::Restore(restore) => ("restore", restore.encode()),
            What::Other(kind) => (kind, String::new()),
        }
    }
}

impl FoldLine {
    fn encode(&self) -> String {
        let kind = match self.cause {
            Cause::Summary => "summary",
            Cause::Window => "window",
        };
        let stand_in = self.stand_in.iter().map(|(role, text)| {
            let role = role.wire_name();
            format!(r#"{{"role":"{role}","text":{}}}"#, quote(text))
        });
        let stand_in: Vec<String> = stand_in.collect();
        let FoldLine {
            span,
            messages,
            original_tokens,
            tokens,
            ..
        } = self;
        format!(
            r#","kind":"{kind}","from":{},"to":{},"messages":{messages},"original_tokens":{original_tokens},"tokens":{tokens},"trigger":{},"stand_in":[{}]"#,
            span.from(),
            span.to(),
            quote(&self.trigger),
            stand_in.join(",")
        )
    }

    fn decode(json: Json<'_>, cause: Cause) -> Option<FoldLine> {
        let seq = |key| number(json, key).and_then(Seq::new);
        let stand_in = json.get("stand_in")?.elements().map(|message| {
            let role = if message.get("role")?.is("assistant") {
                Role::Assistant
            } else {
                Role::User
            };
            Some((role, text(message, "text")?))
        });
        Some(FoldLine {
            cause,
            span: Span::new(seq("from")?, seq("to")?)?,
            messages: number(json, "messages")?,
            original_tokens: number(json, "original_tokens")?,
            tokens: number(json, "tokens")?,
            trigger: text(json, "trigger")?,
            stand_in: stand_in.collect::<Option<_>>()?,
        })
    }
}

impl MaskLine {
    fn encode(&self) -> String {
        let MaskLine {
            seq,
            part,
            bytes,
            original_tokens,
            tokens,
            stub,
        } = self;
        format!(
            r#","kind":"mask","seq":{seq},"part":{part},"bytes":[{},{}],"original_tokens":{original_tokens},"tokens":{tokens},"stub":{stub}"#,
            bytes.start, bytes.end
        )
    }

    fn decode(json: Json<'_>) -> Option<MaskLine> {
        let mut bytes = json.get("bytes")?.elements().map(whole);
        let (start, end) = (bytes.next()??, bytes.next()??);
        Some(MaskLine {
            seq: number(json, "seq").and_then(Seq::new)?,
            part: u32::try_from(number(json, "part")?).ok()?,
            bytes: usize::try_from(start).ok()?..usize::try_from(end).ok()?,
            original_tokens: number(json, "original_tokens")?,
            tokens: number(json, "tokens")?,
            stub: raw(json.get("stub")?)?,
        })
    }
}

fn decode_what(kind: &str, json: Json<'_>) -> Option<What> {
    let event = |key| number(json, key).and_then(EventId::new);
    let seq = |key| number(json, key).and_then(Seq::new);
    let text = |key| text(json, key);
    let point = |json: Json<'_>| {
        Some(Point {
            seq: number(json, "seq")?,
            event: number(json, "event")?,
        })
    };
    Some(match kind {
        "fold" => match &*text("kind")? {
            "summary" => What::Fold(FoldLine::decode(json, Cause::Summary)?),
            "window" => What::Fold(FoldLine::decode(json, Cause::Window)?),
            "mask" => What::Mask(MaskLine::decode(json)?),
            _ => return None,
        },
        "unfold" => What::Unfold(event("fold")?),
        "rewind" => What::Rewind(point(json.get("to")?)?),
        "undo" => What::Undo(event("step")?),
        "redo" => What::Redo(event("undo")?),
        "pin" => match seq("seq") {
            Some(seq) => What::Pin(seq),
            None => {
                let text = text("note")?;
                // Lines of older versions lack it; they meant the estimate.
                let tokens =
                    number(json, "tokens").unwrap_or_else(|| estimate_tokens(text.len() as u64));
                What::Note { text, tokens }
            }
        },
        "unpin" => What::Unpin(match seq("seq") {
            Some(seq) => Pinned::Message(seq),
            None => Pinned::Note(event("note")?),
        }),
        "fork" => What::Fork {
            task: text("task")?,
            at: point(json)?,
        },
        "status" => What::Status {
            status: text("status")?.parse().ok()?,
            error: text("error"),
            is_idle: json.get("idle").is_some_and(|idle| idle.bytes() == b"true"),
        },
        "tool" => What::Tool(raw(json.get("record")?)?),
        "usage" => What::Usage(Usage::decode(json)?),
        "failure" => What::Failure(Failure::decode(json)?),
        "manage" => What::Manage(raw(json.get("record")?)?),
        "append" => What::Append(AppendLine::decode(json)?),
        "redact" => What::Redact(RedactLine::decode(json)?),
        "recall" => What::Recall(RecallLine::decode(json)?),
        "lookup" => What::Lookup(LookupLine::decode(json)?),
        "state" => What::State(StateLine::decode(json)?),
        "tools_shown" => What::ToolsShown(ToolsShownLine::decode(json)?),
        "refusal" => What::Refusal(RefusalLine::decode(json)?),
        "call_started" => What::CallStarted(CallStartedLine::decode(json)?),
        "checkpoint" => What::Checkpoint(CheckpointLine::decode(json)?),
        "restore" => What::Restore(RestoreLine::decode(json)?),
        other => What::Other(other.to_owned()),
    })
}

/// A value as it stands.
fn raw(value: Json<'_>) -> Option<String> {
    String::from_utf8(value.bytes().to_vec()).ok()
}

fn text(json: Json<'_>, key: &str) -> Option<String> {
    Some(json.get(key)?.text()?.into_owned())
}

fn number(json: Json<'_>, key: &str) -> Option<u64> {
    whole(json.get(key)?)
}

fn whole(value: Json<'_>) -> Option<u64> {
    std::str::from_utf8(value.bytes()).ok()?.parse().ok()
}
