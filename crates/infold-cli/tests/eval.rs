//! `infold eval`, told as sessions at a terminal.

mod common;

use common::{Home, said};
use insta::assert_snapshot;
use serde_json::json;

/// A session in which files are read one after another, and spoken of again later.
fn session(rounds: usize) -> String {
    let mut out = said("user", "tidy up the parser");
    for round in 0..rounds {
        let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("c{round}"), "type": "function",
            "function": {"name": "read_file", "arguments": format!("{{\"path\":\"src/part_{round}.rs\"}}")}}]});
        let body = format!("fn helper_{round}() {{\n{}}}\n", "    step();\n".repeat(60));
        let result = json!({"role": "tool", "tool_call_id": format!("c{round}"), "content": body});
        out += &format!("{call}\n{result}\n");
        let back = round.saturating_sub(9);
        let text = format!("helper_{round} is like helper_{back} in part_{back}.rs");
        out += &said("assistant", &text);
        out += &said("user", "go on");
    }
    out
}

fn home() -> Home {
    let home = Home::new();
    home.file("long.jsonl", session(30));
    home.file("short.jsonl", session(2));
    home
}

#[test]
fn a_table_says_what_each_strategy_came_to() {
    let told = home().tell("eval long.jsonl --window 4k --strategy infold,truncate");
    assert_snapshot!(told, @"
    $ infold eval long.jsonl --window 4k --strategy infold,truncate
    long.jsonl: 1 session, 121 messages
    strategy  requests  tokens sent  cached  folds     cost            recall  reachable
    infold          60       95,965  88.6 %      4  $0.0475  0.795 (31 of 39)  100.0 %
    truncate        60      102,660  88.1 %      4  $0.0512   0.000 (0 of 32)  100.0 %

    Summaries of `infold` against others of the same size in their place
    stand-in    folds  tokens  wanted  kept  recall  per 1,000  extractive
    extractive      4   1,538      39    31   0.795       20.2
    truncation      4   1,529      39     7   0.179        4.6  × 4.4
    prose           4   1,005      39    19   0.487       18.9  × 1.1
    frequent        4     947      39    39   1.000       41.2  × 0.5

    Cost at the prices of claude-sonnet-5-5: $2 a million tokens, $0.1 cached, $2.5 written to the cache, $10 for output
    ! cached: what repeats the start of the request before, byte for byte
    ! recall: of the references that user and assistant make to what was folded away, those still in view
    ! reachable: those that are found by reading folded messages back
    ");
}

#[test]
fn a_session_that_never_fills_the_window_says_so() {
    let told = home().tell("eval short.jsonl --window 32k --strategy roo,roo");
    assert_snapshot!(told, @"
    $ infold eval short.jsonl --window 32k --strategy roo,roo
    short.jsonl: 1 session, 9 messages
    It never fills the window: nothing was folded.
    strategy  requests  tokens sent  cached  folds     cost  recall  reachable
    roo              4          958  50.9 %      0  $0.0020       –  –

    Cost at the prices of claude-sonnet-5-5: $2 a million tokens, $0.1 cached, $2.5 written to the cache, $10 for output
    ! cached: what repeats the start of the request before, byte for byte
    ! recall: of the references that user and assistant make to what was folded away, those still in view
    ! reachable: those that are found by reading folded messages back
    ");
}

#[test]
fn several_files_have_a_total() {
    let rows = home().objects("eval short.jsonl long.jsonl --window 4k --strategy infold,truncate");
    let strategies = rows.iter().filter(|row| row["table"] == "strategies");
    let strategies: Vec<_> = strategies.collect();
    assert_eq!(strategies.len(), 6);
    for at in 0..2 {
        let sum = |key: &str| {
            strategies[at][key]
                .as_u64()
                .zip(strategies[at + 2][key].as_u64())
        };
        for key in [
            "requests",
            "tokens",
            "cached_tokens",
            "folds",
            "wanted",
            "kept",
        ] {
            let total = strategies[at + 4][key].as_u64();
            assert_eq!(total, sum(key).map(|(one, other)| one + other), "{key}");
        }
        let [requests, tokens] = ["requests", "tokens"].map(|key| strategies[at + 2][key].as_u64());
        assert!(requests > Some(50) && tokens > Some(10_000));
        assert_eq!(strategies[at + 2]["reachable"], 1.0);
    }
    let ours = rows.iter().find(|row| row["stand_in"] == "extractive");
    assert!(ours.is_some_and(|row| row["kept"].as_u64() > Some(0)));
}

#[test]
fn a_picture_is_drawn_where_it_was_asked_for() {
    let home = home();
    let told = home.tell("eval short.jsonl --window 4k --svg eval.svg --strategy infold");
    assert!(told.contains("! drawn: eval.svg"), "{told}");
    let svg = std::fs::read_to_string(home.path().join("eval.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(!svg.contains("href") && !svg.contains("<script"));
    let told = home.tell("eval short.jsonl --window 4k --svg none/eval.svg --strategy infold");
    assert!(
        told.contains("error: none/eval.svg cannot be written"),
        "{told}"
    );
}

#[test]
fn what_does_not_fit_is_named_and_the_rest_goes_on() {
    let home = home();
    let talk = |text: &str| {
        let asked = json!({"role": "user", "content": text});
        let answer = json!({"role": "assistant", "content": "so"});
        format!("{}\n", json!({"messages": [asked, answer]}))
    };
    home.file("two.jsonl", talk(&"word ".repeat(4000)) + &talk("hi"));
    let told = home.tell(
        "
        eval two.jsonl --window 2k --strategy infold
        eval two.jsonl
        eval two.jsonl --window 2k --strategy infold,best
        eval none.jsonl --window 2k
        ",
    );
    assert_snapshot!(told, @"
    $ infold eval two.jsonl --window 2k --strategy infold
    two.jsonl: 1 session, 2 messages
    It never fills the window: nothing was folded.
    strategy  requests  tokens sent  cached  folds     cost  recall  reachable
    infold           1            5   0.0 %      0  $0.0001       –  –

    Cost at the prices of claude-sonnet-5-5: $2 a million tokens, $0.1 cached, $2.5 written to the cache, $10 for output
    ! warning: session 1 of two.jsonl is left out, none of its requests fits; before message 2: what cannot be folded has 4005 tokens, and a window of 2000 leaves 1300 for it (first request 4005; 500 reserved for the reply)
    ! cached: what repeats the start of the request before, byte for byte
    ! recall: of the references that user and assistant make to what was folded away, those still in view
    ! reachable: those that are found by reading folded messages back
    ! error: not all requests of 1 session fit
    ! hint: give a larger --window
    [1]
    $ infold eval two.jsonl
    ! error: how large is the window?
    ! hint: say --window 32k, or --model NAME (`infold models` lists them)
    [2]
    $ infold eval two.jsonl --window 2k --strategy infold,best
    ! error: invalid value 'best' for '--strategy <NAMES>': unknown strategy `best` (known: infold, roo, gemini, file, truncate)
    !
    ! For more information, try '--help'.
    [2]
    $ infold eval none.jsonl --window 2k
    ! error: none.jsonl could not be read: No such file or directory (os error 2)
    ! hint: say which file holds the messages, or - for standard input
    [2]
    ");
}
