//! Five sessions of different kinds, their summaries as in docs/SUMMARIES.md, and the questions that can be answered
//! from these alone.
//!
//! `UPDATE_DOCS=1 cargo test -p infold-eval --test summaries` writes that page anew.

use std::fmt::Write as _;
use std::io::{BufReader, Cursor};
use std::path::{Path, PathBuf};

use infold::Extract;
use infold::extract::tokens;
use infold_eval::RecordedSession;
use infold_log::{Role, Seq};
use infold_wire::Message;
use infold_wire::transcript::Transcript;
use serde_json::Value;

/// Each session with its description.
const SESSIONS: [(&str, &str); 5] = [
    (
        "coding",
        "A bug is fixed and a feature added, over several requests",
    ),
    (
        "incident",
        "The cause of an outage is looked for in logs, metrics and code",
    ),
    (
        "support",
        "A customer and a travel agency, mostly in plain words",
    ),
    ("research", "A report in German, from sources in English"),
    (
        "data",
        "An analysis in SQL, with messages in Spanish and Chinese",
    ),
];
/// The sizes of summaries; the page shows the last.
const SIZES_TOKENS: [usize; 2] = [2_000, 4_000];
/// The number of questions that have to be answered at these sizes. Before sentences were chosen by their unique
/// content, it was 16 and 18.
const ANSWERED: [usize; 2] = [32, 48];
/// The number of newest messages that are not folded.
const KEPT_MESSAGES: usize = 4;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the extract of a session, and the counts of its messages and tokens.
fn read(name: &str) -> (Extract, usize, usize) {
    let path = root().join(format!("examples/summaries/{name}.jsonl"));
    let bytes = std::fs::read(path).expect("a session");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let reader = BufReader::new(Cursor::new(bytes));
    let mut transcript = Transcript::open(reader, None).expect("a known form");
    let session = RecordedSession::next(&mut transcript)
        .expect("it can be read")
        .expect("a session");
    let mut extract = Extract::new();
    let folded = session.messages.len() - KEPT_MESSAGES;
    for (message, seq) in session.messages[..folded].iter().zip(1..) {
        let message = Message::parse(message).expect("a message");
        if message.role() != Role::System {
            extract.message(Seq::new(seq).expect("not zero"), &message);
        }
    }
    (extract, folded, tokens(&text))
}

fn questions() -> Value {
    let path = root().join("examples/summaries/questions.json");
    let bytes = std::fs::read(path).expect("questions");
    serde_json::from_slice(&bytes).expect("JSON")
}

/// Says whether a summary contains the answer to a question: the original words, in any case.
fn answers(summary: &str, question: &Value) -> bool {
    let summary = summary.to_lowercase();
    let mut keys = question["keys"].as_array().expect("keys").iter();
    keys.all(|key| summary.contains(&key.as_str().expect("a text").to_lowercase()))
}

#[test]
fn questions_are_answered_from_the_summaries_that_the_page_shows() {
    let all = questions();
    let mut right = [0; SIZES_TOKENS.len()];
    let mut body = String::new();
    for (name, what) in SESSIONS {
        let (extract, messages, size) = read(name);
        let summaries = SIZES_TOKENS.map(|size| extract.write(size));
        let asked = all[name].as_array().expect("questions");
        for (count, summary) in right.iter_mut().zip(&summaries) {
            *count += asked
                .iter()
                .filter(|question| answers(summary, question))
                .count();
        }
        let shown = &summaries[SIZES_TOKENS.len() - 1];
        write!(body, "\n## {what}\n\n`examples/summaries/{name}.jsonl`: {messages} messages, of about {} tokens as text, became {}.\n\n", size / 1_000 * 1_000, tokens(shown)).expect("a text");
        writeln!(body, "````markdown\n{}\n````\n\n| question | answer | from the summary |\n| --- | --- | --- |", shown.trim_end()).expect("a text");
        for question in asked {
            let text = |key: &str| question[key].as_str().expect("a text").replace('|', "\\|");
            let found = if answers(shown, question) {
                "yes"
            } else {
                "no"
            };
            writeln!(
                body,
                "| {} | {} | {found} |",
                text("question"),
                text("answer")
            )
            .expect("a text");
        }
    }
    for (count, least) in right.iter().zip(ANSWERED) {
        assert!(
            *count >= least,
            "{right:?} of 50 are answered, {ANSWERED:?} were"
        );
    }
    let page = format!(
        "# Five summaries\n\n\
         What the built-in summarizer writes, without a model, of five sessions of different kinds: all but the system prompt and the last {KEPT_MESSAGES} messages, in at most {} tokens. \
         Below each stand ten questions that a colleague would ask who has to go on with the work, and whether the summary alone answers them: \
         whether it holds the words that do. Questions and sessions were written before any summary was looked at.\n\n\
         Of the 50 questions {} are answered by summaries of {} tokens, and {} by summaries of {}. \
         This page is written, and checked, by `crates/infold-eval/tests/summaries.rs`.\n{body}",
        SIZES_TOKENS[1], right[0], SIZES_TOKENS[0], right[1], SIZES_TOKENS[1],
    );
    let path = root().join("docs/SUMMARIES.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("the page is written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "docs/SUMMARIES.md is out of date: write it anew with UPDATE_DOCS=1"
    );
}
