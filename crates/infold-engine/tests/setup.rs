//! The fold settings for a model: from the configuration, learned values, and its server.

mod common;

use common::*;
use infold::config::Provider;
use infold::profile::{Origin, Setting};
use infold::{Config, Connector, Setup, setup};
use infold_provider::{Client, RetryPolicy};
use infold_store::{Contexts, Durability, Metadata, Purpose, Usage};
use infold_testkit::{Model, Script, Server};
use tokio::sync::watch;

const TASK: &str = "a directory of tasks";

struct World {
    contexts: Contexts,
    board: Connector,
    _dir: tempfile::TempDir,
}

fn world() -> World {
    let dir = tempfile::tempdir().expect("a directory");
    let (_, stop) = watch::channel(false);
    let client = Client::new(RetryPolicy::default()).expect("a client");
    World {
        contexts: Contexts::new(dir.path(), Durability::Never),
        board: Connector::new(client, runtime().handle().clone(), stop),
        _dir: dir,
    }
}

fn config(text: &str) -> Config {
    Config::parse("c.yaml", text, &|_| None).expect("good").0
}

/// A provider as the configuration has it, or one at a server.
fn provider(config: &Config, api: &str, server: Option<&Server>) -> Provider {
    let mut provider = config.provider_named(api).expect("an API");
    provider.base_url = server.map(|server| Setting::new(server.url(), Origin::Default));
    provider
}

impl World {
    fn setup(&self, config: &Config, provider: &Provider, window: Option<u64>) -> Setup {
        let board = Some(&self.board);
        setup(config, &self.contexts, board, provider, "gpt-5", window).expect(TASK)
    }
}

#[test]
fn what_was_learned_of_a_model_is_taken_in() {
    let world = world();
    let config = Config::default();
    let provider = provider(&config, "openai", None);
    let by_table = world.setup(&config, &provider, None);
    let usage = Usage {
        provider: "openai".to_owned(),
        model: "gpt-5".to_owned(),
        tokens: 14_100,
        cached: 0,
        output: 100,
        frame: 0,
        cost: 0,
        purpose: Purpose::Reply,
    };
    let task = world.contexts.create(Metadata::default()).expect(TASK);
    let (mut writer, _) = world.contexts.write(task).expect(TASK);
    for _ in 0..30 {
        let counted = (10_000, by_table.aim.factor);
        infold::usage::report(&world.contexts, &mut writer, &usage, counted).expect(TASK);
    }
    let registry = world.contexts.registry().expect(TASK);
    let now = jiff::Timestamp::now();
    registry
        .set_window("openai", "gpt-5", 50_000, now)
        .expect(TASK);
    let learned = world.setup(&config, &provider, None);
    assert!(
        (learned.aim.factor - 1.4).abs() < 0.05,
        "{}",
        learned.aim.factor
    );
    assert_eq!(
        (learned.profile.window, learned.has_set_window),
        (50_000, false)
    );
    assert_ne!(by_table.profile.window, 50_000);
    // An explicit choice takes precedence.
    let chosen = world.setup(&config, &provider, Some(9_000));
    assert_eq!(
        (chosen.profile.window, chosen.has_set_window),
        (9_000, true)
    );
}

#[test]
fn the_window_that_ollama_runs_a_model_with_is_asked_for() {
    let server = Server::start(Script::new().model(Model::window(6_000)));
    let world = world();
    let config = Config::default();
    let provider = provider(&config, "ollama", Some(&server));
    let asked = world.setup(&config, &provider, None);
    assert_eq!((asked.profile.window, asked.has_set_window), (6_000, false));
    let unasked = setup(&config, &world.contexts, None, &provider, "gpt-5", None).expect(TASK);
    assert_eq!(unasked.profile.window, 4_096);
    assert_eq!(unasked.summarizer.name(), "extractive");
}

#[test]
fn a_model_writes_summaries_where_it_can_be_asked() {
    let server = Server::start(Script::new());
    let world = world();
    let said = |text: &str| match text {
        "" => Config::default(),
        text => config(&format!("summarizer: \"{text}\"\n")),
    };
    let mut told = Vec::new();
    for who in ["", "extractive", "model", "model:other", "command:cat"] {
        let config = said(who);
        for near in [Some(&server), None] {
            let provider = provider(&config, "openai", near);
            let setup = world.setup(&config, &provider, None);
            let key = if near.is_some() {
                "open"
            } else {
                "wants a key"
            };
            let said = if who.is_empty() { "-" } else { who };
            let name = setup.summarizer.name();
            told.push(format!(
                "{said:<12}{key:<12} {name} {}",
                setup.warnings.join(", ")
            ));
        }
    }
    let told: Vec<&str> = told.iter().map(|line| line.trim_end()).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    -           open         model:gpt-5
    -           wants a key  extractive
    extractive  open         extractive
    extractive  wants a key  extractive
    model       open         model:gpt-5
    model       wants a key  extractive no key is configured for openai: no model writes summaries there
    model:other open         model:other
    model:other wants a key  extractive no key is configured for openai: no model writes summaries there
    command:cat open         command:cat
    command:cat wants a key  command:cat
    ");
}
