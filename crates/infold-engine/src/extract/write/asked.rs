use super::{ASKED, Draft, GOAL, quoted, tokens};
use crate::extract::talk::{Line, rules};

/// Of the room, in percent, what requests may take,
const SHARE: usize = 14;
/// and of a small room, up to so many tokens.
const SMALL_SHARE: usize = 28;
const SMALL: usize = 400;
/// How many bytes of a request are shown, the more the better; at the least all are shortened.
const LENGTHS: [usize; 7] = [6000, 1500, 700, 400, 240, 150, 100];

impl<'a> Draft<'a> {
    /// Quotes what was asked: all of it if there is room, each shortened if there is little, the newest and what rules
    /// something out before the rest if there is less.
    pub(super) fn requests(&mut self) {
        let talk = &self.from.talk;
        let Some(latest) = talk.requests.back() else {
            return;
        };
        let small = (self.whole * SMALL_SHARE / 100).min(SMALL);
        let mut share = self.share(SHARE).max(small).min(self.left);
        let most = (share * 4 / 3).min(1500);
        // Only a system prompt stands before the first request of a conversation.
        let first = talk.first.as_ref().filter(|line| line.seq <= 2);
        for (word, line) in first.map(|line| ("First", line)).into_iter().chain(
            Some(("Last", latest)).filter(|_| first.is_none_or(|line| line.seq != latest.seq)),
        ) {
            let line = format!("- {word} asked {}", quoted(line, most));
            self.add(GOAL, line, &mut share);
        }
        let is_other = |line: &&Line| {
            line.seq != latest.seq && first.is_none_or(|first| first.seq != line.seq)
        };
        let mut others: Vec<&Line> = talk.requests.iter().filter(is_other).collect();
        let about = |most: usize| -> usize {
            let each = others.iter().map(|line| line.text.len().min(most) / 4 + 6);
            each.sum()
        };
        let most = LENGTHS.into_iter().find(|most| about(*most) <= share);
        let most = most.unwrap_or(LENGTHS[LENGTHS.len() - 1]);
        others.sort_by_cached_key(|line| std::cmp::Reverse((rules(&line.text), line.seq)));
        let mut chosen = Vec::new();
        for line in others {
            let text = format!("- {}", quoted(line, most));
            let cost = tokens(&text) + 1;
            if cost + 6 > share {
                continue;
            }
            share -= cost;
            chosen.push((line.seq, text));
        }
        self.add_in_order(ASKED, chosen);
    }
}
