//! The meaning of provider errors, for the bodies that providers are known to send.

use std::time::Duration;

use infold_wire::provider_error::{ProviderError, RefusalCause, classify, error_message};
use infold_wire::{Json, quote};
use proptest::prelude::*;

/// An error body and its meaning.
struct Row {
    name: String,
    status: u16,
    retry_after: Option<Duration>,
    body: String,
    expect: String,
}

fn rows() -> Vec<Row> {
    let lines = include_str!("troubles.jsonl").lines();
    lines.map(|line| row(line).expect("a row")).collect()
}

fn row(line: &str) -> Option<Row> {
    let json = Json::parse(line.as_bytes()).ok()?;
    let text = |key| Some(json.get(key)?.text()?.into_owned());
    let header = |name| json.get("headers")?.get(name)?.text()?.parse().ok();
    let seconds = header("retry-after").map(Duration::from_secs);
    Some(Row {
        name: text("name")?,
        status: json.get("status")?.number()? as u16,
        retry_after: seconds.or(header("retry-after-ms").map(Duration::from_millis)),
        body: text("body")?,
        expect: text("expect")?,
    })
}

fn word(trouble: &ProviderError) -> String {
    let or_dash = |number: &Option<u64>| number.map_or("-".to_owned(), |n| n.to_string());
    match trouble {
        ProviderError::Busy { after: None } => "busy".to_owned(),
        ProviderError::Busy { after: Some(after) } => format!("busy {}", after.as_millis()),
        ProviderError::TooLong { tokens, limit } => {
            format!("too_long {} {}", or_dash(tokens), or_dash(limit))
        }
        ProviderError::ReplyTooLong { tokens, limit } => format!("reply_too_long {tokens} {limit}"),
        ProviderError::TooLarge => "too_large".to_owned(),
        ProviderError::AlternateRoles => "alternate".to_owned(),
        ProviderError::BoundThinking => "bound".to_owned(),
        ProviderError::PlainMessages => "plain".to_owned(),
        ProviderError::Refused(RefusalCause::Key) => "refused key".to_owned(),
        ProviderError::Refused(RefusalCause::Model) => "refused model".to_owned(),
        ProviderError::Refused(RefusalCause::Quota) => "refused quota".to_owned(),
        ProviderError::Refused(RefusalCause::Address) => "refused address".to_owned(),
        ProviderError::Refused(RefusalCause::Request) => "refused request".to_owned(),
        ProviderError::Unexplained { status } => format!("unexplained {status}"),
        ProviderError::Broken => "broken".to_owned(),
    }
}

#[test]
fn every_known_error_is_sorted() {
    let wrong: Vec<String> = rows()
        .iter()
        .filter_map(|row| {
            let got = word(&classify(row.status, row.retry_after, row.body.as_bytes()));
            let line = || format!("{}: {got}, not {}", row.name, row.expect);
            (got != row.expect).then(line)
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_same_error_wrapped_in_a_text_means_the_same() {
    for row in rows().iter().filter(|row| row.body.starts_with('{')) {
        let wrapped = format!("{{\"error\":{}}}", quote(&row.body));
        let got = classify(row.status, row.retry_after, wrapped.as_bytes());
        assert_eq!(word(&got), row.expect, "{}", row.name);
    }
}

#[test]
fn a_person_is_told_the_providers_own_words() {
    let said = |body: &str| error_message(body.as_bytes());
    let words = |text: &str| Some(text.to_owned());
    assert_eq!(
        said(r#"{"error":{"message":"no","type":"x"}}"#),
        words("no")
    );
    assert_eq!(said(r#"{"error":"no"}"#), words("no"));
    assert_eq!(
        said(r#"{"error":"{\"error\":{\"message\":\"no\"}}"}"#),
        words("no")
    );
    assert_eq!(
        said(r#"[{"error":{"code":400,"message":"no"}}]"#),
        words("no")
    );
    assert_eq!(said("  no\n"), words("no"));
    assert_eq!(said("<html><body>no</body></html>"), None);
    assert_eq!(said(""), None);
    assert_eq!(said("{}"), None);
}

#[test]
fn an_error_of_any_size_is_looked_at_only_at_its_start() {
    let long = format!(
        "{}prompt is too long: 2 tokens > 1 maximum",
        " ".repeat(1 << 20)
    );
    assert_eq!(
        word(&classify(400, None, long.as_bytes())),
        "unexplained 400"
    );
    let cut = format!(
        "{{\"error\":{{\"message\":\"prompt is too long: 2 tokens > 1 maximum{}",
        "é".repeat(1 << 20)
    );
    assert_eq!(word(&classify(400, None, cut.as_bytes())), "too_long 2 1");
}

proptest! {
    /// Any status and body are classified without a panic.
    #[test]
    fn nothing_panics(status: u16, body: Vec<u8>) {
        classify(status, None, &body);
        error_message(&body);
    }

    /// A body that was cut or damaged anywhere is still sorted.
    #[test]
    fn damaged_bodies_do_not_panic(row in 0..rows().len(), cut: prop::sample::Index, byte: u8) {
        let row = &rows()[row];
        let mut body = row.body.clone().into_bytes();
        if !body.is_empty() {
            let at = cut.index(body.len());
            body[at] = byte;
            classify(row.status, None, &body);
            classify(row.status, None, &body[..at]);
        }
    }
}
