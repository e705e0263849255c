//! What the configuration changes, and how `config` and `models` tell of it.

mod common;

use common::{Home, Ran};
use insta::assert_snapshot;

const CANARY: &str = "sk-canary-0123456789";

const CONFIG: &str = "\
context_storage:
  base_dir: kept
  compression_threshold: 0.7
  cleanup_days: ${DAYS:-14}
llm:
  provider: openai
  openai:
    model: gpt-5
    api_key: ${KEY}
profiles:
  claude-opus: {threshold: 60, strategy: roo}
  careful: {window: 50000}
";

fn with(config: &str) -> Home {
    let home = Home::new();
    home.file("config.yaml", config);
    home
}

/// As [`Home::tell`], one command with these variables set.
fn told(home: &Home, variables: &[(&str, &str)], line: &str) -> String {
    let mut command = home.command(line);
    command.envs(variables.iter().copied());
    let ran = Ran::from(command.output().expect("the command runs"));
    format!("$ infold {line}\n{}", home.transcript(&ran))
}

#[test]
fn the_values_in_effect_are_shown_with_their_origin() {
    assert_snapshot!(Home::new().tell("config show\nconfig check"), @"");
    let home = with(CONFIG);
    assert_snapshot!(told(&home, &[("KEY", CANARY), ("CLEANUP_DAYS", "3")], "config show"), @"");
    assert_snapshot!(told(&home, &[("KEY", CANARY), ("INFOLD_CONTEXTS", "there")], "config show --contexts here --json"), @"");
}

#[test]
fn a_wrong_configuration_is_told_of_whole_by_check_and_at_first_by_others() {
    let home = with(
        "llm:\n  provider: opnai\ncontext_storage:\n  enabled: yes\n  cleanup_days: 3\n  colour: red\n",
    );
    assert_snapshot!(home.tell("
        config check
        config check --json
        config show
        task list
        task list --config /dev/null
        completions tcsh
    "), @"");
}

#[test]
fn a_file_that_was_named_must_be_there_and_is_checked() {
    let home = Home::new();
    home.file("tab.yaml", "llm:\n\topenai: {}\n");
    home.file("mine.yaml", "hooks:\n  before_fold: ./ask\n");
    home.file("latin.yaml", b"llm: \xe9\n");
    assert_snapshot!(home.tell("
        config check nowhere.yaml
        task list --config nowhere.yaml
        config check tab.yaml
        config check latin.yaml
        config check mine.yaml
        config check --config mine.yaml --json
        config check .
    "), @"");
    let named = told(&home, &[("INFOLD_CONFIG", "mine.yaml")], "config check");
    assert_eq!(named, "$ infold config check\nmine.yaml is fine\n");
}

#[test]
fn the_file_of_another_program_is_passed_over() {
    let home = with("theme: dark\nplugins: [a]\n");
    assert_snapshot!(home.tell("
        task list
        config check
        config check config.yaml
    "), @"");
    // One's own is found at home then.
    let dir = home.path().join(".config/infold");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("config.yaml"), "hooks: {after_fold: ./tell}\n").unwrap();
    let path = home.path().display().to_string();
    let shown = told(&home, &[("HOME", &path)], "config check").replace(&path, "HOME");
    assert_snapshot!(shown, @"");
}

#[test]
fn a_key_is_in_no_output() {
    let home = with(&format!("{CONFIG}  bad: {{threshold: 900}}\n"));
    home.file(
        "literal.yaml",
        format!("llm: {{openai: {{api_key: {CANARY}}}}}\n"),
    );
    home.file(
        "wrong.yaml",
        "llm: {openai: {api_key: '${KEY}', context_length: '${KEY}', max_tokens: ${KEY}}}\n",
    );
    home.file(
        "list.yaml",
        format!("llm: {{openai: {{api_key: [{CANARY}]}}}}\n"),
    );
    home.file(
        "placed.yaml",
        format!("llm: {{openai: {{apikey: {CANARY}, api_key: {{a: {CANARY}}}}}}}\n"),
    );
    home.file(
        "broken.yaml",
        format!("llm: {{openai: {{api_key: {CANARY}\n"),
    );
    let mut all = String::new();
    for line in [
        "config show",
        "config check",
        "models gpt-5",
        "config show --config literal.yaml",
        "config check literal.yaml",
        "config check wrong.yaml",
        "config check list.yaml",
        "config check placed.yaml",
        "config check broken.yaml",
    ] {
        for json in ["", " --json"] {
            let line = format!("{line}{json}");
            all += &told(&home, &[("KEY", CANARY), ("GEMINI_API_KEY", CANARY)], &line);
        }
    }
    assert!(!all.contains(CANARY), "{all}");
    assert!(all.contains("(set)") && all.contains("a key written into a file"));
}

#[test]
fn tasks_are_where_the_configuration_says_unless_a_flag_or_variable_does() {
    let home = with("context_storage: {base_dir: kept, cleanup_days: 0}\n");
    home.tell("task new");
    assert!(home.path().join("kept/running").exists());
    told(&home, &[("INFOLD_CONTEXTS", "other")], "task new");
    assert!(home.path().join("other/running").exists());
    home.tell("task new --contexts third");
    assert!(home.path().join("third/running").exists());
    assert!(!home.contexts().exists());
    assert_snapshot!(home.tell("
        task complete T1
        task clean --older-than 1d
        task clean --config /dev/null --contexts kept
        task clean
        task list
    "), @"");
}

#[test]
fn models_are_listed_and_explained() {
    let home = with(CONFIG);
    let key = [("KEY", CANARY)];
    assert_snapshot!(told(&home, &key, "models --provider deepseek"), @"");
    assert_snapshot!(told(&home, &key, "models anthropic/claude-opus-4.5"), @"");
    assert_snapshot!(told(&home, &key, "models mystery --profile careful"), @"");
    assert_snapshot!(told(&home, &key, "models mystery --json"), @"");
    assert_snapshot!(told(&home, &key, "models gpt-5 --profile nobody"), @"");
    assert_snapshot!(told(&home, &key, "models --provider acme"), @"");
    let rows = Home::new().objects("models");
    assert_eq!(rows.len(), infold::models::all().len());
    assert!(rows.iter().all(|row| row["window"].is_u64()));
}

#[test]
fn help_gives_examples() {
    for command in ["models", "config", "config show", "config check"] {
        let ran = Home::new().run(&format!("{command} --help"), b"");
        let text = String::from_utf8(ran.stdout).unwrap();
        let (_, examples) = text.split_once("Example").expect(command);
        assert!(examples.contains(&format!("infold {command}")), "{text}");
    }
}
