//! The effects of the configuration, and its description by `config` and `models`.

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
    home.config(config);
    home
}

/// Like [`Home::tell`], for one command with these variables set.
fn told(home: &Home, variables: &[(&str, &str)], line: &str) -> String {
    let mut command = home.command(line);
    command.envs(variables.iter().copied());
    let ran = Ran::from(command.output().expect("the command runs"));
    format!("$ infold {line}\n{}", home.transcript(&ran))
}

#[test]
fn the_values_in_effect_are_shown_with_their_origin() {
    assert_snapshot!(Home::new().tell("config show\nconfig check"), @"
    $ infold config show
    context_storage.enabled                true                                          default
    context_storage.base_dir               ./contexts                                    default
    context_storage.compression_threshold  -
    context_storage.keep_recent_messages   -
    context_storage.cleanup_days           30                                            default
    context_storage.summary_prompt         -
    llm.provider                           -
    summarizer.use                         extractive                                    default
    summarizer.timeout                     120                                           default
    summarizer.check                       false                                         default
    hooks.before_fold                      -
    hooks.after_fold                       -
    redact                                 false                                         default
    recall.auto                            true                                          default
    recall.excerpts                        3                                             default
    layers.inject                          false                                         default
    layers.recent_turns                    5                                             default
    layers.threshold                       0.0                                           default
    layers.relevance                       bm25                                          default
    effective.model                        -
    effective.window                       128000                                        default
    effective.max_tokens                   -
    effective.threshold                    75                                            strategy infold
    effective.auto                         true                                          default
    effective.keep                         0.15                                          strategy infold
    effective.ratio                        0.5                                           strategy infold
    effective.condense_model               -
    effective.prompt                       -
    effective.strategy                     infold                                        default
    effective.serve.host                   127.0.0.1                                     default
    effective.serve.port                   7333                                          default
    effective.upstreams.openai             https://api.openai.com/v1                     default
    effective.upstreams.responses          https://api.openai.com/v1                     default
    effective.upstreams.anthropic          https://api.anthropic.com/v1                  default
    effective.upstreams.gemini             https://generativelanguage.googleapis.com/v…  default
    effective.upstreams.ollama             http://127.0.0.1:11434/api                    default
    ! no configuration file; these are the defaults
    $ infold config check
    ! no configuration file
    ");
    let home = with(CONFIG);
    assert_snapshot!(told(&home, &[("KEY", CANARY), ("CLEANUP_DAYS", "3")], "config show"), @"
    $ infold config show
    context_storage.enabled                true                                 default
    context_storage.base_dir               kept                                 config.yaml:2
    context_storage.compression_threshold  0.7                                  config.yaml:3
    context_storage.keep_recent_messages   -
    context_storage.cleanup_days           3                                    environment CLEANUP_DAYS
    context_storage.summary_prompt         -
    llm.provider                           openai                               config.yaml:6
    llm.openai.provider                    openai                               config.yaml:7
    llm.openai.model                       gpt-5                                config.yaml:8
    llm.openai.api_key                     (set)                                config.yaml:9
    profiles.claude-opus.threshold         60                                   config.yaml:11
    profiles.claude-opus.strategy          roo                                  config.yaml:11
    profiles.careful.window                50000                                config.yaml:12
    summarizer.use                         model                                default
    summarizer.timeout                     120                                  default
    summarizer.check                       false                                default
    hooks.before_fold                      -
    hooks.after_fold                       -
    redact                                 false                                default
    recall.auto                            true                                 default
    recall.excerpts                        3                                    default
    layers.inject                          false                                default
    layers.recent_turns                    5                                    default
    layers.threshold                       0.0                                  default
    layers.relevance                       bm25                                 default
    effective.model                        gpt-5                                config.yaml:8
    effective.window                       272000                               model table: gpt-5
    effective.max_tokens                   -
    effective.threshold                    70                                   config.yaml:3
    effective.auto                         true                                 default
    effective.keep                         0.15                                 strategy infold
    effective.ratio                        0.5                                  strategy infold
    effective.condense_model               gpt-5                                default
    effective.prompt                       -
    effective.strategy                     infold                               default
    effective.serve.host                   127.0.0.1                            default
    effective.serve.port                   7333                                 default
    effective.upstreams.openai             https://api.openai.com/v1            config.yaml:7
    effective.upstreams.responses          https://api.openai.com/v1            config.yaml:7
    effective.upstreams.anthropic          https://api.anthropic.com/v1         default
    effective.upstreams.gemini             https://generativelanguage.googlea…  default
    effective.upstreams.ollama             http://127.0.0.1:11434/api           default
    ! from config.yaml
    ");
    assert_snapshot!(told(&home, &[("KEY", CANARY), ("INFOLD_CONTEXTS", "there")], "config show --contexts here --json"), @r#"
    $ infold config show --contexts here --json
    {"key":"context_storage.enabled","origin":"default","value":true}
    {"key":"context_storage.base_dir","origin":"command line","value":"here"}
    {"key":"context_storage.compression_threshold","origin":"config.yaml:3","value":0.7}
    {"key":"context_storage.keep_recent_messages","origin":"default","value":null}
    {"key":"context_storage.cleanup_days","origin":"config.yaml:4","value":14}
    {"key":"context_storage.summary_prompt","origin":"default","value":null}
    {"key":"llm.provider","origin":"config.yaml:6","value":"openai"}
    {"key":"llm.openai.provider","origin":"config.yaml:7","value":"openai"}
    {"key":"llm.openai.model","origin":"config.yaml:8","value":"gpt-5"}
    {"key":"llm.openai.api_key","origin":"config.yaml:9","value":"(set)"}
    {"key":"profiles.claude-opus.threshold","origin":"config.yaml:11","value":60}
    {"key":"profiles.claude-opus.strategy","origin":"config.yaml:11","value":"roo"}
    {"key":"profiles.careful.window","origin":"config.yaml:12","value":50000}
    {"key":"summarizer.use","origin":"default","value":"model"}
    {"key":"summarizer.timeout","origin":"default","value":120}
    {"key":"summarizer.check","origin":"default","value":false}
    {"key":"hooks.before_fold","origin":"default","value":null}
    {"key":"hooks.after_fold","origin":"default","value":null}
    {"key":"redact","origin":"default","value":false}
    {"key":"recall.auto","origin":"default","value":true}
    {"key":"recall.excerpts","origin":"default","value":3}
    {"key":"layers.inject","origin":"default","value":false}
    {"key":"layers.recent_turns","origin":"default","value":5}
    {"key":"layers.threshold","origin":"default","value":0.0}
    {"key":"layers.relevance","origin":"default","value":"bm25"}
    {"key":"effective.model","origin":"config.yaml:8","value":"gpt-5"}
    {"key":"effective.window","origin":"model table: gpt-5","value":272000}
    {"key":"effective.max_tokens","origin":"default","value":null}
    {"key":"effective.threshold","origin":"config.yaml:3","value":70}
    {"key":"effective.auto","origin":"default","value":true}
    {"key":"effective.keep","origin":"strategy infold","value":0.15}
    {"key":"effective.ratio","origin":"strategy infold","value":0.5}
    {"key":"effective.condense_model","origin":"default","value":"gpt-5"}
    {"key":"effective.prompt","origin":"strategy infold","value":null}
    {"key":"effective.strategy","origin":"default","value":"infold"}
    {"key":"effective.serve.host","origin":"default","value":"127.0.0.1"}
    {"key":"effective.serve.port","origin":"default","value":7333}
    {"key":"effective.upstreams.openai","origin":"config.yaml:7","value":"https://api.openai.com/v1"}
    {"key":"effective.upstreams.responses","origin":"config.yaml:7","value":"https://api.openai.com/v1"}
    {"key":"effective.upstreams.anthropic","origin":"default","value":"https://api.anthropic.com/v1"}
    {"key":"effective.upstreams.gemini","origin":"default","value":"https://generativelanguage.googleapis.com/v1beta"}
    {"key":"effective.upstreams.ollama","origin":"default","value":"http://127.0.0.1:11434/api"}
    "#);
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
    "), @r#"
    $ infold config check
    ! error: config.yaml:2: `llm.provider` takes one of openai, responses, anthropic, gemini, ollama, lmstudio, not `opnai`; did you mean `openai`?
    ! error: config.yaml:4: `context_storage.enabled` takes true or false, not `yes`
    ! error: config.yaml:6: `colour` has no meaning in `context_storage`; valid are enabled, base_dir, compression_threshold, keep_recent_messages, cleanup_days, summary_prompt
    [2]
    $ infold config check --json
    ! {"error":"config.yaml:2: `llm.provider` takes one of openai, responses, anthropic, gemini, ollama, lmstudio, not `opnai`; did you mean `openai`?","exit":2,"hint":null}
    ! {"error":"config.yaml:4: `context_storage.enabled` takes true or false, not `yes`","exit":2,"hint":null}
    ! {"error":"config.yaml:6: `colour` has no meaning in `context_storage`; valid are enabled, base_dir, compression_threshold, keep_recent_messages, cleanup_days, summary_prompt","exit":2,"hint":null}
    [2]
    $ infold config show
    ! error: config.yaml:2: `llm.provider` takes one of openai, responses, anthropic, gemini, ollama, lmstudio, not `opnai`; did you mean `openai`?
    ! hint: 2 more errors; `infold config check` shows all
    [2]
    $ infold task list
    ! error: config.yaml:2: `llm.provider` takes one of openai, responses, anthropic, gemini, ollama, lmstudio, not `opnai`; did you mean `openai`?
    ! hint: 2 more errors; `infold config check` shows all
    [2]
    $ infold task list --config /dev/null
    ! no tasks
    "#);
}

#[test]
fn completions_need_no_configuration() {
    let ran = with("llm: [\n").run("completions bash", b"");
    assert_eq!((ran.code, ran.stderr.len()), (0, 0));
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
    "), @r#"
    $ infold config check nowhere.yaml
    ! error: nowhere.yaml could not be read: No such file or directory (os error 2)
    ! hint: --config or INFOLD_CONFIG names the file; /dev/null means none
    [2]
    $ infold task list --config nowhere.yaml
    ! error: nowhere.yaml could not be read: No such file or directory (os error 2)
    ! hint: --config or INFOLD_CONFIG names the file; /dev/null means none
    [2]
    $ infold config check tab.yaml
    ! error: tab.yaml:2: this is not YAML: tabs disallowed within this context (block indentation)
    ! hint: indent with spaces, never with tabs; quote texts that hold `: ` or ` #`
    [2]
    $ infold config check latin.yaml
    ! error: latin.yaml could not be read: stream did not contain valid UTF-8
    ! hint: --config or INFOLD_CONFIG names the file; /dev/null means none
    [2]
    $ infold config check mine.yaml
    mine.yaml is valid
    $ infold config check --config mine.yaml --json
    {"file":"mine.yaml","files":["mine.yaml"],"ok":true,"warnings":[]}
    $ infold config check .
    ! error: . could not be read: Is a directory (os error 21)
    ! hint: --config or INFOLD_CONFIG names the file; /dev/null means none
    [2]
    "#);
    let named = told(&home, &[("INFOLD_CONFIG", "mine.yaml")], "config check");
    assert_eq!(named, "$ infold config check\nmine.yaml is valid\n");
}

#[test]
fn the_file_of_another_program_is_passed_over() {
    let home = Home::new();
    home.file("config.yaml", "theme: dark\nplugins: [a]\n");
    assert_snapshot!(home.tell("
        task list
        config check
        config check config.yaml
    "), @"
    $ infold task list
    ! no tasks
    $ infold config check
    ! config.yaml belongs to another program: it has no context_storage, llm, profiles, summarizer, serve, redact, recall or layers; --config config.yaml reads it anyway
    ! no configuration file
    $ infold config check config.yaml
    ! error: config.yaml:1: `theme` has no meaning here; valid are context_storage, llm, profiles, models, summarizer, hooks, serve, tools, mcp_servers, redact, recall, layers, sources, work
    ! error: config.yaml:2: `plugins` has no meaning here; valid are context_storage, llm, profiles, models, summarizer, hooks, serve, tools, mcp_servers, redact, recall, layers, sources, work
    [2]
    ");
    // The user's own file is then in the home directory.
    let dir = home.path().join(".config/infold");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("config.yaml"), "hooks: {after_fold: ./tell}\n").unwrap();
    let path = home.path().display().to_string();
    let shown = told(&home, &[("HOME", &path)], "config check").replace(&path, "HOME");
    assert_snapshot!(shown, @"
    $ infold config check
    DIR/.config/infold/config.yaml is valid
    ! config.yaml belongs to another program: it has no context_storage, llm, profiles, summarizer, serve, redact, recall or layers; --config config.yaml reads it anyway
    ");
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
    "), @"
    $ infold task complete T1
    task T1 completed; it stays readable
    $ infold task clean --older-than 1d
    ! 0 tasks removed
    $ infold task clean --config /dev/null --contexts kept
    ! 0 tasks removed
    $ infold task clean
    T1  completed
    ! 1 task removed
    $ infold task list
    ! no tasks
    ");
}

#[test]
fn models_are_listed_and_explained() {
    let home = with(CONFIG);
    let key = [("KEY", CANARY)];
    assert_snapshot!(told(&home, &key, "models --provider deepseek"), @"
    $ infold models --provider deepseek
    model                 window   output  tokens  prices                fold at  keep  condensed by
    deepseek
    deepseek             131,072    8,192  other   -                           -     -  -
    deepseek-chat        131,072    8,192  other   0.28/0.028/0.28/0.42        -     -  -
    deepseek-coder       128,000    4,096  other   0.14/0.014/0.14/0.28        -     -  -
    deepseek-flash     1,000,000  393,216  other   0.3/0.006/0.3/1.2           -     -  -
    deepseek-r1           65,536    8,192  other   0.55/0.14/0.55/2.19         -     -  -
    deepseek-reasoner    131,072   65,536  other   0.28/0.028/0.28/0.42        -     -  -
    deepseek-v3           65,536    8,192  other   0.27/0.07/0.27/1.1          -     -  -
    deepseek-v3.2        163,840  163,840  other   0.28/0.028/0.28/0.4         -     -  -
    deepseek-v4-flash  1,000,000  393,216  other   0.3/0.006/0.3/1.2           -     -  -
    deepseek-v4-pro    1,000,000  393,216  other   1.32/0.044/1.32/3.96        -     -  -
    ");
    assert_snapshot!(told(&home, &key, "models anthropic/claude-opus-4.5"), @"
    $ infold models anthropic/claude-opus-4.5
    model           anthropic/claude-opus-4.5  matches claude-opus-4-5
    provider        anthropic
    window          200,000 tokens             model table: claude-opus-4-5
    max_output      64,000 tokens              model table: claude-opus-4-5
    threshold       60 %, 120,000 tokens       config.yaml:11
    auto            true                       default
    keep            5 messages                 model table: claude-opus-4-5
    ratio           0.3                        model table: claude-opus-4-5
    condense_model  anthropic/claude-opus-4.5  default
    strategy        roo                        config.yaml:11
    tokenizer       claude                     model table: claude-opus-4-5
    factor          × 1.45                     model table: claude-opus-4-5
    prices          5/0.5/6.25/25              model table: claude-opus-4-5
    ");
    assert_snapshot!(told(&home, &key, "models mystery --profile careful"), @"
    $ infold models mystery --profile careful
    model           mystery              not in the table
    provider        -
    window          50,000 tokens        config.yaml:12
    threshold       70 %, 35,000 tokens  config.yaml:3
    auto            true                 default
    keep            15 %                 strategy infold
    ratio           0.5                  strategy infold
    condense_model  mystery              default
    strategy        infold               default
    tokenizer       other                default
    factor          × 1.5                default
    ");
    assert_snapshot!(told(&home, &key, "models mystery --json"), @r#"
    $ infold models mystery --json
    {"auto":true,"condense_model":"mystery","factor":1.5,"keep":0.15,"learned_windows":[],"matched":null,"max_output":null,"max_tokens":null,"model":"mystery","origins":{"auto":"default","condense_model":"default","factor":"default","keep":"strategy infold","max_output":"default","max_tokens":"default","prices":"default","prompt":"strategy infold","ratio":"strategy infold","strategy":"default","threshold":"config.yaml:3","tokenizer":"default","window":"default"},"prices":null,"prompt":null,"provider":null,"ratio":0.5,"strategy":"infold","threshold":70.0,"tokenizer":"other","warnings":["nothing is known of model `mystery`: a window of 128000 tokens is assumed"],"window":128000}
    ! {"hint":null,"warning":"nothing is known of model `mystery`: a window of 128000 tokens is assumed"}
    "#);
    assert_snapshot!(told(&home, &key, "models gpt-5 --profile nobody"), @"
    $ infold models gpt-5 --profile nobody
    ! error: there is no profile `nobody`
    ! hint: available: claude-opus, careful
    [2]
    ");
    assert_snapshot!(told(&home, &key, "models --provider acme"), @"
    $ infold models --provider acme
    ! error: no models of `acme`
    ! hint: available: anthropic, deepseek, gemini, meta, mistral, moonshot, openai, other, qwen, xai, zai
    [2]
    ");
    let rows = Home::new().objects("models");
    assert_eq!(rows.len(), infold::models::all().len());
    assert!(rows.iter().all(|row| row["window"].is_u64()));
}

#[test]
fn help_gives_examples() {
    for command in [
        "models",
        "config",
        "config show",
        "config check",
        "config trust",
        "config untrust",
    ] {
        let ran = Home::new().run(&format!("{command} --help"), b"");
        let text = String::from_utf8(ran.stdout).unwrap();
        let (_, examples) = text.split_once("Example").expect(command);
        assert!(examples.contains(&format!("infold {command}")), "{text}");
    }
}

#[test]
fn a_learned_window_is_shown_and_can_be_forgotten() {
    let home = Home::new();
    std::fs::create_dir(home.contexts()).expect("a directory");
    let registry = infold_store::Registry::open(&home.contexts()).expect("a registry");
    let now = jiff::Timestamp::now();
    registry
        .set_window("acme", "mystery", 30_000, now)
        .expect("it is kept");
    drop(registry);
    let run = |line: &str| home.tell(line).replace(&format!("{now:.0}"), "NOW");
    let shown = run("models mystery");
    assert!(
        shown.contains("learned window  30,000 tokens        from acme at NOW, valid for a day"),
        "{shown}"
    );
    let json = home.tell("models acme/mystery --json");
    assert!(
        json.contains(r#""learned_windows":[{"learned_at":""#)
            && json.contains(r#""model":"mystery","provider":"acme","window":30000}]"#),
        "{json}"
    );
    let forget = "models mystery --forget\nmodels mystery --forget\nmodels mystery --forget --json";
    assert_snapshot!(run(forget), @r#"
    $ infold models mystery --forget
    forgotten: 30,000 tokens, learned from acme
    $ infold models mystery --forget
    no learned window for mystery
    $ infold models mystery --forget --json
    {"forgotten":[],"model":"mystery"}
    "#);
    assert!(!run("models mystery").contains("learned"));
}

#[test]
fn what_is_known_of_a_model_is_told_without_making_anything() {
    let home = Home::new();
    home.tell("models mystery\nmodels mystery --forget");
    assert!(!home.contexts().exists());
}
