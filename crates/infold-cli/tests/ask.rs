//! What `infold ask`, `send` and `provider` say, and what they send.

mod common;

use common::Home;
use infold_testkit::{Model, Script, Server};

/// A home whose configuration names a server that speaks an API.
fn home(server: &Server, api: &str, model: &str, more: &str) -> Home {
    let home = Home::new();
    let url = server.url();
    home.file(
        "config.yaml",
        format!("llm: {{here: {{provider: {api}, model: {model}, base_url: '{url}'{more}}}}}\n"),
    );
    home
}

/// What was posted last to be answered.
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
    let assumed = "4,096 tokens are assumed";
    let run = |home: &Home, line: &str| {
        let ran = home.run(line, b"");
        assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    let server = Server::start(Script::new());
    let plain = home(&server, "ollama", "llama3.1", "");
    assert!(run(&plain, "ask new hello").contains(assumed));
    assert!(!posted(&server).contains("num_ctx"), "{}", posted(&server));
    // Now it is loaded, and the server says with what.
    assert!(!run(&plain, "ask new hello").contains(assumed));
    assert!(!posted(&server).contains("num_ctx"));
    run(&plain, "ask new hello --window 9k");
    assert!(posted(&server).contains(r#""num_ctx":9000"#));
    let set = home(&server, "ollama", "llama3.1", ", context_length: 6000");
    run(&set, "ask new hello");
    assert!(posted(&server).contains(r#""num_ctx":6000"#));
    // What the model was made with is what it runs with.
    let server = Server::start(Script::new().model(Model::window(7_000)));
    let made = home(&server, "ollama", "llama3.1", "");
    assert!(!run(&made, "ask new hello").contains(assumed));
    assert!(!posted(&server).contains("num_ctx"));
}
