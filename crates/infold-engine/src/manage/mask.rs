use std::hash::{DefaultHasher, Hash, Hasher};

use infold_log::plan::{self, Maskable, Masking};
use infold_log::{Floor, Item, Mask, Past, Seq, Size, Source, Span, State, pinned_rounds};
use infold_store::{Log, LogError};
use infold_wire::{Message, PartKind};

use super::{Hand, MARKER, ManageError, Pass};
use crate::{Did, Step};

/// What masking must gain to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    /// All that is needed: else a summary is made anyway, and the prefix changed twice.
    Enough,
    /// Whatever can be had.
    Some,
}

/// The newest tool output up to so many tokens stays, or a fifth of the window.
const SAFE: u64 = 40_000;

/// Less than so many tokens, or a tenth of the window, is not worth changing the view for.
const LEAST: u64 = 20_000;

impl Pass<'_> {
    /// Shows old, large tool results as stubs, and images when bytes are the trouble.
    pub(super) fn mask(&mut self, hand: &mut Hand<'_>, gain: Gain) -> Result<(), ManageError> {
        if !self.aim.strategy.masks {
            return Ok(());
        }
        let window = self.narrowed(self.budget.room());
        let (now, target) = (self.outcome.after, self.outcome.target);
        let need = Size {
            tokens: self.scale.counted(now.tokens.saturating_sub(target.tokens)),
            bytes: now.bytes.saturating_sub(target.bytes),
        };
        let masking = Masking {
            safe: self.scale.counted(SAFE.min(window / 5)),
            least: self.scale.counted(LEAST.min(window / 10)),
            stub: MARKER,
            need,
        };
        let parts = maskable(hand)?;
        let Some(chosen) = plan::choose(&parts, masking) else {
            return Ok(());
        };
        let gained: u64 = chosen
            .iter()
            .map(|part| part.size.tokens.saturating_sub(MARKER))
            .sum();
        let bytes: u64 = chosen.iter().map(|part| part.size.bytes).sum();
        let enough = gained >= need.tokens && bytes >= need.bytes;
        if gain == Gain::Enough && !enough {
            return Ok(());
        }
        let mut folds = Vec::new();
        for part in &chosen {
            folds.extend(hand.mask(part.seq, part.part, part.size.tokens, MARKER)?);
        }
        let ends = chosen.first().zip(chosen.last());
        let span = ends.and_then(|(first, last)| Span::new(first.seq, last.seq));
        let (before, after) = self.measured(hand, Did::Masked)?;
        self.outcome.steps.extend(span.map(|span| Step {
            did: Did::Masked,
            folds,
            hidden: chosen.len() as u64,
            span,
            before,
            after,
            summarizer: None,
        }));
        Ok(())
    }
}

/// The parts of visible messages that may be masked, oldest first; not in the last two rounds.
fn maskable(hand: &Hand<'_>) -> Result<Vec<Maskable>, LogError> {
    let (log, state) = (hand.log(), hand.state());
    let safe = second_last_round(hand)?;
    let runs = state.shown().items().iter().filter_map(|item| match item {
        Item::Run(run) => Some(*run),
        Item::Fold(_) => None,
    });
    let end = safe.and_then(Seq::prev);
    let spans = runs.filter_map(|run| Span::new(run.from(), run.to().min(end?)));
    let mut parts = Vec::new();
    each_part(log, state, spans, |part| {
        if part.mask.is_none() {
            parts.push(Maskable {
                seq: part.seq,
                part: part.index,
                image: part.kind == PartKind::Image,
                size: part.size,
                same: fingerprint(part.bytes),
            });
        }
    })?;
    Ok(parts)
}

/// A part of a message that may be shown as a stub.
pub(super) struct Masked<'a> {
    pub seq: Seq,
    pub index: u32,
    pub kind: PartKind,
    pub bytes: &'a [u8],
    /// What it weighs as it came.
    pub size: Size,
    /// What it is shown as.
    pub mask: Option<Mask>,
}

/// Visits the tool results and images of messages, but for the floor and what is pinned.
pub(super) fn each_part(
    log: &Log,
    state: &State,
    spans: impl Iterator<Item = Span>,
    mut visit: impl FnMut(Masked<'_>),
) -> Result<(), LogError> {
    let shown = state.shown();
    let floor = Floor::of(shown, log)?;
    let pinned = pinned_rounds(shown, log)?;
    for span in spans {
        log.each_message(span, &mut |source, bytes| {
            let Source::Message(seq) = source else {
                return Ok(());
            };
            if floor.holds(seq) || pinned.contains(&log.record(seq)?.round) {
                return Ok(());
            }
            let Ok(message) = Message::parse(bytes) else {
                return Ok(());
            };
            let parts = message.parts().into_iter();
            for part in parts.filter(|part| part.kind != PartKind::Other) {
                let mut masks = shown.masks(Span::one(seq));
                let mask = masks.find(|(_, masked, _)| *masked == part.index);
                visit(Masked {
                    seq,
                    index: part.index,
                    kind: part.kind,
                    size: Size {
                        tokens: infold_wire::tokens::part(&message, &part.range),
                        bytes: part.range.len() as u64,
                    },
                    bytes: &bytes[part.range],
                    mask: mask.map(|(_, _, mask)| mask),
                });
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The first message of the last round but one.
fn second_last_round(hand: &Hand<'_>) -> Result<Option<Seq>, LogError> {
    plan::tail(hand.state(), plan::Keep::Rounds(2), u64::MAX, hand.log())
}

fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
