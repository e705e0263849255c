//! Rewinds a task without losing the folds before the target, nor its layered state.

use infold::layers::model::LayerState;
use infold::layers::{keep_state, state_in_force};
use infold_log::steer::{Side, Target, locate};
use infold_log::{EventId, Item, Past as _, Place, Seq, Span, torn};
use infold_store::{FoldLine, Log, Trigger, What, Writer};

use super::ConversationError;
use crate::open_task::OpenTask;

/// The data for making a fold again.
pub(super) enum FoldCopy {
    Fold(FoldLine),
    Mask(Seq, u32),
}

/// Returns the first of the messages that are sent last if a conversation ends with `seq`. They are always shown.
pub(crate) fn last_sent(log: &Log, seq: Seq) -> Result<Seq, ConversationError> {
    Ok(log.record(seq)?.tied)
}

/// Rewinds to a message; folds wholly before `before` stay, and so does the layered state: it belongs to the task, and
/// a client that repeats a request does not know of it.
pub(crate) fn rewind(open: &mut OpenTask, seq: Seq, before: Seq) -> Result<(), ConversationError> {
    let folds = folds_before(open.log(), before)?;
    let context = KeptContext::of(open.log(), seq)?;
    open.prepared = None;
    open.writer.rewind(Side::To, Target::Message(seq.get()))?;
    fold_again(&mut open.writer, folds)?;
    context.show_again(&mut open.writer)
}

/// The layered state that is kept when a client goes back to a message: the state, and the texts that the message
/// showed of it.
#[derive(Default)]
pub(super) struct KeptContext {
    state: Option<LayerState>,
    /// The texts, and the message that carries them.
    carried: Option<(Seq, Vec<String>)>,
}

impl KeptContext {
    /// Reads it from a log.
    pub fn of(log: &Log, seq: Seq) -> Result<KeptContext, ConversationError> {
        let recalls = log.state().shown().recalls(Span::one(seq));
        let ids = recalls.filter(|(_, recall)| recall.is_context());
        let mut texts = Vec::new();
        for (id, _) in ids {
            if let What::Recall(line) = log.event(id)?.what {
                texts.push(line.text);
            }
        }
        Ok(KeptContext {
            state: state_in_force(log)?,
            carried: (!texts.is_empty()).then_some((seq, texts)),
        })
    }

    /// Puts it in force in a log that ends with that message.
    pub fn show_again(self, writer: &mut Writer) -> Result<(), ConversationError> {
        if let Some(state) = self.state {
            keep_state(writer, &state)?;
        }
        let Some((seq, texts)) = self.carried else {
            return Ok(());
        };
        let shown = writer.log().state().shown();
        let mut there = shown.recalls(Span::one(seq));
        let is_there = there.any(|(_, recall)| recall.is_context());
        drop(there);
        if !is_there && shown.open_end() == Some(seq) {
            for text in texts {
                writer.show_context(&text)?;
            }
        }
        Ok(())
    }
}

/// Returns the folds that lie wholly before a message.
pub(super) fn folds_before(log: &Log, before: Seq) -> Result<Vec<FoldCopy>, ConversationError> {
    let shown = log.state().shown();
    let mut folds = Vec::new();
    for item in shown.items() {
        if let Item::Fold(fold) = item
            && fold.span().to() < before
            && let What::Fold(line) = log.event(fold.id)?.what
        {
            folds.push(FoldCopy::Fold(line));
        }
    }
    let masks = shown.all_masks().filter(|(masked, ..)| *masked < before);
    folds.extend(masks.map(|(masked, part, _)| FoldCopy::Mask(masked, part)));
    Ok(folds)
}

/// Returns a fold that must not apply to a conversation that ends with a message: it covers that message, or splits
/// messages that must be shown together.
pub(crate) fn fold_over(open: &OpenTask, last: Seq) -> Result<Option<EventId>, ConversationError> {
    let shown = open.log().state().shown();
    match shown.place(last) {
        Place::Under(fold) => Ok(Some(fold)),
        Place::Open | Place::Elsewhere => Ok(torn(shown, open.log())?),
    }
}

/// Says whether no client continued from the messages that a task shows behind the point where it left the path of a
/// hidden message: the task may go back to that path.
pub(super) fn is_branch_unused(open: &OpenTask, seq: Seq) -> Result<bool, ConversationError> {
    let log = open.log();
    let target = Target::Message(seq.get());
    let Ok(point) = locate(log.state(), Side::To, target, log) else {
        return Ok(false);
    };
    let (then, now) = (log.shown(point)?.path(), log.state().shown().path());
    let mut fork = None;
    for (then, now) in then.iter().zip(&now) {
        if then.from() == now.from() {
            fork = Some(then.to().min(now.to()));
        }
        if then != now {
            break;
        }
    }
    let Some(fork) = fork else { return Ok(false) };
    Ok(open.is_unused_after(fork)?)
}

/// Makes folds again that a rewind has opened.
pub(super) fn fold_again(
    writer: &mut Writer,
    folds: Vec<FoldCopy>,
) -> Result<(), ConversationError> {
    if folds.is_empty() {
        return Ok(());
    }
    writer.begin_pass();
    let mut folded = Ok(());
    for fold in folds {
        folded = fold_one(writer, fold);
        if folded.is_err() {
            break;
        }
    }
    writer.end_pass(None)?;
    folded
}

/// Makes a fold again, unless it is there already, or its messages are not on this path.
fn fold_one(writer: &mut Writer, fold: FoldCopy) -> Result<(), ConversationError> {
    let log = writer.log();
    let shown = log.state().shown();
    match fold {
        FoldCopy::Fold(line) => {
            let there = shown.items().iter().any(|item| match item {
                Item::Fold(fold) => fold.span() == line.span,
                Item::Run(_) => false,
            });
            let cover = infold_log::steer::cover(log.state(), line.span, log).ok();
            let same = cover.filter(|cover| cover.span == line.span && !there);
            if let Some(cover) = same.filter(|cover| cover.messages == line.messages) {
                writer.fold(line.cause, &cover, Trigger::Auto, line.stand_in)?;
            }
        }
        FoldCopy::Mask(seq, part) => {
            let mut masks = shown.all_masks();
            let there = masks.any(|(masked, its, _)| (masked, its) == (seq, part));
            drop(masks);
            if !there && shown.place(seq) == Place::Open {
                writer.mask(seq, part)?;
            }
        }
    }
    Ok(())
}
