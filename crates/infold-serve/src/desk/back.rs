//! Going back in a task, without losing the folds of what comes before.

use infold_log::steer::{Side, Target, locate};
use infold_log::{EventId, Item, Past as _, Place, Seq, torn};
use infold_store::{FoldLine, Log, Trigger, What, Writer};

use super::DeskError;
use crate::held::Held;

/// A fold, and what it took to make it.
pub(super) enum Kept {
    Fold(FoldLine),
    Mask(Seq, u32),
}

/// Where what is sent last begins, which is always shown, if a conversation ends with a message.
pub(crate) fn last_sent(log: &Log, seq: Seq) -> Result<Seq, DeskError> {
    Ok(log.record(seq)?.tied)
}

/// Goes back to a message; folds of what comes before another one stay.
pub(crate) fn rewind(held: &mut Held, seq: Seq, before: Seq) -> Result<(), DeskError> {
    let kept = kept(held.log(), before)?;
    held.ready = None;
    held.writer.rewind(Side::To, Target::Message(seq.get()))?;
    fold_again(&mut held.writer, kept)
}

/// The folds that lie wholly before a message.
pub(super) fn kept(log: &Log, before: Seq) -> Result<Vec<Kept>, DeskError> {
    let shown = log.state().shown();
    let mut kept = Vec::new();
    for item in shown.items() {
        if let Item::Fold(fold) = item
            && fold.span().to() < before
            && let What::Fold(line) = log.event(fold.id)?.what
        {
            kept.push(Kept::Fold(line));
        }
    }
    let masks = shown.all_masks().filter(|(masked, ..)| *masked < before);
    kept.extend(masks.map(|(masked, part, _)| Kept::Mask(masked, part)));
    Ok(kept)
}

/// The fold that must not be in force when a conversation is sent that ends with a message: it covers
/// that message, or one half of what must be shown together.
pub(crate) fn in_the_way(held: &Held, last: Seq) -> Result<Option<EventId>, DeskError> {
    let shown = held.log().state().shown();
    match shown.place(last) {
        Place::Under(fold) => Ok(Some(fold)),
        Place::Open | Place::Elsewhere => Ok(torn(shown, held.log())?),
    }
}

/// Says whether what a task shows behind the point where it left the path of a hidden message was never
/// gone on with: it may be left for that path.
pub(super) fn is_unused(held: &Held, seq: Seq) -> Result<bool, DeskError> {
    let log = held.log();
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
    Ok(held.is_unused_after(fork)?)
}

/// Makes folds again that going back has opened.
pub(super) fn fold_again(writer: &mut Writer, kept: Vec<Kept>) -> Result<(), DeskError> {
    if kept.is_empty() {
        return Ok(());
    }
    writer.begin_pass();
    let mut folded = Ok(());
    for one in kept {
        folded = fold_one(writer, one);
        if folded.is_err() {
            break;
        }
    }
    writer.end_pass(None)?;
    folded
}

/// Makes a fold again, unless it is there already, or what it hid is not on this path.
fn fold_one(writer: &mut Writer, kept: Kept) -> Result<(), DeskError> {
    let log = writer.log();
    let shown = log.state().shown();
    match kept {
        Kept::Fold(line) => {
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
        Kept::Mask(seq, part) => {
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
