//! Compares the requests and records of Infold with those of the official clients.
//!
//! `scripts/sdks` installs the clients. Each is given the same scripted replies as Infold,
//! reads what Infold recorded with its own types, and checks Infold's requests with them.

#[path = "../common/mod.rs"]
mod common;
mod relay;
mod lookups;
mod policy;
mod layers;
mod replies;
mod streams;
mod talk;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::Home;
use infold_testkit::{Script, Server};
use infold_translate::{TranslateTarget, translate};
use infold_wire::Wire;
use serde_json::{Map, Value, json};

#[test]
fn openai_chat_and_responses() {
    compare("openai_sdk.py", &[Wire::Chat, Wire::Responses]);
}

#[test]
fn anthropic_messages() {
    compare("anthropic_sdk.py", &[Wire::Anthropic]);
}

#[test]
fn gemini_generate_content() {
    compare("gemini_sdk.py", &[Wire::Gemini]);
}

#[test]
fn ollama_chat() {
    compare("ollama_sdk.py", &[Wire::Ollama]);
}

/// Lets Infold and a client live through the same, and holds them against each other.
fn compare(client: &str, wires: &[Wire]) {
    let python = python();
    let server = Server::start(Script::decide(replies::decide(wires)));
    let world = World::new(&server);
    let mut job = Map::from_iter([("url".to_owned(), json!(server.url()))]);
    let mut talks = Vec::new();
    for &wire in wires {
        let heard: Vec<_> = replies::replies(wire)
            .iter()
            .map(|reply| world.heard(wire, reply.name))
            .collect();
        let talked = world.talk(wire);
        let mut requests: Vec<_> = talked
            .iter()
            .enumerate()
            .map(|(at, body)| json!({"name": format!("talk-{}", at + 1), "body": body}))
            .collect();
        requests.extend(world.converted(wire));
        requests.extend(translated(wire));
        job.insert(
            wire.name().to_owned(),
            json!({"replies": heard, "requests": requests}),
        );
        talks.push((wire, talked));
    }
    let before = server.count();
    let found = run(&python, client, &Value::Object(job.clone()));
    judge(&found, &job, wires);
    let sent: Vec<_> = server.requests().split_off(before);
    for (wire, ours) in talks {
        let theirs = sent.iter().filter(|seen| seen.wire() == Some(wire));
        let theirs: Vec<Value> = theirs.map(body).collect();
        // The talk comes last.
        let theirs = &theirs[theirs.len() - ours.len()..];
        for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            let (ours, theirs) = (
                talk::alike(wire, ours.clone()),
                talk::alike(wire, theirs.clone()),
            );
            assert!(
                ours == theirs,
                "{wire}: request {} of the talk\ninfold: {ours:#}\nclient: {theirs:#}",
                at + 1
            );
        }
    }
}

/// Returns requests with every parameter of another wire, translated to this one.
fn translated(to: Wire) -> Vec<Value> {
    let others = Wire::ALL.into_iter().filter(|from| *from != to);
    let translated = others.map(|from| {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../infold-translate/tests/parameters");
        let body = fs::read(folder.join(format!("{from}.json"))).expect("a request");
        let aim = TranslateTarget {
            official: true,
            stream: Some(true),
            model: Some("m".to_owned()),
            ..TranslateTarget::new(to)
        };
        let told = translate(from, &body, &aim).expect("it can be translated");
        let mut body: Value = serde_json::from_slice(&told.body).expect("JSON");
        if to == Wire::Anthropic {
            // The requested version of the API has these; the types are of a newer one.
            let members = body.as_object_mut().expect("an object");
            members.retain(|name, _| !["temperature", "top_p", "top_k"].contains(&name.as_str()));
        }
        json!({"name": format!("every parameter of {from}"), "body": body})
    });
    translated.collect()
}

/// Fails with all that differs.
fn judge(found: &Value, job: &Map<String, Value>, wires: &[Wire]) {
    let list = |name: &str| found[name].as_array().expect("a list").clone();
    let (replies, requests) = (list("replies"), list("requests"));
    let expected = |name: &str| -> usize {
        let all = wires
            .iter()
            .map(|wire| job[wire.name()][name].as_array().expect("a list").len());
        all.sum()
    };
    assert_eq!(replies.len(), 2 * expected("replies"));
    assert_eq!(requests.len(), expected("requests"));
    let mut wrong = Vec::new();
    for reply in replies {
        // A text there is an error.
        if reply["sdk"] != reply["infold"] || reply["sdk"].is_string() {
            let short = |value: &Value| value.to_string().chars().take(2000).collect::<String>();
            let (client, infold) = (short(&reply["sdk"]), short(&reply["infold"]));
            wrong.push(format!(
                "{}\n  client: {client}\n  infold: {infold}",
                reply["name"]
            ));
        }
    }
    for request in requests {
        if !request["wrong"].is_null() {
            wrong.push(format!("{}: {}", request["name"], request["wrong"]));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The interpreter that has the clients.
fn python() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let clients = std::env::var_os("INFOLD_SDKS").unwrap_or_else(|| "target/sdks".into());
    let python = root.join(clients).join("bin/python");
    assert!(
        python.exists(),
        "{} is missing: run scripts/sdks, which installs the official clients",
        python.display()
    );
    python
}

fn run(python: &Path, client: &str, job: &Value) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/sdks")
        .join(client);
    let mut child = Command::new(python)
        // No bytecode in the source tree, and nothing of the environment: no proxy, no key.
        .arg("-B")
        .arg(script)
        .env_clear()
        .env("PYTHONIOENCODING", "utf-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut input = child.stdin.take().expect("a pipe");
    input
        .write_all(job.to_string().as_bytes())
        .expect("the job is read");
    drop(input);
    let output = child.wait_with_output().expect("python ends");
    assert!(output.status.success(), "{client} failed");
    serde_json::from_slice(&output.stdout).expect("findings in JSON")
}

fn body(seen: &infold_testkit::Seen) -> Value {
    serde_json::from_str(&seen.text()).expect("a request in JSON")
}

/// A home whose providers are all the scripted server.
struct World<'a> {
    home: Home,
    server: &'a Server,
}

/// Returns the name of a wire's provider.
fn provider(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat => "openai",
        other => other.name(),
    }
}

impl World<'_> {
    fn new(server: &Server) -> World<'_> {
        let home = Home::new();
        let url = server.url();
        let mut config = String::from("llm:\n");
        for wire in Wire::ALL {
            let name = provider(wire);
            config += &format!("  {name}:\n    base_url: {url}\n    api_key: ${{SDK_KEY}}\n");
        }
        home.config(config);
        home.file("tools.json", talk::tools().to_string());
        World { home, server }
    }

    /// Runs a command that succeeds, and returns its output with `--json`, line by line.
    fn infold(&self, line: &str) -> Vec<Value> {
        let mut command = self.home.command(&format!("{line} --json"));
        command
            .env("SDK_KEY", "k")
            .env("INFOLD_DURABILITY", "never");
        let output = command.output().expect("infold runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "infold {line}\n{said}");
        let lines = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
        lines.map(|line| line.expect("JSON")).collect()
    }

    /// The body of the last request, which must have been answered.
    fn sent(&self) -> Value {
        body(&self.server.last().expect("a request"))
    }

    /// Returns the record of a reply, streamed and not.
    fn heard(&self, wire: Wire, model: &str) -> Value {
        let ask = |how: &str| {
            let provider = provider(wire);
            let told = self
                .infold(&format!(
                    "ask new Hello --provider {provider} --model {model} {how}"
                ))
                .remove(0);
            let (task, from, to) = (&told["task"], &told["from"], &told["to"]);
            let task = task.as_str().expect("a task");
            let messages = self.infold(&format!("recall {task} {from}..{to}"));
            let messages: Vec<_> = messages.iter().map(|it| it["message"].clone()).collect();
            let usage = &told["usage"];
            let usage = json!({"tokens": usage["tokens"], "cached": usage["cached"], "output": usage["output"]});
            json!({"messages": messages, "stop": told["stop"], "usage": usage})
        };
        json!({"name": model, "streamed": ask(""), "whole": ask("--no-stream")})
    }

    /// A task that holds these messages.
    fn task(&self, wire: Wire, messages: &[Value]) -> String {
        let told = self.infold(&format!("task new --provider {}", provider(wire)));
        let task = told[0]["uuid"].as_str().expect("a task").to_owned();
        self.push(&task, messages);
        task
    }

    fn push(&self, task: &str, messages: &[Value]) {
        let lines: String = messages.iter().map(|it| format!("{it}\n")).collect();
        self.home.file("push.jsonl", lines);
        self.infold(&format!("task push {task} push.jsonl"));
    }

    /// The requests of a conversation on one wire.
    fn talk(&self, wire: Wire) -> Vec<Value> {
        let task = self.task(wire, &talk::opening(wire));
        let ask = |text: &str, model: &str, choice: &str| {
            let text = match text {
                "" => String::new(),
                text => format!("'{text}'"),
            };
            let provider = provider(wire);
            self.infold(&format!("ask {task} {text} --provider {provider} --model {model} --no-stream --tools tools.json --tool-choice {choice}"));
            self.sent()
        };
        let first = ask("", "talk-1", "auto");
        self.push(&task, &talk::results(wire));
        let second = ask("", "talk-2", "read");
        vec![first, second, ask(talk::MORE, "talk-3", "none")]
    }

    /// Requests on this wire of conversations that were held on another.
    fn converted(&self, wire: Wire) -> Vec<Value> {
        let others = Wire::ALL.into_iter().filter(|other| *other != wire);
        let whole = |wire: Wire| [talk::whole(wire), talk::odd(wire)].concat();
        let mut talks: Vec<(String, Wire, Vec<Value>)> = others
            .map(|other| (format!("from {other}"), other, whole(other)))
            .collect();
        let mixed = Wire::ALL.map(whole).concat();
        talks.push(("from all".to_owned(), wire, mixed));
        let ask = |(name, other, messages): (String, Wire, Vec<Value>)| {
            let task = self.task(other, &messages);
            let provider = provider(wire);
            self.infold(&format!(
                "ask {task} '{}' --provider {provider} --model talk-3 --tools tools.json",
                talk::MORE
            ));
            json!({"name": name, "body": self.sent()})
        };
        talks.into_iter().map(ask).collect()
    }
}
