//! Files that go back with the conversation.

#[path = "../common/mod.rs"]
mod common;
mod commands;
mod kills;
mod redacted;
mod run;
mod wrap;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use common::Home;
use infold_testkit::{Answer, Server, Step};
use serde_json::Value;

/// The contents of a directory: the mode and the bytes of each file, the target of each link, and the mode of each
/// directory.
type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Reads a directory, all of it.
fn tree(dir: &Path) -> Tree {
    let mut found = Tree::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).expect("a directory") {
            let path = entry.expect("an entry").path();
            let meta = fs::symlink_metadata(&path).expect("it is there");
            let content = if meta.is_symlink() {
                let target = fs::read_link(&path).expect("a link");
                target.into_os_string().into_encoded_bytes()
            } else if meta.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).expect("a file")
            };
            let name = path.strip_prefix(dir).expect("it is in it").to_owned();
            found.insert(name, (meta.permissions().mode(), content));
        }
    }
    found
}

/// A home with a workspace, and a task whose conversation has four messages.
fn home() -> (Home, PathBuf) {
    let home = Home::wide(200);
    let work = home.path().join("work");
    fs::create_dir(&work).expect("a workspace");
    home.run("task new", b"");
    let messages = br#"{"role":"user","content":"a"}
{"role":"assistant","content":"b"}
{"role":"user","content":"c"}
{"role":"assistant","content":"d"}
"#;
    assert_eq!(home.run("task push T1", messages).code, 0);
    (home, work)
}

/// Runs a command that succeeds, and returns its output.
fn done(home: &Home, command: &str) -> String {
    let ran = home.run(command, b"");
    assert_eq!(ran.code, 0, "{command}: {}", home.transcript(&ran));
    String::from_utf8(ran.stdout).expect("UTF-8")
}

/// Returns the view of a task, as it is sent.
fn view(home: &Home, at: &str) -> String {
    done(home, &format!("view T1 --raw{at}"))
}

fn calls(calls: &[(&str, Value)]) -> Step {
    let calls = calls.iter();
    Step::answer(Answer {
        calls: calls
            .map(|(name, arguments)| ((*name).to_owned(), arguments.to_string()))
            .collect(),
        ..Answer::default()
    })
}

/// The configuration of tasks that a scripted model carries out.
fn configure(home: &Home, server: &Server, work: &str) {
    let url = server.url();
    home.config(format!(
        "llm: {{here: {{provider: openai, model: scripted, base_url: '{url}', context_length: 32000}}}}\n\
         work: {{commands: true, retry_seconds: 0{work}}}\n"
    ));
}
