//! A map of a conversation: which stretches are shown, masked, condensed or hidden.

use infold_log::{Cause, Item, Past, Span, State, steer};
use infold_store::{Log, LogError};

/// The treatment of a part of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Treatment {
    /// Shown unchanged.
    Kept,
    /// Shown as a stub.
    Masked,
    /// Shown as part of a summary.
    Condensed,
    /// Not shown.
    Hidden,
}

impl Treatment {
    /// All treatments.
    pub const ALL: [Treatment; 4] = [
        Treatment::Kept,
        Treatment::Masked,
        Treatment::Condensed,
        Treatment::Hidden,
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Treatment::Kept => "kept",
            Treatment::Masked => "masked",
            Treatment::Condensed => "condensed",
            Treatment::Hidden => "hidden",
        }
    }
}

/// The treatment of each stretch of a conversation, in counted tokens or tokens of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldMap {
    /// The stretches in order.
    pub stretches: Vec<(Treatment, u64)>,
}

impl FoldMap {
    /// Maps the shown messages. Takes time in the number of folds and masks, not of messages.
    pub fn of(state: &State, log: &Log) -> Result<FoldMap, LogError> {
        let mut map = FoldMap::default();
        for item in state.shown().items() {
            match item {
                Item::Run(run) => map.run(*run, state, log)?,
                Item::Fold(fold) => {
                    let treatment = match fold.cause {
                        Cause::Summary => Treatment::Condensed,
                        Cause::Window => Treatment::Hidden,
                    };
                    // A fold does not hide the first request and pinned messages.
                    let kept = steer::always_shown(state, fold.span(), log)?;
                    for run in &fold.runs {
                        let mut rest = Some(*run);
                        for seq in kept.iter().filter(|seq| run.holds(**seq)) {
                            let before = seq.prev().and_then(|to| Span::new(rest?.from(), to));
                            map.add(treatment, before, log)?;
                            map.add(Treatment::Kept, Some(Span::one(*seq)), log)?;
                            rest = Span::new(seq.next(), run.to());
                        }
                        map.add(treatment, rest, log)?;
                    }
                }
            }
        }
        Ok(map)
    }

    /// Returns the map in a model's tokens, `factor` for each of ours.
    pub fn scaled(&self, factor: f64) -> FoldMap {
        let (mut counted, mut before) = (0, 0);
        let mut scaled = FoldMap::default();
        for (treatment, tokens) in &self.stretches {
            // Ends are rounded, not stretches, so that the sum stays right.
            counted += tokens;
            let end = (counted as f64 * factor).ceil() as u64;
            scaled.push(*treatment, end - before);
            before = end;
        }
        scaled
    }

    /// Returns the tokens of one treatment in all.
    pub fn total(&self, treatment: Treatment) -> u64 {
        let same = self
            .stretches
            .iter()
            .filter(|(found, _)| *found == treatment);
        same.map(|(_, tokens)| tokens).sum()
    }

    /// Returns the conversation in cells of equal size, each with the treatment of most of it.
    pub fn cells(&self, width: usize) -> Vec<Treatment> {
        let all: u64 = self.stretches.iter().map(|(_, tokens)| tokens).sum();
        let mut cells = Vec::with_capacity(width);
        let mut stretches = self.stretches.iter().copied();
        let mut current = stretches.next();
        for cell in 0..width as u64 {
            // Ends are rounded the same way for all cells, so that nothing is counted twice.
            let mut room = (all * (cell + 1)) / width as u64 - (all * cell) / width as u64;
            let mut parts = [0; 4];
            while let Some((treatment, left)) = current {
                let taken = left.min(room);
                parts[treatment as usize] += taken;
                room -= taken;
                current = match left - taken {
                    0 => stretches.next(),
                    left => Some((treatment, left)),
                };
                if room == 0 {
                    break;
                }
            }
            let all = Treatment::ALL.into_iter();
            let most = all.max_by_key(|treatment| parts[*treatment as usize]);
            cells.extend(most.filter(|treatment| parts[*treatment as usize] > 0));
        }
        cells
    }

    /// Adds a run that is shown, except its masked parts.
    fn run(&mut self, run: Span, state: &State, log: &Log) -> Result<(), LogError> {
        let mut rest = Some(run);
        for (seq, _, mask) in state.shown().masks(run) {
            let before = seq.prev().and_then(|to| Span::new(rest?.from(), to));
            self.add(Treatment::Kept, before, log)?;
            let whole = match rest {
                Some(rest) if rest.holds(seq) => weight(Span::one(seq), log)?,
                // Another part of the same message was masked before.
                _ => mask.hides,
            };
            self.push(Treatment::Masked, mask.hides.min(whole));
            self.push(Treatment::Kept, whole.saturating_sub(mask.hides));
            rest = rest.and_then(|rest| Span::new(rest.from().max(seq.next()), rest.to()));
        }
        self.add(Treatment::Kept, rest, log)
    }

    fn add(&mut self, treatment: Treatment, span: Option<Span>, log: &Log) -> Result<(), LogError> {
        if let Some(span) = span {
            self.push(treatment, weight(span, log)?);
        }
        Ok(())
    }

    fn push(&mut self, treatment: Treatment, tokens: u64) {
        match self.stretches.last_mut() {
            Some((last, sum)) if *last == treatment => *sum += tokens,
            _ if tokens > 0 => self.stretches.push((treatment, tokens)),
            _ => {}
        }
    }
}

fn weight(span: Span, log: &Log) -> Result<u64, LogError> {
    let before = match span.from().prev() {
        Some(seq) => log.record(seq)?.sums.tokens,
        None => 0,
    };
    Ok(log.record(span.to())?.sums.tokens - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_scaled_comes_to_the_whole() {
        let map = FoldMap {
            stretches: vec![
                (Treatment::Kept, 7),
                (Treatment::Condensed, 8),
                (Treatment::Kept, 3),
            ],
        };
        let scaled = map.scaled(1.45);
        assert_eq!(
            scaled.total(Treatment::Kept) + scaled.total(Treatment::Condensed),
            27
        );
        assert_eq!(map.scaled(1.0), map);
    }

    #[test]
    fn cells_show_what_most_of_them_became() {
        let map = FoldMap {
            stretches: vec![
                (Treatment::Kept, 10),
                (Treatment::Condensed, 80),
                (Treatment::Masked, 4),
                (Treatment::Kept, 6),
            ],
        };
        let text: String = map
            .cells(10)
            .into_iter()
            .map(|treatment| &treatment.name()[..1])
            .collect();
        assert_eq!(text, "kcccccccck");
        assert_eq!(map.cells(200).len(), 100);
        assert_eq!(FoldMap::default().cells(10), []);
    }
}
