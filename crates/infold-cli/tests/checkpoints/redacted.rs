//! Redacted text goes from checkpoints as well.

use std::fs;

use crate::{done, home};

/// A made-up key, in pieces, so that secret scanners do not report this file.
fn key() -> String {
    ["AKIA", "QYLPMN5H", "HHFPZAM2"].concat()
}

/// Returns whether a text is in an object of a shadow repository.
fn is_kept(home: &crate::Home, text: &str) -> bool {
    let shadows = fs::read_dir(home.contexts().join("checkpoints")).expect("checkpoints");
    shadows.flatten().any(|shadow| {
        let git = |arguments: &[&str]| {
            let ran = std::process::Command::new("git")
                .arg("--git-dir")
                .arg(shadow.path().join("repo.git"))
                .args(arguments)
                .output()
                .expect("git");
            String::from_utf8_lossy(&ran.stdout).into_owned()
        };
        let all = git(&[
            "cat-file",
            "--batch-all-objects",
            "--batch-check=%(objectname)",
        ]);
        all.lines()
            .any(|id| git(&["cat-file", "-p", id]).contains(text))
    })
}

#[test]
fn a_pattern_takes_files_out_of_all_snapshots_of_the_workspace() {
    let (home, work) = home();
    fs::write(work.join("config"), format!("key = {}\n", key())).unwrap();
    fs::write(work.join("other"), "stays\n").unwrap();
    done(&home, "checkpoint T1 --workspace work");
    home.run("task new", b"");
    home.run("task push T2", br#"{"role":"user","content":"x"}"#);
    done(&home, "checkpoint T2 --workspace work");
    fs::write(work.join("other"), "stays, too\n").unwrap();
    done(&home, "checkpoint T2");
    assert!(is_kept(&home, &key()));
    let found = home.run("doctor --secrets", b"");
    let found = home.transcript(&found);
    assert!(found.contains("checkpoint 1: config"), "{found}");
    let preview = done(&home, "redact T1 --pattern AKIA[A-Z0-9]+ --dry-run");
    assert!(
        preview.contains("would remove config from 3 checkpoints of"),
        "{preview}"
    );
    assert!(is_kept(&home, &key()), "a preview changes nothing");
    let said = done(&home, "redact T1 --pattern AKIA[A-Z0-9]+ --yes");
    assert!(
        said.contains("removed config from 3 checkpoints of"),
        "{said}"
    );
    assert!(!is_kept(&home, &key()));
    assert!(is_kept(&home, "stays, too"));
    // The file itself is the user's, and nothing removes it: no snapshot has it any more.
    done(&home, "rewind T2 --files --to e1");
    assert_eq!(fs::read(work.join("other")).unwrap(), b"stays\n");
    assert!(work.join("config").exists());
    done(&home, "verify");
}

#[test]
fn whole_messages_take_files_with_their_lines() {
    let (home, work) = home();
    let text = "the code of the vault is nine three one";
    let message = serde_json::json!({"role": "user", "content": format!("look\n    12\t{text}\n")});
    home.run("task push T1", message.to_string().as_bytes());
    fs::write(work.join("vault.txt"), format!("first\n  {text}\nlast\n")).unwrap();
    fs::write(work.join("other"), "stays\n").unwrap();
    done(&home, "checkpoint T1 --workspace work");
    assert!(is_kept(&home, text));
    let said = done(&home, "redact T1 5 --yes");
    assert!(
        said.contains("removed vault.txt from 1 checkpoint of"),
        "{said}"
    );
    assert!(!is_kept(&home, text) && is_kept(&home, "stays"));
}
