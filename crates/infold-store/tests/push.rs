//! A push of any size is there whole or not at all, whatever cuts it short, and once for each key.

use std::fs;
use std::path::PathBuf;

use infold_log::{Seq, Span};
use infold_store::{
    ContentDigest, Contexts, Durability, IncomingError, Metadata, PushError, PushKey, Repair,
    Writer,
};
use tempfile::TempDir;
use uuid::Uuid;

struct World {
    _root: TempDir,
    contexts: Contexts,
    id: Uuid,
}

impl World {
    fn new() -> World {
        let root = tempfile::tempdir().expect("a directory");
        let contexts = Contexts::new(root.path(), Durability::Turn);
        let id = contexts.create(Metadata::default()).expect("a task");
        World {
            _root: root,
            contexts,
            id,
        }
    }

    fn dir(&self) -> PathBuf {
        self.contexts.place(self.id).expect("a directory")
    }

    fn write(&self) -> Writer {
        self.contexts.write(self.id).expect("a writer").0
    }

    fn count(&self) -> u64 {
        let log = self.contexts.read(self.id).expect("a reader");
        log.state().at().seq
    }

    fn is_well(&self) {
        let writer = self.write();
        self.contexts.settle(self.id, &writer).expect("counted");
        drop(writer);
        let registry = self.contexts.registry().expect("a registry");
        let problems = self.contexts.verify(self.id, &registry).expect("an answer");
        assert!(problems.is_empty(), "{problems:?}");
        assert!(!self.dir().join("pending.json").exists());
    }
}

fn message(number: usize, size: usize) -> Vec<u8> {
    let text = "x".repeat(size);
    format!(r#"{{"role":"user","content":"{number} {text}"}}"#).into_bytes()
}

fn messages(count: usize, size: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| message(number, size)).collect()
}

/// A source that breaks off after these.
fn broken(messages: Vec<Vec<u8>>) -> impl FnMut() -> Result<Option<Vec<u8>>, IncomingError> {
    let mut messages = messages.into_iter();
    move || match messages.next() {
        Some(message) => Ok(Some(message)),
        None => Err(std::io::Error::other("it broke off").into()),
    }
}

fn push(
    writer: &mut Writer,
    key: Option<&str>,
    messages: &[Vec<u8>],
) -> Result<Option<Span>, PushError> {
    let mut digest = ContentDigest::default();
    messages.iter().for_each(|message| digest.add(message));
    let key = key.map(|key| PushKey::new(key, digest).expect("a key"));
    let mut messages = messages.iter().cloned();
    writer.push(key.as_ref(), &mut || Ok(messages.next()))
}

fn span(from: u64, to: u64) -> Option<Span> {
    Span::new(Seq::new(from)?, Seq::new(to)?)
}

#[test]
fn what_breaks_off_after_several_pieces_leaves_nothing() {
    let world = World::new();
    let mut writer = world.write();
    push(&mut writer, None, &messages(2, 10)).expect("pushed");
    // Twelve megabytes are three pieces.
    let error = writer.push(None, &mut broken(messages(12, 1 << 20)));
    assert!(matches!(error, Err(PushError::Incoming(_))));
    assert_eq!(writer.log().state().at().seq, 2);
    assert_eq!(world.count(), 2);
    // The same writer goes on.
    let pushed = push(&mut writer, None, &messages(9, 1 << 20)).expect("pushed");
    assert_eq!(pushed, span(3, 11));
    drop(writer);
    assert_eq!(world.count(), 11);
    world.is_well();
}

/// A call and its result.
fn used(id: &str) -> [Vec<u8>; 2] {
    let call = format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"ls","arguments":"{{}}"}}}}]}}"#
    );
    let result = format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"a b"}}"#);
    [call.into_bytes(), result.into_bytes()]
}

#[test]
fn tools_of_a_push_are_recorded_with_it_or_not_at_all() {
    let world = World::new();
    let lines = || {
        let text = fs::read_to_string(world.dir().join("tools.jsonl")).unwrap_or_default();
        text.lines().count()
    };
    let mut writer = world.write();
    push(&mut writer, None, &used("a")).expect("pushed");
    assert_eq!(lines(), 1);
    let mut more = messages(1, 1 << 20);
    more.extend(used("b"));
    more.extend(messages(5, 1 << 20));
    let error = writer.push(None, &mut broken(more));
    assert!(matches!(error, Err(PushError::Incoming(_))));
    assert_eq!(lines(), 1);
    assert_eq!(writer.log().state().at().event, 1);
    // A result alone is pushed together with its record.
    let [call, result] = used("c");
    push(&mut writer, None, &[call]).expect("pushed");
    push(&mut writer, None, &[result]).expect("pushed");
    assert_eq!(lines(), 2);
    drop(writer);
    world.is_well();
}

#[test]
fn what_is_under_way_is_not_shown() {
    let world = World::new();
    let mut writer = world.write();
    push(&mut writer, None, &messages(2, 10)).expect("pushed");
    let mut left = messages(9, 1 << 20).into_iter();
    let mut seen = Vec::new();
    let pushed = writer.push(None, &mut || {
        seen.push(world.count());
        Ok(left.next())
    });
    assert_eq!(pushed.expect("pushed"), span(3, 11));
    assert!(seen.len() > 9 && seen.iter().all(|count| *count == 2));
    assert_eq!(world.count(), 11);
    let view = fs::read_to_string(world.dir().join("current.jsonl")).expect("the view");
    assert_eq!(view.lines().count(), 11);
}

#[test]
fn what_a_crash_cuts_short_is_taken_back() {
    let world = World::new();
    let mut writer = world.write();
    push(&mut writer, None, &messages(3, 10)).expect("pushed");
    drop(writer);
    let names = ["messages.jsonl", "events.jsonl", "pending.json"];
    let read = |name: &str| fs::read(world.dir().join(name)).unwrap_or_default();
    let before = names.map(read);
    // The files as they are in the middle of a push, just before its end.
    let mut writer = world.write();
    let mut left = messages(6, 1 << 20).into_iter();
    let mut halves = Vec::new();
    let pushed = writer.push(None, &mut || {
        let message = left.next();
        halves.push(names.map(read));
        Ok(message)
    });
    pushed.expect("pushed");
    drop(writer);
    let half = halves.pop().expect("one");
    assert!(half[0].len() > before[0].len() && !half[2].is_empty());
    for torn in [0, 1, 100] {
        for (name, bytes) in names.iter().zip(&half) {
            let kept = match *name {
                "messages.jsonl" => &bytes[..bytes.len() - torn],
                _ => bytes,
            };
            fs::write(world.dir().join(name), kept).expect("written");
        }
        assert_eq!(world.count(), 3, "readers do not show it");
        let (writer, repairs) = world.contexts.write(world.id).expect("a writer");
        let is_told = |repair: &Repair| matches!(repair, Repair::Withdrawn { .. });
        assert!(repairs.iter().any(is_told), "{repairs:?}");
        // The index knows the push, and its lines were taken back on purpose.
        let is_missed = |repair: &Repair| matches!(repair, Repair::Shortened { .. });
        assert!(!repairs.iter().any(is_missed), "{repairs:?}");
        assert_eq!(writer.log().state().at().seq, 3);
        drop(writer);
        assert_eq!(names.map(read)[..2], before[..2]);
        world.is_well();
    }
}

#[test]
fn a_journal_that_does_not_fit_the_log_takes_nothing_back() {
    for journal in [
        "",
        "{",
        r#"{"messages":0,"events":0,"next_seq":2,"next_event":1}"#,
        r#"{"messages":7,"events":0,"next_seq":1,"next_event":1}"#,
        r#"{"messages":99999999,"events":0,"next_seq":1,"next_event":1}"#,
    ] {
        let world = World::new();
        let mut writer = world.write();
        push(&mut writer, None, &messages(3, 10)).expect("pushed");
        drop(writer);
        fs::write(world.dir().join("pending.json"), journal).expect("written");
        assert_eq!(world.count(), 3, "{journal}");
        drop(world.write());
        assert_eq!(world.count(), 3, "{journal}");
        world.is_well();
    }
}

#[test]
fn a_push_with_a_key_is_done_once() {
    let world = World::new();
    let mut writer = world.write();
    let first = push(&mut writer, Some("a"), &messages(2, 10)).expect("pushed");
    assert_eq!(first, span(1, 2));
    let second = push(&mut writer, Some("b"), &messages(1, 20)).expect("pushed");
    assert_eq!(second, span(3, 3));
    push(&mut writer, None, &messages(1, 10)).expect("pushed");
    for _ in 0..2 {
        let again = push(&mut writer, Some("a"), &messages(2, 10));
        assert_eq!(again.expect("known"), first);
        let again = push(&mut writer, Some("b"), &messages(1, 20));
        assert_eq!(again.expect("known"), second);
        let other = push(&mut writer, Some("a"), &messages(3, 10));
        assert!(matches!(other, Err(PushError::OtherContent { span, .. }) if Some(span) == first));
        drop(writer);
        assert_eq!(world.count(), 4);
        // Sidecars that are lost change nothing.
        fs::remove_file(world.dir().join("events.idx")).expect("removed");
        writer = world.write();
    }
    drop(writer);
    world.is_well();
}

#[test]
fn a_key_of_a_push_that_failed_can_be_used_again() {
    let world = World::new();
    let mut writer = world.write();
    let mut digest = ContentDigest::default();
    messages(3, 10)
        .iter()
        .for_each(|message| digest.add(message));
    let key = PushKey::new("a", digest).expect("a key");
    let failed = writer.push(Some(&key), &mut broken(messages(6, 1 << 20)));
    assert!(failed.is_err());
    let done = push(&mut writer, Some("a"), &messages(3, 10)).expect("pushed");
    assert_eq!(done, span(1, 3));
    drop(writer);
    world.is_well();
}

#[test]
fn some_texts_are_no_keys() {
    let key = |name: &str| PushKey::new(name, ContentDigest::default());
    assert!(key("").is_none() && key("  ").is_none() && key("a\nb").is_none());
    assert!(key(&"k".repeat(256)).is_none());
    assert!(key(&"k".repeat(255)).is_some());
}
