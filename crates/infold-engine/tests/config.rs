//! The meaning of configurations, and the messages about wrong ones.

use std::time::{Duration, Instant};

use infold::Config;
use infold::config::{ConfigSource, ParsedConfig, ProfileRequest, SECTIONS};
use infold::profile::{KeepRecent, ResolvedProfile, Setting, Settings};
use insta::assert_snapshot;
use proptest::prelude::*;

const CANARY: &str = "sk-canary-0123456789";

fn env(name: &str) -> Option<String> {
    match name {
        "KEY" => Some(CANARY.to_owned()),
        "DAYS" => Some("7".to_owned()),
        "EMPTY" => Some(String::new()),
        "HOME" => Some("/home/ada".to_owned()),
        _ => None,
    }
}

fn read(text: &str) -> Config {
    match Config::parse("c.yaml", text, &env) {
        Ok((config, _)) => config,
        Err(errors) => panic!("{}", lines(&errors)),
    }
}

/// Returns all errors, one on each line; or the warnings.
fn told(text: &str) -> String {
    match Config::parse("c.yaml", text, &env) {
        Ok((_, warnings)) => format!("fine\n{}", lines(&warnings)),
        Err(errors) => lines(&errors),
    }
}

fn lines(all: &[impl ToString]) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join("\n")
}

fn profile(config: &Config, model: &str) -> ResolvedProfile {
    let asked = ProfileRequest {
        model: Some(model.to_owned()),
        ..ProfileRequest::default()
    };
    config.resolve(&asked).expect("no profile is named")
}

#[test]
fn the_documented_example_is_right_and_complete() {
    let document = include_str!("../../../docs/CONFIG.md");
    let (_, rest) = document.split_once("```yaml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let full = |name: &str| (name == "OPENAI_API_KEY").then(|| CANARY.to_owned());
    let (config, warnings) = Config::parse("example", example, &full).unwrap();
    assert_eq!(warnings, [""; 0]);
    for section in SECTIONS {
        assert!(format!("\n{example}").contains(&format!("\n{section}:")));
    }
    // All settings are set there: no default is in effect.
    let entries = config.entries();
    let defaults = entries
        .iter()
        .filter(|entry| entry.origin.to_string() == "default");
    assert_eq!(defaults.count(), 0);
    for variable in [
        "INFOLD_CONFIG",
        "INFOLD_CONTEXTS",
        "INFOLD_DURABILITY",
        "INFOLD_MODEL",
        "INFOLD_PROFILE",
        "INFOLD_WINDOW",
        "INFOLD_STRATEGY",
        "INFOLD_SUMMARIZER",
        "CONTEXT_STORAGE_ENABLED",
        "COMPRESSION_THRESHOLD",
        "CLEANUP_DAYS",
    ] {
        assert!(document.contains(&format!("`{variable}`")), "{variable}");
    }
}

#[test]
fn nothing_at_all_is_a_configuration() {
    for text in [
        "",
        "\n\n",
        "# only this\n",
        "---\n",
        "\u{feff}",
        "~\n",
        "llm:\nprofiles:\n",
    ] {
        assert_eq!(read(text), Config::default(), "{text:?}");
    }
}

#[test]
fn an_unknown_key_is_told_with_its_line_and_the_nearest() {
    assert_snapshot!(told("
context_storge: {}
context_storage:
  cleanup-days: 3
  keepRecentMessages: 4
  colour: red
llm:
  opnai: {model: x}
  openai: {modle: x}
  mine: {model: x}
  model: x
profiles:
  p: {treshold: 3}
models:
  m: {prices: {inptu: 3}}
hooks: {before: x}
summarizer: {usee: extractive}
"), @"
    c.yaml:2: `context_storge` has no meaning here; did you mean `context_storage`?
    c.yaml:4: `cleanup-days` has no meaning in `context_storage`; did you mean `cleanup_days`?
    c.yaml:5: `keepRecentMessages` has no meaning in `context_storage`; did you mean `keep_recent_messages`?
    c.yaml:6: `colour` has no meaning in `context_storage`; valid are enabled, base_dir, compression_threshold, keep_recent_messages, cleanup_days, summary_prompt
    c.yaml:8: `opnai` has no meaning in `llm`; did you mean `openai`?
    c.yaml:9: `modle` has no meaning in `llm.openai`; did you mean `model`?
    c.yaml:10: `mine` has no meaning in `llm` without a `provider:` of its own that says which API it speaks; valid are provider, openai, responses, anthropic, gemini, ollama, lmstudio
    c.yaml:11: `model` has no meaning in `llm`; valid are provider, openai, responses, anthropic, gemini, ollama, lmstudio
    c.yaml:13: `treshold` has no meaning in `profiles.p`; did you mean `threshold`?
    c.yaml:15: `inptu` has no meaning in `models.m.prices`; did you mean `input`?
    c.yaml:15: `models.m.prices` takes at least `input` and `output`, not less
    c.yaml:16: `before` has no meaning in `hooks`; valid are before_fold, after_fold
    c.yaml:17: `usee` has no meaning in `summarizer`; did you mean `use`?
    ");
}

#[test]
fn a_wrong_value_is_told_with_what_the_key_takes() {
    assert_snapshot!(told("
context_storage:
  enabled: yes
  base_dir: [a, b]
  compression_threshold: high
  keep_recent_messages: 2.5
  cleanup_days: -1
  summary_prompt: {a: b}
llm:
  provider: opnai
  openai:
    context_length: 128kb
    base_url: u:secret@localhost:8080
    max_tokens: 0
  mine: {provider: opena}
profiles:
  p:
    strategy: ro
    keep: -3
    ratio: 1.5
    auto: 'true'
    window: .inf
models:
  m:
    tokenizer: o200
    prices: {input: 3}
summarizer: magic
hooks: none
"), @"
    c.yaml:3: `context_storage.enabled` takes true or false, not `yes`
    c.yaml:4: `context_storage.base_dir` takes a directory, not a list
    c.yaml:5: `context_storage.compression_threshold` takes a fraction up to 1, a percentage up to 100, or -1 to inherit, not `high`
    c.yaml:6: `context_storage.keep_recent_messages` takes a number of messages, not `2.5`
    c.yaml:7: `context_storage.cleanup_days` takes a number of days, from 0 to 36500, not `-1`
    c.yaml:8: `context_storage.summary_prompt` takes a text, not a mapping
    c.yaml:10: `llm.provider` takes one of openai, responses, anthropic, gemini, ollama, lmstudio, mine, not `opnai`; did you mean `openai`?
    c.yaml:12: `llm.openai.context_length` takes a number of tokens, not `128kb`
    c.yaml:13: `llm.openai.base_url` takes an address that starts with http:// or https://, not `localhost:8080`
    c.yaml:14: `llm.openai.max_tokens` takes a number of tokens, not `0`
    c.yaml:15: `llm.mine.provider` takes one of openai, responses, anthropic, gemini, ollama, lmstudio, not `opena`; did you mean `openai`?
    c.yaml:18: `profiles.p.strategy` takes one of infold, roo, gemini, file, truncate, not `ro`; did you mean `roo`?
    c.yaml:19: `profiles.p.keep` takes a number of messages, or a share below 1, not `-3`
    c.yaml:20: `profiles.p.ratio` takes a number between 0 and 1, not `1.5`
    c.yaml:21: `profiles.p.auto` takes true or false, not the text `true`
    c.yaml:22: `profiles.p.window` takes a number of tokens, not `.inf`
    c.yaml:25: `models.m.tokenizer` takes one of o200k, cl100k, claude, other, not `o200`; did you mean `o200k`?
    c.yaml:26: `models.m.prices` takes at least `input` and `output`, not less
    c.yaml:27: `summarizer` takes `extractive`, `model`, `model:` and its name, or `command:` and a command, not `magic`
    c.yaml:28: `hooks` takes a mapping of keys to values, not `none`
    ");
}

#[test]
fn what_is_no_yaml_is_told_with_its_line() {
    let broken = [
        "llm:\n\topenai: {}\n",
        "llm:\n  openai: {}\n  openai: {}\n",
        "llm: {openai: {}\n",
        "llm: [a, b\n\n",
        "llm: 'open\n",
        "llm: x: y\n",
        "llm:\n  openai: {}\n provider: openai\n",
        "llm: *nowhere\n",
        "llm: &a\n  x: *a\n",
        "llm: {? [a] : b}\n",
        "llm: !!python/object x\n",
        "llm:\n---\nllm:\n",
        "- llm\n",
        "llm\n",
        "\u{0}",
    ];
    let told: Vec<String> = broken.iter().map(|text| told(text)).collect();
    assert_snapshot!(told.join("\n"), @"
    c.yaml:2: this is not YAML: tabs disallowed within this context (block indentation)
    c.yaml:3: `openai` was set before, on line 2
    c.yaml:2: this is not YAML: while parsing a flow mapping, did not find expected ',' or '}'
    c.yaml:3: this is not YAML: while parsing a flow sequence, expected ',' or ']'
    c.yaml:1: this is not YAML: while scanning a quoted scalar, found unexpected end of stream
    c.yaml:1: this is not YAML: mapping values are not allowed in this context
    c.yaml:3: this is not YAML: while parsing a block mapping, did not find expected key
    c.yaml:1: this is not YAML: while parsing node, found unknown anchor
    c.yaml:2: this is not YAML: an alias refers to a value that contains it
    c.yaml:1: this is not YAML: a key is one word, not a list or a mapping
    c.yaml:1: this is not YAML: the tag tag:yaml.org,2002:!python/object has no meaning here
    c.yaml:2: this is not YAML: there is a second document
    c.yaml:1: `the file` takes a mapping of keys to values, not a list
    c.yaml:1: `the file` takes a mapping of keys to values, not `llm`
    c.yaml:1: this is not YAML: found unprintable character
    ");
}

#[test]
fn variables_are_filled_in_or_missed() {
    let config = read(
        "
context_storage:
  cleanup_days: ${DAYS}
  base_dir: ~/${NOT_SET:-folded}/$${x}/$HOME/${EMPTY:-e}
  keep_recent_messages: \"${DAYS}\"
  summary_prompt: a ${EMPTY}b
",
    );
    let storage = config.context_storage;
    assert_eq!(storage.cleanup_days.value, 7);
    assert_eq!(storage.keep_recent_messages.map(|set| set.value), Some(7));
    assert_eq!(
        storage.summary_prompt.map(|set| set.value).as_deref(),
        Some("a b")
    );
    let dir = storage.base_dir.value;
    assert_eq!(dir.to_str(), Some("/home/ada/folded/${x}/$HOME/e"));
    assert_snapshot!(told("
context_storage:
  base_dir: ${
  cleanup_days: ${DAYS:-
  summary_prompt: |
    one

    two ${NOT_SET}
llm:
  openai:
    model: ${1x}
    api_key: ${}
    base_url: ${not set}
"), @"
    c.yaml:3: `${` is not followed by a name and `}`
    c.yaml:4: `${` is not followed by a name and `}`
    c.yaml:8: the variable NOT_SET is not set
    c.yaml:11: `${` is not followed by a name and `}`
    c.yaml:12: `${` is not followed by a name and `}`
    c.yaml:13: `${` is not followed by a name and `}`
    ");
}

#[test]
fn what_a_variable_holds_is_text_and_not_yaml() {
    let env = |name: &str| (name == "X").then(|| "a\nllm: {provider: evil}".to_owned());
    let (config, _) = Config::parse("c", "context_storage:\n  base_dir: ${X}\n", &env).unwrap();
    assert_eq!(config.llm.provider, None);
    let dir = config.context_storage.base_dir.value;
    assert_eq!(dir.to_str(), Some("a\nllm: {provider: evil}"));
}

#[test]
fn the_environment_replaces_what_the_file_says() {
    let text = "context_storage: {enabled: true, cleanup_days: 3, compression_threshold: 50}";
    let env = |name: &str| {
        let value = match name {
            "CONTEXT_STORAGE_ENABLED" => "0",
            "COMPRESSION_THRESHOLD" => "0.6",
            "CLEANUP_DAYS" => "9",
            "INFOLD_WINDOW" => "5000",
            "INFOLD_STRATEGY" => "file",
            "INFOLD_MODEL" => "gpt-4o",
            "INFOLD_SUMMARIZER" => "command:cat",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let (config, _) = Config::parse("c.yaml", text, &env).unwrap();
    assert!(!config.context_storage.enabled.value);
    assert_eq!(config.context_storage.cleanup_days.value, 9);
    assert_eq!(config.summarizer.name.value, "command:cat");
    let resolved = config.resolve(&ProfileRequest::default()).unwrap();
    let profile = resolved.profile;
    assert_eq!(profile.model, "gpt-4o");
    assert_eq!((profile.window, &*profile.strategy), (5000, "file"));
    assert_eq!(profile.threshold.percent(), 60.0);

    let wrong = |name: &str| match name {
        "HOME" | "INFOLD_CONTEXTS" | "INFOLD_MODEL" | "INFOLD_PROFILE" => None,
        _ => Some("soon".to_owned()),
    };
    let errors = Config::parse("c.yaml", "", &wrong).unwrap_err();
    assert_snapshot!(lines(&errors), @"
    environment CONTEXT_STORAGE_ENABLED: `CONTEXT_STORAGE_ENABLED` takes true or false, not `soon`
    environment COMPRESSION_THRESHOLD: `COMPRESSION_THRESHOLD` takes a fraction up to 1, a percentage up to 100, or -1 to inherit, not `soon`
    environment CLEANUP_DAYS: `CLEANUP_DAYS` takes a number of days, from 0 to 36500, not `soon`
    environment INFOLD_WINDOW: `INFOLD_WINDOW` takes a number of tokens, not `soon`
    environment INFOLD_STRATEGY: `INFOLD_STRATEGY` takes one of infold, roo, gemini, file, truncate, not `soon`
    environment INFOLD_SUMMARIZER: `INFOLD_SUMMARIZER` takes `extractive`, `model`, `model:` and its name, or `command:` and a command, not `soon`
    ");
}

#[test]
fn the_profile_comes_before_the_file_the_table_and_the_strategy() {
    let config = read(
        "
context_storage: {compression_threshold: 0.7, keep_recent_messages: 9}
llm:
  provider: openai
  openai: {model: gpt-4o, context_length: 64000, max_tokens: 1000}
  ollama: {model: 'llama3.1:8b', context_length: 16000}
profiles:
  default: {ratio: 0.4, threshold: 400}
  claude: {threshold: 66}
  claude-opus: {threshold: -1, strategy: roo}
  mine: {threshold: 10, keep: 0.5}
models:
  gpt-4o: {threshold: 44, tokenizer: cl100k}
  new-thing: {window: 50000, prices: {input: 1, output: 2}}
",
    );
    let shown = |resolved: ResolvedProfile| {
        let profile = resolved.profile;
        format!(
            "{}: {} of {}, keep {}, ratio {}, {}, factor {}\n",
            profile.model,
            profile.threshold,
            profile.window,
            profile.keep,
            profile.ratio,
            profile.strategy,
            profile.factor
        )
    };
    let mut all = String::new();
    for model in [
        "claude-sonnet-4-5",
        "claude-opus-4-5",
        "gpt-4o",
        "gpt-5",
        "llama3.1:8b",
        "new-thing-2",
    ] {
        all += &shown(profile(&config, model));
    }
    let usual = config.resolve(&ProfileRequest::default()).unwrap();
    assert_eq!(
        (usual.profile.max_tokens, usual.warnings.len()),
        (Some(1000), 1)
    );
    all += &shown(usual);
    let asked = ProfileRequest {
        model: Some("claude-opus-4-5".to_owned()),
        profile: Some("mine".to_owned()),
        settings: Settings {
            window: Some(Setting::call(12_000)),
            keep: Some(Setting::call(KeepRecent::Messages(1))),
            ..Settings::default()
        },
    };
    all += &shown(config.resolve(&asked).unwrap());
    assert_snapshot!(all, @"
    claude-sonnet-4-5: 66 % of 200000, keep 9 messages, ratio 0.4, infold, factor 1.45
    claude-opus-4-5: 70 % of 200000, keep 9 messages, ratio 0.4, roo, factor 1.45
    gpt-4o: 70 % of 64000, keep 9 messages, ratio 0.4, infold, factor 1.1
    gpt-5: 70 % of 272000, keep 9 messages, ratio 0.4, infold, factor 1
    llama3.1:8b: 70 % of 16000, keep 9 messages, ratio 0.4, infold, factor 1.5
    new-thing-2: 70 % of 50000, keep 9 messages, ratio 0.4, infold, factor 1.5
    gpt-4o: 70 % of 64000, keep 9 messages, ratio 0.4, infold, factor 1.1
    claude-opus-4-5: 10 % of 12000, keep 1 message, ratio 0.4, infold, factor 1.45
    ");
    let missing = ProfileRequest {
        profile: Some("nobody".to_owned()),
        ..ProfileRequest::default()
    };
    let error = config.resolve(&missing).unwrap_err();
    assert_eq!(error.all, ["default", "claude", "claude-opus", "mine"]);
}

#[test]
fn a_row_of_ones_own_changes_what_it_names_and_nothing_else() {
    let config = read("models:\n  gpt-4o: {prices: {output: 99}}\n  gpt-: {window: 5000}\n");
    let row = config.find("gpt-4o-2024-08-06").expect("known");
    let prices = row.prices.expect("priced");
    assert_eq!(
        (row.window, prices.input, prices.cached, prices.output),
        (128_000, 2.5, 1.25, 99.0)
    );
    // The longer name of the built-in table wins.
    assert_eq!(config.find("gpt-5").map(|row| row.window), Some(272_000));
    assert_eq!(config.find("gpt-99").map(|row| row.window), Some(5000));
}

#[test]
fn a_key_is_never_shown() {
    let text = format!(
        "
llm:
  openai: {{api_key: '${{KEY}}', base_url: 'https://u:{CANARY}@h/v1?key={CANARY}'}}
  gemini: {{api_key: {CANARY}}}
mcp_servers: {{a: {{command: x, env: {{TOKEN: {CANARY}}}}}}}
"
    );
    let (config, warnings) = Config::parse("c.yaml", &text, &env).unwrap();
    let key = config.llm.providers[0].api_key.as_ref().expect("a key");
    assert_eq!(key.value.reveal(), CANARY);
    assert_snapshot!(lines(&warnings), @"c.yaml:4: `llm.gemini.api_key`: a key written into a file is easily shared by mistake; write ${NAME} and set that variable");
    let entries = format!("{:?}", config.entries());
    assert!(!entries.contains(CANARY), "{entries}");
    let debug = format!("{:?}", config.llm.providers[1]);
    assert!(!debug.contains(CANARY), "{debug}");
    // A misplaced key is shown as it was written: by the name of its variable.
    let wrong = told(
        "context_storage: {cleanup_days: '${KEY}', enabled: '${KEY}'}\nllm: {provider: '${KEY}'}",
    );
    assert!(
        wrong.contains("`${KEY}`") && !wrong.contains(CANARY),
        "{wrong}"
    );
}

#[test]
fn a_key_of_the_environment_goes_to_its_own_provider_only() {
    let env = |name: &str| (name == "OPENAI_API_KEY").then(|| CANARY.to_owned());
    let has_key = |text: &str| -> Vec<bool> {
        let (config, _) = Config::parse("c", text, &env).expect("it is right");
        let providers = config.llm.providers.iter();
        providers.map(|one| one.api_key.is_some()).collect()
    };
    let two = "llm:\n  openai: {}\n  x: {provider: openai}\n";
    assert_eq!(has_key(two), [true, false]);
    let elsewhere = "llm:\n  openai: {base_url: 'http://elsewhere/v1'}\n";
    assert_eq!(has_key(elsewhere), [false]);
}

#[test]
fn a_bomb_does_not_go_off() {
    let start = Instant::now();
    let mut bomb = "tools:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let below = format!("*a{}", level - 1);
        let row = [below.as_str(); 10].join(", ");
        bomb += &format!("  a{level}: &a{level} [{row}]\n");
    }
    let deep = format!("tools: {}{}", "[".repeat(100), "]".repeat(100));
    let step = |at| format!("{}a:\n", " ".repeat(at));
    let steps: String = (1..500).map(step).collect();
    let many = "a: b\n".repeat(1_000_000);
    let long = format!("tools: [{}]", "x, ".repeat(30_000));
    let wide = format!(
        "tools:\n  a: &a [{}]\n  b: [{}]\n",
        "x, ".repeat(9000),
        "*a, ".repeat(20_000)
    );
    // Few copies of a long text are many bytes.
    let heavy = format!(
        "tools:\n  a: &a {{{}: 1}}\n  b: [{}]\n",
        "k".repeat(100_000),
        "*a, ".repeat(1000)
    );
    for text in [
        bomb,
        wide,
        deep,
        format!("tools:\n{steps}"),
        many,
        long,
        heavy,
    ] {
        let told = told(&text);
        assert!(told.contains("too large or too deeply nested"), "{told}");
    }
    let brackets = told(&format!("tools: {}", "[".repeat(100_000)));
    assert!(brackets.contains("c.yaml:1:"), "{brackets}");
    assert!(start.elapsed() < Duration::from_secs(60));
}

proptest! {
    /// Any text is read or refused, and every refusal names a line that exists and no key.
    #[test]
    fn any_text_is_read_or_refused(
        words in prop::collection::vec(prop::sample::select(vec![
            "llm", "openai", "profiles", "context_storage", "enabled", "keep", ": ", ":", "\n",
            "\n  ", "\n    ", "- ", "[", "]", "{", "}", ", ", "&a ", "*a", "!t ", "|\n", ">\n",
            "'", "\"", "#", "${KEY}", "${NO}", "${", "$$", "true", "0.5", "-1", "\t", "---\n",
            "...", "%YAML 1.2\n", "? ", "é", "<<", "~",
        ]), 0..40),
    ) {
        let text = words.concat();
        if let Err(errors) = Config::parse("c.yaml", &text, &env) {
            for error in errors {
                let shown = error.to_string();
                let line = shown.split(':').nth(1).and_then(|line| line.parse::<usize>().ok());
                let count = text.lines().count() + 1;
                prop_assert!(line.is_some_and(|line| (1..=count).contains(&line)), "{}", shown);
                prop_assert!(!shown.contains(CANARY));
            }
        }
    }
}

#[test]
fn a_model_costs_what_its_maker_or_the_user_says_and_nothing_here() {
    let text = "models: {gpt-4o-mini: {prices: {input: 7, output: 8}}, o3: {window: 9000}}";
    let (config, _) = Config::parse("config.yaml", text, &|_| None).expect("it is right");
    let input = |model: &str, api: &str, local| {
        let provider = config.provider_named(api).expect("an API");
        config
            .prices(model, &provider, local)
            .map(|prices| prices.input)
    };
    assert_eq!(input("gpt-4o", "openai", false), Some(2.5));
    assert_eq!(input("gpt-4o", "responses", false), Some(2.5));
    assert_eq!(input("gpt-4o", "anthropic", false), None);
    assert_eq!(input("gpt-4o", "openai", true), None);
    assert_eq!(input("gpt-4o-mini", "ollama", true), Some(7.0));
    assert_eq!(input("o3", "ollama", true), None);
    assert!(input("o3", "openai", false).is_some());
}

#[test]
fn a_proxy_is_told_where_to_listen_and_where_to_send() {
    let config = read(
        "serve:\n  port: 8080\n  host: '[::1]'\n  token: ${KEY}\n  names: [Box.lan, other]\n  upstream_idle: 0\n  upstreams:\n    openai: local\n    anthropic: https://host/v1\nllm:\n  local: {provider: openai}\n",
    );
    let serve = &config.serve;
    assert_eq!(serve.port.as_ref().map(|set| set.value), Some(8080));
    let host = serve.host.as_ref().map(|set| set.value.to_string());
    assert_eq!(host.as_deref(), Some("::1"));
    let token = serve.token.as_ref().map(|set| set.value.reveal());
    assert_eq!(token, Some(CANARY));
    let names: Vec<&str> = serve.names.iter().map(|set| set.value.as_str()).collect();
    assert_eq!(names, ["box.lan", "other"]);
    assert_eq!(serve.upstream_idle.as_ref().map(|set| set.value), Some(0));
    let upstreams: Vec<_> = serve
        .upstreams
        .iter()
        .map(|(api, set)| (*api, set.value.as_str()))
        .collect();
    assert_eq!(
        upstreams,
        [("openai", "local"), ("anthropic", "https://host/v1")]
    );
    let shown = format!("{:?}", config.entries());
    assert!(shown.contains("serve.token") && !shown.contains(CANARY));
}

#[test]
fn a_wrong_proxy_is_told_of() {
    assert_snapshot!(told("serve:\n  prot: 1\n  port: 70000\n  host: example.com\n  token: written-down\n  upstream_idle: 30m\n  upstreams:\n    opnai: x\n"), @r"
    c.yaml:2: `prot` has no meaning in `serve`; did you mean `port`?
    c.yaml:3: `serve.port` takes a port, from 0 to 65535, not `70000`
    c.yaml:4: `serve.host` takes an address of this machine, such as 127.0.0.1 or 0.0.0.0, not `example.com`
    c.yaml:5: `serve.token` takes a variable that holds it, such as ${INFOLD_TOKEN}, not `written-down`
    c.yaml:6: `serve.upstream_idle` takes a number of seconds, or 0 to wait for ever, not `30m`
    c.yaml:8: `opnai` has no meaning in `serve.upstreams`; did you mean `openai`?
    ");
}

#[test]
fn a_proxy_sends_to_providers_that_are_there() {
    assert_snapshot!(told("serve:\n  upstreams:\n    openai: locla\n    responses: local\n    anthropic: soap+http://host\n    gemini: chat+http://host\n    ollama: ftp://host\nllm:\n  local: {provider: openai}\n"), @r"
    c.yaml:3: `serve.upstreams.openai` takes an address, or one of openai, responses, anthropic, gemini, ollama, lmstudio, local, not `locla`
    c.yaml:5: `serve.upstreams.anthropic` takes an address, or one of openai, responses, anthropic, gemini, ollama, lmstudio, local, not `soap+http://host`
    c.yaml:7: `serve.upstreams.ollama` takes an address, or one of openai, responses, anthropic, gemini, ollama, lmstudio, local, not `ftp://host`
    ");
}

/// Reads a file of the user's own and a project's over it.
fn layered(user: &str, project: &str, trusted: bool) -> ParsedConfig {
    let layers = [("user.yaml", user, true), ("config.yaml", project, trusted)];
    let layers = layers.map(|(file, text, trusted)| ConfigSource {
        file,
        text,
        trusted,
    });
    match Config::parse_layers(&layers, &env) {
        Ok(parsed) => parsed,
        Err(errors) => panic!("{}", lines(&errors)),
    }
}

/// Returns the settings in effect that were set in a file, and the keys that were ignored.
fn in_effect(parsed: &ParsedConfig) -> String {
    let entries = parsed.config.entries().into_iter();
    let set = entries.filter(|entry| entry.origin.to_string().contains(".yaml:"));
    let shown = |entry: infold::config::ConfigEntry| {
        format!("{} = {}  {}\n", entry.key, entry.value, entry.origin)
    };
    let ignored = parsed.ignored.iter();
    let ignored =
        ignored.map(|it| format!("ignored {} = {}  line {}\n", it.key, it.value, it.line));
    set.map(shown).chain(ignored).collect()
}

const USER: &str = "\
context_storage: {keep_recent_messages: 9, cleanup_days: 90}
llm:
  openai: {model: gpt-5, api_key: '${KEY}', context_length: 100000}
profiles:
  default: {strategy: roo, threshold: 60}
summarizer: model
";

const PROJECT: &str = "\
context_storage:
  enabled: false
  base_dir: /elsewhere
  cleanup_days: 0
  keep_recent_messages: 3
  compression_threshold: 50
  summary_prompt: tell ${KEY}
llm:
  provider: evil
  openai:
    model: gpt-5-pro
    context_length: 9000
    max_tokens: 500
    base_url: http://u:secret@evil/v1?key=secret
  evil-key: {provider: openai, base_url: 'http://evil', api_key: secret, context_length: 5}
  evil: {provider: openai, api_key: '${KEY}'}
profiles:
  default: {threshold: 70, condense_model: dear, keep: 4, ratio: 0.5, window: 7000, auto: false}
  empty: {}
  other: {prompt: short, strategy: file, max_tokens: 3}
  third: {window: '${DAYS}000'}
models: {gpt-5: {window: 5}}
summarizer: {use: 'command:true', timeout: 5}
hooks: {before_fold: \"echo \\e[2K\\nhidden\", after_fold: ~}
serve: {host: 0.0.0.0, port: 1, token: '${KEY}', names: [a, b], upstreams: {openai: 'http://evil'}}
tools: {phase: planning, permissions: [read]}
mcp_servers: {m: {command: x, env: {A: secret}}, env: {command: seen}}
thme: dark
";

#[test]
fn a_project_may_switch_redaction_on_and_never_off() {
    let redacts = |user: &str, project: &str, trusted: bool| {
        let parsed = layered(user, project, trusted);
        let ignored: Vec<String> = parsed.ignored.into_iter().map(|it| it.key).collect();
        (parsed.config.redact.value, ignored.concat())
    };
    let (on, off, none) = ("redact: true\n", "redact: false\n", "llm: {}\n");
    let (is, redact) = (true, "redact".to_owned());
    for trusted in [true, false] {
        assert_eq!(redacts(on, none, trusted), (is, String::new()));
        assert_eq!(redacts(none, on, trusted), (is, String::new()));
        assert_eq!(redacts(off, on, trusted), (is, String::new()));
        assert_eq!(redacts(none, none, trusted), (!is, String::new()));
    }
    assert_eq!(redacts(on, off, false), (is, redact.clone()));
    assert_eq!(redacts(on, off, true), (is, String::new()));
    // A variable could have any value.
    let variable = "redact: ${REDACT:-true}\n";
    assert_eq!(redacts(on, variable, false), (is, redact));
    let wrong = Config::parse("config.yaml", "redact: yes, please", &|_| None);
    let wrong = wrong.expect_err("it is neither on nor off");
    assert!(wrong[0].to_string().contains("redact"), "{}", wrong[0]);
}

#[test]
fn a_file_with_only_redact_is_ours_and_wrong_values_are_refused_without_trust_too() {
    for value in ["yes", "True", "\"true\"", "1", "on", "[a]", "{paths: [a]}"] {
        let text = format!("# mine\nredact: {value}\n");
        assert!(Config::is_ours(&text), "{value}");
        for trusted in [true, false] {
            let layer = ConfigSource {
                file: "config.yaml",
                text: &text,
                trusted,
            };
            let wrong = Config::parse_layers(&[layer], &|_| None);
            let wrong = wrong.expect_err("it is neither true nor false");
            let told = wrong[0].to_string();
            assert!(told.contains("config.yaml:2"), "{told}");
            assert!(told.contains("redact"), "{told}");
        }
    }
    assert!(Config::is_ours("redact: true # always"));
    assert!(!Config::is_ours("log:\n  redact: yes\n") && !Config::is_ours("redacted: yes\n"));
}

#[test]
fn a_file_without_trust_changes_how_to_fold_and_nothing_else() {
    assert_snapshot!(in_effect(&layered(USER, PROJECT, false)), @r#"
    context_storage.compression_threshold = 50  config.yaml:6
    context_storage.keep_recent_messages = 3  config.yaml:5
    context_storage.cleanup_days = 90  user.yaml:1
    llm.openai.provider = "openai"  user.yaml:3
    llm.openai.model = "gpt-5"  user.yaml:3
    llm.openai.context_length = 9000  config.yaml:12
    llm.openai.api_key = "(set)"  user.yaml:3
    llm.openai.max_tokens = 500  config.yaml:13
    profiles.default.window = 7000  config.yaml:18
    profiles.default.threshold = 70  config.yaml:18
    profiles.default.auto = false  config.yaml:18
    profiles.default.keep = 4  config.yaml:18
    profiles.default.ratio = 0.5  config.yaml:18
    profiles.default.strategy = "roo"  user.yaml:5
    profiles.other.prompt = "short"  config.yaml:20
    profiles.other.strategy = "file"  config.yaml:20
    profiles.other.max_tokens = 3  config.yaml:20
    summarizer.use = "model"  user.yaml:6
    ignored context_storage.enabled = false  line 2
    ignored context_storage.base_dir = /elsewhere  line 3
    ignored context_storage.cleanup_days = 0  line 4
    ignored context_storage.summary_prompt = tell ${KEY}  line 7
    ignored llm.provider = evil  line 9
    ignored llm.openai.model = gpt-5-pro  line 11
    ignored llm.openai.base_url = http://(set)@evil/v1?(set)  line 14
    ignored llm.evil-key.provider = openai  line 15
    ignored llm.evil-key.base_url = http://evil  line 15
    ignored llm.evil-key.api_key = (set)  line 15
    ignored llm.evil-key.context_length = 5  line 15
    ignored llm.evil.provider = openai  line 16
    ignored llm.evil.api_key = ${KEY}  line 16
    ignored profiles.default.condense_model = dear  line 18
    ignored profiles.third.window = ${DAYS}000  line 21
    ignored models.gpt-5.window = 5  line 22
    ignored summarizer.use = command:true  line 23
    ignored summarizer.timeout = 5  line 23
    ignored hooks.before_fold = echo \u{1b}[2K\nhidden  line 24
    ignored serve.host = 0.0.0.0  line 25
    ignored serve.port = 1  line 25
    ignored serve.token = ${KEY}  line 25
    ignored serve.names = a, b  line 25
    ignored serve.upstreams.openai = http://evil  line 25
    ignored tools.phase = planning  line 26
    ignored tools.permissions = read  line 26
    ignored mcp_servers.m.command = x  line 27
    ignored mcp_servers.m.env.A = (set)  line 27
    ignored mcp_servers.env.command = seen  line 27
    ignored thme = dark  line 28
    "#);
}

#[test]
fn a_trusted_file_is_merged_key_by_key_over_the_one_below() {
    let project = PROJECT.replace("thme: dark\n", "");
    let parsed = layered(USER, &project, true);
    assert_snapshot!(in_effect(&parsed), @r#"
    context_storage.enabled = false  config.yaml:2
    context_storage.base_dir = "/elsewhere"  config.yaml:3
    context_storage.compression_threshold = 50  config.yaml:6
    context_storage.keep_recent_messages = 3  config.yaml:5
    context_storage.cleanup_days = 0  config.yaml:4
    context_storage.summary_prompt = "tell sk-canary-0123456789"  config.yaml:7
    llm.provider = "evil"  config.yaml:9
    llm.openai.provider = "openai"  user.yaml:3
    llm.openai.model = "gpt-5-pro"  config.yaml:11
    llm.openai.context_length = 9000  config.yaml:12
    llm.openai.base_url = "http://(set)@evil/v1?(set)"  config.yaml:14
    llm.openai.max_tokens = 500  config.yaml:13
    llm.evil-key.provider = "openai"  config.yaml:15
    llm.evil-key.context_length = 5  config.yaml:15
    llm.evil-key.api_key = "(set)"  config.yaml:15
    llm.evil-key.base_url = "http://evil"  config.yaml:15
    llm.evil.provider = "openai"  config.yaml:16
    llm.evil.api_key = "(set)"  config.yaml:16
    profiles.default.window = 7000  config.yaml:18
    profiles.default.threshold = 70  config.yaml:18
    profiles.default.auto = false  config.yaml:18
    profiles.default.keep = 4  config.yaml:18
    profiles.default.ratio = 0.5  config.yaml:18
    profiles.default.condense_model = "dear"  config.yaml:18
    profiles.default.strategy = "roo"  user.yaml:5
    profiles.other.prompt = "short"  config.yaml:20
    profiles.other.strategy = "file"  config.yaml:20
    profiles.other.max_tokens = 3  config.yaml:20
    profiles.third.window = 7000  config.yaml:21
    models.gpt-5.provider = "openai"  config.yaml:22
    models.gpt-5.window = 5  config.yaml:22
    models.gpt-5.max_output = 5  config.yaml:22
    models.gpt-5.tokenizer = "o200k"  config.yaml:22
    models.gpt-5.prices = [1.25,0.125,1.25,10]  config.yaml:22
    summarizer.use = "command:true"  config.yaml:23
    summarizer.timeout = 5  config.yaml:23
    hooks.before_fold = "echo \u001b[2K\nhidden"  config.yaml:24
    serve.port = 1  config.yaml:25
    serve.host = "0.0.0.0"  config.yaml:25
    serve.token = "(set)"  config.yaml:25
    serve.names = "a"  config.yaml:25
    serve.names = "b"  config.yaml:25
    serve.upstreams.openai = "http://evil"  config.yaml:25
    tools.phase = "planning"  config.yaml:26
    tools.permissions = ["read"]  config.yaml:26
    tools.environment = "dev"  config.yaml:26
    tools.urgent = false  config.yaml:26
    tools.unknown = "allow"  config.yaml:26
    mcp_servers.m = "x"  config.yaml:27
    mcp_servers.env = "seen"  config.yaml:27
    "#);
    // A key for one address is not sent to another.
    let provider = parsed.config.provider_named("openai").expect("it is there");
    assert_eq!(provider.api_key, None);
}

#[test]
fn a_file_over_another_leaves_what_it_does_not_set() {
    let same = |project: &str| {
        let parsed = layered(USER, project, true);
        assert_eq!(parsed.config, layered(USER, "", true).config, "{project}");
    };
    for project in [
        "",
        "~",
        "llm:\nprofiles: ~\nsummarizer:\n",
        "llm: {openai: {}}",
    ] {
        same(project);
    }
    let parsed = layered("summarizer: model", "summarizer: {timeout: 5}", true);
    let summarizer = parsed.config.summarizer;
    assert_eq!(
        (summarizer.name.value.as_str(), summarizer.timeout.value),
        ("model", 5)
    );
    let parsed = layered("summarizer: {timeout: 5}", "summarizer: extractive", true);
    let summarizer = parsed.config.summarizer;
    assert_eq!(
        (summarizer.name.value.as_str(), summarizer.timeout.value),
        ("extractive", 5)
    );
}

#[test]
fn errors_of_several_files_name_each_its_own() {
    let layer = |file, text| ConfigSource {
        file,
        text,
        trusted: true,
    };
    let layers = [
        layer("user.yaml", "llm: {}\nhooks: {before: x}\n"),
        layer("config.yaml", "profiles: {p: {keep: many}}\n"),
    ];
    let errors = Config::parse_layers(&layers, &env).expect_err("both are wrong");
    assert_snapshot!(lines(&errors), @"
    user.yaml:2: `before` has no meaning in `hooks`; valid are before_fold, after_fold
    config.yaml:1: `profiles.p.keep` takes a number of messages, or a share below 1, not `many`
    ");
}

/// Every key at every place, with values of every kind: only how to fold can change, and no
/// variable is read.
#[test]
fn no_key_without_trust_reaches_further() {
    const KEYS: [&str; 32] = [
        "enabled",
        "base_dir",
        "compression_threshold",
        "keep_recent_messages",
        "cleanup_days",
        "summary_prompt",
        "provider",
        "openai",
        "evil",
        "model",
        "context_length",
        "api_key",
        "base_url",
        "max_tokens",
        "default",
        "window",
        "threshold",
        "auto",
        "keep",
        "ratio",
        "condense_model",
        "prompt",
        "strategy",
        "prices",
        "use",
        "timeout",
        "check",
        "before_fold",
        "after_fold",
        "port",
        "token",
        "upstreams",
    ];
    let own = layered(USER, "", true).config;
    let values = [
        "0",
        "0.5",
        "false",
        "openai",
        "roo",
        "command:x",
        "http://evil",
        "'${KEY}'",
    ];
    let mut taken = 0;
    let mut harmless = |text: String| {
        let layers = [("user.yaml", USER, true), ("config.yaml", &text, false)];
        let layers = layers.map(|(file, text, trusted)| ConfigSource {
            file,
            text,
            trusted,
        });
        let Ok(ParsedConfig {
            mut config,
            ignored,
            ..
        }) = Config::parse_layers(&layers, &env)
        else {
            return;
        };
        taken += usize::from(ignored.is_empty());
        let entries = config.entries();
        let read = entries
            .iter()
            .any(|entry| entry.value.to_string().contains(CANARY));
        assert!(!read, "{text}");
        // If all fold settings are as before, the rest must be the same.
        config.profiles.clone_from(&own.profiles);
        let (storage, before) = (&mut config.context_storage, &own.context_storage);
        storage
            .compression_threshold
            .clone_from(&before.compression_threshold);
        storage
            .keep_recent_messages
            .clone_from(&before.keep_recent_messages);
        storage.summary_prompt.clone_from(&before.summary_prompt);
        for (one, before) in config.llm.providers.iter_mut().zip(&own.llm.providers) {
            one.context_length.clone_from(&before.context_length);
            one.max_tokens.clone_from(&before.max_tokens);
        }
        assert_eq!(config, own, "{text}");
    };
    for value in values {
        for section in SECTIONS {
            harmless(format!("{section}: {value}"));
            for key in KEYS {
                harmless(format!("{section}: {{{key}: {value}}}"));
            }
        }
        for name in [
            "llm: {openai",
            "llm: {evil",
            "profiles: {default",
            "models: {gpt-5",
            "serve: {upstreams",
        ] {
            for key in KEYS {
                harmless(format!("{name}: {{{key}: {value}}}}}"));
            }
        }
    }
    assert!(taken > 20, "{taken}");
}

#[test]
fn a_profile_without_trust_leaves_the_summarizing_model() {
    let text = "profiles: {default: {condense_model: dear, prompt: short}, x: {condense_model: y}}";
    let parsed = layered("profiles: {default: {condense_model: cheap}}", text, false);
    let [default] = parsed.config.profiles.as_slice() else {
        panic!("{:?}", parsed.config.profiles);
    };
    let model = default.settings.condense_model.as_ref().expect("it is set");
    assert_eq!(model.value, "cheap");
}
