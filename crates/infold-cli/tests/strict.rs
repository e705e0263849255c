//! Made-up conversations through `infold serve`, with small windows and steps at random, to an upstream that
//! checks every rule of its provider: nothing that the proxy sends is refused.
//!
//! `scripts/test-strict` sends many more of them.

#[path = "serve/http.rs"]
mod http;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use infold_testkit::{Conversation, Model, Refusal, Script, Server, Step, hash, refusal};
use infold_wire::{Reply, Wire};
use serde_json::{Value, json};
use tempfile::TempDir;

const WIRES: [Wire; 5] = [
    Wire::Chat,
    Wire::Responses,
    Wire::Anthropic,
    Wire::Gemini,
    Wire::Ollama,
];

/// Names the reply that the upstream is to give. The proxy passes it on.
const REPLY_HEADER: &str = "x-strict-reply";

/// The number of requests before fresh servers are started.
const BATCH_REQUESTS: u64 = 10_000;

/// The number of concurrent clients.
const CLIENTS: usize = 4;

const STRATEGIES: [&str; 5] = ["infold", "roo", "gemini", "file", "truncate"];
const WINDOWS: [u64; 4] = [1_500, 2_500, 4_000, 8_000];
const THRESHOLDS: [u64; 3] = [40, 75, 95];

/// The number of fold settings; each is the profile of a model.
const PROFILES: u64 = 20;

/// The window of an upstream that has one.
const UPSTREAM_WINDOW: u64 = 6_000;

type Replies = Arc<Mutex<HashMap<String, Reply>>>;

/// The counts of a run.
#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    folded: AtomicU64,
    steps: AtomicU64,
    /// Requests that were answered with 400 in the end.
    rejected: Mutex<HashSet<String>>,
    /// Replies that were neither 200 nor 400.
    failed: AtomicU64,
}

/// The counts of one wire.
#[derive(Default)]
struct Tally {
    requests: u64,
    folded: u64,
    steps: u64,
    failed: u64,
    refused: u64,
    /// The number of refusals because roles must alternate.
    asked: u64,
    safety: u64,
    next_seed: u64,
    /// Refusals by their wording without ids and numbers.
    classes: BTreeMap<String, u64>,
}

/// `infold serve` with a separate contexts directory.
struct Proxy {
    child: Child,
    port: u16,
    _root: TempDir,
}

impl Proxy {
    fn start(upstream: &Server) -> Proxy {
        let root = tempfile::tempdir().expect("a directory");
        let config = root.path().join("config.yaml");
        fs::write(&config, profiles()).expect("a file");
        let errors = File::create(root.path().join("errors")).expect("a file");
        let mut child = Command::new(env!("CARGO_BIN_EXE_infold"))
            .env_clear()
            .env("INFOLD_CONTEXTS", root.path().join("contexts"))
            .env("INFOLD_CONFIG", &config)
            .env("INFOLD_SUMMARIZER", "extractive")
            .env("HOME", root.path())
            .args([
                "--json",
                "serve",
                "--port",
                "0",
                "--upstream",
                &upstream.url(),
            ])
            .current_dir(root.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .expect("infold starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let ready: Value = serde_json::from_str(&line).expect("the address");
        let port = ready["port"].as_u64().expect("a port");
        Proxy {
            child,
            port: port.try_into().expect("a port"),
            _root: root,
        }
    }

    /// The sum of all metrics that count uses of the safety net; zero if there are none.
    fn safety(&self) -> u64 {
        let text = http::get(self.port, "/metrics").expect("an answer").text();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let lines = lines.filter(|line| line.starts_with("infold_fold_fallbacks_total"));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        values.sum()
    }

    /// Takes a step on a task as a person would; most make no sense, and are refused.
    fn step(&self, task: &str, dice: u64) -> bool {
        let seq = 1 + dice / 16 % 60;
        let to = seq + dice / 1_024 % 12;
        let fold = format!("e{seq}");
        let body = match dice % 12 {
            0 | 1 => json!({"step": "condense", "from": seq, "to": to, "text": "It went on."}),
            2 => json!({"step": "condense"}),
            3 => json!({"step": "truncate", "fraction": 0.5}),
            4 | 5 => json!({"step": "mask", "seq": seq}),
            6 => json!({"step": "unfold", "fold": fold}),
            7 => json!({"step": "undo"}),
            8 => json!({"step": "redo"}),
            9 => json!({"step": "rewind", "to": seq.to_string()}),
            10 => json!({"step": "pin", "seq": seq}),
            _ => json!({"step": "note", "text": "Mind the tests."}),
        };
        let path = format!("/infold/api/tasks/{task}/steps");
        let answer = http::post(self.port, &path, &[], body.to_string().as_bytes());
        answer.is_ok_and(|answer| answer.status < 300)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A configuration with a profile for each way to fold.
fn profiles() -> String {
    let mut text = "profiles:\n".to_owned();
    for number in 0..PROFILES {
        let pick = |list: &[u64], by: u64| list[(number / by % list.len() as u64) as usize];
        let (window, threshold) = (pick(&WINDOWS, 5), pick(&THRESHOLDS, 2));
        let strategy = STRATEGIES[number as usize % STRATEGIES.len()];
        let _ = writeln!(
            text,
            "  {}:\n    strategy: {strategy}\n    window: {window}\n    threshold: {threshold}",
            profile(number)
        );
    }
    text
}

fn profile(number: u64) -> String {
    format!("s{number:02}")
}

/// Holds one conversation to its end, or until something goes wrong.
fn talk(route: &Route, counts: &Counts, wire: Wire, seed: u64) {
    let Route {
        proxy,
        model,
        replies,
        ..
    } = route;
    let dice = |turn: u64| hash(format!("{wire} {seed} {turn}").as_bytes());
    let kinds = ["model", "gemini-3-pro"];
    let kind = kinds[(seed / PROFILES) as usize % kinds.len()];
    let name = format!("{}-{kind}", profile(seed % PROFILES));
    let mut conversation = Conversation::new(wire, seed, name);
    if model.alternate {
        conversation = conversation.alternating();
    }
    for turn in 0..10 + dice(0) % 50 {
        let exchange = conversation.ask();
        if let Some(reason) = refusal(model, &exchange.path, &exchange.body) {
            let body = String::from_utf8_lossy(&exchange.body);
            panic!("the client is wrong: {wire} seed {seed} turn {turn}: {reason}\n{body}");
        }
        let key = format!("{wire}-{seed}-{turn}");
        let lock = || replies.lock().expect("nobody panicked");
        lock().insert(key.clone(), exchange.reply);
        let task = format!("{wire}-{seed}");
        let mut headers = vec![("anthropic-version", "2023-06-01"), (REPLY_HEADER, &key)];
        if seed.is_multiple_of(4) {
            headers.push(("x-infold-task", &task));
        }
        let answer = http::post(proxy.port, &exchange.path, &headers, &exchange.body);
        lock().remove(&key);
        counts.requests.fetch_add(1, Ordering::Relaxed);
        let answer = match answer {
            Ok(answer) if answer.status == 200 && answer.whole => answer,
            Ok(answer) if answer.status == 400 => {
                let mut rejected = counts.rejected.lock().expect("nobody panicked");
                rejected.insert(key);
                return;
            }
            other => {
                eprintln!("{wire} seed {seed} turn {turn}: {other:?}");
                counts.failed.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
        if answer
            .header("x-infold-folds")
            .is_some_and(|folds| folds != "0")
        {
            counts.folded.fetch_add(1, Ordering::Relaxed);
        }
        conversation.hear();
        let dice = dice(turn + 1);
        if dice.is_multiple_of(8)
            && let Some(task) = answer.header("x-infold-task")
            && proxy.step(task, dice / 8)
        {
            counts.steps.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A proxy, and the upstream behind it.
struct Route {
    proxy: Proxy,
    upstream: Server,
    model: Model,
    replies: Replies,
}

impl Route {
    fn start(model: Model) -> Route {
        let replies = Replies::default();
        let known = Arc::clone(&replies);
        let script = Script::decide(move |seen| {
            let key = seen.header(REPLY_HEADER).unwrap_or_default();
            let known = known.lock().expect("nobody panicked");
            let reply = known.get(key).cloned();
            reply.map_or_else(Step::model, Step::exact)
        });
        let upstream = Server::start(script.model(model.clone()));
        Route {
            proxy: Proxy::start(&upstream),
            upstream,
            model,
            replies,
        }
    }
}

/// Sends about `requests` requests to fresh servers, from the next seed on.
///
/// A seed chooses its upstream: one without a limit, one with a window of its own, one that requires alternating roles.
fn batch(tally: &mut Tally, wire: Wire, requests: u64) {
    let window = Model {
        window: Some(UPSTREAM_WINDOW),
        ..Model::picky()
    };
    let alternate = Model {
        alternate: true,
        ..Model::picky()
    };
    let routes = [Model::picky(), window, alternate].map(Route::start);
    let counts = Counts::default();
    let seed = AtomicU64::new(tally.next_seed);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while counts.requests.load(Ordering::Relaxed) < requests {
                    let seed = seed.fetch_add(1, Ordering::Relaxed);
                    talk(&routes[seed as usize % routes.len()], &counts, wire, seed);
                }
            });
        }
    });
    tally.next_seed = seed.into_inner();
    tally.requests += counts.requests.into_inner();
    tally.folded += counts.folded.into_inner();
    tally.steps += counts.steps.into_inner();
    tally.failed += counts.failed.into_inner();
    let rejected = counts.rejected.into_inner().expect("nobody panicked");
    for route in &routes {
        tally.safety += route.proxy.safety();
        let refusals = route.upstream.take_refusals();
        let key = |refused: &Refusal| {
            refused
                .request
                .header(REPLY_HEADER)
                .unwrap_or("no seed")
                .to_owned()
        };
        let mut times: HashMap<String, usize> = HashMap::new();
        for refused in &refusals {
            *times.entry(key(refused)).or_default() += 1;
        }
        let mut asked = HashSet::new();
        for refused in &refusals {
            let key = key(refused);
            // The proxy learns once for each model that roles must alternate, and sends the request again; an error in
            // that one is a separate refusal.
            if refused.reason.contains("alternate") && asked.insert(key.clone()) {
                tally.asked += 1;
                if times[&key] > 1 || !rejected.contains(&key) {
                    continue;
                }
            }
            report(tally, wire, &key, refused);
        }
    }
}

/// Prints the first refusals of each class, and counts all.
fn report(tally: &mut Tally, wire: Wire, key: &str, refused: &Refusal) {
    tally.refused += 1;
    let class = class(&refused.reason);
    let count = tally.classes.entry(class).or_default();
    *count += 1;
    if *count <= 2 {
        let (reason, body) = (&refused.reason, refused.request.text());
        eprintln!("refused: {wire}, {key} (wire-seed-turn): {reason}\n{body}\n");
    }
}

/// Returns the wording of an error without the parts that differ between requests.
fn class(reason: &str) -> String {
    let words = reason.split_whitespace().map(|word| {
        if word.contains(|it: char| it.is_ascii_digit()) {
            "…"
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A number that the environment gives.
fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {value}")),
    )
}

#[test]
fn nothing_that_the_proxy_sends_is_refused() {
    let wanted = number("INFOLD_STRICT_REQUESTS").unwrap_or(450);
    let first_seed = number("INFOLD_STRICT_SEED").unwrap_or(0);
    let only = std::env::var("INFOLD_STRICT_WIRE").ok();
    let mut table = format!(
        "{:<10} {:>9} {:>9} {:>7} {:>8} {:>7} {:>7} {:>9} {:>10} {:>8}\n",
        "wire",
        "requests",
        "folded",
        "steps",
        "refused",
        "failed",
        "safety",
        "alternate",
        "next seed",
        "seconds"
    );
    let mut bad = 0;
    let chosen = |wire: &Wire| only.as_ref().is_none_or(|only| *only == wire.to_string());
    for wire in WIRES.into_iter().filter(chosen) {
        let begin = Instant::now();
        let mut tally = Tally {
            next_seed: first_seed,
            ..Tally::default()
        };
        while tally.requests < wanted {
            let left = wanted - tally.requests;
            batch(&mut tally, wire, left.min(BATCH_REQUESTS));
            eprintln!(
                "{wire}: {} of {wanted} requests, {} folded, {} refused, next seed {}",
                tally.requests, tally.folded, tally.refused, tally.next_seed
            );
        }
        let _ = writeln!(
            table,
            "{:<10} {:>9} {:>9} {:>7} {:>8} {:>7} {:>7} {:>9} {:>10} {:>8}",
            wire.to_string(),
            tally.requests,
            tally.folded,
            tally.steps,
            tally.refused,
            tally.failed,
            tally.safety,
            tally.asked,
            tally.next_seed,
            begin.elapsed().as_secs()
        );
        for (class, count) in &tally.classes {
            let _ = writeln!(table, "  {count:>6} × {class}");
        }
        assert!(
            tally.folded > 0 || wanted < 100,
            "{wire}: nothing was folded\n{table}"
        );
        // Each use of the safety net hides a request that was refused.
        bad += tally.refused + tally.failed + tally.safety;
    }
    eprintln!("{table}");
    assert_eq!(bad, 0, "requests were refused or failed\n{table}");
}

/// A conversation through a separate proxy.
struct Talk {
    wire: Wire,
    model: &'static str,
    route: Route,
    history: Vec<Value>,
    task: String,
}

impl Talk {
    /// Sends the history so far.
    fn begin(wire: Wire, model: &'static str, history: &[Value]) -> Talk {
        Talk::begin_with(Model::picky(), wire, model, history)
    }

    fn begin_with(provider: Model, wire: Wire, model: &'static str, history: &[Value]) -> Talk {
        let mut talk = Talk {
            wire,
            model,
            route: Route::start(provider),
            history: history.to_vec(),
            task: String::new(),
        };
        let answer = talk.send();
        talk.task = answer
            .header("x-infold-task")
            .unwrap_or_default()
            .to_owned();
        let reply: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        match wire {
            Wire::Gemini => talk.history.push(reply["candidates"][0]["content"].clone()),
            Wire::Responses => talk
                .history
                .extend(reply["output"].as_array().cloned().unwrap_or_default()),
            _ => talk
                .history
                .push(said("assistant", reply["content"].clone())),
        }
        talk
    }

    fn send(&self) -> http::Answer {
        let (model, messages) = (self.model, &self.history);
        let (path, body) = match self.wire {
            Wire::Responses => (
                "/v1/responses".to_owned(),
                json!({"model": model, "input": messages}),
            ),
            Wire::Gemini => (
                format!("/v1beta/models/{model}:generateContent"),
                json!({"contents": messages}),
            ),
            _ => (
                "/v1/messages".to_owned(),
                json!({"model": model, "max_tokens": 64, "messages": messages}),
            ),
        };
        let headers = [("anthropic-version", "2023-06-01")];
        let body = body.to_string();
        http::post(self.route.proxy.port, &path, &headers, body.as_bytes()).expect("an answer")
    }

    /// Has it folded, as a person would.
    fn fold(&self, what: &str, step: &Value) {
        let path = format!("/infold/api/tasks/{}/{what}", self.task);
        let step = step.to_string();
        let folded = http::post(self.route.proxy.port, &path, &[], step.as_bytes());
        let folded = folded.expect("an answer");
        assert!(folded.status < 300, "{}", folded.text());
    }

    /// Says something more.
    fn go_on(&mut self) {
        let user = match self.wire {
            Wire::Gemini => json!({"role": "user", "parts": [{"text": "go on"}]}),
            _ => said("user", "go on"),
        };
        self.history.push(user);
        self.send();
    }

    /// Returns the requests that the upstream refused, with the reasons.
    fn refused(&self) -> Vec<String> {
        let refusals = self.route.upstream.take_refusals();
        let tell = |refused: &Refusal| format!("{}\n{}", refused.reason, refused.request.text());
        refusals.iter().map(tell).collect()
    }
}

/// The model of a profile whose window is small and whose summaries are followed by a word of the assistant.
const SMALL: &str = "s02";

/// Sends a conversation, condenses these messages, continues, and returns the refusals of the upstream.
fn condense(wire: Wire, history: &[Value], from: u64, to: u64) -> Vec<String> {
    let mut talk = Talk::begin(wire, "m", history);
    let step = json!({"step": "condense", "from": from, "to": to, "text": "It went on."});
    talk.fold("steps", &step);
    talk.go_on();
    talk.refused()
}

fn said(role: &str, content: impl Into<Value>) -> Value {
    json!({"role": role, "content": content.into()})
}

#[test]
fn a_paused_tool_of_the_server_keeps_its_result() {
    let used = json!([{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}]);
    let found = json!([{"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}, {"type": "text", "text": "so"}]);
    let history = [
        said("user", "a"),
        said("assistant", used),
        said("assistant", found),
        said("user", "b"),
    ];
    assert_eq!(condense(Wire::Anthropic, &history, 2, 2), [""; 0]);
}

#[test]
fn code_that_calls_tools_keeps_its_result() {
    let used = json!([
        {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {}},
        {"type": "tool_use", "id": "t1", "name": "n", "input": {}, "caller": {"type": "code_execution_20250825", "tool_id": "s1"}},
    ]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]);
    let again = json!([{"type": "tool_use", "id": "t2", "name": "n", "input": {}, "caller": {"type": "code_execution_20250825", "tool_id": "s1"}}]);
    let second = json!([{"type": "tool_result", "tool_use_id": "t2", "content": "x"}]);
    let done = json!([{"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}}]);
    let history = [
        said("user", "a"),
        said("assistant", used),
        said("user", result),
        said("assistant", again),
        said("user", second),
        said("assistant", done),
        said("user", "b"),
    ];
    assert_eq!(condense(Wire::Anthropic, &history, 2, 3), [""; 0]);
}

#[test]
fn blocks_of_a_new_kind_that_share_an_id_stay_together() {
    let used = json!([{"type": "robot_tool_use", "id": "r1", "name": "arm", "input": {}}, {"type": "text", "text": "so"}]);
    let done = json!([{"type": "robot_tool_result", "tool_use_id": "r1", "content": "x"}, {"type": "text", "text": "so"}]);
    let history = [
        said("user", "a"),
        said("assistant", used),
        said("user", "b"),
        said("assistant", done),
        said("user", "c"),
    ];
    assert_eq!(condense(Wire::Anthropic, &history, 2, 2), [""; 0]);
}

#[test]
fn a_later_system_message_does_not_follow_a_stand_in_of_the_assistant() {
    let text = "word ".repeat(800);
    let history = [
        said("user", "a"),
        said("assistant", text.clone()),
        said("user", text),
        said("system", "s"),
    ];
    let talk = Talk::begin(Wire::Anthropic, SMALL, &history);
    assert_eq!(talk.refused(), [""; 0]);
}

#[test]
fn a_stand_in_of_the_user_does_not_follow_a_later_system_message() {
    let history = [
        said("user", "a"),
        said("assistant", "so"),
        said("user", "b"),
        said("system", "s"),
        said("assistant", "so"),
        said("user", "c"),
    ];
    assert_eq!(condense(Wire::Anthropic, &history, 5, 5), [""; 0]);
}

#[test]
fn reasoning_keeps_all_that_it_led_to() {
    let history = [
        said("user", "a"),
        json!({"type": "reasoning", "id": "rs_1", "summary": []}),
        json!({"type": "shell_call", "id": "sh_1-rs_1", "call_id": "c0", "status": "completed", "action": {"commands": ["ls"]}, "environment": {"type": "container_reference", "container_id": "cntr_1"}}),
        json!({"type": "shell_call_output", "call_id": "c0", "output": []}),
        json!({"type": "function_call", "id": "fc_1-rs_1", "call_id": "c1", "name": "n", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": "c1", "output": "x"}),
        said("user", "b"),
    ];
    assert_eq!(condense(Wire::Responses, &history, 2, 4), [""; 0]);
}

#[test]
fn what_is_asked_again_after_a_fold_ends_with_the_user() {
    let text = "word ".repeat(300);
    let history = [
        said("user", "a"),
        said("assistant", text.clone()),
        said("user", text),
    ];
    let mut talk = Talk::begin(Wire::Anthropic, "m", &history);
    let step = json!({"force": true, "strategy": "gemini", "window": 1_500});
    talk.fold("manage", &step);
    talk.history = history.to_vec();
    talk.send();
    assert_eq!(talk.refused(), [""; 0]);
}

#[test]
fn an_approval_keeps_its_request_and_its_call() {
    let history = [
        said("user", "a"),
        json!({"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "d", "name": "n", "arguments": "{}"}),
        json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true}),
        json!({"type": "mcp_call", "id": "mcp_1", "approval_request_id": "mcpr_1", "server_label": "d", "name": "n", "arguments": "{}", "output": "x"}),
        said("assistant", "so"),
        said("user", "b"),
    ];
    for to in [2, 3] {
        assert_eq!(condense(Wire::Responses, &history, 2, to), [""; 0]);
    }
}

#[test]
fn a_function_call_turn_does_not_follow_a_stand_in_of_the_model() {
    let text = "word ".repeat(800);
    let said = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
    let history = [
        said("user", "a"),
        said("model", &text),
        said("user", &text),
        json!({"role": "model", "parts": [{"functionCall": {"name": "n", "args": {}}}]}),
        json!({"role": "user", "parts": [{"functionResponse": {"name": "n", "response": {}}}]}),
    ];
    let talk = Talk::begin(Wire::Gemini, SMALL, &history);
    assert_eq!(talk.refused(), [""; 0]);
}

#[test]
fn tools_of_gemini_keep_their_responses() {
    let text = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
    for (call, response) in [("toolCall", "toolResponse"), ("robotCall", "robotResponse")] {
        let history = [
            text("a"),
            json!({"role": "model", "parts": [{call: {"id": "s1"}}, {"functionCall": {"name": "n", "args": {}}}]}),
            json!({"role": "user", "parts": [{"functionResponse": {"name": "n", "response": {}}}]}),
            json!({"role": "model", "parts": [{response: {"id": "s1"}}, {"text": "so"}]}),
            text("b"),
        ];
        assert_eq!(condense(Wire::Gemini, &history, 2, 3), [""; 0]);
    }
}

#[test]
fn a_note_is_separated_where_roles_must_alternate() {
    let provider = Model {
        alternate: true,
        ..Model::picky()
    };
    let mut talk = Talk::begin_with(provider, Wire::Anthropic, "m", &[said("user", "a")]);
    talk.fold("steps", &json!({"step": "note", "text": "Mind the tests."}));
    talk.go_on();
    let answer = talk.send();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn what_separates_roles_does_not_stand_between_parallel_calls() {
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "n", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "x"});
    let history = [
        said("user", "a"),
        said("assistant", "b"),
        said("user", "c"),
        call("c1"),
        call("c2"),
        output("c1"),
        output("c2"),
    ];
    let provider = Model {
        alternate: true,
        ..Model::picky()
    };
    let mut talk = Talk::begin_with(provider, Wire::Responses, "m", &history);
    let step = json!({"step": "condense", "from": 2, "to": 3, "text": "It went on."});
    talk.fold("steps", &step);
    talk.go_on();
    let mut refused = talk.refused();
    refused.retain(|reason| !reason.contains("alternate"));
    assert_eq!(refused, [""; 0]);
}
