use super::*;
use crate::rule::RuleSet;

#[test]
fn every_rule_compiles_and_has_a_keyword() {
    let set = RuleSet::built_in();
    assert_eq!(set.rules.len(), 214);
    let compiled = set.compile_all();
    assert!(compiled.is_ok_and(|count| count > 214), "{compiled:?}");
    for rule in &set.rules {
        assert!(!rule.keywords.is_empty(), "{} has no keyword", rule.id);
        let is_lower = |word: &&str| !word.is_empty() && **word == word.to_lowercase();
        assert!(rule.keywords.iter().all(is_lower), "{}", rule.id);
    }
    let ids: std::collections::HashSet<_> = set.rules.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), set.rules.len(), "an id occurs twice");
    assert!(!ids.contains("generic-api-key"));
}

#[test]
fn a_line_that_is_none_of_a_rule_is_named() {
    for line in [
        "regex x",
        "entropy",
        "rule a\nentropy high",
        "rule a\nstopwords x",
    ] {
        let last = line.lines().last();
        assert_eq!(RuleSet::parse(line).err(), last, "{line:?}");
    }
}

fn rules_in(text: &str) -> Vec<&'static str> {
    find(text.as_bytes()).iter().map(|it| it.rule).collect()
}

fn aws() -> String {
    ["AKIA", "QYLPMN5H", "HHFPZAM2"].concat()
}

#[test]
fn an_example_key_is_no_secret() {
    assert_eq!(rules_in(&aws()), ["aws-access-token"]);
    assert!(rules_in(&["AKIA", "IOSFODNN7", "EXAMPLE"].concat()).is_empty());
    // Regular enough to be a placeholder.
    assert!(rules_in(&["AKIA", "AAAAAAAA", "AAAAAAAA"].concat()).is_empty());
    let gcp = ["AIza", "SyDMAScliyLx7F0NPDEJi1QmyCgHIAODrlU"].concat();
    assert!(rules_in(&gcp).is_empty(), "gitleaks lists it as an example");
}

#[test]
fn what_is_redacted_is_not_found_again() {
    let text = format!(
        "curl -u \"alice:{}\" https://x {} and {}",
        "hunter2hunter",
        aws(),
        aws()
    );
    let once = redacted(&text).expect("there are secrets in it");
    assert!(
        !once.contains("hunter2") && !once.contains("AKIA"),
        "{once}"
    );
    assert_eq!(redacted(&once), None, "{once}");
}

#[test]
fn the_rest_of_a_text_stays() {
    let text = format!("é {} ü", aws());
    assert_eq!(
        redacted(&text).as_deref(),
        Some("é [redacted:aws-access-token] ü")
    );
    assert_eq!(redacted("nothing in here"), None);
}

#[test]
fn bytes_that_are_no_text_are_looked_at_too() {
    let mut bytes = vec![0xFF, 0x00, 0xC3, b' '];
    bytes.extend_from_slice(aws().as_bytes());
    bytes.extend_from_slice(&[b' ', 0xFE, 0x80, 0x80, 0x80, 0x80, 0x80]);
    assert_eq!(find(&bytes).len(), 1);
}
