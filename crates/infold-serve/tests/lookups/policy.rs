//! A policy for tools: the tools that the model is shown, and the handling of calls that it may not make.

use std::sync::Arc;

use infold_log::EventId;
use infold_store::{RefusalLine, ToolsShownLine, What};
use infold_testkit::{Answer, Model, Script, Seen, Server, Step};
use infold_translate::{stream_reply, write_reply};
use infold_wire::lookup::{CallJudge, HeldCalls, ReplyFilter};
use infold_wire::{Delivery, Json, Reply, StopReason, Wire};
use serde_json::{Value, json};

use crate::blocks::{Block, numbered, reply};
use crate::client::{Client, Office, read};
use crate::front::{Setup, place};

/// Reading is granted, and nothing else.
const READING: &str = "tools:\n  permissions: [read]\n";
const PRODUCTION: &str = "tools:\n  permissions: [read, execute]\n  environment: production\n";

fn schema(argument: &str) -> Value {
    json!({"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]})
}

/// Tools in the form of a wire.
fn tools(wire: Wire) -> Value {
    let all = [
        ("Bash", "command"),
        ("Read", "file_path"),
        ("Grep", "pattern"),
    ];
    let all = all.map(|(name, argument)| (name, schema(argument)));
    let function = |(name, schema): &(&str, Value)| json!({"name": name, "description": "It is useful.", "parameters": schema});
    match wire {
        Wire::Chat | Wire::Ollama => all
            .iter()
            .map(|it| json!({"type": "function", "function": function(it)}))
            .collect(),
        Wire::Responses => all
            .iter()
            .map(|(name, schema)| {
                json!({"type": "function", "name": name, "parameters": schema, "strict": false})
            })
            .collect(),
        Wire::Anthropic => all
            .iter()
            .map(|(name, schema)| json!({"name": name, "input_schema": schema}))
            .collect(),
        Wire::Gemini => json!([{"functionDeclarations": all.iter().map(function).collect::<Vec<_>>()}]),
    }
}

/// A client with these tools that asks its first question.
fn client<'o>(office: &'o Office, wire: Wire, stream: bool) -> Client<'o> {
    let mut client = Client {
        office,
        wire,
        stream,
        messages: Vec::new(),
        members: json!({ "tools": tools(wire) }),
        task: None,
    };
    client.ask("What does the code do?");
    client
}

fn office(config: &str) -> Office {
    Office::with(Model::picky(), config)
}

fn text(text: &str) -> Block {
    Block::Text(text.to_owned())
}

fn bash() -> Block {
    Block::Tool("Bash", r#"{"command":"rm -rf /"}"#.to_owned())
}

fn reads(path: &str) -> Block {
    Block::Tool("Read", json!({ "file_path": path }).to_string())
}

/// Returns the events of a conversation's log about shown tools and refused calls.
fn audit(client: &Client<'_>) -> (Vec<ToolsShownLine>, Vec<RefusalLine>) {
    let task = client.task.as_ref().expect("a task").parse();
    let log = client.office.proxy.conversations.contexts();
    let log = log.read(task.expect("an id")).expect("a log");
    let (mut shown, mut refused) = (Vec::new(), Vec::new());
    for id in (1..=log.state().at().event).filter_map(EventId::new) {
        match log.event(id).expect("an event").what {
            What::ToolsShown(line) => shown.push(line),
            What::Refusal(line) => refused.push(line),
            _ => {}
        }
    }
    (shown, refused)
}

fn member(seen: &Seen, name: &str) -> String {
    let json = seen.json().expect("JSON");
    let bytes = json.get(name).map(Json::bytes).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn last_message(seen: &Seen) -> String {
    seen.messages().last().cloned().unwrap_or_default()
}

fn every_way(mut test: impl FnMut(Wire, bool)) {
    for wire in Wire::ALL {
        for stream in [false, true] {
            test(wire, stream);
        }
    }
}

#[test]
fn hidden_tools_are_not_in_the_request_and_all_else_is_as_it_came() {
    every_way(|wire, stream| {
        let office = office(READING);
        let mut client = client(&office, wire, stream);
        let sent = String::from_utf8(client.body()).expect("text");
        client.turn();
        let seen = office.calls()[0].text();
        assert!(
            !seen.contains("Bash") && !seen.contains("Grep"),
            "{wire} {seen}"
        );
        assert!(seen.contains("\"Read\""), "{wire} {seen}");
        let own: Value = serde_json::from_str(&sent).expect("JSON");
        let tools = own["tools"].to_string();
        let (before, after) = sent.split_once(&tools).expect("the tools");
        assert!(
            seen.starts_with(before) && seen.ends_with(after),
            "{wire} {seen}"
        );
        let (shown, refused) = audit(&client);
        assert_eq!((shown.len(), refused.len()), (1, 0), "{wire}");
        assert_eq!(shown[0].shown, ["Read"]);
        let hidden: Vec<&str> = shown[0]
            .hidden
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(hidden, ["Bash", "Grep"]);
        client.turn();
        assert_eq!(audit(&client).0.len(), 1, "{wire}: nothing changed");
        office.is_accepted();
    });
}

#[test]
fn a_call_of_a_hidden_tool_is_refused_and_the_model_goes_on() {
    every_way(|wire, stream| {
        let office = office(READING);
        let mut client = client(&office, wire, stream);
        office.say(
            wire,
            &[vec![text("Let me see. "), bash()], vec![text("All right.")]],
        );
        let seen = client.turn();
        let said = String::from_utf8(seen.messages.concat()).expect("text");
        assert!(
            said.contains("Let me see. ") && said.contains("All right."),
            "{wire} {said}"
        );
        assert!(
            !said.contains("Bash") && !said.contains("rm -rf"),
            "{wire} {said}"
        );
        assert_eq!(seen.stop, StopReason::End, "{wire} {stream}");
        let calls = office.calls();
        assert_eq!(calls.len(), 2, "{wire} {stream}");
        let told = last_message(&calls[1]);
        assert!(
            told.contains("The call of `Bash` was refused"),
            "{wire} {told}"
        );
        assert!(
            told.contains("Tools that may be called now: Read."),
            "{wire} {told}"
        );
        let (_, refused) = audit(&client);
        assert_eq!(refused.len(), 1, "{wire} {stream}");
        assert_eq!(refused[0].tool, "Bash");
        // The model still gets the refusal.
        client.turn();
        let next = office.calls()[2].messages();
        let before = calls[1].messages();
        assert_eq!(next[..before.len()], before[..], "{wire} {stream}");
        office.is_accepted();
    });
}

#[test]
fn arguments_outside_the_schema_are_refused_and_others_reach_the_client() {
    every_way(|wire, stream| {
        let office = office(READING);
        let mut client = client(&office, wire, stream);
        let bad = Block::Tool("Read", r#"{"file_path":7}"#.to_owned());
        office.say(wire, &[vec![bad], vec![text("So: "), reads("a.rs")]]);
        let seen = client.turn();
        let said = String::from_utf8(seen.messages.concat()).expect("text");
        assert!(said.contains("a.rs"), "{wire} {said}");
        assert_eq!(said.matches("Read").count(), 1, "{wire} {said}");
        assert_eq!(seen.stop, StopReason::Calls, "{wire} {stream}");
        let told = last_message(&office.calls()[1]);
        assert!(told.contains("is not of type"), "{wire} {told}");
        office.say(wire, &[vec![text("Done.")]]);
        client.turn();
        client.turn();
        office.is_accepted();
    });
}

#[test]
fn a_refused_call_beside_one_of_the_client_is_answered_with_its_result() {
    every_way(|wire, stream| {
        for blocks in [
            vec![bash(), reads("a.rs")],
            vec![reads("a.rs"), bash(), reads("b.rs")],
        ] {
            let office = office(READING);
            let mut client = client(&office, wire, stream);
            let count = blocks.len();
            office.say(wire, &[blocks]);
            let seen = client.turn();
            let said = String::from_utf8(seen.messages.concat()).expect("text");
            assert!(!said.contains("Bash"), "{wire} {said}");
            assert_eq!(said.matches("Read").count(), count - 1, "{wire} {said}");
            assert_eq!(office.calls().len(), 1, "{wire}: the client answers first");
            office.say(wire, &[vec![text("Done.")]]);
            client.turn();
            let sent = office.calls()[1].text();
            assert!(
                sent.contains("The call of `Bash` was refused"),
                "{wire} {sent}"
            );
            assert_eq!(audit(&client).1.len(), 1, "{wire} {stream}");
            client.turn();
            office.is_accepted();
        }
    });
}

#[test]
fn refusals_end() {
    every_way(|wire, stream| {
        let office = office(READING);
        let mut client = client(&office, wire, stream);
        let mut rounds = vec![vec![text("Again. "), bash()]; 5];
        rounds.push(vec![text("This is another turn.")]);
        office.say(wire, &rounds);
        let seen = client.turn();
        let said = String::from_utf8(seen.messages.concat()).expect("text");
        assert!(!said.contains("Bash"), "{wire} {said}");
        assert_eq!(seen.stop, StopReason::End, "{wire} {stream}");
        assert_eq!(office.calls().len(), 5, "{wire} {stream}");
        assert_eq!(audit(&client).1.len(), 5, "{wire} {stream}");
        client.turn();
        office.is_accepted();
    });
}

#[test]
fn production_narrows_the_command_and_checks_it() {
    every_way(|wire, stream| {
        let office = office(PRODUCTION);
        let mut client = client(&office, wire, stream);
        let allowed = Block::Tool("Bash", r#"{"command":"npm test"}"#.to_owned());
        office.say(wire, &[vec![bash()], vec![allowed]]);
        let seen = client.turn();
        let said = String::from_utf8(seen.messages.concat()).expect("text");
        assert!(
            said.contains("npm test") && !said.contains("rm -rf"),
            "{wire} {said}"
        );
        let calls = office.calls();
        let tools = member(&calls[0], "tools");
        assert!(
            tools.contains("whitelist only") && tools.contains("npm run lint"),
            "{wire} {tools}"
        );
        let told = last_message(&calls[1]);
        assert!(told.contains("npm run build"), "{wire} {told}");
        let (shown, refused) = audit(&client);
        assert_eq!(shown[0].narrowed, ["Bash"]);
        assert_eq!(shown[0].environment, "production");
        assert_eq!(refused.len(), 1);
        office.is_accepted();
    });
}

#[test]
fn a_choice_of_a_hidden_tool_is_left_to_the_model() {
    for (wire, choice, auto) in [
        (
            Wire::Chat,
            json!({"type": "function", "function": {"name": "Bash"}}),
            r#""auto""#,
        ),
        (
            Wire::Responses,
            json!({"type": "function", "name": "Bash"}),
            r#""auto""#,
        ),
        (
            Wire::Anthropic,
            json!({"type": "tool", "name": "Bash"}),
            r#"{"type":"auto"}"#,
        ),
        (
            Wire::Gemini,
            json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["Bash"]}}),
            r#"{"functionCallingConfig":{"mode":"AUTO"}}"#,
        ),
    ] {
        let office = office(READING);
        let mut client = client(&office, wire, false);
        let name = match wire {
            Wire::Gemini => "toolConfig",
            _ => "tool_choice",
        };
        client.members[name] = choice;
        client.turn();
        assert_eq!(member(&office.calls()[0], name), auto, "{wire}");
        assert_eq!(
            audit(&client).0[0].choice.as_deref(),
            Some("Bash"),
            "{wire}"
        );
        office.is_accepted();
    }
}

#[test]
fn where_no_tool_is_left_the_request_still_is_one() {
    every_way(|wire, stream| {
        let office = office("tools:\n  permissions: []\n");
        let mut client = client(&office, wire, stream);
        if matches!(wire, Wire::Chat | Wire::Responses) {
            client.members["tool_choice"] = "required".into();
            client.members["parallel_tool_calls"] = true.into();
        }
        office.say(wire, &[vec![bash()], vec![text("Without tools, then.")]]);
        client.turn();
        let calls = office.calls();
        let seen = calls[0].text();
        for name in [
            "Bash",
            "Read",
            "Grep",
            "tool_choice\":\"required",
            "parallel",
        ] {
            assert!(!seen.contains(name), "{wire} {seen}");
        }
        assert!(
            last_message(&calls[1]).contains("No tool may be called now"),
            "{wire}"
        );
        client.turn();
        office.is_accepted();
    });
}

#[test]
fn the_client_s_own_bytes_are_projected_too() {
    let mut longest = 0;
    // A request that is shorter than the one before is folded, and refused.
    let script = Script::decide(move |seen| {
        let is_folded = seen.messages().len() < longest;
        longest = longest.max(seen.messages().len());
        if is_folded {
            let odd =
                r#"{"error":{"message":"messages.1: this is odd","type":"invalid_request_error"}}"#;
            return Step::error(400, odd);
        }
        Step::say("Fine.")
    });
    let provider = Server::start(script);
    let mut setup = Setup::to(&provider.url());
    setup.config = READING.to_owned();
    setup.window = Some("8000");
    let proxy = setup.start();
    let mut messages = Vec::new();
    let folded = (0..200).find_map(|turn| {
        let words = "some more words to fill it with ".repeat(12);
        messages.push(json!({"role": "user", "content": format!("{turn}: {words}")}));
        let body = json!({"model": "m", "messages": messages, "tools": tools(Wire::Chat)});
        let before = provider.requests().len();
        let answer = proxy.post(place(Wire::Chat, false).0, "", body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        messages.push(json!({"role": "assistant", "content": "Fine."}));
        let asked = provider.requests().split_off(before);
        (asked.len() > 1).then_some(asked)
    });
    let asked = folded.expect("some time it is folded");
    assert_eq!(asked.len(), 2);
    assert!(asked[0].messages().len() < asked[1].messages().len());
    for request in asked {
        let tools = member(&request, "tools");
        assert!(
            tools.contains("\"Read\"") && !tools.contains("Bash"),
            "{tools}"
        );
    }
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let office = office(READING);
    for (wire, name, value) in [
        (Wire::Chat, "n", json!(2)),
        (
            Wire::Chat,
            "functions",
            json!([{"name": "Bash", "parameters": {}}]),
        ),
        (Wire::Responses, "background", json!(true)),
        (Wire::Gemini, "cachedContent", json!("cachedContents/1")),
        (
            Wire::Gemini,
            "generationConfig",
            json!({"candidateCount": 2}),
        ),
    ] {
        let mut client = client(&office, wire, false);
        client.members[name] = value;
        let answer = client.post();
        assert_eq!(answer.status, 400, "{wire} {name}");
        assert!(
            answer.text().contains("a policy for tools"),
            "{wire} {}",
            answer.text()
        );
    }
    // A request that Infold cannot read, and a call at a path that it does not know.
    let (path, headers) = place(Wire::Chat, false);
    let body = br#"{"model":"m","messages":"no list","tools":[]}"#;
    assert_eq!(office.proxy.post(path, headers, body).status, 400);
    let elsewhere = client(&office, Wire::Chat, false).body();
    assert_eq!(office.proxy.post("/v9/chat", "", &elsewhere).status, 400);
    assert!(office.calls().is_empty());
    assert!(office.provider.requests().is_empty());
}

#[test]
fn a_stream_that_breaks_in_a_call_does_not_show_it() {
    for wire in Wire::ALL {
        for events in 1..8 {
            let office = Office::with(Model::default(), READING);
            let client = client(&office, wire, true);
            let round = reply(wire, 0, &numbered(0, &[text("So. "), bash()]));
            office.next([Step::exact(round).cut_after_events(events)]);
            let answer = client.post();
            let text = answer.text();
            assert!(
                !text.contains("Bash") && !text.contains("rm -rf"),
                "{wire} {text}"
            );
        }
    }
}

#[test]
fn a_policy_and_look_ups_go_together() {
    every_way(|wire, stream| {
        let config = format!("serve:\n  recall_tool: true\n{READING}");
        let office = office(&config);
        let mut client = Client::new(&office, wire, stream, "this");
        client.members = json!({ "tools": tools(wire) });
        let lookup = Block::Lookup(crate::client::word(217));
        office.say(wire, &[vec![lookup, bash()], vec![text("It is 15029.")]]);
        client.turn();
        let calls = office.calls();
        assert_eq!(calls.len(), 2, "{wire} {stream}");
        let sent = calls[1].text();
        assert!(sent.contains(crate::client::FACT), "{wire}");
        assert!(sent.contains("The call of `Bash` was refused"), "{wire}");
        assert!(
            member(&calls[0], "tools").contains("search_history"),
            "{wire}"
        );
        client.turn();
        office.is_accepted();
    });
}

fn judge() -> HeldCalls {
    let judge: CallJudge = Arc::new(|name, arguments| {
        let given = arguments.map(|it| String::from_utf8_lossy(it.bytes()).into_owned());
        let is_bad = given.unwrap_or_default().contains("forbidden");
        (name == "Bash" || is_bad).then(|| "no".to_owned())
    });
    HeldCalls::new(None, Some(judge))
}

/// However a stream is split, refused calls are hidden, and everything else is shown.
#[test]
fn a_judged_stream_may_be_cut_anywhere() {
    let blocks = [
        Block::Think("hm".to_owned()),
        text("First \"this\". "),
        reads("a.rs"),
        bash(),
        reads("forbidden"),
        reads("b \"quoted\".rs"),
    ];
    let left: Vec<Block> = [0, 1, 2, 5].map(|at: usize| blocks[at].clone()).to_vec();
    for wire in Wire::ALL {
        let keep = |at: usize| at != 3 && at != 4;
        let numbered_all = numbered(0, &blocks);
        let expected: Vec<_> = numbered_all
            .iter()
            .enumerate()
            .filter(|(at, _)| keep(*at))
            .map(|(_, block)| block.clone())
            .collect();
        assert_eq!(expected.len(), left.len());
        let expected = reply(wire, 0, &expected);
        let whole = reply(wire, 0, &numbered_all);
        for piece in [1, 3, 100] {
            for cut in [1, 2, 7, 64, 100_000] {
                let mut filter = ReplyFilter::new(wire, Delivery::Stream, judge());
                let bytes = stream_reply(wire, &whole, piece).concat();
                let mut out = Vec::new();
                for chunk in bytes.chunks(cut) {
                    out.extend(filter.push(chunk));
                }
                let outcome = filter.end_round();
                assert_eq!(outcome.calls.held.len(), 2, "{wire}");
                assert_eq!(outcome.calls.others, 2, "{wire}");
                out.extend(filter.finish());
                same(wire, &read(wire, true, &out), &expected);
            }
        }
        let mut filter = ReplyFilter::new(wire, Delivery::Whole, judge());
        let body = write_reply(wire, &whole);
        filter.push_body(&body);
        filter.end_round();
        same(
            wire,
            &read(wire, false, &filter.last_body(&body)),
            &expected,
        );
    }
}

fn same(wire: Wire, seen: &Reply, expected: &Reply) {
    let values = |reply: &Reply| -> Vec<Value> {
        let messages = reply.messages.iter();
        messages
            .map(|bytes| serde_json::from_slice(bytes).expect("JSON"))
            .collect()
    };
    assert_eq!(values(seen), values(expected), "{wire}");
    assert_eq!(seen.stop, expected.stop, "{wire}");
}

/// Calls of tools of the provider's own, and of custom ones, do not reach the client either.
#[test]
fn calls_in_other_forms_are_held_back() {
    let shell = r#"{"id":"ls_1","type":"local_shell_call","call_id":"c1","status":"completed","action":{"type":"exec","command":["rm"],"env":{}}}"#;
    let custom = r#"{"id":"ct_1","type":"custom_tool_call","call_id":"c2","status":"completed","name":"Bash","input":"rm"}"#;
    for item in [shell, custom] {
        for stream in [false, true] {
            let office = Office::with(Model::default(), READING);
            let mut client = client(&office, Wire::Responses, stream);
            let called = Reply {
                messages: vec![item.as_bytes().to_vec()],
                ..reply(Wire::Responses, 0, &numbered(0, &[bash()]))
            };
            office.next([Step::exact(called), Step::say("All right.")]);
            let seen = client.turn();
            let said = String::from_utf8(seen.messages.concat()).expect("text");
            assert!(
                said.contains("All right.") && !said.contains("_call"),
                "{said}"
            );
            let told = last_message(&office.calls()[1]);
            assert!(
                told.contains("_call_output") && told.contains("was refused"),
                "{told}"
            );
        }
    }
}

/// The deprecated functions cannot be requested under a policy for tools, so no client waits for a call of one.
#[test]
fn calls_of_functions_are_left_out() {
    let stream = concat!(
        r#"data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"So."},"finish_reason":null}]}"#,
        "\n\n",
        r#"data: {"id":"c","choices":[{"index":0,"delta":{"function_call":{"name":"Read","arguments":"{}"}},"finish_reason":null}]}"#,
        "\n\n",
        r#"data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}"#,
        "\n\ndata: [DONE]\n\n"
    );
    let mut filter = ReplyFilter::new(Wire::Chat, Delivery::Stream, judge());
    let mut out = filter.push(stream.as_bytes());
    filter.end_round();
    out.extend(filter.finish());
    let out = String::from_utf8(out).expect("text");
    assert!(out.contains("So.") && !out.contains("Read"), "{out}");
    let whole = r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"So.","function_call":{"name":"Read","arguments":"{}"}},"finish_reason":"function_call"}]}"#;
    let mut filter = ReplyFilter::new(Wire::Chat, Delivery::Whole, judge());
    filter.push_body(whole.as_bytes());
    filter.end_round();
    let out = String::from_utf8(filter.last_body(whole.as_bytes())).expect("text");
    assert!(out.contains("So.") && !out.contains("Read"), "{out}");
}

#[test]
fn a_policy_holds_where_the_provider_speaks_another_api() {
    for (api, upstream) in [("openai+", Wire::Chat), ("anthropic+", Wire::Anthropic)] {
        every_way(|wire, stream| {
            let model = Model {
                alternate: false,
                ..Model::default()
            };
            let office = Office::to(model, READING, api);
            let mut client = client(&office, wire, stream);
            let calls = |calls: &[(&str, &str)]| {
                let calls = calls.iter();
                let calls = calls.map(|(name, given)| ((*name).to_owned(), (*given).to_owned()));
                Step::answer(Answer {
                    text: Some("So. ".to_owned()),
                    calls: calls.collect(),
                    ..Answer::default()
                })
            };
            let (bad, good) = (r#"{"command":"rm"}"#, r#"{"file_path":"a.rs"}"#);
            office.next([calls(&[("Bash", bad)]), calls(&[("Read", good)])]);
            let seen = client.turn();
            let said = String::from_utf8(seen.messages.concat()).expect("text");
            assert!(
                said.contains("a.rs") && !said.contains("Bash"),
                "{wire} {said}"
            );
            let asked = office.calls();
            assert_eq!(asked.len(), 2, "{wire} {stream}");
            assert_eq!(asked[0].wire(), Some(upstream));
            assert!(!asked[0].text().contains("Bash"), "{wire} {stream}");
            assert!(
                asked[1].text().contains("was refused and not executed"),
                "{wire}"
            );
        });
    }
}

#[test]
fn what_is_not_recorded_is_not_sent() {
    let config = format!("context_storage:\n  enabled: false\n{READING}");
    let office = office(&config);
    let answer = client(&office, Wire::Anthropic, false).post();
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(
        answer.text().contains("a policy for tools is in force"),
        "{}",
        answer.text()
    );
    assert!(office.provider.requests().is_empty());
}

/// Only calls are held back until they end: text before them is forwarded at once.
#[test]
fn text_before_a_call_flows_at_once() {
    for wire in Wire::ALL {
        let whole = reply(
            wire,
            0,
            &numbered(0, &[text("First this. "), reads("a.rs")]),
        );
        let mut filter = ReplyFilter::new(wire, Delivery::Stream, judge());
        let mut out = Vec::new();
        let mut text_at = None;
        for (at, event) in stream_reply(wire, &whole, 4).iter().enumerate() {
            out.extend(filter.push(event));
            if text_at.is_none() && String::from_utf8_lossy(&out).contains("is. ") {
                text_at = Some((at, filter.has_unjudged_calls()));
            }
        }
        assert!(matches!(text_at, Some((_, false))), "{wire} {text_at:?}");
        assert!(filter.has_unjudged_calls(), "{wire}");
        assert!(!String::from_utf8_lossy(&out).contains("a.rs"), "{wire}");
    }
}

#[test]
fn members_are_left_out_wherever_they_stand() {
    let tools = r#"[ {"type":"function","function":{"name":"Bash"}} ]"#;
    let messages = r#""messages":[{"role":"user","content":"\"tools\": hi"}]"#;
    for (sent, expected) in [
        (
            format!(r#"{{"tools":{tools},"tool_choice":"auto","model":"m",{messages}}}"#),
            format!(r#"{{"model":"m",{messages}}}"#),
        ),
        (
            format!(
                r#"{{ "tools" : {tools} , "parallel_tool_calls":true, {messages}, "model":"m"}}"#
            ),
            format!(r#"{{   {messages}, "model":"m"}}"#),
        ),
        (
            format!(r#"{{"model":"m",{messages} , "tools":{tools}, "tool_choice":"required"}}"#),
            format!(r#"{{"model":"m",{messages} }}"#),
        ),
        (
            format!(
                r#"{{"parallel_tool_calls":true,"tool_choice":"auto","tools":{tools},{messages},"model":"m"}}"#
            ),
            format!(r#"{{{messages},"model":"m"}}"#),
        ),
        (
            format!(r#"{{"tool_choice":"auto",{messages},"tools":{tools},"model":"m"}}"#),
            format!(r#"{{{messages},"model":"m"}}"#),
        ),
    ] {
        let office = Office::with(Model::default(), READING);
        let answer = office
            .proxy
            .post(place(Wire::Chat, false).0, "", sent.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(office.calls()[0].text(), expected, "{sent}");
    }
}

#[test]
fn large_requests_are_projected_too() {
    let provider = Server::start(Script::new());
    let mut setup = Setup::to(&provider.url());
    setup.config = READING.to_owned();
    let proxy = setup.start();
    // More bytes than are kept in memory.
    let text = "word ".repeat(400_000);
    let body = json!({"model": "m", "messages": [{"role": "user", "content": text}], "tools": tools(Wire::Chat)});
    let answer = proxy.post(place(Wire::Chat, false).0, "", body.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let all = tools(Wire::Chat);
    let left = json!([all[1]]).to_string();
    let expected = body.to_string().replace(&all.to_string(), &left);
    let seen = provider.last_call().expect("a call");
    assert_eq!(seen.hash, infold_testkit::hash(expected.as_bytes()));
}
