//! `infold eval`, as terminal sessions.

mod common;

use common::{Home, said};
use insta::assert_snapshot;
use serde_json::json;

const ANIMALS: [&str; 13] = [
    "otter", "heron", "badger", "lynx", "marten", "stork", "beaver", "crane", "vole", "newt",
    "wren", "dormouse", "kestrel",
];

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
        let [animal, bird] = [round, back].map(|at| ANIMALS[at % ANIMALS.len()]);
        let text = format!(
            "helper_{round} holds the {animal} as helper_{back} in part_{back}.rs held the patient {bird}"
        );
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
    infold          60      101,428  87.9 %      4  $0.0536  1.000 (40 of 40)  100.0 %
    truncate        60      105,686  88.1 %      4  $0.0548   0.000 (0 of 32)  100.0 %

    strategy  passes  window used after  prefix breaks  lost references  lost words
    infold         4             34.8 %              4              0.0  0.0
    truncate       4             37.7 %              4             53.3  26.7

    Summaries of `infold` against others of the same size in their place
    stand-in    folds  tokens  wanted  kept  recall  words  pairs  per 1,000  extractive
    extractive      4   3,375      40    40   1.000  1.000  1.000       11.9
    truncation      4   3,356      40    10   0.250  0.480  0.000        3.0  × 4.0
    prose           4   1,573      40    20   0.500  1.000  1.000       12.7  × 0.9
    bm25            4   2,473      40    40   1.000  1.000  1.000       16.2  × 0.7
    lexrank         4   1,512      40    20   0.500  1.000  1.000       13.2  × 0.9
    requests        4     203      40     0   0.000  0.000  0.000        0.0  –
    frequent        4     974      40    40   1.000  0.000  0.000       41.1  × 0.3
    names           4     974      40    40   1.000  0.000  0.000       41.1  × 0.3
    oracle          4     680      40    40   1.000  1.000  1.000       58.8  × 0.2

    Cost at the prices of claude-sonnet-5-5: $2 a million tokens, $0.1 cached, $2.5 written to the cache, $10 for output
    ! cached: what repeats the start of the request before, byte for byte
    ! recall: of the references that user and assistant make to what was folded away, those still in view
    ! reachable: those that are found by reading folded messages back
    ! passes: requests before which something was folded; prefix breaks: those that do not repeat all of the one before
    ! lost: used again, folded away and in no stand-in, for 100 requests
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
    roo              4          974  50.9 %      0  $0.0022       –  –

    Cost at the prices of claude-sonnet-5-5: $2 a million tokens, $0.1 cached, $2.5 written to the cache, $10 for output
    ! cached: what repeats the start of the request before, byte for byte
    ! recall: of the references that user and assistant make to what was folded away, those still in view
    ! reachable: those that are found by reading folded messages back
    ! passes: requests before which something was folded; prefix breaks: those that do not repeat all of the one before
    ! lost: used again, folded away and in no stand-in, for 100 requests
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

fn parsed(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

/// The same session as recorded by an agent that wrote a summary in the middle.
fn condensed(rounds: usize) -> String {
    let mut out = json!({"type": "session", "version": 3, "id": "s", "cwd": "/code"}).to_string();
    let mut entries = 1;
    for (at, line) in session(rounds).lines().enumerate() {
        let message = parsed(line);
        let told = match message["role"].as_str() {
            Some("tool") => {
                json!({"role": "toolResult", "toolCallId": message["tool_call_id"], "toolName": "read",
                "content": [{"type": "text", "text": message["content"]}]})
            }
            Some("assistant") if message["content"].is_null() => {
                let call = &message["tool_calls"][0];
                let arguments = call["function"]["arguments"].as_str().map(parsed);
                json!({"role": "assistant", "content": [{"type": "toolCall", "id": call["id"], "name": "read", "arguments": arguments}]})
            }
            _ => {
                json!({"role": message["role"], "content": [{"type": "text", "text": message["content"]}]})
            }
        };
        out += &format!("\n{}", json!({"type": "message", "message": told}));
        entries += 1;
        if at == 80 {
            let summary = format!(
                "We read files. {}helper_9 held the stork.",
                "All went well, and we went on. ".repeat(9)
            );
            out += &format!(
                "\n{}",
                json!({"type": "compaction", "summary": summary, "firstKeptEntryIndex": entries - 4})
            );
            entries += 1;
        }
    }
    out + "\n"
}

#[test]
fn every_stand_in_is_tried_at_every_size() {
    let home = home();
    home.file("agent.jsonl", condensed(30));
    let told = home.tell("eval agent.jsonl long.jsonl --sizes 100,1k --window 4k");
    // Other tests check the measured figures; this one checks the output.
    let starts = told.lines().map(|line| match line.split_once("  ") {
        Some((start, _)) => start,
        None => line,
    });
    let starts: Vec<&str> = starts.collect();
    assert_snapshot!(starts.join("\n"), @"
    $ infold eval agent.jsonl long.jsonl --sizes 100,1k --window 4k
    5 points in 2 sessions, 1 where an agent condensed, 4 where `infold` folds a window of 4,000

    At 100 tokens
    stand-in
    extractive
    truncation
    prose
    bm25
    lexrank
    requests
    frequent
    names
    oracle

    At 1,000 tokens
    stand-in
    extractive
    truncation
    prose
    bm25
    lexrank
    requests
    frequent
    names
    oracle

    At the agent's size
    stand-in
    extractive
    agent
    truncation
    prose
    bm25
    lexrank
    requests
    frequent
    names
    oracle
    ! references, words, pairs: of those that are used again later and are not shown, how many in 100 the stand-in holds
    ! mean over points; in brackets, between what bounds 95 of 100 resamples of sessions and points lie
    ");
}

#[test]
fn stand_ins_are_compared_with_what_an_agent_wrote() {
    let home = home();
    home.file("agent.jsonl", condensed(30));
    let told = home.tell(
        "
        eval long.jsonl agent.jsonl --agent
        eval long.jsonl --sizes 1k
        eval long.jsonl --agent
        eval short.jsonl --sizes 1k --window 100k
        ",
    );
    let others = told.lines().filter(|line| !line.starts_with("extractive"));
    let others: Vec<&str> = others.collect();
    assert_snapshot!(others.join("\n"), @"
    $ infold eval long.jsonl agent.jsonl --agent
    1 point in 1 session, 1 where an agent condensed

    At the agent's size
    stand-in    tokens  references  × agent  words           × agent  pairs  × agent
    agent           93         0.0             9.1                      0.0
    truncation      90         6.2        –   18.2  2.00 (2.00–2.00)    0.0  –
    prose           88         6.2        –   36.4  4.00 (4.00–4.00)   27.8  –
    bm25            86        37.5        –   36.4  4.00 (4.00–4.00)    0.0  –
    lexrank         90         6.2        –   27.3  3.00 (3.00–3.00)   16.7  –
    requests        56         0.0        –    0.0  0.00 (0.00–0.00)    0.0  –
    frequent        92        50.0        –    0.0  0.00 (0.00–0.00)    0.0  –
    names           92        56.2        –    0.0  0.00 (0.00–0.00)    0.0  –
    oracle          90        31.2        –   72.7  8.00 (8.00–8.00)   44.4  –
    ! references, words, pairs: of those that are used again later and are not shown, how many in 100 the stand-in holds
    ! mean over points; in brackets, between what bounds 95 of 100 resamples of sessions and points lie
    $ infold eval long.jsonl --sizes 1k
    ! error: no window size given
    ! hint: --window sets it for sessions that their agent did not condense; --agent leaves these out
    [2]
    $ infold eval long.jsonl --agent
    ! error: no agent condensed any of these sessions
    ! hint: leave --agent out and give --sizes and --window
    [1]
    $ infold eval short.jsonl --sizes 1k --window 100k
    ! error: nothing was folded
    ! hint: give a smaller --window
    [1]
    ");
}

#[test]
fn trials_are_objects_too() {
    let home = home();
    home.file("agent.jsonl", condensed(30));
    let rows = home.objects("eval agent.jsonl --sizes 200");
    let of = |table: &str| {
        let rows = rows.iter().filter(|row| row["table"] == table);
        rows.collect::<Vec<_>>()
    };
    // Nine designs at the size given, and ten with the agent's own at its size.
    assert_eq!((of("sizes").len(), of("points").len()), (19, 19));
    for row in of("sizes") {
        let share = &row["references"]["share"];
        assert!(share["low"].as_f64() <= share["mean"].as_f64());
        assert!(share["mean"].as_f64() <= share["high"].as_f64());
        assert_eq!(
            row["words"]["times_agent"].is_null(),
            row["size"] != "agent"
        );
        assert!(row["tokens"].as_f64() > Some(0.0));
    }
}

#[test]
fn planted_facts_are_counted_by_everything_in_which_they_differ() {
    let home = Home::new();
    let told = home.tell("eval --probes --sizes 300 --lost=1");
    let starts = told
        .lines()
        .map(|line| line.chars().take(29).collect::<String>());
    let starts: Vec<String> = starts.map(|line| line.trim_end().to_owned()).collect();
    assert_snapshot!(starts.join("\n"), @"
    $ infold eval --probes --size
    210 planted facts in 14 gener

    At 300 tokens
    by                     facts
    all                      210
    kind      constraint      14
              decision        14
              value           14
              corrected       14
              path            14
              cause           14
              person          14
              deadline        14
              preference      14
              rejected        14
              credential      14
              quantity        14
              api             14
              question        14
              untouchable     14
    language  en              75
              de              15
              fr              15
              es              15
              pt              15
              it              15
              ru              15
              zh              15
              ja              15
              ko              15
    noise     coding          30
              base64          30
              json            30
              html            30
              logs            30
              chat            30
              sql             30
    distance  20,000          70
              60,000          70
              150,000         70
    said by   user           138
              assistant       48
              tool            24

    What `extractive` lost at 300
    kind        language  noise
    constraint  en        coding
    ! how many in 100 planted fac
    ");
    let told = home.tell("eval --probes --agent\neval --all short.jsonl\neval");
    assert_snapshot!(told, @"
    $ infold eval --probes --agent
    ! error: the argument '--probes' cannot be used with '--agent'
    !
    ! Usage: infold eval --probes [FILE]...
    !
    ! For more information, try '--help'.
    [2]
    $ infold eval --all short.jsonl
    ! error: the argument '--all' cannot be used with '[FILE]...'
    !
    ! Usage: infold eval --probes --all [FILE]...
    !
    ! For more information, try '--help'.
    [2]
    $ infold eval
    ! error: the following required arguments were not provided:
    !   <FILE>...
    !
    ! Usage: infold eval <FILE>...
    !
    ! For more information, try '--help'.
    [2]
    ");
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
    ! passes: requests before which something was folded; prefix breaks: those that do not repeat all of the one before
    ! lost: used again, folded away and in no stand-in, for 100 requests
    ! error: not all requests of 1 session fit
    ! hint: give a larger --window
    [1]
    $ infold eval two.jsonl
    ! error: no window size given
    ! hint: give --window 32k, or --model NAME (`infold models` lists them)
    [2]
    $ infold eval two.jsonl --window 2k --strategy infold,best
    ! error: invalid value 'best' for '--strategy <NAMES>': unknown strategy `best` (known: infold, roo, gemini, file, truncate)
    !
    ! For more information, try '--help'.
    [2]
    $ infold eval none.jsonl --window 2k
    ! error: none.jsonl could not be read: No such file or directory (os error 2)
    ! hint: name the file with the messages, or - for standard input
    [2]
    ");
}
