//! The addresses of providers in the environment, read as the providers' own tools read them; and the parts of a
//! provider's error that are shown. A failing test reaches no other machine: requests that leave this one go to a proxy
//! that does not run.

mod common;

use std::process::Command;

use common::{Home, Ran};
use infold_testkit::{Script, Server, Step};
use serde_json::{Value, json};

const KEY: &str = "sk-our-very-own-key-0123456789";

/// Returns a command that cannot reach other machines.
fn command(home: &Home, line: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = home.command(line);
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:9");
    }
    command.env("NO_PROXY", "127.0.0.1,localhost");
    command.envs(variables.iter().copied());
    command
}

fn run(home: &Home, line: &str, variables: &[(&str, &str)]) -> Ran {
    let ran = command(home, line, variables).output();
    Ran::from(ran.expect("it runs"))
}

fn objects(ran: &Ran) -> Vec<Value> {
    let text = String::from_utf8_lossy(&ran.stdout);
    let lines = text.lines().map(serde_json::from_str);
    lines.map(|line| line.expect("JSON")).collect()
}

#[test]
fn the_environment_names_an_address_where_nothing_else_does() {
    for (api, variable, path) in [
        ("openai", "OPENAI_BASE_URL", "/v1"),
        ("responses", "OPENAI_BASE_URL", "/v1"),
        ("anthropic", "ANTHROPIC_BASE_URL", ""),
        ("gemini", "GOOGLE_GEMINI_BASE_URL", ""),
        ("ollama", "OLLAMA_HOST", ""),
    ] {
        let (home, server) = (Home::new(), Server::start(Script::new()));
        let url = server.url();
        let mut values = vec![format!("{url}{path}")];
        if api == "ollama" {
            values.push(url.trim_start_matches("http://").to_owned());
        }
        for value in values {
            let key = ("OPENAI_API_KEY", KEY);
            let keys = [key, ("ANTHROPIC_API_KEY", KEY), ("GEMINI_API_KEY", KEY)];
            let variables = [&keys[..], &[(variable, &value)]].concat();
            let list = run(&home, "provider list --json", &variables);
            let list = objects(&list);
            let found = list.iter().find(|one| one["name"] == api);
            let found = found.expect("it is listed");
            let base = found["base_url"].as_str().expect("an address");
            assert!(base.starts_with(&url), "{found}");
            let from = format!("environment {variable}");
            assert_eq!(found["base_url_from"], from, "{found}");
            let shown = run(&home, "config show", &variables).stdout;
            let shown = String::from_utf8_lossy(&shown).into_owned();
            let line = shown
                .lines()
                .find(|line| line.contains(&format!("llm.{api}.base_url")));
            assert!(
                line.is_some_and(|line| line.contains(variable) && line.contains(&url)),
                "{shown}"
            );
            let before = server.count();
            let line = format!("ask new hello --provider {api} --model m --window 32k");
            let ran = run(&home, &line, &variables);
            assert_eq!(ran.code, 0, "{api}: {}", home.transcript(&ran));
            assert!(server.count() > before, "{api}");
        }
    }
}

#[test]
fn a_configured_address_comes_before_that_of_the_environment() {
    let (home, server) = (Home::new(), Server::start(Script::new()));
    let url = server.url();
    home.config(format!(
        "llm: {{openai: {{model: m, base_url: '{url}'}}}}\n"
    ));
    let nowhere = [("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")];
    let ran = run(&home, "ask new hello --window 32k", &nowhere);
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    // Without a configured address the provider has that of the environment, and another API does not.
    home.config("llm: {openai: {model: m}}\n");
    let variables = [("OPENAI_BASE_URL", &*url)];
    let ran = run(&home, "ask new hello --window 32k", &variables);
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let list = objects(&run(&home, "provider list --json", &variables));
    let moved = list
        .iter()
        .filter(|one| one["base_url_from"] != Value::Null);
    let moved: Vec<&str> = moved.filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(moved, ["openai", "responses"]);
}

#[test]
fn a_file_that_is_not_trusted_sets_no_address() {
    let (home, server) = (Home::new(), Server::start(Script::new()));
    let url = server.url();
    home.file(
        "config.yaml",
        "llm: {openai: {model: m, base_url: 'http://127.0.0.1:9'}}\n",
    );
    let line = "ask new hello --provider openai --model m --window 32k";
    let ran = run(&home, line, &[("OPENAI_BASE_URL", &url)]);
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    assert!(server.count() > 0);
}

#[test]
fn a_value_that_is_no_address_is_told_by_who_needs_one() {
    let home = Home::new();
    let variables = [("OPENAI_BASE_URL", "over there"), ("OPENAI_API_KEY", KEY)];
    let line = "ask new hello --provider openai --model m --window 32k";
    let ran = run(&home, line, &variables);
    let said = home.transcript(&ran);
    assert!(ran.code != 0 && said.contains("no HTTP address"), "{said}");
    let ran = run(&home, "doctor", &variables);
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
}

#[test]
fn a_proxy_does_not_take_its_own_address_for_its_upstream() {
    use std::io::BufRead as _;
    let home = Home::new();
    let variables = [
        ("OPENAI_BASE_URL", "http://127.0.0.1:7333/v1"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:7333"),
        ("OLLAMA_HOST", "127.0.0.1:7333"),
    ];
    let mut serve = command(&home, "serve --port 0", &variables)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let stderr = std::io::BufReader::new(serve.stderr.take().expect("it was piped"));
    let lines = stderr.lines().map(|line| line.expect("text"));
    let sending: Vec<String> = lines
        .take_while(|line| !line.contains("export "))
        .filter(|line| line.starts_with("sending"))
        .collect();
    serve.kill().expect("it runs");
    serve.wait().expect("it ends");
    assert!(!sending.is_empty());
    assert!(!sending.concat().contains("7333"), "{sending:?}");
}

#[test]
fn no_key_of_ours_is_shown_or_kept_with_a_providers_error() {
    // Whole, in an address, with its scheme, and cut.
    let echo = |status: u16| {
        Script::new().otherwise(move |_| {
            let text = format!(
                "you sent Authorization: Bearer {KEY} ?key={KEY}&x=1 ({}…) [{KEY}]",
                &KEY[..20]
            );
            Step::error(status, json!({"error": {"message": text}}).to_string())
        })
    };
    for api in ["openai", "responses", "anthropic", "gemini", "ollama"] {
        for status in [400, 401, 403, 404] {
            let (home, server) = (Home::new(), Server::start(echo(status)));
            let url = server.url();
            home.config(format!(
                "llm: {{here: {{provider: {api}, model: m, base_url: '{url}', api_key: '${{MINE}}'}}}}\n"
            ));
            let ran = run(&home, "ask new hello --window 32k", &[("MINE", KEY)]);
            assert_ne!(ran.code, 0, "{api} {status}");
            let said = home.transcript(&ran);
            assert!(said.contains("you sent"), "{api} {status}: {said}");
            assert!(!said.contains(&KEY[..12]), "{api} {status}: {said}");
            let kept = home.bytes();
            let holds = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains(&KEY[..12]);
            let holder = kept.iter().find(|(_, bytes)| holds(bytes));
            assert_eq!(holder.map(|(path, _)| path), None, "{api} {status}");
        }
    }
}

#[test]
fn no_credential_of_a_tool_is_shown_or_kept_with_a_providers_error() {
    let server = Server::start(Script::new().otherwise(|seen| {
        let text = format!("what is this? {}", seen.text());
        Step::error(400, json!({"error": {"message": text}}).to_string())
    }));
    let (home, url) = (Home::new(), server.url());
    home.config(format!(
        "llm: {{here: {{provider: responses, model: m, base_url: '{url}'}}}}\n"
    ));
    let tools = json!([{"type": "mcp", "server_label": "files", "server_url": "https://example.com/mcp",
        "authorization": "tok-canary-one", "headers": {"X-Key": "Bearer canary-two"}}]);
    home.file("tools.json", tools.to_string());
    let ran = run(&home, "ask new hello --tools tools.json --window 32k", &[]);
    let said = home.transcript(&ran);
    assert!(ran.code != 0 && said.contains("what is this?"), "{said}");
    assert!(
        server
            .last_call()
            .is_some_and(|seen| seen.text().contains("tok-canary-one"))
    );
    assert!(!said.contains("canary"), "{said}");
    let kept = home.bytes();
    let holds = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains("canary");
    let holder = kept.iter().find(|(_, bytes)| holds(bytes));
    assert_eq!(holder.map(|(path, _)| path), None);
}
