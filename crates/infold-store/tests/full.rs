//! A disk that is really full, and then is not.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use infold_log::{Floor, Seq, View};
use infold_store::{
    AppendError, Contexts, Durability, Filter, LogError, Matching, Metadata, SearchRequest,
    StepError, ToolError, Writer,
};
use tempfile::TempDir;

/// A small file system in memory.
struct Disk {
    dir: TempDir,
}

impl Disk {
    /// Mounts one, where that is allowed.
    fn mount(size: &str) -> Option<Disk> {
        let dir = tempfile::tempdir().expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]);
        let mounted = mount.arg(dir.path()).output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then_some(Disk { dir })
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Takes all the space there is.
    fn fill(&self) {
        let mut filler = File::create(self.path().join("filler")).expect("a file");
        for size in [4096, 1] {
            while filler.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Gives the space back. To remove the file is not enough: a process that another test is just
    /// starting has a copy of its descriptor for a moment, and with it the space.
    fn free(&self) {
        let filler = self.path().join("filler");
        let file = File::options().write(true).open(&filler);
        file.and_then(|file| file.set_len(0)).expect("emptied");
        fs::remove_file(filler).expect("removed");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.dir.path())
            .status();
    }
}

fn text(number: u64) -> String {
    let role = if number % 2 == 1 { "user" } else { "assistant" };
    let length = number as usize * 37 % 1500;
    format!(
        r#"{{"role":"{role}","content":"{number} {}"}}"#,
        "x".repeat(length)
    )
}

/// Appends until there is no space; returns how many were acknowledged.
///
/// The view grows with what is appended, or stays as it was.
fn append_until_full(writer: &mut Writer) -> u64 {
    let current = writer.log().dir().join("current.jsonl");
    let mut shown = 0;
    loop {
        let size = fs::metadata(&current).map_or(0, |meta| meta.len());
        assert!(size >= shown, "{size} bytes are shown, and were {shown}");
        shown = size;
        let at = writer.log().state().at();
        match writer.append(&[text(at.seq + 1)]) {
            Ok(span) => assert_eq!(span.expect("a seq").from().get(), at.seq + 1),
            Err(AppendError::Log(LogError::Full { .. })) => {
                assert_eq!(writer.log().state().at(), at);
                return at.seq;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Makes steps until there is no space.
fn step_until_full(writer: &mut Writer) {
    loop {
        let at = writer.log().state().at();
        match step(writer, at.event % 3) {
            Ok(()) => assert_eq!(writer.log().state().at().event, at.event + 1),
            Err(StepError::Past(LogError::Full { .. })) => {
                assert_eq!(writer.log().state().at(), at);
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn record(number: u64) -> Vec<u8> {
    let result = "r".repeat(number as usize * 61 % 900);
    format!(r#"{{"tool":"ls","result":"{result}"}}"#).into_bytes()
}

fn step(writer: &mut Writer, kind: u64) -> Result<(), StepError> {
    match kind {
        0 => match writer.truncate(0.5) {
            Err(StepError::Nothing { .. }) => step(writer, 1),
            other => other.map(drop),
        },
        1 => Ok(writer.note(&"n".repeat(300)).map(drop)?),
        _ => match writer.tool(&record(writer.log().state().at().event)) {
            Err(ToolError::Log(error)) => Err(error.into()),
            other => {
                other.expect("a tool record");
                Ok(())
            }
        },
    }
}

#[test]
fn a_writer_goes_on_when_there_is_space_again() {
    for durability in [Durability::Never, Durability::Turn, Durability::Always] {
        let Some(disk) = Disk::mount("4m") else {
            println!("skipped: nothing can be mounted here");
            return;
        };
        let contexts = Contexts::new(disk.path(), durability);
        let id = contexts.create(Metadata::default()).expect("a task");
        let (mut writer, _) = contexts.write(id).expect("a writer");
        writer
            .append(&(1..=20).map(text).collect::<Vec<_>>())
            .expect("messages");
        for round in 0..4 {
            disk.fill();
            match round % 2 {
                0 => step_until_full(&mut writer),
                _ => drop(append_until_full(&mut writer)),
            }
            let last = append_until_full(&mut writer);
            step_until_full(&mut writer);
            let bytes = fs::read(writer.log().dir().join("messages.jsonl")).expect("messages");
            assert_eq!(
                bytes.iter().filter(|byte| **byte == b'\n').count() as u64,
                last
            );
            assert_eq!(bytes.last(), Some(&b'\n'), "nothing is half written");
            // Readers can look at it meanwhile.
            let log = contexts.read(id).expect("a reader");
            assert_eq!(log.state(), writer.log().state());
            disk.free();
            writer
                .append(&[text(last + 1)])
                .expect("there is space again");
            writer
                .tool(br#"{"tool":"ls","result":"y"}"#)
                .expect("there is space again");
            is_whole(&contexts.read(id).expect("a reader"), last + 1);
        }
        contexts.settle(id, &writer).expect("counted");
        drop(writer);
        let registry = contexts.registry().expect("a registry");
        let problems = contexts.verify(id, &registry).expect("a verdict");
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn a_file_that_could_not_be_derived_is_made_up_for() {
    for is_free_before_the_end in [true, false] {
        let dir = tempfile::tempdir().expect("a directory");
        let contexts = Contexts::new(dir.path(), Durability::Turn);
        let id = contexts.create(Metadata::default()).expect("a task");
        let (mut writer, _) = contexts.write(id).expect("a writer");
        writer.tool(&record(1)).expect("a record");
        // A directory in its place: nothing can be appended.
        let tools = writer.log().dir().join("tools.jsonl");
        fs::remove_file(&tools).expect("removed");
        fs::create_dir(&tools).expect("a directory");
        writer.tool(&record(2)).expect("the log has it");
        if is_free_before_the_end {
            fs::remove_dir(&tools).expect("removed");
        }
        contexts.settle(id, &writer).expect("counted");
        drop(writer);
        if !is_free_before_the_end {
            fs::remove_dir(&tools).expect("removed");
        }
        let is_sound = || {
            let registry = contexts.registry().expect("a registry");
            let problems = contexts.verify(id, &registry).expect("a verdict");
            assert!(problems.is_empty(), "{problems:?}");
        };
        is_sound();
        drop(contexts.write(id).expect("a writer"));
        is_sound();
        let lines = fs::read_to_string(&tools).expect("the file");
        assert_eq!(lines.lines().count(), 2);
    }
}

#[test]
fn a_task_closed_on_a_full_disk_opens_when_there_is_space_again() {
    let Some(disk) = Disk::mount("4m") else {
        println!("skipped: nothing can be mounted here");
        return;
    };
    let contexts = Contexts::new(disk.path(), Durability::Turn);
    let id = contexts.create(Metadata::default()).expect("a task");
    for _ in 0..4 {
        let (mut writer, _) = contexts.write(id).expect("a writer");
        writer
            .tool(br#"{"tool":"ls","result":"y"}"#)
            .expect("there is space");
        disk.fill();
        step_until_full(&mut writer);
        let last = append_until_full(&mut writer);
        let _ = contexts.settle(id, &writer);
        drop(writer);
        is_whole(&contexts.read(id).expect("a reader"), last);
        disk.free();
    }
    let (mut writer, _) = contexts.write(id).expect("a writer");
    writer.note("on").expect("a note");
    contexts.settle(id, &writer).expect("counted");
    drop(writer);
    let registry = contexts.registry().expect("a registry");
    let problems = contexts.verify(id, &registry).expect("a verdict");
    assert!(problems.is_empty(), "{problems:?}");
}

/// Lets some time pass; says that what was waited for is not so.
fn pause() -> bool {
    std::thread::sleep(Duration::from_millis(100));
    false
}

/// Every message up to `last` is there, and the view keeps its rules.
fn is_whole(log: &infold_store::Log, last: u64) {
    assert_eq!(log.state().at().seq, last);
    for number in 1..=last {
        let seq = Seq::new(number).expect("counted from one");
        assert_eq!(
            log.message(seq).expect("a message"),
            text(number).as_bytes()
        );
    }
    let shown = log.state().shown();
    let view = View::of(shown, log).expect("a view");
    let verdict = log.check(&view, &Floor::of(shown, log).expect("a floor"));
    assert_eq!(verdict.expect("a verdict").faults, []);
}

#[test]
fn what_may_not_be_written_can_be_looked_at() {
    let Some(disk) = Disk::mount("4m") else {
        eprintln!("skipped: no file system can be mounted here");
        return;
    };
    let contexts = Contexts::new(disk.path(), Durability::Turn);
    let id = contexts.create(Metadata::default()).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    writer.append(&[text(1), text(2)]).expect("messages");
    contexts.settle(id, &writer).expect("counted");
    drop(writer);
    let known = contexts.rows(&Filter::default()).expect("rows");
    // While another test starts a process, that has copies of the files that were open.
    let is_read_only = || {
        let mut remount = Command::new("mount");
        let remounted = remount.args(["-o", "remount,ro"]).arg(disk.path()).status();
        remounted.expect("mount runs").success()
    };
    assert!((0..600).any(|_| is_read_only() || pause()));
    let rows = contexts.rows(&Filter::default()).expect("rows, read only");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].counters, known[0].counters);
    assert_eq!(contexts.row(id).expect("a row"), Some(rows[0].clone()));
    assert_eq!(contexts.read(id).expect("a reader").state().at().seq, 2);
    let problems = contexts.verify(id, None).expect("a verdict");
    assert!(problems.is_empty(), "{problems:?}");
    assert!(contexts.write(id).is_err());
}

#[test]
fn a_search_on_a_full_disk_answers_with_what_there_is() {
    let Some(disk) = Disk::mount("4m") else {
        return;
    };
    let contexts = Contexts::new(disk.path(), Durability::Turn);
    let say = |text: &str| format!(r#"{{"role":"user","content":"{text}"}}"#);
    let new_task = |text: String| {
        let task = contexts.create(Metadata::default()).expect("a task");
        let (mut writer, _) = contexts.write(task).expect("a writer");
        writer.append(&[text]).expect("there is space");
    };
    let ask = |text: &'static str| {
        let request = SearchRequest::new(Matching::Words(text));
        contexts.search(&request).expect("an answer")
    };
    new_task(say("elephant"));
    assert_eq!(ask("elephant").hits.len(), 1);
    let words: Vec<String> = (0..20_000).map(|at| format!("word{at}")).collect();
    new_task(say(&format!("giraffe {}", words.join(" "))));
    disk.fill();
    assert_eq!(ask("elephant").hits.len(), 1, "it was indexed before");
    let answer = ask("giraffe");
    assert_eq!(answer.hits.is_empty(), !answer.coverage.is_complete());
    disk.free();
    let answer = ask("giraffe");
    assert_eq!((answer.hits.len(), answer.coverage.stopped), (1, None));
}
