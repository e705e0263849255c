//! The state of a task whose files were truncated, overwritten or removed at any point.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use infold_log::steer::{Side, Target};
use infold_log::{Floor, Past as _, Point, Seq, Span, State, View};
use infold_store::{
    Access, Contexts, Durability, EventLine, Log, LogError, Metadata, Problem, Repair, TaskDirs,
    Writer,
};
use tempfile::TempDir;
use uuid::Uuid;

type Files = BTreeMap<String, Vec<u8>>;

const MORE: &str = r#"{"role":"user","content":"and so on"}"#;

/// A task that was closed in good order, and what it holds.
struct Task {
    root: TempDir,
    contexts: Contexts,
    id: Uuid,
    files: Files,
    said: Vec<Vec<u8>>,
    state: State,
}

impl Task {
    fn dir(&self) -> PathBuf {
        self.contexts.place(self.id).expect("it has a directory")
    }

    /// The last `count` lines of a file start here.
    fn tail(&self, name: &str, count: usize) -> usize {
        let bytes = &self.files[name];
        let breaks = bytes
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, byte)| **byte == b'\n');
        breaks.map(|(at, _)| at + 1).nth(count).unwrap_or(0)
    }

    /// Puts all files back as they were, but one.
    fn with(&self, name: &str, bytes: Option<&[u8]>) -> PathBuf {
        let mut files = self.files.clone();
        match bytes {
            Some(bytes) => files.insert(name.to_owned(), bytes.to_owned()),
            None => files.remove(name),
        };
        let dir = self.dir();
        put(&dir, &files);
        dir
    }
}

/// Messages, folds, a rewind and an undo, with and without something after them.
fn task() -> Task {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Never);
    let id = contexts.create(Metadata::default()).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let mut said = Vec::new();
    let mut say = |writer: &mut Writer, texts: &[&str]| {
        writer.append(texts).expect("these are messages");
        said.extend(texts.iter().map(|text| text.as_bytes().to_owned()));
    };
    let call = r#"{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"ls","arguments":"{}"}}]}"#;
    let result = r#"{"role":"tool","tool_call_id":"a","content":"x\ud83d","seq":3}"#;
    say(
        &mut writer,
        &[r#"{"role":"user","content":"go"}"#, call, result],
    );
    say(
        &mut writer,
        &[
            r#"{"role":"assistant","content":"done"}"#,
            r#"{"role":"user","content":"more"}"#,
        ],
    );
    writer
        .tool(br#"{"tool":"ls","args":{},"result":"x"}"#)
        .expect("a tool record");
    writer.condense(span(2, 4), "it listed").expect("a fold");
    writer.undo().expect("undone");
    writer.redo().expect("redone");
    say(
        &mut writer,
        &[call, result, r#"{"role":"assistant","content":"again"}"#],
    );
    writer
        .rewind(Side::To, Target::Message(5))
        .expect("rewound");
    say(&mut writer, &[call, result]);
    writer.note("mind this").expect("a note");
    writer.mask(seq(10), 0).expect("masked");
    let (fold, _) = writer.condense(span(2, 4), "once more").expect("a fold");
    writer.note("and this").expect("a note");
    // No earlier state was like the one that comes of it.
    writer.unfold(fold).expect("opened");
    say(&mut writer, &[r#"{"role":"assistant","content":"so"}"#]);
    writer
        .tool(br#"{"tool":"rm","error":"no"}"#)
        .expect("a tool record");
    let state = writer.log().state().clone();
    contexts.settle(id, &writer).expect("counted");
    drop(writer);
    let files = files(&contexts.place(id).expect("it has a directory"));
    Task {
        root,
        contexts,
        id,
        files,
        said,
        state,
    }
}

fn seq(number: u64) -> Seq {
    Seq::new(number).expect("counted from one")
}

fn span(from: u64, to: u64) -> Span {
    Span::new(seq(from), seq(to)).expect("in order")
}

fn files(dir: &Path) -> Files {
    let entries = fs::read_dir(dir).expect("a directory");
    let each = entries.map(|entry| {
        let entry = entry.expect("a file");
        let name = entry.file_name().into_string().expect("a plain name");
        (name, fs::read(entry.path()).expect("its bytes"))
    });
    each.collect()
}

fn put(dir: &Path, files: &Files) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("a file").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a plain name");
        if !files.contains_key(name) {
            fs::remove_file(path).expect("removed");
        }
    }
    for (name, bytes) in files {
        let path = dir.join(name);
        // Most files stay as they are from one case to the next.
        if fs::read(&path).ok().as_ref() != Some(bytes) {
            fs::write(path, bytes).expect("written");
        }
    }
}

fn lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

fn nobody() -> TaskDirs {
    TaskDirs::none()
}

fn read(dir: &Path) -> Log {
    Log::open(dir, Access::Read, &nobody()).expect("a reader").0
}

fn write(dir: &Path) -> (Writer, Vec<Repair>) {
    Writer::open(dir, Durability::Never, &nobody()).expect("a writer")
}

/// The view keeps its rules, and `current.jsonl` is the view.
fn is_valid(log: &Log, what: &str) {
    let shown = log.state().shown();
    let view = View::of(shown, log).expect("a view");
    let floor = Floor::of(shown, log).expect("a floor");
    let verdict = log.check(&view, &floor).expect("a verdict");
    assert_eq!(verdict.faults, [], "{what}");
}

fn is_current(dir: &Path, what: &str) {
    let log = read(dir);
    let view = View::of(log.state().shown(), &log).expect("a view");
    let current = fs::read(dir.join("current.jsonl")).expect("current.jsonl");
    let bytes = log.rendered(&view).expect("a view in bytes");
    assert!(current == bytes, "{what}: current.jsonl is not the view");
}

/// All that is derived is as it would be if it were derived now.
fn is_derived(dir: &Path, what: &str) {
    let before = files(dir);
    let mut bare = before.clone();
    bare.retain(|name, _| {
        !name.ends_with(".idx")
            && !matches!(&**name, "current.jsonl" | "summaries.jsonl" | "tools.jsonl")
    });
    put(dir, &bare);
    drop(write(dir));
    for (name, bytes) in files(dir) {
        assert!(
            before.get(&name) == Some(&bytes),
            "{what}: {name} differs from a new one"
        );
    }
}

/// The bytes of all `torn-*` files for a file.
fn torn(dir: &Path, stem: &str) -> Vec<u8> {
    let prefix = format!("torn-{stem}-");
    let torn = files(dir)
        .into_iter()
        .filter(|(name, _)| name.starts_with(&prefix));
    torn.flat_map(|(_, bytes)| bytes).collect()
}

/// Opens what is left of a log, first to read, then to write, and goes on with it.
fn goes_on(task: &Task, dir: &Path, what: &str) {
    let before = files(dir);
    let log = read(dir);
    is_valid(&log, what);
    let at = log.state().at();
    assert!(files(dir) == before, "{what}: reading changed a file");

    let (mut writer, repairs) = write(dir);
    assert_eq!(
        writer.log().state().at(),
        at,
        "{what}: readers and writers differ"
    );
    is_valid(writer.log(), what);
    is_current(dir, what);
    for (name, stem) in [("messages.jsonl", "messages"), ("events.jsonl", "events")] {
        let kept = fs::read(dir.join(name)).expect("a file of the log");
        assert!(
            task.files[name].starts_with(&kept),
            "{what}: {name} is not a prefix of what was written"
        );
        let torn = torn(dir, stem);
        let reported = repairs
            .iter()
            .any(|repair| matches!(repair, Repair::Torn { name: torn, .. } if *torn == name));
        assert_eq!(reported, !torn.is_empty(), "{what}: {repairs:?}");
        assert!(
            [kept, torn].concat() == before[name],
            "{what}: bytes of {name} vanished"
        );
    }
    assert_eq!(
        at.seq as usize,
        lines(&fs::read(dir.join("messages.jsonl")).expect("messages"))
    );
    for (number, said) in (1..=at.seq).zip(&task.said) {
        assert_eq!(
            &writer.log().message(seq(number)).expect("a message"),
            said,
            "{what}"
        );
    }
    let added = writer.append(&[MORE]).expect("a message").expect("its seq");
    assert_eq!(added.from().get(), at.seq + 1, "{what}");
    writer.note("going on").expect("an event");
    drop(writer);
    is_current(dir, what);
    let (writer, repairs) = write(dir);
    assert_eq!(repairs, [], "{what}");
    assert_eq!(
        writer.log().state().at(),
        Point {
            seq: at.seq + 1,
            event: at.event + 1
        }
    );
    assert_eq!(
        writer.log().message(added.from()).expect("a message"),
        MORE.as_bytes()
    );
    drop(writer);
    is_derived(dir, what);
}

#[test]
fn messages_cut_at_every_byte_reopen_as_a_prefix() {
    let task = task();
    let whole = &task.files["messages.jsonl"];
    for cut in task.tail("messages.jsonl", 5)..=whole.len() {
        let dir = task.with("messages.jsonl", Some(&whole[..cut]));
        let kept = lines(&whole[..cut]);
        assert_eq!(read(&dir).state().at().seq as usize, kept, "cut at {cut}");
        goes_on(&task, &dir, &format!("messages.jsonl cut at {cut}"));
    }
}

#[test]
fn messages_cut_at_every_byte_reopen_without_sidecars_and_after_a_crash() {
    let mut task = task();
    task.files.retain(|name, _| !name.ends_with(".idx"));
    task.files
        .insert("lock".into(), br#"{"pid":1,"host":"gone"}"#.to_vec());
    let whole = task.files["messages.jsonl"].clone();
    for cut in task.tail("messages.jsonl", 3)..=whole.len() {
        let dir = task.with("messages.jsonl", Some(&whole[..cut]));
        goes_on(
            &task,
            &dir,
            &format!("messages.jsonl cut at {cut}, no sidecars"),
        );
    }
}

#[test]
fn events_cut_at_every_byte_reopen_as_a_prefix() {
    let task = task();
    let whole = &task.files["events.jsonl"];
    for cut in task.tail("events.jsonl", 6)..=whole.len() {
        let dir = task.with("events.jsonl", Some(&whole[..cut]));
        assert_eq!(
            read(&dir).state().at().event as usize,
            lines(&whole[..cut]),
            "cut at {cut}"
        );
        goes_on(&task, &dir, &format!("events.jsonl cut at {cut}"));
    }
}

#[test]
fn garbage_at_the_end_of_the_log_is_set_aside() {
    let task = task();
    let fills: [&dyn Fn(usize) -> Vec<u8>; 4] = [
        &|len| vec![0; len],
        &|len| vec![0xff; len],
        &|len| {
            b"{\"role\":\n\n"
                .iter()
                .copied()
                .cycle()
                .take(len)
                .collect()
        },
        &|len| b"\n".repeat(len),
    ];
    for name in ["messages.jsonl", "events.jsonl"] {
        let whole = &task.files[name];
        for (from, fill) in (task.tail(name, 2)..whole.len())
            .step_by(7)
            .flat_map(|from| (0..4).map(move |fill| (from, fill)))
        {
            for len in [whole.len() - from, 4096] {
                let bytes = [&whole[..from], &fills[fill](len)].concat();
                let dir = task.with(name, Some(&bytes));
                goes_on(&task, &dir, &format!("{name} from {from} with fill {fill}"));
            }
        }
    }
}

/// Whatever becomes of a file that follows from the log, the log is what it was, and so is the file.
fn is_restored(task: &Task, name: &str, bytes: Option<&[u8]>, what: &str) -> Vec<Repair> {
    let dir = task.with(name, bytes);
    let before = files(&dir);
    let log = read(&dir);
    assert_eq!(log.state(), &task.state, "{what}: read");
    for event in 1..=log.state().at().event {
        let point = Point {
            seq: log
                .mark(infold_log::EventId::new(event).expect("counted from one"))
                .expect("a mark")
                .after,
            event,
        };
        log.shown(point).expect("what was shown");
    }
    assert!(files(&dir) == before, "{what}: reading changed a file");
    let (writer, repairs) = write(&dir);
    assert_eq!(writer.log().state(), &task.state, "{what}: written");
    is_valid(writer.log(), what);
    drop(writer);
    for (name, bytes) in files(&dir) {
        assert!(
            task.files.get(&name) == Some(&bytes),
            "{what}: {name} is not what it was"
        );
    }
    repairs
}

#[test]
fn sidecars_cut_at_every_byte_are_derived_anew() {
    let task = task();
    for name in ["messages.idx", "events.idx", "states.idx", "current.idx"] {
        let whole = &task.files[name];
        for cut in 0..whole.len() {
            let repairs = is_restored(
                &task,
                name,
                Some(&whole[..cut]),
                &format!("{name} cut at {cut}"),
            );
            assert!(
                !repairs.is_empty(),
                "{name} cut at {cut} was repaired in silence"
            );
        }
        assert!(!is_restored(&task, name, None, name).is_empty());
    }
}

#[test]
fn sidecars_with_a_wrong_byte_anywhere_are_derived_anew() {
    let task = task();
    for name in ["messages.idx", "events.idx", "states.idx", "current.idx"] {
        for at in 0..task.files[name].len() {
            let mut bytes = task.files[name].clone();
            bytes[at] ^= 1 << (at % 8);
            let repairs = is_restored(
                &task,
                name,
                Some(&bytes),
                &format!("{name} with byte {at} flipped"),
            );
            assert!(
                !repairs.is_empty(),
                "{name} with byte {at} flipped was repaired in silence"
            );
        }
    }
}

#[test]
fn sidecars_of_the_right_length_and_wrong_bytes_are_derived_anew() {
    let task = task();
    for name in ["messages.idx", "events.idx", "states.idx", "current.idx"] {
        let len = task.files[name].len();
        for from in (0..len).step_by(11) {
            for fill in [0, 0xff] {
                let mut bytes = task.files[name].clone();
                bytes[from..].fill(fill);
                if bytes != task.files[name] {
                    is_restored(
                        &task,
                        name,
                        Some(&bytes),
                        &format!("{name} filled with {fill} from {from}"),
                    );
                }
            }
        }
        // Something of another run stands behind what is in use.
        let longer = [&task.files[name][..], &task.files[name][16.min(len)..]].concat();
        is_restored(
            &task,
            name,
            Some(&longer),
            &format!("{name} with stale bytes behind it"),
        );
    }
}

#[test]
fn what_is_shown_is_written_anew_wherever_it_was_cut() {
    let task = task();
    for name in ["current.jsonl", "summaries.jsonl", "tools.jsonl"] {
        let whole = &task.files[name];
        for cut in 0..whole.len() {
            let repairs = is_restored(
                &task,
                name,
                Some(&whole[..cut]),
                &format!("{name} cut at {cut}"),
            );
            assert!(repairs.iter().any(
                |repair| matches!(repair, Repair::Rebuilt { name: rebuilt } if *rebuilt == name)
            ));
        }
        is_restored(&task, name, None, name);
        let more = [whole, &b"{\"role\":\"user\"}\n"[..]].concat();
        is_restored(
            &task,
            name,
            Some(&more),
            &format!("{name} with a line too many"),
        );
    }
}

#[test]
fn sidecars_of_another_task_are_not_believed() {
    let (short, long) = (task(), task());
    let dir = long.dir();
    let (mut writer, _) = write(&dir);
    for number in 0..1200 {
        let text = format!(r#"{{"role":"user","content":"{number}"}}"#);
        writer.append(&[text]).expect("a message");
        if number % 40 == 0 {
            writer.note("x").expect("a note");
        }
    }
    drop(writer);
    let others = files(&dir);
    // Many messages too, so that new records are written over old ones while it opens.
    let dir = short.dir();
    let (mut writer, _) = write(&dir);
    let many: Vec<String> = (0..700)
        .map(|number| format!(r#"{{"role":"user","content":"number {number}"}}"#))
        .collect();
    writer.append(&many).expect("messages");
    drop(writer);
    let own = files(&dir);
    for name in ["messages.idx", "events.idx", "states.idx", "current.idx"] {
        let mut mixed = own.clone();
        mixed.insert(name.to_owned(), others[name].clone());
        put(&dir, &mixed);
        assert_eq!(read(&dir).state().at().seq, 711);
        drop(write(&dir));
        assert!(files(&dir) == own, "{name} of another task");
    }
}

#[test]
fn an_event_that_cannot_be_applied_is_not_kept() {
    let task = task();
    let dir = task.dir();
    let (mut writer, _) = write(&dir);
    let good = fs::read(dir.join("events.jsonl")).expect("events");
    fs::write(dir.join("events.jsonl"), vec![b'x'; good.len()]).expect("damaged");
    writer
        .rewind(Side::To, Target::Event(4))
        .expect_err("the past cannot be read");
    let now = fs::read(dir.join("events.jsonl")).expect("events");
    assert_eq!(now.len(), good.len(), "an event that failed was kept");
    fs::write(dir.join("events.jsonl"), &good).expect("restored");
    let at = writer.log().state().at();
    writer.note("on").expect("a note");
    drop(writer);
    let (writer, repairs) = write(&dir);
    assert_eq!(repairs, []);
    assert_eq!(writer.log().state().at().event, at.event + 1);
}

/// Each way to damage a line in the middle of a file.
fn damages(line: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let text = String::from_utf8(line.to_vec()).expect("a line of text");
    vec![
        ("zeros", [vec![0; line.len() - 1], vec![b'\n']].concat()),
        (
            "half of it zeros",
            [&line[..40], &vec![0; line.len() - 41], b"\n"].concat(),
        ),
        ("bytes missing", [&line[..20], &line[60..]].concat()),
        ("its line break missing", line[..line.len() - 1].to_vec()),
        (
            "a line break too many",
            [&line[..30], b"\n", &line[30..]].concat(),
        ),
        (
            "a higher seq",
            text.replacen("\"seq\":4,", "\"seq\":9,", 1).into_bytes(),
        ),
        (
            "a seq far off",
            text.replacen("\"seq\":4,", "\"seq\":4444444444,", 1)
                .into_bytes(),
        ),
        (
            "a lower seq",
            text.replacen("\"seq\":4,", "\"seq\":1,", 1).into_bytes(),
        ),
        ("nothing left", Vec::new()),
    ]
}

#[test]
fn damage_in_the_middle_is_told_with_its_place_and_mended() {
    let clean = task();
    let whole = &clean.files["messages.jsonl"];
    let starts: Vec<usize> = std::iter::once(0)
        .chain(
            whole
                .iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'\n')
                .map(|(at, _)| at + 1),
        )
        .collect();
    // Message 4, which two states hide and others show.
    let (start, end) = (starts[3], starts[4]);
    for (what, line) in damages(&whole[start..end]) {
        let task = task();
        let damaged = [
            &task.files["messages.jsonl"][..start],
            &line,
            &task.files["messages.jsonl"][end..],
        ]
        .concat();
        let dir = task.dir();
        let mut left = task.files.clone();
        left.retain(|name, _| !name.ends_with(".idx"));
        left.insert("messages.jsonl".into(), damaged.clone());
        put(&dir, &left);
        is_told(&task, start as u64, what);
        is_mended(&task, &damaged, what);
    }
}

fn is_told(task: &Task, start: u64, what: &str) {
    let dir = task.dir();
    let told = |error: LogError| match error {
        LogError::Damaged { path, at, .. } => assert!(
            path.ends_with("messages.jsonl") && at == start,
            "{what}: {} at {at}",
            path.display()
        ),
        other => panic!("{what}: {other}"),
    };
    told(Log::open(&dir, Access::Read, &nobody()).expect_err(what));
    match Writer::open(&dir, Durability::Never, &nobody()).expect_err(what) {
        infold_store::OpenError::Log(error) => told(error),
        other => panic!("{what}: {other}"),
    }
    let registry = task.contexts.registry().expect("a registry");
    let problems = task.contexts.verify(task.id, &registry).expect("a verdict");
    assert!(
        matches!(&problems[..], [Problem::Damaged(_)]),
        "{what}: {problems:?}"
    );
}

fn is_mended(task: &Task, damaged: &[u8], what: &str) {
    let dir = task.dir();
    let registry = task.contexts.registry().expect("a registry");
    let done = task.contexts.repair(task.id, &registry).expect(what);
    assert!(
        done.iter().any(|done| done.contains("damaged")),
        "{what}: {done:?}"
    );
    assert_eq!(
        torn(&dir, "messages"),
        damaged,
        "{what}: the damaged file is kept"
    );
    let problems = task.contexts.verify(task.id, &registry).expect("a verdict");
    assert!(problems.is_empty(), "{what}: {problems:?}");
    let log = task.contexts.read(task.id).expect("a reader");
    assert_eq!(log.state().at(), task.state.at(), "{what}");
    for (number, said) in (1..).zip(&task.said) {
        // Where a line break was lost, the message behind it went with it.
        let lost = number == 4 || number == 5 && what == "its line break missing";
        let text = log.message(seq(number)).expect("a message");
        match lost {
            true => assert!(
                text.starts_with(br#"{"role":"user","content":"[message "#),
                "{what}: {}",
                String::from_utf8_lossy(&text)
            ),
            false => assert_eq!(&text, said, "{what}: message {number}"),
        }
    }
    assert!(task.root.path().is_dir());
}

#[test]
fn damaged_events_are_mended_and_no_message_is_lost() {
    let clean = task();
    let whole = &clean.files["events.jsonl"];
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let last = lines
        .iter()
        .rposition(|line| EventLine::decode(line).is_ok())
        .expect("an event");
    assert!(last > 4);
    for at in 0..last {
        let line = lines[at];
        let damages: [(&str, Vec<u8>); 4] = [
            ("zeros", [vec![0; line.len() - 1], b"\n".to_vec()].concat()),
            ("half a line", [&line[..line.len() / 2], b"\n"].concat()),
            ("nothing left", Vec::new()),
            (
                "a broken number",
                [b"{\"id\":7777777777,", &line[8..]].concat(),
            ),
        ];
        for (what, damage) in damages {
            let task = task();
            let what = format!("event {}: {what}", at + 1);
            let damaged = [lines[..at].concat(), damage, lines[at + 1..].concat()].concat();
            let dir = task.dir();
            let mut left = task.files.clone();
            left.retain(|name, _| !name.ends_with(".idx"));
            left.insert("events.jsonl".into(), damaged.clone());
            put(&dir, &left);
            let registry = task.contexts.registry().expect("a registry");
            let problems = task.contexts.verify(task.id, &registry).expect("a verdict");
            assert!(!problems.is_empty(), "{what}");
            let done = task.contexts.repair(task.id, &registry).expect(&what);
            assert!(
                done.iter().any(|done| done.contains("damaged event")),
                "{what}: {done:?}"
            );
            assert_eq!(
                torn(&dir, "events"),
                damaged,
                "{what}: the damaged file is kept"
            );
            let problems = task.contexts.verify(task.id, &registry).expect("a verdict");
            assert!(problems.is_empty(), "{what}: {problems:?}");
            let log = task.contexts.read(task.id).expect("a reader");
            assert_eq!(log.state().at(), task.state.at(), "{what}");
            for (number, said) in (1..).zip(&task.said) {
                assert_eq!(
                    &log.message(seq(number)).expect("a message"),
                    said,
                    "{what}"
                );
            }
            let (mut writer, _) = task
                .contexts
                .write(task.id)
                .expect("it can be gone on with");
            writer
                .append(&[r#"{"role":"user","content":"on"}"#])
                .expect("a message");
        }
    }
}

#[test]
fn damaged_events_are_told_with_their_place() {
    let task = task();
    let whole = &task.files["events.jsonl"];
    let start = whole
        .iter()
        .position(|byte| *byte == b'\n')
        .expect("a line")
        + 1;
    let mut bytes = whole.clone();
    bytes[start + 3] = 0;
    let dir = task.with("events.jsonl", Some(&bytes));
    for name in ["events.idx", "states.idx"] {
        fs::remove_file(dir.join(name)).expect("removed");
    }
    let error = Log::open(&dir, Access::Read, &nobody()).expect_err("it is damaged");
    assert!(
        matches!(&error, LogError::Damaged { path, at, .. } if path.ends_with("events.jsonl") && *at == start as u64),
        "{error}"
    );
    assert!(EventLine::decode(&bytes[start..]).is_err());
}

#[test]
fn a_line_that_could_not_be_written_is_caught_up_with() {
    let task = task();
    let dir = task.dir();
    let path = dir.join("tools.jsonl");
    let (mut writer, _) = write(&dir);
    let record = |writer: &mut Writer| writer.tool(br#"{"tool":"cp"}"#).expect("a record");
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("nothing can be written there");
    assert_eq!(record(&mut writer), 3);
    fs::remove_dir(&path).expect("removed");
    assert_eq!(record(&mut writer), 4);
    let bytes = fs::read(&path).expect("tools.jsonl");
    assert_eq!(lines(&bytes), 4);
    assert!(bytes.starts_with(&task.files["tools.jsonl"]));
    drop(writer);
    is_derived(&dir, "tools.jsonl");
}
