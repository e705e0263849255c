//! Steps that change the view: folds, masks, pins, rewinds and their undoing.

use infold_log::steer::{self, Cover, Refused, Side, Target};
use infold_log::{Cause, Event, EventId, Pin, Pinned, Role, Seq, Span, plan};
use infold_wire::lookup::PendingResult;
use infold_wire::stand_in::{clip_text, mask_text, summary_heading, window_marker};
use infold_wire::tokens::{self, Encoding};
use infold_wire::{
    Message, Part, PartKind, Wire, append_text, clip_result, part_text, render_stub,
};

use super::{Restoration, Writer};
use crate::event::{
    CallStartedLine, FoldLine, LookupLine, MaskLine, RecallLine, RefusalLine, StateLine,
    ToolsShownLine, What,
};
use crate::{LogError, StateAuthor, StepError};

/// The reference of a block of the layered state, which belongs to no reference in a message.
pub const CONTEXT_REFERENCE: &str = "layers";

/// The trigger of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A person or a script asked for this fold.
    Manual,
    /// `manage` made the fold because it was due.
    Auto,
    /// The agent whose transcript was imported had made it.
    Import,
}

impl Trigger {
    /// Its name in events and for hooks.
    pub fn name(self) -> &'static str {
        match self {
            Trigger::Manual => "manual",
            Trigger::Auto => "auto",
            Trigger::Import => "import",
        }
    }
}

/// Returns the text of a tool result; nothing of a part of another kind.
fn result_text(message: &Message<'_>, part: &Part) -> String {
    match part.kind {
        PartKind::Result => part_text(message, part),
        PartKind::Image | PartKind::Other => String::new(),
    }
}

impl Writer {
    /// Folds the rounds of a span behind a summary.
    pub fn condense(&mut self, asked: Span, text: &str) -> Result<(EventId, Cover), StepError> {
        let cover = steer::cover(self.log.state(), asked, &self.log)?;
        let text = format!(
            "{}\n\n{text}",
            summary_heading(cover.span, cover.messages, None)
        );
        let stand_in = vec![(Role::User, text)];
        let id = self.fold(Cause::Summary, &cover, Trigger::Manual, stand_in)?;
        Ok((id, cover))
    }

    /// Hides the oldest rounds, about `fraction` of those visible, behind a marker.
    pub fn truncate(&mut self, fraction: f64) -> Result<(EventId, Cover), StepError> {
        let cover = steer::oldest(self.log.state(), fraction, &self.log)?;
        let marker = vec![(Role::User, window_marker(cover.span, cover.messages, None))];
        let id = self.fold(Cause::Window, &cover, Trigger::Manual, marker)?;
        Ok((id, cover))
    }

    /// Shows a part of a message, a tool result or an image, as a stub.
    pub fn mask(&mut self, seq: Seq, part: u32) -> Result<EventId, StepError> {
        self.mask_as(seq, part, |message, found, hidden| {
            mask_text(seq, hidden, &result_text(message, found), None)
        })
    }

    /// Shows a tool result as a stub that also contains the output of `about` for its text.
    pub fn mask_described(
        &mut self,
        seq: Seq,
        part: u32,
        about: impl FnOnce(&str) -> String,
    ) -> Result<EventId, StepError> {
        let tool = self.recall_tool.clone();
        self.mask_as(seq, part, |message, found, hidden| {
            let text = result_text(message, found);
            let about = match found.kind {
                PartKind::Result => about(&text),
                PartKind::Image | PartKind::Other => String::new(),
            };
            mask_text(seq, hidden, &text, tool.as_deref()) + &about
        })
    }

    /// Shows only the head and the tail of a tool result, about `keep` tokens.
    pub fn clip(&mut self, seq: Seq, part: u32, keep: u64) -> Result<EventId, StepError> {
        let tool = self.recall_tool.clone();
        self.mask_as(seq, part, |message, found, hidden| {
            let left = hidden.saturating_sub(keep);
            let between = clip_text(
                seq,
                hidden,
                left,
                &result_text(message, found),
                tool.as_deref(),
            );
            clip_result(message, found, keep, &between)
        })
    }

    /// Sets the tool that stubs name from now on: the one that the request offers which they are made for.
    pub fn set_recall_tool(&mut self, tool: Option<String>) {
        self.recall_tool = tool;
    }

    /// Shows a part of a message as the output of `stub` for it and its tokens.
    fn mask_as(
        &mut self,
        seq: Seq,
        part: u32,
        stub: impl FnOnce(&Message<'_>, &Part, u64) -> String,
    ) -> Result<EventId, StepError> {
        steer::mask(self.log.state(), (seq, part), &self.log)?;
        let body = self.log.message(seq)?;
        let message = self.log.parsed(seq, &body)?;
        let parts = message.parts();
        let found = parts.into_iter().find(|found| found.index == part);
        let found = found
            .filter(|found| found.kind != PartKind::Other)
            .ok_or(Refused::Part {
                seq,
                part,
                why: "only tool results and images can be",
            })?;
        let hidden = tokens::part(&message, &found.range);
        let stub = stub(&message, &found, hidden);
        let shown = tokens::count(Encoding::O200k, &stub);
        let stub = render_stub(&message, &found, &stub);
        let id = self.step(What::Mask(MaskLine {
            seq,
            part,
            bytes: found.range,
            original_tokens: hidden,
            tokens: shown,
            stub,
        }))?;
        Ok(id)
    }

    /// Opens a fold.
    pub fn unfold(&mut self, fold: EventId) -> Result<EventId, StepError> {
        steer::unfold(self.log.state(), fold, &self.log)?;
        Ok(self.step(What::Unfold(fold))?)
    }

    /// Goes back to an earlier state. Nothing is deleted.
    pub fn rewind(&mut self, side: Side, target: Target) -> Result<EventId, StepError> {
        self.rewind_with(side, target, None)
    }

    /// As [`Writer::rewind`], and records that files are put in place.
    pub fn rewind_with(
        &mut self,
        side: Side,
        target: Target,
        files: Option<Restoration>,
    ) -> Result<EventId, StepError> {
        let target = self.log.with_lookups(side, target)?;
        let Event::Rewind(point) = steer::rewind(self.log.state(), side, target, &self.log)? else {
            unreachable!("steer plans a rewind as a rewind")
        };
        Ok(self.step_with(What::Rewind(point), files)?)
    }

    /// Takes back the newest step; returns it.
    pub fn undo(&mut self) -> Result<EventId, StepError> {
        self.undo_with(None)
    }

    /// As [`Writer::undo`], and records that files are put in place.
    pub fn undo_with(&mut self, files: Option<Restoration>) -> Result<EventId, StepError> {
        let (_, step) = steer::undo::<LogError>(self.log.state())?;
        self.step_with(What::Undo(step), files)?;
        Ok(step)
    }

    /// Takes back the newest undo; returns the step that is in force again.
    pub fn redo(&mut self) -> Result<EventId, StepError> {
        self.redo_with(None)
    }

    /// As [`Writer::redo`], and records that files are put in place.
    pub fn redo_with(&mut self, files: Option<Restoration>) -> Result<EventId, StepError> {
        let (_, undo) = steer::redo(self.log.state(), &self.log)?;
        self.step_with(What::Redo(undo), files)?;
        self.log.state().step().ok_or(Refused::NothingToRedo)
    }

    /// Exempts the round of a message from folding.
    pub fn pin(&mut self, seq: Seq) -> Result<EventId, StepError> {
        let Event::Pin(Pin::Message(seq)) = steer::pin(self.log.state(), seq, &self.log)? else {
            unreachable!("steer plans a pin as a pin")
        };
        Ok(self.step(What::Pin(seq))?)
    }

    /// Adds a text to every view.
    pub fn note(&mut self, text: &str) -> Result<EventId, StepError> {
        if text.trim().is_empty() {
            return Err(Refused::Blank);
        }
        Ok(self.step(What::Note {
            text: text.to_owned(),
            tokens: tokens::text_message(text),
        })?)
    }

    /// Shows an excerpt of the hidden message `source` at the end of the last message, which refers to it; none if
    /// that message cannot carry one.
    ///
    /// It is not a step: `undo` skips it.
    pub fn recall(
        &mut self,
        source: Seq,
        reference: &str,
        text: &str,
    ) -> Result<Option<EventId>, LogError> {
        let shown = self.log.state().shown();
        let Some(at) = shown.open_end().filter(|at| source < *at) else {
            return Ok(None);
        };
        let body = self.log.message(at)?;
        let carries = append_text(&self.log.parsed(at, &body)?, text).is_some();
        if !carries || !shown.is_hidden(source) {
            return Ok(None);
        }
        let id = self.step(What::Recall(RecallLine {
            at,
            source: Some(source),
            reference: reference.to_owned(),
            text: text.to_owned(),
            tokens: tokens::text_message(text),
        }))?;
        Ok(Some(id))
    }

    /// Shows a text about the task at the end of the last message; none if that message cannot carry one.
    ///
    /// It is not a step: `undo` skips it.
    pub fn show_context(&mut self, text: &str) -> Result<Option<EventId>, LogError> {
        let Some(at) = self.log.state().shown().open_end() else {
            return Ok(None);
        };
        let body = self.log.message(at)?;
        if append_text(&self.log.parsed(at, &body)?, text).is_none() {
            return Ok(None);
        }
        let id = self.step(What::Recall(RecallLine {
            at,
            source: None,
            reference: CONTEXT_REFERENCE.to_owned(),
            text: text.to_owned(),
            tokens: tokens::text_message(text),
        }))?;
        Ok(Some(id))
    }

    /// Changes the layered state; the changes are a JSON array, and so are those that produce the whole state
    /// before them.
    pub fn change_state(
        &mut self,
        author: StateAuthor,
        changes: String,
        base: Option<String>,
    ) -> Result<EventId, LogError> {
        let previous = self.log.state().shown().state_changes().last;
        self.step(What::State(StateLine {
            author,
            previous,
            base,
            changes,
        }))
    }

    /// Records which tools the model is shown from now on.
    pub fn tools_shown(&mut self, shown: ToolsShownLine) -> Result<EventId, LogError> {
        self.step(What::ToolsShown(shown))
    }

    /// Records that a call is about to be run.
    pub fn call_started(&mut self, call: CallStartedLine) -> Result<EventId, LogError> {
        self.step(What::CallStarted(call))
    }

    /// Records that a call was refused.
    pub fn refusal(&mut self, refusal: RefusalLine) -> Result<EventId, LogError> {
        self.step(What::Refusal(refusal))
    }

    /// Records the look-ups that the last reply was made with: `messages` are shown in place of those from
    /// `from` on, `results` among the results of the client's calls.
    ///
    /// It is not a step: `undo` skips it.
    pub fn lookup(
        &mut self,
        from: Seq,
        wire: Wire,
        messages: Vec<Vec<u8>>,
        results: Vec<PendingResult>,
    ) -> Result<Option<EventId>, LogError> {
        let at = self.log.state().shown().open_end();
        let Some(span) = at.and_then(|at| Span::new(from, at)) else {
            return Ok(None);
        };
        let mut tokens = 0;
        let added = results.iter().map(|result| &result.message);
        for message in messages.iter().chain(added) {
            tokens += tokens::message(&self.log.parsed(span.to(), message)?);
        }
        let reply = plan::weigh(span, &self.log)?.tokens;
        let id = self.step(What::Lookup(LookupLine {
            span,
            wire,
            messages,
            results,
            tokens: tokens.saturating_sub(reply),
        }))?;
        Ok(Some(id))
    }

    /// Takes a pin away.
    pub fn unpin(&mut self, pinned: Pinned) -> Result<EventId, StepError> {
        let Event::Unpin(pinned) = steer::unpin(self.log.state(), pinned, &self.log)? else {
            unreachable!("steer plans an unpin as an unpin")
        };
        Ok(self.step(What::Unpin(pinned))?)
    }

    /// Folds the messages of a cover behind a stand-in.
    pub fn fold(
        &mut self,
        cause: Cause,
        cover: &Cover,
        trigger: Trigger,
        stand_in: Vec<(Role, String)>,
    ) -> Result<EventId, LogError> {
        let tokens = stand_in_tokens(&stand_in);
        self.step(What::Fold(FoldLine {
            cause,
            span: cover.span,
            messages: cover.messages,
            original_tokens: cover.tokens,
            tokens,
            trigger: trigger.name().to_owned(),
            stand_in,
        }))
    }

    /// Makes the steps until [`Writer::end_pass`] one: `undo` takes them back together.
    pub fn begin_pass(&mut self) {
        self.pass = Some(self.log.state().next_event());
    }

    /// Ends a pass and keeps a record of it, a JSON object.
    pub fn end_pass(&mut self, record: Option<String>) -> Result<(), LogError> {
        let ended = record.map(|record| self.step(What::Manage(record)));
        self.pass = None;
        ended.transpose().map(|_| ())
    }
}

/// Returns the tokens of a stand-in.
pub fn stand_in_tokens(stand_in: &[(Role, String)]) -> u64 {
    stand_in
        .iter()
        .map(|(_, text)| tokens::text_message(text))
        .sum()
}
