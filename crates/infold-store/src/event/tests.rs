//! Tests of reading and writing events.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use infold_checkpoint::SnapshotRef;

use super::*;
use crate::redacted_lines::RedactedLine;
use crate::redacted_values::RedactedValue;

fn values() -> Vec<RedactedValue> {
    let json = br#"{"bytes":7,"sum":4294967295,"digest":"0af3","prompt":true}"#;
    let json = Json::parse(json).expect("JSON");
    vec![RedactedValue::decode(json).expect("a value")]
}

fn forms() -> Vec<RedactedForms> {
    let seq = Seq::new(3).expect("a number");
    let line = RedactedLine::of("twelve bytes or more").expect("a line");
    let contents = vec![[5; 16], [6; 16]];
    vec![
        RedactedForms {
            seq,
            contents,
            lines: vec![line],
        },
        RedactedForms {
            seq: seq.next(),
            contents: Vec::new(),
            lines: Vec::new(),
        },
    ]
}

#[test]
fn every_event_reads_back_as_it_was_written() {
    let id = |n| EventId::new(n).unwrap();
    let seq = |n| Seq::new(n).unwrap();
    let point = Point { seq: 4, event: 2 };
    let snapshot = |number| SnapshotRef {
        task: "9d3f9cbe-4f8a-4a0e-8f11-2d5f5f3f1c11".parse().unwrap(),
        number,
    };
    let whats = [
        What::Fold(FoldLine {
            cause: Cause::Summary,
            span: Span::new(seq(2), seq(9)).unwrap(),
            messages: 8,
            original_tokens: 900,
            tokens: 12,
            trigger: "manual".into(),
            stand_in: vec![
                (Role::User, "what\n\"was\" 🚀".into()),
                (Role::Assistant, "ok".into()),
            ],
        }),
        What::Mask(MaskLine {
            seq: seq(3),
            part: 1,
            bytes: 20..90,
            original_tokens: 40,
            tokens: 6,
            stub: r#"{"type":"text","text":"[gone]"}"#.into(),
        }),
        What::Unfold(id(3)),
        What::Rewind(point),
        What::Undo(id(1)),
        What::Redo(id(2)),
        What::Pin(seq(7)),
        What::Note {
            text: "mind\u{2028}this".into(),
            tokens: 9,
        },
        What::Unpin(Pinned::Message(seq(7))),
        What::Unpin(Pinned::Note(id(9))),
        What::Fork {
            task: "ab".into(),
            at: point,
        },
        What::Status {
            status: Status::Failed,
            error: Some("no".into()),
            is_idle: false,
        },
        What::Status {
            status: Status::Completed,
            error: None,
            is_idle: true,
        },
        What::Tool(r#"{"tool":"ls","args":{"a":1e999}}"#.into()),
        What::Usage(Usage {
            provider: "openai".into(),
            model: "gpt-5".into(),
            tokens: 900,
            cached: 800,
            output: 20,
            frame: 70,
            cost: 1_000_203,
            purpose: Purpose::Summary,
        }),
        What::Failure(Failure {
            provider: "openai".into(),
            model: "gpt-5".into(),
            error: "the reply was cut off".into(),
            requests: 3,
        }),
        What::Manage(r#"{"outcome":"condensed"}"#.into()),
        What::Append(AppendLine {
            key: "of \"today\"".into(),
            digest: "0af3".into(),
            span: Span::new(seq(3), seq(5)).unwrap(),
            previous: Some(id(2)),
        }),
        What::Redact(RedactLine {
            extent: Extent::Whole,
            messages: vec![(seq(3), Some([9; 16])), (seq(4), None)],
            texts: 2,
            names: Vec::new(),
            values: Vec::new(),
            forms: forms(),
            contents: Vec::new(),
        }),
        What::Redact(RedactLine {
            extent: Extent::Matches,
            messages: Vec::new(),
            texts: 0,
            names: vec!["given [redacted #0]".to_owned()],
            values: values(),
            forms: Vec::new(),
            contents: vec![[7; 16], [8; 16]],
        }),
        What::Recall(RecallLine {
            at: seq(9),
            source: Some(seq(3)),
            reference: "src/\"a\".rs".into(),
            text: "[…]\nfn main".into(),
            tokens: 7,
        }),
        What::Recall(RecallLine {
            at: seq(9),
            source: None,
            reference: "layers".into(),
            text: "<context>".into(),
            tokens: 7,
        }),
        What::State(StateLine {
            author: StateAuthor::Model,
            previous: Some(id(2)),
            base: None,
            changes: r#"[{"op":"set","field":"task.goal","items":[{"text":"\"x\""}]}]"#.into(),
        }),
        What::State(StateLine {
            author: StateAuthor::Proxy,
            previous: Some(id(3)),
            base: None,
            changes: "[]".into(),
        }),
        What::State(StateLine {
            author: StateAuthor::Person,
            previous: None,
            base: Some("[]".into()),
            changes: "[]".into(),
        }),
        What::ToolsShown(ToolsShownLine {
            phase: "planning".into(),
            environment: "production".into(),
            shown: vec!["read".into(), "\"odd\"".into()],
            narrowed: vec!["read".into()],
            hidden: vec![("Bash".into(), "no \"command\"".into())],
            choice: Some("Bash".into()),
        }),
        What::ToolsShown(ToolsShownLine::default()),
        What::CallStarted(CallStartedLine {
            message: Seq::new(3).unwrap(),
            index: 1,
            tool: "run".to_owned(),
        }),
        What::Checkpoint(CheckpointLine {
            number: 3,
            workspace: "/home/a \"b\"/c".into(),
            files: FileCounts {
                added: 1,
                changed: 2,
                removed: 0,
            },
            left_out: 4,
            note: CheckpointNote::Step,
        }),
        What::Checkpoint(CheckpointLine {
            number: 1,
            workspace: OsStr::from_bytes(b"/w/\xff").into(),
            files: FileCounts::default(),
            left_out: 0,
            note: CheckpointNote::Other("later".into()),
        }),
        What::Restore(RestoreLine {
            step: id(4),
            workspace: "/w".into(),
            from: snapshot(3),
            to: snapshot(1),
            id: "a-b".into(),
        }),
        What::Refusal(RefusalLine {
            tool: "Bash".into(),
            call: Some("c1".into()),
            told: "The call was refused".into(),
        }),
        What::Refusal(RefusalLine {
            tool: String::new(),
            call: None,
            told: String::new(),
        }),
    ];
    for what in whats {
        for pass in [None, Some(id(1))] {
            let what = what.clone();
            let line = EventLine {
                id: id(5),
                ts: 1_767_225_600_000,
                after: 4,
                pass,
                what,
            };
            assert_eq!(EventLine::decode(&line.encode()).as_ref(), Ok(&line));
        }
    }
}

#[test]
fn an_event_of_a_later_version_is_a_fact() {
    let line = br#"{"id":1,"ts":2,"after":3,"type":"weather","tokens":9}"#;
    let line = EventLine::decode(line).unwrap();
    assert_eq!(line.what, What::Other("weather".into()));
    assert_eq!(line.event(), Event::Fact);
    assert!(EventLine::decode(br#"{"id":1,"ts":2,"after":3,"type":"undo"}"#).is_err());
}
