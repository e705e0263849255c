//! Steps as the command and the API take them.

mod common;

use common::*;
use infold::Hooks;
use infold::checkpoint::FileHistory;
use infold::layers::model::Transitions;
use infold::step::{Step, StepContext, StepResult};
use infold_log::Seq;
use infold_log::steer::Refused;
use infold_store::{Contexts, Durability, StepError, Writer};

fn read(json: &str) -> Step {
    Step::read(json.as_bytes()).expect(json)
}

/// Takes a step that touches no files.
fn take(step: &Step, writer: &mut Writer) -> Result<StepResult, StepError> {
    let files = FileHistory::new(&Contexts::new("/nowhere", Durability::Never));
    let context = StepContext {
        hooks: &Hooks::default(),
        transitions: &Transitions::default(),
        files: &files,
    };
    step.take(writer, context)
}

/// Reasoning is refused by its provider without the item that it was for.
#[test]
fn reasoning_is_not_parted_from_what_it_was_for() {
    let items = [
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"look"}]}"#,
        r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"abc"}"#,
        r#"{"type":"function_call","call_id":"c1","name":"ls","arguments":"{}"}"#,
        r#"{"type":"function_call_output","call_id":"c1","output":"a b"}"#,
        r#"{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"def"}"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"thanks"}]}"#,
    ];
    for (step, last, is_moved) in [
        (r#"{"step":"rewind","to":5}"#, 6, true),
        (r#"{"step":"rewind","before":6}"#, 4, true),
        (r#"{"step":"rewind","to":2}"#, 3, true),
        (r#"{"step":"rewind","to":4}"#, 4, false),
        (r#"{"step":"rewind","to":6}"#, 6, false),
    ] {
        let mut task = task();
        let writer = task.writer().unwrap();
        writer.append(&items).unwrap();
        let taken = take(&read(step), writer).unwrap();
        let shown = writer.log().state().shown();
        assert_eq!(shown.last(), Seq::new(last), "{step}");
        assert_eq!(
            taken.text.contains("stay together"),
            is_moved,
            "{}",
            taken.text
        );
    }
}

/// Each step describes its effect and how to undo it.
#[test]
fn steps_are_taken_and_taken_back() {
    let mut task = chat(20, 40);
    let writer = task.writer().unwrap();
    let mut story = String::new();
    for json in [
        r#"{"step":"condense","from":1,"to":11,"text":"all went well"}"#,
        r#"{"step":"unfold","fold":"e1"}"#,
        r#"{"step":"truncate","fraction":0.25}"#,
        r#"{"step":"rewind","before":9}"#,
        r#"{"step":"undo"}"#,
        r#"{"step":"redo"}"#,
        r#"{"step":"pin","seq":5}"#,
        r#"{"step":"unpin","seq":5}"#,
        r#"{"step":"note","text":"never touch main"}"#,
        r#"{"step":"unpin","note":"e9"}"#,
    ] {
        let taken = take(&read(json), writer).unwrap();
        story += &format!(
            "{} ({})\n  {}\n",
            taken.text,
            taken.inverse,
            taken.json["event"].as_str().unwrap()
        );
        story += &taken
            .note
            .map_or(String::new(), |note| format!("  {note}\n"));
    }
    insta::assert_snapshot!(story, @r"
    e1: folded 2..11, 10 messages; view 1,880 → 1,445 tokens (undo)
      e1
      1..11 was narrowed to 2..11: the system prompt, the first request and what a rewind hid stay as they are
    opened e1; view 1,445 → 1,880 tokens (undo)
      e2
    e3: hid 2..9, 8 messages; view 1,880 → 1,534 tokens (undo)
      e3
    rewound to before 9: 32 messages hidden, none lost; view 1,534 → 376 tokens (undo)
      e4
    undid e4; view 376 → 1,534 tokens (redo)
      e5
    redid e4; view 1,534 → 376 tokens (undo)
      e6
    pinned message 5 and its round; view 376 → 376 tokens (undo)
      e7
    unpinned message 5; view 376 → 376 tokens (undo)
      e8
    e9: pinned a note; view 376 → 383 tokens (undo)
      e9
    unpinned note e9; view 383 → 376 tokens (undo)
      e10
    ");
}

#[test]
fn a_summary_that_nobody_gives_is_written() {
    let mut task = chat(40, 60);
    let writer = task.writer().unwrap();
    let taken = take(&read(r#"{"step":"condense","from":3,"to":40}"#), writer);
    let json = taken.unwrap().json;
    assert_eq!(json["summarizer"], "extractive");
    let (before, after) = (&json["tokens_before"], &json["tokens_after"]);
    assert!(after.as_u64() < before.as_u64(), "{json}");
    assert!(shown(&task)[2].starts_with("[Summary of messages 3.."));
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut task = chat(4, 10);
    let writer = task.writer().unwrap();
    let nothing = |taken| matches!(taken, Err(StepError::Nothing { .. }));
    let seq = |number| Seq::new(number).unwrap();
    let condense = |from, to, text: Option<&str>| Step::Condense {
        from: seq(from),
        to: seq(to),
        text: text.map(str::to_owned),
    };
    assert!(nothing(take(&condense(5, 3, None), writer)));
    assert!(nothing(take(&condense(3, 5, Some(" \n")), writer)));
    // The message is so short that no summary is shorter.
    assert!(nothing(take(&condense(3, 3, None), writer)));
    let beyond = take(&condense(3, 900, None), writer);
    assert!(matches!(beyond, Err(Refused::NoMessage { .. })));
    assert_eq!(writer.log().state().at().event, 0);
}
