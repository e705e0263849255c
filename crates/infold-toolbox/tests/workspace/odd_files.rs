//! Files that are no files, calls that are no calls.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

use infold_toolbox::{SettingsError, ToolLimits, Toolbox, ToolboxSettings};
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::json;

use crate::Fixture;

#[test]
fn what_is_no_file_is_refused_by_its_kind() {
    let fixture = Fixture::new();
    fixture.put("directory/x", "");
    mkfifoat(CWD, fixture.root().join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
    let _socket = UnixListener::bind(fixture.root().join("socket")).unwrap();
    for (path, kind) in [
        ("directory", "a directory: use `list`"),
        ("", "a directory"),
        (".", "a directory"),
        ("directory/..", "a directory"),
        ("pipe", "a named pipe"),
        ("socket", "a socket"),
    ] {
        for (tool, arguments) in [
            ("read", json!({"path": path})),
            ("write", json!({"path": path, "content": "x"})),
            (
                "edit",
                json!({"path": path, "old_string": "x", "new_string": "y"}),
            ),
        ] {
            let refused = fixture.fails(tool, arguments);
            assert!(refused.contains(kind), "{tool} {path}: {refused}");
        }
    }
    let listed = fixture.works("list", json!({}));
    assert_eq!(listed, "directory/\npipe (named pipe)\nsocket (socket)");
    assert_eq!(
        fixture.works("search", json!({"pattern": "x"})),
        "(no line matches `x`)"
    );
}

#[test]
fn devices_are_not_opened() {
    let toolbox = Toolbox::new(ToolboxSettings {
        workspace: Some("/dev".into()),
        ..ToolboxSettings::default()
    });
    let (fixture, toolbox) = (Fixture::new(), toolbox.unwrap());
    let read = toolbox.call("read", r#"{"path":"zero"}"#);
    let refused = fixture.runtime.block_on(read).text;
    assert!(refused.contains("a device"), "{refused}");
}

#[test]
fn binary_files_are_not_shown() {
    let fixture = Fixture::new();
    fixture.put("a.bin", b"\x7fELF\0\0\0x");
    let refused = fixture.fails("read", json!({"path": "a.bin"}));
    assert_eq!(refused, "`a.bin` is a binary file of 8 bytes, not text");
    let arguments = json!({"path": "a.bin", "old_string": "ELF", "new_string": "FLE"});
    assert!(fixture.fails("edit", arguments).contains("binary"));
    assert_eq!(
        fixture.works("search", json!({"pattern": "ELF"})),
        "(no line matches `ELF`)"
    );
}

#[test]
fn an_empty_file_says_so() {
    let fixture = Fixture::new();
    fixture.put("empty", "");
    assert_eq!(
        fixture.works("read", json!({"path": "empty"})),
        "(`empty` is empty)"
    );
    let refused = fixture.fails(
        "edit",
        json!({"path": "empty", "old_string": "", "new_string": "x"}),
    );
    assert!(refused.contains("use `write`"), "{refused}");
}

#[test]
fn a_line_without_end_is_cut() {
    let limits = ToolLimits {
        max_result_bytes: 1000,
        ..ToolLimits::default()
    };
    let fixture = Fixture::with(Default::default(), limits);
    fixture.put("long", "é".repeat(5000));
    let read = fixture.works("read", json!({"path": "long"}));
    assert!(read.len() <= 1000, "{}", read.len());
    assert!(read.contains("cut within line 1"), "{read}");
}

#[test]
fn many_lines_are_cut_and_say_where_to_go_on() {
    let limits = ToolLimits {
        max_result_bytes: 1000,
        ..ToolLimits::default()
    };
    let fixture = Fixture::with(Default::default(), limits);
    let lines: Vec<String> = (1..=400).map(|line| format!("line {line}")).collect();
    fixture.put("many", lines.join("\n"));
    let (mut next, mut found) = (1, Vec::new());
    loop {
        let read = fixture.works("read", json!({"path": "many", "offset": next}));
        assert!(read.len() <= 1000, "{}", read.len());
        let (text, note) = read.rsplit_once("\n[").unwrap();
        found.extend(text.lines().map(str::to_owned));
        let Some((_, offset)) = note.split_once("goes on at offset ") else {
            break;
        };
        next = offset.trim_end_matches(']').parse().unwrap();
        assert!(!note.contains("too long"), "{note}");
        assert_eq!(next, found.len() + 1);
    }
    assert_eq!(found, lines);
}

#[test]
fn what_is_missing_says_where_to_look() {
    let fixture = Fixture::new();
    fixture.put("file", "x");
    for path in ["none", "none/deep", "./none"] {
        let refused = fixture.fails("read", json!({"path": path}));
        assert!(refused.contains("list the directory"), "{refused}");
    }
    let refused = fixture.fails("read", json!({"path": "file/below"}));
    assert!(refused.contains("not a directory"), "{refused}");
    symlink("gone", fixture.root().join("dangling")).unwrap();
    let refused = fixture.fails("read", json!({"path": "dangling"}));
    assert!(refused.contains("does not exist"), "{refused}");
    symlink("loop", fixture.root().join("loop")).unwrap();
    let refused = fixture.fails("read", json!({"path": "loop"}));
    assert!(refused.contains("link to itself"), "{refused}");
    for path in ["a\0b", &"x".repeat(300), &"x/".repeat(3000)] {
        fixture.fails("read", json!({"path": path}));
        fixture.fails("write", json!({"path": format!("{path}y"), "content": ""}));
    }
}

#[test]
fn a_read_only_file_is_not_replaced() {
    let fixture = Fixture::new();
    if rustix::process::geteuid().is_root() {
        // An administrator may write it; there is nothing to refuse.
        return;
    }
    fixture.put("locked", "x");
    set_permissions(fixture.root().join("locked"), Permissions::from_mode(0o444)).unwrap();
    let refused = fixture.fails("write", json!({"path": "locked", "content": "y"}));
    assert!(refused.contains("read-only"), "{refused}");
    assert_eq!(fixture.get("locked"), "x");
}

#[test]
fn broken_calls_are_results_too() {
    let fixture = Fixture::new();
    for (tool, arguments) in [
        ("read", "{"),
        ("read", "[]"),
        ("read", "{}"),
        ("read", r#"{"path":7}"#),
        ("read", r#"{"path":"a","line":3}"#),
        ("read", r#"{"path":"a","offset":-1}"#),
        ("write", r#"{"path":"a"}"#),
        ("search", r#"{"pattern":"("}"#),
        ("run", r#"{"command":"id"}"#),
        ("nothing", "{}"),
        ("", ""),
    ] {
        let result = fixture
            .runtime
            .block_on(fixture.toolbox.call(tool, arguments));
        assert!(
            result.error.is_some(),
            "{tool} {arguments}: {}",
            result.text
        );
        assert!(!result.text.is_empty());
    }
    let unknown = fixture.fails("nothing", json!({}));
    assert_eq!(
        unknown,
        "there is no tool `nothing` (there are: read, write, edit, list, search)"
    );
}

#[test]
fn a_workspace_must_be_a_directory() {
    for path in ["/none/such", "/etc/passwd"] {
        let refused = Toolbox::new(ToolboxSettings {
            workspace: Some(path.into()),
            ..ToolboxSettings::default()
        });
        assert!(
            matches!(refused, Err(SettingsError::Workspace { .. })),
            "{path}"
        );
    }
}
