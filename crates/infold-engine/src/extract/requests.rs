//! The requests that the user typed, within a bound.

use std::collections::VecDeque;

use super::excerpt::{CitedText, mark_cuts, select_sentences};
use super::facts::persist;
use super::word_lists::REJECTIONS;
use crate::sentence;

/// The messages that a person typed.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// The first request of all.
    pub first: Option<CitedText>,
    /// The collected requests, the oldest first.
    pub all: VecDeque<CitedText>,
    bytes: usize,
}

/// The newest request is kept whole up to this length.
const MAX_NEWEST_BYTES: usize = 64 << 10;
/// The length limit of an older request, of which the most informative sentences are kept.
const MAX_OLDER_BYTES: usize = 6_000;
/// The length of all requests together.
const MAX_REQUESTS_BYTES: usize = 1 << 20;

impl Requests {
    /// Adds a text that a person typed. Of very many the first and the newest are kept.
    pub fn push(&mut self, seq: u64, text: &str) {
        let text = mark_cuts(text);
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
            let short = select_sentences(&last.text, MAX_OLDER_BYTES);
            self.bytes = self.bytes - last.text.len() + short.len();
            last.text = short;
        }
        let line = CitedText {
            seq,
            text: select_sentences(text, MAX_NEWEST_BYTES),
        };
        if self.first.is_none() {
            self.first = Some(line.clone());
        }
        self.bytes += line.text.len();
        self.all.push_back(line);
        while self.bytes > MAX_REQUESTS_BYTES
            && let Some(gone) = self.all.pop_front()
        {
            self.bytes -= gone.text.len();
        }
    }

    /// Returns about how many bytes the requests take.
    pub fn memory_bytes(&self) -> usize {
        let first = self.first.as_ref().map_or(0, |line| line.text.len());
        self.bytes + first + self.all.len() * size_of::<CitedText>()
    }
}

/// Says whether a text that a person typed rejects the proposal before it.
pub fn is_rejection(text: &str) -> bool {
    let mut first = "";
    sentence::for_each(text, |sentence| {
        if first.is_empty() {
            first = sentence.text;
        }
    });
    let small = first.to_lowercase();
    let small = small.trim_start_matches([' ', ',', '.', '…']);
    let small = small.strip_prefix("hm").map_or(small, |rest| {
        rest.trim_start_matches(['m', ',', '.', '…', ' '])
    });
    small == "no" || REJECTIONS.start_of(small).is_some()
}

persist!(Requests: first, all, bytes);

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
        assert!(is_rejection("No, keep the old one"));
        assert!(is_rejection("不对，用另一个"));
        assert!(!is_rejection("Nobody uses it, so remove it"));
    }
}
