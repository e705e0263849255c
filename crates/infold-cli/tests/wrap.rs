//! The proxy as a person starts it.

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use common::Home;
use infold_testkit::{Model, Script, Server};

fn server() -> Server {
    Server::start(Script::new().model(Model {
        strict: false,
        ..Model::default()
    }))
}

fn command(home: &Home, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_infold"));
    command
        .args(args)
        .current_dir(home.path())
        .env("HOME", home.path())
        .env_remove("INFOLD_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Asks a child to end, and returns its exit code and its standard error.
fn end(mut child: Child) -> (Option<i32>, String) {
    let id = child.id().to_string();
    let told = Command::new("kill").args(["-s", "TERM", &id]).status();
    assert!(told.expect("kill runs").success());
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut said).expect("text");
    }
    (child.wait().expect("it ends").code(), said)
}

#[test]
fn it_listens_says_so_passes_on_and_ends_well() {
    let (home, server) = (Home::new(), server());
    let url = server.url();
    let args = [
        "serve",
        "--port",
        "0",
        "--json",
        "--upstream",
        &url,
        "--trace",
        "json",
    ];
    let mut child = command(&home, &args).spawn().expect("it starts");
    let stdout = child.stdout.take().expect("it was piped");
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let ready: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let base = ready["listening"].as_str().expect("where it listens");
    let host = base.strip_prefix("http://").expect("an address");
    let variables = ready["environment"].as_array().expect("variables");
    let openai = variables
        .iter()
        .find(|one| one["name"] == "OPENAI_BASE_URL");
    assert_eq!(openai.expect("it is there")["value"], format!("{base}/v1"));
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    let mut stream = TcpStream::connect(host).expect("it listens");
    let length = body.len();
    write!(stream, "POST /v1/chat/completions?key=sk-canary-query HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer sk-canary-key\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").expect("taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (code, said) = end(child);
    assert_eq!(code, Some(0), "{said}");
    // Traces contain the request, and no key.
    assert!(said.contains("\"path\":\"/v1/chat/completions\""), "{said}");
    assert!(!said.contains("canary"), "{said}");
}

#[test]
fn what_to_copy_is_said_to_people() {
    let home = Home::new();
    let args = ["serve", "--port", "0", "--upstream", "http://127.0.0.1:9"];
    let mut child = command(&home, &args).spawn().expect("it starts");
    let stderr = child.stderr.take().expect("it was piped");
    let mut lines = BufReader::new(stderr).lines();
    let first = lines.next().expect("a line").expect("text");
    let base = first
        .strip_prefix("listening on ")
        .expect("where")
        .to_owned();
    let exports: Vec<String> = lines
        .by_ref()
        .take(10)
        .map(|line| line.expect("text"))
        .collect();
    for said in [
        "recording in ~/.local/share/infold/contexts",
        "sending chat, responses, anthropic to http://127.0.0.1:9/v1",
    ] {
        assert!(exports.iter().any(|line| line == said), "{exports:?}");
    }
    for (name, value) in [
        ("ANTHROPIC_BASE_URL", base.clone()),
        ("OPENAI_BASE_URL", format!("{base}/v1")),
        ("OPENAI_API_BASE", format!("{base}/v1")),
        ("OPENAI_HOST", base.clone()),
        ("GOOGLE_GEMINI_BASE_URL", base.clone()),
        ("OLLAMA_HOST", base.clone()),
    ] {
        let export = format!("export {name}={value} ");
        assert!(
            exports.iter().any(|line| line.contains(&export)),
            "{name}: {exports:?}"
        );
    }
    assert_eq!(end(child).0, Some(0));
}

#[test]
fn it_does_not_listen_where_it_should_not() {
    let home = Home::new();
    for (args, code, said) in [
        ("serve --host 0.0.0.0 --port 0", 2, "no token"),
        (
            "serve --port 0 --upstream nobody=http://127.0.0.1:9",
            2,
            "no API `nobody`",
        ),
        (
            "serve --port 0 --upstream openai=nobody",
            2,
            "no provider `nobody`",
        ),
        (
            "serve --port 0 --token-env NO_SUCH_VARIABLE",
            2,
            "NO_SUCH_VARIABLE is not set",
        ),
    ] {
        let ran = home.run(args, b"");
        let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.code, code, "{args}: {stderr}");
        assert!(stderr.contains(said), "{args}: {stderr}");
        assert!(stderr.contains("hint:"), "{args}: {stderr}");
    }
}

#[test]
fn an_agent_finds_the_proxy_and_its_exit_is_ours() {
    let (home, server) = (Home::new(), server());
    let url = server.url();
    let wrapped = |args: &[&str]| {
        let all = [&["wrap", "--upstream", &url], args].concat();
        let ran = command(&home, &all).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (ran.status.code(), text(ran.stdout), text(ran.stderr))
    };
    let (code, said, error) = wrapped(&[
        "--",
        "sh",
        "-c",
        "echo $ANTHROPIC_BASE_URL $OPENAI_BASE_URL; exit 7",
    ]);
    assert_eq!(code, Some(7), "{error}");
    assert!(
        said.starts_with("http://127.0.0.1:") && said.trim_end().ends_with("/v1"),
        "{said}"
    );
    let (code, said, _) = wrapped(&[
        "--name",
        "my task",
        "--",
        "sh",
        "-c",
        "echo $OPENAI_BASE_URL",
    ]);
    assert_eq!(code, Some(0));
    assert!(said.trim_end().ends_with("/t/my%20task/v1"), "{said}");
    let (code, ..) = wrapped(&["--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(code, Some(128 + 15));
    let (code, _, error) = wrapped(&["--", "no-such-agent"]);
    assert_eq!(code, Some(2));
    assert!(
        error.contains("no-such-agent could not be started"),
        "{error}"
    );
    // Codex reads no variable.
    let script = home.path().join("codex");
    home.file("codex", "#!/bin/sh\nprintf '%s\\n' \"$@\"\n");
    let runs = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&script, runs).expect("it is ours");
    let (code, said, _) = wrapped(&[
        "--",
        script.to_str().expect("UTF-8"),
        "exec",
        "--json",
        "hi",
    ]);
    assert_eq!(code, Some(0));
    assert!(
        said.starts_with("-c\nmodel_provider=\"infold\"\n"),
        "{said}"
    );
    assert!(said.ends_with("exec\n--json\nhi\n"), "{said}");
}

/// Asks the model something at a base, as an agent would.
fn ask(base: &str, text: &str) {
    let place = base.strip_prefix("http://").expect("an address");
    let (host, path) = place.split_once('/').expect("a path");
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let length = body.len();
    let mut stream = TcpStream::connect(host).expect("it listens");
    write!(stream, "POST /{path}/chat/completions HTTP/1.1\r\nhost: {host}\r\nuser-agent: tester/2.0\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").expect("taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn an_agent_is_recorded_and_its_task_named() {
    let (home, server) = (Home::new(), server());
    let url = server.url();
    let args = [
        "wrap",
        "--upstream",
        &url,
        "--window",
        "9k",
        "--strategy",
        "roo",
        "--summarizer",
        "extractive",
        "--",
        "sh",
        "-c",
        "echo $NO_PROXY; echo $no_proxy; echo $OPENAI_BASE_URL; read end",
    ];
    let mut wrap = command(&home, &args)
        .env("NO_PROXY", "corp.example")
        .env_remove("no_proxy")
        .stdin(Stdio::piped())
        .spawn()
        .expect("it starts");
    let stdout = BufReader::new(wrap.stdout.take().expect("it was piped"));
    let said: Vec<String> = stdout
        .lines()
        .take(3)
        .map(|line| line.expect("text"))
        .collect();
    // The network's proxy is not used for addresses on this machine.
    assert_eq!(said[0], "corp.example,127.0.0.1,localhost");
    assert_eq!(said[1], "127.0.0.1,localhost");
    ask(&said[2], "name the project");
    drop(wrap.stdin.take());
    let ran = wrap.wait_with_output().expect("it ends");
    let said = String::from_utf8(ran.stderr).expect("UTF-8");
    let id = said.split("recorded as task ").nth(1);
    let id = id.and_then(|rest| rest.get(..8)).expect(&said);
    let shown = command(&home, &["task", "show", id, "--json"]).output();
    let shown = shown.expect("it runs").stdout;
    let shown: serde_json::Value = serde_json::from_slice(&shown).expect("JSON");
    assert_eq!(shown["title"], "name the project");
    assert_eq!(shown["agent"], "tester");
    let dir = home.path().join(".local/share/infold/contexts/running");
    let dir = dir.join(shown["uuid"].as_str().expect("an id"));
    let metadata = std::fs::read(dir.join("metadata.json")).expect("metadata");
    let metadata: serde_json::Value = serde_json::from_slice(&metadata).expect("JSON");
    let config = &metadata["config"];
    assert_eq!(config["model"], "m");
    assert_eq!(config["context_length"], 9_000);
    assert_eq!(config["compression_threshold"], 0.75);
    // No file remains in the agent's directory.
    let left = std::fs::read_dir(home.path()).expect("a directory");
    let left: Vec<_> = left.flatten().map(|file| file.file_name()).collect();
    assert_eq!(left, [".local"]);
}
