//! Searching.

use infold_toolbox::ToolLimits;
use serde_json::json;

use crate::Fixture;

#[test]
fn lines_that_match_are_found_with_their_places() {
    let fixture = Fixture::new();
    fixture.put("src/a.rs", "fn one() {}\nfn two() {}\r\n// fn three\n");
    fixture.put("src/b.py", "def one(): pass\n");
    fixture.put(".gitignore", "ignored\n");
    fixture.put("ignored/c.rs", "fn four() {}\n");
    let search = |arguments| fixture.works("search", arguments);
    assert_eq!(
        search(json!({"pattern": r"^fn (\w+)"})),
        "src/a.rs:1: fn one() {}\nsrc/a.rs:2: fn two() {}"
    );
    assert_eq!(
        search(json!({"pattern": r"\{\}$", "path": "src"}))
            .lines()
            .count(),
        2
    );
    assert_eq!(
        search(json!({"pattern": "ONE", "ignore_case": true}))
            .lines()
            .count(),
        2
    );
    assert_eq!(
        search(json!({"pattern": "one", "glob": "*.py"})),
        "src/b.py:1: def one(): pass"
    );
    assert_eq!(
        search(json!({"pattern": "three", "path": "src/a.rs"})),
        "src/a.rs:3: // fn three"
    );
    assert_eq!(
        search(json!({"pattern": "four", "all": true})),
        "ignored/c.rs:1: fn four() {}"
    );
    assert_eq!(
        search(json!({"pattern": "four"})),
        "(no line matches `four`)"
    );
}

#[test]
fn matches_are_bounded_in_number_and_length() {
    let fixture = Fixture::new();
    let lines: Vec<String> = (0..3000).map(|line| format!("needle {line}\n")).collect();
    fixture.put("many.txt", lines.concat());
    let found = fixture.works("search", json!({"pattern": "needle"}));
    assert_eq!(found.lines().count(), 101);
    assert!(found.ends_with("raise `limit` (at most 1000)]"), "{found}");
    let found = fixture.works("search", json!({"pattern": "needle", "limit": 999_999}));
    assert_eq!(found.lines().count(), 1001);
    let long = format!("{}needle{}", "é".repeat(9000), "è".repeat(9000));
    fixture.put("long.txt", long);
    let found = fixture.works("search", json!({"pattern": "needle", "path": "long.txt"}));
    assert!(found.len() < 600 && found.contains("needle"), "{found}");
    assert!(!found.contains('\u{fffd}'), "{found}");
}

#[test]
fn large_files_and_odd_patterns_are_no_trouble() {
    let fixture = Fixture::new();
    fixture.put("large.txt", "needle\n".repeat(3 << 20));
    let found = fixture.works("search", json!({"pattern": "needle"}));
    assert!(
        found.contains("1 files of more than 16777216 bytes were not searched"),
        "{found}"
    );
    fixture.put("a.txt", "x\n\ny");
    assert_eq!(
        fixture.works("search", json!({"pattern": "^$", "path": "a.txt"})),
        "a.txt:2: "
    );
    assert_eq!(
        fixture
            .works("search", json!({"pattern": "", "path": "a.txt"}))
            .lines()
            .count(),
        3
    );
    assert_eq!(
        fixture.works("search", json!({"pattern": r"x\s+y", "path": "a.txt"})),
        "a.txt:1: x"
    );
    // Neither exponential nor endless.
    fixture.put("b.txt", "a".repeat(100_000));
    fixture.works("search", json!({"pattern": "(a+)+$", "path": "b.txt"}));
    let refused = fixture.fails("search", json!({"pattern": "(a{1000}){1000}{1000}"}));
    assert!(
        refused.contains("not a valid regular expression"),
        "{refused}"
    );
}

#[test]
fn a_deep_tree_is_searched_in_part() {
    let fixture = Fixture::with(Default::default(), ToolLimits::default());
    let mut path = "d/".repeat(100);
    path.push_str("a.txt");
    fixture.put(&path, "needle");
    fixture.put("d/b.txt", "needle");
    let found = fixture.works("search", json!({"pattern": "needle"}));
    assert!(found.starts_with("d/b.txt:1: needle\n"), "{found}");
    assert!(found.contains("not everything was searched"), "{found}");
}
