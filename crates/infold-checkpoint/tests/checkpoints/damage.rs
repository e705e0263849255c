//! Shadow repositories that are damaged.

use std::fs;
use std::path::{Path, PathBuf};

use infold_checkpoint::{CheckpointError, CheckpointSettings, Checkpoints, KeptReason};

use crate::world::{OTHER_TASK, TASK, World};

fn objects_in(repository: &Path) -> Vec<PathBuf> {
    let packs = fs::read_dir(repository.join("objects/pack")).unwrap();
    let packs = packs.map(|entry| entry.unwrap().path());
    packs
        .filter(|path| path.extension().is_some_and(|end| end == "pack"))
        .collect()
}

fn truncate(path: &Path) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len(20).unwrap();
}

#[test]
fn a_damaged_repository_is_set_aside_and_made_anew_and_numbers_go_on() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 2] = [
        ("objects", |repository| {
            objects_in(repository)
                .iter()
                .for_each(|pack| truncate(pack));
        }),
        ("no objects", |repository| {
            fs::remove_dir_all(repository.join("objects")).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let world = World::new();
        world.write("a", "one");
        let mut shadow = world.open();
        shadow.snapshot(TASK, 0).unwrap();
        world.write("a", "two");
        shadow.snapshot(TASK, 0).unwrap();
        drop(shadow);
        damage(&world.repository());
        world.write("a", "three");
        let mut shadow = world.open();
        let third = shadow.snapshot(TASK, 0).unwrap();
        assert!(third.is_new, "{name}");
        assert_eq!(third.at.number, 3, "{name}");
        let warning = shadow
            .warning()
            .unwrap_or_else(|| panic!("{name}: no warning"));
        assert!(warning.contains("set aside in"), "{warning}");
        drop(shadow);
        assert_eq!(world.info().set_aside.len(), 1, "{name}");
        let mut shadow = world.open();
        assert_eq!(shadow.warning(), None, "{name}: said twice");
        world.write("a", "four");
        shadow.restore("id", TASK, 0, third.at).unwrap();
        assert_eq!(world.read("a").unwrap(), "three", "{name}");
    }
}

#[test]
fn damage_beside_the_objects_costs_one_checkpoint_at_most() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage, bool); 5] = [
        (
            "a ref",
            |repository| {
                let name = format!("refs/infold/{TASK}/2");
                fs::write(repository.join(name), "garbage\n").unwrap();
            },
            true,
        ),
        (
            "an empty ref",
            |repository| {
                let name = format!("refs/infold/{TASK}/2");
                fs::write(repository.join(name), "").unwrap();
            },
            true,
        ),
        (
            "a directory in the place of a ref",
            |repository| {
                let path = repository.join(format!("refs/infold/{TASK}/2"));
                fs::remove_file(&path).unwrap();
                fs::create_dir(&path).unwrap();
            },
            true,
        ),
        (
            "its head",
            |repository| fs::remove_file(repository.join("HEAD")).unwrap(),
            false,
        ),
        (
            "its configuration",
            |repository| {
                fs::write(repository.join("config"), "\0\0\0").unwrap();
            },
            false,
        ),
    ];
    for (name, damage, is_lost) in damages {
        let world = World::new();
        world.write("a", "one");
        let mut shadow = world.open();
        let first = shadow.snapshot(TASK, 0).unwrap();
        world.write("a", "two");
        let second = shadow.snapshot(TASK, 0).unwrap();
        drop(shadow);
        damage(&world.repository());
        let mut shadow = world.open();
        let warning = shadow.warning().map(str::to_owned);
        let warning = warning.unwrap_or_else(|| panic!("{name}: no warning"));
        assert_eq!(
            warning.contains("checkpoint 2 of task"),
            is_lost,
            "{warning}"
        );
        world.write("a", "three");
        let third = shadow.snapshot(TASK, 0).unwrap();
        assert_eq!(third.at.number, 3, "{name}");
        shadow.restore("id", TASK, 0, first.at).unwrap();
        assert_eq!(world.read("a").unwrap(), "one", "{name}");
        assert_eq!(
            shadow.restore("again", TASK, 0, second.at).is_err(),
            is_lost,
            "{name}"
        );
        drop(shadow);
        assert_eq!(world.open().warning(), None, "{name}: said twice");
    }
}

#[test]
fn a_comparison_leaves_nothing() {
    let world = World::new();
    world.write("a", "one");
    let mut shadow = world.open();
    let first = shadow.snapshot(TASK, 0).unwrap();
    let before = objects_of(&world);
    world.write("a", "a secret that is there for a moment");
    let now = shadow.passing_snapshot().unwrap();
    assert_eq!(shadow.changes(first.at, now).unwrap().len(), 1);
    shadow.drop_passing().unwrap();
    assert_eq!(objects_of(&world), before);
    assert_eq!(shadow.snapshots().count(), 1);
    // The leftovers of a killed comparison are removed when the checkpoints are next opened.
    shadow.passing_snapshot().unwrap();
    drop(shadow);
    assert_eq!(world.open().snapshots().count(), 1);
    assert_eq!(objects_of(&world), before);
    assert!(world.open().snapshot(TASK, 0).unwrap().is_new);
}

#[test]
fn a_removal_that_was_cut_off_is_completed_by_the_next() {
    let world = World::new();
    world.write("a", "one");
    let mut shadow = world.open();
    shadow.snapshot(TASK, 0).unwrap();
    world.write("a", "two");
    shadow.snapshot(OTHER_TASK, 0).unwrap();
    drop(shadow);
    let directory = world.info().directory;
    // Killed before the objects were packed away.
    let name = format!("refs/infold/{TASK}");
    fs::remove_dir_all(world.repository().join(name)).unwrap();
    fs::write(directory.join("unpacked"), "").unwrap();
    let objects = objects_of(&world).len();
    world.checkpoints.forget(&[]).unwrap();
    assert!(objects_of(&world).len() < objects);
    assert!(!directory.join("unpacked").exists());
    // Killed while the directory was removed.
    let hidden = directory.with_extension("removed");
    fs::rename(&directory, &hidden).unwrap();
    fs::remove_file(hidden.join("workspace")).unwrap();
    assert_eq!(world.checkpoints.all().unwrap(), []);
    world.checkpoints.forget(&[]).unwrap();
    assert!(!hidden.exists());
}

/// Returns the ids of all objects, whatever refers to them.
fn objects_of(world: &World) -> Vec<String> {
    let listed = std::process::Command::new("git")
        .arg("--git-dir")
        .arg(world.repository())
        .args([
            "cat-file",
            "--batch-check=%(objectname)",
            "--batch-all-objects",
            "--unordered",
        ])
        .output()
        .expect("git is there");
    let mut ids: Vec<String> = String::from_utf8_lossy(&listed.stdout)
        .lines()
        .map(str::to_owned)
        .collect();
    ids.sort();
    ids
}

#[test]
fn derived_files_and_leftovers_that_make_no_sense_change_nothing() {
    for garbage in [&b""[..], b"garbage", &[0; 5000]] {
        let world = World::new();
        world.write("a", "one");
        let first = world.open().snapshot(TASK, 0).unwrap();
        let directory = world.info().directory;
        fs::write(directory.join("files.idx"), garbage).unwrap();
        fs::write(directory.join("lock"), "process 1").unwrap();
        let repository = world.repository();
        fs::write(repository.join("packed-refs.lock"), "").unwrap();
        let of_task = repository.join(format!("refs/infold/{TASK}"));
        fs::write(of_task.join("2.lock"), "").unwrap();
        let mut shadow = world.open();
        assert_eq!(shadow.warning(), None);
        assert!(!shadow.snapshot(TASK, 0).unwrap().is_new);
        world.write("a", "two");
        assert_eq!(shadow.snapshot(TASK, 0).unwrap().at.number, 2);
        shadow.restore("id", TASK, 0, first.at).unwrap();
        assert_eq!(world.read("a").unwrap(), "one");
    }
}

#[test]
fn what_a_damaged_snapshot_cannot_give_back_is_not_removed() {
    let world = World::new();
    world.write("kept", "of this there is one copy alone");
    world.write("overwritten", "of this, too");
    let mut shadow = world.open();
    let all = shadow.snapshot(TASK, 0).unwrap();
    drop(shadow);
    let first_pack = objects_in(&world.repository()).remove(0);
    fs::remove_file(world.workspace.join("kept")).unwrap();
    fs::write(world.workspace.join("overwritten"), "another").unwrap();
    let mut shadow = world.open();
    let without = shadow.snapshot(TASK, 0).unwrap();
    shadow.restore("id", TASK, 0, all.at).unwrap();
    // The trees stay readable, the contents do not.
    let bytes = fs::read(&first_pack).unwrap();
    let prepared = shadow.prepare_restore("id", TASK, 0, without.at).unwrap();
    assert!(!prepared.from.is_new || prepared.from.at.number > 2);
    let blobs = world.held(all.at);
    assert_eq!(blobs.len(), 2);
    corrupt_blobs(&world, &first_pack, &bytes);
    let restored = shadow.finish_restore();
    let kept = world.read("kept");
    assert_eq!(
        kept.as_deref(),
        Some("of this there is one copy alone"),
        "{restored:?}"
    );
    assert_eq!(
        world.read("overwritten").as_deref(),
        Some("of this, too"),
        "{restored:?}"
    );
    match restored {
        Ok(Some(restored)) => {
            let damaged = restored
                .kept
                .iter()
                .filter(|kept| kept.why == KeptReason::Damaged);
            assert_eq!(damaged.count(), 2, "{restored:?}");
        }
        Ok(None) => panic!("it was prepared"),
        Err(error) => assert!(matches!(error, CheckpointError::Damaged { .. }), "{error}"),
    }
    drop(shadow);
    let mut shadow = world.open();
    assert!(
        shadow
            .warning()
            .is_some_and(|warning| warning.contains("set aside"))
    );
    assert_eq!(shadow.pending(), None);
    let again = shadow.snapshot(TASK, 0).unwrap();
    assert_eq!(again.files, 2);
}

/// Damages the compressed bytes of all blobs in a pack, which git lists with their places.
fn corrupt_blobs(world: &World, pack: &Path, bytes: &[u8]) {
    let listed = crate::world::run_git(
        &world.repository(),
        &world.home,
        &[
            "verify-pack",
            "-v",
            pack.with_extension("idx").to_str().unwrap(),
        ],
    );
    let mut damaged = bytes.to_owned();
    for line in String::from_utf8(listed).unwrap().lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        if let [_, "blob", size, _, offset, ..] = fields.as_slice()
            && size.parse::<usize>().unwrap() < 100
        {
            let offset: usize = offset.parse().unwrap();
            // Behind the header of the object and that of its stream.
            for byte in &mut damaged[offset + 4..offset + 8] {
                *byte ^= 0x55;
            }
        }
    }
    fs::set_permissions(pack, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    fs::write(pack, damaged).unwrap();
}

#[test]
fn a_missing_or_old_git_is_named() {
    let world = World::new();
    let with_git = |git: PathBuf| {
        let settings = CheckpointSettings {
            git,
            ..CheckpointSettings::default()
        };
        Checkpoints::new(&world.contexts, settings)
    };
    let missing = with_git("/nonexistent/git".into());
    let error = missing.check_git().unwrap_err();
    assert!(
        matches!(error, CheckpointError::GitMissing { .. }),
        "{error}"
    );
    let error = missing.open(&world.workspace).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("checkpoints need git, and `/nonexistent/git` cannot be started"),
        "{error}"
    );
    let old = world.root.path().join("old-git");
    fs::write(&old, "#!/bin/sh\necho git version 2.17.1\n").unwrap();
    fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let error = with_git(old).open(&world.workspace).unwrap_err();
    assert_eq!(
        error.to_string(),
        "checkpoints need git 2.34 or newer, and this is 2.17.1"
    );
}
