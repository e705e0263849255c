//! Redacted contents are removed from snapshots.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use infold_checkpoint::{BlobId, LeftOutReason};

use crate::world::{OTHER_TASK, TASK, World, run_git};

const SECRET: &str = "sk-live-4242424242424242";

/// Returns whether some bytes stand anywhere in a directory: in files, and in objects of git, unpacked.
fn stands_in(world: &World, directory: &Path, needle: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(at) = pending.pop() {
        if at.to_string_lossy().contains(needle) {
            found.push(at.clone());
        }
        if at.is_dir() {
            pending.extend(
                fs::read_dir(&at)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        let bytes = fs::read(&at).unwrap();
        let mut unpacked = Vec::new();
        // A loose object is one stream.
        let _ = flate2::read::ZlibDecoder::new(&bytes[..]).read_to_end(&mut unpacked);
        // A pack has a stream wherever one can begin.
        if at.extension().is_some_and(|end| end == "pack") {
            for start in 0..bytes.len() {
                if bytes[start] & 0x0f == 8 {
                    let stream = flate2::read::ZlibDecoder::new(&bytes[start..]);
                    let _ = stream.take(1 << 20).read_to_end(&mut unpacked);
                }
            }
        }
        let stands = |bytes: &[u8]| {
            let needle = needle.as_bytes();
            bytes.windows(needle.len()).any(|window| window == needle)
        };
        if stands(&bytes) || stands(&unpacked) {
            found.push(at);
        }
    }
    let objects = ["cat-file", "--batch-all-objects", "--batch", "--unordered"];
    let repository = directory.join("repo.git");
    let all = run_git(&repository, &world.home, &objects);
    if String::from_utf8_lossy(&all).contains(needle) {
        found.push(repository);
    }
    found
}

#[test]
fn what_is_taken_out_is_in_no_object_any_more_and_the_rest_is_as_it_was() {
    let world = World::new();
    let mut shadow = world.open();
    world.write("plain", "plain");
    world.write("config/key", SECRET);
    symlink(SECRET, world.workspace.join("link")).unwrap();
    world.write(&format!("{SECRET}/file"), "in a directory with the name");
    world.write(".gitignore", "*.log\n");
    world.write(&format!("{SECRET}.log"), "ignored");
    let first = shadow.snapshot(TASK, 0).unwrap().at;
    let other = shadow.snapshot(OTHER_TASK, 0).unwrap().at;
    world.write("plain", "changed");
    let second = shadow.snapshot(TASK, 0).unwrap().at;
    drop(shadow);
    let mut matches = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(SECRET);
    let found = world.checkpoints.find_blobs(&[TASK], &mut matches).unwrap();
    let mut paths: Vec<_> = found.iter().flat_map(|found| &found.paths).collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 5, "{found:?}");
    assert!(found.iter().all(|found| found.snapshots == [first, second]));
    let directory = world.info().directory;
    assert!(!stands_in(&world, &directory, SECRET).is_empty());

    // Ids are written down and read again.
    let ids: Vec<BlobId> = found
        .iter()
        .map(|found| found.id.to_string().parse().unwrap())
        .collect();
    let dropped = world.checkpoints.drop_blobs(&ids).unwrap();
    assert_eq!(dropped.snapshots, 3);
    assert_eq!(stands_in(&world, &directory, SECRET), Vec::<PathBuf>::new());
    assert_eq!(world.checkpoints.drop_blobs(&ids).unwrap().snapshots, 0);
    let none = world
        .checkpoints
        .find_blobs(&[TASK, OTHER_TASK], &mut matches)
        .unwrap();
    assert_eq!(none, vec![]);

    // A restoration keeps redacted contents that are still in the workspace, and snapshots still work.
    let before = world.tree();
    let mut shadow = world.open();
    for at in [other, second] {
        let (_, restored) = shadow.restore("id", TASK, 0, at).unwrap();
        assert_eq!(restored.removed, 0, "{restored:?}");
    }
    assert_eq!(world.tree(), before);
    assert_eq!(
        shadow.content(first, "plain".as_ref()).unwrap().unwrap(),
        b"plain"
    );
    let snapshot = shadow.snapshot(TASK, 0).unwrap();
    assert!(
        snapshot
            .left_out
            .iter()
            .all(|out| out.why != LeftOutReason::Redacted)
    );
}

#[test]
fn a_forgotten_task_leaves_nothing_behind() {
    let world = World::new();
    world.write("a", SECRET);
    let mut shadow = world.open();
    shadow.snapshot(TASK, 0).unwrap();
    world.write("a", "harmless");
    let kept = shadow.snapshot(OTHER_TASK, 0).unwrap().at;
    let shared = shadow.snapshot(TASK, 0).unwrap();
    assert!(shared.is_new);
    drop(shadow);
    let directory = world.info().directory;
    let forgotten = world.checkpoints.forget(&[TASK]).unwrap();
    assert_eq!((forgotten.snapshots, forgotten.repositories), (2, 0));
    assert_eq!(stands_in(&world, &directory, SECRET), Vec::<PathBuf>::new());
    let mut shadow = world.open();
    assert_eq!(shadow.snapshots().collect::<Vec<_>>(), [kept]);
    assert!(!shadow.snapshot(OTHER_TASK, 0).unwrap().is_new);
    drop(shadow);
    assert_eq!(world.checkpoints.forget(&[TASK]).unwrap().snapshots, 0);
    let forgotten = world.checkpoints.forget(&[OTHER_TASK]).unwrap();
    assert_eq!((forgotten.snapshots, forgotten.repositories), (1, 1));
    assert!(!directory.exists());
    assert_eq!(world.checkpoints.all().unwrap(), vec![]);
}
