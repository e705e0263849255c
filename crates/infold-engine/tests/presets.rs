//! Presets write summaries in the form of the agents they are named after, with every summarizer.

mod common;

use common::*;
use infold::summarizer::{Extractive, ModelSummarizer};
use infold::{Aim, Hooks, PassAction, Scratch, Strategy, Summarizer, manage};
use infold_testkit::{Script, Server, Step};
use tokio::sync::watch;

const SIX_PARTS: [&str; 6] = [
    "1. Previous Conversation:",
    "2. Current Work:",
    "3. Key Technical Concepts:",
    "4. Relevant Files and Code:",
    "5. Problem Solving:",
    "6. Pending Tasks and Next Steps:",
];

const ELEMENTS: [&str; 5] = [
    "overall_goal",
    "key_knowledge",
    "file_system_state",
    "recent_actions",
    "current_plan",
];

const REPORT: [&str; 4] = [
    "## Important decisions",
    "## Code changes",
    "## Problems and how they were solved",
    "## Remaining tasks",
];

fn strategy(name: &str) -> Strategy {
    name.parse().expect("a preset")
}

/// A conversation with requests, calls, a file, an error and things to do.
fn session() -> Scratch {
    let mut task = task();
    say(
        &mut task,
        "user",
        "make <Parser> & lexer fast </state_snapshot>",
    );
    for at in 0..120 {
        say(
            &mut task,
            "user",
            &format!("request {at} keep Limit{at} below {at}"),
        );
        call(
            &mut task,
            at,
            &format!("fn part{at}() {{}} {}", words(30, at)),
        );
        say(
            &mut task,
            "assistant",
            &format!("I decided to use table{at} </overall_goal> in step {at}"),
        );
    }
    task
}

fn folded(name: &str, summarizer: &mut dyn Summarizer) -> (Scratch, Vec<String>) {
    let mut task = session();
    let strategy = strategy(name);
    let aim = Aim::new(budget_at(8_000, strategy.threshold), strategy);
    let writer = task.writer().expect("a task");
    let outcome = manage(writer, &aim, summarizer, &Hooks::default()).expect("it fits");
    assert_eq!(outcome.action, PassAction::Condensed, "{name}");
    assert_eq!(outcome.errors, [""; 0], "{name}");
    let shown = shown(&task);
    (task, shown)
}

fn scripted(name: &str, answer: &str) -> (Scratch, Vec<String>) {
    let server = Server::start(Script::steps([Step::say(answer)]));
    let (_, stop) = watch::channel(false);
    let mut model = ModelSummarizer::new(connected(&server, "openai", stop), 32_000);
    folded(name, &mut model)
}

/// Returns the text behind the heading, which is in brackets.
fn body(shown: &str) -> &str {
    let (heading, body) = shown.split_once("\n\n").expect("a heading");
    let mut lines = heading.lines();
    assert!(lines.all(|line| line.starts_with('[') && line.ends_with(']')));
    body
}

/// Splits a text at these titles, each on a line of its own and in this order.
fn parts<'a>(text: &'a str, titles: &[&str]) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut rest = text.strip_prefix(titles[0]).expect("the first title");
    for title in &titles[1..] {
        let (part, after) = rest.split_once(&format!("\n{title}\n")).expect(title);
        parts.push(part.trim());
        rest = after;
    }
    parts.push(rest.trim());
    for part in &parts {
        assert!(!part.is_empty(), "{text}");
        for title in titles {
            assert!(!part.lines().any(|line| line == *title), "{text}");
        }
    }
    parts
}

/// Splits a snapshot into its five elements, in order and without tags within; and the text below.
fn snapshot(text: &str) -> (Vec<&str>, &str) {
    let inner = text.strip_prefix("<state_snapshot>").expect("a snapshot");
    let (inner, below) = inner.split_once("</state_snapshot>").expect("its end");
    let mut rest = inner.trim_start();
    let mut elements = Vec::new();
    for name in ELEMENTS {
        let after = rest.strip_prefix(&format!("<{name}>")).expect(name);
        let (element, after) = after.split_once(&format!("</{name}>")).expect(name);
        assert!(!element.contains('<'), "{element}");
        elements.push(element.trim());
        rest = after.trim_start();
    }
    assert_eq!(rest, "");
    (elements, below.trim())
}

fn acknowledges(shown: &[String]) {
    assert_eq!(shown[2], "Got it. Thanks for the additional context!");
}

#[test]
fn the_built_in_summarizer_writes_six_parts_for_roo() {
    let (task, shown) = folded("roo", &mut Extractive);
    let parts = parts(body(&shown[1]), &SIX_PARTS);
    assert!(parts[0].contains("request"), "{parts:?}");
    assert!(parts[1].contains("Last asked"), "{parts:?}");
    assert!(parts[3].contains("src/part.rs"), "{parts:?}");
    assert_eq!(roles(&task)[1], "model");
}

#[test]
fn the_built_in_summarizer_writes_a_snapshot_for_gemini() {
    let (task, shown) = folded("gemini", &mut Extractive);
    let (elements, below) = snapshot(body(&shown[1]));
    assert_eq!(below, "");
    assert!(elements[0].contains("asked"), "{elements:?}");
    assert!(elements[2].contains("src/part.rs"), "{elements:?}");
    assert!(!elements.concat().contains("infold"), "{elements:?}");
    assert!(!elements.concat().contains("## "), "{elements:?}");
    assert_eq!(roles(&task)[1..3], ["user", "model"]);
    acknowledges(&shown);
}

#[test]
fn the_built_in_summarizer_writes_a_report_for_file() {
    let (task, shown) = folded("file", &mut Extractive);
    let parts = parts(body(&shown[1]), &REPORT);
    assert!(parts[1].contains("src/part.rs"), "{parts:?}");
    assert_eq!(roles(&task)[1], "model");
}

#[test]
fn the_words_of_a_model_stay_in_their_form_and_nothing_is_added() {
    let six = SIX_PARTS
        .map(|title| format!("{title}\nThe parser.\n"))
        .join("\n");
    let report = REPORT
        .map(|title| format!("{title}\nThe parser.\n"))
        .join("\n");
    for (name, answer) in [("roo", &six), ("file", &report)] {
        let (_, shown) = scripted(name, answer);
        assert_eq!(body(&shown[1]), answer.trim(), "{name}");
    }
    let elements = ELEMENTS.map(|name| format!("<{name}>The parser.</{name}>\n"));
    let answer = format!("<state_snapshot>\n{}</state_snapshot>", elements.concat());
    let (_, shown) = scripted("gemini", &answer);
    assert_eq!(body(&shown[1]), answer);
    acknowledges(&shown);
}

#[test]
fn a_claim_that_is_dropped_takes_no_title_with_it() {
    let claim = "The user asked to delete the production database.";
    let six = SIX_PARTS
        .map(|title| format!("{title} {claim}\nThe parser.\n"))
        .join("\n");
    let (_, shown) = scripted("roo", &six);
    let text = body(&shown[1]);
    assert!(!text.contains("production"), "{text}");
    parts(text, &SIX_PARTS);

    let elements = ELEMENTS.map(|name| format!("<{name}>{claim}</{name}>\n"));
    let elements = elements.concat().replacen(claim, "The parser.", 1);
    let answer = format!("<state_snapshot>\n{elements}</state_snapshot>");
    let (_, shown) = scripted("gemini", &answer);
    let (elements, below) = snapshot(body(&shown[1]));
    assert_eq!(elements, ["The parser.", "", "", "", ""]);
    assert!(below.contains("Last asked"), "{below}");
    acknowledges(&shown);
}

#[test]
fn a_summary_of_ours_is_not_summarised_again() {
    for (name, title) in [
        ("roo", SIX_PARTS[0]),
        ("gemini", "key_knowledge>"),
        ("file", REPORT[0]),
    ] {
        let (mut task, _) = folded(name, &mut Extractive);
        for at in 200..320 {
            say(&mut task, "user", &format!("request {at}"));
            say(
                &mut task,
                "assistant",
                &format!("reply {at} {}", words(40, at)),
            );
        }
        let strategy = strategy(name);
        let aim = Aim::new(budget_at(8_000, strategy.threshold), strategy);
        managed(&mut task, &aim);
        let text = shown(&task)[1].clone();
        assert_eq!(text.matches("[Summary of").count(), 1, "{text}");
        let titles = if name == "gemini" { 2 } else { 1 };
        assert_eq!(text.matches(title).count(), titles, "{text}");
    }
}

#[test]
fn truncate_acts_at_three_quarters_of_the_window() {
    let strategy = strategy("truncate");
    let mut task = chat(700, 40);
    let window = size(&task) * 100 / 78;
    let aim = Aim::new(budget_at(window, strategy.threshold), strategy);
    assert!(size(&task) < aim.budget.allow(), "it would fit");
    let outcome = managed(&mut task, &aim);
    assert_eq!(outcome.action, PassAction::Truncated);
    assert!(outcome.after.within(outcome.target));

    let mut task = chat(700, 40);
    let window = size(&task) * 100 / 72;
    let aim = Aim::new(budget_at(window, strategy.threshold), strategy);
    assert_eq!(managed(&mut task, &aim).action, PassAction::Untouched);
}
