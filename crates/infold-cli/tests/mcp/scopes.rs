//! The conversations that a client sees.

use serde_json::json;

use crate::client::{Client, Piped, Served};
use crate::{chat, home, session};

#[test]
fn only_the_tasks_of_the_directory_are_served() {
    let home = home();
    home.file(
        "two.jsonl",
        session(
            "/elsewhere",
            "two",
            &chat("Other work", "the limit there is 1234"),
        ),
    );
    home.tell("import two.jsonl");
    let (own, other) = (home.task("T1"), home.task("T2"));
    let mut piped = Piped::start(&home, "");
    let listed = piped.call("list_conversations", json!({})).expect("a list");
    assert!(
        listed.contains(&own[..8]) && !listed.contains(&other[..8]),
        "{listed}"
    );
    let found = piped
        .call("search_history", json!({"query": "limit", "task": "all"}))
        .expect("hits");
    assert!(
        found.contains("4711") || found.contains("[limit]"),
        "{found}"
    );
    assert!(!found.contains("1234"), "{found}");
    let refused = piped
        .call("recall", json!({"range": "1", "task": other}))
        .expect_err("out of scope");
    assert!(
        refused.contains("this server shows the conversations of"),
        "{refused}"
    );
    let uri = format!("infold://tasks/{other}");
    assert!(piped.request("resources/read", json!({"uri": uri}))["error"].is_object());
    // A fold of another task is not found in this one.
    home.tell("condense T2 2..3 --text summary.md");
    for flags in ["--all", "--task T2", "--dir /elsewhere"] {
        let mut piped = Piped::start(&home, flags);
        let text = piped
            .call("recall", json!({"range": "e2", "task": other[..6]}))
            .expect("the fold");
        assert!(text.contains("1234"), "{flags}: {text}");
    }
    let mut served = Served::start(&home, "");
    assert!(
        served
            .call("list_conversations", json!({}))
            .expect("a list")
            .contains(&other[..8])
    );
    for (query, is_seen) in [
        (format!("task={}", &other[..8]), true),
        ("dir=%2Felsewhere".to_owned(), true),
        ("dir=/nowhere".to_owned(), false),
        ("task=ffff".to_owned(), false),
    ] {
        served.path = format!("/infold/mcp?{query}");
        let text = served.call("view", json!({}));
        assert_eq!(
            text.is_ok_and(|text| text.contains("Other work")),
            is_seen,
            "{query}"
        );
    }
    for (query, wanted) in [
        ("user=me".to_owned(), "nothing else"),
        (format!("task={other}&dir=/elsewhere"), "not both"),
        (format!("dir=/elsewhere&task={other}"), "not both"),
        (format!("task={own}&task={other}"), "one `task`"),
    ] {
        served.path = format!("/infold/mcp?{query}");
        let answer = served.request("tools/call", json!({"name": "view"}));
        assert_eq!(answer["error"]["code"], -32602, "{query}: {answer}");
        let text = answer["error"]["message"].as_str().expect("a text");
        assert!(text.contains(wanted), "{query}: {text}");
    }
}

#[test]
fn nothing_is_said_of_tasks_outside_the_scope() {
    let home = home();
    let dir = home.path().display().to_string();
    for (name, cwd) in [
        ("two", "/elsewhere"),
        ("three", dir.as_str()),
        ("four", "/elsewhere"),
    ] {
        let file = format!("{name}.jsonl");
        let said = chat(&format!("Work {name}"), "the limit there is 1234");
        home.file(&file, session(cwd, name, &said));
        home.tell(&format!("import {file}"));
    }
    let outside = [home.task("T2"), home.task("T4")];
    let inside = [home.task("T3"), home.task("T1")];
    let mut piped = Piped::start(&home, "");
    // The beginning of a task outside is as unknown as that of none.
    for name in ["ffff", "@3", &outside[0][..4], &outside[1]] {
        for (tool, arguments) in [
            ("recall", json!({"range": "1", "task": name})),
            ("search_history", json!({"query": "limit", "task": name})),
        ] {
            let said = piped.call(tool, arguments).expect_err("out of scope");
            let said = said.replace(&format!("`{name}`"), "");
            for task in &outside {
                assert!(!said.contains(&task[..8]), "{tool} {name}: {said}");
            }
        }
    }
    // `@2` is the second of those in scope.
    for (at, task) in ["@", "@2"].iter().zip(&inside) {
        let found = piped.call("search_history", json!({"query": "limit", "task": at}));
        let found = found.expect("hits");
        assert!(found.contains(&task[..8]), "{at}: {found}");
    }
    // Nor if the only task in scope was removed.
    let mut piped = Piped::start(&home, &format!("--task {}", inside[0]));
    home.tell("task delete T3 --yes");
    let said = piped.call("view", json!({})).expect_err("it is gone");
    assert!(said.contains("nothing is recorded of"), "{said}");
    for task in outside.iter().chain(&inside[1..]) {
        assert!(!said.contains(&task[..8]), "{said}");
    }
}

#[test]
fn where_there_are_several_one_has_to_be_named() {
    let home = home();
    let dir = home.path().display().to_string();
    home.file(
        "two.jsonl",
        session(&dir, "two", &chat("Other work", "the limit there is 1234")),
    );
    home.tell("import two.jsonl");
    let mut piped = Piped::start(&home, "");
    let refused = piped
        .call("recall", json!({"range": "1"}))
        .expect_err("which one?");
    assert!(
        refused.contains("which conversation?") && refused.contains("Other work"),
        "{refused}"
    );
    let found = piped
        .call("search_history", json!({"query": "limit"}))
        .expect("hits");
    assert!(found.contains("1234") && found.contains("4711"), "{found}");
    let mut newest = Piped::start(&home, "--task @");
    assert!(newest.call("recall", json!({"range": "1"})).is_ok());
}

#[test]
fn the_calling_conversation_is_recognised() {
    let home = home();
    let dir = home.path().display().to_string();
    let mut messages = chat("Other work", "the limit there is 1234");
    messages.push(json!({"role": "user", "content": "What was the limit?"}));
    messages.push(
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c9",
        "name": "mcp__infold__search_history", "input": {"query": "limit", "limit": 3}}]}),
    );
    home.file("two.jsonl", session(&dir, "two", &messages));
    home.tell("import two.jsonl");
    for flags in ["", "--all", "--dir /nowhere"] {
        let mut piped = Piped::start(&home, flags);
        let own = piped
            .call("search_history", json!({"query": "limit", "limit": 3}))
            .expect("hits");
        assert!(
            own.contains("1234") && !own.contains("4711"),
            "{flags}: {own}"
        );
        // The question itself is no answer.
        assert!(!own.contains("What was"), "{own}");
    }
    // Another call is not its own.
    let found = Piped::start(&home, "")
        .call("search_history", json!({"query": "limit", "limit": 4}))
        .expect("hits");
    assert!(found.contains("1234") && found.contains("4711"), "{found}");
}

#[test]
fn tasks_that_ended_are_read_and_not_written() {
    let home = home();
    home.tell("task complete T1");
    let mut piped = Piped::start(&home, "--write");
    assert!(
        piped
            .call("recall", json!({"range": "3"}))
            .expect("it is read")
            .contains("4711")
    );
    assert!(
        piped
            .call("search_history", json!({"query": "4711"}))
            .expect("it is found")
            .contains("hidden behind")
    );
    let refused = piped
        .call("note", json!({"text": "late"}))
        .expect_err("it ended");
    assert!(refused.contains("has ended (completed)"), "{refused}");
    home.tell("task delete T1 --yes");
    let gone = piped
        .call("recall", json!({"range": "3", "task": home.task("T1")}))
        .expect_err("it is gone");
    assert!(gone.contains("deleted"), "{gone}");
    let gone = piped.call("view", json!({})).expect_err("it is gone");
    assert!(gone.contains("nothing is recorded of"), "{gone}");
}

#[test]
fn a_task_that_a_server_holds_is_written_all_the_same() {
    let home = home();
    home.config("serve:\n  mcp_write: true\n");
    let mut served = Served::start(&home, "");
    let mut piped = Piped::start(&home, "--write");
    for at in 0..3 {
        served
            .call("note", json!({"text": format!("served {at}")}))
            .expect("it is noted");
        piped
            .call("note", json!({"text": format!("piped {at}")}))
            .expect("it is noted");
    }
    let view = piped.call("view", json!({})).expect("a view");
    for at in 0..3 {
        assert!(
            view.contains(&format!("served {at}")) && view.contains(&format!("piped {at}")),
            "{view}"
        );
    }
}

#[test]
fn a_directory_without_tasks_says_so() {
    let home = crate::common::Home::new();
    let mut piped = Piped::start(&home, "");
    for (tool, arguments) in [
        ("list_conversations", json!({})),
        ("view", json!({})),
        ("search_history", json!({"query": "x"})),
    ] {
        let said = piped.call(tool, arguments).expect_err("there is nothing");
        assert!(
            said.contains("nothing is recorded of the conversations of"),
            "{said}"
        );
    }
    assert!(!home.contexts().exists(), "reading makes nothing");
}

#[test]
fn earlier_searches_are_not_found_again() {
    let home = home();
    let echo = "message 3 of 12345678: the limit of the pool is 4711";
    let call = |id: &str, name: &str| json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": {"query": "pool limit"}}]});
    let result = |id: &str, text: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]});
    let lines = [
        json!({"role": "user", "content": "Search twice"}),
        call("s1", "mcp__infold__search_history"),
        result("s1", echo),
        call("s2", "Grep"),
        result("s2", "src/pool.rs: pool limit"),
        json!({"role": "assistant", "content": "Found."}),
    ];
    home.file("more.jsonl", lines.map(|line| format!("{line}\n")).concat());
    home.tell("task push T1 more.jsonl");
    let found = Piped::start(&home, "")
        .call("search_history", json!({"query": "pool limit"}))
        .expect("hits");
    let hits: Vec<&str> = found
        .lines()
        .filter_map(|line| line.strip_prefix("message ")?.split(' ').next())
        .collect();
    assert!(!hits.contains(&"8") && !hits.contains(&"9"), "{found}");
    assert!(
        hits.contains(&"3") && hits.contains(&"10") && hits.contains(&"11"),
        "{found}"
    );
}
