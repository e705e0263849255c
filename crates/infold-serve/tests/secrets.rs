//! With `redact: true` no secret reaches the disk, the provider gets the client's bytes, and the conversation stays
//! one task.

mod front;

use std::sync::Arc;

use front::{Proxy, Setup, place};
use infold_testkit::{Answer, Script, Server, Step};
use infold_wire::{Delivery, ReplyReader, Wire};
use serde_json::{Value, json};

const WIRES: [Wire; 5] = [
    Wire::Chat,
    Wire::Responses,
    Wire::Anthropic,
    Wire::Gemini,
    Wire::Ollama,
];

/// Returns secrets of several families, put together here so that the repository contains none.
fn canaries() -> Vec<String> {
    let alphabet = "Zq7Rk2Xv9Lm4Tb8Nc3Wd6Hf1Gj5Ps0YtEuAiOoQw";
    let take = |from: usize, count: usize| -> String {
        alphabet.chars().cycle().skip(from).take(count).collect()
    };
    vec![
        ["AKIA", "QYLPMN5H", "HHFPZAM2"].concat(),
        format!("{}_{}", "ghp", take(1, 36)),
        format!("{}-{}", "glpat", take(2, 20)),
        format!("{}_{}", "npm", take(3, 36).to_lowercase()),
        format!("{}-api03-{}AA", "sk-ant", take(4, 93)),
        format!("{}.{}.{}", "SG", take(5, 22), take(6, 43)),
        format!("{}_live_{}", "sk", take(7, 24)),
        format!(
            "-----BEGIN {} KEY-----\n{}\n-----END {} KEY-----",
            "RSA PRIVATE",
            take(8, 200),
            "RSA PRIVATE"
        ),
    ]
}

/// A client of a wire, which sends its whole history each time.
struct Client {
    wire: Wire,
    history: Vec<Value>,
    system: String,
    tool: String,
}

impl Client {
    fn body(&self) -> Vec<u8> {
        let Client {
            wire,
            history,
            system,
            tool,
        } = self;
        let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}});
        let function = json!({"name": "run", "description": tool, "parameters": schema});
        let with_system = |role: &str| {
            let mut all = vec![json!({"role": role, "content": system})];
            all.extend(history.iter().cloned());
            all
        };
        let body = match wire {
            Wire::Chat => {
                json!({"model": "m", "stream": true, "messages": with_system("system"), "tools": [{"type": "function", "function": function}]})
            }
            Wire::Ollama => {
                json!({"model": "m", "stream": true, "messages": with_system("system"), "tools": [{"type": "function", "function": function}]})
            }
            Wire::Responses => {
                json!({"model": "m", "stream": true, "store": false, "instructions": system, "input": history, "tools": [{"type": "function", "name": "run", "description": tool, "parameters": schema}]})
            }
            Wire::Anthropic => {
                json!({"model": "m", "max_tokens": 999, "stream": true, "system": system, "messages": history, "tools": [{"name": "run", "description": tool, "input_schema": schema}]})
            }
            Wire::Gemini => {
                json!({"contents": history, "systemInstruction": {"parts": [{"text": system}]}, "tools": [{"functionDeclarations": [function]}]})
            }
        };
        // A spelling that clients may use.
        body.to_string().replace("/", "\\/").into_bytes()
    }

    fn say(&mut self, text: &str) {
        self.history.push(match self.wire {
            Wire::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            Wire::Responses => json!({"type": "message", "role": "user", "content": text}),
            _ => json!({"role": "user", "content": text}),
        });
    }

    /// Adds an answer to the history; returns the ids of its calls.
    fn hear(&mut self, body: &[u8]) -> Vec<String> {
        let mut reader = ReplyReader::new(self.wire, Delivery::Stream);
        reader.push(body, &mut |_| {}).expect("it can be read");
        let reply = reader.finish().expect("it is whole");
        let mut ids = Vec::new();
        for message in reply.messages {
            let message: Value = serde_json::from_slice(&message).expect("it is JSON");
            let text = |value: &Value| value.as_str().map(str::to_owned);
            ids.extend(text(&message["call_id"]));
            ids.extend(
                message["tool_calls"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|call| text(&call["id"]).unwrap_or_default()),
            );
            let blocks = message["content"].as_array().into_iter().flatten();
            ids.extend(
                blocks
                    .filter(|block| block["type"] == "tool_use")
                    .filter_map(|block| text(&block["id"])),
            );
            let parts = message["parts"].as_array().into_iter().flatten();
            ids.extend(
                parts
                    .filter(|part| !part["functionCall"].is_null())
                    .map(|_| String::new()),
            );
            self.history.push(message);
        }
        ids
    }

    fn result(&mut self, id: &str, text: &str) {
        self.history.push(match self.wire {
            Wire::Chat => json!({"role": "tool", "tool_call_id": id, "content": text}),
            Wire::Ollama => json!({"role": "tool", "tool_name": "run", "content": text}),
            Wire::Responses => json!({"type": "function_call_output", "call_id": id, "output": text}),
            Wire::Anthropic => json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}),
            Wire::Gemini => json!({"role": "user", "parts": [{"functionResponse": {"name": "run", "response": {"output": text}}}]}),
        });
    }
}

fn start(server: &Server, directory: &Arc<tempfile::TempDir>) -> Proxy {
    let setup = Setup {
        config: "redact: true\n".to_owned(),
        ..Setup::to(&server.url())
    };
    setup.start_in(Arc::clone(directory))
}

fn answers(canaries: &[String]) -> Vec<Step> {
    let command = json!({"command": format!("export KEY='{}'", canaries[3]), "env": {"text": canaries.join(") (")}});
    let answer = Answer {
        thinking: Some(format!("so the key is {}", canaries[4])),
        text: Some(format!("I use {} and\n{}", canaries[0], canaries[7])),
        calls: vec![("run".to_owned(), command.to_string())],
        ..Answer::default()
    };
    vec![
        Step::answer(answer).in_pieces(3),
        Step::say(format!("it printed {}", canaries.join(" "))).in_pieces(5),
        Step::say("that is all"),
        Step::say("good bye"),
    ]
}

#[test]
fn no_secret_reaches_the_disk_and_the_provider_gets_the_clients_bytes() {
    for wire in WIRES {
        let canaries = canaries();
        let server = Server::start(Script::steps(answers(&canaries)));
        let directory = Arc::new(tempfile::tempdir().expect("a directory"));
        let mut proxy = start(&server, &directory);
        let mut client = Client {
            wire,
            history: Vec::new(),
            system: format!(
                "Authorization: Bearer {}\n{}",
                canaries[1],
                canaries.join("\n")
            ),
            tool: format!("runs a command with {}", canaries[6]),
        };
        let mut tasks = Vec::new();
        let (path, headers) = place(wire, true);
        let mut turn = |client: &mut Client, proxy: &Proxy| {
            let body = client.body();
            let answer = proxy.post(path, headers, &body);
            assert_eq!(answer.status, 200, "{wire}: {}", answer.text());
            let seen = server.last_call().expect("a request");
            assert_eq!(
                seen.body.as_deref(),
                Some(&body[..]),
                "{wire}: as the client sent it"
            );
            tasks.extend(answer.header("x-infold-task").map(str::to_owned));
            client.hear(&answer.body)
        };
        client.say(&format!("use {} and {}", canaries[2], canaries.join(",")));
        for id in turn(&mut client, &proxy) {
            let printed = json!({"stdout": canaries.join("\n"), "password": canaries[5]});
            client.result(&id, &printed.to_string());
        }
        turn(&mut client, &proxy);
        client.say("go on");
        // A new server, which knows only the data on disk.
        proxy.finish();
        proxy = start(&server, &directory);
        turn(&mut client, &proxy);
        client.say("good bye");
        turn(&mut client, &proxy);
        proxy.finish();
        assert_eq!(tasks.len(), 4, "{wire}");
        assert!(
            tasks.iter().all(|task| *task == tasks[0]),
            "{wire}: {tasks:?}"
        );
        assert_eq!(
            proxy
                .conversations
                .contexts()
                .tasks()
                .map(|all| all.len())
                .ok(),
            Some(1)
        );
        let kept = proxy.kept();
        for canary in &canaries {
            for line in canary.lines().filter(|line| !line.starts_with("-----")) {
                assert!(!kept.contains(line), "{wire}: {line} is on the disk");
            }
        }
        assert!(kept.contains("[redacted:aws-access-token]"), "{wire}");
        assert!(kept.contains("[redacted:private-key]"), "{wire}");
    }
}

#[test]
fn a_provider_that_repeats_a_secret_in_its_refusal_does_not_bring_it_onto_the_disk() {
    for wire in WIRES {
        let key = &canaries()[0];
        let error = json!({"error": {"message": format!("what is {key}?"), "type": "invalid_request_error"}});
        let server = Server::start(Script::steps([Step::error(400, error.to_string())]));
        let directory = Arc::new(tempfile::tempdir().expect("a directory"));
        let mut proxy = start(&server, &directory);
        let (path, headers) = place(wire, true);
        let mut client = Client {
            wire,
            history: Vec::new(),
            system: String::from("none"),
            tool: String::new(),
        };
        client.say("hi");
        let answer = proxy.post(path, headers, &client.body());
        assert!(answer.text().contains(key), "{wire}: the client is told");
        proxy.finish();
        let kept = proxy.kept();
        assert!(!kept.contains(key), "{wire}");
        assert!(
            kept.contains("what is [redacted:aws-access-token]?"),
            "{wire}"
        );
    }
}

#[test]
fn a_body_that_is_spooled_leaves_no_secret_behind() {
    let key = &canaries()[1];
    let server = Server::start(Script::steps([Step::say(format!("fine, {key}"))]));
    let directory = Arc::new(tempfile::tempdir().expect("a directory"));
    let mut proxy = start(&server, &directory);
    let text = format!("{} {key}", "word ".repeat(400_000));
    let body = json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string();
    let answer = proxy.post("/v1/chat/completions", "", body.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = server.last_call().expect("a request");
    assert_eq!(seen.len, body.len() as u64);
    assert_eq!(seen.hash, infold_testkit::hash(body.as_bytes()));
    proxy.finish();
    assert!(!proxy.kept().contains(key));
}

#[test]
fn pieces_of_a_reply_that_share_a_secret_are_the_reply() {
    let key = &canaries()[0];
    let server = Server::start(Script::steps([
        Step::say(format!("take {key} then")).in_pieces(3),
        Step::say("fine"),
    ]));
    let directory = Arc::new(tempfile::tempdir().expect("a directory"));
    let mut proxy = start(&server, &directory);
    let (path, headers) = place(Wire::Gemini, true);
    let user = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
    let mut history = vec![user("hi")];
    let first = proxy.post(
        path,
        headers,
        json!({"contents": history}).to_string().as_bytes(),
    );
    // One of Gemini's clients sends each piece back as a message.
    let said = format!("take {key} then");
    for piece in said.as_bytes().chunks(3) {
        let piece = String::from_utf8_lossy(piece);
        history.push(json!({"role": "model", "parts": [{"text": piece}]}));
    }
    history.push(user("and then?"));
    let second = proxy.post(
        path,
        headers,
        json!({"contents": history}).to_string().as_bytes(),
    );
    assert_eq!(
        first.header("x-infold-task"),
        second.header("x-infold-task")
    );
    proxy.finish();
    let task = proxy.conversations.contexts().tasks().expect("tasks")[0];
    let log = proxy.conversations.contexts().read(task).expect("a log");
    assert_eq!(log.state().last_seq().map(|seq| seq.get()), Some(4));
    assert!(!proxy.kept().contains(key));
}

#[test]
fn what_comes_over_the_rest_api_is_kept_without_secrets() {
    let key = &canaries()[0];
    let server = Server::start(Script::new());
    let directory = Arc::new(tempfile::tempdir().expect("a directory"));
    let mut proxy = start(&server, &directory);
    let made = proxy.post(
        "/infold/api/tasks",
        "",
        json!({"user": key}).to_string().as_bytes(),
    );
    assert_eq!(made.status, 201, "{}", made.text());
    let task: Value = serde_json::from_slice(&made.body).expect("it is JSON");
    let task = format!(
        "/infold/api/tasks/{}",
        task["uuid"].as_str().expect("an id")
    );
    let said = json!([{"role": "user", "content": key}, {"role": "assistant", "content": key}]);
    let pushed = proxy.post(&format!("{task}/messages"), "", said.to_string().as_bytes());
    assert_eq!(pushed.status, 200, "{}", pushed.text());
    let step = json!({"step": "note", "text": key});
    let _ = proxy.post(&format!("{task}/steps"), "", step.to_string().as_bytes());
    let failed = json!({"error": format!("because of {key}")});
    let failed = proxy.post(&format!("{task}/fail"), "", failed.to_string().as_bytes());
    assert_eq!(failed.status, 200, "{}", failed.text());
    proxy.finish();
    let kept = proxy.kept();
    assert!(!kept.contains(key), "{kept}");
    assert!(kept.contains("because of [redacted:aws-access-token]"));
}
