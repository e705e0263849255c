//! The contents of snapshots, and their restoration.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::Duration;

use infold_checkpoint::{
    ChangeCounts, ChangeKind, CheckpointError, CheckpointSettings, Checkpoints, DiffOptions,
    KeptReason, LeftOutReason, Snapshot, SnapshotRef, WorkspaceProblem,
};

use crate::world::{OTHER_TASK, TASK, World};

fn counts(snapshot: &Snapshot) -> (u64, u64, u64) {
    let ChangeCounts {
        added,
        changed,
        removed,
    } = snapshot.changes;
    (added, changed, removed)
}

#[test]
fn what_has_not_changed_is_no_new_snapshot_and_tasks_share_what_is_the_same() {
    let world = World::new();
    let mut shadow = world.open();
    let empty = shadow.snapshot(TASK, 0).unwrap();
    assert_eq!((empty.is_new, empty.files, empty.at.number), (true, 0, 1));
    world.write("a", "one");
    world.write("b/c", "two");
    let second = shadow.snapshot(TASK, 0).unwrap();
    assert_eq!((second.at.number, counts(&second)), (2, (2, 0, 0)));
    let again = shadow.snapshot(TASK, 0).unwrap();
    assert_eq!((again.at, again.is_new), (second.at, false));
    // Touched is not changed.
    world.write("a", "one");
    assert!(!shadow.snapshot(TASK, 0).unwrap().is_new);
    let other = shadow.snapshot(OTHER_TASK, 0).unwrap();
    assert_eq!(
        (other.at.number, other.is_new, counts(&other)),
        (1, true, (2, 0, 0))
    );
    world.write("a", "changed");
    fs::remove_file(world.workspace.join("b/c")).unwrap();
    let third = shadow.snapshot(OTHER_TASK, 0).unwrap();
    assert_eq!(counts(&third), (0, 1, 1));
    let of_first = shadow.snapshot(TASK, 0).unwrap();
    assert_eq!((of_first.at.number, counts(&of_first)), (3, (0, 1, 1)));
    // A number that the log knows is never given again.
    world.write("a", "once more");
    assert_eq!(shadow.snapshot(TASK, 41).unwrap().at.number, 42);
    let numbers: Vec<_> = shadow.snapshots().map(|at| at.number).collect();
    assert_eq!(numbers, [1, 2, 3, 42, 1, 2]);
}

#[test]
fn what_is_left_out_is_named() {
    let world = World::with_limit(100);
    world.write("large", &"x".repeat(101));
    world.write("small", &"x".repeat(100));
    world.write(".GIT", "no repository");
    let fifo = std::process::Command::new("mkfifo")
        .arg(world.workspace.join("fifo"))
        .status();
    assert!(fifo.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(world.workspace.join("socket")).unwrap();
    let mut shadow = world.open();
    let snapshot = shadow.snapshot(TASK, 0).unwrap();
    let left_out: Vec<_> = snapshot
        .left_out
        .iter()
        .map(|out| (out.path.to_str().unwrap(), out.why, out.size))
        .collect();
    assert_eq!(
        left_out,
        [
            (".GIT", LeftOutReason::Name, None),
            ("fifo", LeftOutReason::Special, None),
            ("large", LeftOutReason::TooLarge, Some(101)),
            ("socket", LeftOutReason::Special, None),
        ]
    );
    assert_eq!(snapshot.files, 1);
    // The size of what is left out changes nothing.
    world.write("large", &"x".repeat(300));
    assert!(!shadow.snapshot(TASK, 0).unwrap().is_new);
}

#[test]
fn some_directories_cannot_be_workspaces() {
    let world = World::new();
    let problem = |path: PathBuf| match world.checkpoints.open(&path) {
        Err(CheckpointError::Workspace { problem, .. }) => problem,
        other => panic!("{path:?}: {other:?}"),
    };
    world.write("file", "");
    world.open();
    assert_eq!(problem("/".into()), WorkspaceProblem::Root);
    assert_eq!(problem(world.home.clone()), WorkspaceProblem::Home);
    assert_eq!(
        problem(world.root.path().into()),
        WorkspaceProblem::AboveHome
    );
    assert_eq!(
        problem(world.contexts.clone()),
        WorkspaceProblem::InContexts
    );
    assert_eq!(
        problem(world.contexts.join("checkpoints")),
        WorkspaceProblem::InContexts
    );
    assert_eq!(
        problem(world.workspace.join("none")),
        WorkspaceProblem::Missing
    );
    assert_eq!(
        problem(world.workspace.join("file")),
        WorkspaceProblem::NotADirectory
    );
    let link = world.root.path().join("link");
    symlink(&world.home, &link).unwrap();
    assert_eq!(problem(link), WorkspaceProblem::Home);
    assert!(
        world
            .checkpoints
            .open_existing(&world.workspace.join("none"))
            .is_err()
    );
    fs::create_dir(world.workspace.join("below")).unwrap();
    let below = world.workspace.join("below");
    assert!(world.checkpoints.open_existing(&below).unwrap().is_none());
}

#[test]
fn contexts_in_the_workspace_are_no_part_of_it() {
    let world = World::new();
    let contexts = world.workspace.join("contexts");
    let checkpoints = Checkpoints::new(&contexts, CheckpointSettings::default());
    world.write("a", "one");
    let mut shadow = checkpoints.open(&world.workspace).unwrap();
    let first = shadow.snapshot(TASK, 0).unwrap();
    assert_eq!(first.files, 1);
    world.write("contexts/messages", "of a task");
    world.write("a", "two");
    shadow.restore("id", TASK, 0, first.at).unwrap();
    assert_eq!(world.read("contexts/messages").unwrap(), "of a task");
    assert_eq!(world.read("a").unwrap(), "one");
}

#[test]
fn who_finds_it_in_use_learns_by_whom() {
    let world = World::new();
    let settings = CheckpointSettings {
        lock_wait: Duration::from_millis(1),
        ..CheckpointSettings::default()
    };
    let shadow = world.open();
    let error = Checkpoints::new(&world.contexts, settings)
        .open(&world.workspace)
        .unwrap_err();
    let expected = format!("are in use by process {}", std::process::id());
    assert!(error.to_string().ends_with(&expected), "{error}");
    drop(shadow);
    world.open();
}

#[test]
fn what_others_change_meanwhile_is_in_a_further_snapshot_or_stays() {
    let world = World::new();
    world.write("changed", "first");
    let mut shadow = world.open();
    let first = shadow.snapshot(TASK, 0).unwrap();
    world.write("changed", "second");
    for name in ["removed", "replaced", "gone"] {
        world.write(name, "is not in the first");
    }
    let prepared = shadow.prepare_restore("id", TASK, 0, first.at).unwrap();
    assert_eq!(prepared.from.at.number, 2);
    assert!(matches!(
        shadow.snapshot(TASK, 0),
        Err(CheckpointError::Unfinished { .. })
    ));
    world.write("changed", "by another, meanwhile");
    world.write("removed", "by another, too");
    world.write("new", "made meanwhile");
    fs::remove_file(world.workspace.join("replaced")).unwrap();
    fs::create_dir(world.workspace.join("replaced")).unwrap();
    fs::remove_file(world.workspace.join("gone")).unwrap();
    // The next process that opens it finishes the restoration.
    drop(shadow);
    let mut shadow = world.open();
    let pending = shadow.pending().unwrap();
    assert_eq!(
        (pending.id.as_str(), pending.task, pending.to),
        ("id", TASK, first.at)
    );
    let restored = shadow.finish_restore().unwrap().unwrap();
    assert_eq!(world.read("changed").unwrap(), "first");
    assert_eq!(world.read("removed").unwrap(), "by another, too");
    assert_eq!(world.read("new").unwrap(), "made meanwhile");
    assert!(world.workspace.join("replaced").is_dir());
    let kept: Vec<_> = restored
        .kept
        .iter()
        .map(|kept| (kept.path.to_str().unwrap(), &kept.why))
        .collect();
    assert_eq!(
        kept,
        [
            ("removed", &KeptReason::Changed),
            ("replaced", &KeptReason::Changed)
        ]
    );
    let [saved] = restored.saved.as_slice() else {
        panic!("{restored:?}");
    };
    assert_eq!(
        (saved.number, restored.overwritten),
        (3, vec![PathBuf::from("changed")])
    );
    let content = shadow.content(*saved, "changed".as_ref()).unwrap();
    assert_eq!(content.unwrap(), b"by another, meanwhile");
    assert_eq!(shadow.finish_restore().unwrap(), None);
}

#[test]
fn what_is_only_prepared_can_be_dropped() {
    let world = World::new();
    world.write("a", "one");
    let mut shadow = world.open();
    let first = shadow.snapshot(TASK, 0).unwrap();
    world.write("a", "two");
    let _ = shadow.prepare_restore("id", TASK, 0, first.at).unwrap();
    shadow.abandon_restore().unwrap();
    assert_eq!(shadow.pending(), None);
    assert_eq!(world.read("a").unwrap(), "two");
    assert!(!shadow.snapshot(TASK, 0).unwrap().is_new);
    let missing = SnapshotRef {
        task: TASK,
        number: 9,
    };
    let error = shadow.prepare_restore("id", TASK, 0, missing).unwrap_err();
    assert!(
        matches!(error, CheckpointError::NoSnapshot { .. }),
        "{error}"
    );
    assert_eq!(shadow.pending(), None);
}

#[test]
fn differences_are_those_that_git_prints() {
    let world = World::new();
    world.write("src/a", "one\ntwo\nthree\n");
    world.write("mode", "same");
    world.write("removed", "removed\n");
    // Neither a driver nor a conversion of the workspace is asked.
    world.write(".gitattributes", "* diff=evil text eol=crlf\n");
    let mut shadow = world.open();
    let first = shadow.snapshot(TASK, 0).unwrap().at;
    world.write("src/a", "one\n2\nthree\n");
    fs::remove_file(world.workspace.join("removed")).unwrap();
    symlink("src/a", world.workspace.join("link")).unwrap();
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(world.workspace.join("mode"), mode).unwrap();
    let second = shadow.snapshot(TASK, 0).unwrap().at;
    let changes = shadow.changes(first, second).unwrap();
    let changes: Vec<_> = changes
        .iter()
        .map(|change| (change.path.to_str().unwrap(), change.kind))
        .collect();
    let mode = ChangeKind::Mode {
        from: 0o644,
        to: 0o600,
    };
    assert_eq!(
        changes,
        [
            ("link", ChangeKind::Added),
            ("mode", mode),
            ("removed", ChangeKind::Removed),
            ("src/a", ChangeKind::Modified),
        ]
    );
    let diff = |options: &DiffOptions| {
        let mut text = Vec::new();
        shadow.diff(first, second, options, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    };
    let options = DiffOptions {
        paths: vec!["src".into()],
        context: Some(0),
        stat: false,
    };
    let text = diff(&options);
    let body: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with("index"))
        .collect();
    assert_eq!(
        body,
        [
            "diff --git a/src/a b/src/a",
            "--- a/src/a",
            "+++ b/src/a",
            "@@ -2 +2 @@ one",
            "-two",
            "+2"
        ]
    );
    assert!(diff(&DiffOptions::default()).contains("deleted file mode 100644"));
    let stat = DiffOptions {
        stat: true,
        ..DiffOptions::default()
    };
    assert!(diff(&stat).contains("3 files changed"), "{}", diff(&stat));
    // From nothing at all.
    fs::remove_dir_all(&world.workspace).unwrap();
    fs::create_dir(&world.workspace).unwrap();
    drop(shadow);
    let mut shadow = world.open();
    let empty = shadow.snapshot(TASK, 0).unwrap().at;
    let mut text = Vec::new();
    shadow
        .diff(empty, second, &DiffOptions::default(), &mut text)
        .unwrap();
    assert!(String::from_utf8(text).unwrap().contains("+++ b/src/a"));
}

#[test]
fn snapshots_stay_few_bytes_and_files_however_many_there_are() {
    let world = World::new();
    for number in 0..40 {
        world.write(
            &format!("d{}/f{number}", number % 4),
            &format!("{number}\n").repeat(50),
        );
    }
    let mut shadow = world.open();
    for round in 0..120 {
        world.write(
            &format!("d{}/f{}", round % 4, round % 40),
            &format!("{round}\n").repeat(60),
        );
        assert!(shadow.snapshot(TASK, 0).unwrap().is_new);
    }
    let packs = fs::read_dir(world.repository().join("objects/pack")).unwrap();
    assert!(packs.count() <= 2 * 52);
    let loose = fs::read_dir(world.repository().join(format!("refs/infold/{TASK}")));
    assert!(loose.map_or(0, |refs| refs.count()) <= 52);
    let compacted = shadow.compact().unwrap();
    assert!(compacted.after < compacted.before, "{compacted:?}");
    for number in [1, 60, 120] {
        let at = SnapshotRef { task: TASK, number };
        let path = format!("d{}/f{}", (number - 1) % 4, (number - 1) % 40);
        let content = shadow.content(at, path.as_ref()).unwrap().unwrap();
        assert_eq!(content, format!("{}\n", number - 1).repeat(60).into_bytes());
    }
}

#[test]
fn the_users_repository_stays_byte_for_byte_as_it_is() {
    let world = World::new();
    world.user_git(&["init", "-q"]);
    world.write("a", "one");
    world.write(".gitignore", "ignored\n");
    world.write("ignored", "not ours");
    world.write(".git/hooks/post-checkout", "#!/bin/sh\nexit 1\n");
    // A program that must not run.
    let evil = world.root.path().join("evil");
    let ran = world.root.path().join("ran");
    fs::write(&evil, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    world.user_git(&["add", "-A"]);
    world.user_git(&["commit", "-qm", "first"]);
    world.user_git(&["config", "core.fsmonitor", evil.to_str().unwrap()]);
    world.user_git(&["config", "diff.external", evil.to_str().unwrap()]);
    world.user_git(&["config", "filter.evil.clean", evil.to_str().unwrap()]);
    world.write(".gitattributes", "* filter=evil diff=evil\n");
    world.write("a", "staged");
    world.user_git(&[
        "-c",
        "core.fsmonitor=false",
        "-c",
        "filter.evil.clean=cat",
        "add",
        "a",
    ]);
    world.write("a", "two");
    let status = [
        "-c",
        "core.fsmonitor=false",
        "-c",
        "filter.evil.clean=cat",
        "status",
        "--porcelain",
    ];
    let said = world.user_git(&status);
    let _ = fs::remove_file(&ran);
    let repository = crate::tree::read_tree(&world.workspace.join(".git"));
    let mut shadow = world.open();
    let first = shadow.snapshot(TASK, 0).unwrap();
    world.write("a", "three");
    world.write("b", "new");
    let _ = shadow.snapshot(TASK, 0).unwrap();
    shadow.restore("id", TASK, 0, first.at).unwrap();
    assert_eq!(
        crate::tree::read_tree(&world.workspace.join(".git")),
        repository
    );
    assert!(!ran.exists());
    assert_eq!(world.user_git(&status), said);
    assert_eq!(world.read("a").unwrap(), "two");
    assert_eq!(world.read("ignored").unwrap(), "not ours");
}
