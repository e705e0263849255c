//! `infold count` prints the number of tokens of any input.

mod common;

use common::Home;

fn counted(arguments: &str, input: &[u8]) -> (i32, String, String) {
    let ran = Home::new().run(&format!("count {arguments}"), input);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (ran.code, text(ran.stdout), text(ran.stderr))
}

const MESSAGES: &[u8] = br#"{"role":"user","content":"hello world"}
{"role":"assistant","content":"\u4e2d\u6587"}
"#;

#[test]
fn messages_are_counted_one_by_one() {
    let (code, out, err) = counted("-", MESSAGES);
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!(out, @"
         1  user               6  hello world
         2  assistant          5  中文
    11 tokens in 2 messages as openai (by o200k)
    ");
    let (_, out, _) = counted("- --json --by chars", MESSAGES);
    insta::assert_snapshot!(out, @r#"
    {"role":"user","seq":1,"tokens":6}
    {"role":"assistant","seq":2,"tokens":6}
    {"by":"chars","format":"openai","messages":2,"model":null,"tokens":12}
    "#);
}

#[test]
fn a_text_is_counted_as_one_and_says_so() {
    let (code, out, err) = counted("- --encoding cl100k", b"hello world, this is no JSON\n");
    assert_eq!(code, 0);
    assert_eq!(out, "8 tokens in 29 bytes of text (by cl100k)\n");
    assert!(err.contains("counted as text"), "{err}");
    // Read in pieces, with characters cut in two and bytes that are none.
    let long = "日本語 ".repeat(50_000) + "x";
    let (_, out, _) = counted("- --json", &[long.as_bytes(), b"\xff\xe6"].concat());
    let tokens = infold_wire::tokens::count(
        infold_wire::tokens::Encoding::O200k,
        &(long + "\u{fffd}\u{fffd}"),
    );
    assert!(out.contains(&format!("\"tokens\":{tokens}")), "{out}");
}

#[test]
fn a_message_that_is_none_after_others_is_an_error() {
    let input = [MESSAGES, b"{\"role\":\"nobody\"}\n"].concat();
    let (code, _, err) = counted("-", &input);
    assert_eq!(code, 2);
    assert!(err.contains("line 3"), "{err}");
    let (code, out, _) = counted("-", b"");
    assert_eq!(
        (code, out.as_str()),
        (0, "0 tokens in 0 bytes of text (by o200k)\n")
    );
    assert_eq!(counted("nowhere.jsonl", b"").0, 2);
}
