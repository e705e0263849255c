//! Every constraint of the request being worked on stays in view, turn by turn, however often it is folded.

mod common;

use common::*;

const CONSTRAINTS: usize = 20;

/// Returns the subject of a constraint, and its text in one form.
fn constraint(form: &str, number: usize) -> String {
    let things = [
        "the export",
        "the login page",
        "the scheduler",
        "the retry queue",
        "the audit log",
        "the price table",
        "the search box",
        "the upload form",
        "the mail sender",
        "the session store",
    ];
    let verbs = [
        "must finish within",
        "may not take more than",
        "has to stay below",
        "should use at most",
    ];
    let (thing, verb) = (things[number % things.len()], verbs[number % verbs.len()]);
    let value = 137 + 41 * number;
    match form {
        "list" => format!(
            "{}. {thing} {verb} {value} ms for case {number}",
            number + 1
        ),
        "prose" => format!(
            "For case {number} I want {thing} to keep to {value} milliseconds, since that is what we agreed with them."
        ),
        "german" => format!(
            "- Im Fall {number} darf die Anfrage höchstens {value} ms dauern und nie abbrechen."
        ),
        "chinese" => format!(
            "{}、第{number}种情况下响应时间不得超过{value}毫秒，也不能丢数据。",
            number + 1
        ),
        _ => format!("- src/part{number}.rs: never more than {value} lines, no new dependency"),
    }
}

/// A result with few repetitions, like those of real tools.
fn result(at: usize) -> String {
    let parts = [
        "parser", "engine", "cache", "router", "worker", "writer", "index", "lexer", "buffer",
        "socket",
    ];
    let line = |line: usize| {
        let pick = |by: usize| parts[(at * by + line * (by + 2)) % parts.len()];
        format!(
            "{}: fn {}_{}_{}(value: {}) -> Result<{}> // {} of {}",
            line + 1,
            pick(3),
            pick(5),
            at * 31 + line,
            pick(7),
            pick(2),
            pick(11),
            at * line + 7
        )
    };
    (0..60).map(line).collect::<Vec<_>>().join("\\n")
}

#[test]
fn no_constraint_of_the_request_being_worked_on_is_lost() {
    for form in ["list", "prose", "german", "chinese", "paths"] {
        for window in [16_000, 32_000] {
            let mut task = task();
            say(
                &mut task,
                "user",
                "Have a look at the project and tell me what it does.",
            );
            call(&mut task, 0, &result(0));
            say(
                &mut task,
                "assistant",
                "It is a server for bookings with a queue and an audit log.",
            );
            let constraints: Vec<String> = (0..CONSTRAINTS)
                .map(|number| constraint(form, number))
                .collect();
            let request = format!(
                "Now rework it. Keep to all of this:\\n{}",
                constraints.join("\\n")
            );
            say(&mut task, "user", &request);
            let (aim, mut passes) = (aim(window), 0);
            for at in 1..120 {
                call(&mut task, at, &result(at));
                passes += usize::from(managed(&mut task, &aim).folds().next().is_some());
                let view = shown(&task).join("\n");
                let lost: Vec<&String> = constraints
                    .iter()
                    .filter(|one| !view.contains(*one))
                    .collect();
                assert!(
                    lost.is_empty(),
                    "{form}, {window}, after {passes} passes: {lost:?}"
                );
            }
            assert!(passes > 3, "{form}, {window}: {passes} passes");
        }
    }
}
