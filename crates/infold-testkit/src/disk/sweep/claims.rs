//! What a failed command claims about what it changed.

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// That nothing was changed.
    Nothing,
    /// That what was asked for, or a part of it, is done.
    Done,
    /// Neither.
    Silent,
}

/// Words that say that nothing was changed.
const NOTHING: [&str; 6] = [
    "nothing was changed",
    "nothing was kept",
    "nothing of it was kept",
    "nothing was pinned",
    "nothing was made",
    "none of it was kept",
];

/// Words that say that it is done all the same.
const DONE: [&str; 15] = [
    "took effect",
    "all the same",
    "is kept",
    "are kept",
    "was kept",
    "were kept",
    "is marked",
    "is recorded",
    "was recorded",
    "was appended",
    "were appended",
    "was made",
    "is done",
    "has ended",
    "in the log",
];

impl Claim {
    /// Reads an error and its hint.
    pub(crate) fn of(error: &str, hint: &str) -> Claim {
        let text = format!("{error}; {hint}").to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        match (says(&NOTHING), says(&DONE)) {
            // "nothing of it was kept" has the words of both.
            (true, _) => Claim::Nothing,
            (false, true) => Claim::Done,
            (false, false) => Claim::Silent,
        }
    }
}
