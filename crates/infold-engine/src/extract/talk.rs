use std::collections::VecDeque;

use crate::refs;

/// Something said, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub seq: u64,
    pub text: String,
}

/// What was said: requests whole, of the assistant's words those that tell something.
#[derive(Default)]
pub struct Talk {
    /// The first request ever.
    pub first: Option<Line>,
    pub requests: VecDeque<Line>,
    /// Bytes of all requests kept.
    requested: usize,
    /// Sentences that decide or conclude, or name things.
    pub findings: Vec<Line>,
    /// The last words of the assistant.
    pub last_said: Option<Line>,
}

const REQUEST: usize = 6000;
const REQUESTS: usize = 1 << 20;
const FINDINGS: usize = 4000;
const SENTENCE: usize = 280;

impl Talk {
    /// Takes a request. Of a huge one the front and the end stay; of very many the first and the newest.
    pub fn request(&mut self, seq: u64, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let line = Line {
            seq,
            text: squeeze(text, REQUEST),
        };
        if self.first.is_none() {
            self.first = Some(line.clone());
        }
        self.requested += line.text.len();
        self.requests.push_back(line);
        while self.requested > REQUESTS
            && let Some(gone) = self.requests.pop_front()
        {
            self.requested -= gone.text.len();
        }
    }

    /// Returns about how many bytes it takes.
    pub fn held(&self) -> usize {
        let lines = self.requests.len() + self.findings.len();
        let found: usize = self.findings.iter().map(|line| line.text.len()).sum();
        self.requested + found + lines * size_of::<Line>()
    }

    /// Takes what the assistant said.
    pub fn said(&mut self, seq: u64, text: &str) {
        if !text.trim().is_empty() {
            self.last_said = Some(Line {
                seq,
                text: squeeze(text.trim(), 1200),
            });
        }
        let mut code = false;
        let mut left = 40;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                code = !code;
                continue;
            }
            // A reply is seldom longer; what is, is a document.
            if code || left == 0 {
                continue;
            }
            sentences(line, |sentence| {
                if left > 0 && tells(sentence) {
                    left -= 1;
                    self.finding(seq, sentence);
                }
            });
        }
    }

    /// Keeps a sentence.
    pub fn finding(&mut self, seq: u64, text: &str) {
        if self.findings.len() >= FINDINGS {
            // The oldest half is thinned to those that decide.
            let half = FINDINGS / 2;
            let mut at = 0;
            self.findings.retain(|line| {
                at += 1;
                at > half || at % 2 == 0 && decides(&line.text)
            });
        }
        self.findings.push(Line {
            seq,
            text: text.replace("**", ""),
        });
    }
}

/// Words that decide, conclude or explain.
const CUES: [&str; 62] = [
    "decid",
    "because",
    "instead",
    "root cause",
    "problem",
    "issue",
    "the fix",
    "fixed",
    "works",
    "should",
    "must",
    "need to",
    "needs to",
    "important",
    "found",
    "turns out",
    "chose",
    "choose",
    "will use",
    "we use",
    "no longer",
    "renamed",
    "moved",
    "added",
    "removed",
    "replaced",
    "updated",
    "changed",
    "implemented",
    "done",
    "complete",
    "failed",
    "failing",
    "passes",
    "confirmed",
    "cannot",
    "can't",
    "won't",
    "never",
    "always",
    "only",
    "total",
    "决定",
    "因为",
    "问题",
    "原因",
    "修复",
    "完成",
    "必须",
    "应该",
    "改为",
    "発見",
    "決定",
    "修正",
    "完了",
    "原因は",
    "weil",
    "entschieden",
    "porque",
    "decid",
    "parce que",
    "потому",
];

/// Says whether a sentence decides or concludes something.
pub fn decides(text: &str) -> bool {
    let small = text.to_lowercase();
    CUES.iter().any(|cue| small.contains(cue))
}

/// Says whether somebody who asks also rules something: what must, what must not, what stays.
pub fn rules(text: &str) -> bool {
    const WORDS: [&str; 22] = [
        "never", "always", "only", "must", "don't", "dont", "not", "no", "stop", "keep", "stays",
        "forget", "without", "nie", "niemals", "immer", "nur", "nicht", "jamais", "toujours",
        "nunca", "siempre",
    ];
    const SIGNS: [&str; 6] = ["不要", "必须", "禁止", "只能", "必ず", "нельзя"];
    let small = text.to_lowercase().replace('’', "'");
    let mut words = small.split(|c: char| !(c.is_alphanumeric() || c == '\''));
    words.any(|word| WORDS.contains(&word)) || SIGNS.iter().any(|sign| small.contains(sign))
}

/// Announcements tell nothing that the call after them does not.
fn announces(text: &str) -> bool {
    let small: String = text.chars().take(24).collect::<String>().to_lowercase();
    [
        "let me",
        "now let me",
        "i'll",
        "i will",
        "now i'll",
        "now i need",
        "let's",
        "now let's",
        "first, let me",
        "great!",
        "perfect!",
        "you're right",
        "sure",
        "okay",
        "good!",
        "here's",
        "here is",
        "excellent",
        "now i can see",
    ]
    .iter()
    .any(|start| small.starts_with(start))
}

fn tells(text: &str) -> bool {
    // Bytes: scripts without spaces say as much in fewer characters.
    if !(12..=SENTENCE).contains(&text.len()) || text.ends_with(':') || announces(text) {
        return false;
    }
    let mut names = 0;
    refs::each(text, |_| names += 1);
    names > 0 || decides(text)
}

/// Calls `found` with each sentence of a line, without the marks of a list or heading.
fn sentences<'a>(line: &'a str, mut found: impl FnMut(&'a str)) {
    let line = line
        .trim()
        .trim_start_matches(['-', '*', '#', '>', '•', ' ', '\t']);
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let after = chars.peek().map(|(_, c)| *c);
        let ends = match c {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => after.is_some_and(char::is_whitespace),
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            found(line[start..end].trim());
            start = end;
        }
    }
    found(line[start..].trim());
}

/// The sentences of a text that say most, in at most `most` bytes: those that rule something, then those with names;
/// ` […] ` stands where something is left out.
pub fn brief(text: &str, most: usize) -> String {
    const GAP: &str = " […] ";
    if text.len() <= most {
        return text.to_owned();
    }
    let mut all: Vec<(u32, &str)> = Vec::new();
    for line in text.lines() {
        sentences(line, |sentence| {
            let mut names = 0;
            refs::each(sentence, |_| names += 1);
            // What comes first says what it is about, if it is more than a greeting.
            let first = 2 * u32::from(all.is_empty() && sentence.len() >= 24);
            all.push((
                first + 3 * u32::from(rules(sentence)) + names.min(2),
                sentence,
            ));
        });
    }
    let mut order: Vec<usize> = (0..all.len()).filter(|at| all[*at].1.len() > 1).collect();
    order.sort_by_key(|at| std::cmp::Reverse(all[*at].0));
    let mut room = most;
    let mut chosen: Vec<usize> = Vec::new();
    for at in order {
        let cost = all[at].1.len() + GAP.len() + 2;
        if cost <= room {
            room -= cost;
            chosen.push(at);
        }
    }
    // Sentences that are too long leave the room to a cut.
    if room > most / 2 {
        return squeeze(text, most);
    }
    chosen.sort_unstable();
    let mut out = String::new();
    let mut end = 0;
    for at in chosen {
        let sentence = all[at].1;
        let start = sentence.as_ptr() as usize - text.as_ptr() as usize;
        if !out.is_empty() {
            let near = text[end..start].trim().is_empty();
            out.push_str(if near { " " } else { GAP });
        }
        out.push_str(sentence);
        end = start + sentence.len();
    }
    out
}

/// Cuts the middle out of a text that is longer than `most` bytes.
pub fn squeeze(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mark = " […] ";
    let room = most.saturating_sub(mark.len());
    let mut front = room * 3 / 4;
    while !text.is_char_boundary(front) {
        front -= 1;
    }
    let mut back = text.len() - room / 4;
    while !text.is_char_boundary(back) {
        back += 1;
    }
    // Whole words, where there are words.
    let space = text[..front].rfind(char::is_whitespace);
    let front = space.filter(|at| at * 2 > front).unwrap_or(front);
    let space = text[back..].find(char::is_whitespace);
    let back = back + space.filter(|at| at * 4 < room).unwrap_or(0);
    format!(
        "{}{mark}{}",
        text[..front].trim_end(),
        text[back..].trim_start()
    )
}
