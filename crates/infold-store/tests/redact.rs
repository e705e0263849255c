//! Redacted texts are removed from the whole store, and everything else stays unchanged.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use infold_log::{EventId, Past as _, Seq, Span, View};
use infold_store::{
    ChainIndex, ContentDigest, Contexts, Durability, Failure, Metadata, Outcome, PushError,
    PushKey, RedactTarget, Redaction, TaskError, What, redacted_name,
};
use infold_wire::Wire;
use tempfile::TempDir;
use uuid::Uuid;

const SECRET: &str = "hunter2-zzyzx";

fn store() -> (TempDir, Contexts) {
    let root = tempfile::tempdir().expect("it can be done");
    let contexts = Contexts::new(root.path(), Durability::Turn);
    (root, contexts)
}

fn say(role: &str, text: &str) -> String {
    serde_json::json!({"role": role, "content": text}).to_string()
}

fn hits(text: &str) -> Vec<Range<usize>> {
    let found = text.match_indices(SECRET);
    found.map(|(at, hit)| at..at + hit.len()).collect()
}

const MATCHES: RedactTarget<'static> = RedactTarget::Matches {
    within: None,
    find: &hits,
};

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("it can be done").flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, found),
            path => found.push(path),
        }
    }
}

/// The files that hold the secret.
fn holders(root: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    files(root, &mut all);
    let holds = |path: &PathBuf| {
        let text = String::from_utf8_lossy(&fs::read(path).expect("it can be done")).into_owned();
        text.contains("hunter2") || text.contains("zzyzx")
    };
    all.retain(holds);
    all
}

fn spans(text: &str) -> Vec<Span> {
    text.split(' ')
        .map(|span| span.parse().expect("it can be done"))
        .collect()
}

fn redact(contexts: &Contexts, id: Uuid, seqs: &str) -> Redaction {
    contexts
        .redact(id, RedactTarget::Messages(&spans(seqs)))
        .expect("it can be done")
}

fn clean(contexts: &Contexts) {
    let registry = contexts.registry().expect("it can be done");
    for id in contexts.tasks().expect("it can be done") {
        let problems = contexts.verify(id, &registry).expect("it can be done");
        assert!(problems.is_empty(), "{id}: {problems:?}");
    }
}

fn seq(number: u64) -> Seq {
    Seq::new(number).expect("it can be done")
}

/// A task that has the secret wherever a task can have it.
fn secretive(contexts: &Contexts) -> Uuid {
    let id = contexts
        .create(Metadata::default())
        .expect("it can be done");
    let (mut writer, _) = contexts.write(id).expect("it can be done");
    let call = format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c1","type":"function","function":{{"name":"login","arguments":"{{\"password\":\"{SECRET}\"}}"}}}}]}}"#
    );
    let result = format!(r#"{{"role":"tool","tool_call_id":"c1","content":"welcome {SECRET}"}}"#);
    writer
        .append(&[
            say("user", &format!("log in with {SECRET} please")),
            call,
            result,
            say("assistant", "done, you are in"),
            say("user", "thank you, now the report"),
            say("assistant", "the report is long"),
            say("user", "and one more thing"),
            say("assistant", "which one"),
        ])
        .expect("it can be done");
    writer.mask(seq(3), 0).expect("it can be done");
    writer
        .condense(
            "2..4".parse().expect("it can be done"),
            &format!("The user logged in with {SECRET}; the report comes next."),
        )
        .expect("it can be done");
    writer
        .note(&format!("never say {SECRET}"))
        .expect("it can be done");
    let record = format!(r#"{{"tool":"login","args":{{"password":"{SECRET}"}},"result":"ok"}}"#);
    writer.tool(record.as_bytes()).expect("it can be done");
    writer
        .failure(Failure {
            provider: "openai".into(),
            model: "m".into(),
            error: format!("refused: {SECRET}"),
            requests: 1,
        })
        .expect("it can be done");
    writer
        .frame(
            infold_wire::Wire::Chat,
            &[("system", format!("\"be kind, {SECRET}\"").as_bytes())],
        )
        .expect("it can be done");
    contexts.settle(id, &writer).expect("it can be done");
    drop(writer);
    let dir = contexts.place(id).expect("it can be done");
    for name in [
        "request.json",
        "reply.json",
        "torn-messages-17",
        "facts.bin",
    ] {
        fs::write(dir.join(name), format!("… {SECRET} …")).expect("it can be done");
    }
    id
}

#[test]
fn a_message_that_was_redacted_is_nowhere() {
    let (root, contexts) = store();
    let id = secretive(&contexts);
    let before = contexts.read(id).unwrap();
    let time = |log: &infold_store::Log, at| log.record(seq(at)).unwrap().time;
    let times: Vec<u64> = (1..=8).map(|at| time(&before, at)).collect();
    drop(before);
    assert!(holders(root.path()).len() > 8);
    let redaction = redact(&contexts, id, "1..3");
    assert_eq!(redaction.messages(), 3);
    assert_eq!(redaction.removed.len(), 4, "{redaction:?}");
    assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
    clean(&contexts);
    let log = contexts.read(id).unwrap();
    let message = |at| String::from_utf8(log.message(seq(at)).unwrap()).unwrap();
    assert_eq!(message(1), say("user", "[redacted e6]"));
    assert!(message(2).contains(r#""id":"c1""#) && message(2).contains("login"));
    assert_eq!(
        message(3),
        r#"{"role":"tool","tool_call_id":"c1","content":"[redacted e6]"}"#
    );
    assert_eq!(message(4), say("assistant", "done, you are in"));
    let now: Vec<u64> = (1..=8).map(|at| time(&log, at)).collect();
    assert_eq!(now, times);
    // The parts of the summary from other messages stay.
    let view = View::of(log.state().shown(), &log).unwrap();
    let view = String::from_utf8(log.rendered(&view).unwrap()).unwrap();
    assert!(view.contains("the report"), "{view}");
    // Tools keep their names.
    let tools = fs::read_to_string(contexts.place(id).unwrap().join("tools.jsonl")).unwrap();
    assert!(tools.contains(r#""tool":"login""#), "{tools}");
    let What::Redact(line) = log.event(EventId::new(6).unwrap()).unwrap().what else {
        panic!("the last event is the redaction");
    };
    let digest = infold_wire::digest::message_digest(
        say("user", &format!("log in with {SECRET} please")).as_bytes(),
    );
    assert_eq!(line.messages[0], (seq(1), digest.unwrap()));
    assert_eq!(log.redacted(seq(1)).unwrap(), Some(line.messages[0].1));
    assert_eq!(log.redacted(seq(4)).unwrap(), None);
}

#[test]
fn matches_that_were_redacted_are_nowhere_and_the_rest_stays() {
    let (root, contexts) = store();
    let id = secretive(&contexts);
    let found = contexts.redactable(id, MATCHES).unwrap();
    assert_eq!(found.messages(), 3);
    assert!(!holders(root.path()).is_empty());
    let redaction = contexts.redact(id, MATCHES).unwrap();
    assert_eq!(redaction.tasks[0].event, Some(6));
    assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
    clean(&contexts);
    let log = contexts.read(id).unwrap();
    assert_eq!(
        log.message(seq(1)).unwrap(),
        say("user", "log in with [redacted e6] please").as_bytes()
    );
    assert_eq!(
        log.message(seq(3)).unwrap(),
        br#"{"role":"tool","tool_call_id":"c1","content":"welcome [redacted e6]"}"#
    );
    let row = contexts.registry().unwrap().get(id).unwrap().unwrap();
    assert_eq!(
        row.title.as_deref(),
        Some("log in with [redacted e6] please")
    );
    // Again it finds nothing, and changes nothing.
    let dir = contexts.place(id).unwrap();
    let events = fs::read(dir.join("events.jsonl")).unwrap();
    assert!(contexts.redact(id, MATCHES).unwrap().is_empty());
    assert_eq!(fs::read(dir.join("events.jsonl")).unwrap(), events);
    assert!(!root.path().join("redacting").exists());
}

/// Clients go on sending the system prompt that they have.
#[test]
fn what_stood_around_messages_does_not_come_back() {
    let (root, contexts) = store();
    let id = contexts.create(Metadata::default()).expect("a task");
    let prompt = format!("\"be kind, {SECRET}\"");
    let frame = [("model", &b"\"m\""[..]), ("system", prompt.as_bytes())];
    let (mut writer, _) = contexts.write(id).expect("a writer");
    writer.frame(Wire::Anthropic, &frame).expect("a frame");
    writer.append(&[say("user", "hello")]).expect("a message");
    drop(writer);
    for _ in 0..2 {
        let target = RedactTarget::Matches {
            within: None,
            find: &hits,
        };
        let _ = contexts.redact(id, target).expect("redacted");
        assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
        let (mut writer, _) = contexts.write(id).expect("a writer");
        assert_eq!(
            writer
                .frame(Wire::Anthropic, &frame)
                .expect("the same frame"),
            1
        );
        drop(writer);
        assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
    }
    // A fork begins without frames, and so does a fork of that.
    let fork = contexts.fork(id, None).expect("a fork");
    let other = contexts.fork(fork, None).expect("another");
    for id in [fork, other, fork] {
        let (mut writer, _) = contexts.write(id).expect("a writer");
        writer.append(&[say("user", "go on")]).expect("a message");
        assert_eq!(writer.frame(Wire::Anthropic, &frame).expect("a frame"), 1);
        drop(writer);
        assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
    }
    // A new frame is recorded.
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let changed = [("model", &b"\"m\""[..]), ("system", b"\"be brief\"")];
    assert_eq!(
        writer
            .frame(Wire::Anthropic, &changed)
            .expect("a new frame"),
        2
    );
    assert_eq!(
        writer
            .frame(Wire::Anthropic, &frame)
            .expect("the first again"),
        3
    );
    drop(writer);
    assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_stub_keeps_no_piece_of_what_was_redacted() {
    let (root, contexts) = store();
    let id = contexts.create(Metadata::default()).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"push","arguments":"{}"}}]}"#;
    let result = format!(
        r#"{{"role":"tool","tool_call_id":"c1","content":"pushing with {SECRET} to origin"}}"#
    );
    writer
        .append(&[say("user", "go"), call.to_owned(), result])
        .expect("messages");
    let half = &SECRET[..SECRET.len() - 2];
    writer
        .mask_described(seq(3), 0, |_| format!(" first: pushing with {half}…"))
        .expect("a mask");
    drop(writer);
    let target = RedactTarget::Matches {
        within: None,
        find: &hits,
    };
    let _ = contexts.redact(id, target).expect("redacted");
    let mut paths = Vec::new();
    files(root.path(), &mut paths);
    for path in paths {
        let bytes = std::fs::read(&path).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(half), "{}", path.display());
    }
}

#[test]
fn undo_passes_over_a_redaction_and_earlier_states_have_no_secret_either() {
    let (root, contexts) = store();
    let id = secretive(&contexts);
    redact(&contexts, id, "1 2 3");
    let (mut writer, repairs) = contexts.write(id).unwrap();
    assert!(repairs.is_empty(), "{repairs:?}");
    // The note, the fold, the mask.
    for _ in 0..3 {
        writer.undo().unwrap();
    }
    assert!(writer.undo().is_err());
    writer.redo().unwrap();
    drop(writer);
    let log = contexts.read(id).unwrap();
    for event in 1..=log.state().at().event {
        let at = infold_log::Point { seq: 8, event };
        let view = View::of(&log.shown(at).unwrap(), &log).unwrap();
        let view = String::from_utf8(log.rendered(&view).unwrap()).unwrap();
        assert!(!view.contains("hunter2"), "{view}");
    }
    clean(&contexts);
    assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
}

#[test]
fn the_task_goes_on_after_it_and_a_second_redaction_keeps_what_came() {
    let (_root, contexts) = store();
    let id = secretive(&contexts);
    let original = contexts.read(id).unwrap().message(seq(1)).unwrap();
    let digest = infold_wire::digest::message_digest(&original).unwrap();
    contexts.redact(id, MATCHES).unwrap();
    let (mut writer, _) = contexts.write(id).unwrap();
    writer
        .append(&[say("user", "go on"), say("assistant", "yes")])
        .unwrap();
    contexts.settle(id, &writer).unwrap();
    drop(writer);
    redact(&contexts, id, "1");
    let log = contexts.read(id).unwrap();
    assert_eq!(log.redacted(seq(1)).unwrap(), Some(digest));
    assert_eq!(
        log.message(seq(1)).unwrap(),
        say("user", "[redacted e7]").as_bytes()
    );
    clean(&contexts);
}

#[test]
fn what_forks_made_of_a_message_goes_with_it() {
    let (root, contexts) = store();
    let id = secretive(&contexts);
    let fork = contexts.fork(id, None).unwrap();
    let (mut writer, _) = contexts.write(fork).unwrap();
    writer
        .append(&[
            say("user", "what was it"),
            say("assistant", "I will not say"),
        ])
        .unwrap();
    writer
        .condense("5..6".parse().unwrap(), &format!("once {SECRET} was used"))
        .unwrap();
    contexts.settle(fork, &writer).unwrap();
    drop(writer);
    let below = contexts.fork(fork, None).unwrap();
    // Named by a task that only has it from another.
    let redaction = redact(&contexts, below, "1..3");
    assert_eq!(redaction.tasks[0].task, id);
    assert_eq!(redaction.tasks[0].messages.len(), 3);
    assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
    clean(&contexts);
    for task in [id, fork, below] {
        let log = contexts.read(task).unwrap();
        let message = log.message(seq(1)).unwrap();
        assert!(String::from_utf8_lossy(&message).contains("[redacted e6]"));
        assert!(log.redacted(seq(1)).unwrap().is_some());
    }
    let (mut writer, _) = contexts.write(below).unwrap();
    writer.append(&[say("user", "fine")]).unwrap();
    contexts.settle(below, &writer).unwrap();
    drop(writer);
    clean(&contexts);
}

#[test]
fn a_pattern_reaches_every_task_that_shares_messages() {
    let (root, contexts) = store();
    let id = secretive(&contexts);
    let forks = [0, 1].map(|_| contexts.fork(id, None).unwrap());
    for fork in forks {
        let (mut writer, _) = contexts.write(fork).unwrap();
        writer
            .append(&[say("user", &format!("again {SECRET}"))])
            .unwrap();
        contexts.settle(fork, &writer).unwrap();
    }
    let redaction = contexts.redact(forks[1], MATCHES).unwrap();
    assert_eq!(redaction.messages(), 5);
    assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
    clean(&contexts);
}

#[test]
fn a_task_that_is_written_to_is_named_and_nothing_changes() {
    let (root, contexts) = store();
    let id = secretive(&contexts);
    let fork = contexts.fork(id, None).unwrap();
    let (writer, _) = contexts.write(fork).unwrap();
    let before = holders(root.path());
    let error = contexts.redact(id, MATCHES).unwrap_err();
    assert!(matches!(error, TaskError::Open { task, .. } if task == fork));
    assert_eq!(holders(root.path()), before);
    drop(writer);
    contexts.redact(id, MATCHES).unwrap();
    clean(&contexts);
}

#[test]
fn a_task_that_ended_is_redacted_and_stays_ended() {
    let (root, contexts) = store();
    let id = secretive(&contexts);
    let error = format!("gave up on {SECRET}");
    contexts.finish(id, &Outcome::Failed { error }).unwrap();
    contexts.redact(id, MATCHES).unwrap();
    assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
    clean(&contexts);
    assert!(matches!(contexts.write(id), Err(TaskError::Ended { .. })));
    let row = contexts.registry().unwrap().get(id).unwrap().unwrap();
    assert_eq!(
        row.error_message.as_deref(),
        Some("gave up on [redacted e7]")
    );
}

#[test]
fn a_message_that_is_not_there_is_named() {
    let (root, contexts) = store();
    let id = secretive(&contexts);
    let before = holders(root.path());
    let error = contexts
        .redact(id, RedactTarget::Messages(&spans("2..9")))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("message 9 does not exist; the last one is 8")
    );
    assert_eq!(holders(root.path()), before);
}

#[test]
fn a_search_within_messages_leaves_the_others() {
    let (_root, contexts) = store();
    let id = secretive(&contexts);
    let within = spans("3");
    let target = RedactTarget::Matches {
        within: Some(&within),
        find: &hits,
    };
    assert_eq!(contexts.redact(id, target).unwrap().messages(), 1);
    let log = contexts.read(id).unwrap();
    let message = |at| String::from_utf8(log.message(seq(at)).unwrap()).unwrap();
    assert!(message(1).contains(SECRET));
    assert!(!message(3).contains(SECRET));
    clean(&contexts);
}

#[test]
fn a_redacted_message_that_is_there_again_is_found_by_verify() {
    let (_root, contexts) = store();
    let id = secretive(&contexts);
    let path = contexts.place(id).unwrap().join("messages.jsonl");
    let before = fs::read_to_string(&path).unwrap();
    redact(&contexts, id, "1");
    let after = fs::read_to_string(&path).unwrap();
    let rest = after.split_once('\n').unwrap().1;
    let first = before.split_once('\n').unwrap().0;
    fs::write(&path, format!("{first}\n{rest}")).unwrap();
    let problems = contexts.verify(id, None).unwrap();
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(
        said.iter()
            .any(|said| said.contains("message 1 was redacted by e6 and is there again")),
        "{said:?}"
    );
}

#[test]
fn what_is_left_of_tasks_that_are_none_goes_too() {
    for is_whole in [true, false] {
        let (root, contexts) = store();
        let id = secretive(&contexts);
        let escaped = SECRET.replace('h', "\\u0068");
        for (place, text) in [("running", SECRET), ("completed", &escaped)] {
            let dir = root.path().join(place).join(format!(".{}", Uuid::new_v4()));
            fs::create_dir(&dir).unwrap();
            fs::write(
                dir.join("messages.jsonl"),
                format!(r#"{{"content":"{text}"}}"#),
            )
            .unwrap();
        }
        let other = root
            .path()
            .join("running")
            .join(format!(".{}", Uuid::new_v4()));
        fs::create_dir(&other).unwrap();
        fs::write(other.join("messages.jsonl"), "{}").unwrap();
        fs::write(
            root.path().join("torn-tasks-1.db"),
            format!("title {SECRET}"),
        )
        .unwrap();
        fs::write(root.path().join("torn-chains-2.db"), "nothing").unwrap();
        if is_whole {
            redact(&contexts, id, "1..3")
        } else {
            contexts.redact(id, MATCHES).unwrap()
        };
        assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
        assert!(other.exists() && root.path().join("torn-chains-2.db").exists());
        clean(&contexts);
    }
}

#[test]
fn who_reads_meanwhile_sees_all_of_it_or_nothing() {
    let (_root, contexts) = store();
    let id = secretive(&contexts);
    let fork = contexts.fork(id, None).unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let log = contexts.read(id).unwrap();
                let told: Vec<bool> = (1..=3)
                    .map(|at| {
                        String::from_utf8_lossy(&log.message(seq(at)).unwrap()).contains(SECRET)
                    })
                    .collect();
                assert!(told == [true; 3] || told == [false; 3], "{told:?}");
                reads += 1;
            }
            reads
        });
        contexts.redact(fork, MATCHES).unwrap();
        for _ in 0..5 {
            redact(&contexts, fork, "1..3");
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
    clean(&contexts);
}

/// A task whose log says nothing of the secret.
fn innocent(contexts: &Contexts) -> (Uuid, PathBuf) {
    let id = contexts.create(Metadata::default()).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    writer.append(&[say("user", "hello")]).expect("a message");
    contexts.settle(id, &writer).expect("settled");
    drop(writer);
    (id, contexts.place(id).expect("its directory"))
}

#[test]
fn a_file_that_alone_holds_a_match_goes() {
    let escaped = SECRET.replace('h', "\\u0068");
    for (name, text) in [
        ("request.json", format!(r#"{{"messages":"{SECRET}"}}"#)),
        (
            "reply.json",
            format!(r#"{{"text":"{{\"a\":\"{escaped}\"}}"}}"#),
        ),
        ("facts.bin", format!("\0\u{1}{SECRET}\0")),
        (
            "torn-messages-1",
            format!("{} {SECRET}", "x".repeat(5 << 20)),
        ),
    ] {
        let (root, contexts) = store();
        let (id, dir) = innocent(&contexts);
        fs::write(dir.join(name), &text).unwrap();
        let found = contexts.redactable(id, MATCHES).unwrap();
        assert_eq!(found.removed, [dir.join(name)], "{name}");
        assert!(dir.join(name).exists());
        let redaction = contexts.redact(id, MATCHES).unwrap();
        assert_eq!(redaction, found, "{name}");
        assert!(!redaction.is_empty() && redaction.tasks.is_empty());
        assert!(!dir.join(name).exists(), "{name}");
        assert!(!root.path().join("redacting").exists());
        clean(&contexts);
        assert!(contexts.redact(id, MATCHES).unwrap().is_empty());
    }
}

#[test]
fn what_lies_beside_tasks_is_told_before_it_goes() {
    let (root, contexts) = store();
    let (id, _) = innocent(&contexts);
    let torn = root.path().join("torn-chains-1.db");
    let left = root.path().join("running/.importing-zz");
    fs::write(&torn, SECRET).unwrap();
    fs::create_dir(&left).unwrap();
    fs::write(left.join("messages.jsonl"), SECRET).unwrap();
    let found = contexts.redactable(id, MATCHES).unwrap();
    assert_eq!(found.removed, [torn.clone(), left.clone()]);
    assert!(torn.exists() && left.exists());
    assert_eq!(contexts.redact(id, MATCHES).unwrap(), found);
    assert!(!torn.exists() && !left.exists());
    clean(&contexts);
}

#[test]
fn a_preview_says_what_would_be_done() {
    let (_root, contexts) = store();
    let id = secretive(&contexts);
    let found = contexts.redactable(id, MATCHES).unwrap();
    let mut done = contexts.redact(id, MATCHES).unwrap();
    assert_eq!(done.tasks[0].event.take(), Some(6));
    assert_eq!(found, done);
}

#[test]
fn a_match_in_the_name_of_a_tool_stays_and_is_counted() {
    let (_root, contexts) = store();
    let (id, dir) = innocent(&contexts);
    let (mut writer, _) = contexts.write(id).unwrap();
    let record = format!(r#"{{"tool":"{SECRET}","args":{{}},"result":"ok"}}"#);
    writer.tool(record.as_bytes()).unwrap();
    contexts.settle(id, &writer).unwrap();
    drop(writer);
    for redaction in [
        contexts.redactable(id, MATCHES).unwrap(),
        contexts.redact(id, MATCHES).unwrap(),
    ] {
        assert!(redaction.is_empty());
        assert_eq!(redaction.left, 1);
    }
    let tools = fs::read_to_string(dir.join("tools.jsonl")).unwrap();
    assert!(tools.contains(SECRET));
}

#[test]
fn a_push_whose_key_was_redacted_is_not_done_twice() {
    let (root, contexts) = store();
    let id = contexts.create(Metadata::default()).unwrap();
    let name = format!("run of {SECRET}");
    let push = |text: &str| {
        let message = say("user", text).into_bytes();
        let mut digest = ContentDigest::default();
        digest.add(&message);
        let key = PushKey::new(&name, digest).expect("a key");
        let mut messages = std::iter::once(message);
        let (mut writer, _) = contexts.write(id).expect("a writer");
        writer.push(Some(&key), &mut || Ok(messages.next()))
    };
    let pushed = push("hello").unwrap();
    contexts.redact(id, MATCHES).unwrap();
    assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
    assert_eq!(push("hello").unwrap(), pushed);
    assert!(matches!(
        push("something else"),
        Err(PushError::OtherContent { .. })
    ));
    assert_eq!(contexts.read(id).unwrap().state().at().seq, 1);
    assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
    clean(&contexts);
}

#[test]
fn names_become_digests_and_stay_so() {
    let (root, contexts) = store();
    let name = format!("about {SECRET}");
    let id = contexts
        .create(Metadata {
            task_source: Some("proxy".to_owned()),
            task_type: Some("named".to_owned()),
            task_id: Some(name.clone()),
            ..Metadata::default()
        })
        .unwrap();
    let mut chains = ChainIndex::open(root.path()).unwrap();
    chains.name(&format!("given {name}"), id).unwrap();
    chains.name("session of somebody", id).unwrap();
    drop(chains);
    let found = contexts.redactable(id, MATCHES).unwrap();
    let done = contexts.redact(id, MATCHES).unwrap();
    // The name in the index, and that in the registry.
    assert_eq!((found.entries, done.entries), (2, 2));
    assert_eq!(holders(root.path()), Vec::<PathBuf>::new());
    let redacted = redacted_name(&name);
    let key = format!("given {redacted}");
    let names = || ChainIndex::open(root.path()).unwrap().names_of(id).unwrap();
    assert_eq!(names(), [key.as_str(), "session of somebody"]);
    assert_eq!(
        contexts.read(id).unwrap().redacted_names().unwrap(),
        [key.as_str()]
    );
    let row = contexts.registry().unwrap().get(id).unwrap().unwrap();
    let metadata = Metadata::read(&contexts.place(id).unwrap()).unwrap();
    assert_eq!(row.task_id.as_deref(), Some(&*redacted));
    assert_eq!(metadata.task_id.as_deref(), Some(&*redacted));
    // The placeholder of a redacted name is not searched, and neither is the prefix that marks the kind of
    // name.
    let word = |text: &str| {
        let found = ["redacted", "given", "session", "proxy"];
        let found = found.iter().flat_map(|word| text.match_indices(word));
        found.map(|(at, hit)| at..at + hit.len()).collect()
    };
    let words = RedactTarget::Matches {
        within: None,
        find: &word,
    };
    assert!(contexts.redact(id, words).unwrap().is_empty());
    assert_eq!(names(), [key.as_str(), "session of somebody"]);
    clean(&contexts);
}
