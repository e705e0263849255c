//! One step on a task, as a user, a script or the API requests it.

mod files;
mod permission;
mod place;
mod read;

pub use permission::FoldPermission;
pub use place::target;

use infold_layers::{Author, Change, Transitions};
use infold_log::steer::{self, Cover, Refused, Side, Target};
use infold_log::{Budget, Cause, EventId, Limits, Past as _, Pinned, Seq, Span, View};
use infold_store::{Contexts, Log, LogError, Restoration, StepError, TaskError, Trigger, Writer};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::checkpoint::{FileHistory, RestoreReport};
use crate::layers::{StateError, change_state, explain_change};
use crate::numbers::{count, number};
use crate::summarizer::Extractive;
use crate::{Aim, Draft, Hooks, ManageError, Strategy, draft};

/// One step on a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Folds messages behind a summary.
    Condense {
        /// The first of them.
        from: Seq,
        /// The last of them.
        to: Seq,
        /// The summary; without it, the built-in summarizer writes one.
        text: Option<String>,
    },
    /// Hides the oldest rounds, about this share of the visible ones, behind a marker.
    Truncate {
        /// More than 0 and at most 1.
        fraction: f64,
    },
    /// Shows a part of a message as a stub.
    Mask {
        /// The message.
        seq: Seq,
        /// The part, counted from 0.
        part: u32,
    },
    /// Opens a fold.
    Unfold {
        /// The fold.
        fold: EventId,
    },
    /// Returns to an earlier state.
    Rewind {
        /// Whether the target is included.
        side: Side,
        /// The state.
        target: Target,
        /// Whether the files of the workspace are restored too.
        files: bool,
    },
    /// Undoes the newest step, and puts the files back if that had changed them.
    Undo,
    /// Undoes the newest undo.
    Redo,
    /// Keeps the round of a message in view.
    Pin {
        /// The message.
        seq: Seq,
    },
    /// Adds a text to every view.
    Note {
        /// The text.
        text: String,
    },
    /// Changes the layered state.
    State {
        /// The author of the change.
        author: Author,
        /// The changes, all or none.
        changes: Vec<Change>,
    },
    /// Removes a pin.
    Unpin {
        /// The pinned message or note.
        what: Pinned,
    },
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepResult {
    /// One line for people.
    pub text: String,
    /// The result for scripts.
    pub json: Value,
    /// The command that undoes the step.
    pub inverse: &'static str,
    /// The difference between the step and the request, with the reason.
    pub note: Option<String>,
    /// The error of the hook that runs after folds.
    pub hook_error: Option<String>,
    /// The outcome for the files, if the step restored any.
    pub files: Option<RestoreReport>,
}

/// The settings that a step needs besides the log.
#[derive(Clone, Copy)]
pub struct StepContext<'a> {
    /// Runs if the step folds something.
    pub hooks: &'a Hooks,
    /// The phase changes that a model may make.
    pub transitions: &'a Transitions,
    /// The checkpoints of files.
    pub files: &'a FileHistory,
}

/// The text and the JSON of one kind of step, without the sizes of the view.
type StepReport = (String, Value);

impl Step {
    /// Takes the step; hooks are run if it folds something.
    pub fn take(
        &self,
        writer: &mut Writer,
        context: StepContext<'_>,
    ) -> Result<StepResult, StepError> {
        let permission = match self.fold_name() {
            Some(name) => Some(FoldPermission::ask(context.hooks, writer.log(), name)?),
            None => None,
        };
        let mut result = self.execute(writer, context)?;
        result.hook_error = permission.and_then(|permission| permission.tell(&result.json));
        Ok(result)
    }

    /// Returns its name, if it folds something.
    fn fold_name(&self) -> Option<&'static str> {
        match self {
            Step::Condense { .. } => Some("condense"),
            Step::Truncate { .. } => Some("truncate"),
            Step::Mask { .. } => Some("mask"),
            _ => None,
        }
    }

    fn execute(
        &self,
        writer: &mut Writer,
        context: StepContext<'_>,
    ) -> Result<StepResult, StepError> {
        let before = tokens(writer.log())?;
        let mut restored = None;
        let (text, json) = match self {
            Step::Condense { from, to, text } => {
                let draft = condensed(writer, (*from, *to), text.as_deref())?;
                return fold_draft(writer, draft);
            }
            Step::Truncate { fraction } => {
                let (id, cover) = writer.truncate(*fraction)?;
                folded("hid", id, &cover)
            }
            Step::Mask { seq, part } => {
                let id = writer.mask_described(*seq, *part, crate::extract::outline)?;
                let json = json!({"fold": id.to_string(), "seq": seq.get(), "part": part});
                (format!("{id}: masked part {part} of message {seq}"), json)
            }
            Step::Unfold { fold } => {
                writer.unfold(*fold)?;
                (format!("opened {fold}"), json!({"fold": fold.to_string()}))
            }
            Step::Rewind {
                side,
                target,
                files,
            } => {
                let begun = if *files {
                    Some(files::begin_rewind(writer, *side, *target, context.files)?)
                } else {
                    None
                };
                let (done, report) =
                    files::carry_out(begun, |files| rewind(writer, *side, *target, files))?;
                restored = report;
                done
            }
            Step::Undo => {
                let step = writer.log().state().step();
                let begun = context.files.begin_to_take_back(writer, step)?;
                let (step, report) = files::carry_out(begun, |files| writer.undo_with(files))?;
                restored = report;
                (format!("undid {step}"), json!({"undone": step.to_string()}))
            }
            Step::Redo => {
                let undo = writer.log().state().undone(writer.log())?;
                let begun = context.files.begin_to_take_back(writer, undo)?;
                let (step, report) = files::carry_out(begun, |files| writer.redo_with(files))?;
                restored = report;
                (format!("redid {step}"), json!({"redone": step.to_string()}))
            }
            Step::Pin { seq } => {
                writer.pin(*seq)?;
                let round = writer.log().record(*seq)?.round;
                let json = json!({"seq": seq.get(), "round": round.get()});
                (format!("pinned message {seq} and its round"), json)
            }
            Step::Note { text } => {
                let id = writer.note(text)?;
                let text = format!("{id}: pinned a note");
                (text, json!({"note": id.to_string()}))
            }
            Step::State { author, changes } => {
                change(writer, *author, changes, context.transitions)?
            }
            Step::Unpin { what } => {
                writer.unpin(*what)?;
                let name = match what {
                    Pinned::Message(seq) => format!("message {seq}"),
                    Pinned::Note(id) => format!("note {id}"),
                };
                (format!("unpinned {name}"), json!({"unpinned": name}))
            }
        };
        let inverse = if *self == Step::Undo { "redo" } else { "undo" };
        let mut result = report(writer, before, (text, json), inverse)?;
        if let Some(restored) = restored {
            result.text += &format!("; {}", restored.text());
            // The restoration is recorded right behind the step.
            let step = EventId::new(writer.log().state().at().event - 1);
            result.json["event"] = step.map(|id| id.to_string()).into();
            result.json["files"] = restored.json();
            result.files = Some(restored);
        }
        Ok(result)
    }
}

fn change(
    writer: &mut Writer,
    author: Author,
    changes: &[Change],
    transitions: &Transitions,
) -> Result<StepReport, StepError> {
    let changed = change_state(writer, author, changes, transitions);
    let id = changed.map_err(|error| match error {
        StateError::Change(error) => Refused::State {
            why: explain_change(&error),
        },
        StateError::Log(error) => Refused::Past(error),
    })?;
    let mut fields: Vec<&str> = changes.iter().map(|one| one.field().path()).collect();
    fields.dedup();
    let what = match &fields[..] {
        [field] => (*field).to_owned(),
        fields => count(fields.len() as u64, "field"),
    };
    Ok((format!("{id}: changed {what}"), json!({"fields": fields})))
}

/// Folds a draft, with the hook's permission that was obtained before it was written.
pub fn fold(
    writer: &mut Writer,
    draft: Draft,
    permission: &FoldPermission<'_>,
) -> Result<StepResult, StepError> {
    let mut result = fold_draft(writer, draft)?;
    result.hook_error = permission.tell(&result.json);
    Ok(result)
}

fn fold_draft(writer: &mut Writer, draft: Draft) -> Result<StepResult, StepError> {
    let before = tokens(writer.log())?;
    let (cover, stand_in) = (&draft.cover, draft.stand_in);
    let fold = writer.fold(Cause::Summary, cover, Trigger::Manual, stand_in)?;
    let (text, mut json) = folded("folded", fold, &draft.cover);
    json["summarizer"] = draft.summarizer.into();
    let mut result = report(writer, before, (text, json), "undo")?;
    result.note = adjustment(&draft.cover);
    Ok(result)
}

/// Adds the sizes of the view before and after the step.
fn report(
    writer: &Writer,
    before: u64,
    (text, mut json): StepReport,
    inverse: &'static str,
) -> Result<StepResult, LogError> {
    let after = tokens(writer.log())?;
    let event = writer.log().state().last_event();
    json["tokens_before"] = before.into();
    json["tokens_after"] = after.into();
    json["event"] = event.map(|id| id.to_string()).into();
    let (before, after) = (number(before), number(after));
    Ok(StepResult {
        text: format!("{text}; view {before} → {after} tokens"),
        json,
        inverse,
        note: None,
        hook_error: None,
        files: None,
    })
}

fn tokens(log: &Log) -> Result<u64, LogError> {
    Ok(View::of(log.state().shown(), log)?.tokens())
}

/// With this window only the folded messages limit the summary: the task's own window is unknown here.
const UNLIMITED_WINDOW: u64 = 1 << 40;

fn condensed(
    writer: &mut Writer,
    (from, to): (Seq, Seq),
    text: Option<&str>,
) -> Result<Draft, StepError> {
    let nothing = |why| Refused::Nothing { why };
    let span = Span::new(from, to).ok_or(nothing("the range ends before it starts"))?;
    if text.is_some_and(|text| text.trim().is_empty()) {
        return Err(nothing("the summary is empty"));
    }
    let limits = Limits {
        window: UNLIMITED_WINDOW,
        ..Limits::default()
    };
    let budget = Budget::new(limits).map_err(|_| nothing("there is no room for a view"))?;
    let aim = Aim::new(budget, Strategy::default());
    let drafted = match text {
        Some(text) => Draft::given(writer.log(), &aim, Some(span), text),
        None => draft(writer, &aim, Some(span), &mut Extractive),
    };
    match drafted {
        Ok(draft) => draft.ok_or(nothing("no summary of it would be smaller")),
        Err(ManageError::Step(error)) => Err(error),
        Err(ManageError::Log(error)) => Err(error.into()),
        Err(ManageError::Floor { .. }) => Err(nothing("what cannot be folded fills any window")),
        Err(ManageError::Cancelled) => Err(nothing("it was cancelled")),
    }
}

fn folded(verb: &str, id: EventId, cover: &Cover) -> StepReport {
    let span = cover.span;
    let text = format!("{id}: {verb} {span}, {}", count(cover.messages, "message"));
    let json = json!({
        "fold": id.to_string(), "from": span.from().get(), "to": span.to().get(), "messages": cover.messages,
        "asked_from": cover.asked.from().get(), "asked_to": cover.asked.to().get(),
    });
    (text, json)
}

/// Returns the difference between a fold and the request, with the reason.
fn adjustment(cover: &Cover) -> Option<String> {
    let (asked, span) = (cover.asked, cover.span);
    let wider = span.from() < asked.from() || span.to() > asked.to();
    let narrower = span.from() > asked.from() || span.to() < asked.to();
    let (verb, why) = match (wider, narrower) {
        (false, false) => return None,
        (true, false) => (
            "widened",
            "a call and its results are hidden together, and a fold as a whole",
        ),
        (false, true) => (
            "narrowed",
            "the system prompt, the first request and what a rewind hid stay as they are",
        ),
        (true, true) => (
            "moved",
            "a call and its results are hidden together, the system prompt and the first request never",
        ),
    };
    Some(format!("{asked} was {verb} to {span}: {why}"))
}

fn rewind(
    writer: &mut Writer,
    side: Side,
    target: Target,
    files: Option<Restoration>,
) -> Result<StepReport, StepError> {
    let before = writer.log().state().shown().path();
    let (asked, log) = (target, writer.log());
    let target = steer::whole_output(log.state(), side, asked, log)?;
    writer.rewind_with(side, target, files)?;
    let after = writer.log().state().shown().path();
    let gone = messages(&before) - shared(&before, &after);
    let mut text = format!(
        "rewound {}: {} hidden, none lost",
        place::name(side, target),
        count(gone, "message")
    );
    if target != asked {
        text += "; the items of one output stay together";
    }
    Ok((text, json!({"hidden": gone, "shown": messages(&after)})))
}

/// Creates a task that continues another from a target, or from its end.
pub fn fork_at(contexts: &Contexts, parent: Uuid, at: Option<Target>) -> Result<Uuid, TaskError> {
    let Some(target) = at else {
        return contexts.fork(parent, None);
    };
    let log = contexts.read(parent)?;
    let whole = steer::whole_output(log.state(), Side::To, target, &log)?;
    contexts.fork(parent, Some(whole))
}

fn messages(runs: &[Span]) -> u64 {
    runs.iter().map(|run| run.count()).sum()
}

/// Counts the messages that two paths have in common.
fn shared(one: &[Span], other: &[Span]) -> u64 {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut count = 0;
    while let (Some(a), Some(b)) = (one.peek(), other.peek()) {
        count += a.meet(**b).map_or(0, Span::count);
        if a.to() <= b.to() {
            one.next();
        } else {
            other.next();
        }
    }
    count
}
