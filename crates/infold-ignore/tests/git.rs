//! Compares the results of random rules and paths with those of `git check-ignore`.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use infold_ignore::{IgnoreRules, RuleChain};
use proptest::prelude::*;

/// Pieces of which patterns are made: all special characters, and letters that also occur in the names.
const PARTS: &[&str] = &[
    "a",
    "b",
    "A",
    ".",
    "log",
    "*",
    "**",
    "?",
    "/",
    "//",
    "[ab]",
    "[!a]",
    "[^b]",
    "[a-c]",
    "[]a]",
    "[[:alpha:]]",
    "[[:upper:]-]",
    "[a",
    "[",
    "]",
    "\\",
    "\\*",
    "\\a",
    "!",
    "#",
    " ",
    "\\ ",
    "-",
    "é",
    "[[:x:]]",
    "[\\]a]",
    "[--0]",
    "\t",
];

const NAMES: &[&str] = &[
    "a", "b", "A", "ab", "a.log", "log", "*", "a b", "a ", "!", "#a", "[a", "]", "é", "\\", "-",
    "?", "!a", "a\t", "c",
];

fn pattern() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PARTS), 0..6).prop_map(|parts| parts.concat())
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(NAMES), 1..4).prop_map(|names| names.join("/"))
}

fn ask_git(directory: &Path, paths: &[String]) -> Vec<bool> {
    let mut child = Command::new("git")
        .args([
            "check-ignore",
            "--no-index",
            "--verbose",
            "--non-matching",
            "-z",
            "--stdin",
        ])
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for path in paths {
        input.write_all(path.as_bytes()).unwrap();
        input.write_all(b"\0").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    // Four fields for each path: file, line, pattern, path.
    let fields: Vec<_> = output.stdout.split(|byte| *byte == 0).collect();
    let answers = fields.chunks_exact(4);
    answers
        .map(|answer| !answer[2].is_empty() && !answer[2].starts_with(b"!"))
        .collect()
}

/// Says whether a walk from the top ignores a path.
fn is_ignored(top: &RuleChain, below: (&str, &RuleChain), path: &str) -> bool {
    let names: Vec<_> = path.split('/').collect();
    for count in 1..=names.len() {
        let part = names[..count].join("/");
        let is_below = part.starts_with(&format!("{}/", below.0));
        let chain = if is_below { below.1 } else { top };
        // None of the paths exists: git takes the last part for a file.
        if chain.is_ignored(part.as_bytes(), count < names.len()) {
            return true;
        }
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn rules_are_those_of_git(
        top in prop::collection::vec(pattern(), 0..6),
        below in prop::collection::vec(pattern(), 0..3),
        paths in prop::collection::vec(path(), 40),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let init = Command::new("git").args(["init", "-q"]).current_dir(root).status().unwrap();
        prop_assert!(init.success());
        let (top_text, below_text) = (top.join("\n"), below.join("\n"));
        fs::write(root.join(".gitignore"), &top_text).unwrap();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/.gitignore"), &below_text).unwrap();
        let chain = RuleChain::default().with(0, IgnoreRules::parse(top_text.as_bytes()));
        let chain_below = chain.with(2, IgnoreRules::parse(below_text.as_bytes()));
        // `a` is there, and a directory.
        let paths: Vec<_> = paths.into_iter().filter(|path| path != "a").collect();
        let answers = ask_git(root, &paths);
        prop_assert_eq!(answers.len(), paths.len());
        for (path, expected) in paths.iter().zip(answers) {
            let is_ignored = is_ignored(&chain, ("a", &chain_below), path);
            prop_assert_eq!(is_ignored, expected, "{:?} in {:?} {:?}", path, &top, &below);
        }
    }
}

#[test]
fn names_need_not_be_utf_8() {
    let rules = IgnoreRules::parse(b"\xff*\n?\xfe\n");
    let name = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    assert_eq!(rules.verdict(name.as_bytes(), false), Some(true));
    assert_eq!(rules.verdict(b"\xfd\xfe", false), Some(true));
    assert_eq!(rules.verdict(b"a\xfe\xfe", false), None);
}

#[test]
fn no_pattern_takes_long() {
    let rules = IgnoreRules::parse("a*".repeat(400).as_bytes());
    let name = "a".repeat(399) + "b";
    assert_eq!(rules.verdict(name.as_bytes(), false), None);
    let rules = IgnoreRules::parse(format!("/{}x", "**/".repeat(300)).as_bytes());
    let path = "a/".repeat(300) + "y";
    assert_eq!(rules.verdict(path.as_bytes(), false), None);
}

#[test]
fn a_pattern_of_a_million_parts_does_not_exhaust_the_stack() {
    let rules = IgnoreRules::parse(format!("/{}x", "**/".repeat(1_000_000)).as_bytes());
    assert_eq!(rules.verdict(b"a/x", false), Some(true));
    assert_eq!(rules.verdict(b"a/y", false), None);
}
