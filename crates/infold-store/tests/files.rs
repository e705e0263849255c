//! Which files belong to a point of a log.

use infold_log::EventId;
use infold_log::steer::{Side, Target};
use infold_store::{
    CheckpointLine, CheckpointNote, Contexts, Durability, FileCounts, Log, Metadata, Restoration,
    Writer,
};
use uuid::Uuid;

fn say(writer: &mut Writer, text: &str) {
    let user = format!(r#"{{"role":"user","content":"{text}"}}"#);
    let model = format!(r#"{{"role":"assistant","content":"{text}"}}"#);
    writer.append(&[user, model]).expect("appended");
}

fn keep(writer: &mut Writer, number: u64) -> EventId {
    let line = CheckpointLine {
        number,
        workspace: "/w".into(),
        files: FileCounts::default(),
        left_out: 0,
        note: CheckpointNote::Step,
    };
    writer.checkpoint(line).expect("recorded")
}

fn restoration(task: Uuid, from: u64, to: u64) -> Option<Restoration> {
    let at = |number| infold_checkpoint::SnapshotRef { task, number };
    Some(Restoration {
        workspace: "/w".into(),
        from: at(from),
        to: at(to),
        id: format!("{from} to {to}"),
    })
}

/// The number of the snapshot at a target, and zero where none was kept.
fn number(log: &Log, side: Side, target: Target) -> u64 {
    let found = log.files_of(side, target).expect("readable");
    found.map_or(0, |files| files.at.number)
}

#[test]
fn the_files_of_a_point_are_those_last_kept_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let contexts = Contexts::new(dir.path(), Durability::Never);
    let task = contexts.create(Metadata::default()).unwrap();
    let (mut writer, _) = contexts.write(task).unwrap();
    say(&mut writer, "one");
    keep(&mut writer, 1);
    say(&mut writer, "two");
    keep(&mut writer, 2);
    // Back to the first two messages, with their files; what was there is kept before.
    keep(&mut writer, 3);
    let rewind = writer
        .rewind_with(Side::To, Target::Message(2), restoration(task, 3, 1))
        .unwrap();
    let check = |log: &Log| {
        let to = |seq| number(log, Side::To, Target::Message(seq));
        assert_eq!([to(1), to(2), to(3), to(4)], [0, 1, 1, 3]);
        let before = |seq| number(log, Side::Before, Target::Message(seq));
        assert_eq!([before(1), before(3), before(4)], [0, 1, 1]);
        let event = |side, id| number(log, side, Target::Event(id));
        assert_eq!([event(Side::To, 1), event(Side::Before, 1)], [1, 0]);
        assert_eq!([event(Side::To, 2), event(Side::Before, 3)], [2, 2]);
        // The rewind has its files with it.
        assert_eq!(event(Side::To, rewind.get()), 1);
        assert_eq!(event(Side::Before, rewind.get()), 3);
    };
    check(writer.log());
    let restore = writer.log().restore_of(rewind.get()).unwrap().unwrap();
    assert_eq!((restore.from.number, restore.to.number), (3, 1));
    assert!(writer.log().has_restored("3 to 1").unwrap());
    assert!(!writer.log().has_restored("1 to 3").unwrap());
    assert_eq!(writer.log().last_files().unwrap().unwrap().at.number, 1);
    assert_eq!(writer.log().last_checkpoint().unwrap(), 3);
    // It is one step, and nothing that is shown knows of files.
    writer.undo_with(restoration(task, 1, 3)).unwrap();
    assert_eq!(writer.log().state().shown().path()[0].to().get(), 4);
    assert_eq!(writer.redo().unwrap(), rewind);
    assert!(writer.log().restore_of(rewind.get() + 2).unwrap().is_some());
    say(&mut writer, "three");
    keep(&mut writer, 4);
    assert_eq!(number(writer.log(), Side::To, Target::Message(6)), 4);
    drop(writer);
    // The same without the sidecars, and in a fork, which opens its parent for that.
    for name in ["events.idx", "messages.idx", "states.idx"] {
        let _ = std::fs::remove_file(contexts.place(task).unwrap().join(name));
    }
    check(&contexts.read(task).unwrap());
    let fork = contexts.fork(task, None).unwrap();
    let log = contexts.read(fork).unwrap();
    check(&log);
    let last = log.last_files().unwrap().unwrap();
    assert_eq!((last.at.task, last.at.number), (task, 4));
    assert_eq!(log.last_checkpoint().unwrap(), 0);
    let (mut writer, _) = contexts.write(fork).unwrap();
    keep(&mut writer, 1);
    let last = writer.log().last_files().unwrap().unwrap();
    assert_eq!((last.at.task, last.at.number), (fork, 1));
    let mut numbers = Vec::new();
    let all = &mut numbers;
    writer
        .log()
        .each_checkpoint(|files, after, line| {
            all.push((files.at.task == fork, after, line.number));
            true
        })
        .unwrap();
    let own = (true, 6, 1);
    let others = [(false, 6, 4), (false, 4, 3), (false, 4, 2), (false, 2, 1)];
    assert_eq!(numbers, [&[own][..], &others].concat());
}
