//! Names in the last messages that no line in view says anything about are looked up, and hidden messages about them
//! quoted.

use infold::recall::{RecallLimits, recall_references, scanned_mentions};
use infold::summarizer::Extractive;
use infold::{Aim, Hooks, Scratch, manage};
use infold_log::{Budget, Limits, View};
use serde_json::json;

const LIMITS: RecallLimits = RecallLimits {
    tokens: 600,
    excerpts: 3,
};

fn said(role: &str, text: &str) -> Vec<u8> {
    json!({"role": role, "content": text})
        .to_string()
        .into_bytes()
}

/// A conversation in which these messages of the user are folded behind a summary, with later messages.
fn request(hidden: &[&str], summary: &str, later: &[(&str, &str)]) -> (Vec<u64>, String) {
    let mut task = Scratch::new().expect("a task");
    let mut push = |message: Vec<u8>| task.push(message).expect("appended");
    push(said("user", "build the importer"));
    push(said("assistant", "how?"));
    for text in hidden {
        push(said("user", text));
        push(said("assistant", "noted"));
    }
    let last = 2 + 2 * hidden.len();
    let writer = task.writer().expect("a writer");
    let span = format!("3..{last}").parse().expect("a span");
    writer.condense(span, summary).expect("folded");
    for (role, text) in later {
        task.push(said(role, text)).expect("appended");
    }
    let writer = task.writer().expect("a writer");
    let recalled = recall_references(writer, LIMITS, &mut scanned_mentions()).expect("recalled");
    let log = writer.log();
    let view = View::of(log.state().shown(), log).expect("a view");
    let sent = String::from_utf8(log.rendered(&view).expect("rendered")).expect("text");
    let sources = recalled.iter().map(|one| one.source.get()).collect();
    (sources, sent)
}

/// The hidden messages that are quoted for a question.
fn quoted(hidden: &[&str], summary: &str, question: &str) -> Vec<u64> {
    let later = [("assistant", "go on"), ("user", question)];
    request(hidden, summary, &later).0
}

#[test]
fn a_name_in_a_list_or_in_an_earlier_question_is_not_in_view() {
    let hidden = ["RETRY_BUDGET is 1750 ms", "the weather is fine"];
    let ask = "What is RETRY_BUDGET?";
    let list = "- src/net.rs (edited 2× [9]): alpha_one logo meta RETRY_BUDGET page beta_two";
    assert_eq!(quoted(&hidden, list, ask), [3]);
    let told = "The user said that RETRY_BUDGET is 1750 ms in all clients.";
    assert_eq!(quoted(&hidden, told, ask), [0; 0]);
    let later = [
        ("assistant", "go on"),
        ("user", "Do you remember RETRY_BUDGET?"),
        ("assistant", "yes"),
        ("user", ask),
    ];
    assert_eq!(request(&hidden, "talk", &later).0, [3]);
}

#[test]
fn the_newest_statement_is_quoted_and_no_question() {
    let hidden = [
        "RETRY_BUDGET is 1750 ms",
        "no, RETRY_BUDGET is 2500 ms",
        "is RETRY_BUDGET used anywhere?",
    ];
    assert_eq!(quoted(&hidden, "talk", "What is RETRY_BUDGET?"), [5]);
}

#[test]
fn phrases_names_of_any_script_units_and_other_spellings_are_found() {
    let hidden = [
        "marketing wants \"calm seas, full holds\" below the logo",
        "担当者は田中美咲さんで、内線は4471です。",
        "the gateway listens on port 80 behind the proxy",
        "src/net/retry.rs holds the backoff of 1750 ms",
        "Zürich is closed on Fridays",
    ];
    for (question, source) in [
        ("who wrote \"calm seas, full holds\" there?", 3),
        ("田中美咲さんの内線は何番でしたか？", 5),
        ("what was on port 80 again?", 7),
        ("open C:\\work\\app\\src\\net\\Retry.rs", 9),
        ("is it open in Zürich today?", 11),
    ] {
        assert_eq!(quoted(&hidden, "talk", question), [source], "{question}");
    }
    assert_eq!(quoted(&hidden, "talk", "thanks, please continue"), [0; 0]);
}

#[test]
fn all_messages_since_the_last_reply_are_read() {
    let hidden = ["RETRY_BUDGET is 1750 ms"];
    let later = [
        ("assistant", "go on"),
        ("user", "set RETRY_BUDGET as before"),
        ("user", "and be quick"),
    ];
    let (sources, sent) = request(&hidden, "talk", &later);
    assert_eq!(sources, [3]);
    let last = sent.lines().last().expect("a message");
    assert!(
        last.contains("and be quick") && last.contains("> RETRY_BUDGET is 1750 ms"),
        "{last}"
    );
}

/// Returns the view of a folded conversation whose request offers a tool or none.
fn folded(strategy: &str, tool: Option<&str>) -> String {
    let mut task = Scratch::new().expect("a task");
    for turn in 0..60 {
        for role in ["user", "assistant"] {
            let text = format!("step {turn}: {}", "and so it goes on ".repeat(20));
            task.push(said(role, &text)).expect("appended");
        }
    }
    task.push(said("user", "go on")).expect("appended");
    let limits = Limits {
        window: 8_000,
        threshold: Some(75.0),
        ..Limits::default()
    };
    let aim = Aim {
        recall_tool: tool.map(str::to_owned),
        ..Aim::new(
            Budget::new(limits).expect("room"),
            strategy.parse().expect("a strategy"),
        )
    };
    let writer = task.writer().expect("a writer");
    manage(writer, &aim, &mut Extractive, &Hooks::default()).expect("it fits");
    let log = writer.log();
    let view = View::of(log.state().shown(), log).expect("a view");
    String::from_utf8(log.rendered(&view).expect("rendered")).expect("text")
}

#[test]
fn stand_ins_name_the_tool_that_is_offered_and_no_other() {
    for strategy in ["infold", "truncate"] {
        let shown = folded(strategy, Some("mcp__infold__recall"));
        assert!(
            shown.contains("the tool `mcp__infold__recall` shows"),
            "{strategy}"
        );
        let shown = folded(strategy, None);
        assert!(
            shown.contains("nothing is lost: the log keeps"),
            "{strategy}"
        );
        assert!(!shown.to_lowercase().contains("recall "), "{strategy}");
        assert!(!shown.contains("infold recall"), "{strategy}");
    }
}
