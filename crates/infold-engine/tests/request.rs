//! The contents of requests, checked by a server that refuses what the provider would refuse.

mod common;

use common::*;
use infold::config::ProfileRequest;
use infold::summarizer::Extractive;
use infold::{Aim, Config, Hooks, Profile, TurnContext};
use infold_store::{Contexts, Durability, Metadata};
use infold_testkit::{Script, Server};
use infold_wire::Wire;
use infold_wire::request::RequestFrame;
use tokio::sync::watch;

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Lets a model of Anthropic's answer these messages, and returns the request that it got.
fn sent(messages: &[String], window: u64, tools: Option<String>) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(dir.path(), Durability::Never);
    let task = contexts.create(Metadata {
        wire: Some(Wire::Anthropic.name().to_owned()),
        ..Metadata::default()
    });
    let (mut writer, _) = contexts.write(task.expect("a task")).expect("a task");
    writer.append(messages).expect("good messages");
    let server = Server::start(Script::new());
    let (_stop, stopped) = watch::channel(false);
    let connection = connected(&server, "anthropic", stopped);
    let resolved = Config::default().resolve(&ProfileRequest::default());
    let profile = Profile {
        window,
        factor: 1.0,
        ..resolved.expect("a profile").profile
    };
    let aim = Aim::of(&profile, None).expect("room");
    let mut talk = TurnContext {
        contexts: &contexts,
        writer: &mut writer,
        connection: &connection,
        frame: RequestFrame {
            tools,
            ..RequestFrame::new(Wire::Anthropic, "writer")
        },
        profile,
        aim,
        summarizer: &mut Extractive,
        hooks: &Hooks::default(),
        layers: Some(&Config::default().layers),
        tools: None,
    };
    let turned = talk.turn(&mut |_| {});
    let seen = server.last().expect("a request");
    turned.unwrap_or_else(|error| panic!("{error}\n{}", seen.text()));
    seen.text()
}

/// A conversation long enough to be folded.
fn long() -> Vec<String> {
    let turn = |at: usize| {
        let text = words(30, at);
        [
            format!(r#"{{"role":"user","content":"request {at} {text}"}}"#),
            format!(r#"{{"role":"assistant","content":"reply {at} {text}"}}"#),
        ]
    };
    let mut all = vec![r#"{"role":"system","content":"be brief"}"#.to_owned()];
    all.extend((0..60).flat_map(turn));
    all.push(r#"{"role":"user","content":"hello"}"#.to_owned());
    all
}

#[test]
fn markers_of_tools_count_against_the_four() {
    for own in 0..=4 {
        let tool = |at: usize| {
            let mark = if at < own { MARK } else { "" };
            format!(r#"{{"name":"t{at}","input_schema":{{"type":"object"}}{mark}}}"#)
        };
        let tools: Vec<String> = (0..4).map(tool).collect();
        let text = sent(&long(), 4_000, Some(format!("[{}]", tools.join(","))));
        assert_eq!(text.matches("cache_control").count(), 4, "{own}: {text}");
        // The last message before all else, the system prompt after all else.
        assert_eq!(
            text.ends_with(&format!("{MARK}}}]}}]}}")),
            own < 4,
            "{text}"
        );
        let system = format!(r#""be brief"{MARK}"#);
        assert_eq!(text.contains(&system), own == 0, "{own}: {text}");
    }
}

#[test]
fn markers_that_messages_came_with_give_way_to_ours() {
    let block = |at: usize, mark: &str| {
        let role = if at.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        format!(r#"{{"role":"{role}", "content":[ {{"type":"text","text":"m{at}"{mark}}} ]}}"#)
    };
    let marked: Vec<String> = (0..7).map(|at| block(at, MARK)).collect();
    let bare: Vec<String> = (0..7).map(|at| block(at, "")).collect();
    let text = sent(&marked, 32_000, None);
    assert_eq!(text, sent(&bare, 32_000, None));
    assert_eq!(text.matches("cache_control").count(), 2, "{text}");
}
