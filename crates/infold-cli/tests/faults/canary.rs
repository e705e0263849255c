//! No key is in any file or output.

use infold_testkit::{Model, Script, Server, Step};
use infold_wire::Wire;

use crate::{KEY, PROVIDERS, World, failures, forms, holding};

const WRONG: &str = "AIzaCanaryWrong77e1b2c3d4";
const OWN: &str = "ours+Canary/5d0c9e8f==";
const PASSWORD: &str = "canary-password-91f2e3";
const IN_QUERY: &str = "canary-in-query-3c4d5e";

/// Everything that a gateway could send back.
fn echo(seen: &infold_testkit::Seen) -> Step {
    let headers: Vec<String> = seen
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let said = format!(
        "{} {}?{} {}",
        seen.method,
        seen.path,
        seen.query,
        headers.join("; ")
    );
    let status = [401, 403, 400, 404, 500, 429, 200][seen.number as usize % 7];
    let padded = format!("{}{said}", "x".repeat(seen.number as usize * 7 % 180));
    match seen.number % 3 {
        0 => Step::error(status, padded),
        1 => Step::error(
            status,
            serde_json::json!({"error": {"message": said}}).to_string(),
        ),
        _ => Step::error(status, serde_json::json!({"error": said}).to_string()),
    }
}

#[test]
fn no_key_is_written_down_or_printed() {
    let world = World::new();
    let server = Server::start(Script::decide(echo).model(Model {
        strict: false,
        names: vec!["scripted".to_owned()],
        ..Model::default()
    }));
    let strict = Server::start(Script::new().model(Model {
        key: Some("another".to_owned()),
        ..Model::default()
    }));
    world.configure("echo", &server);
    world.configure("strict", &strict);
    let address = server.address();
    let mut text = "llm:\n  provider: by-chat\n".to_owned();
    for (name, api, _) in PROVIDERS {
        text += &format!(
            "  {name}:\n    provider: {api}\n    model: scripted\n    api_key: ${{OWN}}\n"
        );
        text +=
            &format!("    base_url: http://me:${{PASSWORD}}@{address}/?api_key=${{IN_QUERY}}\n");
    }
    std::fs::write(world.path("own.yaml"), text).expect("a file");
    for wire in [
        Wire::Chat,
        Wire::Responses,
        Wire::Anthropic,
        Wire::Gemini,
        Wire::Ollama,
    ] {
        let (provider, ..) = PROVIDERS[wire as usize];
        for (lane, key) in [
            ("echo", KEY),
            ("echo", WRONG),
            ("strict", WRONG),
            ("own", OWN),
        ] {
            let task = world.task(wire).to_string();
            let ask = [
                "ask",
                &task,
                "hello",
                "--window",
                "4000",
                "--first-wait",
                "1",
            ];
            let check = ["provider", "check", provider];
            // In the strict lane listing models needs the right key.
            let checked = if lane == "strict" { 4 } else { 0 };
            for (args, more, code) in [
                (&ask[..], "--color=never", 4),
                (&ask, "--json", 4),
                (&ask, "--no-stream", 4),
                (&check, "--color=never", checked),
                (&check, "--json", checked),
                (&["provider", "list"], "--color=never", 0),
                (&["provider", "list"], "--json", 0),
                (&["config", "show"], "--color=never", 0),
                (&["config", "show"], "--json", 0),
            ] {
                let mut command = world.command(lane, args);
                command.arg(more).env(crate::VARIABLE, key).env("OWN", OWN);
                command.env("PASSWORD", PASSWORD).env("IN_QUERY", IN_QUERY);
                let ran = world.ended(command.output().expect("infold runs"));
                assert_eq!(ran.code, Some(code), "{args:?} {more}: {}", ran.err);
            }
            let log = world.read(task.parse().expect("an id"));
            assert!(failures(&log).len() >= 3);
        }
    }
    let seen = server.requests();
    assert!(
        seen.iter()
            .any(|seen| seen.headers.iter().any(|(_, value)| value.contains(OWN))),
        "it was sent"
    );
    assert!(
        seen.iter().any(|seen| seen.query.contains(IN_QUERY)),
        "it was sent"
    );
    let secrets = [
        KEY,
        WRONG,
        OWN,
        PASSWORD,
        IN_QUERY,
        "ours+Canar",
        "canary-password",
        "canary-in-query",
    ];
    let texts: Vec<String> = secrets.into_iter().flat_map(forms).collect();
    assert_eq!(holding(world.root.path(), &texts), []);
    let heard = std::fs::read_to_string(world.path("heard")).expect("text");
    assert!(heard.contains("(key)"));
}
