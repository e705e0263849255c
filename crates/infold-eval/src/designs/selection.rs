//! Selects the best of ranked pieces until a size is reached.

use std::cell::OnceCell;

use super::count_tokens;

/// The most attempts to compose a text of almost the right size.
const MAX_COMPOSITIONS: usize = 10;
/// After this many pieces in a row that do not fit, the search for smaller ones ends.
const MAX_MISSES: usize = 200;

/// Pieces of text with a rank.
pub struct Selection {
    pieces: Vec<String>,
    /// The tokens of each piece and its separator, counted when needed.
    tokens: Vec<OnceCell<u64>>,
    /// The indexes of the pieces, the best first.
    rank: Vec<usize>,
    separator: &'static str,
    /// Whether pieces are written in their own order, not by rank.
    in_order: bool,
}

impl Selection {
    /// Selects sentences, to be written in their order, the one with the highest score first.
    ///
    /// Of sentences with the same content the last one counts; of those with the same score, the later one comes first.
    pub fn of_sentences(scored: Vec<(String, f64)>) -> Selection {
        let mut seen = std::collections::HashSet::new();
        let mut rank: Vec<usize> = (0..scored.len()).rev().collect();
        rank.retain(|at| seen.insert(scored[*at].0.as_str()));
        rank.sort_by(|a, b| scored[*b].1.total_cmp(&scored[*a].1));
        let pieces = scored.into_iter().map(|(text, _)| text).collect();
        Selection::of_ranked(pieces, rank)
    }

    /// Selects names, to be written by rank.
    pub fn of_names(ranked: Vec<String>) -> Selection {
        let rank = (0..ranked.len()).collect();
        Selection::new(ranked, rank, ", ", false)
    }

    /// Selects pieces by rank, to be written one a line in their order.
    pub fn of_ranked(pieces: Vec<String>, rank: Vec<usize>) -> Selection {
        Selection::new(pieces, rank, "\n", true)
    }

    fn new(
        pieces: Vec<String>,
        rank: Vec<usize>,
        separator: &'static str,
        in_order: bool,
    ) -> Selection {
        Selection {
            tokens: vec![OnceCell::new(); pieces.len()],
            pieces,
            rank,
            separator,
            in_order,
        }
    }

    /// Writes as many pieces as fit into `budget` tokens.
    pub fn write(&self, budget: u64) -> String {
        fill(budget, |room| self.compose(room))
    }

    fn compose(&self, room: u64) -> String {
        let (mut taken, mut used, mut misses) = (Vec::new(), 0, 0);
        for at in &self.rank {
            let tokens = self.tokens[*at]
                .get_or_init(|| count_tokens(&format!("{}{}", self.separator, self.pieces[*at])));
            if used + tokens > room {
                misses += 1;
                if misses > MAX_MISSES || used == room {
                    break;
                }
                continue;
            }
            misses = 0;
            used += tokens;
            taken.push(*at);
        }
        if self.in_order {
            taken.sort_unstable();
        }
        let pieces: Vec<&str> = taken.iter().map(|at| &*self.pieces[*at]).collect();
        pieces.join(self.separator)
    }
}

/// Composes a text with different amounts of room until it has almost `budget` tokens, but not more.
///
/// Joined pieces have other tokens than each by itself, so a text that fills the room has another size.
pub fn fill(budget: u64, compose: impl Fn(u64) -> String) -> String {
    let mut best = (0, String::new());
    // The largest room whose text fits, and the smallest whose text does not.
    let (mut low, mut high) = (0, None);
    let mut room = budget;
    for _ in 0..MAX_COMPOSITIONS {
        let text = compose(room);
        let used = count_tokens(&text);
        if used > budget {
            high = Some(room);
        } else if low > 0 && used <= best.0 {
            break;
        } else {
            low = room;
            best = (used, text);
        }
        let most = high.map_or(u64::MAX, |high| high - 1);
        if most <= low {
            break;
        }
        room = (room * budget / used.max(1)).clamp(low + 1, most);
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_fills_its_size_and_is_never_larger() {
        let names: Vec<String> = (0..3000)
            .map(|at| format!("Zß{at}_äx/q{}.rs", at * 7))
            .collect();
        let selection = Selection::of_names(names);
        for budget in [1, 10, 100, 1000, 5000] {
            let used = count_tokens(&selection.write(budget));
            assert!(used <= budget, "{used} of {budget}");
            assert!(
                budget < 100 || used >= budget * 95 / 100,
                "{used} of {budget}"
            );
        }
    }

    #[test]
    fn pieces_that_weigh_more_together_do_not_leave_it_empty() {
        // Each word is one token by itself and two behind a comma and a space.
        let compose = |room: u64| "ZQX ".repeat(room as usize);
        let text = fill(1000, compose);
        assert!(
            (900..=1000).contains(&count_tokens(&text)),
            "{}",
            count_tokens(&text)
        );
    }

    #[test]
    fn sentences_are_written_in_order_and_the_last_of_the_same_counts() {
        let scored = [("one", 1.0), ("two", 3.0), ("one", 1.0), ("three", 2.0)];
        let scored = scored.map(|(text, score)| (text.to_owned(), score));
        let selection = Selection::of_sentences(scored.to_vec());
        assert_eq!(selection.write(100), "two\none\nthree");
        assert_eq!(selection.write(2), "two");
    }
}
