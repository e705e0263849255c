//! Clients of one wire, and a provider that speaks another.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use infold::profile::Setting;
use infold::{Config, Connector};
use infold_log::Role;
use infold_provider::{Client, RetryPolicy, Secret};
use infold_serve::{Conversations, Options, Server, ServerLimits, Upstreams};
use infold_store::{Contexts, Durability};
use infold_testkit::{Answer, Gate, Model, Script, Server as Provider, Step};
use infold_wire::request::RequestFrame;
use infold_wire::tools::convert_tools;
use infold_wire::{
    Delivery, Json, Message, Reply, ReplyReader, StopReason, Wire, append_words, quote, render_text,
};
use reqwest::Response;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// A proxy whose upstreams all speak one wire.
struct Proxy {
    runtime: Runtime,
    address: SocketAddr,
    conversations: Conversations,
    provider: Provider,
    http: reqwest::Client,
    _dir: tempfile::TempDir,
    _stop: watch::Sender<bool>,
}

fn api(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat => "openai",
        other => other.name(),
    }
}

impl Proxy {
    fn new(to: Wire, script: Script) -> Proxy {
        Proxy::with(script, |_, url| format!("{}+{url}", api(to)))
    }

    /// `set` changes the configuration, and returns the flag that names the upstream.
    fn with(script: Script, set: impl FnOnce(&mut Config, &str) -> String) -> Proxy {
        let provider = Provider::start(script);
        let runtime = Runtime::new().expect("a runtime");
        let dir = tempfile::tempdir().expect("a directory");
        let (stop, stopped) = watch::channel(false);
        let client = {
            let _inside = runtime.enter();
            Client::new(RetryPolicy::default()).expect("a client")
        };
        let board = Connector::new(client, runtime.handle().clone(), stopped);
        let contexts = Contexts::new(dir.path(), Durability::Never);
        let mut config = Config::default();
        config.summarizer.name = Setting::call("extractive".to_owned());
        let flags = [set(&mut config, &provider.url())];
        let upstreams = Upstreams::new(&config, &flags, None).expect("upstreams");
        let contexts = contexts.keeping().expect("a registry");
        let conversations =
            Conversations::new(contexts, Arc::new(config), board).expect("a conversations");
        let options = Options {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            token: None,
            names: Vec::new(),
            upstreams,
            limits: ServerLimits::default(),
        };
        let shared = conversations.clone();
        let server = runtime.block_on(Server::bind(options, |_| Ok(shared)));
        let server = server.expect("a server");
        let address = server.address();
        runtime.spawn(server.run(std::future::pending()));
        Proxy {
            runtime,
            address,
            conversations,
            provider,
            http: reqwest::Client::builder()
                .no_proxy()
                .build()
                .expect("a client"),
            _dir: dir,
            _stop: stop,
        }
    }

    /// Sends as a client of this wire does, key and all.
    fn post(&self, wire: Wire, path: &str, body: Vec<u8>) -> Response {
        let url = format!("http://{}{path}", self.address);
        let (name, value) = match wire {
            Wire::Anthropic => ("x-api-key", "key-of-the-client"),
            Wire::Gemini => ("x-goog-api-key", "key-of-the-client"),
            // The spelling of the scheme does not matter.
            _ => ("authorization", "bearer key-of-the-client"),
        };
        let request = self.http.post(url).header(name, value).body(body);
        let request = request.header("content-type", "application/json");
        self.runtime.block_on(request.send()).expect("an answer")
    }

    fn get(&self, path: &str) -> Response {
        let request = self.http.get(format!("http://{}{path}", self.address));
        self.runtime.block_on(request.send()).expect("an answer")
    }

    fn bytes(&self, response: Response) -> Vec<u8> {
        self.runtime
            .block_on(response.bytes())
            .expect("a body")
            .to_vec()
    }

    fn text(&self, response: Response) -> String {
        String::from_utf8_lossy(&self.bytes(response)).into_owned()
    }

    fn ask(&self, wire: Wire, stream: bool, messages: &[Vec<u8>]) -> Response {
        self.post(wire, path(wire, stream), request(wire, stream, messages))
    }
}

fn path(wire: Wire, stream: bool) -> &'static str {
    match (wire, stream) {
        (Wire::Chat, _) => "/v1/chat/completions",
        (Wire::Responses, _) => "/v1/responses",
        (Wire::Anthropic, _) => "/v1/messages",
        (Wire::Gemini, true) => "/v1beta/models/m:streamGenerateContent?alt=sse",
        (Wire::Gemini, false) => "/v1beta/models/m:generateContent",
        (Wire::Ollama, _) => "/api/chat",
    }
}

fn request(wire: Wire, stream: bool, messages: &[Vec<u8>]) -> Vec<u8> {
    let definition = br#"[{"name":"ls","description":"Lists.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}]"#;
    let definition = Json::parse(definition).expect("JSON");
    let mut frame = RequestFrame {
        tools: Some(convert_tools(definition, wire).expect("tools")),
        max_tokens: Some(300),
        stream,
        ..RequestFrame::new(wire, "m")
    };
    let mut all = messages.to_vec();
    if wire.has_separate_system_prompt() {
        frame.system = vec![quote("Be brief.")]
    } else {
        all.insert(0, render_text(wire, Role::System, "Be brief."))
    }
    let mut body = frame.head().into_bytes();
    body.extend(all.join(&b','));
    body.extend(RequestFrame::TAIL.bytes());
    body
}

fn read(wire: Wire, stream: bool, body: &[u8]) -> Reply {
    let form = if stream {
        Delivery::Stream
    } else {
        Delivery::Whole
    };
    let mut reader = ReplyReader::new(wire, form);
    let shown = String::from_utf8_lossy(body);
    reader
        .push(body, &mut |_| {})
        .unwrap_or_else(|error| panic!("{wire}: {error}: {shown}"));
    reader
        .finish()
        .unwrap_or_else(|error| panic!("{wire}: {error}: {shown}"))
}

fn said(reply: &Reply) -> String {
    let mut text = String::new();
    for message in &reply.messages {
        let message = Message::parse(message).expect("a message");
        if message.facts().calls.is_empty() {
            append_words(&message, &mut text);
        }
    }
    text
}

/// Returns the client's result for the call in a reply.
fn result(wire: Wire, reply: &Reply) -> Vec<u8> {
    let messages = reply
        .messages
        .iter()
        .map(|it| Message::parse(it).expect("a message"));
    let mut calls = messages.flat_map(|message| message.facts().calls);
    let call = calls.next().expect("a call");
    let id = quote(call.id.as_deref().unwrap_or_default());
    let text = match wire {
        Wire::Chat => format!(r#"{{"role":"tool","tool_call_id":{id},"content":"a.txt"}}"#),
        Wire::Responses => {
            format!(r#"{{"type":"function_call_output","call_id":{id},"output":"a.txt"}}"#)
        }
        Wire::Anthropic => format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":{id},"content":"a.txt"}}]}}"#
        ),
        Wire::Gemini => format!(
            r#"{{"role":"user","parts":[{{"functionResponse":{{"id":{id},"name":"ls","response":{{"output":"a.txt"}}}}}}]}}"#
        ),
        Wire::Ollama => r#"{"role":"tool","tool_name":"ls","content":"a.txt"}"#.to_owned(),
    };
    text.into_bytes()
}

fn pairs() -> impl Iterator<Item = (Wire, Wire)> {
    let all = |from| Wire::ALL.into_iter().map(move |to| (from, to));
    Wire::ALL
        .into_iter()
        .flat_map(all)
        .filter(|(from, to)| from != to)
}

#[test]
fn a_tool_loop_and_what_follows_it_are_one_task_on_any_pair_of_wires() {
    for (from, to) in pairs() {
        let both = format!("{from} on {to}");
        let model = Model {
            key: Some("key-of-the-client".to_owned()),
            ..Model::default()
        };
        let looks = Answer {
            thinking: Some("Where?".to_owned()),
            text: Some("I look.".to_owned()),
            calls: vec![("ls".to_owned(), r#"{"path":"."}"#.to_owned())],
            ..Answer::default()
        };
        let steps = [
            Step::answer(looks),
            Step::say("One file."),
            Step::say("Good bye."),
        ];
        let proxy = Proxy::new(to, Script::steps(steps).model(model));
        let mut messages = vec![render_text(from, Role::User, "What is there?")];
        let mut tasks = Vec::new();
        // Clients of one conversation stream or not, as they like.
        for (turn, stream) in [(0, true), (1, from != Wire::Responses), (2, false)] {
            let response = proxy.ask(from, stream, &messages);
            let (status, headers) = (response.status(), response.headers().clone());
            let body = proxy.bytes(response);
            assert_eq!(status, 200, "{both}: {}", String::from_utf8_lossy(&body));
            tasks.push(headers["x-infold-task"].clone());
            let reply = read(from, stream, &body);
            assert!(reply.usage.is_some_and(|usage| usage.output > 0), "{both}");
            messages.extend(reply.messages.clone());
            match turn {
                0 => {
                    assert_eq!(reply.stop, StopReason::Calls, "{both}");
                    messages.push(result(from, &reply));
                }
                1 => {
                    assert_eq!(said(&reply), "One file.", "{both}");
                    messages.push(render_text(from, Role::User, "Thanks."));
                }
                _ => assert_eq!(said(&reply), "Good bye.", "{both}"),
            }
        }
        assert!(
            tasks.iter().all(|task| *task == tasks[0]),
            "{both}: {tasks:?}"
        );
        assert_eq!(
            proxy.conversations.contexts().tasks().expect("tasks").len(),
            1,
            "{both}"
        );
        let mut seen = proxy.provider.requests();
        seen.retain(|seen| seen.wire().is_some());
        assert_eq!(seen.len(), 3, "{both}");
        for seen in seen {
            assert_eq!(seen.wire(), Some(to), "{both}");
            assert!(seen.text().contains("Be brief."), "{both}");
            assert!(
                seen.headers
                    .iter()
                    .all(|(name, _)| !name.starts_with("x-infold"))
            );
        }
        let last = proxy.provider.last().expect("a request").text();
        for told in ["What is there?", "a.txt", "One file.", "Thanks."] {
            assert!(last.contains(told), "{both}: {told} in {last}");
        }
    }
}

#[test]
fn what_is_too_long_for_a_foreign_provider_is_folded() {
    // Ollama never says that a request is too long.
    for (from, to) in pairs().filter(|(_, to)| *to != Wire::Ollama) {
        let both = format!("{from} on {to}");
        let model = Model {
            alternate: false,
            ..Model::window(1500)
        };
        let script = Script::steps([Step::say("Done.")]).model(model);
        let proxy = Proxy::new(to, script);
        let long = "the quick brown fox jumps over the lazy dog ".repeat(24);
        let mut messages = Vec::new();
        for turn in 0..12 {
            messages.push(render_text(from, Role::User, &format!("{turn}: {long}")));
            messages.push(render_text(from, Role::Assistant, &format!("yes {turn}")));
        }
        messages.push(render_text(from, Role::User, "And now?"));
        let response = proxy.ask(from, true, &messages);
        let (status, headers) = (response.status(), response.headers().clone());
        let body = proxy.bytes(response);
        assert_eq!(status, 200, "{both}: {}", String::from_utf8_lossy(&body));
        assert_eq!(said(&read(from, true, &body)), "Done.", "{both}");
        assert!(headers["x-infold-folds"] != "0", "{both}");
        assert!(proxy.provider.count() >= 2, "{both}");
    }
}

#[test]
fn what_can_never_fit_is_refused_in_the_words_of_the_client() {
    let proxy = Proxy::new(Wire::Chat, Script::new().model(Model::window(400)));
    let long = "the quick brown fox jumps over the lazy dog ".repeat(300);
    let response = proxy.ask(
        Wire::Anthropic,
        true,
        &[render_text(Wire::Anthropic, Role::User, &long)],
    );
    assert_eq!(response.status(), 400);
    let said = proxy.text(response);
    assert!(
        said.starts_with(r#"{"type":"error""#) && said.contains("prompt is too long"),
        "{said}"
    );
}

#[test]
fn errors_are_told_in_the_words_of_the_client() {
    let named = |wire| match wire {
        Wire::Chat => "openai/rate-limit",
        _ => "anthropic/rate-limit",
    };
    for (from, to) in [
        (Wire::Anthropic, Wire::Chat),
        (Wire::Gemini, Wire::Anthropic),
    ] {
        let proxy = Proxy::new(to, Script::steps([Step::named(named(to))]));
        let response = proxy.ask(from, true, &[render_text(from, Role::User, "hello")]);
        assert_eq!(response.status(), 429);
        let body = proxy.text(response);
        match from {
            Wire::Anthropic => assert!(body.contains(r#""type":"rate_limit_error""#), "{body}"),
            _ => assert!(body.contains("RESOURCE_EXHAUSTED"), "{body}"),
        }
    }
    // A provider that is overloaded stays so.
    for (from, to) in pairs() {
        let error =
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        let proxy = Proxy::new(to, Script::steps([Step::error(529, error)]));
        let response = proxy.ask(from, true, &[render_text(from, Role::User, "hello")]);
        let status = response.status().as_u16();
        let body = proxy.text(response);
        let expected = match from {
            Wire::Anthropic => {
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#
            }
            Wire::Chat | Wire::Responses => {
                r#"{"error":{"message":"Overloaded","type":"server_error","param":null,"code":"overloaded"}}"#
            }
            Wire::Gemini => {
                r#"{"error":{"code":529,"message":"Overloaded","status":"UNAVAILABLE"}}"#
            }
            Wire::Ollama => r#"{"error":"Overloaded"}"#,
        };
        assert_eq!((status, &*body), (529, expected), "{from} on {to}");
    }
    // An error in the middle of a reply.
    for (from, to) in pairs() {
        let cut = Step::say("a text that is cut off somewhere")
            .in_pieces(3)
            .cut_after_events(4);
        let proxy = Proxy::new(to, Script::steps([cut]));
        let response = proxy.ask(from, true, &[render_text(from, Role::User, "hello")]);
        let body = proxy.runtime.block_on(response.bytes());
        let mut reader = ReplyReader::new(from, Delivery::Stream);
        let whole = body.map(|body| {
            reader
                .push(&body, &mut |_| {})
                .and_then(|()| reader.finish())
        });
        assert!(
            !matches!(whole, Ok(Ok(_))),
            "{from} on {to}: half a reply is none"
        );
    }
}

#[test]
fn text_is_told_as_it_comes() {
    for (from, to) in [
        (Wire::Anthropic, Wire::Chat),
        (Wire::Chat, Wire::Anthropic),
        (Wire::Responses, Wire::Gemini),
    ] {
        let gate = Gate::closed();
        let slow = Step::say("one two three four five six seven eight")
            .in_pieces(4)
            .gated(6, &gate);
        let proxy = Proxy::new(to, Script::steps([slow]));
        let mut response = proxy.ask(from, true, &[render_text(from, Role::User, "count")]);
        let mut body = Vec::new();
        while let Some(chunk) = proxy.runtime.block_on(response.chunk()).expect("a chunk") {
            body.extend_from_slice(&chunk);
            if String::from_utf8_lossy(&body).contains("one") {
                gate.open();
            }
        }
        assert!(said(&read(from, true, &body)).ends_with("eight"));
    }
}

#[test]
fn a_provider_of_the_configuration_has_its_own_key_and_model() {
    let model = Model {
        key: Some("own-key-of-the-provider".to_owned()),
        names: vec!["theirs".to_owned()],
        ..Model::default()
    };
    let proxy = Proxy::with(Script::new().model(model), |config, url| {
        config.llm.providers.push(infold::config::Provider {
            name: "mine".to_owned(),
            api: Setting::call("openai".to_owned()),
            model: Some(Setting::call("theirs".to_owned())),
            context_length: None,
            api_key: Some(Setting::call(Secret::new(
                "own-key-of-the-provider".to_owned(),
            ))),
            base_url: Some(Setting::call(url.to_owned())),
            max_tokens: None,
        });
        "anthropic=mine".to_owned()
    });
    let wire = Wire::Anthropic;
    let response = proxy.ask(wire, false, &[render_text(wire, Role::User, "hello")]);
    let status = response.status();
    let body = proxy.bytes(response);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    // The client gets the model name that it requested.
    assert_eq!(read(wire, false, &body).model.as_deref(), Some("m"));
}

#[test]
fn an_upstream_may_be_named_with_what_it_speaks() {
    let speaks = |flag: &str| {
        let upstreams = Upstreams::new(&Config::default(), &[flag.to_owned()], None)?;
        Ok::<_, infold_serve::UpstreamError>(Wire::ALL.map(|wire| upstreams.of(wire).endpoint.wire))
    };
    let native = Wire::ALL;
    let [chat, responses, anthropic, gemini, ollama] = native;
    let host = "http://127.0.0.1:9";
    assert_eq!(speaks(host).expect("an address"), native);
    assert_eq!(
        speaks(&format!("chat+{host}")).expect("an address"),
        [chat; 5]
    );
    let one = speaks(&format!("anthropic=ollama+{host}/api")).expect("an address");
    assert_eq!(one, [chat, responses, ollama, gemini, ollama]);
    let named = speaks("gemini=anthropic").expect("a provider");
    assert_eq!(named, [chat, responses, anthropic, anthropic, ollama]);
    for wrong in [
        format!("anthropic=soap+{host}"),
        "anthropic=nobody".to_owned(),
    ] {
        assert!(speaks(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_lost_is_named() {
    let proxy = Proxy::new(Wire::Chat, Script::new());
    let body = r#"{"model":"m","max_tokens":50,"thinking":{"type":"enabled","budget_tokens":1024},"top_k":4,"messages":[{"role":"user","content":"hello"}]}"#;
    let response = proxy.post(Wire::Anthropic, "/v1/messages", body.into());
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["x-infold-lost"], "thinking; top_k");
    let response = proxy.ask(
        Wire::Anthropic,
        false,
        &[render_text(Wire::Anthropic, Role::User, "hi")],
    );
    assert!(!response.headers().contains_key("x-infold-lost"));
}

#[test]
fn tokens_are_counted_here_and_models_are_listed_in_the_clients_form() {
    let model = Model {
        names: vec!["m".to_owned()],
        ..Model::default()
    };
    let proxy = Proxy::new(Wire::Chat, Script::new().model(model.clone()));
    let body = request(
        Wire::Anthropic,
        false,
        &[render_text(Wire::Anthropic, Role::User, "hello")],
    );
    let counted = proxy.post(Wire::Anthropic, "/v1/messages/count_tokens", body);
    let counted = proxy.text(counted);
    assert!(counted.starts_with(r#"{"input_tokens":"#), "{counted}");
    let body = request(
        Wire::Gemini,
        false,
        &[render_text(Wire::Gemini, Role::User, "hello")],
    );
    let counted = proxy.text(proxy.post(Wire::Gemini, "/v1beta/models/m:countTokens", body));
    assert!(counted.starts_with(r#"{"totalTokens":"#), "{counted}");
    assert_eq!(proxy.provider.count(), 0);
    for (path, shape) in [
        ("/v1beta/models", r#"{"models":[{"name":"models/m""#),
        ("/api/tags", r#"{"models":[{"name":"m""#),
    ] {
        let listed = proxy.text(proxy.get(path));
        assert!(listed.starts_with(shape), "{path}: {listed}");
    }
    let absent = proxy.get("/api/ps");
    assert_eq!(absent.status(), 404);
    let proxy = Proxy::new(Wire::Ollama, Script::new().model(model));
    let listed = proxy.text(proxy.get("/v1/models"));
    assert!(
        listed.starts_with(r#"{"object":"list","data":[{"id":"m""#),
        "{listed}"
    );
}

#[test]
fn a_response_that_goes_on_from_another_is_sent_whole() {
    let proxy = Proxy::new(
        Wire::Anthropic,
        Script::steps([Step::say("First."), Step::say("Second.")]),
    );
    let ask = |previous: &str, text: &str| {
        let body = format!(r#"{{"model":"m","input":{}{previous}}}"#, quote(text));
        let response = proxy.post(Wire::Responses, "/v1/responses", body.into());
        let status = response.status();
        let body = proxy.bytes(response);
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        read(Wire::Responses, false, &body)
    };
    let first = ask("", "hello");
    let id = quote(first.id.as_deref().expect("an id"));
    let second = ask(&format!(r#","previous_response_id":{id}"#), "and then?");
    assert_eq!(said(&second), "Second.");
    let sent = proxy.provider.last().expect("a request").text();
    for told in ["hello", "First.", "and then?"] {
        assert!(sent.contains(told), "{told} in {sent}");
    }
    assert_eq!(
        proxy.conversations.contexts().tasks().expect("tasks").len(),
        1
    );
}

#[test]
fn a_request_with_every_parameter_is_one_that_the_provider_takes() {
    for to in Wire::ALL {
        let proxy = Proxy::new(to, Script::new());
        for from in Wire::ALL.into_iter().filter(|from| *from != to) {
            let (path, body) = match from {
                Wire::Chat => (
                    "/v1/chat/completions",
                    include_str!("../../infold-translate/tests/parameters/chat.json"),
                ),
                Wire::Responses => (
                    "/v1/responses",
                    include_str!("../../infold-translate/tests/parameters/responses.json"),
                ),
                Wire::Anthropic => (
                    "/v1/messages",
                    include_str!("../../infold-translate/tests/parameters/anthropic.json"),
                ),
                Wire::Gemini => (
                    "/v1beta/models/m:streamGenerateContent?alt=sse",
                    include_str!("../../infold-translate/tests/parameters/gemini.json"),
                ),
                Wire::Ollama => (
                    "/api/chat",
                    include_str!("../../infold-translate/tests/parameters/ollama.json"),
                ),
            };
            let response = proxy.post(from, path, body.as_bytes().to_vec());
            let (status, headers) = (response.status(), response.headers().clone());
            let said = proxy.bytes(response);
            let said = String::from_utf8_lossy(&said);
            assert_eq!(status, 200, "{from} to {to}: {said}");
            let lost = headers.get("x-infold-lost").expect("something is lost");
            assert!(!lost.is_empty(), "{from} to {to}");
        }
    }
}
