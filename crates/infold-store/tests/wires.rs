//! A task on each wire: its messages stay as they came, and what is made for it has their form.

use std::fs;

use infold_log::steer::{Side, Target};
use infold_log::{Floor, Past as _, Seq, Span, View};
use infold_store::{Contexts, Durability, Log, Metadata, Writer};
use infold_wire::{Message, Wire};
use uuid::Uuid;

/// A request, an output with two calls, their results, and an answer.
fn talk(wire: Wire) -> Vec<&'static str> {
    match wire {
        Wire::Chat => vec![
            r#"{"role":"user","content":"look around"}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"cat","arguments":"{}"}}]}"#,
            r#"{"role":"tool","tool_call_id":"a","content":"some files"}"#,
            r#"{"role":"tool","tool_call_id":"b","content":"some text"}"#,
            r#"{"role":"assistant","content":"done"}"#,
        ],
        Wire::Ollama => vec![
            r#"{"role":"user","content":"look around","images":["AA=="]}"#,
            r#"{"role":"assistant","content":"","thinking":"hm","tool_calls":[{"function":{"name":"ls","arguments":{}}},{"function":{"name":"cat","arguments":{}}}]}"#,
            r#"{"role":"tool","tool_name":"ls","content":"some files"}"#,
            r#"{"role":"tool","tool_name":"cat","content":"some text"}"#,
            r#"{"role":"assistant","content":"done"}"#,
        ],
        Wire::Anthropic => vec![
            r#"{"role":"user","content":"look around"}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"ls","input":{}},{"type":"tool_use","id":"b","name":"cat","input":{}}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"some files"},{"type":"tool_result","tool_use_id":"b","content":"some text"}]}"#,
            r#"{"role":"assistant","content":"done"}"#,
        ],
        Wire::Gemini => vec![
            r#"{"parts":[{"text":"look around"}]}"#,
            r#"{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"ls","args":{}},"thoughtSignature":"s"},{"functionCall":{"name":"cat","args":{}}}]}"#,
            r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"some files"}}},{"functionResponse":{"name":"cat","response":{"output":"some text"}}}]}"#,
            r#"{"role":"model","parts":[{"text":"done"}]}"#,
        ],
        Wire::Responses => vec![
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"look around"}]}"#,
            r#"{"type":"reasoning","id":"r","summary":[],"encrypted_content":"x"}"#,
            r#"{"type":"function_call","call_id":"a","name":"ls","arguments":"{}"}"#,
            r#"{"type":"custom_tool_call","call_id":"b","name":"cat","input":""}"#,
            r#"{"type":"function_call_output","call_id":"a","output":"some files"}"#,
            r#"{"type":"custom_tool_call_output","call_id":"b","output":"some text"}"#,
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#,
        ],
    }
}

struct Task {
    _root: tempfile::TempDir,
    contexts: Contexts,
    id: Uuid,
    wire: Wire,
}

impl Task {
    fn new(wire: Wire) -> Task {
        let root = tempfile::tempdir().expect("a directory");
        let contexts = Contexts::new(root.path(), Durability::Never);
        let metadata = Metadata {
            wire: Some(wire.name().to_owned()),
            ..Metadata::default()
        };
        let id = contexts.create(metadata).expect("a task");
        Task {
            _root: root,
            contexts,
            id,
            wire,
        }
    }

    fn write(&self) -> Writer {
        self.contexts.write(self.id).expect("a writer").0
    }

    fn read(&self) -> Log {
        self.contexts.read(self.id).expect("a reader")
    }

    /// The view, which must be valid and go over the task's wire as it is.
    fn view(&self, log: &Log) -> Vec<String> {
        let shown = log.state().shown();
        let view = View::of(shown, log).expect("a view");
        let floor = Floor::of(shown, log).expect("a floor");
        assert_eq!(log.check(&view, &floor).expect("a verdict").faults, []);
        let bytes = log.rendered(&view).expect("bytes");
        let text = String::from_utf8(bytes).expect("text");
        for line in text.lines() {
            let message = Message::parse(line.as_bytes()).expect("a message");
            assert!(message.wires().has(self.wire), "{line} on {}", self.wire);
        }
        text.lines().map(str::to_owned).collect()
    }

    fn verified(&self, writer: Writer) {
        self.contexts.settle(self.id, &writer).expect("counted");
        drop(writer);
        let registry = self.contexts.registry().expect("a registry");
        let problems = self.contexts.verify(self.id, &registry).expect("a verdict");
        assert!(problems.is_empty(), "{}: {problems:?}", self.wire);
    }
}

fn seq(number: u64) -> Seq {
    Seq::new(number).expect("a seq")
}

#[test]
fn every_wire_is_folded_in_its_own_form() {
    for wire in Wire::ALL {
        let task = Task::new(wire);
        let said = talk(wire);
        let mut writer = task.write();
        for _ in 0..3 {
            for message in &said {
                writer.append(&[message]).expect("a message");
            }
        }
        let all: Vec<&str> = [&said[..], &said[..], &said[..]].concat();
        assert_eq!(task.view(writer.log()), all, "byte for byte");
        let result = all.iter().position(|line| line.contains("some files"));
        let result = result.expect("a result");
        writer.mask(seq(result as u64 + 1), 0).expect("a mask");
        let masked = task.view(writer.log());
        assert!(!masked[result].contains("some files"), "{}", masked[result]);
        assert!(masked[result].contains("tokens folded away"));
        let length = said.len() as u64;
        let second = Span::new(seq(length + 1), seq(2 * length)).expect("a span");
        writer.condense(second, "it looked").expect("a fold");
        let folded = task.view(writer.log());
        assert!(folded.len() < all.len());
        writer.truncate(0.5).expect("a fold");
        task.view(writer.log());
        writer.note("mind this").expect("a note");
        task.view(writer.log());
        // Into the middle of the last output: its calls are answered as interrupted.
        let waits = |number: &u64| {
            let record = writer.log().record(seq(*number));
            record.expect("a record").waiting == 2
        };
        let calls = (1..=all.len() as u64).rev().find(waits);
        let calls = calls.expect("an output that waits");
        writer
            .rewind(Side::To, Target::Message(calls))
            .expect("a rewind");
        writer.append(&[said[0]]).expect("a message");
        let cut = task.view(writer.log()).concat();
        assert_eq!(cut.matches("interrupted").count(), 2, "{wire}: {cut}");
        writer.undo().expect("an undo");
        task.verified(writer);
    }
}

#[test]
fn a_round_of_items_goes_on_after_a_reopening() {
    let task = Task::new(Wire::Responses);
    for message in talk(Wire::Responses) {
        task.write().append(&[message]).expect("a message");
    }
    let log = task.read();
    let rounds = (1..=7).map(|number| log.record(seq(number)).expect("a record").round.get());
    assert_eq!(rounds.collect::<Vec<_>>(), [1, 2, 2, 2, 2, 2, 7]);
    assert_eq!(log.sums().expect("sums").replies, 2, "outputs, not items");
    task.verified(task.write());
}

#[test]
fn a_line_says_who_speaks_even_if_the_wire_does_not() {
    for (wire, roles) in [
        (Wire::Gemini, vec!["user"]),
        (
            Wire::Responses,
            vec!["assistant", "assistant", "assistant", "tool", "tool"],
        ),
    ] {
        let task = Task::new(wire);
        task.write().append(&talk(wire)).expect("messages");
        let lines = fs::read_to_string(task.read().dir().join("messages.jsonl")).expect("lines");
        let added = lines
            .lines()
            .filter_map(|line| {
                line.rsplit_once(",\"tokens\":")?
                    .1
                    .split_once(",\"role\":\"")
            })
            .map(|(_, role)| role.trim_end_matches("\"}"));
        assert_eq!(added.collect::<Vec<_>>(), roles);
    }
}

#[test]
fn forks_know_what_is_native_in_the_part_they_share() {
    let task = Task::new(Wire::Chat);
    let mut writer = task.write();
    writer.append(&talk(Wire::Chat)).expect("messages");
    drop(writer);
    let fork = task.contexts.fork(task.id, None).expect("a fork");
    let (mut writer, _) = task.contexts.write(fork).expect("a writer");
    writer
        .append(&[r#"{"role":"user","content":"go on"}"#])
        .expect("a message");
    let native = |from, to, wire| {
        let span = Span::new(seq(from), seq(to)).expect("a span");
        writer.log().is_native(span, wire).expect("an index")
    };
    assert!(native(1, 6, Wire::Chat));
    assert!(!native(1, 6, Wire::Anthropic));
    assert!(native(5, 6, Wire::Anthropic));
    assert!(!native(1, 1, Wire::Gemini));
}

#[test]
fn a_sidecar_of_an_older_version_is_made_anew() {
    let task = Task::new(Wire::Gemini);
    let mut writer = task.write();
    writer.append(&talk(Wire::Gemini)).expect("messages");
    let span = Span::new(seq(2), seq(3)).expect("a span");
    writer.condense(span, "it looked").expect("a fold");
    let before = task.view(writer.log());
    drop(writer);
    let path = task.read().dir().join("messages.idx");
    let mut bytes = fs::read(&path).expect("a sidecar");
    bytes[..8].copy_from_slice(b"infoldm1");
    fs::write(&path, &bytes).expect("written");
    assert_eq!(task.view(&task.read()), before);
    let writer = task.write();
    assert_eq!(task.view(writer.log()), before);
    assert!(
        writer
            .log()
            .is_native(span, Wire::Gemini)
            .expect("an index")
    );
    task.verified(writer);
    assert!(fs::read(&path).expect("a sidecar").starts_with(b"infoldm4"));
}
