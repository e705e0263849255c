//! Every message is found by its words, hidden or not, whatever happens to the index.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use infold_log::{Place, Role, Seq, Span};
use infold_store::{
    Contexts, Durability, Matching, Metadata, Outcome, RedactTarget, SearchAnswer, SearchHit,
    SearchRequest,
};
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

fn store() -> (TempDir, Contexts) {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Never);
    (root, contexts)
}

fn say(role: &str, text: &str) -> String {
    json!({"role": role, "content": text}).to_string()
}

fn task(contexts: &Contexts, messages: &[String]) -> Uuid {
    let task = contexts.create(Metadata::default()).expect("a task");
    append(contexts, task, messages);
    task
}

fn append(contexts: &Contexts, task: Uuid, messages: &[String]) {
    let (mut writer, _) = contexts.write(task).expect("a writer");
    writer.append(messages).expect("messages are taken");
}

fn ask(contexts: &Contexts, text: &str) -> SearchAnswer {
    let request = SearchRequest::new(Matching::Words(text));
    contexts
        .search(&request)
        .expect("a query is never an error")
}

fn seqs(answer: &SearchAnswer) -> Vec<u64> {
    answer.hits.iter().map(|hit| hit.seq.get()).collect()
}

fn found(contexts: &Contexts, text: &str) -> Vec<u64> {
    let answer = ask(contexts, text);
    assert!(answer.coverage.is_complete(), "{:?}", answer.coverage);
    seqs(&answer)
}

fn work() -> Vec<String> {
    let call = |id: &str, name: &str, arguments: serde_json::Value| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"role": "assistant", "content": null,
            "tool_calls": [{"id": id, "type": "function", "function": function}]})
        .to_string()
    };
    let result = |id: &str, text: &str| {
        json!({"role": "tool", "tool_call_id": id, "content": text}).to_string()
    };
    vec![
        say("system", "You are careful."),
        say(
            "user",
            "the login times out after 30 seconds, please fix getUserName",
        ),
        call("c1", "read", json!({"path": "src/auth/login_form.rs"})),
        result("c1", "fn submit(form: &LoginForm) { retry_policy.run() }"),
        call(
            "c2",
            "bash",
            json!({"command": "cargo test -p auth\ngit status"}),
        ),
        result("c2", "test login::slow ... FAILED\nconnection refused"),
        say(
            "assistant",
            "The connection to the staging server was refused.",
        ),
        say("user", "検索機能も直してください 🚀"),
        say("assistant", "Die Verbindungen wurden getrennt."),
    ]
}

#[test]
fn words_identifiers_paths_and_characters_are_found() {
    let (_root, contexts) = store();
    task(&contexts, &work());
    let table: &[(&str, u64)] = &[
        ("getUserName", 2),
        ("user_name", 2),
        ("login seconds", 2),
        ("login_form.rs", 3),
        ("src/auth/login_form.rs", 3),
        ("loginform", 4),
        ("\"git status\"", 5),
        ("FAILED", 6),
        ("検索", 8),
        ("能", 8),
        ("🚀", 8),
        ("verbindung", 9),
        ("stag*", 7),
    ];
    for (query, seq) in table {
        assert_eq!(found(&contexts, query).first(), Some(seq), "{query}");
    }
    assert_eq!(found(&contexts, "\"connection refused\""), [6], "in a row");
    let without = found(&contexts, "connection -staging");
    assert!(without.contains(&6) && !without.contains(&7), "{without:?}");
    assert!(found(&contexts, "unheard").is_empty());
    assert_eq!(ask(&contexts, "unheard of").words, ["unheard"]);
}

#[test]
fn a_hit_says_who_when_and_behind_which_fold() {
    let (_root, contexts) = store();
    let id = task(&contexts, &work());
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let span: Span = "3..6".parse().expect("a span");
    writer
        .condense(span, "looked at the login")
        .expect("a fold");
    drop(writer);
    let answer = ask(&contexts, "refused");
    let hit: &SearchHit = answer
        .hits
        .iter()
        .find(|hit| hit.seq.get() == 6)
        .expect("a hit");
    assert_eq!((hit.task, hit.role), (id, Role::Tool));
    assert!(matches!(hit.place, Place::Under(_)), "{:?}", hit.place);
    assert_eq!(
        hit.snippet.marked("[", "]"),
        "test login::slow ... FAILED connection [refused]"
    );
    let mut request = SearchRequest::new(Matching::Words("refused"));
    request.only_hidden = true;
    let hidden = contexts.search(&request).expect("an answer");
    assert!(hidden.hits.iter().all(|hit| hit.place != Place::Open));
    assert!(seqs(&hidden).contains(&6) && !seqs(&hidden).contains(&7));
}

#[test]
fn hits_are_chosen_by_role_tool_file_and_time() {
    let (_root, contexts) = store();
    let id = task(&contexts, &work());
    let base = || SearchRequest::new(Matching::Words("login connection cargo"));
    let asked = |request: &SearchRequest<'_>| {
        let mut found = seqs(&contexts.search(request).expect("an answer"));
        found.sort_unstable();
        found
    };
    let role = SearchRequest {
        role: Some(Role::User),
        ..base()
    };
    assert_eq!(asked(&role), [2]);
    let tool = SearchRequest {
        tool: Some("Bash".to_owned()),
        ..base()
    };
    assert_eq!(asked(&tool), [5, 6], "the call and its result");
    for file in [
        "login_form.rs",
        "auth/login_form.rs",
        "src/auth/login_form.rs",
    ] {
        let request = SearchRequest {
            file: Some(file.to_owned()),
            ..base()
        };
        assert_eq!(asked(&request), [3, 4], "{file}");
    }
    let later = SearchRequest {
        since: Some(u64::MAX),
        ..base()
    };
    assert!(asked(&later).is_empty());
    let earlier = SearchRequest {
        until: Some(infold_store::now() + 1000),
        ..base()
    };
    assert!(asked(&earlier).contains(&2));
    let one = SearchRequest {
        tasks: Some(vec![id]),
        limit: 1,
        ..base()
    };
    assert_eq!(asked(&one).len(), 1);
}

#[test]
fn an_answer_is_found_by_its_question() {
    let (_root, contexts) = store();
    let talk = [
        say(
            "user",
            "we adopted a puppy, what is a good name for the dog?",
        ),
        say("assistant", "Pretzel!"),
        say("user", "and now to the weather"),
        say("assistant", "It rains."),
    ];
    task(&contexts, &talk);
    assert_eq!(found(&contexts, "name of the puppy")[..2], [1, 2]);
    assert_eq!(found(&contexts, "puppy"), [1], "a word is no question");
}

#[test]
fn a_fork_sees_what_it_continues() {
    let (_root, contexts) = store();
    let parent = task(&contexts, &work());
    let at = infold_log::steer::Target::Message(7);
    let fork = contexts.fork(parent, Some(at)).expect("a fork");
    append(
        &contexts,
        fork,
        &[say("user", "the zeppelin goes another way")],
    );
    append(
        &contexts,
        parent,
        &[say("user", "the parent alone has a zebra")],
    );
    let asked = |text: &'static str| {
        let mut request = SearchRequest::new(Matching::Words(text));
        request.tasks = Some(vec![fork]);
        contexts.search(&request).expect("an answer").hits
    };
    let own = asked("zeppelin");
    assert_eq!((own[0].task, own[0].seq.get()), (fork, 8));
    let inherited = asked("getUserName");
    assert_eq!((inherited[0].task, inherited[0].seq.get()), (fork, 2));
    assert!(asked("zebra").is_empty(), "behind the point of the fork");
    assert!(asked("検索").is_empty(), "behind the point of the fork");
    let everywhere = ask(&contexts, "getUserName");
    assert_eq!(everywhere.hits[0].task, parent, "who holds it");
}

#[test]
fn what_no_index_knows_is_scanned_for() {
    let (_root, contexts) = store();
    task(&contexts, &work());
    let find = |text: &str| {
        let found = text.match_indices("&LoginForm) {");
        found.map(|(at, found)| at..at + found.len()).collect()
    };
    let request = SearchRequest::new(Matching::Find(&find));
    let answer = contexts.search(&request).expect("an answer");
    assert_eq!(seqs(&answer), [4]);
    assert_eq!(
        answer.hits[0].snippet.marked("«", "»"),
        "fn submit(form: «&LoginForm) {» retry_policy.run() }"
    );
    let late = SearchRequest {
        patience: Duration::ZERO,
        ..request
    };
    let answer = contexts.search(&late).expect("an answer");
    assert!(answer.hits.is_empty() && !answer.coverage.is_complete());
}

#[test]
fn strange_queries_are_answered() {
    let (_root, contexts) = store();
    task(&contexts, &work());
    let long = "login ".repeat(2000);
    let queries = [
        "",
        " ",
        "\"",
        "\"\"",
        "\"login",
        "'; DROP TABLE terms; --",
        "login AND OR NOT NEAR(",
        "words : login",
        "terms MATCH 'x'",
        "{a b} : c",
        "^login",
        "login + form",
        "*",
        "-",
        "--",
        "-login",
        "(((",
        "\\",
        "%",
        "\0",
        "\u{202e}login",
        "猫",
        "é",
        "🚀🚀",
        "a",
        "NULL",
        "login\u{0}form",
        &long,
    ];
    for query in queries {
        ask(&contexts, query);
    }
    assert!(!ask(&contexts, &long).hits.is_empty());
    assert!(!ask(&contexts, "login AND OR NOT NEAR(").hits.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every word of a message finds it, and no text is an error.
    #[test]
    fn every_word_of_every_message_finds_it(
        texts in prop::collection::vec("([a-zA-Zäß0-9][a-zA-Zäß0-9_]{0,8}|[ぁ-ん一-龥]{1,4}|[a-z]{2,5}/[a-z]{2,5}\\.rs|🚀)( ([a-zA-Z]{1,9}|[一-龥]{2,3})){0,4}", 1..6),
        wild in any::<String>(),
    ) {
        let (_root, contexts) = store();
        let messages: Vec<String> = texts.iter().map(|text| say("user", text)).collect();
        task(&contexts, &messages);
        ask(&contexts, &wild);
        for (seq, text) in (1..).zip(&texts) {
            for word in text.split(' ') {
                let mut request = SearchRequest::new(Matching::Words(word));
                request.limit = 100;
                let answer = contexts.search(&request).expect("an answer");
                prop_assert!(seqs(&answer).contains(&seq), "{word} in {text}");
            }
        }
    }

    /// An index that grew with the log answers as one that is made at once.
    #[test]
    fn grown_is_rebuilt(cuts in prop::collection::vec(1..9usize, 1..4)) {
        let (root, contexts) = store();
        let id = task(&contexts, &[say("system", "careful")]);
        let messages = work();
        let mut from = 1;
        for cut in cuts {
            let to = (from + cut).min(messages.len());
            append(&contexts, id, &messages[from..to]);
            ask(&contexts, "login");
            from = to;
        }
        let answers = || ["login", "connection refused", "検索", "read"].map(|query| {
            let answer = ask(&contexts, query);
            answer.hits.into_iter().map(|hit| (hit.seq, hit.score)).collect::<Vec<_>>()
        });
        let grown = answers();
        fs::remove_file(root.path().join("search.db")).expect("it is there");
        prop_assert_eq!(grown, answers());
    }
}

static TOLD: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_damaged_or_newer_index_is_made_anew_and_said_once() {
    let (root, contexts) = store();
    let contexts = contexts.telling(|text| {
        assert!(text.contains("search.db"), "{text}");
        TOLD.fetch_add(1, Ordering::Relaxed);
    });
    task(&contexts, &work());
    assert_eq!(found(&contexts, "getUserName"), [2]);
    let path = root.path().join("search.db");
    let damages: [&dyn Fn(); 4] = [
        &|| fs::write(&path, "no database at all, but long enough to be one").expect("written"),
        &|| {
            let mut bytes = fs::read(&path).expect("read");
            let len = bytes.len();
            bytes[4096..len].fill(0x5a);
            fs::write(&path, bytes).expect("written");
        },
        &|| {
            let bytes = fs::read(&path).expect("read");
            fs::write(&path, &bytes[..bytes.len() / 2]).expect("written");
        },
        &|| {
            let db = rusqlite::Connection::open(&path).expect("opened");
            db.pragma_update(None, "user_version", 99).expect("set");
        },
    ];
    for (at, damage) in damages.iter().enumerate() {
        damage();
        assert_eq!(found(&contexts, "getUserName"), [2], "damage {at}");
        assert_eq!(found(&contexts, "getUserName"), [2], "damage {at}");
        assert_eq!(TOLD.load(Ordering::Relaxed), at + 1, "damage {at}");
    }
    let left = fs::read_dir(root.path()).expect("read").flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().contains("torn"));
    assert_eq!(left.count(), 0, "terms of messages are not set aside");
}

#[test]
fn messages_that_a_power_cut_replaced_are_indexed_again() {
    let (_root, contexts) = store();
    let id = task(&contexts, &[say("user", "first"), say("user", "elephant")]);
    assert_eq!(found(&contexts, "elephant"), [2]);
    let dir = contexts.place(id).expect("it is there");
    let path = dir.join("messages.jsonl");
    let text = fs::read_to_string(&path).expect("read");
    let first = text.lines().next().expect("a line").len() + 1;
    fs::write(&path, &text[..first]).expect("written");
    append(
        &contexts,
        id,
        &[say("user", "giraffe"), say("user", "lion")],
    );
    assert_eq!(found(&contexts, "giraffe").first(), Some(&2));
    assert!(!found(&contexts, "elephant").contains(&2));
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("read").flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, found),
            path => found.push(path),
        }
    }
}

/// The files that hold a text.
fn holders(root: &Path, text: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    files(root, &mut all);
    all.retain(|path| {
        let bytes = fs::read(path).expect("read").to_ascii_lowercase();
        bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    });
    all
}

fn filler() -> Vec<String> {
    (0..200)
        .map(|at| say("user", &format!("row {at} of the filler zzyzx{at}")))
        .collect()
}

#[test]
fn what_is_redacted_is_not_in_the_index() {
    let (root, contexts) = store();
    let other = task(&contexts, &filler());
    let secret = say("user", "the password is Hunter2Zebra, do not tell");
    let id = task(
        &contexts,
        &[say("user", "hello"), secret, say("user", "goodbye")],
    );
    assert_eq!(found(&contexts, "hunter2zebra"), [2]);
    assert!(
        !holders(root.path(), "hunter2").is_empty(),
        "the test looks at something"
    );
    let seq = Seq::new(2).expect("a seq");
    contexts
        .redact(id, RedactTarget::Messages(&[Span::one(seq)]))
        .expect("redacted");
    assert_eq!(holders(root.path(), "hunter2"), Vec::<PathBuf>::new());
    assert!(found(&contexts, "hunter2zebra").is_empty());
    assert_eq!(
        found(&contexts, "goodbye"),
        [3],
        "the rest is indexed again"
    );
    let answer = ask(&contexts, "zzyzx7");
    assert_eq!(answer.hits[0].task, other);
}

#[test]
fn a_task_that_is_deleted_or_cleaned_is_not_in_the_index() {
    let (root, contexts) = store();
    task(&contexts, &filler());
    let deleted = task(&contexts, &[say("user", "alligator")]);
    let cleaned = task(&contexts, &[say("user", "buffalo")]);
    assert_eq!(found(&contexts, "alligator buffalo").len(), 2);
    contexts.delete(deleted).expect("deleted");
    assert_eq!(holders(root.path(), "alligator"), Vec::<PathBuf>::new());
    contexts
        .finish(cleaned, &Outcome::Completed)
        .expect("ended");
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    contexts.clean(later, true).expect("cleaned");
    assert_eq!(holders(root.path(), "buffalo"), Vec::<PathBuf>::new());
    assert!(found(&contexts, "alligator buffalo").is_empty());
}

#[test]
fn a_task_whose_directory_a_person_removed_is_forgotten() {
    let (root, contexts) = store();
    task(&contexts, &filler());
    let id = task(&contexts, &[say("user", "chameleon")]);
    assert_eq!(found(&contexts, "chameleon"), [1]);
    fs::remove_dir_all(contexts.place(id).expect("a directory")).expect("removed");
    assert!(found(&contexts, "chameleon").is_empty());
    let deadline = Instant::now() + Duration::from_secs(60);
    contexts.fill_search_index(deadline).expect("filled");
    assert_eq!(holders(root.path(), "chameleon"), Vec::<PathBuf>::new());
}

#[test]
fn an_answer_that_cannot_wait_says_how_far_it_got() {
    let (_root, contexts) = store();
    task(&contexts, &filler());
    let hurried = SearchRequest {
        patience: Duration::ZERO,
        ..SearchRequest::new(Matching::Words("filler"))
    };
    let answer = contexts.search(&hurried).expect("an answer");
    assert!(answer.hits.is_empty());
    assert_eq!(answer.coverage.searched_bytes, 0);
    assert!(answer.coverage.total_bytes > 0 && answer.coverage.stopped.is_some());
    assert_eq!(found(&contexts, "filler").len(), 20);
}

#[test]
fn a_fold_that_is_undone_hides_nothing_from_the_answer() {
    let (_root, contexts) = store();
    let id = task(&contexts, &work());
    let (mut writer, _) = contexts.write(id).expect("a writer");
    writer
        .condense("3..6".parse().expect("a span"), "short")
        .expect("a fold");
    writer.undo().expect("undone");
    drop(writer);
    let answer = ask(&contexts, "FAILED");
    assert_eq!(
        (answer.hits[0].seq.get(), answer.hits[0].place),
        (6, Place::Open)
    );
}
