//! Tasks in the form of each wire.

mod common;

use common::Home;

#[test]
fn a_task_shows_its_summary_in_the_form_of_its_wire() {
    let home = Home::new();
    home.file(
        "gemini.jsonl",
        concat!(
            r#"{"parts":[{"text":"look around"}]}"#,
            "\n",
            r#"{"role":"model","parts":[{"functionCall":{"name":"ls","args":{}}}]}"#,
            "\n",
            r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"files"}}}]}"#,
            "\n",
            r#"{"role":"model","parts":[{"text":"done"}]}"#,
            "\n",
        ),
    );
    home.file("summary.md", "it looked");
    home.tell("task new --wire gemini\ntask push T1 gemini.jsonl\ncondense T1 2 --text summary.md");
    insta::assert_snapshot!(home.tell("view T1 --raw"), @r#"
    $ infold view T1 --raw
    {"parts":[{"text":"look around"}]}
    {"role":"user","parts":[{"text":"[Summary of messages 2..3 (2 folded away; nothing is lost: the log keeps 2..3 word for word)]\n\nit looked"}]}
    {"role":"model","parts":[{"text":"done"}]}
    ! view 45 tokens, log 37 in 4 messages
    "#);
    let wrong = home.tell("task new --wire telex");
    assert!(wrong.contains("no wire `telex` (known: chat"), "{wrong}");
}
