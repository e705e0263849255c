//! The output of `infold ask`, `send` and `provider`, and the requests that they send.

mod common;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use common::Home;
use infold_testkit::{Answer, Model, Script, Server, Step};
use infold_wire::StopReason;
use insta::assert_snapshot;
use serde_json::{Value, json};

const TOOLS: &str = r#"[{"name":"ls","description":"lists","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}]"#;

/// A home whose configuration names a server that speaks an API.
fn home(server: &Server, api: &str, model: &str, more: &str) -> Home {
    let home = Home::new();
    let url = server.url();
    home.config(format!(
        "llm: {{here: {{provider: {api}, model: {model}, base_url: '{url}'{more}}}}}\n"
    ));
    home
}

/// Returns the last request for a reply.
fn posted(server: &Server) -> String {
    let asks = |path: &str| path.ends_with("/chat") || path.ends_with("/messages");
    let all = server.requests();
    let last = all.iter().rfind(|seen| asks(&seen.path));
    last.expect("a request").text()
}

#[test]
fn what_runs_here_costs_nothing_unless_somebody_says_so() {
    let server = Server::start(Script::new());
    let cost = |api: &str, more: &str| {
        let home = home(&server, api, "gpt-4o", "");
        let config = std::fs::read_to_string(home.path().join("config.yaml"));
        home.file("config.yaml", config.expect("it is there") + more);
        let said = &home.objects("ask new hello --window 32k")[0];
        said["usage"]["cost"].as_f64().expect("a number")
    };
    assert_eq!(cost("ollama", ""), 0.0);
    assert_eq!(cost("openai", ""), 0.0);
    let own = "models: {gpt-4o: {prices: {input: 1000, output: 1000}}}";
    assert!(cost("openai", own) > 0.0);
}

#[test]
fn ollama_is_told_a_window_only_if_somebody_chose_it() {
    let assumed = "assuming 4,096 tokens";
    let run = |home: &Home, line: &str| {
        let ran = home.run(line, b"");
        assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    let server = Server::start(Script::new());
    let plain = home(&server, "ollama", "llama3.1", "");
    assert!(run(&plain, "ask new hello").contains(assumed));
    assert!(!posted(&server).contains("num_ctx"), "{}", posted(&server));
    // Now the model is loaded, and the server reports its window.
    assert!(!run(&plain, "ask new hello").contains(assumed));
    assert!(!posted(&server).contains("num_ctx"));
    run(&plain, "ask new hello --window 9k");
    assert!(posted(&server).contains(r#""num_ctx":9000"#));
    let set = home(&server, "ollama", "llama3.1", ", context_length: 6000");
    run(&set, "ask new hello");
    assert!(posted(&server).contains(r#""num_ctx":6000"#));
    // A model with a window of its own runs with that window.
    let server = Server::start(Script::new().model(Model::window(7_000)));
    let made = home(&server, "ollama", "llama3.1", "");
    assert!(!run(&made, "ask new hello").contains(assumed));
    assert!(!posted(&server).contains("num_ctx"));
}

#[test]
fn a_script_learns_of_calls_with_their_arguments() {
    for api in ["openai", "responses", "anthropic", "gemini", "ollama"] {
        let answer = Answer {
            thinking: Some("hm".to_owned()),
            calls: vec![
                ("ls".to_owned(), r#"{"path":"a"}"#.to_owned()),
                ("ls".to_owned(), r#"{"path":"b"}"#.to_owned()),
            ],
            ..Answer::default()
        };
        let server = Server::start(Script::steps([Step::answer(answer)]));
        let home = home(&server, api, "m", ", context_length: 32000");
        home.file("tools.json", TOOLS);
        let said = &home.objects("ask new look --tools tools.json")[0];
        let calls = said["calls"].as_array().expect("calls");
        for (call, path) in calls.iter().zip(["a", "b"]) {
            assert_eq!(call["arguments"], json!({"path": path}), "{api}: {said}");
            assert_eq!(
                (&call["name"], &call["complete"]),
                (&json!("ls"), &json!(true))
            );
        }
        assert_eq!(calls.len(), 2, "{api}: {said}");
        assert_eq!(
            (&said["provider"], &said["model"]),
            (&json!("here"), &json!("m"))
        );
        assert_eq!(
            (&said["reasoning"], &said["lost"]),
            (&json!("hm"), &json!({})),
            "{api}"
        );
    }
}

#[test]
fn a_call_that_was_cut_off_is_not_to_be_run() {
    // If arguments have to be an object, other arguments are wrapped in one.
    let wrapped = r#"{"_arguments":"{\"path\":\"/ho"}"#;
    let bare = r#"{"path":"/ho"#;
    for (api, begun) in [
        ("openai", bare),
        ("responses", bare),
        ("anthropic", wrapped),
    ] {
        let cut = || {
            Step::answer(Answer {
                calls: vec![("ls".to_owned(), begun.to_owned())],
                stop: Some(StopReason::Length),
                ..Answer::default()
            })
        };
        let server = Server::start(Script::steps([cut(), cut()]));
        let home = home(&server, api, "m", ", context_length: 32000");
        home.file("tools.json", TOOLS);
        let said = &home.objects("ask new look --tools tools.json")[0];
        let call = &said["calls"][0];
        assert_eq!(call["complete"], json!(false), "{api}: {said}");
        assert_eq!(call["arguments"], json!(r#"{"path":"/ho"#), "{api}: {said}");
        let shown = home.tell("ask new look --tools tools.json");
        assert!(
            shown.contains("ls was cut off: do not run it"),
            "{api}: {shown}"
        );
        assert!(!shown.contains("waits for results"), "{api}: {shown}");
    }
}

#[test]
fn a_call_that_was_cut_off_is_sent_back_as_json() {
    // llama.cpp's server refuses every later request otherwise.
    let cut = Step::answer(Answer {
        calls: vec![("ls".to_owned(), r#"{"path":"/ho"#.to_owned())],
        stop: Some(StopReason::Length),
        ..Answer::default()
    });
    let server = Server::start(Script::steps([cut, Step::answer(Answer::default())]));
    let home = home(&server, "openai", "m", ", context_length: 32000");
    home.file("tools.json", TOOLS);
    let said = &home.objects("ask new look --tools tools.json")[0];
    let id = said["calls"][0]["id"].as_str().expect("an id");
    let result = json!({"role": "tool", "tool_call_id": id, "content": "cut off"});
    home.file("result.jsonl", format!("{result}\n"));
    home.tell("task push @ result.jsonl\nask @");
    let last = server.requests().pop().expect("a request").text();
    let request: Value = serde_json::from_str(&last).expect("JSON");
    let messages = request["messages"].as_array().expect("messages");
    let called = messages
        .iter()
        .find_map(|message| message["tool_calls"][0]["function"].as_object());
    let arguments = called.expect("the call")["arguments"]
        .as_str()
        .expect("a text");
    let arguments: Value = serde_json::from_str(arguments).expect("JSON");
    assert_eq!(arguments, json!({"_arguments": "{\"path\":\"/ho"}));
}

#[test]
fn what_cannot_be_asked_leaves_no_task() {
    let server = Server::start(Script::new());
    let home = home(&server, "openai", "m", ", context_length: 32000");
    assert_snapshot!(home.tell("
        ask new
        ask new --system 'be brief'
        ask new hello --system ' '
        ask new ' '
        ask new hello --provider anthropic --model claude-opus-4-6
        ask new hello --window 10 --max-tokens 20
        ask new hello --tools none.json
        ask new hello --temperature nan
        task list
    "), @"
    $ infold ask new
    ! error: no message given
    ! hint: `infold ask new 'your message'`; nothing was stored
    [2]
    $ infold ask new --system 'be brief'
    ! error: no message given
    ! hint: `infold ask new 'your message'`; nothing was stored
    [2]
    $ infold ask new hello --system ' '
    ! error: the instructions are blank
    ! hint: `--system 'be brief'`; nothing was stored
    [2]
    $ infold ask new ' '
    ! error: the message is empty
    ! hint: `infold ask TASK 'how are you?'`; nothing was stored
    [2]
    $ infold ask new hello --provider anthropic --model claude-opus-4-6
    ! error: anthropic needs a key, and none is configured
    ! hint: set ANTHROPIC_API_KEY
    [4]
    $ infold ask new hello --window 10 --max-tokens 20
    ! error: a window of 10 tokens leaves no room: a tenth of it is held back, and 20 are reserved for the reply
    ! hint: use a larger --window, or a smaller --max-tokens for the reply
    [2]
    $ infold ask new hello --tools none.json
    ! error: none.json: No such file or directory (os error 2)
    ! hint: a JSON array of tool definitions, in the form of any provider
    [2]
    $ infold ask new hello --temperature nan
    ! error: invalid value 'nan' for '--temperature <NUMBER>': must be a number such as 0 or 0.7
    !
    ! For more information, try '--help'.
    [2]
    $ infold task list
    ! no tasks
    ");
    assert_eq!(server.count(), 0);
}

#[test]
fn a_failure_names_the_task_it_is_of() {
    let refused = r#"{"error":{"message":"max_tokens is too large: 99999. This model supports at most 4096 completion tokens.","type":"invalid_request_error","param":"max_tokens","code":"invalid_value"}}"#;
    let server = Server::start(Script::steps([Step::error(400, refused)]));
    let home = home(&server, "openai", "m", ", context_length: 32000");
    let ran = home.run("ask new hello --json", b"");
    let last = String::from_utf8_lossy(&ran.stderr).into_owned();
    let error: Value = serde_json::from_str(last.trim()).expect("JSON");
    assert_eq!(error["hint"], json!("use a smaller --max-tokens"));
    let task = error["task"].as_str().expect("a task");
    let listed = home.objects("task list");
    assert_eq!((listed.len(), &listed[0]["uuid"]), (1, &json!(task)));
}

#[test]
fn what_is_ignored_is_said_and_what_is_unknown_is_said_once() {
    let server = Server::start(Script::new());
    let local = home(&server, "ollama", "m", ", context_length: 8000");
    local.file("tools.json", TOOLS);
    for (choice, said) in [
        ("auto", false),
        ("none", false),
        ("any", true),
        ("ls", true),
    ] {
        let shown = local.tell(&format!(
            "ask new hello --tools tools.json --tool-choice {choice}"
        ));
        assert_eq!(shown.contains("has no tool choice"), said, "{shown}");
    }
    let home = home(&server, "openai", "unheard-of", "");
    let unknown = "nothing is known of model";
    assert!(home.tell("task new\nask T1 hello").contains(unknown));
    let shown = home.tell("ask T1 'and now?'");
    assert!(!shown.contains(unknown), "{shown}");
}

#[test]
fn a_check_does_not_speak_of_a_request() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let refuses = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a call");
        let _ = stream.read(&mut [0; 4096]).expect("a request");
        let says = r#"{"error":{"message":"what is that?"}}"#;
        let head = format!(
            "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{says}",
            says.len()
        );
        stream.write_all(head.as_bytes()).expect("an answer");
    });
    let home = Home::new();
    home.config(format!(
        "llm: {{here: {{provider: openai, model: m, base_url: '{url}'}}}}\n"
    ));
    let shown = home.tell("provider check here").replace(&url, "URL");
    refuses.join().expect("it was asked");
    assert_snapshot!(shown, @"
    $ infold provider check here
    ! error: here (URL/v1/models) answered 400: what is that?
    ! hint: check `provider` and `base_url` in config.yaml: is it this kind of API?
    [4]
    ");
}

#[test]
fn what_a_preview_cost_is_counted() {
    let server = Server::start(Script::new());
    let home = home(&server, "openai", "m", "");
    for at in 0..6 {
        let ran = home.run(
            &format!(
                "ask {} 'question {at} about the rivers' --window 32k",
                if at == 0 { "new" } else { "@" }
            ),
            b"",
        );
        assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    }
    let ran = home.run("condense @ 2..8 --preview --summarizer model:m", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let ran = home.run("verify", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
}
