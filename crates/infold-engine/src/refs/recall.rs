use std::collections::HashSet;

use super::{Finder, each};

/// A message that came after a fold.
#[derive(Clone, Copy, Debug)]
pub enum Later<'a> {
    /// What a user or the assistant said, arguments of tool calls included.
    Spoken(&'a str),
    /// What a tool gave back: it shows things, and refers to nothing.
    Result(&'a str),
}

/// How much of what was needed later was still in view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recall {
    /// References that were kept by the stand-in.
    pub kept: Vec<String>,
    /// References that only what was folded away has.
    pub lost: Vec<String>,
}

impl Recall {
    /// How many references were needed.
    pub fn wanted(&self) -> usize {
        self.kept.len() + self.lost.len()
    }

    /// The share that was kept; one if nothing was needed.
    pub fn share(&self) -> f64 {
        match self.wanted() {
            0 => 1.0,
            wanted => self.kept.len() as f64 / wanted as f64,
        }
    }
}

/// Measures future-reference recall of one fold.
///
/// Of the references that `later` messages of user and assistant make, that occur in `folded` and
/// nowhere in `shown` (nor in a later message before the one that refers): which occur in the `stand_in`.
/// Each counts once. A reference occurs where it stands as a whole, so `b.rs` is in `a/b.rs`.
pub fn recall<'a>(
    folded: impl IntoIterator<Item = &'a str>,
    shown: impl IntoIterator<Item = &'a str>,
    stand_in: &str,
    later: &[Later<'_>],
) -> Recall {
    let mut known = HashSet::new();
    let mut wanted: Vec<(usize, &str)> = Vec::new();
    for (place, message) in later.iter().enumerate() {
        if let Later::Spoken(text) = message {
            each(text, |reference| {
                if known.insert(reference) {
                    wanted.push((place, reference));
                }
            });
        }
    }
    let finder = Finder::new(wanted.iter().map(|(_, reference)| *reference));
    let mut in_fold = vec![false; wanted.len()];
    let mut in_view = vec![false; wanted.len()];
    let mut in_stand_in = vec![false; wanted.len()];
    for text in folded {
        finder.find(text, |index| in_fold[index] = true);
    }
    for text in shown {
        finder.find(text, |index| in_view[index] = true);
    }
    for (place, message) in later.iter().enumerate() {
        let (Later::Spoken(text) | Later::Result(text)) = message;
        finder.find(text, |index| in_view[index] |= place < wanted[index].0);
    }
    finder.find(stand_in, |index| in_stand_in[index] = true);
    let mut out = Recall::default();
    for (index, (_, reference)) in wanted.into_iter().enumerate() {
        if in_fold[index] && !in_view[index] {
            let list = match in_stand_in[index] {
                true => &mut out.kept,
                false => &mut out.lost,
            };
            list.push(reference.to_owned());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_folded_away_and_is_needed_counts() {
        let recall = recall(
            ["old_name in a/b.rs, lost_name, seen_name, unused_name, late_name"],
            ["seen_name is still here"],
            "- a/b.rs: old_name",
            &[
                Later::Spoken("use old_name and seen_name and new_name"),
                Later::Result("late_name was read again"),
                Later::Spoken("b.rs has lost_name and late_name"),
            ],
        );
        assert_eq!(recall.kept, ["old_name", "b.rs"]);
        assert_eq!(recall.lost, ["lost_name"]);
        assert_eq!(recall.wanted(), 3);
    }

    #[test]
    fn nothing_needed_is_nothing_lost() {
        assert_eq!(recall(["a_b_c"], [], "", &[]).share(), 1.0);
    }
}
