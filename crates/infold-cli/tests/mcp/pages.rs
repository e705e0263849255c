//! Results are bounded, and the rest can be requested.

use serde_json::json;

use crate::client::{Client, Piped};
use crate::common::{Home, said};

/// A task with messages of these lengths, in characters.
fn with_lengths(lengths: &[usize]) -> Home {
    let home = Home::new();
    let roles = ["user", "assistant"].iter().cycle();
    let text = |(at, length): (usize, &usize)| {
        let begin = format!("begin {at} ");
        let end = format!(" end {at}");
        begin.clone() + &"é".repeat(length - begin.len() - end.len()) + &end
    };
    let texts = lengths.iter().enumerate().map(text);
    let lines: String = roles
        .zip(texts)
        .map(|(role, text)| said(role, &text))
        .collect();
    home.file("long.jsonl", lines);
    home.tell("task new\ntask push T1 long.jsonl");
    home
}

/// Returns the value of `name` in a text, such as the rest of a range.
fn named<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.rsplit_once("… cut; the rest: ")?.1;
    let (_, value) = rest.split_once(&format!("`{name}` "))?;
    Some(value.split([',', ' ']).next().unwrap_or(value).trim_end())
}

#[test]
fn the_rest_of_a_range_is_named_and_read() {
    let lengths: Vec<usize> = (0..40).map(|at| 400 + 97 * at).collect();
    let home = with_lengths(&lengths);
    let mut piped = Piped::start(&home, "--task T1");
    let (mut range, mut all, mut pages) = ("1..".to_owned(), String::new(), 0);
    loop {
        let text = piped
            .call("recall", json!({"range": range}))
            .expect("a page");
        assert!(text.chars().count() < 20_200, "{}", text.chars().count());
        pages += 1;
        all += &text;
        match named(&text, "range") {
            Some(rest) => range = rest.to_owned(),
            None => break,
        }
    }
    assert!(pages > 4, "{pages}");
    for at in 0..40 {
        assert_eq!(all.matches(&format!("begin {at} ")).count(), 1, "{at}");
        assert_eq!(all.matches(&format!(" end {at}\n")).count(), 1, "{at}");
    }
}

#[test]
fn a_message_that_is_longer_than_a_page_is_read_in_pieces() {
    let home = with_lengths(&[100_000, 100, 300]);
    let mut piped = Piped::start(&home, "--task T1");
    let mut arguments = json!({"range": "1..3"});
    let (mut length, mut pages) = (0, 0);
    loop {
        let text = piped.call("recall", arguments.clone()).expect("a page");
        pages += 1;
        let (body, rest) = text.split_once("\n… cut").unwrap_or((&text, ""));
        length += body.matches('é').count();
        if rest.is_empty() {
            assert!(body.ends_with(" end 0\n"), "{body}");
            break;
        }
        assert_eq!(rest.contains("then `range` 2..3"), pages == 1, "{rest}");
        arguments = json!({"range": named(&text, "range"), "offset": named(&text, "offset")});
    }
    assert_eq!((pages, length), (6, 100_000 - "begin 0  end 0".len()));
    let behind = piped
        .call("recall", json!({"range": "1", "offset": 1e15}))
        .expect("a text");
    assert!(behind.contains("behind the end"), "{behind}");
}

#[test]
fn long_views_are_read_in_pieces() {
    let home = with_lengths(&[500; 120]);
    let mut piped = Piped::start(&home, "--task T1");
    let first = piped.call("view", json!({})).expect("a view");
    assert!(first.chars().count() < 20_300, "{first}");
    let from = first.rsplit_once("more: `from` ").expect("a rest").1;
    let from: u64 = from
        .split('\n')
        .next()
        .expect("a line")
        .parse()
        .expect("a number");
    let mut seen = first.matches(" tokens)\n").count();
    let mut from = Some(from);
    while let Some(line) = from {
        let next = piped.call("view", json!({"from": line})).expect("a view");
        seen += next.matches(" tokens)\n").count();
        from = next.rsplit_once("more: `from` ").map(|(_, rest)| {
            rest.split('\n')
                .next()
                .expect("a line")
                .parse()
                .expect("a number")
        });
    }
    assert_eq!(seen, 120);
    let behind = piped
        .call("view", json!({"from": 121}))
        .expect_err("there is no such line");
    assert!(behind.contains("120 lines"), "{behind}");
}

#[test]
fn many_hits_are_bounded() {
    let home = with_lengths(&[3000; 200]);
    let mut piped = Piped::start(&home, "--task T1");
    let text = piped
        .call(
            "search_history",
            json!({"query": "begin end", "limit": 1_000_000_000}),
        )
        .expect("hits");
    assert!(text.chars().count() < 20_500, "{}", text.chars().count());
    assert!(text.matches("message ").count() >= 40, "{text}");
}
