//! The tools that a model may see, and its refused calls.

mod common;

use common::Home;
use infold_store::{Contexts, Durability, RefusalLine, ToolsShownLine};
use infold_testkit::{Answer, Model, Script, Server, Step};
use infold_wire::Wire;
use insta::assert_snapshot;
use serde_json::json;

const EXAMPLE: &str = "\
tools:
  permissions: [read, write, execute]
  tools:
    search: {priority: 80, permissions: [search]}
    readFile: {priority: 90}
    writeFile: {priority: 85}
    deleteFile: {priority: 50, permissions: [admin], schema: {type: object, properties: {path: {type: string}}, required: [path]}}
    execute: {priority: 70, schema: {type: object, properties: {command: {type: string}}, required: [command]}}
    test: {priority: 75}
    deploy: {priority: 60, permissions: [deploy]}
  production:
    paths: [tmp/a, tmp/b]
";

#[test]
fn the_tools_of_the_configuration_are_projected() {
    let home = Home::new();
    home.config(EXAMPLE);
    assert_snapshot!(home.tell("
        tools project --phase planning --permission read,search
        tools project
        tools project --permission read --permission write --permission execute --permission admin --environment prod --explain
        tools project --phase plannig
        tools project --permission raed
        tools project --environment moon
    "), @"
    $ infold tools project --phase planning --permission read,search
    in  readFile  read    90  15  read is granted
    in  search    search  80  14  search is granted
    ! 2 of 7 tools, 29 tokens: planning in dev, granted: read, search
    $ infold tools project
    in  readFile   read     90  15  read is granted
    in  writeFile  write    85  15  write is granted
    in  test       test     75  14  requires nothing
    in  execute    execute  70  28  execute is granted
    ! 4 of 7 tools, 72 tokens: executing in dev, granted: execute, read, write
    $ infold tools project --permission read --permission write --permission execute --permission admin --environment prod --explain
    in   readFile    read     90  15  read is granted
    in   writeFile   write    85  15  write is granted
    out  search      search   80  14  search does not belong to the phase executing
    in   test        test     75  14  requires nothing
    in   execute     execute  70  66  whitelist only: command
    out  deploy      deploy   60  14  the permission deploy is not granted
    in   deleteFile  delete   50  57  whitelist only: path
    ! 5 of 7 tools, 167 tokens: executing in production, granted: admin, execute, read, write
    $ infold tools project --phase plannig
    ! error: there is no phase `plannig`; did you mean `planning`?
    [2]
    $ infold tools project --permission raed
    ! error: there is no permission `raed`; did you mean `read`?
    [2]
    $ infold tools project --environment moon
    ! error: there is no environment `moon`; valid are dev, staging, prod, production
    [2]
    ");
}

#[test]
fn one_object_is_printed_for_each_tool() {
    let home = Home::new();
    home.config(EXAMPLE);
    let rows = home.objects("tools project --environment production --explain");
    let execute = rows.iter().find(|row| row["tool"] == "execute");
    let execute = execute.expect("it is there");
    assert_eq!(execute["shown"], true);
    assert_eq!(execute["narrowed"][0], "command");
    assert_eq!(
        execute["schema"]["properties"]["command"]["enum"][0],
        "npm test"
    );
    let deploy = rows.iter().find(|row| row["tool"] == "deploy");
    let deploy = deploy.expect("it is there");
    assert_eq!(deploy["shown"], false);
    assert_eq!(deploy["reason"], "the permission deploy is not granted");
}

#[test]
fn the_tools_of_a_task_are_those_of_its_last_request() {
    let home = Home::new();
    home.fed("task new", "");
    let contexts = Contexts::new(home.contexts(), Durability::Never);
    let id = home.task("T1").parse().expect("an id");
    let tools = br#"[{"name":"Bash","input_schema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}},{"name":"Read","input_schema":{"type":"object"}},{"name":"frobnicate","input_schema":{}}]"#;
    {
        let (mut writer, _) = contexts.write(id).expect("a writer");
        let members: [(&str, &[u8]); 1] = [("tools", tools)];
        writer.frame(Wire::Anthropic, &members).expect("a frame");
    }
    assert_snapshot!(home.tell("
        tools project T1 --permission read --explain
        tools project T1 --permission read,execute --environment production --explain
        tools audit T1
    "), @"
    $ infold tools project T1 --permission read --explain
    in   Read        read     90  12  read is granted
    out  Bash        execute  70  27  the permission execute is not granted
    in   frobnicate  unknown  40  12  its category is unknown, and such tools are allowed
    ! no policy is configured, so all tools are shown; this is what the built-in rules would show
    ! 2 of 3 tools, 24 tokens: executing in dev, granted: read
    $ infold tools project T1 --permission read,execute --environment production --explain
    in   Read        read     90  12  read is granted
    in   Bash        execute  70  65  whitelist only: command
    out  frobnicate  unknown  40  12  its category is unknown, and such tools are denied
    ! no policy is configured, so all tools are shown; this is what the built-in rules would show
    ! 2 of 3 tools, 77 tokens: executing in production, granted: execute, read
    $ infold tools audit T1
    ! no tool policy has applied to this task: nothing was hidden or refused
    ");
    {
        let (mut writer, _) = contexts.write(id).expect("a writer");
        let shown = ToolsShownLine {
            phase: "executing".into(),
            environment: "production".into(),
            shown: vec!["Read".into(), "Bash".into()],
            narrowed: vec!["Bash".into()],
            hidden: vec![("frobnicate".into(), "unknown".into())],
            choice: Some("frobnicate".into()),
        };
        writer.tools_shown(shown).expect("an event");
        let refusal = RefusalLine {
            tool: "frobnicate".into(),
            call: Some("c1".into()),
            told: "The call of `frobnicate` was refused and not executed".into(),
        };
        writer.refusal(refusal).expect("an event");
    }
    let audit = home.tell("tools audit T1");
    for part in [
        "executing in production: shown Read, Bash; hidden frobnicate; whitelist only Bash; the client demanded frobnicate",
        "refused: The call of `frobnicate` was refused and not executed",
    ] {
        assert!(audit.contains(part), "{audit}");
    }
    let rows = home.objects("tools audit T1");
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["hidden"]["frobnicate"], "unknown");
    assert_eq!(rows[1]["call"], "c1");
    // The event is no step, so there is nothing to undo.
    assert!(home.tell("undo T1").contains("[1]"));
}

#[test]
fn a_task_without_requests_says_so() {
    let home = Home::new();
    home.fed("task new", "");
    assert_snapshot!(home.tell("tools project T1"), @"
    $ infold tools project T1
    ! no policy is configured, so all tools are shown; this is what the built-in rules would show
    ! error: no request of this task is recorded, so its tools are not known
    ! hint: without a task the tools of the configuration are shown
    [2]
    ");
}

#[test]
fn ask_sends_the_tools_that_the_policy_shows() {
    let server = Server::start(Script::new());
    let home = Home::new();
    let url = server.url();
    home.config(format!(
        "llm: {{here: {{provider: anthropic, model: m, base_url: '{url}', context_length: 32000}}}}\ntools: {{permissions: [read]}}\n"
    ));
    let tools = r#"[{"name":"Read","input_schema":{"type":"object"}},{"name":"Bash","input_schema":{"type":"object"}}]"#;
    home.file("tools.json", tools);
    let said = home.tell("ask new hello --tools tools.json");
    assert!(
        said.contains("! `Bash` is hidden: the permission execute is not granted"),
        "{said}"
    );
    let sent = server.last_call().expect("a call").text();
    assert!(
        sent.contains("\"Read\"") && !sent.contains("Bash"),
        "{sent}"
    );
    let refused = home.tell("ask new hello --tools tools.json --tool-choice Bash");
    assert!(refused.contains("[2]"), "{refused}");
}

#[test]
fn what_is_redacted_is_not_in_a_refusal_either() {
    let home = Home::new();
    home.fed("task new", "");
    home.fed(
        "task push T1",
        r#"{"role":"user","content":"the word is hunter2"}"#,
    );
    let contexts = Contexts::new(home.contexts(), Durability::Never);
    {
        let id = home.task("T1").parse().expect("an id");
        let (mut writer, _) = contexts.write(id).expect("a writer");
        let refusal = RefusalLine {
            tool: "Bash".into(),
            call: None,
            told: "refused: \"hunter2\" is not one of \"npm test\"".into(),
        };
        writer.refusal(refusal).expect("an event");
    }
    assert!(home.tell("tools audit T1").contains("hunter2"));
    let done = home.tell("redact T1 --pattern hunter2 --yes");
    assert!(!done.contains("[2]"), "{done}");
    let audit = home.tell("tools audit T1");
    assert!(
        !audit.contains("hunter2") && audit.contains("npm test"),
        "{audit}"
    );
}

const APIS: [&str; 5] = ["openai", "responses", "anthropic", "gemini", "ollama"];

/// A home whose provider speaks an API, and whose policy grants reading alone.
fn reading(api: &str, server: &Server) -> Home {
    let home = Home::new();
    let url = server.url();
    home.config(format!(
        "llm: {{here: {{provider: {api}, model: m, base_url: '{url}', context_length: 32000}}}}\ntools: {{permissions: [read]}}\n"
    ));
    let schema =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tools = ["Read", "Bash"]
        .map(|name| json!({"name": name, "description": "x", "input_schema": schema}));
    home.file("tools.json", json!(tools).to_string());
    home
}

#[test]
fn a_refused_call_is_shown_recorded_and_answered_in_the_next_turn() {
    for api in APIS {
        let steps = [
            Step::call("Bash", r#"{"path":"rm -rf /"}"#),
            Step::call("Read", r#"{"path":7}"#),
            Step::say("All right."),
        ];
        let server = Server::start(Script::steps(steps).model(Model::picky()));
        let home = reading(api, &server);
        let said = home.tell("ask new hello --tools tools.json");
        home.objects("task list");
        for part in [
            "! The call of `Bash` was refused and not executed: the permission execute is not granted. Tools that may be called now: Read.",
            "! the model is told so with the next message; `infold ask",
        ] {
            assert!(said.contains(part), "{api}: {said}");
        }
        assert!(!said.contains("waiting for results"), "{api}: {said}");
        // The task continues with or without another message.
        let found = home.objects("ask T1 --tools tools.json");
        assert_eq!(found[0]["refused"][0]["name"], "Read", "{api}: {found:?}");
        assert_eq!(found[0]["calls"], json!([]), "{api}: {found:?}");
        let sent = server.last_call().expect("a call").text();
        assert!(
            sent.contains("The call of `Bash` was refused and not executed"),
            "{api}: {sent}"
        );
        let said = home.tell("ask T1 'leave it' --tools tools.json");
        assert!(said.contains("All right."), "{api}: {said}");
        let sent = server.last_call().expect("a call").text();
        assert!(sent.contains("is not of type"), "{api}: {sent}");
        let audit = home.objects("tools audit T1");
        let of = |kind: &str| audit.iter().filter(|row| row["type"] == kind).count();
        assert_eq!(
            (of("tools_shown"), of("refusal")),
            (1, 2),
            "{api}: {audit:?}"
        );
        let refused = server.take_refusals();
        assert!(refused.is_empty(), "{api}: {refused:?}");
        assert_eq!(home.tell("verify T1").matches("ok").count(), 1, "{api}");
    }
}

#[test]
fn a_call_that_is_allowed_beside_a_refused_one_waits_for_its_result() {
    for api in APIS {
        let call = |name: &str, path: &str| (name.to_owned(), json!({ "path": path }).to_string());
        let steps = [
            Step::answer(Answer {
                text: Some("I look.".to_owned()),
                calls: vec![
                    call("Bash", "/"),
                    call("Read", "a.rs"),
                    call("Bash", "/tmp"),
                ],
                ..Answer::default()
            }),
            Step::say("All right."),
        ];
        let server = Server::start(Script::steps(steps).model(Model::picky()));
        let home = reading(api, &server);
        let found = &home.objects("ask new hello --tools tools.json")[0];
        assert_eq!(
            found["refused"].as_array().map(Vec::len),
            Some(2),
            "{found}"
        );
        assert_eq!(found["calls"].as_array().map(Vec::len), Some(1), "{found}");
        assert_eq!(found["calls"][0]["name"], "Read", "{api}: {found}");
        let id = &found["calls"][0]["id"];
        let result = match api {
            "openai" => json!({"role": "tool", "tool_call_id": id, "content": "fn main"}),
            "responses" => {
                json!({"type": "function_call_output", "call_id": id, "output": "fn main"})
            }
            "anthropic" => {
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "fn main"}]})
            }
            "gemini" => {
                json!({"role": "user", "parts": [{"functionResponse": {"name": "Read", "response": {"output": "fn main"}}}]})
            }
            _ => json!({"role": "tool", "tool_name": "Read", "content": "fn main"}),
        };
        home.fed("task push T1", result.to_string());
        let said = home.tell("ask T1 --tools tools.json");
        assert!(said.contains("All right."), "{api}: {said}");
        let sent = server.last_call().expect("a call").text();
        let refused = sent.matches("The call of `Bash` was refused").count();
        assert_eq!(
            (refused, sent.matches("fn main").count()),
            (2, 1),
            "{api}: {sent}"
        );
        let refused = server.take_refusals();
        assert!(refused.is_empty(), "{api}: {refused:?}");
        assert_eq!(home.tell("verify T1").matches("ok").count(), 1, "{api}");
    }
}

#[test]
fn the_state_of_a_task_decides_what_ask_shows() {
    let server = Server::start(Script::new());
    let home = reading("anthropic", &server);
    home.objects("ask new hello --tools tools.json");
    home.tell("state T1 set permissions execute");
    home.tell("ask T1 'go on' --tools tools.json");
    let sent = server.last_call().expect("a call").text();
    assert!(
        sent.contains("\"Bash\"") && !sent.contains("\"Read\""),
        "{sent}"
    );
}
