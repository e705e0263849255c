//! `infold wrap --checkpoints` keeps the files that an agent works on.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

use infold_testkit::{Script, Server};
use serde_json::{Value, json};

use crate::{Home, Tree, calls, done, tree, view};

/// An agent that calls the model, and carries out its instructions in a directory.
struct Agent<'a> {
    base: String,
    work: &'a Path,
    messages: Vec<Value>,
}

impl Agent<'_> {
    /// Sends the conversation, and returns the calls of the reply.
    fn ask(&mut self) -> Vec<Value> {
        let place = self.base.strip_prefix("http://").expect("an address");
        let (host, path) = place.split_once('/').expect("a path");
        let body = json!({"model": "m", "messages": self.messages}).to_string();
        let length = body.len();
        let mut stream = TcpStream::connect(host).expect("it listens");
        write!(stream, "POST /{path}/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").expect("taken");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        let start = body.find('{').expect("JSON");
        let end = body.rfind('}').expect("JSON");
        let reply: Value = serde_json::from_str(&body[start..=end]).expect("JSON");
        let message = reply["choices"][0]["message"].clone();
        self.messages.push(message.clone());
        message["tool_calls"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }

    /// Carries calls out, and adds their results.
    fn work(&mut self, calls: &[Value]) {
        for call in calls {
            let arguments = call["function"]["arguments"].as_str().expect("arguments");
            let arguments: Value = serde_json::from_str(arguments).expect("JSON");
            let path = self
                .work
                .join(arguments["file_path"].as_str().expect("a path"));
            let result = match call["function"]["name"].as_str() {
                Some("Write") => {
                    fs::write(path, arguments["content"].as_str().expect("a text"))
                        .expect("written");
                    "written".to_owned()
                }
                _ => fs::read_to_string(path).expect("a file"),
            };
            self.messages
                .push(json!({"role": "tool", "tool_call_id": call["id"], "content": result}));
        }
    }
}

#[test]
fn what_an_agent_did_goes_back_with_its_conversation() {
    let home = Home::new();
    let work = home.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("a"), "zero").unwrap();
    let write = |path: &str, content: &str| {
        calls(&[("Write", json!({"file_path": path, "content": content}))])
    };
    let server = Server::start(Script::steps([
        write("a", "one"),
        write("b", "two"),
        calls(&[("Read", json!({"file_path": "a"}))]),
        write("a", "three"),
    ]));
    let url = server.url();
    let mut wrap = home.command("wrap --checkpoints");
    wrap.args([
        "--upstream",
        &url,
        "--trace",
        "--",
        "sh",
        "-c",
        "echo $OPENAI_BASE_URL; read end",
    ]);
    wrap.current_dir(&work)
        .env("INFOLD_CONTEXTS", home.contexts());
    wrap.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut wrap = wrap.spawn().expect("it starts");
    let mut base = String::new();
    let mut stdout = BufReader::new(wrap.stdout.take().expect("it was piped"));
    stdout.read_line(&mut base).expect("an address");
    let mut agent = Agent {
        base: base.trim().to_owned(),
        work: &work,
        messages: vec![json!({"role": "user", "content": "go"})],
    };
    let mut trees: Vec<Tree> = vec![tree(&work)];
    loop {
        let calls = agent.ask();
        if calls.is_empty() {
            break;
        }
        agent.work(&calls);
        trees.push(tree(&work));
    }
    drop(wrap.stdin.take());
    let ran = wrap.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let id = said
        .split("recorded as task ")
        .nth(1)
        .and_then(|rest| rest.get(..8))
        .expect(&said);
    home.meet(&done(&home, &format!("task show {id} --json")));
    let id = home.objects(&format!("task show {id}"))[0]["uuid"]
        .as_str()
        .unwrap()
        .to_owned();
    home.meet(&id);

    // Before the first reply, and with the results of each call that may have written: not of the one that only read.
    let kept = home.objects("checkpoint list T1");
    let after: Vec<u64> = kept
        .iter()
        .map(|one| one["after"].as_u64().unwrap())
        .collect();
    assert_eq!(after, [1, 3, 5, 9], "{kept:?}\n{said}");
    assert_eq!(kept[0]["note"], "start");
    let (last, last_tree) = (view(&home, ""), tree(&work));
    for (at, wanted) in after.iter().zip([&trees[0], &trees[1], &trees[2]]) {
        let then = view(&home, &format!(" --at {at}"));
        done(&home, &format!("rewind T1 --files --to {at}"));
        assert_eq!(
            (tree(&work), view(&home, "")),
            (wanted.clone(), then.clone()),
            "to {at}"
        );
        done(&home, "undo T1");
        assert_eq!(
            (tree(&work), view(&home, "")),
            (last_tree.clone(), last.clone()),
            "back from {at}"
        );
        done(&home, "redo T1");
        assert_eq!(
            (tree(&work), view(&home, "")),
            (wanted.clone(), then),
            "to {at} again"
        );
        done(&home, "undo T1");
    }
}

#[test]
fn a_workspace_that_cannot_be_kept_is_refused_before_the_agent_starts() {
    let home = Home::new();
    let mut wrap = home.command("wrap --checkpoints -- touch started");
    let ran = wrap.env("HOME", home.path()).output().expect("it runs");
    assert_eq!(ran.status.code(), Some(2));
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("it is the home directory"), "{said}");
    assert!(!home.path().join("started").exists());
}
