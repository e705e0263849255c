//! Tests of the model: the data that it keeps and loses, and that it never invents any.

use std::path::PathBuf;

use super::{BytesChange, Disk, SurvivingChanges, Tree};
use crate::disk::power::states::Torn;
use crate::disk::power::trace::{TraceRecord, parse};

/// Only the changes that are certain to survive.
struct Nothing;

impl SurvivingChanges for Nothing {
    fn name(&mut self, _: usize) -> bool {
        false
    }

    fn bytes(&mut self, _: usize, certain: &[u8], _: &[BytesChange]) -> Vec<u8> {
        certain.to_vec()
    }
}

/// A disk on which this was done: `mkdir d`, `create f`, `write f text`, `sync f`, `cut f 3`, `rename f g`, `unlink f`.
fn disk(story: &str) -> Disk {
    let mut disk = Disk::new();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let path = |at: usize| PathBuf::from(words[at].trim_matches('/'));
        let record = match words[0] {
            "mkdir" => TraceRecord::Mkdir(path(1)),
            "create" => TraceRecord::Create(path(1)),
            "write" => TraceRecord::Write(path(1), words[2].parse().unwrap(), words[3].into()),
            "cut" => TraceRecord::Truncate(path(1), words[2].parse().unwrap()),
            "sync" => TraceRecord::Sync(path(1)),
            "rename" => TraceRecord::Rename(path(1), path(2)),
            "unlink" => TraceRecord::Unlink(path(1)),
            other => panic!("{other}"),
        };
        disk.apply(&record).unwrap();
    }
    disk
}

/// Names and texts: `d/ f=text`.
fn shown(tree: &Tree) -> String {
    let shown = tree.iter().map(|(path, bytes)| match bytes {
        Some(bytes) => format!(
            "{path}={}",
            String::from_utf8_lossy(bytes).replace('\0', "0")
        ),
        None => format!("{path}/"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Returns the contents that are certain, and those that a running system shows.
fn certain_and_live(story: &str) -> [String; 2] {
    let disk = disk(story);
    [shown(&disk.after_cut(&mut Nothing)), shown(&disk.live())]
}

#[test]
fn bytes_are_certain_once_their_file_is_synced_and_names_once_their_directory_is() {
    let written = "create f\n write f 0 one";
    assert_eq!(certain_and_live(written), ["", "f=one"]);
    assert_eq!(
        certain_and_live(&format!("{written}\n sync f")),
        ["", "f=one"]
    );
    assert_eq!(
        certain_and_live(&format!("{written}\n sync /")),
        ["f=", "f=one"]
    );
    let synced = format!("{written}\n sync f\n sync /");
    assert_eq!(certain_and_live(&synced), ["f=one", "f=one"]);
    assert_eq!(
        certain_and_live(&format!("{synced}\n write f 3 two")),
        ["f=one", "f=onetwo"]
    );
    assert_eq!(
        certain_and_live(&format!("{synced}\n cut f 1")),
        ["f=one", "f=o"]
    );
    assert_eq!(
        certain_and_live(&format!("{synced}\n unlink f")),
        ["f=one", ""]
    );
}

#[test]
fn a_rename_is_whole_and_certain_once_either_directory_is_synced() {
    let story = "mkdir a\n mkdir b\n create a/f\n write a/f 0 x\n sync a/f\n sync /\n sync a\n rename a/f b/f";
    assert_eq!(certain_and_live(story), ["a/ a/f=x b/", "a/ b/ b/f=x"]);
    for dir in ["a", "b"] {
        let synced = format!("{story}\n sync {dir}");
        assert_eq!(certain_and_live(&synced), ["a/ b/ b/f=x", "a/ b/ b/f=x"]);
    }
}

#[test]
fn what_a_certain_name_overrides_never_comes_back() {
    // The creation of the temporary file is not certain when its rename becomes so.
    let disk = disk("mkdir d\n sync /\n create t\n rename t d/f\n sync d");
    assert_eq!(shown(&disk.live()), "d/ d/f=");
    assert!(disk.items().is_empty(), "{:?}", disk.items());
}

#[test]
fn a_torn_file_has_bytes_of_some_version_or_zeros_and_never_less_than_was_synced() {
    let story = "create f\n write f 0 aaaa\n sync f\n sync /\n write f 4 bbbb\n write f 6 cccc";
    let disk = disk(story);
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let tree = disk.after_cut(&mut Torn::new(seed));
        let text = shown(&tree);
        assert!(text.starts_with("f=aaaa"), "{text}");
        seen.insert(text);
    }
    let expected = [
        "f=aaaa",
        "f=aaaa0000",
        "f=aaaabbbb",
        "f=aaaabbcccc",
        "f=aaaa000000",
        "f=aaaabbbb00",
        "f=aaaabbcc",
    ];
    for text in expected {
        assert!(seen.contains(text), "{text} of {seen:?}");
    }
    assert_eq!(seen.len(), expected.len(), "{seen:?}");
}

#[test]
fn what_was_cut_off_is_never_seen_behind_a_new_end() {
    let disk = disk("create f\n write f 0 secret\n sync f\n sync /\n cut f 0\n write f 8 x");
    for seed in 0..200 {
        let text = shown(&disk.after_cut(&mut Torn::new(seed)));
        let fair = ["f=secret", "f=", "f=00000000x", "f=000000000"];
        assert!(fair.contains(&text.as_str()), "{text}");
    }
}

#[test]
fn a_trace_is_read_with_bytes_that_look_like_records() {
    let trace = b"mkdir\t0\t0\t/disk/a\t\n\nwrite\t7\t12\t/disk/a/f\t\nmark\t1\t0\t\t\n\n\nmark\t3\t0\t\t\n\nrename\t0\t0\t/disk/a/f\t/disk/g\n\n";
    let read = parse(trace, std::path::Path::new("/disk")).unwrap();
    let expected = [
        TraceRecord::Mkdir("a".into()),
        TraceRecord::Write("a/f".into(), 7, b"mark\t1\t0\t\t\n\n".to_vec()),
        TraceRecord::Mark(3),
        TraceRecord::Rename("a/f".into(), "g".into()),
    ];
    assert_eq!(read, expected);
    assert!(parse(&trace[..trace.len() - 1], std::path::Path::new("/disk")).is_err());
}
