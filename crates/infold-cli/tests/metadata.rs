//! `metadata.json` says what held when a task was made, and what of it was chosen.

mod common;

use common::{Home, talk};
use infold_testkit::{Script, Server, Step};
use serde_json::{Value, json};

/// The member `config` of the metadata of a task.
fn config(home: &Home, name: &str) -> Value {
    let bytes = std::fs::read(home.running(name).join("metadata.json")).expect("metadata");
    let metadata: Value = serde_json::from_slice(&bytes).expect("JSON");
    metadata["config"].clone()
}

#[test]
fn a_task_says_what_holds_though_nobody_chose_it() {
    let home = Home::new();
    home.file("talk.jsonl", talk(&["hi", "hello"]));
    home.tell(
        "task new\ntask new --model gpt-3.5-turbo\nimport talk.jsonl --model claude-opus-4-1",
    );
    let assumed = json!(["context_length"]);
    assert_eq!(
        config(&home, "T1"),
        json!({"llm_provider": null, "model": null, "context_length": 128_000,
            "compression_threshold": 0.75, "assumed": assumed})
    );
    assert_eq!(
        config(&home, "T2"),
        json!({"llm_provider": null, "model": "gpt-3.5-turbo", "context_length": 16_385,
            "compression_threshold": 0.5, "assumed": assumed})
    );
    assert_eq!(config(&home, "T3")["context_length"], 200_000);
    assert_eq!(config(&home, "T3")["compression_threshold"], 0.8);
    assert_eq!(home.objects("task show T2")[0]["context_length"], 16_385);
}

#[test]
fn the_configuration_counts_and_goes_on_counting() {
    let home = Home::new();
    home.config(
        "context_storage: {compression_threshold: 0.6}\nprofiles: {default: {window: 9000}}\n",
    );
    home.tell("task new\ntask new --context-length 32000");
    assert_eq!(config(&home, "T1")["context_length"], 9_000);
    assert_eq!(config(&home, "T1")["compression_threshold"], 0.6);
    let chosen = config(&home, "T2");
    assert_eq!(chosen["context_length"], 32_000);
    assert_eq!(chosen.get("assumed"), None);
    // What was not chosen is what the configuration says now.
    home.config("profiles: {default: {window: 5000}}\n");
    let texts: Vec<String> = (0..80)
        .map(|at| format!("{at} {}", "word ".repeat(70)))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    home.fed("task push T1", talk(&texts));
    home.fed("task push T2", talk(&texts));
    let outcome = |task: &str| home.objects(&format!("manage {task}"))[0]["outcome"].clone();
    assert_eq!(outcome("T1"), "condensed");
    assert_eq!(outcome("T2"), "untouched");
}

#[test]
fn a_conversation_with_a_model_says_what_holds_for_it() {
    let server = Server::start(Script::steps([Step::say("hello")]));
    let home = Home::new();
    let url = server.url();
    home.config(format!(
        "llm: {{here: {{provider: openai, model: gpt-4-turbo, base_url: '{url}'}}}}\n"
    ));
    let asked = home.run("ask hi --json", b"");
    home.meet(&String::from_utf8_lossy(&asked.stderr));
    let config = config(&home, "T1");
    assert_eq!(config["model"], "gpt-4-turbo");
    assert_eq!(config["context_length"], 128_000);
    assert_eq!(config["compression_threshold"], 0.7);
}
