use infold_log::{Cause, Item, Past, Span, State, steer};
use infold_store::{Log, LogError};

/// What became of a stretch of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Shown as it is.
    Kept,
    /// Shown as a stub.
    Masked,
    /// Shown as part of a summary.
    Condensed,
    /// Not shown.
    Hidden,
}

impl Fate {
    /// All of them.
    pub const ALL: [Fate; 4] = [Fate::Kept, Fate::Masked, Fate::Condensed, Fate::Hidden];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Kept => "kept",
            Fate::Masked => "masked",
            Fate::Condensed => "condensed",
            Fate::Hidden => "hidden",
        }
    }
}

/// What became of a conversation, stretch by stretch, in tokens as counted or as a model counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// The stretches in order.
    pub stretches: Vec<(Fate, u64)>,
}

impl Picture {
    /// Draws what is shown. Takes time in folds and masks, not in messages.
    pub fn of(state: &State, log: &Log) -> Result<Picture, LogError> {
        let mut picture = Picture::default();
        for item in state.shown().items() {
            match item {
                Item::Run(run) => picture.run(*run, state, log)?,
                Item::Fold(fold) => {
                    let fate = match fold.cause {
                        Cause::Summary => Fate::Condensed,
                        Cause::Window => Fate::Hidden,
                    };
                    // What a fold does not hide: the first request, and what is pinned.
                    let kept = steer::always_shown(state, fold.span(), log)?;
                    for run in &fold.runs {
                        let mut rest = Some(*run);
                        for seq in kept.iter().filter(|seq| run.holds(**seq)) {
                            let before = seq.prev().and_then(|to| Span::new(rest?.from(), to));
                            picture.add(fate, before, log)?;
                            picture.add(Fate::Kept, Some(Span::one(*seq)), log)?;
                            rest = Span::new(seq.next(), run.to());
                        }
                        picture.add(fate, rest, log)?;
                    }
                }
            }
        }
        Ok(picture)
    }

    /// The same in tokens of a model that counts so many for each of ours.
    pub fn scaled(&self, factor: f64) -> Picture {
        let (mut counted, mut before) = (0, 0);
        let mut scaled = Picture::default();
        for (fate, tokens) in &self.stretches {
            // Ends are rounded, not stretches: together they are what all of it comes to.
            counted += tokens;
            let end = (counted as f64 * factor).ceil() as u64;
            scaled.push(*fate, end - before);
            before = end;
        }
        scaled
    }

    /// Tokens of one fate in all.
    pub fn total(&self, fate: Fate) -> u64 {
        let same = self.stretches.iter().filter(|(found, _)| *found == fate);
        same.map(|(_, tokens)| tokens).sum()
    }

    /// The conversation in so many cells of equal size, each with the fate of most of it.
    pub fn cells(&self, width: usize) -> Vec<Fate> {
        let all: u64 = self.stretches.iter().map(|(_, tokens)| tokens).sum();
        let mut cells = Vec::with_capacity(width);
        let mut stretches = self.stretches.iter().copied();
        let mut current = stretches.next();
        for cell in 0..width as u64 {
            // Ends are rounded the same way for all, so that nothing is counted twice.
            let mut room = (all * (cell + 1)) / width as u64 - (all * cell) / width as u64;
            let mut parts = [0; 4];
            while let Some((fate, left)) = current {
                let taken = left.min(room);
                parts[fate as usize] += taken;
                room -= taken;
                current = match left - taken {
                    0 => stretches.next(),
                    left => Some((fate, left)),
                };
                if room == 0 {
                    break;
                }
            }
            let most = Fate::ALL
                .into_iter()
                .max_by_key(|fate| parts[*fate as usize]);
            cells.extend(most.filter(|fate| parts[*fate as usize] > 0));
        }
        cells
    }

    /// A run that is shown, but for the parts of it that are masked.
    fn run(&mut self, run: Span, state: &State, log: &Log) -> Result<(), LogError> {
        let mut rest = Some(run);
        for (seq, _, mask) in state.shown().masks(run) {
            let before = seq.prev().and_then(|to| Span::new(rest?.from(), to));
            self.add(Fate::Kept, before, log)?;
            let whole = match rest {
                Some(rest) if rest.holds(seq) => weight(Span::one(seq), log)?,
                // Another part of the same message was masked before.
                _ => mask.hides,
            };
            self.push(Fate::Masked, mask.hides.min(whole));
            self.push(Fate::Kept, whole.saturating_sub(mask.hides));
            rest = rest.and_then(|rest| Span::new(rest.from().max(seq.next()), rest.to()));
        }
        self.add(Fate::Kept, rest, log)
    }

    fn add(&mut self, fate: Fate, span: Option<Span>, log: &Log) -> Result<(), LogError> {
        if let Some(span) = span {
            self.push(fate, weight(span, log)?);
        }
        Ok(())
    }

    fn push(&mut self, fate: Fate, tokens: u64) {
        match self.stretches.last_mut() {
            Some((last, sum)) if *last == fate => *sum += tokens,
            _ if tokens > 0 => self.stretches.push((fate, tokens)),
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
        let picture = Picture {
            stretches: vec![(Fate::Kept, 7), (Fate::Condensed, 8), (Fate::Kept, 3)],
        };
        let scaled = picture.scaled(1.45);
        assert_eq!(scaled.total(Fate::Kept) + scaled.total(Fate::Condensed), 27);
        assert_eq!(picture.scaled(1.0), picture);
    }

    #[test]
    fn cells_show_what_most_of_them_became() {
        let picture = Picture {
            stretches: vec![
                (Fate::Kept, 10),
                (Fate::Condensed, 80),
                (Fate::Masked, 4),
                (Fate::Kept, 6),
            ],
        };
        let text: String = picture
            .cells(10)
            .into_iter()
            .map(|fate| &fate.name()[..1])
            .collect();
        assert_eq!(text, "kcccccccck");
        assert_eq!(picture.cells(200).len(), 100);
        assert_eq!(Picture::default().cells(10), []);
    }
}
