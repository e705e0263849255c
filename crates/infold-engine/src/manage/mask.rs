//! Shows old tool results and images as stubs.

use std::hash::{DefaultHasher, Hash, Hasher};

use infold_log::plan::{self, Maskable, Masking};
use infold_log::{Floor, Item, Mask, Past, Seq, Size, Source, Span, State, pinned_rounds};
use infold_store::{Log, LogError};
use infold_wire::{Message, PartKind};

use super::{Executor, MARKER_TOKENS, ManageError, Pass};
use crate::PassAction;

/// The size that masking must free to be worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskGain {
    /// All that is needed: otherwise a summary follows, which may replace the same messages.
    Enough,
    /// Any amount: a summary has changed the prefix already, and the next step hides rounds.
    Some,
}

/// The newest tool output up to this many tokens stays, or a fifth of the window.
const MAX_UNMASKED_TOKENS: u64 = 40_000;

impl Pass<'_> {
    /// Shows old, large tool results as stubs, and images when bytes are the trouble.
    pub(super) fn mask(
        &mut self,
        executor: &mut Executor<'_>,
        gain: MaskGain,
    ) -> Result<(), ManageError> {
        if !self.aim.strategy.masks {
            return Ok(());
        }
        let window = self.limit_by_bytes(self.budget.room());
        let (now, target) = (self.outcome.after, self.outcome.target);
        let need = Size {
            tokens: self.scale.counted(now.tokens.saturating_sub(target.tokens)),
            bytes: now.bytes.saturating_sub(target.bytes),
        };
        let masking = Masking {
            safe: self.scale.counted(MAX_UNMASKED_TOKENS.min(window / 5)),
            stub: MARKER_TOKENS,
            need,
        };
        let parts = maskable(executor)?;
        let chosen = plan::choose(&parts, masking);
        let tokens = chosen.iter().map(|part| part.size.tokens);
        let gained: u64 = tokens.map(|size| size.saturating_sub(MARKER_TOKENS)).sum();
        let bytes: u64 = chosen.iter().map(|part| part.size.bytes).sum();
        let enough = gained >= need.tokens && bytes >= need.bytes;
        if gain == MaskGain::Enough && !enough {
            return Ok(());
        }
        let mut folds = Vec::new();
        for part in &chosen {
            folds.extend(executor.mask(part.seq, part.part, part.size.tokens, MARKER_TOKENS)?);
        }
        let ends = chosen.first().zip(chosen.last());
        let span = ends.and_then(|(first, last)| Span::new(first.seq, last.seq));
        match span {
            Some(span) => {
                let hidden = chosen.len() as u64;
                self.add_step(executor, PassAction::Masked, folds, hidden, span)
            }
            None => Ok(()),
        }
    }
}

/// Returns the parts of visible messages that may be masked, oldest first; not in the last two rounds.
fn maskable(executor: &Executor<'_>) -> Result<Vec<Maskable>, LogError> {
    let (log, state) = (executor.log(), executor.state());
    let safe = second_last_round(executor)?;
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
pub(super) struct MaskablePart<'a> {
    pub seq: Seq,
    pub index: u32,
    pub kind: PartKind,
    pub bytes: &'a [u8],
    /// The original size.
    pub size: Size,
    /// The mask that it has in the view.
    pub mask: Option<Mask>,
}

/// Visits the tool results and images of messages, except those of the floor and pinned ones.
pub(super) fn each_part(
    log: &Log,
    state: &State,
    spans: impl Iterator<Item = Span>,
    mut visit: impl FnMut(MaskablePart<'_>),
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
                visit(MaskablePart {
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

/// Returns the first message of the last round but one.
fn second_last_round(executor: &Executor<'_>) -> Result<Option<Seq>, LogError> {
    plan::tail(
        executor.state(),
        plan::Keep::Rounds(2),
        u64::MAX,
        executor.log(),
    )
}

fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
