//! Transcripts of every format: recognised, read, written, and read again.

use std::io::{BufReader, Cursor};

use infold_log::Role;
use infold_wire::Message;
use infold_wire::transcript::{
    Transcript, TranscriptEntry, TranscriptError, TranscriptFormat, TranscriptLayout,
    TranscriptWriter, detect,
};
use proptest::prelude::*;

type Opened<'a> = Transcript<BufReader<Cursor<&'a [u8]>>>;

fn open(bytes: &[u8], buffer: usize) -> Result<Opened<'_>, TranscriptError> {
    // A tiny buffer splits the input nearly everywhere.
    Transcript::open(BufReader::with_capacity(buffer, Cursor::new(bytes)), None)
}

fn fixtures() -> Vec<(&'static str, TranscriptFormat, &'static [u8])> {
    macro_rules! fixture {
        ($name:literal, $format:expr) => {
            (
                $name,
                $format,
                &include_bytes!(concat!("transcripts/", $name))[..],
            )
        };
    }
    vec![
        fixture!("openai.jsonl", TranscriptFormat::OpenAi),
        fixture!("openai-several.jsonl", TranscriptFormat::OpenAi),
        fixture!("anthropic.json", TranscriptFormat::Anthropic),
        fixture!("gemini.json", TranscriptFormat::Gemini),
        fixture!("roo.json", TranscriptFormat::Roo),
        fixture!("claude-code.jsonl", TranscriptFormat::ClaudeCode),
        fixture!("codex.jsonl", TranscriptFormat::Codex),
        fixture!("gemini-cli.json", TranscriptFormat::GeminiCli),
        fixture!("gemini-cli.jsonl", TranscriptFormat::GeminiCli),
        fixture!("pi.jsonl", TranscriptFormat::Pi),
        fixture!("pi-tree.jsonl", TranscriptFormat::Pi),
        fixture!("swe-agent.traj", TranscriptFormat::SweAgent),
        fixture!("aider.md", TranscriptFormat::Aider),
    ]
}

/// Returns the entries of a transcript, one on each line.
fn told(bytes: &[u8]) -> Result<String, TranscriptError> {
    let mut transcript = open(bytes, 7)?;
    let mut out = String::new();
    for entry in transcript.by_ref() {
        let line = match entry? {
            TranscriptEntry::Message { text, .. } => {
                Message::parse(&text).expect("a message");
                String::from_utf8(text).expect("UTF-8")
            }
            TranscriptEntry::Compaction { summary, kept } => {
                format!("-- kept from {kept} on: {summary}")
            }
            TranscriptEntry::Fold {
                cause,
                covers,
                role,
                text,
            } => {
                format!("-- {cause:?} over {covers} by {role}: {text}")
            }
            TranscriptEntry::Next => "-- next".to_owned(),
        };
        out += &line.replace(['\r', '\n'], "");
        out.push('\n');
    }
    for (what, times) in &transcript.skipped().skipped {
        out += &format!("({times} {what})\n");
    }
    Ok(out)
}

#[test]
fn each_format_is_known_by_what_it_holds() {
    for (name, format, bytes) in fixtures() {
        assert_eq!(detect(bytes), Ok(format), "{name}");
        assert_eq!(format.name().parse(), Ok(format));
        // A prefix is not detected as another format.
        for end in (bytes.len() / 3..bytes.len()).step_by(13) {
            let seen = detect(&bytes[..end]);
            assert!(
                seen == Ok(format) || format == TranscriptFormat::Anthropic,
                "{name} to {end}: {seen:?}"
            );
        }
    }
}

#[test]
fn all_pieces_together_are_the_input() {
    for (name, _, bytes) in fixtures() {
        for buffer in [3, 7, 64, 1 << 16] {
            let mut transcript = open(bytes, buffer).expect("a transcript");
            let mut all = Vec::new();
            while let Some(piece) = transcript.next_chunk().expect("a piece") {
                all.extend(piece.raw);
            }
            assert_eq!(
                String::from_utf8_lossy(&all),
                String::from_utf8_lossy(bytes),
                "{name}"
            );
        }
    }
}

#[test]
fn what_each_format_says() {
    for (name, _, bytes) in fixtures() {
        insta::assert_snapshot!(name, told(bytes).expect("a transcript"));
    }
}

#[test]
fn what_stands_before_a_compaction_is_read_whatever_it_names() {
    let whole = include_str!("transcripts/claude-code.jsonl");
    let unknown = whole.replace(
        r#""logicalParentUuid":"a-4""#,
        r#""logicalParentUuid":"gone""#,
    );
    assert_ne!(whole, unknown);
    let read = |text: &str| told(text.as_bytes()).expect("a transcript");
    assert_eq!(read(&unknown), read(whole));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let why = |text: &[u8]| match told(text) {
        Ok(told) => format!("read: {told}"),
        Err(error) => error.to_string(),
    };
    let pi = fixtures()[9].2;
    let pi = &[&pi[..pi.len() - 40], b"\n"].concat()[..];
    let codex: &[u8] = b"{\"timestamp\":\"t\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"ghost\",\"content\":[]}}";
    let cases: [(&str, &[u8]); 16] = [
        ("empty", b""),
        ("blank", b" \n\n"),
        ("garbage", b"lorem ipsum\n"),
        ("other JSON", b"{\"a\":1}\n{\"a\":2}\n"),
        ("a number", b"[1,2]"),
        ("no messages", b"[]"),
        ("one message", b"{\"role\":\"user\",\"content\":\"hi\"}"),
        (
            "only results",
            b"{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"x\"}\n",
        ),
        (
            "unknown role",
            b"{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"ghost\",\"content\":\"boo\"}\n",
        ),
        ("unknown role in Codex", codex),
        ("torn line", pi),
        ("open array", b"[{\"role\":\"user\",\"content\":\"hi\"},\n"),
        (
            "bad UTF-8",
            b"{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"user\",\"content\":\"\xff\"}\n",
        ),
        ("mixed logs", b"{\"type\":\"session\",\"id\":\"a\",\"cwd\":\".\"}\n{\"parentUuid\":null,\"uuid\":\"u\",\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n"),
        ("mixed dialects", b"{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"x\"}\n{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"b\",\"content\":\"y\"}]}\n"),
        (
            "mixed",
            b"{\"role\":\"user\",\"content\":\"hi\"}\n{\"type\":\"session_meta\",\"payload\":{}}\n",
        ),
    ];
    let told: Vec<String> = cases
        .iter()
        .map(|(name, text)| format!("{name}: {}", why(text)))
        .collect();
    insta::assert_snapshot!("bad input", told.join("\n"));
}

/// Returns the content of a message independent of its dialect: roles, blocks, ids.
fn gist(text: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    // Written as Anthropic's, all dialects look the same.
    let mut write =
        TranscriptWriter::new(TranscriptFormat::Anthropic, Some(TranscriptLayout::Lines))
            .expect("it is written");
    let mut bytes = Vec::new();
    write.message(text, None, &mut bytes).expect("a message");
    let message = Message::parse(&bytes).expect("a message");
    let role = message.role();
    if let Some(text) = message.content().and_then(|content| content.text()) {
        return if text.is_empty() {
            Vec::new()
        } else {
            vec![format!("{role} text {text}")]
        };
    }
    for block in message.blocks() {
        let mut block = format!("{block:?}");
        // A text is the same whether it is in a list or not.
        if let Some(text) = block.strip_prefix(r#"{"type":"text","text":"#) {
            let text: String = serde_json::from_str(text.trim_end_matches('}')).expect("a text");
            block = format!("text {text}");
        }
        out.push(format!("{role} {block}"));
    }
    out
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{1,12}",
        Just("é\n\"quoted\" \\ 🚀".to_owned()),
        Just("\u{2028}".to_owned())
    ]
}

/// A round: a request, perhaps an image; an answer, perhaps thoughts; calls and their results.
#[derive(Clone, Debug)]
struct Round {
    asks: Option<String>,
    image: bool,
    thinks: Option<String>,
    says: Option<String>,
    calls: Vec<(String, bool)>,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let calls = prop::collection::vec((texts(), any::<bool>()), 0..3);
    let round = (
        prop::option::of(texts()),
        any::<bool>(),
        prop::option::of(texts()),
        prop::option::of(texts()),
        calls,
    );
    let round = round.prop_map(|(asks, image, thinks, says, calls)| Round {
        asks,
        image,
        thinks,
        says,
        calls,
    });
    prop::collection::vec(round, 1..5)
}

/// The messages of some rounds, as Anthropic has them.
fn written(rounds: &[Round]) -> Vec<String> {
    let quote = |text: &str| infold_wire::quote(text);
    let mut out = Vec::new();
    for (number, round) in rounds.iter().enumerate() {
        let mut user = Vec::new();
        if let Some(text) = &round.asks {
            user.push(format!(r#"{{"type":"text","text":{}}}"#, quote(text)));
        }
        if round.image {
            user.push(r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}"#.to_owned());
        }
        if !user.is_empty() {
            out.push(format!(
                r#"{{"role":"user","content":[{}]}}"#,
                user.join(",")
            ));
        }
        let mut model = Vec::new();
        if let Some(text) = &round.thinks {
            model.push(format!(
                r#"{{"type":"thinking","thinking":{}}}"#,
                quote(text)
            ));
        }
        let says = round.says.clone().unwrap_or_else(|| "so".to_owned());
        model.push(format!(r#"{{"type":"text","text":{}}}"#, quote(&says)));
        for (call, (text, _)) in round.calls.iter().enumerate() {
            model.push(format!(
                r#"{{"type":"tool_use","id":"c{number}-{call}","name":"tool{call}","input":{{"a":{},"n":[1.0,{{}}]}}}}"#,
                quote(text)
            ));
        }
        out.push(format!(
            r#"{{"role":"assistant","content":[{}]}}"#,
            model.join(",")
        ));
        let results = round.calls.iter().enumerate().map(|(call, (text, failed))| {
            let error = if *failed { r#","is_error":true"# } else { "" };
            format!(
                r#"{{"type":"tool_result","tool_use_id":"c{number}-{call}","content":[{{"type":"text","text":{}}}]{error}}}"#,
                quote(text)
            )
        });
        let results: Vec<String> = results.collect();
        if !results.is_empty() {
            out.push(format!(
                r#"{{"role":"user","content":[{}]}}"#,
                results.join(",")
            ));
        }
    }
    out
}

/// Writes messages in a format and returns the messages read from it.
fn there(
    messages: &[String],
    format: TranscriptFormat,
    layout: Option<TranscriptLayout>,
) -> Vec<String> {
    let mut write = TranscriptWriter::new(format, layout).expect("it is written");
    let mut bytes = Vec::new();
    for message in messages {
        write
            .message(message.as_bytes(), Some(1_767_225_600_000), &mut bytes)
            .expect("a message");
    }
    write.finish(&mut bytes);
    let input = BufReader::with_capacity(64, Cursor::new(&bytes[..]));
    let read = Transcript::open(input, Some(format)).expect("a transcript");
    let texts = read.filter_map(|entry| match entry.expect("an entry") {
        TranscriptEntry::Message { text, .. } => Some(String::from_utf8(text).expect("UTF-8")),
        _ => None,
    });
    texts.collect()
}

fn all(messages: &[String]) -> Vec<String> {
    messages
        .iter()
        .flat_map(|message| gist(message.as_bytes()))
        .collect()
}

/// Replaces the lines that a format cannot represent by those that it writes instead.
fn without(lines: Vec<String>, format: TranscriptFormat) -> Vec<String> {
    let lines = lines.into_iter().filter_map(|line| match format {
        // Reasoning becomes an item of theirs.
        TranscriptFormat::Codex if line.contains(r#"{"type":"thinking""#) => None,
        TranscriptFormat::Codex if line.contains(r#"{"type":"reasoning""#) => None,
        TranscriptFormat::OpenAi => Some(line.replace(r#","is_error":true"#, "")),
        _ => Some(line),
    });
    lines.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Roles, texts, calls, ids, results and images go there and back, in order.
    #[test]
    fn every_format_says_the_same(rounds in rounds()) {
        let messages = written(&rounds);
        for format in TranscriptFormat::ALL.into_iter().filter(|format| format.is_writable()) {
            let back = there(&messages, format, None);
            prop_assert_eq!(without(all(&back), format), without(all(&messages), format), "{}", format);
        }
        for layout in [TranscriptLayout::Lines, TranscriptLayout::Array, TranscriptLayout::Objects("messages")] {
            for format in [TranscriptFormat::OpenAi, TranscriptFormat::Anthropic] {
                let back = there(&messages, format, Some(layout));
                prop_assert_eq!(without(all(&back), format), without(all(&messages), format), "{} {}", format, layout);
            }
        }
    }

    /// From Anthropic's to OpenAI's and back, and once more, nothing changes any more.
    #[test]
    fn chat_and_anthropic_go_there_and_back(rounds in rounds()) {
        let messages = written(&rounds);
        let chat = there(&messages, TranscriptFormat::OpenAi, None);
        for message in &chat {
            let message = Message::parse(message.as_bytes()).expect("a message");
            prop_assert!(message.role() != Role::User || message.answers().is_empty());
        }
        let back = there(&chat, TranscriptFormat::Anthropic, None);
        prop_assert_eq!(there(&back, TranscriptFormat::OpenAi, None), chat);
    }

    /// Any bytes are read or refused, and the messages read are those of the input.
    #[test]
    fn nothing_breaks_a_reader(at in any::<prop::sample::Index>(), which in 0_usize..13, byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = fixtures()[which].2.to_vec();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        if let Ok(mut transcript) = open(&bytes, 16) {
            let mut all = Vec::new();
            while let Ok(Some(piece)) = transcript.next_chunk() {
                all.extend(piece.raw);
            }
            prop_assert!(bytes.starts_with(&all));
        }
    }
}

#[test]
fn a_system_prompt_goes_where_it_belongs() {
    let messages = [
        r#"{"role":"system","content":"be brief"}"#.to_owned(),
        r#"{"role":"user","content":"hi"}"#.to_owned(),
    ];
    for format in [
        TranscriptFormat::OpenAi,
        TranscriptFormat::Anthropic,
        TranscriptFormat::Gemini,
        TranscriptFormat::Codex,
    ] {
        assert_eq!(
            all(&there(&messages, format, None)),
            all(&messages),
            "{format}"
        );
    }
    let mut write = TranscriptWriter::new(TranscriptFormat::Pi, None).expect("it is written");
    let mut out = Vec::new();
    for message in &messages {
        write
            .message(message.as_bytes(), None, &mut out)
            .expect("a message");
    }
    assert_eq!(write.lost().get("system messages"), Some(&1));
}

#[test]
fn arguments_that_are_no_object_survive() {
    let broken = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"cut"}}]}"#;
    let anthropic = there(&[broken.to_owned()], TranscriptFormat::Anthropic, None);
    assert!(
        anthropic[0].contains(r#""input":{"_arguments":"{\"cut"}"#),
        "{anthropic:?}"
    );
    let back = there(&anthropic, TranscriptFormat::OpenAi, None);
    assert!(back[0].contains(r#""arguments":"{\"cut""#), "{back:?}");
}

#[test]
fn messages_of_every_wire_can_be_written() {
    let call = r#"{"role":"model","parts":[{"functionCall":{"name":"ls","args":{}},"thoughtSignature":"AA"}]}"#;
    let result =
        r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"a"}}}]}"#;
    let item = r#"{"type":"function_call_output","call_id":"c","output":"b"}"#;
    let written = |format, message: &[&str]| {
        let mut out = Vec::new();
        let mut write = TranscriptWriter::new(format, Some(TranscriptLayout::Lines)).unwrap();
        for message in message {
            write.message(message.as_bytes(), None, &mut out).unwrap();
        }
        write.finish(&mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        written(TranscriptFormat::Gemini, &[call, result]),
        format!("{call}\n{result}\n")
    );
    let anthropic = written(TranscriptFormat::Anthropic, &[call, result, item]);
    assert!(anthropic.contains(r#"{"type":"tool_use","id":"call_1","name":"ls","input":{}}"#));
    assert!(anthropic.contains(
        r#"{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"a"}]}"#
    ));
    assert!(anthropic.contains(
        r#"{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"b"}]}"#
    ));
    let chat = written(TranscriptFormat::OpenAi, &[result, item]);
    assert!(chat.contains(r#"{"role":"tool","tool_call_id":"c","content":"b"}"#));
    assert!(written(TranscriptFormat::Codex, &[item]).contains(&format!("\"payload\":{item}")));
}

#[test]
fn messages_that_say_nothing_are_written_like_any_other() {
    let messages = [
        r#"{"role":"system"}"#,
        r#"{"role":"user"}"#,
        r#"{"role":"assistant","contenu":"nothing that is known"}"#,
        r#"{"role":"user","content":7}"#,
        r#"{"role":"user","content":"something"}"#,
    ];
    for format in TranscriptFormat::ALL {
        let Ok(mut write) = TranscriptWriter::new(format, None) else {
            continue;
        };
        let mut out = Vec::new();
        for message in messages {
            let written = write.message(message.as_bytes(), None, &mut out);
            written.unwrap_or_else(|error| panic!("{}: {message}: {error}", format.name()));
        }
        write.finish(&mut out);
        let out = String::from_utf8(out).expect("a text");
        assert!(out.contains("something"), "{}: {out}", format.name());
    }
}
