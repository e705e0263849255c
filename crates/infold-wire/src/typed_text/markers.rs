//! The markers of texts that agents put into the user's messages; `markers.txt` lists and explains them.

use std::sync::LazyLock;

use crate::phrase_list::{self, PhraseList};

pub static TEXTS: PhraseList = LazyLock::new(|| phrases("text"));
pub static TEXTS_WITH_FEEDBACK: PhraseList = LazyLock::new(|| phrases("text with feedback"));
pub static TEXT_PAIRS: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| rows("text pair"));
pub static EXACT_TEXTS: PhraseList = LazyLock::new(|| phrases("exact text"));
pub static COMPACTIONS: PhraseList = LazyLock::new(|| phrases("compaction"));
pub static LOCAL_COMMANDS: PhraseList = LazyLock::new(|| phrases("local command"));
pub static SETTING_COMMANDS: PhraseList = LazyLock::new(|| phrases("setting command"));
/// Elements of a common name, and the words that show them to be the agent's.
pub static ELEMENT_STARTS: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| rows("element start"));
pub static INSERTED_PHRASES: PhraseList = LazyLock::new(|| phrases("inserted phrase"));
pub static SENT_MEANWHILE: PhraseList = LazyLock::new(|| phrases("sent meanwhile"));
pub static SENT_MEANWHILE_ENDS: PhraseList = LazyLock::new(|| phrases("sent meanwhile end"));
/// All of [`INSERTED_PHRASES`] start with these words.
pub const INSERTED_PHRASE_START: &str = " (see below for ";

/// The known elements by name. A name may have a space: Codex writes `<permissions instructions>`.
pub static ELEMENTS: LazyLock<Vec<(&str, ElementContent)>> = LazyLock::new(|| {
    let kinds = [
        ("context", ElementContent::Context),
        ("lone context", ElementContent::LoneContext),
        ("common context", ElementContent::CommonContext),
        ("typed", ElementContent::Typed),
        ("common typed", ElementContent::CommonTyped),
        ("reminder", ElementContent::Reminder),
        ("command", ElementContent::Command),
        ("arguments", ElementContent::Arguments),
        ("command output", ElementContent::CommandOutput),
        ("output", ElementContent::Output),
    ];
    let names = |(list, content)| {
        let names = phrases(&format!("element: {list}")).into_iter();
        names.map(move |name| (name, content))
    };
    kinds.into_iter().flat_map(names).collect()
});

/// The content of an element `<name>…</name>`, as the lists of `markers.txt` explain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementContent {
    Context,
    LoneContext,
    CommonContext,
    Typed,
    CommonTyped,
    Reminder,
    Command,
    Arguments,
    CommandOutput,
    Output,
}

/// The sections that agents put in, by the words they start and end with.
pub static SECTIONS: LazyLock<Vec<MarkedSection>> = LazyLock::new(|| {
    let lists = [
        ("front section", true, false),
        ("open front section", true, true),
        ("line section", false, true),
    ];
    let sections = |(list, at_front, may_be_open)| {
        rows(list).into_iter().map(move |row| MarkedSection {
            at_front,
            start: row[0],
            end: row.get(1).copied(),
            may_be_open,
        })
    };
    lists.into_iter().flat_map(sections).collect()
});

/// A part of a text that the agent put in, by the words it starts with.
#[derive(Debug)]
pub struct MarkedSection {
    /// Whether the section counts only at the front of a text, and not on any line.
    pub at_front: bool,
    pub start: &'static str,
    /// The words it ends with; without any it goes to the end of the text.
    pub end: Option<&'static str>,
    /// Whether the section extends to the end of the text if its last words are missing; otherwise it is typed text.
    pub may_be_open: bool,
}

/// Returns the list `name` of the markers.
pub fn phrases(name: &str) -> Vec<&'static str> {
    phrase_list::phrases(include_str!("markers.txt"), name)
}

fn rows(name: &str) -> Vec<Vec<&'static str>> {
    phrase_list::rows(include_str!("markers.txt"), name)
}
