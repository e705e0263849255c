//! Encodes views for `states.idx`.

use std::sync::Arc;

use infold_log::{Cause, EventId, Folded, Item, Mask, Recall, Seq, Shown, Span, StateChanges};

use crate::table::{Numbers, put};

/// Encodes a view for `states.idx`.
pub fn encode(shown: &Shown) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, &[shown.items().len() as u64]);
    for item in shown.items() {
        match item {
            Item::Run(run) => put(&mut out, &[0, run.from().get(), run.to().get()]),
            Item::Fold(fold) => {
                let cause = match fold.cause {
                    Cause::Summary => 1,
                    Cause::Window => 2,
                };
                put(
                    &mut out,
                    &[cause, fold.id.get(), fold.tokens, fold.runs.len() as u64],
                );
                for run in &fold.runs {
                    put(&mut out, &[run.from().get(), run.to().get()]);
                }
            }
        }
    }
    put(&mut out, &[shown.all_masks().count() as u64]);
    for (seq, part, mask) in shown.all_masks() {
        put(
            &mut out,
            &[
                seq.get(),
                u64::from(part),
                mask.id.get(),
                mask.hides,
                mask.tokens,
            ],
        );
    }
    put(&mut out, &[shown.pins().count() as u64]);
    shown.pins().for_each(|pin| put(&mut out, &[pin.get()]));
    put(&mut out, &[shown.notes().count() as u64]);
    shown
        .notes()
        .for_each(|(id, tokens)| put(&mut out, &[id.get(), tokens]));
    // Most states have no recalls or changes; without them the encoding is that of earlier versions.
    let recalls = shown.all_recalls().count() as u64;
    let changes = shown.state_changes();
    if recalls > 0 || changes.last.is_some() {
        put(&mut out, &[recalls]);
        shown.all_recalls().for_each(|(id, recall)| {
            let Recall { at, source, tokens } = recall;
            let source = source.map_or(0, Seq::get);
            put(&mut out, &[id.get(), at.get(), source, tokens]);
        });
    }
    if let Some(last) = changes.last {
        put(&mut out, &[last.get(), changes.undone.len() as u64]);
        let undone = changes.undone.iter();
        undone.for_each(|id| put(&mut out, &[id.get()]));
    }
    out
}

/// Decodes the output of [`encode`]; none for any other bytes.
pub fn decode(bytes: &[u8]) -> Option<Shown> {
    let mut numbers = Numbers(bytes);
    let items = list(&mut numbers, item)?;
    let masks = list(&mut numbers, |numbers| {
        let (seq, part) = (
            Seq::new(numbers.u64()?)?,
            u32::try_from(numbers.u64()?).ok()?,
        );
        let id = EventId::new(numbers.u64()?)?;
        let (hides, tokens) = (numbers.u64()?, numbers.u64()?);
        Some((seq, part, Mask { id, hides, tokens }))
    })?;
    let pins = list(&mut numbers, |numbers| Seq::new(numbers.u64()?))?;
    let notes = list(&mut numbers, |numbers| {
        Some((EventId::new(numbers.u64()?)?, numbers.u64()?))
    })?;
    let recalls = if numbers.0.is_empty() {
        Vec::new()
    } else {
        list(&mut numbers, |numbers| {
            let id = EventId::new(numbers.u64()?)?;
            let (at, source) = (Seq::new(numbers.u64()?)?, Seq::new(numbers.u64()?));
            let tokens = numbers.u64()?;
            Some((id, Recall { at, source, tokens }))
        })?
    };
    let changes = if numbers.0.is_empty() {
        StateChanges::default()
    } else {
        let last = EventId::new(numbers.u64()?)?;
        let undone = list(&mut numbers, |numbers| EventId::new(numbers.u64()?))?;
        StateChanges {
            last: Some(last),
            undone: undone.into_iter().collect(),
        }
    };
    numbers
        .0
        .is_empty()
        .then(|| Shown::restore(items, masks, pins, notes, recalls, changes))
}

fn list<T>(
    numbers: &mut Numbers<'_>,
    mut read: impl FnMut(&mut Numbers<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = numbers.u64()?;
    let mut out = Vec::new();
    for _ in 0..count {
        out.push(read(numbers)?);
    }
    Some(out)
}

fn item(numbers: &mut Numbers<'_>) -> Option<Item> {
    let cause = match numbers.u64()? {
        0 => return span(numbers).map(Item::Run),
        1 => Cause::Summary,
        2 => Cause::Window,
        _ => return None,
    };
    let (id, tokens) = (EventId::new(numbers.u64()?)?, numbers.u64()?);
    let runs = list(numbers, span)?;
    (!runs.is_empty()).then(|| {
        Item::Fold(Arc::new(Folded {
            id,
            cause,
            tokens,
            runs,
        }))
    })
}

fn span(numbers: &mut Numbers<'_>) -> Option<Span> {
    Span::new(Seq::new(numbers.u64()?)?, Seq::new(numbers.u64()?)?)
}
