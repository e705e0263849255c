//! What the user typed, message by message, bounded.

use std::collections::VecDeque;

use super::facts::keep;
use super::sentence;
use super::text::{Line, brief, marked};

/// The messages that a person typed.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// The first ever.
    pub first: Option<Line>,
    /// All that are kept, the oldest first.
    pub all: VecDeque<Line>,
    /// Bytes of all that are kept.
    bytes: usize,
}

/// Of the newest request so much is kept whole,
const MAX_NEWEST_BYTES: usize = 64 << 10;
/// of each older one the sentences that say most in so much.
const MAX_OLDER_BYTES: usize = 6_000;
/// All of them together.
const MAX_BYTES: usize = 1 << 20;

impl Requests {
    /// Takes what a person typed. Of very many the first and the newest stay.
    pub fn push(&mut self, seq: u64, text: &str) {
        let text = marked(text);
        let text = text.as_str();
        if text.is_empty() {
            return;
        }
        if let Some(last) = self.all.back_mut().filter(|last| last.seq == seq) {
            // Another block of the same message.
            last.text.push_str("\n\n");
            last.text.push_str(text);
            self.bytes += text.len() + 2;
            if let Some(first) = self.first.as_mut().filter(|first| first.seq == seq) {
                first.text.clone_from(&last.text);
            }
            return;
        }
        if let Some(last) = self.all.back_mut()
            && last.text.len() > MAX_OLDER_BYTES
        {
            let short = brief(&last.text, MAX_OLDER_BYTES);
            self.bytes = self.bytes - last.text.len() + short.len();
            last.text = short;
        }
        let line = Line {
            seq,
            text: brief(text, MAX_NEWEST_BYTES),
        };
        if self.first.is_none() {
            self.first = Some(line.clone());
        }
        self.bytes += line.text.len();
        self.all.push_back(line);
        while self.bytes > MAX_BYTES
            && let Some(gone) = self.all.pop_front()
        {
            self.bytes -= gone.text.len();
        }
    }

    /// Returns about how many bytes they take.
    pub fn held(&self) -> usize {
        let first = self.first.as_ref().map_or(0, |line| line.text.len());
        self.bytes + first + self.all.len() * size_of::<Line>()
    }
}

/// Says whether what a person typed turns down what was proposed before it.
pub fn turns_down(text: &str) -> bool {
    let mut first = "";
    sentence::each(text, |sentence| {
        if first.is_empty() {
            first = sentence.text;
        }
    });
    let small = first.to_lowercase();
    let small = small.trim_start_matches([' ', ',', '.', '…']);
    let small = small.strip_prefix("hm").map_or(small, |rest| {
        rest.trim_start_matches(['m', ',', '.', '…', ' '])
    });
    const STARTS: [&str; 28] = [
        "no,",
        "no ",
        "nope",
        "nah",
        "don't",
        "do not",
        "stop",
        "wait",
        "revert",
        "undo",
        "not that",
        "scratch that",
        "actually no",
        "actually, no",
        "rather not",
        "nein",
        "nicht",
        "non,",
        "non ",
        "no.",
        "não",
        "нет",
        "не надо",
        "不",
        "别",
        "いいえ",
        "いや",
        "아니",
    ];
    small == "no" || STARTS.iter().any(|start| small.starts_with(start))
}

keep!(Requests { first, all, bytes });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_huge_request_what_rules_stays_when_it_is_no_longer_the_newest() {
        let mut requests = Requests::default();
        let long = format!(
            "{}Never drop the ledger table. {}",
            "Some words of no import. ".repeat(200),
            "More of them. ".repeat(600)
        );
        requests.push(1, &long);
        assert_eq!(requests.all[0].text, long.trim());
        requests.push(2, "go on");
        assert!(requests.all[0].text.len() <= MAX_OLDER_BYTES);
        assert!(
            requests.all[0]
                .text
                .contains("Never drop the ledger table.")
        );
        assert!(requests.all[0].text.contains("[…]"));
    }

    #[test]
    fn a_no_turns_down() {
        assert!(turns_down("No, keep the old one"));
        assert!(turns_down("不对，用另一个"));
        assert!(!turns_down("Nobody uses it, so remove it"));
    }
}
