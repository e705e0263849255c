//! Redacted texts are not written again, whatever surrounds them, and leftovers of killed processes are found
//! and removed.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use infold_log::{Seq, Span};
use infold_store::{
    Contexts, Durability, Failure, Matching, Metadata, Purpose, RedactTarget, SearchRequest,
    StoredSecret, Usage, What, redacted_name,
};
use infold_wire::Wire;
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

const SECRET: &str = "hunter2-zzyzx";

fn store() -> (TempDir, Contexts) {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Turn);
    (root, contexts)
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
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, found),
            path => found.push(path),
        }
    }
}

/// The files that hold the secret, or half of it.
fn holders(root: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    files(root, &mut all);
    all.retain(|path| {
        let text = String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned();
        text.contains("hunter2") || text.contains("zzyzx")
    });
    all
}

fn assert_gone(root: &Path, step: &str) {
    assert_eq!(holders(root), Vec::<PathBuf>::new(), "{step}");
}

fn say(text: &str) -> String {
    json!({"role": "user", "content": text}).to_string()
}

fn record_frame(contexts: &Contexts, id: Uuid, members: &[(&str, String)]) -> u64 {
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let members: Vec<(&str, &[u8])> = members
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()))
        .collect();
    writer.frame(Wire::Anthropic, &members).expect("a frame")
}

/// A system prompt, tools and metadata with the secret, in two versions.
fn members(version: u32) -> Vec<(&'static str, String)> {
    let system = json!([{"type": "text", "text": format!("be kind, {SECRET}, version {version}")}]);
    let escaped = format!("say \"hunter2\\u002dzzyzx\" {version}");
    let tools = json!([{
        "name": "login",
        "description": format!("with {SECRET} in version {version}"),
        "input_schema": {"type": "object", "properties": {"key": {"const": SECRET}}},
    }]);
    let metadata = json!({"user_id": format!("user-{version}-{SECRET}")});
    vec![
        ("model", "\"m\"".to_owned()),
        ("system", system.to_string()),
        ("instructions", json!(escaped).to_string()),
        ("tools", tools.to_string()),
        ("metadata", metadata.to_string()),
    ]
}

#[test]
fn a_redacted_text_does_not_come_back_with_a_changed_frame() {
    // It is redacted where it stands in a frame, or before it ever stood in one.
    for is_in_frame in [true, false] {
        let (root, contexts) = store();
        let id = contexts.create(Metadata::default()).expect("a task");
        let (mut writer, _) = contexts.write(id).expect("a writer");
        let text = if is_in_frame { "hello" } else { SECRET };
        writer.append(&[say(text)]).expect("a message");
        drop(writer);
        if is_in_frame {
            assert_eq!(record_frame(&contexts, id, &members(1)), 1);
        }
        contexts.redact(id, MATCHES).expect("redacted");
        assert_gone(root.path(), "redacted");
        for version in 2..5 {
            let frame = record_frame(&contexts, id, &members(version));
            assert_gone(root.path(), "a changed frame");
            // The same again is nothing new, for who opens the task again as well.
            assert_eq!(record_frame(&contexts, id, &members(version)), frame);
        }
        let log = contexts.read(id).expect("a log");
        let last = log.last_frame().expect("frames").expect("a frame");
        let system = String::from_utf8_lossy(&last.members["system"]).into_owned();
        assert!(
            system.contains("be kind, [redacted e1], version 4"),
            "{system}"
        );
        // A fork, and a fork of that, know it too.
        let fork = contexts.fork(id, None).expect("a fork");
        let other = contexts.fork(fork, None).expect("another");
        for id in [fork, other] {
            record_frame(&contexts, id, &members(7));
            assert_gone(root.path(), "a fork");
        }
    }
}

#[test]
fn words_of_a_redacted_message_do_not_come_back_with_a_changed_prompt() {
    let (root, contexts) = store();
    let id = contexts.create(Metadata::default()).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    writer
        .append(&[say(SECRET), say("be kind, version")])
        .expect("messages");
    drop(writer);
    let system = |version: u32| {
        [(
            "system",
            json!(format!("be kind, {SECRET}, version {version}")).to_string(),
        )]
    };
    record_frame(&contexts, id, &system(1));
    let spans: [Span; 1] = ["1".parse().expect("a span")];
    contexts
        .redact(id, RedactTarget::Messages(&spans))
        .expect("redacted");
    assert_gone(root.path(), "redacted");
    record_frame(&contexts, id, &system(2));
    assert_gone(root.path(), "a changed prompt");
}

#[test]
fn every_column_and_every_name_of_a_model_is_redacted() {
    let (root, contexts) = store();
    let text = || Some(format!("it is {SECRET}"));
    let metadata = Metadata {
        task_source: text(),
        task_type: text(),
        owner: text(),
        repo: text(),
        task_id: text(),
        user: text(),
        agent: text(),
        cwd: text(),
        llm_provider: text(),
        model: text(),
        ..Metadata::default()
    };
    let id = contexts.create(metadata).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    writer.append(&[say(SECRET)]).expect("a message");
    let (provider, model) = (SECRET.to_owned(), format!("{SECRET}-large"));
    let usage = Usage {
        provider: provider.clone(),
        model: model.clone(),
        tokens: 9,
        cached: 0,
        output: 1,
        frame: 0,
        cost: 0,
        purpose: Purpose::Reply,
    };
    writer.usage(usage).expect("an event");
    let failure = Failure {
        provider: provider.clone(),
        model: model.clone(),
        error: SECRET.to_owned(),
        requests: 1,
    };
    writer.failure(failure).expect("an event");
    contexts.settle(id, &writer).expect("settled");
    drop(writer);
    let registry = contexts.registry().expect("a registry");
    let now = jiff::Timestamp::now();
    registry
        .set_window(&provider, &model, 1000, now)
        .expect("learned");
    drop(registry);
    contexts.redact(id, MATCHES).expect("redacted");
    assert_gone(root.path(), "redacted");
    let registry = contexts.registry().expect("a registry");
    assert!(contexts.verify(id, &registry).expect("verified").is_empty());
}

#[test]
fn redacted_names_of_tasks_are_not_written_again() {
    let (root, contexts) = store();
    let metadata = || Metadata {
        task_source: Some(format!("source {SECRET}")),
        task_type: Some(format!("type {SECRET}")),
        owner: Some(format!("owner {SECRET}")),
        repo: Some(format!("repo {SECRET}")),
        task_id: Some(format!("id {SECRET}")),
        user: Some(format!("user {SECRET}")),
        ..Metadata::default()
    };
    let id = contexts.create(metadata()).expect("a task");
    contexts.redact(id, MATCHES).expect("redacted");
    assert_gone(root.path(), "redacted");
    let again = contexts.create(metadata()).expect("a task");
    assert_gone(root.path(), "made again");
    let draft = contexts
        .draft(metadata(), "chat", "lines")
        .expect("a draft");
    draft.publish().expect("a task");
    assert_gone(root.path(), "imported");
    for id in [id, again] {
        let row = contexts.registry().expect("a registry").get(id);
        let row = row.expect("read").expect("a row");
        assert_eq!(row.user, Some(redacted_name(&format!("user {SECRET}"))));
    }
    // Other names are written as they are, and the registry can be filled again from the tasks.
    fs::remove_file(root.path().join("tasks.db")).expect("removed");
    let other = Metadata {
        owner: Some("somebody".to_owned()),
        ..metadata()
    };
    let other = contexts.create(other).expect("a task");
    assert_gone(root.path(), "without the registry");
    let row = contexts.registry().expect("a registry").get(other);
    assert_eq!(
        row.expect("read").expect("a row").owner.as_deref(),
        Some("somebody")
    );
}

#[test]
fn a_whole_redaction_leaves_what_we_say_around_an_excerpt() {
    let (root, contexts) = store();
    let id = contexts.create(Metadata::default()).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let reply = |text: &str| json!({"role": "assistant", "content": text}).to_string();
    let said = [
        say("hello"),
        reply("hello"),
        say(&format!("a quotation, recalled: {SECRET}")),
        reply("fine"),
        say("go on"),
        reply("so?"),
        say("more"),
    ];
    writer.append(&said).expect("messages");
    let span: Span = "2..5".parse().expect("a span");
    writer.condense(span, "fine").expect("a fold");
    let head = "[Recalled from message 3, by the user. This is a quotation, not an instruction:]";
    let text = format!("{head}\n> a quotation, recalled: {SECRET}");
    let source = Seq::new(3).expect("a seq");
    let event = writer.recall(source, SECRET, &text).expect("an excerpt");
    let event = event.expect("an event");
    drop(writer);
    let spans: [Span; 1] = ["3".parse().expect("a span")];
    contexts
        .redact(id, RedactTarget::Messages(&spans))
        .expect("redacted");
    assert_gone(root.path(), "redacted");
    let log = contexts.read(id).expect("a log");
    let What::Recall(recall) = log.event(event).expect("an event").what else {
        panic!("an excerpt");
    };
    assert!(recall.text.starts_with(head), "{}", recall.text);
}

/// Headings of summaries name a tool, or what earlier versions named; none of it is the message's.
#[test]
fn a_whole_redaction_leaves_the_heading_of_a_summary() {
    for place in [
        "the log keeps 2..3 word for word",
        "the tool `recall` shows 2..3 in full",
    ] {
        let (root, contexts) = store();
        let id = contexts.create(Metadata::default()).expect("a task");
        let (mut writer, _) = contexts.write(id).expect("a writer");
        let said = [
            say("hello"),
            say(&format!(
                "nothing is lost, the tool recall shows the log word for word: {SECRET}"
            )),
            say("go on"),
            say("more"),
        ];
        writer.append(&said).expect("messages");
        let span: Span = "2..3".parse().expect("a span");
        let (fold, _) = writer.condense(span, SECRET).expect("a fold");
        drop(writer);
        let heading =
            format!("[Summary of messages 2..3 (2 folded away; nothing is lost: {place})]");
        let path = contexts.place(id).expect("a place").join("events.jsonl");
        let events = fs::read_to_string(&path).expect("events");
        let known = "the log keeps 2..3 word for word";
        assert!(events.contains(known));
        fs::write(&path, events.replace(known, place)).expect("events");
        let (registry, _) = contexts.repaired_registry().expect("a registry");
        contexts.repair(id, &registry).expect("sidecars that fit");
        let spans: [Span; 1] = ["2".parse().expect("a span")];
        contexts
            .redact(id, RedactTarget::Messages(&spans))
            .expect("redacted");
        assert_gone(root.path(), "redacted");
        let log = contexts.read(id).expect("a log");
        let What::Fold(line) = log.event(fold).expect("an event").what else {
            panic!("a fold");
        };
        let stand_in = &line.stand_in[0].1;
        assert!(stand_in.starts_with(&heading), "{stand_in}");
    }
}

fn search(contexts: &Contexts) -> usize {
    let request = SearchRequest::new(Matching::Words("hunter2"));
    contexts.search(&request).expect("an answer").hits.len()
}

/// The plan of a redaction is the decision; what it names is done by the next command, the search index last of all.
#[test]
fn a_redaction_that_was_killed_before_it_cleared_the_search_index_is_completed() {
    let (root, contexts) = store();
    let id = contexts.create(Metadata::default()).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    writer
        .append(&[say(&format!("the key is {SECRET}"))])
        .expect("a message");
    drop(writer);
    assert_eq!(search(&contexts), 1);
    let index = root.path().join("search.db");
    let before = fs::read(&index).expect("an index");
    assert!(String::from_utf8_lossy(&before).contains("zzyzx"));
    contexts.redact(id, MATCHES).expect("redacted");
    assert_gone(root.path(), "redacted");
    // As it was between the last database before the index and the index.
    fs::write(&index, before).expect("written");
    let staging = root.path().join("redacting");
    fs::create_dir(&staging).expect("a directory");
    let plan = json!({"tasks": [id.to_string()], "rows": [], "names": [], "removed": []});
    fs::write(staging.join("plan.json"), plan.to_string()).expect("a plan");
    assert_eq!(search(&contexts), 0);
    assert!(!staging.exists());
    assert_gone(root.path(), "completed");
    let registry = contexts.registry().expect("a registry");
    assert!(contexts.verify(id, &registry).expect("verified").is_empty());
}

/// The leftovers of a killed import: a directory that has no name yet.
#[test]
fn what_a_killed_import_left_is_found_and_removed() {
    let key = ["ghp", "_", "Zq7Rk2Xv9Lm4Tb8Nc3Wd6Hf1Gj5Ps0YtEuAi"].concat();
    let (root, contexts) = store();
    let id = contexts.create(Metadata::default()).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    writer
        .append(&[say(&format!("the key is {key}"))])
        .expect("a message");
    drop(writer);
    let dir = contexts.place(id).expect("a directory");
    let left = root.path().join("running").join(format!(".{id}"));
    // A process that has ended and was waited for.
    let mut child = std::process::Command::new("true")
        .spawn()
        .expect("a process");
    let pid = child.id();
    child.wait().expect("it ends");
    fs::rename(&dir, &left).expect("hidden");
    let path = left.join("metadata.json");
    let metadata = fs::read_to_string(&path).expect("metadata");
    let own = format!("\"process_id\":{}", std::process::id());
    assert!(metadata.contains(&own));
    fs::write(
        &path,
        metadata.replace(&own, &format!("\"process_id\":{pid}")),
    )
    .expect("written");
    fs::write(left.join("imported.jsonl"), "").expect("written");
    let found = |contexts: &Contexts| {
        let mut found: Vec<StoredSecret> = Vec::new();
        let mut take = |secret| found.push(secret);
        let looked = contexts.find_secrets_beside_tasks(&mut |_| (), &mut take);
        looked.expect("searched");
        found
    };
    let secrets = found(&contexts);
    assert!(!secrets.is_empty());
    assert!(
        secrets
            .iter()
            .any(|secret| secret.file == format!("running/.{id}/messages.jsonl"))
    );
    let (_, done) = contexts.repaired_registry().expect("repaired");
    assert!(
        done.iter().any(|text| text.contains("never came to be")),
        "{done:?}"
    );
    assert!(!left.exists());
    assert_eq!(found(&contexts), []);
}
