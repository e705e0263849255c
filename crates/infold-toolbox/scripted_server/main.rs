//! An MCP server over standard input and output that fails in the ways it is told to, for the tests of this crate.

use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::time::Duration;

use serde_json::{Value, json};

fn main() {
    let faults: Vec<String> = std::env::args().skip(1).collect();
    let has = |fault: &str| faults.iter().any(|other| other == fault);
    let number = |name: &str| -> Option<usize> {
        let value = faults.iter().find_map(|fault| fault.strip_prefix(name))?;
        value.parse().ok()
    };
    let count_file = std::env::var("COUNT_FILE").ok();
    if let Some(path) = &count_file {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path);
        writeln!(file.expect("the file of starts"), "{}", std::process::id()).expect("a line");
    }
    if has("exit-at-once") {
        eprintln!("no configuration found");
        std::process::exit(3);
    }
    if has("hang") {
        std::thread::sleep(Duration::from_secs(600));
    }
    if has("garbage") {
        println!("Welcome to the server!\n\n{{\"not\": \"ours\"}}\n[1,2\n\u{0}\u{1}");
    }
    if has("endless-line") {
        let chunk = vec![b'x'; 1 << 20];
        while stdout().write_all(&chunk).is_ok() {}
        return;
    }
    if has("endless-garbage") {
        let chunk = "garbage\n".repeat(1 << 16);
        while stdout().write_all(chunk.as_bytes()).is_ok() {}
        return;
    }
    let mut server = Server {
        tools: number("tools=").unwrap_or(0),
        has_duplicate: has("duplicate"),
        is_only_modern: has("only-modern"),
        pages_for_ever: has("endless-pages"),
        bad_list: has("bad-list"),
        has_bad_tool: has("bad-tool"),
        garbage: has("garbage"),
    };
    for line in stdin().lock().lines() {
        let Ok(line) = line else { return };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        server.answer(&message);
    }
    if has("stays") {
        // Its input has ended, and it does not care.
        std::thread::sleep(Duration::from_secs(600));
    }
}

struct Server {
    /// How many tools beside those that are always there.
    tools: usize,
    has_duplicate: bool,
    is_only_modern: bool,
    pages_for_ever: bool,
    bad_list: bool,
    has_bad_tool: bool,
    garbage: bool,
}

fn send(message: &Value) {
    let mut line = message.to_string();
    line.push('\n');
    let mut out = stdout().lock();
    // A client that is gone is no fault.
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

impl Server {
    fn answer(&mut self, message: &Value) {
        let Some(id) = message.get("id").cloned() else {
            return;
        };
        if self.garbage {
            println!("debug: {message}");
        }
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" if self.is_only_modern => {
                let error = json!({"code": -32601, "message": "use server/discover"});
                return send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            "initialize" => json!({"protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "scripted", "version": "1"}}),
            "server/discover" => {
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
                "serverInfo": {"name": "scripted", "version": "1"}})
            }
            "tools/list" => self.list(),
            "tools/call" => match self.call(&message["params"], &id) {
                Some(result) => result,
                None => return,
            },
            _ => json!({}),
        };
        send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn list(&self) -> Value {
        if self.bad_list {
            return json!({"tools": [{"nome": 7}]});
        }
        if self.has_bad_tool {
            let good = json!({"name": "echo", "inputSchema": {"type": "object"}});
            return json!({"tools": [{"nome": 7}, good, {"name": "x", "inputSchema": 1}]});
        }
        if self.pages_for_ever {
            return json!({"tools": [], "nextCursor": "again"});
        }
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let names = [
            "echo",
            "fail",
            "env",
            "pid",
            "spawn",
            "die",
            "sleep",
            "hang",
            "big",
            "grow",
            "mixed",
            "misanswer",
            "miscontent",
        ];
        let more = (0..self.tools).map(|tool| format!("tool{tool}"));
        let twice = self.has_duplicate.then(|| "echo".to_owned());
        let names = names
            .map(str::to_owned)
            .into_iter()
            .chain(more)
            .chain(twice);
        let tools: Vec<Value> = names
            .map(|name| {
                json!({"name": name, "description": format!("Does {name}"), "inputSchema": schema,
                    "annotations": {"readOnlyHint": name == "echo"}})
            })
            .collect();
        json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
    }

    fn call(&mut self, params: &Value, id: &Value) -> Option<Value> {
        let arguments = &params["arguments"];
        let given = arguments["text"].as_str().unwrap_or_default().to_owned();
        Some(match params["name"].as_str().unwrap_or_default() {
            "echo" => text(given),
            "fail" => {
                json!({"content": [{"type": "text", "text": "no such page\ndetails"}], "isError": true})
            }
            "env" => text(std::env::var(given).unwrap_or_else(|_| "(unset)".to_owned())),
            "pid" => text(std::process::id().to_string()),
            "spawn" => {
                let child = std::process::Command::new("sleep").arg("600").spawn();
                text(child.expect("a process").id().to_string())
            }
            "misanswer" => json!(5),
            "miscontent" => json!({"content": [{"type": "text"}]}),
            "die" => {
                eprintln!("out of memory");
                std::process::exit(9);
            }
            "sleep" => {
                let (id, seconds) = (id.clone(), given.parse().unwrap_or(600));
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_secs(seconds));
                    send(&json!({"jsonrpc": "2.0", "id": id, "result": text("slept")}));
                });
                return None;
            }
            "hang" => {
                std::thread::sleep(Duration::from_secs(600));
                return None;
            }
            "big" => text("x".repeat(given.parse().unwrap_or(0))),
            "grow" => {
                self.tools += 1;
                send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                text("grown")
            }
            "mixed" => json!({"content": [
                {"type": "text", "text": "before"},
                {"type": "image", "data": "AAAAAAAA", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
                {"type": "resource_link", "uri": "file:///b", "name": "b"}]}),
            name => {
                let error = json!({"code": -32602, "message": format!("unknown tool {name}")});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                return None;
            }
        })
    }
}
