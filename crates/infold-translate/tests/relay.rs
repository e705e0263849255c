//! A reply that is translated to another wire while it is streamed is the same reply.

use infold_translate::{ReplyRelay, stream_reply, write_reply};
use infold_wire::{
    Converter, Delivery, Json, Message, Reply, ReplyDelta, ReplyReader, StopReason, TokenUsage,
    Wire, quote,
};
use proptest::prelude::*;

/// One piece of model output.
#[derive(Clone, Debug, PartialEq)]
enum Act {
    Says(String),
    Calls(String, String),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        "[a-zé🚀\"\\\\\n ]{1,30}x".prop_map(Act::Says),
        ("[a-z_]{1,8}", "[a-z é\"]{0,12}").prop_map(|(name, value)| {
            let value = quote(&value);
            Act::Calls(name, format!(r#"{{"a":{value}}}"#))
        }),
    ]
}

/// A reply on a wire.
fn reply(wire: Wire, acts: &[Act]) -> Reply {
    let block = |(at, act): (usize, &Act)| match act {
        Act::Says(text) => format!(r#"{{"type":"text","text":{}}}"#, quote(text)),
        Act::Calls(name, input) => {
            format!(r#"{{"type":"tool_use","id":"toolu_{at}","name":"{name}","input":{input}}}"#)
        }
    };
    let blocks: Vec<String> = acts.iter().enumerate().map(block).collect();
    let message = format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","));
    let mut messages = Vec::new();
    let mut converter = Converter::new(wire);
    let mut out = |bytes: &[u8]| messages.push(bytes.to_vec());
    converter
        .push(message.as_bytes(), &mut out)
        .expect("a message");
    converter.finish(&mut out);
    let calls = acts.iter().any(|act| matches!(act, Act::Calls(..)));
    Reply {
        messages: messages.iter().map(|bytes| item(wire, bytes)).collect(),
        stop: if calls {
            StopReason::Calls
        } else {
            StopReason::End
        },
        usage: Some(TokenUsage {
            input: 10,
            output: 5,
            ..TokenUsage::default()
        }),
        model: Some("theirs".to_owned()),
        id: None,
    }
}

/// An item as the service writes it: texts are parts there.
fn item(wire: Wire, bytes: &[u8]) -> Vec<u8> {
    let json = Json::parse(bytes).expect("JSON");
    match json.get("content").filter(|_| wire == Wire::Responses) {
        Some(content) => {
            let text = String::from_utf8_lossy(content.bytes());
            let part = format!(r#"{{"type":"output_text","text":{text},"annotations":[]}}"#);
            format!(r#"{{"type":"message","role":"assistant","content":[{part}]}}"#).into_bytes()
        }
        None => bytes.to_vec(),
    }
}

/// Returns the texts and calls of a reply in order; adjacent texts are joined.
fn acts(wire: Wire, reply: &Reply) -> Vec<Act> {
    let mut acts: Vec<Act> = Vec::new();
    let mut anthropic = Vec::new();
    let mut converter = Converter::new(Wire::Anthropic);
    let mut out = |bytes: &[u8]| anthropic.push(bytes.to_vec());
    for message in &reply.messages {
        converter.push(message, &mut out).expect("a message");
    }
    converter.finish(&mut out);
    let raw = |json: Json<'_>| String::from_utf8_lossy(json.bytes()).into_owned();
    for message in &anthropic {
        let json = Json::parse(message).expect("JSON");
        let content = json.get("content").expect("a content");
        acts.extend(content.text().map(|text| Act::Says(text.into_owned())));
        for block in content.elements() {
            let [text, name, input] = block.pick(["text", "name", "input"]);
            match (text.and_then(Json::text), name.and_then(Json::text)) {
                (Some(text), _) if text != "(empty)" => match acts.last_mut() {
                    Some(Act::Says(said)) => said.push_str(&text),
                    _ => acts.push(Act::Says(text.into_owned())),
                },
                (_, Some(name)) => {
                    acts.push(Act::Calls(
                        name.into_owned(),
                        input.map(raw).unwrap_or_default(),
                    ));
                }
                _ => {}
            }
        }
    }
    // If a message has one text, it comes before the calls.
    if matches!(wire, Wire::Chat | Wire::Ollama) {
        acts.sort_by_key(|act| matches!(act, Act::Calls(..)));
    }
    acts
}

/// Returns the same without the boundaries between texts that were joined.
fn words(acts: &[Act]) -> (String, Vec<Act>) {
    let mut said = String::new();
    let mut calls = Vec::new();
    for act in acts {
        match act {
            Act::Says(text) => said.push_str(text),
            call => calls.push(call.clone()),
        }
    }
    (said.replace('\n', ""), calls)
}

/// Relays a provider's bytes with random splits; returns the events, and how many came before the end.
fn relayed(
    from: Wire,
    to: Wire,
    sent: &[u8],
    form: Delivery,
    splits: &[usize],
) -> (Vec<u8>, usize) {
    let mut reader = ReplyReader::new(from, form);
    let mut relay = ReplyRelay::new(to, "ours", "0123");
    let mut out = Vec::new();
    let (mut rest, mut splits) = (sent, splits.iter().cycle());
    while !rest.is_empty() {
        let at = splits.next().copied().unwrap_or(7).clamp(1, rest.len());
        let (piece, after) = rest.split_at(at);
        reader
            .push(piece, &mut |delta| out.extend(relay.delta(&delta)))
            .expect("a reply");
        rest = after;
    }
    let early = out.len();
    let reply = reader.finish().expect("a whole reply");
    out.extend(relay.finish(&reply));
    (out, early)
}

fn read(wire: Wire, bytes: &[u8]) -> Reply {
    let mut reader = ReplyReader::new(wire, Delivery::Stream);
    reader.push(bytes, &mut |_| {}).expect("a reply");
    assert!(reader.is_complete(), "{wire}");
    reader.finish().expect("a whole reply")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_reply_is_the_same_on_every_wire(
        said in proptest::collection::vec(act(), 1..6),
        size in 1_usize..9,
        splits in proptest::collection::vec(1_usize..200, 1..6),
        streams in any::<bool>(),
    ) {
        for from in Wire::ALL {
            let given = reply(from, &said);
            let (sent, form) = if streams { (stream_reply(from, &given, size).concat(), Delivery::Stream) } else { (write_reply(from, &given), Delivery::Whole) };
            for to in Wire::ALL {
                let (told, early) = relayed(from, to, &sent, form, &splits);
                let heard = read(to, &told);
                prop_assert_eq!(words(&acts(to, &heard)), words(&acts(from, &given)), "{} to {}", from, to);
                prop_assert_eq!(&heard.stop, &given.stop);
                prop_assert_eq!(heard.usage, given.usage);
                prop_assert_eq!(heard.model.as_deref(), Some("ours"));
                // The first text arrives before the end.
                if matches!(acts(from, &given)[0], Act::Says(_)) {
                    prop_assert!(early > 0, "{} to {}", from, to);
                }
                for message in &heard.messages {
                    let message = Message::parse(message).expect("a message");
                    prop_assert!(message.wires().has(to), "{} to {}", from, to);
                }
                // Unstreamed it is the same message.
                let again = write_reply(to, &heard);
                let mut reader = ReplyReader::new(to, Delivery::Whole);
                reader.push(&again, &mut |_| {}).expect("a reply");
                prop_assert_eq!(reader.finish().expect("whole").messages, heard.messages);
            }
        }
    }
}

/// If the wire has an order of texts and calls, it is kept.
#[test]
fn what_is_said_behind_a_call_stays_behind_it() {
    let said = [
        Act::Says("first".to_owned()),
        Act::Calls("ls".to_owned(), r#"{"a":1}"#.to_owned()),
        Act::Says("then".to_owned()),
    ];
    let sent = stream_reply(Wire::Anthropic, &reply(Wire::Anthropic, &said), 3).concat();
    for to in [Wire::Anthropic, Wire::Responses, Wire::Gemini] {
        let (told, _) = relayed(Wire::Anthropic, to, &sent, Delivery::Stream, &[5]);
        assert_eq!(acts(to, &read(to, &told)), said, "{to}");
    }
    let (told, _) = relayed(Wire::Anthropic, Wire::Chat, &sent, Delivery::Stream, &[5]);
    let heard = read(Wire::Chat, &told);
    insta::assert_snapshot!(String::from_utf8_lossy(&heard.messages[0]), @r#"{"role":"assistant","content":"first\nthen","tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"ls","arguments":"{\"a\":1}"}}]}"#);
}

#[test]
fn calls_without_an_id_get_one_that_no_other_reply_has() {
    let message = br#"{"role":"assistant","content":"","tool_calls":[{"function":{"name":"ls","arguments":{}}}]}"#;
    let reply = Reply {
        messages: vec![message.to_vec()],
        ..Reply::default()
    };
    let ids: Vec<String> = ["a1", "b2"]
        .map(|id| {
            let told = ReplyRelay::new(Wire::Anthropic, "m", id).finish(&reply);
            String::from_utf8_lossy(&read(Wire::Anthropic, &told).messages[0]).into_owned()
        })
        .to_vec();
    insta::assert_snapshot!(ids.join("\n"), @r#"
    {"role":"assistant","content":[{"type":"tool_use","id":"call_a1_0","name":"ls","input":{}}]}
    {"role":"assistant","content":[{"type":"tool_use","id":"call_b2_0","name":"ls","input":{}}]}
    "#);
}

#[test]
fn reasoning_is_shown_where_nobody_signs_it() {
    let mut out = Vec::new();
    for to in Wire::ALL {
        let mut relay = ReplyRelay::new(to, "m", "1");
        let shown = relay.delta(&ReplyDelta::Reasoning("hm".to_owned()));
        assert!(!shown.is_empty(), "{to}: a sign of life");
        let shows = String::from_utf8_lossy(&shown).contains("hm");
        out.push(format!(
            "{to}: {}, lost {:?}",
            if shows { "shown" } else { "not shown" },
            relay.lost()
        ));
    }
    insta::assert_snapshot!(out.join("\n"), @r#"
    chat: shown, lost {}
    responses: not shown, lost {"reasoning"}
    anthropic: not shown, lost {"reasoning"}
    gemini: shown, lost {}
    ollama: shown, lost {}
    "#);
}

#[test]
fn usage_on_chat_comes_beside_the_end_unless_it_was_asked_for() {
    let reply = Reply {
        usage: Some(TokenUsage::default()),
        ..Reply::default()
    };
    for apart in [false, true] {
        let mut relay = ReplyRelay::new(Wire::Chat, "m", "1").with_usage_apart(apart);
        let told = relay.finish(&reply);
        let told = String::from_utf8_lossy(&told);
        assert_eq!(told.contains(r#""choices":[],"usage""#), apart);
        assert!(told.contains("prompt_tokens"));
    }
}
