//! Checks the measures of `eval` against figures worked out by hand and against a slow, plain count.

use infold::models::Prices;
use infold::summarizer::Extractive;
use infold::{Aim, Hooks, STRATEGIES, Scratch, Strategy, manage};
use infold_eval::{
    Compaction, Counts, DESIGNS, Design, MEASURES, Measure, ParsedSession, RecordedSession, Replay,
    Scores, SizeLimit, TermVocabulary, Trials, compare, compare_agent, replay,
};
use infold_log::{Budget, Limits, Role, Shows, View};
use infold_store::{Log, What};
use infold_wire::Message;
use infold_wire::tool_action::MessageText;
use serde_json::json;

fn say(role: &str, text: &str) -> Vec<u8> {
    format!(r#"{{"role":"{role}","content":{}}}"#, json!(text)).into_bytes()
}

fn words(count: usize) -> String {
    "word ".repeat(count)
}

fn session(messages: Vec<Vec<u8>>) -> RecordedSession {
    RecordedSession {
        messages,
        compactions: Vec::new(),
    }
}

fn aim(window: u64, strategy: Strategy) -> Aim {
    let limits = Limits {
        window,
        threshold: Some(strategy.threshold),
        ..Limits::default()
    };
    Aim::new(Budget::new(limits).expect("room"), strategy)
}

const PRICES: Prices = Prices {
    input: 2.0,
    cached: 0.1,
    write: 3.0,
    output: 10.0,
};

fn replayed(session: &RecordedSession, aim: &Aim) -> Replay {
    let parsed = ParsedSession::of(session).expect("messages");
    replay(session, &parsed, aim, Some(PRICES), &mut || {}).expect("a replay")
}

fn references(replay: &Replay) -> Counts {
    replay.scores[Measure::References]
}

fn truncates() -> Strategy {
    "truncate".parse().expect("a strategy")
}

/// The second message has to be folded before the sixth is requested.
fn one_fold() -> RecordedSession {
    session(vec![
        say("user", "begin with first_request"),
        say(
            "assistant",
            &format!("alpha_one is in src/alpha.rs {}", words(2000)),
        ),
        say("user", "go on"),
        say("assistant", "with pleasure"),
        say("user", &words(1000)),
        // Two references to folded messages; the first request is still shown.
        say("assistant", "alpha_one and alpha.rs, as first_request says"),
        // One is in view again, one never occurred.
        say("user", "alpha_one or beta_two?"),
        say("assistant", "alpha_one"),
    ])
}

#[test]
fn references_to_what_was_folded_are_those_counted_by_hand() {
    let replay = replayed(&one_fold(), &aim(4000, truncates()));
    let folds: Vec<u64> = replay
        .requests
        .iter()
        .map(|request| request.folds)
        .collect();
    assert_eq!(folds, [0, 0, 1, 0]);
    assert_eq!(
        (references(&replay), replay.reached),
        (Counts { wanted: 2, kept: 0 }, 2)
    );
    assert!(replay.unfit.is_empty());
}

#[test]
fn a_fold_breaks_the_cache_where_it_stands_and_nothing_else_does() {
    let session = one_fold();
    let replay = replayed(&session, &aim(4000, truncates()));
    let [first, second, third, fourth] = replay.requests[..] else {
        panic!("four requests");
    };
    assert_eq!((first.cached, first.cached_bytes), (0, 0));
    // Nothing was folded: all bytes are sent again.
    assert_eq!(second.cached_bytes, first.bytes);
    assert_eq!(second.cached, first.tokens);
    let breaks = [first, second, third, fourth].map(|request| request.breaks);
    assert_eq!(breaks, [false, false, true, false]);
    // The first request stays; then the marker, which is the user's, replaces the model's message.
    let same = session.messages[0].len() + "\n".len() + "{\"role\":\"".len();
    assert_eq!(third.cached_bytes, same as u64);
    assert_eq!(fourth.cached_bytes, third.bytes);
    assert_eq!(fourth.cached, third.tokens);
    for request in [first, second, third, fourth] {
        let fresh = (request.tokens - request.cached) as f64;
        let cost = request.cached as f64 * 0.1 + fresh * 3.0 + request.output as f64 * 10.0;
        assert!((request.cost - cost / 1e6).abs() < 1e-12);
        assert!(request.output > 0);
    }
}

#[test]
fn a_request_that_does_not_fit_is_left_out_and_the_next_one_sent() {
    let mut session = one_fold();
    session.messages[4] = say("user", &words(9000));
    let replay = replayed(&session, &aim(4000, truncates()));
    let before: Vec<u64> = replay.unfit.iter().map(|unfit| unfit.before).collect();
    assert_eq!((before, replay.requests.len()), (vec![6], 3));
    // The references of the sixth message were not looked for in any view.
    assert_eq!((references(&replay).wanted, replay.reached), (0, 0));
}

#[test]
fn a_mask_hides_a_result_and_not_the_call() {
    let call = |id: &str, path: &str| {
        let function = json!({"name": "read_file", "arguments": json!({"path": path}).to_string()});
        let calls = json!([{"id": id, "type": "function", "function": function}]);
        let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
        message.to_string().into_bytes()
    };
    let result = |id: &str, text: String| {
        let message = json!({"role": "tool", "tool_call_id": id, "content": text});
        message.to_string().into_bytes()
    };
    let session = session(vec![
        say("user", "look around"),
        call("a", "src/seen.rs"),
        result("a", format!("{0} deep_down {0}", "the ".repeat(1000))),
        say("assistant", "done"),
        say("user", "more"),
        call("b", "src/other.rs"),
        result("b", "the ".repeat(1000)),
        // One is in the masked result, one in the call, which is not masked.
        say("assistant", "deep_down in src/seen.rs"),
    ]);
    let limits = Limits {
        window: 100_000,
        bytes: Some(10_000),
        ..Limits::default()
    };
    let budget = Budget::new(limits).expect("room");
    let replay = replayed(&session, &Aim::new(budget, STRATEGIES[0]));
    assert_eq!(replay.requests.last().map(|request| request.folds), Some(1));
    assert!(replay.points.is_empty(), "nothing was condensed");
    // The stub names it.
    assert_eq!(
        (references(&replay), replay.reached),
        (Counts { wanted: 1, kept: 1 }, 1)
    );
}

#[test]
fn what_an_agent_wrote_is_measured_where_it_wrote_it() {
    let mut session = session(vec![
        say("user", "do first_thing"),
        say(
            "assistant",
            &format!("old_one, old_two, {}old_three and old_four", words(20)),
        ),
        say("user", "now kept_name"),
        say("assistant", "kept_name it is"),
        // Folded away: old_one to old_four. Not in question: kept_name and new_name.
        say("user", "old_one, old_two, kept_name, new_name"),
        say("assistant", "old_two and old_three"),
    ]);
    session.compactions.push(Compaction {
        at: 4,
        kept: 2,
        summary: "It was about old_one and old_three, in short.".to_owned(),
    });
    let parsed = ParsedSession::of(&session).expect("messages");
    let compared = compare_agent(&session, &parsed).expect("it has a summary");
    let row = |design: Design| {
        let found = compared.iter().find(|one| one.design == design);
        let one = found.expect("all designs");
        assert!(one.tokens <= compared[0].tokens, "{design:?} is larger");
        let counts = one.scores[Measure::References];
        (counts.wanted, counts.kept)
    };
    // old_two is wanted once: then it is in view again.
    assert_eq!(row(Design::Agent), (3, 2));
    assert_eq!(row(Design::Truncation), (3, 1), "the end of message 2");
    assert_eq!(row(Design::Extractive).0, 3);
    assert_eq!(row(Design::Frequent).0, 3);
}

const COLOURS: [&str; 7] = ["red", "blue", "green", "yellow", "brown", "black", "white"];
const ANIMALS: [&str; 11] = [
    "otter", "heron", "badger", "lynx", "marten", "stork", "beaver", "crane", "vole", "newt",
    "wren",
];

/// A session with tools: files are read, and later spoken of again.
fn with_tools(rounds: usize) -> RecordedSession {
    let mut messages = vec![
        say("system", "You work on repo_main."),
        say("user", "tidy up module_a and module_b"),
    ];
    for round in 0..rounds {
        let file = format!("src/part_{}.rs", round % 7);
        let call = json!({"role": "assistant", "content": format!("Reading {file} for step_{round}"), "tool_calls": [
            {"id": format!("c{round}"), "type": "function", "function": {"name": "read_file", "arguments": json!({"path": file}).to_string()}}]});
        messages.push(call.to_string().into_bytes());
        let body: String = (0..30)
            .map(|line| {
                format!(
                    "fn helper_{}_{line}() {{ value_{} }}\n",
                    round % 11,
                    line * round
                )
            })
            .collect();
        let result = json!({"role": "tool", "tool_call_id": format!("c{round}"), "content": body});
        messages.push(result.to_string().into_bytes());
        let back = round.saturating_sub(8);
        let told = format!(
            "step_{back} had helper_{}_{} in it, like the {} {} and not the {}; see value_{}",
            back % 11,
            round % 30,
            COLOURS[back % 7],
            ANIMALS[back % 11],
            ANIMALS[round % 11],
            3 * back
        );
        messages.push(say("assistant", &told));
        if round % 3 == 0 {
            let asked = format!(
                "what of helper_{}_4 and step_{}?",
                round / 2 % 11,
                round / 2
            );
            messages.push(say("user", &asked));
        }
    }
    session(messages)
}

/// The same measures, computed anew for each message from the whole view.
fn plainly(session: &RecordedSession, aim: &Aim) -> (Vec<(u64, u64)>, Scores) {
    let mut task = Scratch::new().expect("a task");
    let (mut requests, mut scores) = (Vec::new(), Scores::default());
    let mut sent: Vec<u8> = Vec::new();
    for (place, bytes) in session.messages.iter().enumerate() {
        let message = Message::parse(bytes).expect("a message");
        let writer = task.writer().expect("a writer");
        if message.role() == Role::Assistant && place > 0 {
            manage(writer, aim, &mut Extractive, &Hooks::default()).expect("it fits");
            let log = writer.log();
            let view = View::of(log.state().shown(), log).expect("a view");
            let now = log.rendered(&view).expect("bytes");
            let same = sent.iter().zip(&now).take_while(|(a, b)| a == b).count();
            requests.push((now.len() as u64, same as u64));
            sent = now;
        }
        if matches!(message.role(), Role::User | Role::Assistant) {
            let words = MessageText::of(&message);
            let mut vocabulary = TermVocabulary::default();
            let mut used = vocabulary.learn(&words.text);
            used.extend(vocabulary.learn(&words.arguments));
            used.sort_unstable();
            used.dedup();
            let (shown, stand_ins) = in_view(writer.log());
            let earlier: String = session.messages[..place]
                .iter()
                .map(|bytes| all(bytes))
                .collect();
            let [earlier, shown, stand_ins] =
                [earlier, shown, stand_ins].map(|text| vocabulary.find(&text));
            for term in used {
                if earlier.contains(&term) && !shown.contains(&term) {
                    let counts = &mut scores[vocabulary.measure(term)];
                    counts.wanted += 1;
                    counts.kept += u64::from(stand_ins.contains(&term));
                }
            }
        }
        task.push(bytes.clone()).expect("room");
    }
    (requests, scores)
}

fn all(bytes: &[u8]) -> String {
    but(bytes, &[])
}

/// Returns the content of a message without its masked parts.
fn but(bytes: &[u8], masked: &[u32]) -> String {
    let words = MessageText::of(&Message::parse(bytes).expect("a message"));
    let mut text = format!("{}\n{}\n", words.text, words.arguments);
    for (part, given) in words.results {
        if !masked.contains(&part) {
            text += &format!("{given}\n");
        }
    }
    text
}

/// Returns the text that is shown unchanged, and that of stand-ins.
fn in_view(log: &Log) -> (String, String) {
    let (mut shown, mut stand_ins) = (String::new(), String::new());
    let view = View::of(log.state().shown(), log).expect("a view");
    let message = |seq| log.message(seq).expect("a message");
    for piece in view.pieces() {
        match &piece.shows {
            Shows::Verbatim(span) => span.seqs().for_each(|seq| shown += &all(&message(seq))),
            Shows::Round { members, masks, .. } => {
                for seq in members {
                    let masked = masks.iter().filter(|(masked, ..)| masked == seq);
                    let masked: Vec<u32> = masked.map(|(_, part, _)| *part).collect();
                    shown += &but(&message(*seq), &masked);
                }
                for (.., id) in masks {
                    if let What::Mask(mask) = log.event(*id).expect("an event").what {
                        stand_ins += &format!("{}\n", mask.stub);
                    }
                }
            }
            Shows::StandIn(id) | Shows::Note(id) => {
                if let What::Fold(fold) = log.event(*id).expect("an event").what {
                    let texts = fold.stand_in.iter();
                    texts.for_each(|(_, text)| stand_ins += &format!("{text}\n"));
                }
            }
        }
    }
    (shown, stand_ins)
}

#[test]
fn counting_as_it_goes_comes_to_the_same_as_counting_anew() {
    let session = with_tools(22);
    let parsed = ParsedSession::of(&session).expect("messages");
    for strategy in STRATEGIES {
        let aim = aim(4000, strategy);
        let replay = replayed(&session, &aim);
        let name = strategy.name;
        let folds: u64 = replay.requests.iter().map(|request| request.folds).sum();
        for measure in MEASURES {
            let wanted = replay.scores[measure].wanted;
            assert!(folds > 1 && wanted > 3, "{name}: {folds}, {wanted}");
        }
        let requests = replay.requests.iter();
        let requests: Vec<(u64, u64)> = requests
            .map(|request| (request.bytes, request.cached_bytes))
            .collect();
        let plain = plainly(&session, &aim);
        assert_eq!((requests, replay.scores), plain, "{name}");
        let wanted = references(&replay).wanted;
        assert_eq!(replay.reached, wanted, "{name} loses nothing");
        for one in compare(&session, &parsed, &replay.points) {
            let points = replay.points.iter();
            let ours: u64 = points.map(|point| tokens(&point.summary)).sum();
            assert!(one.tokens <= ours, "{name}: {:?} is larger", one.design);
            let counts = one.scores[Measure::References];
            assert!(counts.kept <= counts.wanted && counts.wanted <= wanted);
        }
    }
}

#[test]
fn every_design_is_tried_at_every_size_and_none_is_larger_or_empty() {
    let mut session = with_tools(30);
    session.compactions.push(Compaction {
        at: 60,
        kept: 55,
        summary: words(40),
    });
    let parsed = ParsedSession::of(&session).expect("messages");
    let mut trials = Trials::default();
    trials.add_agent(&session, &parsed, &[100, 300]);
    assert_eq!(
        trials.sizes(),
        [
            SizeLimit::Tokens(100),
            SizeLimit::Tokens(300),
            SizeLimit::Agent
        ]
    );
    for size in trials.sizes() {
        let most = match size {
            SizeLimit::Tokens(tokens) => tokens,
            SizeLimit::Agent => tokens(&words(40)),
        };
        for design in DESIGNS {
            let found: Vec<_> = trials.of(design, size).collect();
            let expected = usize::from(design != Design::Agent || size == SizeLimit::Agent);
            assert_eq!(found.len(), expected, "{design:?} at {size:?}");
            for trial in found {
                assert!(trial.tokens <= most, "{design:?} has {}", trial.tokens);
                let is_bare = matches!(design, Design::Frequent | Design::Names);
                let least = if is_bare { most * 9 / 10 } else { 1 };
                assert!(trial.tokens >= least, "{design:?} has {}", trial.tokens);
            }
        }
    }
    // The words of the agent's summary are of no use, the names are.
    let at = SizeLimit::Agent;
    let mean = |design| {
        trials
            .mean(design, at, Measure::References)
            .map(|m| m.value)
    };
    assert_eq!(mean(Design::Agent), Some(0.0));
    assert!(mean(Design::Frequent) > Some(0.0));
    // The design that looks ahead keeps most, over all measures together.
    let total = |design| -> f64 {
        let means = MEASURES.map(|measure| trials.mean(design, at, measure));
        means.into_iter().flatten().map(|mean| mean.value).sum()
    };
    for design in DESIGNS {
        assert!(total(Design::Oracle) >= total(design), "{design:?}");
    }
    let ratio = trials.ratio(Design::Names, Design::Agent, at, Measure::References);
    assert_eq!(ratio, None, "nothing to divide by");
}

fn tokens(text: &str) -> u64 {
    infold_wire::tokens::count(infold_wire::tokens::Encoding::O200k, text)
}
