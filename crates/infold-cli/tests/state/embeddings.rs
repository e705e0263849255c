//! Relevance by embeddings of a provider.

use infold_testkit::{Answer, Script, Server, Step};

use crate::common::Home;
use crate::home;

const GARAGE: &str = "\
task: {goal: repair the zeppelin}
memory:
  semantic:
    facts:
      - the airship needs brakes
      - the office closes early
      - repair shops charge by the hour
";

/// A task with facts, of which words and embeddings find different ones, and a provider.
fn garage(api: &str, url: &str) -> Home {
    let home = home();
    home.file("garage.yaml", GARAGE);
    home.tell("state T1 load garage.yaml");
    home.config(format!(
        "llm: {{here: {{provider: {api}, model: m, base_url: '{url}', api_key: hunter2secret}}}}\n\
         layers: {{relevance: embeddings, embedding_model: vectors, threshold: 0.01}}\n"
    ));
    home
}

/// The facts that a document shows.
fn shown_facts(document: &str) -> Vec<&str> {
    let lines = document
        .lines()
        .filter_map(|line| line.strip_prefix("<fact>"));
    lines
        .filter_map(|line| line.strip_suffix("</fact>"))
        .collect()
}

const BY_MEANING: [&str; 2] = [
    "the airship needs brakes",
    "repair shops charge by the hour",
];
const BY_WORDS: [&str; 1] = ["repair shops charge by the hour"];

#[test]
fn embeddings_find_what_words_do_not() {
    for (api, path) in [
        ("openai", "/v1/embeddings"),
        ("responses", "/v1/embeddings"),
        ("lmstudio", "/v1/embeddings"),
        ("ollama", "/api/embed"),
        ("gemini", "/v1beta/models/vectors:batchEmbedContents"),
    ] {
        let server = Server::start(Script::new());
        let home = garage(api, &server.url());
        let ran = home.run("layers build T1 --max-tokens 600", b"");
        let document = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert_eq!(
            shown_facts(&document),
            BY_MEANING,
            "{api}: {}",
            home.transcript(&ran)
        );
        assert!(ran.stderr.is_empty(), "{api}: {}", home.transcript(&ran));
        let asked = server.requests();
        assert_eq!(asked.len(), 1, "{api}: all texts in one request");
        assert_eq!(asked[0].path, path, "{api}");
        // Cached vectors are not requested again, and are used where no provider can be reached.
        home.tell("layers build T1 --max-tokens 600");
        assert_eq!(server.requests().len(), 1, "{api}");
        home.tell("state T1 add facts 'the brakes cost 400'");
        home.tell("layers build T1 --max-tokens 600");
        let asked = server.requests();
        assert_eq!(asked.len(), 2, "{api}");
        assert!(
            !asked[1].text().contains("office"),
            "{api}: only what is new"
        );
        // The key is nowhere.
        for (file, bytes) in home.bytes() {
            let has_key = bytes.windows(13).any(|part| part == b"hunter2secret");
            assert!(
                !has_key || file.ends_with("config.yaml"),
                "{}",
                file.display()
            );
        }
    }
}

#[test]
fn without_embeddings_words_decide_and_it_is_said_once() {
    // Nothing listens at this address; Anthropic has no embeddings.
    let closed = "http://127.0.0.1:9".to_owned();
    let server = Server::start(Script::new());
    for (api, url) in [("openai", closed), ("anthropic", server.url())] {
        let home = garage(api, &url);
        let ran = home.run("layers build T1 --max-tokens 600", b"");
        assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
        let document = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert_eq!(shown_facts(&document), BY_WORDS, "{api}");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(said.matches("relevance is by words").count(), 1, "{said}");
        assert!(!said.contains("hunter2secret"), "{said}");
        let ran = home.run("layers build T1 --max-tokens 600 --explain", b"");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(said.matches("relevance is by words").count(), 1, "{said}");
    }
    let home = garage("openai", "http://127.0.0.1:9");
    home.config("layers: {relevance: embeddings}\n");
    let ran = home.run("layers build T1", b"");
    assert_eq!(ran.code, 2);
    assert!(
        home.transcript(&ran)
            .contains("only together with `layers.embedding_model`")
    );
}

#[test]
fn without_a_provider_the_vectors_that_are_kept_are_used() {
    let server = Server::start(Script::new());
    let home = garage("ollama", &server.url());
    home.tell("layers build T1 --max-tokens 600");
    home.config("layers: {relevance: embeddings, embedding_model: vectors, threshold: 0.01}\n");
    let ran = home.run("layers build T1 --max-tokens 600", b"");
    let document = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(shown_facts(&document), BY_MEANING);
    assert!(ran.stderr.is_empty(), "{}", home.transcript(&ran));
    // The vectors of another model are different.
    home.config("layers: {relevance: embeddings, embedding_model: other, threshold: 0.01}\n");
    let ran = home.run("layers build T1 --max-tokens 600", b"");
    let document = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(shown_facts(&document), BY_WORDS);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("without embeddings: no provider"), "{said}");
}

#[test]
fn requests_use_embeddings() {
    let answer = || {
        Step::answer(Answer {
            text: Some("well".to_owned()),
            ..Answer::default()
        })
    };
    for (api, facts) in [("openai", &BY_MEANING[..]), ("anthropic", &BY_WORDS[..])] {
        let server = Server::start(Script::steps([answer()]));
        let home = garage(api, &server.url());
        let ran = home.run("ask T1 'go on' --window 32k", b"");
        assert_eq!(ran.code, 0, "{api}: {}", home.transcript(&ran));
        let body = server.last().expect("a request").text();
        for fact in BY_MEANING {
            let is_shown = facts.contains(&fact);
            assert_eq!(body.contains(fact), is_shown, "{api}: {body}");
        }
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let is_said = said.contains("relevance is by words");
        assert_eq!(is_said, api == "anthropic", "{said}");
    }
}

#[test]
fn vectors_go_with_what_they_were_made_of() {
    let server = Server::start(Script::new());
    let home = garage("openai", &server.url());
    home.tell("fork T1\nlayers build T1 --max-tokens 600\nlayers build T2 --max-tokens 600");
    let kept = |home: &Home| {
        let files = home.bytes().into_keys();
        files
            .filter(|file| file.ends_with("embeddings.bin"))
            .count()
    };
    assert_eq!(kept(&home), 2);
    home.tell("redact T1 --pattern brakes --yes");
    assert_eq!(kept(&home), 0, "of the fork, too");
    home.tell("layers build T1 --max-tokens 600\nlayers build T2 --max-tokens 600");
    assert_eq!(kept(&home), 2);
    assert_eq!(home.tell("verify T1").matches("ok").count(), 1);
    home.tell("task delete T2 --yes");
    assert_eq!(kept(&home), 1);
    // Damage costs the vectors, and nothing else.
    let files = home.bytes().into_keys();
    let file = files
        .into_iter()
        .find(|file| file.ends_with("embeddings.bin"));
    let file = home.contexts().join(file.expect("one is left"));
    std::fs::write(&file, b"infold embeddings 1\n\0\0\0\0nonsense").expect("a file");
    let before = server.requests().len();
    home.tell("layers build T1 --max-tokens 600");
    assert_eq!(server.requests().len(), before + 1);
}
