//! Reading, writing, editing and listing.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::task::Poll;

use infold_toolbox::{ToolLimits, Toolbox, ToolboxSettings};
use serde_json::json;

use crate::Fixture;

#[test]
fn a_file_is_read_whole_or_by_lines() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\ntwo\nthree\nfour");
    let read = |arguments| fixture.works("read", arguments);
    assert_eq!(read(json!({"path": "a.txt"})), "one\ntwo\nthree\nfour");
    assert_eq!(
        read(json!({"path": "a.txt", "offset": 2, "limit": 2})),
        "two\nthree\n[lines 2 to 3; the file goes on at offset 4]"
    );
    assert_eq!(
        read(json!({"path": "a.txt", "offset": 3})),
        "three\nfour\n[lines 3 to 4, the end of the file]"
    );
    assert_eq!(
        read(json!({"path": "a.txt", "limit": 4})),
        "one\ntwo\nthree\nfour"
    );
    let beyond = fixture.fails("read", json!({"path": "a.txt", "offset": 5}));
    assert!(beyond.contains("only 4 lines"), "{beyond}");
}

#[test]
fn a_file_is_written_with_its_directories() {
    let fixture = Fixture::new();
    let said = fixture.works(
        "write",
        json!({"path": "src/deep/a.rs", "content": "a\nb\n"}),
    );
    assert_eq!(said, "created `src/deep/a.rs`: 2 lines, 4 bytes");
    let said = fixture.works(
        "write",
        json!({"path": "./src//deep/../deep/a.rs", "content": ""}),
    );
    assert!(said.starts_with("replaced"), "{said}");
    assert_eq!(fixture.get("src/deep/a.rs"), "");
    let names: Vec<_> = std::fs::read_dir(fixture.root().join("src/deep"))
        .unwrap()
        .collect();
    assert_eq!(names.len(), 1, "no temporary file is left");
}

#[test]
fn an_edit_replaces_one_place_and_keeps_the_mode() {
    let fixture = Fixture::new();
    fixture.put("run.sh", "#!/bin/sh\necho one\necho two\n");
    set_permissions(fixture.root().join("run.sh"), Permissions::from_mode(0o751)).unwrap();
    let said = fixture.works(
        "edit",
        json!({"path": "run.sh", "old_string": "echo two", "new_string": "echo three"}),
    );
    assert_eq!(said, "edited `run.sh` at line 3");
    assert_eq!(fixture.get("run.sh"), "#!/bin/sh\necho one\necho three\n");
    let mode = std::fs::metadata(fixture.root().join("run.sh"))
        .unwrap()
        .mode();
    assert_eq!(mode & 0o7777, 0o751);
    let twice = fixture.fails(
        "edit",
        json!({"path": "run.sh", "old_string": "echo", "new_string": "print"}),
    );
    assert!(twice.contains("2 times (line 2, 3)"), "{twice}");
    fixture.works(
        "edit",
        json!({"path": "run.sh", "old_string": "echo", "new_string": "print", "replace_all": true}),
    );
    assert_eq!(fixture.get("run.sh"), "#!/bin/sh\nprint one\nprint three\n");
}

#[test]
fn bytes_that_are_no_text_survive_an_edit_elsewhere() {
    let fixture = Fixture::new();
    fixture.put("latin.txt", b"caf\xe9\nname = old\n");
    fixture.works(
        "edit",
        json!({"path": "latin.txt", "old_string": "old", "new_string": "new"}),
    );
    let bytes = std::fs::read(fixture.root().join("latin.txt")).unwrap();
    assert_eq!(bytes, b"caf\xe9\nname = new\n");
    let shown = fixture.works("read", json!({"path": "latin.txt"}));
    assert_eq!(
        shown,
        "caf\u{fffd}\nname = new\n[bytes that are not UTF-8 are shown as \u{fffd}]"
    );
}

#[test]
fn edits_of_one_file_at_the_same_time_are_all_there() {
    let fixture = Fixture::new();
    let lines: Vec<String> = (0..40).map(|line| format!("line {line} old\n")).collect();
    fixture.put("a.txt", lines.concat());
    let toolbox = &fixture.toolbox;
    fixture.runtime.block_on(async {
        let edits = (0..40).map(|line| async move {
            let arguments = json!({"path": "a.txt",
                "old_string": format!("line {line} old"), "new_string": format!("line {line} new")});
            toolbox.call("edit", &arguments.to_string()).await
        });
        let edits: Vec<_> = edits.map(Box::pin).collect();
        // All are polled once before any is waited for; some may be done by then.
        let mut waiting = Vec::new();
        for mut edit in edits {
            let polled = std::future::poll_fn(|context| Poll::Ready(edit.as_mut().poll(context)));
            match polled.await {
                Poll::Ready(done) => assert_eq!(done.error, None),
                Poll::Pending => waiting.push(edit),
            }
        }
        for edit in waiting {
            assert_eq!(edit.await.error, None);
        }
    });
    assert!(!fixture.get("a.txt").contains("old"));
}

#[test]
fn a_link_within_the_workspace_is_followed_and_stays() {
    let fixture = Fixture::new();
    fixture.put("AGENTS.md", "rules\n");
    symlink("AGENTS.md", fixture.root().join("CLAUDE.md")).unwrap();
    assert_eq!(
        fixture.works("read", json!({"path": "CLAUDE.md"})),
        "rules\n"
    );
    fixture.works("write", json!({"path": "CLAUDE.md", "content": "more"}));
    assert_eq!(fixture.get("AGENTS.md"), "more");
    let link = std::fs::symlink_metadata(fixture.root().join("CLAUDE.md")).unwrap();
    assert!(link.is_symlink());
}

#[test]
fn a_hard_link_is_cut_before_it_is_written() {
    let fixture = Fixture::new();
    let outside = fixture.directory.path().join("outside.txt");
    std::fs::write(&outside, "precious").unwrap();
    std::fs::hard_link(&outside, fixture.root().join("inside.txt")).unwrap();
    fixture.works("write", json!({"path": "inside.txt", "content": "changed"}));
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "precious");
}

#[test]
fn absolute_paths_below_the_workspace_are_taken() {
    let fixture = Fixture::new();
    fixture.put("src/a.txt", "here");
    let absolute = fixture.root().join("src/a.txt");
    assert_eq!(
        fixture.works("read", json!({"path": absolute.to_str()})),
        "here"
    );
    // Of a workspace that is given by a link, both paths.
    let link = fixture.directory.path().join("link");
    symlink(fixture.root(), &link).unwrap();
    let toolbox = Toolbox::new(ToolboxSettings {
        workspace: Some(link.clone()),
        ..ToolboxSettings::default()
    })
    .unwrap();
    for path in [link.join("src/a.txt"), absolute] {
        let arguments = json!({"path": path.to_str()}).to_string();
        let read = fixture.runtime.block_on(toolbox.call("read", &arguments));
        assert_eq!(read.text, "here");
    }
}

#[test]
fn the_repository_is_read_and_not_written() {
    let fixture = Fixture::new();
    fixture.put(".git/config", "[core]\n");
    fixture.put("sub/.git/hooks/x", "");
    symlink(".git", fixture.root().join("repository")).unwrap();
    assert_eq!(
        fixture.works("read", json!({"path": ".git/config"})),
        "[core]\n"
    );
    for path in [
        ".git/config",
        ".git/hooks/pre-commit",
        ".GIT/config",
        "repository/config",
        "sub/.git/hooks/x",
        "new/.git",
    ] {
        let refused = fixture.fails("write", json!({"path": path, "content": "x"}));
        assert!(refused.contains("use git itself"), "{path}: {refused}");
        fixture.fails(
            "edit",
            json!({"path": path, "old_string": "[core]", "new_string": "x"}),
        );
    }
    // Nothing is left of the directories that a refused write would have needed.
    for path in ["fresh/.git/hooks/x", "repository/fresh/x"] {
        fixture.fails("write", json!({"path": path, "content": ""}));
    }
    assert!(!fixture.root().join("fresh").exists());
    assert!(!fixture.root().join(".git/fresh").exists());
    assert_eq!(fixture.get(".git/config"), "[core]\n");
}

#[test]
fn a_directory_is_listed_without_what_is_ignored() {
    let fixture = Fixture::new();
    fixture.put(".gitignore", "target/\n*.log\n");
    fixture.put("src/a.rs", "12345");
    fixture.put("src/deep/b.rs", "");
    fixture.put("src/x.log", "");
    fixture.put("target/out", "");
    fixture.put(".git/HEAD", "");
    fixture.put("sub/.gitignore", "!x.log\n/only\n");
    fixture.put("sub/x.log", "");
    fixture.put("sub/only", "");
    fixture.put("sub/deep/only", "");
    symlink("src", fixture.root().join("link")).unwrap();
    let list = |arguments| fixture.works("list", arguments);
    assert_eq!(
        list(json!({})),
        ".gitignore (14 bytes)\nlink -> src\nsrc/\nsub/"
    );
    assert_eq!(
        list(json!({"path": "src", "depth": 5})),
        "src/a.rs (5 bytes)\nsrc/deep/\nsrc/deep/b.rs (0 bytes)"
    );
    assert_eq!(
        list(json!({"path": "link"})),
        "src/a.rs (5 bytes)\nsrc/deep/",
        "paths can be read as they are shown"
    );
    assert_eq!(
        list(json!({"glob": "*.rs"})),
        "src/a.rs (5 bytes)\nsrc/deep/b.rs (0 bytes)"
    );
    assert_eq!(list(json!({"glob": "src/*.rs"})), "src/a.rs (5 bytes)");
    assert_eq!(
        list(json!({"path": "sub", "depth": 3})),
        "sub/.gitignore (13 bytes)\nsub/deep/\nsub/deep/only (0 bytes)\nsub/x.log (0 bytes)"
    );
    let all = list(json!({"all": true, "depth": 2}));
    assert!(
        all.contains("target/out") && !all.contains(".git/"),
        "{all}"
    );
    assert!(list(json!({"glob": "*.py"})).contains("no file"));
    let refused = fixture.fails("list", json!({"glob": "[a"}));
    assert!(refused.contains("not a valid glob"), "{refused}");
}

#[test]
fn a_large_directory_is_listed_in_part() {
    let fixture = Fixture::new();
    for name in 0..2100 {
        fixture.put(&format!("{name:04}"), "");
    }
    let listed = fixture.works("list", json!({}));
    assert_eq!(listed.lines().count(), 2001);
    assert!(listed.ends_with("[the first 2000 entries: list a directory below, or use `glob`]"));
}

#[test]
fn a_file_beyond_the_limit_is_read_by_lines_alone() {
    let limits = ToolLimits {
        max_file_bytes: 1000,
        ..ToolLimits::default()
    };
    let fixture = Fixture::with(Default::default(), limits);
    let lines: Vec<String> = (1..=400).map(|line| format!("line {line}\n")).collect();
    fixture.put("a.txt", lines.concat());
    let refused = fixture.fails("read", json!({"path": "a.txt"}));
    assert!(refused.contains("`offset` and `limit`"), "{refused}");
    let read = fixture.works("read", json!({"path": "a.txt", "offset": 399, "limit": 1}));
    assert!(read.starts_with("line 399\n["), "{read}");
    let refused = fixture.fails(
        "edit",
        json!({"path": "a.txt", "old_string": "line 7\n", "new_string": "x"}),
    );
    assert!(refused.contains("too large"), "{refused}");
    fixture.put("small.txt", "x");
    let refused = fixture.fails(
        "edit",
        json!({"path": "small.txt", "old_string": "x", "new_string": "y".repeat(2000)}),
    );
    assert!(refused.contains("would have 2000 bytes"), "{refused}");
    assert_eq!(fixture.get("small.txt"), "x");
}
