//! Tests of envelopes.

use proptest::prelude::*;

use super::*;
use crate::Json;

fn of(wire: Wire, body: &str) -> Result<Envelope, EnvelopeError> {
    Envelope::of(wire, body.as_bytes())
}

fn cut<'a>(body: &'a str, range: &Range<u64>) -> &'a str {
    let at = |at: u64| usize::try_from(at).expect("bodies of tests are small");
    &body[at(range.start)..at(range.end)]
}

#[test]
fn messages_and_members_are_found_on_every_wire() {
    for (wire, name) in [
        (Wire::Chat, "messages"),
        (Wire::Anthropic, "messages"),
        (Wire::Ollama, "messages"),
        (Wire::Responses, "input"),
        (Wire::Gemini, "contents"),
    ] {
        let body = format!(
            r#" {{ "a" : {{"messages":[1]}} , "{name}" : [ {{"x":"]}}"}} , {{"y":[[]]}}, 7] ,"b":-1.5e3, "input2":"\"","messages3":null }} "#
        );
        let envelope = of(wire, &body).unwrap();
        let messages: Vec<&str> = envelope.messages.iter().map(|at| cut(&body, at)).collect();
        assert_eq!(messages, [r#"{"x":"]}"}"#, r#"{"y":[[]]}"#, "7"]);
        assert!(cut(&body, &envelope.list).starts_with("[ {\"x\""));
        assert!(cut(&body, &envelope.list).ends_with(", 7]"));
        let members = envelope.members.iter();
        let members: Vec<_> = members.map(|(n, at)| (&**n, cut(&body, at))).collect();
        assert_eq!(
            members,
            [
                ("a", r#"{"messages":[1]}"#),
                ("b", "-1.5e3"),
                ("input2", r#""\"""#),
                ("messages3", "null"),
            ]
        );
    }
}

#[test]
fn names_count_as_what_they_mean_and_the_last_of_them_counts() {
    let body = r#"{"messages":[1,2],"n":1,"m":2,"mess\u0061ges":[{"role":"user"}],"\u006e":3}"#;
    let envelope = of(Wire::Chat, body).unwrap();
    assert_eq!(envelope.messages.len(), 1);
    assert_eq!(cut(body, &envelope.messages[0]), r#"{"role":"user"}"#);
    let names: Vec<&str> = envelope.members.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["m", "n"]);
    assert_eq!(cut(body, &envelope.member("n").unwrap()), "3");
    assert_eq!(envelope.member("messages"), None);
    // The last one is no list.
    let error = of(Wire::Chat, r#"{"messages":[],"messages":"x"}"#).unwrap_err();
    assert_eq!(error.to_string(), "\"messages\" is not a list");
}

#[test]
fn system_messages_lead_until_somebody_else_speaks() {
    let leading = |wire, messages: &str| {
        let body = format!(r#"{{"{}":[{messages}]}}"#, list_name(wire));
        of(wire, &body).unwrap().leading
    };
    let system = r#"{"role":"system","content":"x"}"#;
    let developer =
        r#"{"type":"message","content":[{"role":"user"}],"r\u006fle":"devel\u006fper"}"#;
    let user = r#"{"role":"user","content":"role","x":{"role":"system"}}"#;
    let all = format!("{system},{developer},{user},{system}");
    assert_eq!(leading(Wire::Chat, &all), 2);
    assert_eq!(leading(Wire::Responses, &all), 2);
    assert_eq!(leading(Wire::Anthropic, &all), 2);
    assert_eq!(leading(Wire::Gemini, &all), 0);
    assert_eq!(leading(Wire::Chat, &format!("{user},{system}")), 0);
    assert_eq!(leading(Wire::Chat, &format!("{system},{system}")), 2);
    assert_eq!(leading(Wire::Chat, r#"{"role":"system","role":7}"#), 0);
    assert_eq!(leading(Wire::Chat, r#"["role","system"]"#), 0);
    assert_eq!(leading(Wire::Chat, ""), 0);
}

#[test]
fn a_plain_text_is_input_to_responses_alone() {
    let envelope = of(Wire::Responses, r#"{"input":"hi","model":"m"}"#).unwrap();
    assert!(envelope.is_text && envelope.messages.is_empty());
    assert_eq!(envelope.list, 9..13);
    let error = of(Wire::Chat, r#"{"messages":"hi"}"#).unwrap_err();
    assert_eq!(error, EnvelopeError::NotAList { name: "messages" });
}

#[test]
fn what_is_no_request_is_told_apart() {
    let why = |body: &str| of(Wire::Chat, body).unwrap_err().to_string();
    assert_eq!(why("[]"), "the request is not a JSON object");
    assert_eq!(why("{}"), "the request has no \"messages\"");
    assert_eq!(why(""), "the request is not JSON: unexpected end at byte 0");
    assert_eq!(
        why(r#"{"messages":[{]}"#),
        "the request is not JSON: expected a member name at byte 14"
    );
    assert_eq!(
        why(r#"{"messages":[]} x"#),
        "the request is not JSON: unexpected bytes after the end at byte 16"
    );
    assert_eq!(
        why(r#"{"messages":[],"\x":1}"#),
        "the request is not JSON: invalid member name at byte 15"
    );
    let deep = format!(r#"{{"messages":{}"#, "[".repeat(600));
    assert_eq!(
        why(&deep),
        "the request is nested deeper than 512 levels at byte 523"
    );
    let most = format!(r#"{{"messages":[{}{}]}}"#, "[".repeat(510), "]".repeat(510));
    assert_eq!(of(Wire::Chat, &most).unwrap().messages.len(), 1);
}

#[test]
fn an_error_stays() {
    let mut parser = EnvelopeParser::new(Wire::Chat);
    parser.push(br#"{"messages":[]}"#).unwrap();
    let error = parser.push(b"}").unwrap_err();
    assert_eq!(parser.push(b" ").unwrap_err(), error);
    assert_eq!(parser.finish().unwrap_err(), error);
}

fn any_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-1.5E+2".to_owned()),
        r#"[a-z{}\[\],:é ]{0,6}(\\\\){0,3}(\\")?"#.prop_map(|text| format!("\"{text}\"")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = r#"[a-c]|role|messages|mess\\u0061ges"#;
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|all| format!("[{}]", all.join(" ,"))),
            prop::collection::vec((name, inner), 0..4).prop_map(|all| {
                let all: Vec<_> = all.iter().map(|(k, v)| format!("\"{k}\" :{v}")).collect();
                format!("{{{}}}", all.join(", "))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The result does not depend on the splits of a body, and equals that of the general parser.
    #[test]
    fn splitting_changes_nothing(
        messages in prop::collection::vec(any_value(), 0..4),
        other in any_value(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let body = format!(r#"{{"x":{other}, "messages":[{}], "y":1}}"#, messages.join(", "));
        let whole = of(Wire::Chat, &body).unwrap();
        let mut parser = EnvelopeParser::new(Wire::Chat);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len())).collect();
        cuts.sort_unstable();
        let mut from = 0;
        for to in cuts.into_iter().chain([body.len()]) {
            parser.push(&body.as_bytes()[from..to]).unwrap();
            from = to;
        }
        prop_assert_eq!(&parser.finish().unwrap(), &whole);
        let mut slow = EnvelopeParser::new(Wire::Chat);
        body.as_bytes().iter().for_each(|byte| slow.push(&[*byte]).unwrap());
        prop_assert_eq!(&slow.finish().unwrap(), &whole);
        let found: Vec<&str> = whole.messages.iter().map(|at| cut(&body, at)).collect();
        prop_assert_eq!(found, messages);
        let json = Json::parse(body.as_bytes()).unwrap();
        let list = json.get("messages").unwrap().range();
        prop_assert_eq!(whole.list, list.start as u64..list.end as u64);
    }

    /// A body that is parsed from behind any message has the same result as one parsed from its start, with any members
    /// before and behind the list.
    #[test]
    fn parsing_goes_on_behind_any_message(
        wire in prop::sample::select(&Wire::ALL[..]),
        messages in prop::collection::vec(any_value(), 1..5),
        leading in 0_usize..3,
        members in prop::collection::vec(("[ab]|model|role", any_value()), 0..4),
        at in any::<prop::sample::Index>(),
        other_end in any_value(),
    ) {
        let name = super::list_name(wire);
        let system = vec![r#"{"role":"system","x":1}"#.to_owned(); leading];
        let wrapped = messages.iter().map(|value| format!(r#"{{"role":"user","x":{value}}}"#));
        let messages: Vec<String> = system.into_iter().chain(wrapped).collect();
        let mut all: Vec<_> = members.iter().map(|(name, value)| format!(r#""{name}":{value}"#)).collect();
        let list = format!(r#""{name}": [{}]"#, messages.join(" , "));
        all.insert(at.index(all.len() + 1), list);
        let body = format!("{{{}}}", all.join(","));
        let mut parser = EnvelopeParser::new(wire);
        parser.push(body.as_bytes()).unwrap();
        prop_assert!(parser.after_message(messages.len() + 1).is_none());
        prop_assert!(parser.after_message(0).is_none());
        for count in 1..=messages.len() {
            let mut rest = parser.after_message(count).unwrap();
            let before = &body[..rest.offset() as usize];
            rest.push(&body.as_bytes()[before.len()..]).unwrap();
            prop_assert_eq!(rest.finish().unwrap(), of(wire, &body).unwrap());
            let mut rest = parser.after_message(count).unwrap();
            let end = format!(r#", {{"role":"system"}}], "a":{other_end}}}"#);
            rest.push(end.as_bytes()).unwrap();
            prop_assert_eq!(rest.finish().unwrap(), of(wire, &format!("{before}{end}")).unwrap());
        }
    }

    /// Broken JSON is refused here or when its part is parsed; valid JSON is not refused.
    #[test]
    fn nothing_broken_gets_through(at in any::<prop::sample::Index>(), byte in 0_u8..128) {
        let good = r#"{"a":[1,{"b\\\"":"x"}],"messages":[{"role":"user","content":"q\n"},{"x":[]}],"d":{}} "#;
        let mut body = good.as_bytes().to_vec();
        let at = at.index(body.len());
        body[at] = byte;
        let whole = Json::parse(&body).is_ok();
        match Envelope::of(Wire::Chat, &body) {
            Ok(envelope) => {
                let ranges = envelope.messages.iter().chain(envelope.members.iter().map(|(_, at)| at));
                let parts = ranges.map(|at| Json::parse(&body[at.start as usize..at.end as usize]));
                prop_assert_eq!(parts.into_iter().all(|part| part.is_ok()), whole);
            }
            Err(EnvelopeError::NoList { .. } | EnvelopeError::NotAList { .. }) => {}
            Err(_) => prop_assert!(!whole),
        }
    }
}
