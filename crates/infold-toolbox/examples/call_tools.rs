//! Lists and calls the tools of MCP servers: reads one JSON object a line, writes one for each.
//!
//! `{"servers":[{"name":"time","command":["mcp-server-time"]},{"name":"web","url":"http://127.0.0.1:3001/mcp"}]}` first,
//! then `{"list":true}` or `{"call":"NAME","arguments":{…}}`.

use std::io::BufRead as _;
use std::time::{Duration, Instant};

use infold_toolbox::{CallStatus, McpServer, McpTransport, Toolbox, ToolboxSettings};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut lines = std::io::stdin().lock().lines();
    let settings: Value = serde_json::from_str(&lines.next().ok_or("no servers")??)?;
    let servers = settings["servers"].as_array().ok_or("no servers")?;
    let toolbox = Toolbox::new(ToolboxSettings {
        servers: servers.iter().map(server).collect(),
        environment: std::env::vars_os().collect(),
        ..ToolboxSettings::default()
    })?;
    for line in lines {
        let step: Value = serde_json::from_str(&line?)?;
        let started = Instant::now();
        let said = match step["call"].as_str() {
            Some(name) => {
                let result = toolbox.call(name, &step["arguments"].to_string()).await;
                let is_error = result.status == CallStatus::Error;
                json!({"text": result.text, "is_error": is_error, "ms": millis(result.duration)})
            }
            None => {
                let list = toolbox.tools().await;
                let tools = list.tools.iter().map(|tool| {
                    json!({"name": tool.name, "server": tool.server, "read_only": tool.read_only})
                });
                let problems = list.problems.iter();
                let problems = problems.map(|problem| json!([problem.server, problem.reason]));
                json!({"tools": tools.collect::<Vec<_>>(), "problems": problems.collect::<Vec<_>>(),
                    "ms": millis(started.elapsed())})
            }
        };
        println!("{said}");
    }
    toolbox.shutdown().await;
    Ok(())
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}

fn server(settings: &Value) -> McpServer {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let transport = match settings["url"].as_str() {
        Some(url) => McpTransport::Http {
            url: url.to_owned(),
            headers: Vec::new(),
        },
        None => McpTransport::Command {
            command: settings["command"]
                .as_array()
                .into_iter()
                .flatten()
                .map(text)
                .collect(),
            environment: Vec::new(),
        },
    };
    McpServer {
        name: text(&settings["name"]),
        transport,
        timeout: McpServer::DEFAULT_TIMEOUT,
    }
}
