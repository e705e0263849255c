//! Tests of the rules and of the search.

mod canary;

use std::time::{Duration, Instant};

use canary::canary;

use super::*;
use crate::rule::RuleSet;

/// Replaces the secrets of a text by markers. Repeats the search, because some texts match a rule only after another
/// secret in them was replaced.
fn redact(text: &str) -> Option<String> {
    let mut changed: Option<String> = None;
    for _ in 0..4 {
        let mut next = changed.as_deref().unwrap_or(text).to_owned();
        let found = find(next.as_bytes());
        if found.is_empty() {
            break;
        }
        for Finding { rule, range } in found.into_iter().rev() {
            next.replace_range(range, &marker(rule));
        }
        changed = Some(next);
    }
    changed
}

impl RuleSet {
    /// Returns the rules' ids, first keywords and expressions.
    fn sources(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        let rules = self.rules.iter();
        rules.map(|rule| (rule.id, rule.keywords[0], rule.regex.source))
    }

    /// Compiles all expressions and returns their number, or the first that is not valid.
    fn compile_all(&self) -> Result<usize, &'static str> {
        let allowed = self.rules.iter().map(|rule| &rule.allowed);
        let allowed = allowed.chain([&self.allowed]);
        let allowed = allowed.flat_map(|it| it.secrets.iter().chain(&it.matches));
        let all = self.rules.iter().map(|rule| &rule.regex).chain(allowed);
        let mut count = 0;
        for lazy in all {
            lazy.get().ok_or(lazy.source)?;
            count += 1;
        }
        Ok(count)
    }
}

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
fn the_error_for_invalid_rules_is_the_invalid_line() {
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

/// Returns a key in the format of AWS. It is assembled here: as a literal, scanners for secrets would report this file.
fn aws_key() -> String {
    ["AKIA", "QYLPMN5H", "HHFPZAM2"].concat()
}

#[test]
fn an_example_key_is_no_secret() {
    assert_eq!(rules_in(&aws_key()), ["aws-access-token"]);
    assert!(rules_in(&["AKIA", "IOSFODNN7", "EXAMPLE"].concat()).is_empty());
    // Its entropy is low, so it is a placeholder.
    assert!(rules_in(&["AKIA", "AAAAAAAA", "AAAAAAAA"].concat()).is_empty());
    let gcp = ["AIza", "SyDMAScliyLx7F0NPDEJi1QmyCgHIAODrlU"].concat();
    assert!(rules_in(&gcp).is_empty(), "gitleaks lists it as an example");
}

#[test]
fn redacted_text_contains_no_more_secrets() {
    let text = format!(
        "curl -u \"alice:{}\" https://x {} and {}",
        "hunter2hunter",
        aws_key(),
        aws_key()
    );
    let once = redact(&text).expect("there are secrets in it");
    assert!(
        !once.contains("hunter2") && !once.contains("AKIA"),
        "{once}"
    );
    assert_eq!(redact(&once), None, "{once}");
}

#[test]
fn the_rest_of_a_text_stays() {
    let text = format!("é {} ü", aws_key());
    assert_eq!(
        redact(&text).as_deref(),
        Some("é [redacted:aws-access-token] ü")
    );
    assert_eq!(redact("nothing in here"), None);
}

#[test]
fn secrets_are_found_in_bytes_that_are_not_utf8() {
    let mut bytes = vec![0xFF, 0x00, 0xC3, b' '];
    bytes.extend_from_slice(aws_key().as_bytes());
    bytes.extend_from_slice(&[b' ', 0xFE, 0x80, 0x80, 0x80, 0x80, 0x80]);
    assert_eq!(find(&bytes).len(), 1);
}

#[test]
fn every_rule_finds_texts_generated_from_its_expression_and_redacts_them_whole() {
    let mut found_by_others = Vec::new();
    for (id, keyword, source) in RuleSet::built_in().sources() {
        // Some keywords are not part of the expression, but must be near the match.
        let texts = (0..400).map(|seed| format!("{} {keyword}", canary(source, seed)));
        let hit = texts.clone().find_map(|text| {
            let found = find(text.as_bytes());
            let own = found.into_iter().find(|one| one.rule == id)?;
            Some((text, own.range))
        });
        let Some((text, range)) = hit else {
            // Another rule matches the same text, and begins no later.
            let mut others = texts.map(|text| find(text.as_bytes()).len());
            assert!(others.all(|count| count > 0), "{id} finds nothing");
            found_by_others.push(id);
            continue;
        };
        let once = redact(&text).expect("there is a secret in it");
        assert!(!once.contains(&text[range]), "{id}: {once}");
        assert_eq!(redact(&once), None, "{id}: {once}");
    }
    assert_eq!(found_by_others, ["bittrex-secret-key"]);
}

#[test]
fn a_secret_between_other_things_is_found_whatever_surrounds_it() {
    for (before, after) in [
        ("", ""),
        ("key=", ""),
        ("Authorization: Bearer ", "\r\n"),
        ("\"", "\","),
        ("https://x/?token=", "&a=b"),
        ("日本", "語"),
        ("\u{0}", "\u{0}"),
    ] {
        let text = format!("{before}{}{after}", aws_key());
        assert_eq!(rules_in(&text), ["aws-access-token"], "{text:?}");
    }
    let npm = ["np", "m_", "rk2xv9lm4tb8nc3wd6hf1gj5ps0yteuaiooq"].concat();
    for after in [
        "", ",", ".", ")", "\n", "\\n", "\"", "]", "}", "&a=b", "<br>",
    ] {
        let text = format!("{npm}{after}");
        assert_eq!(rules_in(&text), ["npm-access-token"], "{text:?}");
    }
}

#[test]
fn digits_are_a_token_near_the_name_of_their_service_and_a_commit_elsewhere() {
    let digits = ["167249ba9cda64996f8f", "59ff9a6e02ca84221857"].concat();
    let near = format!("sourcegraph token {digits} in the middle");
    assert_eq!(rules_in(&near), ["sourcegraph-access-token"]);
    let far = format!(
        "sourcegraph {} commit {digits} {}",
        "word ".repeat(99),
        "word ".repeat(99)
    );
    assert!(rules_in(&far).is_empty());
    let found = find(format!("{} {near}", "é".repeat(9999)).as_bytes());
    assert_eq!(found[0].range, 20017..20057, "wherever the window begins");
}

/// Returns the CPU time of this thread: elapsed time would include that of other processes on the machine.
fn thread_cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

#[test]
fn hostile_text_takes_linear_time() {
    // Keywords of all rules, and beginnings of secrets whose ends are missing.
    let words: String = RuleSet::built_in()
        .rules
        .iter()
        .flat_map(|rule| rule.keywords.clone())
        .map(|word| format!("{word}=\"-----BEGIN curl -u sk-ant-api03-"))
        .collect();
    let took = |times: usize| {
        let text = words.repeat(times);
        let start = thread_cpu_time();
        find(text.as_bytes());
        thread_cpu_time() - start
    };
    // The first run compiles the expressions.
    took(1);
    let (few, many) = (took(2), took(16));
    assert!(
        many < 32 * few + Duration::from_secs(1),
        "{few:?}, then {many:?}"
    );
}

/// Prints how fast text is searched: `cargo test --release -p infold-secrets -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn rate() {
    let words =
        "fn main() { let answer = compute(42); println!(\"{answer}\"); } // the key to the house\n";
    let text = words.repeat((32 << 20) / words.len());
    find(&text.as_bytes()[..1000]);
    let began = Instant::now();
    assert!(find(text.as_bytes()).is_empty());
    let seconds = began.elapsed().as_secs_f64();
    println!("{:.0} MB/s", text.len() as f64 / 1e6 / seconds);
}
