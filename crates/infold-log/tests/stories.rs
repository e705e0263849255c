//! The rules of folding, each told as a small conversation.

use infold_log::steer::{self, Refused, Side, Target};
use infold_log::{
    Call, Cause, Event, EventId, Facts, Memory, Pin, Pinned, Role, Seq, Shows, Span, View,
};

/// Plays a story, one entry a line, and returns what is shown at its end.
///
/// Messages: `system`, `user`, `model`, `item` (one of an output) and `tool`, the last three
/// with the ids of calls.
/// A span is shown byte for byte, `(…)` is a round that is not, `[e1]` a stand-in, `{e2}` a
/// note. Refusals follow after a semicolon.
fn view(story: &str) -> String {
    let mut log = Memory::default();
    let mut refused = String::new();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(facts) = message(&words) {
            log.message(&facts, log.state().at().seq);
        } else {
            match event(&log, &words) {
                Ok(event) => drop(log.event(&event, None, 0)),
                Err(error) => refused += &format!("; {error}"),
            }
        }
    }
    let Ok(view) = View::of(log.state().shown(), &log);
    let pieces: Vec<String> = view
        .pieces()
        .iter()
        .map(|piece| show(&piece.shows))
        .collect();
    pieces.join(" ") + &refused
}

fn show(shows: &Shows) -> String {
    match shows {
        Shows::Verbatim(span) => span.to_string(),
        Shows::Round { members, .. } => {
            let members: Vec<String> = members.iter().map(Seq::to_string).collect();
            format!("({})", members.join(" "))
        }
        Shows::StandIn(id) => format!("[{id}]"),
        Shows::Note(id) => format!("{{{id}}}"),
    }
}

fn message(words: &[&str]) -> Option<Facts> {
    let (role, ids) = words.split_first()?;
    let ids = ids.iter().map(|id| Call {
        id: Some((*id).to_owned()),
        name: None,
    });
    let (role, calls, answers) = match *role {
        "system" => (Role::System, vec![], vec![]),
        "user" => (Role::User, vec![], vec![]),
        "model" | "item" => (Role::Assistant, ids.collect(), vec![]),
        "tool" => (Role::Tool, vec![], ids.collect()),
        _ => return None,
    };
    Some(Facts {
        role,
        calls,
        answers,
        links: vec![],
        reasoning: false,
        empty: false,
        item: words[0] == "item",
        tokens: 10,
        bytes: 40,
    })
}

fn event(log: &Memory, words: &[&str]) -> Result<Event, Refused<std::convert::Infallible>> {
    let state = log.state();
    let id = |word: &str| {
        word.trim_start_matches('e')
            .parse()
            .ok()
            .and_then(EventId::new)
    };
    let seq = |word: &str| word.parse().ok().and_then(Seq::new).expect("a seq");
    let target = |word: &str| match word.strip_prefix('e') {
        Some(event) => Target::Event(event.parse().expect("an event")),
        None => Target::Message(word.parse().expect("a seq")),
    };
    match *words {
        ["fold", span] => {
            let span: Span = span.parse().expect("a span");
            let cover = steer::cover(state, span, log)?;
            Ok(steer::folded(Cause::Summary, &cover, 1))
        }
        ["truncate", percent] => {
            let percent: f64 = percent.parse().expect("a number");
            let cover = steer::oldest(state, percent / 100.0, log)?;
            Ok(steer::folded(Cause::Window, &cover, 1))
        }
        ["unfold", fold] => steer::unfold(state, id(fold).expect("a fold"), log),
        ["rewind", to] => steer::rewind(state, Side::To, target(to), log),
        ["before", to] => steer::rewind(state, Side::Before, target(to), log),
        ["undo"] => Ok(steer::undo(state)?.0),
        ["redo"] => Ok(steer::redo(state, log)?.0),
        ["pin", at] => steer::pin(state, seq(at), log),
        ["unpin", at] => steer::unpin(state, Pinned::Message(seq(at)), log),
        ["note"] => Ok(Event::Pin(Pin::Note { tokens: 5 })),
        _ => panic!("{words:?} is no entry"),
    }
}

/// A request, then rounds of a call and its result: 2 3, 4 5, 6 7, 8 9; then words.
const WORK: &str = "
    user
    model a
    tool a
    model b
    tool b
    model c
    tool c
    model d
    tool d
    model
";

fn work(then: &str) -> String {
    view(&(WORK.to_owned() + then))
}

#[test]
fn a_fold_that_cuts_a_round_is_widened() {
    assert_eq!(work("fold 3..4"), "1 [e1] 6..10");
}

#[test]
fn a_fold_that_touches_another_takes_it_whole() {
    assert_eq!(work("fold 4..7\n fold 2..4"), "1 [e2] 8..10");
    assert_eq!(work("fold 2..3\n fold 3..6"), "1 [e2] 8..10");
}

#[test]
fn the_outermost_fold_shows_and_opens_onto_the_inner_one() {
    assert_eq!(work("fold 4..5\n fold 2..7"), "1 [e2] 8..10");
    assert_eq!(work("fold 4..5\n fold 2..7\n unfold e2"), "1..3 [e1] 6..10");
}

#[test]
fn an_inner_fold_is_not_opened_and_the_outer_one_is_named() {
    assert_eq!(
        work("fold 4..5\n fold 2..7\n unfold e1"),
        "1 [e2] 8..10; fold e1 lies inside fold e2"
    );
    assert_eq!(
        work("fold 4..5\n unfold e1\n unfold e1"),
        "1..10; fold e1 is not active"
    );
}

#[test]
fn rewinding_opens_what_was_folded_since() {
    assert_eq!(work("fold 2..7\n rewind 5"), "1..5");
    assert_eq!(work("fold 2..7\n model\n before e1"), "1..10");
}

#[test]
fn a_hidden_branch_can_be_rewound_to() {
    assert_eq!(
        work("fold 2..7\n user\n rewind 3\n user\n rewind 11"),
        "1 [e1] 8..11"
    );
    assert_eq!(work("rewind 3\n user\n rewind 5\n model\n"), "1..5 12");
}

#[test]
fn undoing_a_rewind_hides_what_was_said_since() {
    assert_eq!(work("rewind 3\n user\n model\n undo"), "1..10");
    assert_eq!(work("rewind 3\n user\n model\n undo\n redo"), "1..3 11..12");
}

#[test]
fn undoing_a_fold_keeps_what_was_said_since() {
    assert_eq!(work("fold 2..7\n user\n undo"), "1..11");
}

#[test]
fn steps_are_undone_one_by_one_and_a_message_makes_that_final() {
    assert_eq!(work("fold 2..3\n fold 6..7\n undo\n undo"), "1..10");
    assert_eq!(
        work("fold 2..3\n fold 6..7\n undo\n undo\n redo"),
        "1 [e1] 4..10"
    );
    assert_eq!(
        work("fold 2..3\n undo\n user\n redo"),
        "1..11; nothing to redo"
    );
}

#[test]
fn a_pinned_round_is_shown_right_after_the_stand_in() {
    assert_eq!(work("pin 5\n fold 2..9"), "1 [e2] (4 5) 10");
    assert_eq!(work("fold 2..9\n pin 4\n unpin 5"), "1 [e1] 10");
    assert_eq!(
        work("pin 4\n fold 4..5"),
        "1..10; nothing to fold: everything in that range is pinned"
    );
}

#[test]
fn a_note_follows_the_first_request() {
    assert_eq!(work("note\n fold 2..9"), "1 {e1} [e2] 10");
}

#[test]
fn the_system_prompt_and_the_first_request_are_never_hidden() {
    let story = "system\n user\n model\n user\n model\n";
    assert_eq!(view(&format!("{story} fold 1..4")), "1..2 [e1] 5");
    assert_eq!(
        view(&format!("{story} fold 1..2")),
        "1..5; nothing to fold: the system prompt and the first request are always shown"
    );
}

#[test]
fn the_stand_in_follows_the_first_request_even_if_others_spoke_before_it() {
    assert_eq!(
        view("system\n model\n user\n model\n user\n fold 2..4"),
        "1 3 [e1] 5"
    );
}

#[test]
fn a_round_pinned_before_the_first_request_stays_before_it() {
    assert_eq!(
        view("system\n model\n user\n model\n user\n pin 2\n fold 2..4"),
        "1 (2) 3 [e2] 5"
    );
}

#[test]
fn an_interrupted_round_is_repaired_also_when_a_fold_follows() {
    let story = "user\n model a\n user\n model\n user\n model\n";
    assert_eq!(view(story), "1 (2) 3..6");
    assert_eq!(view(&format!("{story} fold 3..4")), "1 (2) [e1] 5..6");
}

#[test]
fn a_round_that_waits_is_not_folded() {
    assert_eq!(
        view("user\n model\n model a b\n tool a\n fold 2..4"),
        "1..4; the round that starts at message 3 still waits for 1 tool result(s)"
    );
}

#[test]
fn truncation_hides_the_oldest_rounds_behind_one_marker() {
    assert_eq!(work("truncate 50"), "1 [e1] 6..10");
    assert_eq!(
        work("truncate 50\n user\n model\n truncate 50"),
        "1 [e2] 8..12"
    );
}

#[test]
fn a_summary_goes_last() {
    assert_eq!(work("fold 2..3\n truncate 50"), "1 [e1] [e2] 6..10");
    let all = "fold 2..3\n truncate 100\n";
    assert_eq!(work(all), "1 [e1] [e2] 10");
    assert_eq!(
        work(&format!("{all} user\n model\n truncate 100")),
        "1 [e1] [e3] 12"
    );
}

#[test]
fn truncation_counts_no_pinned_round_as_gain() {
    assert_eq!(
        work("pin 4\n truncate 40\n truncate 40"),
        "1 [e3] (4 5) 8..10"
    );
}

#[test]
fn truncation_leaves_the_last_round() {
    assert_eq!(
        view("user\n model a\n tool a\n truncate 100"),
        "1..3; nothing to fold: only the system prompt, the first request, pins, stand-ins and the last round are visible"
    );
}

/// A request, an output of three items with two results, and the next output.
const ITEMS: &str = "
    user
    item
    item a
    item b
    tool b
    tool a
    item
    item
";

#[test]
fn items_of_one_output_are_shown_and_hidden_together() {
    let items = |then: &str| view(&(ITEMS.to_owned() + then));
    assert_eq!(items("fold 3"), "1 [e1] 7..8");
    assert_eq!(items("pin 4\n fold 2..8"), "1 [e2] (2 3 4 5 6)");
    assert_eq!(items("rewind 3\n item c\n user"), "1 (2 3 9) 10");
    assert_eq!(items("rewind 3\n tool a\n item\n fold 2"), "1 [e2] 10");
}

/// Else the fold that comes back would hide half of it.
#[test]
fn an_item_does_not_join_an_output_that_a_step_stands_behind() {
    let story = "user\n item\n fold 2\n unfold e1\n item\n";
    assert_eq!(view(story), "1..3");
    assert_eq!(view(&(story.to_owned() + "undo")), "1 [e1] 3");
    assert_eq!(view("user\n item\n pin 1\n item\n fold 2"), "1 [e2] 3");
}

#[test]
fn an_item_does_not_join_an_output_that_is_folded() {
    let story = "user\n item\n item\n fold 2\n item\n item\n";
    assert_eq!(view(story), "1 [e1] 4..5");
    assert_eq!(view(&(story.to_owned() + "fold 4")), "1 [e1] [e2]");
    assert_eq!(
        view(&(story.to_owned() + "unfold e1\n fold 4")),
        "1..3 [e3]"
    );
}
