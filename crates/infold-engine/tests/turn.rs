//! A turn with a model, against a server that behaves like providers.

mod common;

use common::*;
use infold::config::ProfileRequest;
use infold::summarizer::Extractive;
use infold::turn::undelivered_reply;
use infold::{Aim, CallFailure, Config, Hooks, Profile, TurnContext, TurnError, TurnReply};
use infold_log::EventId;
use infold_store::{Contexts, Durability, Failure, Metadata, What, Writer};
use infold_testkit::{Model, Script, Server, Step};
use infold_wire::provider_error::RefusalCause;
use infold_wire::request::RequestFrame;
use infold_wire::tools::convert_tools;
use infold_wire::{Json, Message, ProviderError, Wire};
use tokio::sync::watch;

/// A task in a separate directory.
struct World {
    contexts: Contexts,
    writer: Writer,
    _dir: tempfile::TempDir,
}

fn world(wire: Wire) -> World {
    let dir = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(dir.path(), Durability::Never);
    let task = contexts.create(Metadata {
        wire: Some(wire.name().to_owned()),
        ..Metadata::default()
    });
    let (writer, _) = contexts.write(task.expect("a task")).expect("a task");
    World {
        contexts,
        writer,
        _dir: dir,
    }
}

/// A provider API for each wire.
const APIS: [(&str, Wire); 5] = [
    ("openai", Wire::Chat),
    ("responses", Wire::Responses),
    ("anthropic", Wire::Anthropic),
    ("gemini", Wire::Gemini),
    ("ollama", Wire::Ollama),
];

impl World {
    fn push(&mut self, lines: &[&str]) {
        self.writer.append(lines).expect("good messages");
    }

    /// Returns the messages that the model is shown, one on each line.
    fn shown(&self) -> Vec<u8> {
        let log = self.writer.log();
        let view = infold_log::View::of(log.state().shown(), log).expect("a view");
        log.rendered(&view).expect("it can be shown")
    }

    fn learned_window(&self) -> Option<u64> {
        let registry = self.contexts.registry().expect("a registry");
        let found = registry.learned_windows("writer", jiff::Timestamp::now());
        found.expect("it can be read").first().map(|row| row.window)
    }

    /// Appends `turns` turns of `size` words each.
    fn talk(&mut self, turns: usize, size: usize) {
        for at in 0..turns {
            let text = words(size, at);
            self.push(&[
                &format!(r#"{{"role":"user","content":"request {at} {text}"}}"#),
                &format!(r#"{{"role":"assistant","content":"reply {at} {text}"}}"#),
            ]);
        }
    }

    /// Lets a model answer; `window` is its assumed window.
    fn turn(&mut self, server: &Server, api: &str, window: u64) -> Result<TurnReply, TurnError> {
        self.call(server, api, window, |talk| talk.turn(&mut |_| {}))
    }

    fn call(
        &mut self,
        server: &Server,
        api: &str,
        window: u64,
        call: impl FnOnce(&mut TurnContext<'_>) -> Result<TurnReply, TurnError>,
    ) -> Result<TurnReply, TurnError> {
        let (_stop, stopped) = watch::channel(false);
        let connection = connected(server, api, stopped);
        let asked = ProfileRequest {
            model: Some("writer".to_owned()),
            ..ProfileRequest::default()
        };
        let resolved = Config::default().resolve(&asked).expect("a profile");
        let profile = Profile {
            window,
            factor: 1.0,
            ..resolved.profile
        };
        let aim = Aim::of(&profile, None).expect("room");
        let frame = RequestFrame {
            max_tokens: Some(aim.budget.reserve()).filter(|_| connection.wire() == Wire::Anthropic),
            ..RequestFrame::new(connection.wire(), &connection.model)
        };
        let mut talk = TurnContext {
            contexts: &self.contexts,
            writer: &mut self.writer,
            connection: &connection,
            profile,
            aim,
            summarizer: &mut Extractive,
            hooks: &Hooks::default(),
            frame,
            layers: None,
            tools: None,
        };
        call(&mut talk)
    }

    fn last(&self) -> String {
        let log = self.writer.log();
        let last = log.state().last_seq().expect("a message");
        String::from_utf8(log.message(last).expect("a message")).expect("UTF-8")
    }

    fn messages(&self) -> u64 {
        self.writer.log().state().at().seq
    }

    fn failures(&self) -> Vec<Failure> {
        let log = self.writer.log();
        let events = (1..=log.state().at().event).filter_map(EventId::new);
        let events = events.map(|id| log.event(id).expect("an event").what);
        events
            .filter_map(|what| match what {
                What::Failure(failure) => Some(failure),
                _ => None,
            })
            .collect()
    }

    fn keeps_request(&self) -> bool {
        self.writer.log().dir().join("request.json").exists()
    }
}

fn trouble(error: TurnError) -> ProviderError {
    match error {
        TurnError::Unanswered(CallFailure::Call(error)) => error.trouble,
        other => panic!("{other}"),
    }
}

const HELLO: &str = r#"{"role":"user","content":"hello"}"#;

#[test]
fn every_wire_answers_and_the_answer_is_native_to_it() {
    for (api, wire) in APIS {
        let server = Server::start(Script::steps([Step::think("hm", "Good morning.")]));
        let mut world = world(wire);
        world.push(&[r#"{"role":"system","content":"be brief"}"#, HELLO]);
        let turned = world.turn(&server, api, 32_000).expect(api);
        assert_eq!(turned.requests, 1, "{api}");
        assert!(turned.usage.is_some_and(|usage| usage.tokens > 0), "{api}");
        let last = world.last();
        let message = Message::parse(last.as_bytes()).expect("a message");
        assert!(message.wires().has(wire), "{api}: {last}");
        assert!(last.contains("Good morning."), "{api}: {last}");
        assert!(!world.keeps_request() && world.failures().is_empty());
        // And it can be sent back, with another question.
        world.push(&[r#"{"role":"user","content":"and then?"}"#]);
        world.turn(&server, api, 32_000).expect(api);
        let seen = server.last().expect("a request");
        assert!(seen.text().contains("be brief"), "{api}: {}", seen.text());
        assert!(
            seen.text().contains("Good morning."),
            "{api}: {}",
            seen.text()
        );
    }
}

#[test]
fn what_is_too_long_is_folded_by_the_providers_own_numbers() {
    for (api, wire) in APIS {
        let server = Server::start(Script::new().model(Model::window(2_000)));
        let mut world = world(wire);
        world.talk(60, 30);
        world.push(&[HELLO]);
        let before = world.messages();
        let turned = world.turn(&server, api, 100_000).expect(api);
        assert!((2..=4).contains(&turned.requests), "{api}: {turned:?}");
        assert_eq!(
            world.messages(),
            before + turned.reply.seqs().count() as u64,
            "{api}"
        );
        assert!(world.last().contains("hello"), "{api}: {}", world.last());
        assert!(!world.keeps_request(), "{api}");
        let sent = turned.usage.expect("a count");
        assert!(sent.tokens - sent.output <= 2_000, "{api}: {sent:?}");
    }
}

#[test]
fn what_is_refused_without_a_word_is_folded_only_near_the_window() {
    for step in [Step::error(400, ""), Step::error(413, "")] {
        let mut world = world(Wire::Chat);
        world.talk(60, 30);
        world.push(&[HELLO]);
        let fine = Server::start(Script::new());
        let turned = world.turn(&fine, "openai", 100_000).expect("an answer");
        world.push(&[HELLO]);
        let before = world.shown();
        // Far below the window the error has another cause.
        let server = Server::start(Script::steps([step.clone()]));
        let error = world.turn(&server, "openai", 100_000).expect_err("refused");
        assert_eq!(
            trouble(error),
            ProviderError::Refused(RefusalCause::Request)
        );
        assert_eq!((server.count(), world.shown()), (1, before));
        let server = Server::start(Script::steps([step]));
        let window = turned.estimate * 9 / 5;
        let turned = world.turn(&server, "openai", window).expect("an answer");
        assert_eq!(turned.requests, 2);
        let seen = server.requests();
        assert!(
            seen[1].len * 4 <= seen[0].len * 3,
            "{} {}",
            seen[0].len,
            seen[1].len
        );
    }
}

#[test]
fn a_window_is_learned_only_from_a_refusal_that_folding_mended() {
    let limit = |status: u16| {
        let body = r#"{"error":{"message":"This model's maximum context length is 3000 tokens. However, you requested 9000 tokens.","code":"context_length_exceeded"}}"#;
        Step::error(status, body)
    };
    // A rate limit and a failure say nothing certain of the model.
    for (status, learned) in [(400, Some(3_000)), (429, None), (500, None)] {
        let server = Server::start(Script::steps([limit(status)]));
        let mut world = world(Wire::Chat);
        world.talk(60, 30);
        world.push(&[HELLO]);
        world.turn(&server, "openai", 100_000).expect("an answer");
        assert_eq!(server.count(), 2, "{status}");
        assert_eq!(world.learned_window(), learned, "{status}");
    }
    // Nor does one that nothing mended.
    let server = Server::start(Script::decide(move |_| limit(400)));
    let mut world = world(Wire::Chat);
    world.talk(60, 30);
    world.push(&[HELLO]);
    world.turn(&server, "openai", 100_000).expect_err("never");
    assert_eq!(world.learned_window(), None);
}

#[test]
fn what_never_fits_ends_after_a_few_requests_and_can_be_read() {
    let server = Server::start(Script::decide(|_| Step::named("anthropic/too-long")));
    let mut world = world(Wire::Chat);
    world.talk(60, 30);
    world.push(&[HELLO]);
    let (before, shown) = (world.messages(), world.shown());
    let error = world
        .turn(&server, "anthropic", 100_000)
        .expect_err("never");
    assert!(
        matches!(error, TurnError::TooLong { .. } | TurnError::Unanswered(_)),
        "{error}"
    );
    assert!(server.count() <= 4, "{}", server.count());
    assert_eq!(world.messages(), before);
    assert_eq!(world.failures().len(), server.count());
    assert!(world.keeps_request());
    assert_eq!(world.shown(), shown, "what did not help is opened again");
}

#[test]
fn a_front_that_ollama_dropped_in_silence_is_noticed() {
    let server = Server::start(Script::new().model(Model::window(2_000)));
    let mut world = world(Wire::Ollama);
    world.talk(60, 30);
    world.push(&[HELLO]);
    let before = world.messages();
    let turned = world.turn(&server, "ollama", 100_000).expect("an answer");
    assert_eq!((turned.requests, world.messages()), (2, before + 1));
}

/// Growing turn by turn, the front is lost a little at a time.
#[test]
fn a_front_that_ollama_drops_bit_by_bit_is_noticed() {
    let server = Server::start(Script::new().model(Model::window(3_000)));
    let mut world = world(Wire::Ollama);
    let mut folds = 0;
    for at in 0..24 {
        let text = words(150, at);
        world.push(&[&format!(
            r#"{{"role":"user","content":"turn {at} {text}"}}"#
        )]);
        let view = |world: &World| {
            let log = world.writer.log();
            infold_log::View::of(log.state().shown(), log)
                .expect("a view")
                .tokens()
        };
        let before = view(&world);
        let turned = world.turn(&server, "ollama", 100_000).expect("an answer");
        folds += u64::from(view(&world) < before);
        let sent = turned.usage.map_or(0, |usage| usage.tokens - usage.output);
        // The whole view is sent.
        assert!(
            sent + 100 >= view(&world).min(before),
            "{at}: {sent} of {before}"
        );
        assert!(
            (0.9..1.6).contains(&turned.factor),
            "{at}: {}",
            turned.factor
        );
    }
    assert!((1..=8).contains(&folds), "{folds}");
}

/// A reply that is too long for the window is no reason to fold.
#[test]
fn a_reply_that_leaves_no_room_is_asked_to_be_shorter() {
    let server = Server::start(Script::new().model(Model::window(3_000)));
    let mut world = world(Wire::Anthropic);
    world.push(&[HELLO]);
    let turned = world
        .turn(&server, "anthropic", 100_000)
        .expect("an answer");
    assert_eq!((turned.requests, world.failures().len()), (2, 1));
    let log = world.writer.log();
    assert!(
        (1..=log.state().at().event)
            .filter_map(EventId::new)
            .all(|id| !matches!(
                log.event(id).expect("an event").what,
                What::Fold(_) | What::Mask(_)
            ))
    );
    let named = infold::usage::named_window(&world.contexts, "test", "writer");
    assert_eq!(named.expect("a registry"), Some(3_000));
}

#[test]
fn what_is_paid_for_and_not_taken_is_counted() {
    let nothing = r#"{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"length"}],"usage":{"prompt_tokens":50,"completion_tokens":10,"total_tokens":60}}"#;
    let server = Server::start(Script::steps([Step::error(200, nothing)]));
    let mut world = world(Wire::Chat);
    world.push(&[HELLO]);
    let error = world.turn(&server, "openai", 32_000).expect_err("nothing");
    assert!(
        matches!(&error, TurnError::Silent(stop) if stop == "length"),
        "{error}"
    );
    assert_eq!(world.failures().len(), 1);
    assert!(world.keeps_request());
    let counted = world
        .contexts
        .recount(world.writer.log())
        .expect("counters");
    assert_eq!((counted.llm_calls, counted.tokens), (1, 60));
}

#[test]
fn roles_alternate_where_the_template_wants_it() {
    let says = r#"{"error":{"code":500,"message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"server_error"}}"#;
    let server = Server::start(Script::steps([Step::error(500, says)]));
    let mut world = world(Wire::Chat);
    world.push(&[HELLO, r#"{"role":"user","content":"are you there?"}"#]);
    let turned = world.turn(&server, "openai", 32_000).expect("an answer");
    assert_eq!(turned.requests, 2);
    let seen = server.last().expect("a request");
    let roles: Vec<String> = seen
        .messages()
        .iter()
        .filter_map(|line| {
            Some(
                Json::parse(line.as_bytes())
                    .ok()?
                    .get("role")?
                    .text()?
                    .into_owned(),
            )
        })
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    // The context is not repeated.
    world.push(&[HELLO]);
    let turned = world.turn(&server, "openai", 32_000).expect("an answer");
    assert_eq!((turned.requests, world.failures().len()), (1, 1));
}

#[test]
fn members_of_another_provider_are_left_out_where_they_are_refused() {
    let says = r#"{"error":{"message":"'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]","type":"invalid_request_error"}}"#;
    let server = Server::start(Script::steps([Step::error(400, says)]));
    let mut world = world(Wire::Chat);
    world.push(&[
        HELLO,
        r#"{"role":"assistant","content":"hello","reasoning_content":"a greeting"}"#,
        r#"{"role":"user","content":"and then?"}"#,
    ]);
    let turned = world.turn(&server, "openai", 32_000).expect("an answer");
    assert_eq!((turned.requests, world.failures().len()), (2, 1));
    let requests = server.requests();
    assert!(requests[0].text().contains("a greeting"));
    assert!(!requests[1].text().contains("a greeting"));
    // The recorded context stays, and is not repeated.
    world.push(&[HELLO]);
    let turned = world.turn(&server, "openai", 32_000).expect("an answer");
    assert_eq!(turned.requests, 1);
    let log = world.writer.log();
    let second = log
        .message(infold_log::Seq::FIRST.next())
        .expect("a message");
    assert!(String::from_utf8_lossy(&second).contains("a greeting"));
}

#[test]
fn a_stream_that_breaks_leaves_no_half_message() {
    for (api, wire) in APIS {
        let long = words(200, 1);
        let broken = || Step::say(&long).in_pieces(20).cut_after_events(4);
        let server = Server::start(Script::steps([broken(), Step::say(&long)]));
        let mut world = world(wire);
        world.push(&[HELLO]);
        let turned = world.turn(&server, api, 32_000).expect(api);
        assert_eq!((turned.requests, world.failures().len()), (2, 1), "{api}");
        assert!(world.last().contains(&long), "{api}");

        let server = Server::start(Script::steps([broken(), broken(), broken()]));
        let before = world.messages();
        world.push(&[r#"{"role":"user","content":"again"}"#]);
        let error = world.turn(&server, api, 32_000).expect_err("it broke");
        assert_eq!(trouble(error), ProviderError::Broken, "{api}");
        assert_eq!(world.messages(), before + 1, "{api}");
        assert_eq!((world.failures().len(), server.count()), (2, 2), "{api}");
        assert!(world.keeps_request(), "{api}");
    }
}

#[test]
fn a_view_is_sent_as_it_is_when_asked_to() {
    let server = Server::start(Script::new().model(Model::window(2_000)));
    let mut world = world(Wire::Chat);
    world.talk(60, 30);
    world.push(&[HELLO]);
    let sent = world.call(&server, "openai", 100_000, |talk| talk.send(&mut |_| {}));
    assert!(matches!(
        trouble(sent.expect_err("too long")),
        ProviderError::TooLong {
            limit: Some(2_000),
            ..
        }
    ));
    assert_eq!(server.count(), 1);
    let bytes = std::fs::read(world.writer.log().dir().join("request.json")).expect("kept");
    assert_eq!(server.requests()[0].body.as_deref(), Some(&bytes[..]));
}

/// A conversation in the form of one wire is one that the others accept.
#[test]
fn a_conversation_goes_to_another_provider() {
    let chat = [
        r#"{"role":"system","content":"be brief"}"#,
        r#"{"role":"user","content":[{"type":"text","text":"what is here?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}"#,
        r#"{"role":"assistant","content":"I look.","tool_calls":[{"id":"call.1","type":"function","function":{"name":"ls","arguments":"{\"path\":\".\"}"}},{"id":"call.2","type":"function","function":{"name":"pwd","arguments":""}}]}"#,
        r#"{"role":"tool","tool_call_id":"call.2","content":"/home"}"#,
        r#"{"role":"tool","tool_call_id":"call.1","content":"caf\u00e9.txt"}"#,
        r#"{"role":"assistant","content":"A file."}"#,
        r#"{"role":"system","content":"now in French"}"#,
        r#"{"role":"user","content":"again"}"#,
    ];
    for (api, wire) in APIS {
        let server = Server::start(Script::new());
        let mut world = world(Wire::Chat);
        world.push(&chat);
        world.turn(&server, api, 32_000).unwrap_or_else(|error| {
            let sent = server.last().map(|seen| seen.text()).unwrap_or_default();
            panic!("{api}: {error}\n{sent}")
        });
        let text = server.last().expect("a request").text();
        for said in [
            "be brief",
            "what is here?",
            "I look.",
            "/home",
            "A file.",
            "now in French",
        ] {
            assert!(text.contains(said), "{api}: no {said} in {text}");
        }
        let native = Message::parse(world.last().as_bytes())
            .expect("a message")
            .wires()
            .has(wire);
        assert!(native, "{api}: {}", world.last());
        // The reply has the other form; the conversation can still be sent to any provider.
        world.push(&[r#"{"role":"user","content":"go on"}"#]);
        for (other, _) in APIS {
            let server = Server::start(Script::new());
            world
                .turn(&server, other, 32_000)
                .unwrap_or_else(|error| panic!("{api} to {other}: {error}"));
            world.push(&[r#"{"role":"user","content":"go on"}"#]);
        }
    }
}

#[test]
fn what_stays_the_same_is_marked_for_the_cache_and_read_from_it() {
    let server = Server::start(Script::new());
    let mut world = world(Wire::Anthropic);
    world.push(&[r#"{"role":"system","content":"be brief"}"#]);
    world.talk(20, 30);
    let mut cached = 0;
    for at in 0..4 {
        world.push(&[&format!(r#"{{"role":"user","content":"question {at}"}}"#)]);
        let turned = world.turn(&server, "anthropic", 32_000).expect("an answer");
        let usage = turned.usage.expect("a count");
        assert!(usage.cached >= cached, "{usage:?}");
        cached = usage.cached;
        let marks = server
            .last()
            .expect("a request")
            .text()
            .matches("cache_control")
            .count();
        assert!((1..=4).contains(&marks), "{marks}");
    }
    assert!(cached > 500, "{cached}");
}

#[test]
fn credentials_of_tools_reach_the_provider_and_not_the_disk() {
    let fails = || Step::named("openai/server-error");
    let server = Server::start(Script::steps([fails(), fails()]));
    let mut world = world(Wire::Responses);
    world.push(&[HELLO]);
    let tools = r#"[{"type":"mcp","server_label":"s","server_url":"http://127.0.0.1/","authorization":"s3cret-token"}]"#;
    let turned = world.call(&server, "responses", 32_000, |talk| {
        talk.frame.tools = Some(tools.to_owned());
        talk.turn(&mut |_| {})
    });
    turned.expect_err("a server that fails");
    let sent = server.requests()[1].text();
    assert!(
        sent.contains("s3cret-token") && sent.contains("hello"),
        "{sent}"
    );
    let kept = std::fs::read_to_string(world.writer.log().dir().join("request.json"));
    let kept = kept.expect("it is kept");
    assert_eq!(kept, sent.replace("s3cret-token", ""));
}

#[test]
fn only_a_reply_of_the_model_is_one_that_nobody_was_told_of() {
    let server = Server::start(Script::steps([Step::named("openai/key")]));
    let mut world = world(Wire::Chat);
    world.push(&[HELLO]);
    world
        .turn(&server, "openai", 32_000)
        .expect_err("a wrong key");
    world.push(&[r#"{"role":"assistant","content":"pushed by hand"}"#]);
    let untold =
        |world: &World| undelivered_reply(&world.writer, Some(HELLO.as_bytes())).expect("a log");
    assert_eq!(untold(&world), None);

    world.push(&[HELLO]);
    let turned = world.turn(&server, "openai", 32_000).expect("an answer");
    assert_eq!(untold(&world), Some(turned.reply));
    drop(turned);
    assert_eq!(untold(&world), None);
}

#[test]
fn nothing_is_sent_when_there_is_nothing_to_answer() {
    let server = Server::start(Script::new());
    let mut world = world(Wire::Chat);
    let refused = |world: &mut World| world.turn(&server, "openai", 32_000).expect_err("nothing");
    assert!(matches!(refused(&mut world), TurnError::Nothing(_)));
    world.push(&[HELLO, r#"{"role":"assistant","content":"hello"}"#]);
    assert!(matches!(refused(&mut world), TurnError::Nothing(_)));
    world.push(&[
        r#"{"role":"user","content":"look"}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#,
    ]);
    assert!(matches!(refused(&mut world), TurnError::Open));
    assert_eq!(server.count(), 0);
}

#[test]
fn tools_reach_every_provider_in_its_own_form() {
    let list = br#"[{"type":"function","function":{"name":"ls","description":"lists","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}]"#;
    for (api, wire) in APIS {
        let server = Server::start(Script::steps([Step::call("ls", r#"{"path":"."}"#)]));
        let mut world = world(wire);
        world.push(&[HELLO]);
        let list = Json::parse(list).expect("JSON");
        let turned = world.call(&server, api, 32_000, |talk| {
            talk.frame.tools = Some(convert_tools(list, wire).expect("tools"));
            talk.turn(&mut |_| {})
        });
        let turned = turned.expect(api);
        assert_eq!(turned.stop, infold_wire::StopReason::Calls, "{api}");
        let message = world.last();
        let calls = Message::parse(message.as_bytes())
            .expect("a message")
            .calls();
        assert_eq!(calls[0].name.as_deref(), Some("ls"), "{api}");
        assert!(
            matches!(world.turn(&server, api, 32_000), Err(TurnError::Open)),
            "{api}"
        );
    }
}
