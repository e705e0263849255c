//! `metadata.json` has the settings at the time a task was made, and which of them were chosen.

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
    // Values that were not chosen follow the present configuration.
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

/// A call of a tool, its result, and one that failed.
const TOOLS: &str = r#"{"role":"user","content":"look"}
{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"ls","input":{"path":"src"}},{"type":"tool_use","id":"b","name":"cat","input":{"path":"x"}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"lib.rs"},{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"no such file"}]}
{"role":"assistant","content":"one file"}
"#;

/// The records of tools of a task, without their times.
fn tools(home: &Home, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(home.running(name).join("tools.jsonl"));
    let lines = text.unwrap_or_default();
    let lines = lines.lines().map(serde_json::from_str);
    let mut records: Vec<Value> = lines.collect::<Result<_, _>>().expect("JSON");
    for record in &mut records {
        let members = record.as_object_mut().expect("an object");
        assert!(members.remove("timestamp").is_some());
        assert!(members.remove("duration_ms").is_some());
    }
    records
}

#[test]
fn tools_of_pushed_and_imported_conversations_are_recorded() {
    let home = Home::new();
    home.file("talk.jsonl", TOOLS);
    home.tell("task new --wire anthropic\nimport talk.jsonl\ntask new --wire anthropic");
    home.fed("task push T1 --key k", TOOLS);
    // A repeated push is recorded once.
    home.fed("task push T1 --key k", TOOLS);
    // A result may come with a later push than its call.
    for line in TOOLS.lines() {
        home.fed("task push T3", format!("{line}\n"));
    }
    let expected = [
        json!({"seq": 1, "tool": "ls", "args": {"path": "src"}, "result": "lib.rs", "status": "success"}),
        json!({"seq": 2, "tool": "cat", "args": {"path": "x"}, "error": "no such file", "status": "error"}),
    ];
    for task in ["T1", "T2", "T3"] {
        assert_eq!(tools(&home, task), expected, "{task}");
        let row = &home.objects(&format!("task show {task}"))[0];
        assert_eq!(row["tool_call_count"], 2, "{task}");
    }
    assert_eq!(home.run("verify", b"").code, 0);
}
