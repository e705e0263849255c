//! The API, over real connections and on real files.

mod document;
mod refusals;
mod server;

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use infold_serve::LiveEvent;
use infold_store::{Matching, SearchRequest};
use serde_json::{Value, json};

use server::Server;

fn seqs(list: &[Value]) -> Vec<u64> {
    list.iter()
        .filter_map(|entry| entry["seq"].as_u64())
        .collect()
}

#[test]
fn messages_with_an_idempotency_key_are_appended_once() {
    let server = Server::start();
    let made = server.post("/infold/api/tasks", &json!({}));
    let id = made.json()["uuid"].as_str().unwrap().to_owned();
    let path = format!("/infold/api/tasks/{id}/messages");
    let lines = br#"[{"role":"user","content":"one"},{"role":"assistant","content":"two"}]"#;
    let key = "idempotency-key: of today\r\n";
    for _ in 0..3 {
        let pushed = server.ask("POST", &path, key, lines);
        assert_eq!(pushed.json(), json!({"from": 1, "to": 2, "count": 2}));
    }
    let other = server.ask("POST", &path, key, br#"[{"role":"user","content":"else"}]"#);
    assert_eq!(other.status, 422, "{}", other.text());
    let hint = other.json()["error"]["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("nothing of it was kept"), "{hint}");
    let blank = server.ask("POST", &path, "idempotency-key: \r\n", lines);
    assert_eq!(blank.status, 400, "{}", blank.text());
    let fresh = server.ask("POST", &path, "idempotency-key: tomorrow\r\n", lines);
    assert_eq!(fresh.json(), json!({"from": 3, "to": 4, "count": 2}));
}

#[test]
fn a_task_is_made_filled_steered_and_ended() {
    let server = Server::start();
    assert!(server.list("/infold/api/tasks").is_empty());
    let made = server.post("/infold/api/tasks", &json!({
        "task_source": "github", "owner": "o", "repo": "r", "user": "ann", "llm_provider": "anthropic", "model": null,
    }));
    assert_eq!(made.status, 201);
    let id = made.json()["uuid"].as_str().unwrap().to_owned();
    let task = format!("/infold/api/tasks/{}", &id[..8]);

    // Spaces and escapes stay as they came.
    let odd = r#"{"role":"user", "content":"\u0068alf  and all"}"#;
    let lines = format!("{odd}\n{{\"role\":\"assistant\",\"content\":\"yes\"}}\n");
    let pushed = server.ask("POST", &format!("{task}/messages"), "", lines.as_bytes());
    assert_eq!(pushed.json(), json!({"from": 1, "to": 2, "count": 2}));
    let recalled = server.get(&format!("{task}/messages/1"));
    assert!(recalled.text().contains(odd), "{}", recalled.text());
    assert_eq!(
        server.get(&format!("{task}/view?raw=1")).text(),
        format!("[\n{odd},\n{{\"role\":\"assistant\",\"content\":\"yes\"}}\n]\n")
    );
    let nothing = server.ask("POST", &format!("{task}/messages"), "", b"");
    assert_eq!(
        nothing.json(),
        json!({"from": null, "to": null, "count": 0})
    );

    let more: Vec<Value> = (0..20)
        .map(|turn| {
            let role = if turn % 2 == 0 { "user" } else { "assistant" };
            json!({"role": role, "content": format!("turn {turn}")})
        })
        .collect();
    assert_eq!(
        server
            .post(&format!("{task}/messages"), &more.into())
            .json()["to"],
        22
    );

    let step = |step: Value| {
        let answer = server.post(&format!("{task}/steps"), &step);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let taken = step(json!({"step": "condense", "from": 3, "to": 10, "text": "they counted"}));
    assert_eq!(
        (&taken["fold"], &taken["from"], &taken["to"]),
        (&json!("e1"), &json!(3), &json!(10))
    );
    assert_eq!(taken["back"], "undo");
    let view = server.list(&format!("{task}/view"));
    assert_eq!(view[2]["fold"], "e1");
    assert!(
        view[2]["stand_in"][0]["text"]
            .as_str()
            .unwrap()
            .contains("they counted")
    );
    assert_eq!(server.list(&format!("{task}/folds"))[0]["status"], "active");
    // The state before the fold.
    assert!(server.list(&format!("{task}/folds?at=22")).is_empty());
    assert_eq!(
        seqs(&server.list(&format!("{task}/view?at=4"))),
        [1, 2, 3, 4]
    );
    assert_eq!(
        server.list(&format!("{task}/log?from=5&to=5"))[0]["place"],
        "in e1"
    );
    step(json!({"step": "undo"}));
    assert_eq!(
        server.list(&format!("{task}/folds"))[0]["status"],
        "inactive"
    );
    step(json!({"step": "redo"}));
    step(json!({"step": "pin", "seq": 12}));
    step(json!({"step": "rewind", "to": 12}));
    let log = server.list(&format!("{task}/log"));
    assert_eq!(
        log.iter()
            .filter(|entry| entry["event"].is_string())
            .count(),
        5
    );
    let place = |seq: usize| log.iter().find(|entry| entry["seq"] == seq).unwrap()["place"].clone();
    assert_eq!(
        [place(2), place(5), place(13)],
        ["shown", "shown", "rewound"]
    );

    let shown = server.get(&task).json();
    for (name, value) in [
        ("uuid", json!(id)),
        ("status", json!("running")),
        ("user", json!("ann")),
        ("messages", json!(22)),
        ("events", json!(5)),
        ("parent", json!(null)),
        ("compression_count", json!(1)),
    ] {
        assert_eq!(shown[name], value, "{name}");
    }
    let forked = server.post(&format!("{task}/fork"), &json!({"at": 4}));
    assert_eq!(forked.status, 201);
    let fork = forked.json();
    assert_eq!((&fork["parent"], &fork["seq"]), (&json!(id), &json!(4)));
    let fork = format!("/infold/api/tasks/{}", fork["uuid"].as_str().unwrap());
    assert_eq!(server.get(&fork).json()["parent"]["task"], json!(id));

    assert_eq!(
        server
            .ask("POST", &format!("{task}/release"), "", b"")
            .status,
        204
    );
    let ended = server.ask("POST", &format!("{task}/complete"), "", b"");
    assert_eq!(ended.json(), json!({"uuid": id, "status": "completed"}));
    let failed = server.post(&format!("{fork}/fail"), &json!({"error": "no time"}));
    assert_eq!(failed.json()["status"], "failed");
    assert_eq!(server.get(&fork).json()["error_message"], "no time");

    let names = |path: &str| -> Vec<Value> {
        server
            .list(path)
            .into_iter()
            .map(|row| row["status"].clone())
            .collect()
    };
    assert_eq!(names("/infold/api/tasks"), ["failed", "completed"]);
    assert_eq!(names("/infold/api/tasks?limit=1"), ["failed"]);
    assert_eq!(names("/infold/api/tasks?status=completed"), ["completed"]);
    assert_eq!(names("/infold/api/tasks?user=bob"), [""; 0]);
    let usage = server.get("/infold/api/usage").json();
    assert_eq!(
        (&usage["tasks"], &usage["models"][0]["llm_provider"]),
        (&json!(2), &json!("anthropic"))
    );
    assert!(usage["total_tokens"].as_u64().unwrap() > 0);
}

#[test]
fn a_log_comes_in_pages() {
    let server = Server::start();
    let task = server.task(5);
    server.post(
        &format!("{task}/steps"),
        &json!({"step": "note", "text": "hm"}),
    );
    server.post(
        &format!("{task}/messages"),
        &json!([{"role": "user", "content": "and?"}]),
    );
    let page = |query: &str| {
        let list = server.list(&format!("{task}/log{query}"));
        let event = list.iter().any(|entry| entry["event"] == "e1");
        (seqs(&list), event)
    };
    let all: Vec<u64> = (1..=11).collect();
    assert_eq!(page(""), (all, true));
    assert_eq!(page("?from=9"), (vec![9, 10, 11], true));
    assert_eq!(page("?from=9&to=9"), (vec![9], false));
    assert_eq!(page("?from=10&limit=1"), (vec![10], true));
    assert_eq!(page("?from=11"), (vec![11], false));
    assert_eq!(page("?limit=2"), (vec![10, 11], true));
    assert_eq!(page("?limit=900&to=2"), (vec![1, 2], false));
    assert_eq!(page("?from=12"), (vec![], false));
    assert_eq!(page("?to=900&from=11"), (vec![11], false));
}

/// Long lists are sent while they are produced; a client that disconnects ends that.
#[test]
fn a_long_log_is_streamed() {
    let server = Server::start();
    let task = server.task(1);
    let text = "x".repeat(8 << 10);
    let all: Vec<Value> = (0..1_000)
        .map(|_| json!({"role": "user", "content": text}))
        .collect();
    server.post(&format!("{task}/messages"), &all.into());
    let array = server.list(&format!("{task}/log"));
    let lines = server.ask(
        "GET",
        &format!("{task}/log"),
        "accept: application/x-ndjson\r\n",
        b"",
    );
    assert!(
        lines.head.contains("content-type: application/x-ndjson"),
        "{}",
        lines.head
    );
    let lines: Vec<Value> = lines
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines, array);
    assert_eq!(array.len(), 1_002);
    for _ in 0..20 {
        let mut stream = server.open("GET", &format!("{task}/log"), "", b"");
        stream.read_exact(&mut [0; 100]).unwrap();
    }
    assert_eq!(server.get("/healthz").text(), "ok\n");
}

#[test]
fn a_preview_says_what_would_be_folded_and_folds_nothing() {
    let server = Server::start();
    let task = server.task(60);
    let manage = format!("{task}/manage");
    let events = || server.get(&task).json()["events"].clone();
    let preview = server.post(&manage, &json!({"dry_run": true, "window": 2000}));
    assert_eq!(preview.status, 200, "{}", preview.text());
    let preview = preview.json();
    assert_eq!(preview["due"], "window", "{preview}");
    assert!(
        preview["tokens_after"].as_u64() < preview["tokens_before"].as_u64(),
        "{preview}"
    );
    assert_eq!(events(), 0);
    let idle = server.post(&manage, &json!({"window": 1_000_000})).json();
    assert_eq!(
        (&idle["outcome"], events()),
        (&json!("untouched"), json!(0))
    );
    let folded = server.post(&manage, &json!({"window": 2000})).json();
    assert_eq!(folded["tokens_after"], preview["tokens_after"], "{folded}");
    assert_ne!(events(), 0);
    let forced = server.post(
        &manage,
        &json!({"dry_run": true, "force": true, "window": 1_000_000}),
    );
    assert_eq!(forced.json()["due"], "forced", "{}", forced.text());
    let small = server.post(&manage, &json!({"window": 100}));
    assert!(
        small.status == 422 || small.status == 400,
        "{}",
        small.text()
    );
}

/// The events up to and with one of a name.
fn heard(stream: &mut BufReader<TcpStream>, name: &str) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    let mut event = String::new();
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).expect("an event comes") > 0);
        if let Some(name) = line.strip_prefix("event: ") {
            event = name.trim().to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            all.push((event.clone(), serde_json::from_str(data).expect("JSON")));
            if event == name {
                return all;
            }
        }
    }
}

#[test]
fn changes_are_told_as_they_happen() {
    let server = Server::start();
    let (task, other) = (server.task(10), server.task(10));
    let (id, other_id) = (
        task.rsplit('/').next().unwrap(),
        other.rsplit('/').next().unwrap(),
    );
    let listen = |query: &str| {
        let mut stream = server.open("GET", &format!("/infold/api/events{query}"), "", b"");
        let mut head = String::new();
        while !head.contains(": infold") {
            stream.read_line(&mut head).expect("the stream opens");
        }
        assert!(head.contains("text/event-stream"), "{head}");
        stream
    };
    let (mut all, mut one) = (listen(""), listen(&format!("?task={}", &id[..8])));
    server.post(
        &format!("{other}/messages"),
        &json!([{"role": "user", "content": "hm"}]),
    );
    server.post(
        &format!("{task}/steps"),
        &json!({"step": "condense", "from": 3, "to": 8, "text": "so"}),
    );
    let names = |heard: &[(String, Value)]| -> Vec<String> {
        heard.iter().map(|(name, _)| name.clone()).collect()
    };
    let (all_heard, one_heard) = (heard(&mut all, "step"), heard(&mut one, "step"));
    assert_eq!(names(&all_heard), ["message", "folding", "fold", "step"]);
    assert_eq!(names(&one_heard), ["folding", "fold", "step"]);
    assert_eq!(
        all_heard[0].1,
        json!({"task": other_id, "change": {"from": 21, "to": 21, "count": 1}})
    );
    assert_eq!(one_heard[2].1["change"]["fold"], "e1");
    // Events of other parts of the server are passed on too; a line break in one does no harm.
    let json = "{\"why\":\n\"broken\"}".to_owned();
    let task = id.parse().unwrap();
    server.news.publish(LiveEvent {
        task,
        name: "failure",
        json,
    });
    assert_eq!(heard(&mut one, "failure")[0].1["change"]["why"], "broken");
    server.news.end();
    let mut rest = String::new();
    one.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "\n");
}

#[test]
fn metrics_are_lines_that_can_be_read() {
    let server = Server::start();
    let task = server.task(10);
    server.post(&format!("{task}/steps"), &json!({"step": "truncate"}));
    server
        .metrics
        .count(Some(infold_wire::Wire::Chat), 200, Duration::from_millis(3));
    let answer = server.get("/metrics");
    assert!(
        answer
            .head
            .contains("content-type: text/plain; version=0.0.4"),
        "{}",
        answer.head
    );
    let text = answer.text();
    let mut names = std::collections::BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').expect(line);
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
            "{line}"
        );
        assert!(labels.ends_with('}'), "{line}");
        for label in labels
            .trim_end_matches('}')
            .split(',')
            .filter(|label| !label.is_empty())
        {
            let (_, value) = label.split_once('=').expect(line);
            assert!(
                value.len() > 2 && value.starts_with('"') && value.ends_with('"'),
                "{line}"
            );
        }
        assert!(names.insert(series.to_owned()), "{line} is there twice");
    }
    for series in [
        "infold_tasks_total{how=\"made\"}",
        "infold_folds_total{kind=\"window\"}",
        "infold_fold_tokens_after_total",
        "infold_requests_total{wire=\"chat\",status=\"2xx\"}",
    ] {
        assert!(names.contains(series), "{series}\n{text}");
    }
}

#[test]
fn health_says_whether_tasks_can_be_kept() {
    let server = Server::start();
    let well = server.get("/healthz");
    assert_eq!((well.status, well.text().as_str()), (200, "ok\n"));
    assert_eq!(server.ask("HEAD", "/healthz", "", b"").text(), "");
    std::fs::remove_dir_all(server.contexts.root()).unwrap();
    std::fs::write(server.contexts.root(), "").unwrap();
    let ill = server.get("/healthz").error();
    assert!(
        ill.starts_with("503 busy: ") && ill.contains("cannot be written"),
        "{ill}"
    );
}

#[test]
fn messages_are_searched_and_folds_shown() {
    let server = Server::start();
    let made = server.post("/infold/api/tasks", &json!({}));
    let id = made.json()["uuid"].as_str().unwrap().to_owned();
    let task = format!("/infold/api/tasks/{id}");
    let talk = r#"[{"role":"user","content":"fix getUserName"},{"role":"assistant","content":"it was a stub"},{"role":"user","content":"go on"},{"role":"assistant","content":"the timeout is 30 s"},{"role":"user","content":"good"}]"#;
    server.ask("POST", &format!("{task}/messages"), "", talk.as_bytes());
    let step = json!({"step": "condense", "from": 2, "to": 3, "text": "a stub was found"});
    let fold = server.post(&format!("{task}/steps"), &step).json()["event"].clone();
    let fold = fold.as_str().unwrap().to_owned();

    let found = server.get("/infold/api/search?q=stub").json();
    assert_eq!(found["complete"], true, "{found}");
    let hit = &found["hits"][0];
    assert_eq!((&hit["seq"], &hit["task"]), (&2.into(), &json!(id)));
    assert_eq!((&hit["hidden"], &hit["fold"]), (&true.into(), &json!(fold)));
    let nothing = server.get("/infold/api/search?q=zebra&task=ffff-none&limit=5");
    assert_eq!(nothing.status, 404, "no such task");
    let nothing = server
        .get(&format!("/infold/api/search?q=zebra&task={id}"))
        .json();
    assert_eq!(nothing["hits"], json!([]));
    assert_eq!(nothing["note"], "no message has any of: zebra");
    let exact = server
        .get("/infold/api/search?q=is+30&exact=true&role=model")
        .json();
    assert_eq!(exact["hits"][0]["seq"], 4, "{exact}");
    for wrong in [
        "?q=x&role=king",
        "?q=(&regex=true",
        "?q=x&since=never",
        "?q=x&limit=0",
    ] {
        let refused = server.get(&format!("/infold/api/search{wrong}"));
        assert_eq!(refused.status, 400, "{wrong}");
    }

    let shown = server.get(&format!("{task}/folds/{fold}")).json();
    let text = shown["stand_in"][0]["text"].as_str().unwrap();
    assert!(text.contains("a stub was found"), "{text}");
    assert_eq!(server.get(&format!("{task}/folds/e99")).status / 100, 4);
    assert_eq!(server.get(&format!("{task}/folds/7")).status, 400);
    assert_eq!(
        seqs(&server.list(&format!("{task}/messages/{fold}"))),
        [2, 3]
    );
    assert_eq!(seqs(&server.list(&format!("{task}/messages/4.."))), [4, 5]);
}

#[test]
fn a_server_fills_the_search_index_by_itself() {
    let server = Server::start();
    let made = server.post("/infold/api/tasks", &json!({}));
    let id = made.json()["uuid"].as_str().unwrap().to_owned();
    let talk = br#"[{"role":"user","content":"the zeppelin"}]"#;
    server.ask(
        "POST",
        &format!("/infold/api/tasks/{id}/messages"),
        "",
        talk,
    );
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        // Without patience nothing is indexed for the sake of this search.
        let request = SearchRequest {
            patience: Duration::ZERO,
            ..SearchRequest::new(Matching::Words("zeppelin"))
        };
        let answer = server.contexts.search(&request).expect("an answer");
        if answer.hits.len() == 1 {
            break;
        }
        assert!(Instant::now() < until, "{answer:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
