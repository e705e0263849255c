//! Facts of 20 kinds, stated early and asked for late: recall shows the ones that no summary holds.

use infold::recall::RecallLimits;
use infold::{Aim, Strategy};
use infold_eval::{FactPlace, ParsedSession, PlantedResult, RecordedSession, plant_facts, replay};
use infold_log::{Budget, Limits};
use serde_json::json;

/// Talk of about 30,000 tokens that has nothing to do with the facts.
fn work() -> RecordedSession {
    let mut session = RecordedSession::default();
    for turn in 0..120 {
        for role in ["user", "assistant"] {
            let text = format!(
                "step_{turn} of part_{}: {}",
                turn % 9,
                "and so it goes on ".repeat(24)
            );
            let message = json!({"role": role, "content": text}).to_string();
            session.messages.push(message.into_bytes());
        }
    }
    session
}

fn found(results: &[PlantedResult]) -> usize {
    results.iter().filter(|one| one.is_in_request).count()
}

#[test]
fn planted_facts_are_in_the_request_that_asks_for_them() {
    let window = 16_000;
    let limits = Limits {
        window,
        threshold: Some(75.0),
        ..Limits::default()
    };
    let off = Aim::new(Budget::new(limits).expect("room"), Strategy::default());
    let auto = Aim {
        recall: Some(RecallLimits::of_window(window)),
        ..off.clone()
    };
    let work = [work()];
    for place in [FactPlace::Answered, FactPlace::Result] {
        let plant = |aim| plant_facts(&work, aim, 20_000, place).expect("replayed");
        let (without, with) = (plant(&off), plant(&auto));
        let lost: Vec<&str> = with
            .iter()
            .filter(|one| !one.is_in_request)
            .map(|one| one.kind)
            .collect();
        assert!(found(&with) >= found(&without), "{place:?}");
        assert!(found(&with) >= 18, "{place:?}: lost {lost:?}");
    }
}

/// A session whose user repeatedly asks for old statements.
fn questions() -> RecordedSession {
    let mut session = RecordedSession::default();
    let mut push = |role: &str, text: &str| {
        let message = json!({"role": role, "content": text}).to_string();
        session.messages.push(message.into_bytes());
    };
    for turn in 0..80 {
        let lines: Vec<String> = (0..30)
            .map(|row| {
                format!(
                    "limit_{turn}_{row} slows worker number {} down at night",
                    turn * 30 + row
                )
            })
            .collect();
        push(
            "user",
            &format!("Here is table {turn}:\n{}", lines.join("\n")),
        );
        push("assistant", "Thanks, that table helps.");
        let asked = turn / 3;
        push("user", &format!("Whom does limit_{asked}_7 slow down?"));
        push(
            "assistant",
            &format!(
                "limit_{asked}_7 slows worker number {} down.",
                asked * 30 + 7
            ),
        );
    }
    session
}

#[test]
fn replays_with_and_without_recall_are_asked_for_the_same() {
    let session = questions();
    let parsed = ParsedSession::of(&session).expect("messages");
    let limits = Limits {
        window: 16_000,
        threshold: Some(75.0),
        ..Limits::default()
    };
    let off = Aim::new(Budget::new(limits).expect("room"), Strategy::default());
    let auto = Aim {
        recall: Some(RecallLimits::of_window(16_000)),
        ..off.clone()
    };
    let [without, with] = [&off, &auto]
        .map(|aim| replay(&session, &parsed, aim, None, &mut || {}).expect("replayed"));
    assert_eq!(without.content.wanted, with.content.wanted);
    assert_eq!(without.used_again.wanted, with.used_again.wanted);
    assert!(without.content.lost() > 10, "{:?}", without.content);
    assert_eq!(without.content.recalled, 0);
    assert!(
        with.content.lost() * 3 < with.content.wanted - with.content.in_view,
        "{:?}",
        with.content
    );
}
