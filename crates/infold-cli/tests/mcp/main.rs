//! The history as tools of the Model Context Protocol, over both transports.

#[path = "../common/mod.rs"]
mod common;
mod client;
mod pages;
mod refusals;
mod scopes;
mod state;

use client::{Client, Piped, Served};
use common::Home;
use insta::assert_snapshot;
use serde_json::{Value, json};

/// A session of an agent that worked in a directory.
fn session(dir: &str, id: &str, messages: &[Value]) -> String {
    let mut parent = Value::Null;
    let mut out = String::new();
    for (at, message) in messages.iter().enumerate() {
        let uuid = format!("{id}-{at}");
        let kind = message["role"].clone();
        let record = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": id, "cwd": dir,
            "timestamp": format!("2026-11-0{}T12:00:{:02}.000Z", 1 + at / 60, at % 60), "message": message});
        out += &format!("{record}\n");
        parent = uuid.into();
    }
    out
}

fn chat(question: &str, answer: &str) -> Vec<Value> {
    vec![
        json!({"role": "user", "content": question}),
        json!({"role": "assistant", "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "src/pool.rs"}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": answer}]}),
        json!({"role": "assistant", "content": "Done."}),
        json!({"role": "user", "content": "And the tests?"}),
        json!({"role": "assistant", "content": "They pass."}),
    ]
}

/// A task of this directory, whose second and third message are folded.
fn home() -> Home {
    let home = Home::new();
    let dir = home.path().display().to_string();
    let messages = chat("Raise the pool", "the limit of the pool is 4711");
    home.file("one.jsonl", session(&dir, "one", &messages));
    home.file("summary.md", "The pool was read.\n");
    home.tell("import one.jsonl\ncondense T1 2..3 --text summary.md");
    home
}

/// Returns the output of a tool, without all that differs from run to run.
fn shown(home: &Home, said: Result<String, String>) -> String {
    let (mark, text) = match said {
        Ok(text) => ("", text),
        Err(text) => ("! ", text),
    };
    let ran = common::Ran {
        stdout: format!("{mark}{text}").into_bytes(),
        stderr: Vec::new(),
        code: 0,
    };
    home.transcript(&ran)
}

#[test]
fn every_tool_answers_the_same_over_both_transports() {
    let home = home();
    home.config("serve:\n  mcp_write: true\n");
    let calls = [
        ("search_history", json!({"query": "pool limit"})),
        ("search_history", json!({"query": "unheard-of"})),
        ("recall", json!({"range": "2..3"})),
        ("recall", json!({"range": "e2"})),
        ("recall", json!({"range": 6})),
        ("list_conversations", json!({})),
        ("view", json!({})),
    ];
    let mut piped = Piped::start(&home, "--write");
    let mut served = Served::start(&home, "");
    let mut texts = Vec::new();
    for (tool, arguments) in calls {
        let said = shown(&home, piped.call(tool, arguments.clone()));
        assert_eq!(
            said,
            shown(&home, served.call(tool, arguments.clone())),
            "{tool}"
        );
        texts.push(format!("> {tool} {arguments}\n{said}"));
    }
    assert_snapshot!(texts.join("\n"), @r###"
    > search_history {"query":"pool limit"}
    message 3 of t1······ · tool · 2026-11-01T12:00:02 · hidden behind e2
        the [limit] of the [pool] is 4711
    message 2 of t1······ · model · 2026-11-01T12:00:01 · hidden behind e2
        I look. Read src/[pool].rs
    message 1 of t1······ · user · 2026-11-01T12:00:00
        Raise the [pool]
    Read messages in full: recall, with `range` such as 1..3 and `task` t1······.

    > search_history {"query":"unheard-of"}
    no message has any of: unheard-of

    > recall {"range":"2..3"}
    ── 2 model · YYYY-MM-DDThh:mm:ss.mmmZ · hidden
    I look.
    → Read(file_path: src/pool.rs)
    ── 3 user · YYYY-MM-DDThh:mm:ss.mmmZ · hidden
    ← result
    the limit of the pool is 4711

    > recall {"range":"e2"}
    ── e2 summary · hides 2..3 · 42 → 37 tokens · YYYY-MM-DDThh:mm:ss.mmmZ
    [Summary of messages 2..3 (2 folded away; nothing is lost: the log keeps 2..3 word for word)]

    The pool was read.
    ── 2 model · YYYY-MM-DDThh:mm:ss.mmmZ · hidden
    I look.
    → Read(file_path: src/pool.rs)
    ── 3 user · YYYY-MM-DDThh:mm:ss.mmmZ · hidden
    ← result
    the limit of the pool is 4711

    > recall {"range":6}
    ── 6 model · YYYY-MM-DDThh:mm:ss.mmmZ
    They pass.

    > list_conversations {}
    t1······ · running · YYYY-MM-DD hh:mm · 70 tokens · claude-code · DIR
        Raise the pool

    > view {}
    1 user Raise the pool (7 tokens)
    2-3 e2 (summary of 2 messages, 42 tokens) (37 tokens)
    4 model Done. (6 tokens)
    5 user And the tests? (8 tokens)
    6 model They pass. (7 tokens)
    view 65 tokens, log 70 in 6 messages
    "###);
    for (client, seq) in [(&mut piped as &mut dyn Client, 1), (&mut served, 5)] {
        let pinned = client
            .call("pin", json!({"seq": seq}))
            .expect("it is pinned");
        assert!(
            pinned.contains(&format!("pinned message {seq}")),
            "{pinned}"
        );
        let noted = client
            .call("note", json!({"text": "no panics"}))
            .expect("it is noted");
        assert!(noted.contains("pinned a note"), "{noted}");
    }
    let view = piped.call("view", json!({})).expect("a view");
    assert!(
        view.matches("[pinned]").count() == 2 && view.matches("no panics").count() == 2,
        "{view}"
    );
}

#[test]
fn the_server_says_what_it_has() {
    let home = home();
    let mut piped = Piped::silent(&home, "");
    let hello = piped.initialize();
    assert_eq!(hello["serverInfo"]["name"], "infold");
    assert_eq!(hello["protocolVersion"], "2025-06-18");
    let mut served = Served::start(&home, "");
    assert_eq!(served.initialize()["capabilities"], hello["capabilities"]);
    let names = |client: &mut dyn Client| -> Vec<String> {
        let tools = client.result("tools/list", json!({}))["tools"].clone();
        let tools = tools.as_array().expect("tools");
        for tool in tools {
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert_eq!(tool["annotations"]["openWorldHint"], false, "{tool}");
        }
        tools
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    let read = [
        "search_history",
        "recall",
        "list_conversations",
        "view",
        "get_state",
    ];
    assert_eq!(names(&mut piped), read);
    assert_eq!(names(&mut served), read);
    assert_eq!(names(&mut Piped::start(&home, "--write")).len(), 11);
}

#[test]
fn tasks_and_folds_are_resources() {
    let home = home();
    let task = home.task("T1");
    let mut piped = Piped::start(&home, "");
    let mut served = Served::start(&home, "");
    for client in [&mut piped as &mut dyn Client, &mut served] {
        let listed = client.result("resources/list", json!({}));
        let uris: Vec<&str> = listed["resources"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|it| it["uri"].as_str().expect("a URI"))
            .collect();
        let fold = format!("infold://tasks/{task}/folds/e2");
        assert_eq!(uris, [format!("infold://tasks/{task}"), fold.clone()]);
        let templates = client.result("resources/templates/list", json!({}));
        assert_eq!(
            templates["resourceTemplates"].as_array().map(Vec::len),
            Some(3)
        );
        let mut read = |uri: &str| client.request("resources/read", json!({"uri": uri}));
        let text = |read: &Value| {
            read["result"]["contents"][0]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        assert!(
            text(&read(&fold)).contains("The pool was read.")
                && text(&read(&fold)).contains("4711")
        );
        assert!(text(&read(uris[0])).contains("e2 (summary of 2 messages"));
        assert!(text(&read(&format!("infold://tasks/{task}/messages/3"))).contains("4711"));
        for wrong in [
            "",
            "file:///etc/passwd",
            "infold://tasks/",
            "infold://tasks/../x",
            "infold://tasks/ffff",
            &format!("infold://tasks/{task}/folds/e9"),
            &format!("infold://tasks/{task}/messages/99"),
        ] {
            assert!(read(wrong)["error"]["message"].is_string(), "{wrong}");
        }
    }
}

#[test]
fn a_configuration_is_printed_for_each_agent() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_infold");
    let printed = |flags: &str| {
        let ran = home.run(&format!("mcp --print-config {flags}"), b"");
        assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
        home.transcript(&ran).replace(program, "INFOLD")
    };
    let all = [
        "claude --write",
        "codex --task @",
        "gemini",
        "goose --all",
        "opencode --contexts c",
        "claude --http",
        "codex --http http://host/infold/mcp --dir '/srv/a b'",
        "gemini --http",
        "goose --http",
        "opencode --http",
    ];
    let all: Vec<String> = all
        .iter()
        .map(|flags| format!("$ {flags}\n{}", printed(flags)))
        .collect();
    assert_snapshot!(all.join("\n"), @r###"
    $ claude --write
    {
      "mcpServers": {
        "infold": {
          "args": ["mcp", "--write"],
          "command": "INFOLD"
        }
      }
    }
    ! merge this into .mcp.json of the project, or run: claude mcp add infold -- INFOLD mcp --write

    $ codex --task @
    [mcp_servers.infold]
    args = ["mcp", "--task", "@"]
    command = "INFOLD"
    ! add this to ~/.codex/config.toml

    $ gemini
    {
      "mcpServers": {
        "infold": {
          "args": ["mcp"],
          "command": "INFOLD"
        }
      }
    }
    ! merge this into ~/.gemini/settings.json, or .gemini/settings.json of the project

    $ goose --all
    extensions:
      infold:
        args: ["mcp", "--all"]
        cmd: INFOLD
        description: "Searches and reads the whole conversation, hidden messages too"
        enabled: true
        name: infold
        timeout: 60
        type: stdio
    ! add this to ~/.config/goose/config.yaml, below its `extensions:` if it has one

    $ opencode --contexts c
    {
      "mcp": {
        "infold": {
          "command": ["INFOLD", "mcp", "--contexts", "DIR/c"],
          "enabled": true,
          "type": "local"
        }
      }
    }
    ! merge this into opencode.json of the project, or ~/.config/opencode/opencode.json

    $ claude --http
    {
      "mcpServers": {
        "infold": {
          "type": "http",
          "url": "http://127.0.0.1:7333/infold/mcp"
        }
      }
    }
    ! merge this into .mcp.json of the project, or run: claude mcp add --transport http infold http://127.0.0.1:7333/infold/mcp

    $ codex --http http://host/infold/mcp --dir '/srv/a b'
    [mcp_servers.infold]
    url = "http://host/infold/mcp?dir=%2Fsrv%2Fa%20b"
    ! add this to ~/.codex/config.toml

    $ gemini --http
    {
      "mcpServers": {
        "infold": {
          "httpUrl": "http://127.0.0.1:7333/infold/mcp"
        }
      }
    }
    ! merge this into ~/.gemini/settings.json, or .gemini/settings.json of the project

    $ goose --http
    extensions:
      infold:
        description: "Searches and reads the whole conversation, hidden messages too"
        enabled: true
        name: infold
        timeout: 60
        type: streamable_http
        uri: http://127.0.0.1:7333/infold/mcp
    ! add this to ~/.config/goose/config.yaml, below its `extensions:` if it has one

    $ opencode --http
    {
      "mcp": {
        "infold": {
          "enabled": true,
          "type": "remote",
          "url": "http://127.0.0.1:7333/infold/mcp"
        }
      }
    }
    ! merge this into opencode.json of the project, or ~/.config/opencode/opencode.json
    "###);
    assert_eq!(home.run("mcp --print-config emacs", b"").code, 2);
}
