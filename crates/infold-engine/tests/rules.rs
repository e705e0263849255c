//! Rules of a pass that hold for any conversation.

mod common;

use common::*;
use infold::summarizer::Extractive;
use infold::{Aim, Hooks, ManageError, PassAction, STRATEGIES, manage, rehearse};
use infold_log::plan::FloorSize;
use infold_log::{Due, View};
use proptest::prelude::*;

fn bytes_of(task: &infold::Scratch) -> u64 {
    let log = task.log();
    let view = View::of(log.state().shown(), log).expect("a log");
    log.view_bytes(&view).expect("a view")
}

fn in_bytes(most: u64, strategy: usize) -> Aim {
    Aim::new(budget(1_000_000, Some(most)), STRATEGIES[strategy])
}

#[test]
fn too_many_bytes_are_condensed_like_too_many_tokens() {
    let mut task = chat(300, 40);
    let outcome = managed(&mut task, &in_bytes(20_000, 0));
    assert_eq!(
        (outcome.action, outcome.due),
        (PassAction::Condensed, Some(Due::Bytes)),
        "{outcome:?}"
    );
    assert!(bytes_of(&task) <= 12_000, "{outcome:?}");
    assert!(
        bytes_of(&task) >= 4_000,
        "no more than is needed: {outcome:?}"
    );
}

#[test]
fn more_bytes_than_the_floor_has_are_enough_for_every_strategy() {
    for (at, strategy) in STRATEGIES.iter().enumerate() {
        let mut task = chat(300, 40);
        let outcome = managed(&mut task, &in_bytes(4_000, at));
        assert!(bytes_of(&task) <= 4_000, "{}: {outcome:?}", strategy.name);
        assert!(outcome.fits);
    }
}

#[test]
fn a_byte_limit_below_the_floor_is_refused_with_its_parts() {
    let mut task = chat(30, 40);
    let writer = task.writer().expect("a task");
    let aim = in_bytes(400, 0);
    let error = manage(writer, &aim, &mut Extractive, &Hooks::default());
    let Err(ManageError::Floor { floor }) = error else {
        panic!("{error:?}");
    };
    let parts: u64 = floor.parts.iter().map(|(_, size)| size).sum();
    assert_eq!(floor.bytes, Some((parts, 400)), "{floor}");
    assert_eq!(task.log().state().at().event, 0, "nothing was folded");
}

#[test]
fn a_hook_that_fails_afterwards_does_not_make_the_next_pass_wait() {
    let mut task = chat(200, 40);
    let hooks = Hooks {
        after_fold: Some("exit 3".to_owned()),
        ..Hooks::default()
    };
    // Folded because of the threshold alone, which is the case in which passes wait.
    let aim = Aim::new(budget_at(60_000, 10.0), STRATEGIES[0]);
    let writer = task.writer().expect("a task");
    let outcome = manage(writer, &aim, &mut Extractive, &hooks).expect("it fits");
    assert_eq!(
        (outcome.action, outcome.errors.len()),
        (PassAction::Condensed, 1)
    );
    for at in 0..30 {
        say(&mut task, "user", &words(200, at));
    }
    assert_eq!(managed(&mut task, &aim).action, PassAction::Condensed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Within both budgets, or the floor is not and nothing was folded; a rehearsal says the same.
    #[test]
    fn a_view_comes_within_its_bytes_or_the_floor_does_not(
        turns in prop::collection::vec((1..60_usize, 1..400_usize), 1..40),
        most in 300..60_000_u64,
        strategy in 0..STRATEGIES.len(),
    ) {
        let mut task = task();
        for (at, (said, read)) in turns.iter().enumerate() {
            say(&mut task, "user", &words(*said, at));
            call(&mut task, at, &words(*read, at));
            say(&mut task, "assistant", &words(*said, at + 1));
        }
        let aim = in_bytes(most, strategy);
        let log = task.log();
        let floor = FloorSize::of(log.state(), log).expect("a floor").total().bytes;
        let rehearsed = rehearse(log, &aim, &mut Extractive);
        let before = log.state().shown().clone();
        let writer = task.writer().expect("a task");
        match manage(writer, &aim, &mut Extractive, &Hooks::default()) {
            Ok(outcome) => {
                prop_assert!(bytes_of(&task) <= most, "{outcome:?}");
                prop_assert!(outcome.fits);
            }
            Err(ManageError::Floor { .. }) => {
                prop_assert_eq!(&before, task.log().state().shown());
                // A marker has to fit, too.
                prop_assert!(floor + 400 > most, "{} of {}", floor, most);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
        if floor > most {
            prop_assert!(rehearsed.is_err());
        }
    }
}
