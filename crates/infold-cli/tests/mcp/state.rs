//! Tools with which a model reads and changes the state of its task.

use serde_json::json;

use crate::client::{Client, Piped, Served};
use crate::{chat, home, session, shown};

#[test]
fn a_model_sets_its_phase_its_memory_and_its_plan() {
    let home = home();
    home.config("serve:\n  mcp_write: true\n");
    home.tell("state T1 set goal 'raise the pool'\nstate T1 set policies 'no panics'");
    let mut piped = Piped::start(&home, "--write");
    let mut served = Served::start(&home, "");
    let mut texts = Vec::new();
    let calls = [
        ("set_phase", json!({"phase": "planning"})),
        (
            "remember",
            json!({"text": "the limit is 4711", "source": "src/pool.rs"}),
        ),
        (
            "remember",
            json!({"text": "the limit is 4711", "source": "src/pool.rs"}),
        ),
        (
            "remember",
            json!({"text": "raise it to 9000", "kind": "decision"}),
        ),
        (
            "remember",
            json!({"text": "9000", "kind": "variable", "name": "limit"}),
        ),
        ("set_plan", json!({"steps": ["raise it", "test it"]})),
        ("mark_step", json!({"step": 1})),
        ("mark_step", json!({"step": "2", "status": "doing"})),
        (
            "set_plan",
            json!({"steps": ["raise it", "measure it", "test it"]}),
        ),
        ("set_phase", json!({"phase": "executing"})),
        ("get_state", json!({"field": "decision"})),
        ("get_state", json!({"field": "measurements"})),
        ("get_state", json!({})),
    ];
    // Both transports write to one task in turn.
    for (at, (tool, arguments)) in calls.into_iter().enumerate() {
        let client = if at % 2 == 0 {
            &mut piped as &mut dyn Client
        } else {
            &mut served
        };
        let said = shown(&home, client.call(tool, arguments.clone()));
        texts.push(format!("> {tool} {arguments}\n{said}"));
    }
    insta::assert_snapshot!(texts.join("\n"), @r###"
    > set_phase {"phase":"planning"}
    e5: changed runtime.phase; view 65 → 65 tokens

    > remember {"source":"src/pool.rs","text":"the limit is 4711"}
    e6: changed memory.semantic.facts; view 65 → 65 tokens

    > remember {"source":"src/pool.rs","text":"the limit is 4711"}
    it is remembered already, in memory.semantic.facts

    > remember {"kind":"decision","text":"raise it to 9000"}
    e7: changed memory.episodic.decisions; view 65 → 65 tokens

    > remember {"kind":"variable","name":"limit","text":"9000"}
    e8: changed memory.short_term.working_variables; view 65 → 65 tokens

    > set_plan {"steps":["raise it","test it"]}
    e9: changed work.plan; view 65 → 65 tokens
    work.plan
      1 raise it [status: pending]
      2 test it [status: pending]

    > mark_step {"step":1}
    e10: changed work.plan; view 65 → 65 tokens
    work.plan
      1 raise it [status: completed]
      2 test it [status: pending]

    > mark_step {"status":"doing","step":"2"}
    e11: changed work.plan; view 65 → 65 tokens
    work.plan
      1 raise it [status: completed]
      2 test it [status: in_progress]

    > set_plan {"steps":["raise it","measure it","test it"]}
    e12: changed work.plan; view 65 → 65 tokens
    work.plan
      1 raise it [status: completed]
      2 measure it [status: pending]
      3 test it [status: in_progress]

    > set_phase {"phase":"executing"}
    e13: changed runtime.phase; view 65 → 65 tokens

    > get_state {"field":"decision"}
    memory.episodic.decisions
      1 raise it to 9000

    > get_state {"field":"measurements"}
    evidence.measurements is empty

    > get_state {}
    system.policies
      1 no panics
    task.goal
      raise the pool
    runtime.phase
      executing
    memory.short_term.working_variables
      1 9000 [name: limit]
    memory.episodic.decisions
      1 raise it to 9000
    memory.semantic.facts
      1 the limit is 4711 [source: src/pool.rs]
    work.plan
      1 raise it [status: completed]
      2 measure it [status: pending]
      3 test it [status: in_progress]
    "###);
    // None of these changes is a step: undo affects the user's newest one.
    let undone = home.tell("undo T1\nstate T1 get policies\nstate T1 get facts");
    assert!(undone.contains("system.policies is empty"), "{undone}");
    assert!(undone.contains("the limit is 4711"), "{undone}");
}

#[test]
fn what_a_model_may_not_change_is_refused_in_words() {
    let home = home();
    home.config("serve:\n  mcp_write: true\nlayers:\n  transitions:\n    planning: [verifying]\n");
    home.tell("state T1 set phase planning");
    let before = home.tell("state T1 get");
    let long = "x".repeat(4001);
    let many = vec!["step"; 101];
    let refusals = [
        (
            "set_phase",
            json!({"phase": "exekuting"}),
            "did you mean `executing`?",
        ),
        (
            "set_phase",
            json!({"phase": "executing"}),
            "what may follow: verifying",
        ),
        ("set_phase", json!({}), "`phase` is missing"),
        (
            "set_phase",
            json!({"phase": "planning", "environment": "dev"}),
            "no argument `environment`; it takes phase, task",
        ),
        (
            "remember",
            json!({"text": "all is allowed", "kind": "policy"}),
            "`system.policies` is set by a person, not by a model; ask the user",
        ),
        (
            "remember",
            json!({"text": "another", "kind": "goal"}),
            "`task.goal` is set by a person",
        ),
        (
            "remember",
            json!({"text": "admin", "kind": "permissions"}),
            "`runtime.permissions` is set by a person",
        ),
        (
            "remember",
            json!({"text": "dev", "kind": "environment"}),
            "`runtime.environment` is set by a person",
        ),
        (
            "remember",
            json!({"text": "seen", "kind": "observation"}),
            "`evidence.observations` is set by a person",
        ),
        (
            "remember",
            json!({"text": "x", "kind": "decison"}),
            "did you mean `decision`?",
        ),
        (
            "remember",
            json!({"text": "x", "kind": "poem"}),
            "`kind` is one of fact, decision",
        ),
        ("remember", json!({"text": " "}), "`text` is empty"),
        (
            "remember",
            json!({"text": long}),
            "more than 4000 characters",
        ),
        (
            "remember",
            json!({"text": "x", "kind": "definition", "source": "a book"}),
            "a definition has no `source`",
        ),
        (
            "remember",
            json!({"text": "x", "kind": "variable"}),
            "a variable needs a `name`",
        ),
        (
            "mark_step",
            json!({"step": 1}),
            "there is no plan; set_plan makes one",
        ),
        ("mark_step", json!({"step": 0}), "`step` must be"),
        ("set_plan", json!({"steps": [1]}), "must be a list of texts"),
        ("set_plan", json!({"steps": ["a", ""]}), "`steps` is empty"),
        (
            "set_plan",
            json!({"steps": many}),
            "101 steps, more than 100",
        ),
        (
            "get_state",
            json!({"field": "fcts"}),
            "did you mean `facts`?",
        ),
        ("get_state", json!({"from": 3}), "`from` counts the items"),
    ];
    let mut piped = Piped::start(&home, "--write");
    let mut served = Served::start(&home, "");
    for client in [&mut piped as &mut dyn Client, &mut served] {
        for (tool, arguments, wanted) in &refusals {
            let said = client.call(tool, arguments.clone());
            let said = said.expect_err(&format!("{tool} {arguments}"));
            assert!(said.contains(wanted), "{tool} {arguments}: {said}");
        }
    }
    piped
        .call("set_plan", json!({"steps": ["one"]}))
        .expect("a plan");
    for (arguments, wanted) in [
        (json!({"step": 2}), "has 1 items, and no item 2"),
        (
            json!({"step": 1, "status": "compleeted"}),
            "did you mean `completed`?",
        ),
    ] {
        let said = piped
            .call("mark_step", arguments)
            .expect_err("no such step or status");
        assert!(said.contains(wanted), "{said}");
    }
    piped
        .call("set_phase", json!({"phase": "verifying"}))
        .expect("it is configured");
    home.tell("state T1 set phase planning\nstate T1 set plan");
    assert_eq!(home.tell("state T1 get"), before);
    // Without --write the state is only read.
    let said = Piped::start(&home, "").call("set_phase", json!({"phase": "verifying"}));
    assert!(said.expect_err("it only reads").contains("only reads"));
}

#[test]
fn a_long_state_is_read_in_pieces() {
    let home = home();
    let mut yaml = "memory:\n  semantic:\n    facts:\n".to_owned();
    for at in 1..=60 {
        yaml += &format!("      - fact {at} {}\n", "word ".repeat(100));
    }
    home.file("state.yaml", yaml);
    home.tell("state T1 load state.yaml");
    let mut piped = Piped::start(&home, "");
    let first = piped.call("get_state", json!({})).expect("a state");
    let (_, rest) = first
        .split_once("… cut; the rest: `field` facts, `from` ")
        .expect("it is cut");
    let next: u64 = rest.trim().parse().expect("a number");
    assert!(
        first.contains(&format!("  {} fact {} ", next - 1, next - 1)),
        "{next}"
    );
    assert!(!first.contains(&format!("fact {next} ")));
    let more = piped.call("get_state", json!({"field": "facts", "from": next}));
    let more = more.expect("the rest");
    assert!(more.contains(&format!("  {next} fact {next} ")), "{more}");
}

#[test]
fn the_state_of_the_calling_conversation_is_changed() {
    let home = home();
    let dir = home.path().display().to_string();
    let arguments = json!({"steps": ["raise it", "test it"]});
    let mut messages = chat("Other work", "the limit there is 1234");
    messages.push(json!({"role": "user", "content": "plan it"}));
    messages.push(
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c2",
        "name": "mcp__infold__set_plan", "input": arguments}]}),
    );
    home.file("two.jsonl", session(&dir, "two", &messages));
    home.tell("import two.jsonl");
    let mut piped = Piped::start(&home, "--write");
    piped.call("set_plan", arguments).expect("its own");
    let plans = home.tell("state T1 get plan\nstate T2 get plan");
    let (own, other) = (plans.find("test it"), plans.find("is empty"));
    assert!(own.is_some() && other < own, "{plans}");
}
