//! The savings of folding as `infold gain` reports them.

mod common;

use common::Home;
use infold_testkit::{Script, Server, Step};
use insta::assert_snapshot;
use serde_json::Value;

/// A server that counts its requests' tokens, and gives the same reply to each.
fn server() -> Server {
    Server::start(Script::decide(|_| Step::say("fine")))
}

/// A home whose model costs a dollar for each thousand tokens.
fn home(server: &Server, window: u64) -> Home {
    let home = Home::new();
    let url = server.url();
    home.config(format!(
        "llm: {{here: {{provider: openai, model: mystery, base_url: '{url}', context_length: {window}, max_tokens: 500}}}}\n\
         models: {{mystery: {{window: 4000, prices: {{input: 1000, output: 1000}}}}}}\n"
    ));
    home
}

/// Asks this many long questions in one task; returns the tokens that the provider reported for the requests.
fn ask(home: &Home, questions: usize, summarizer: &str) -> u64 {
    let words = "alpha river stone seven green apple house table ".repeat(40);
    let mut sent = 0;
    for number in 0..questions {
        let task = if number == 0 { "new" } else { "@" };
        let ran = home.run(
            &format!("ask {task} - --json --summarizer {summarizer}"),
            format!("question {number}: {words}").as_bytes(),
        );
        assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
        let said: Value = serde_json::from_slice(&ran.stdout).expect("an object");
        let of = |name: &str| said["usage"][name].as_u64().expect("a number");
        sent += of("tokens") - of("output");
    }
    sent
}

fn total(home: &Home, more: &str) -> Value {
    home.objects(&format!("gain {more}")).remove(0)
}

#[test]
fn what_was_not_folded_saved_nothing() {
    let server = server();
    let home = home(&server, 4_000);
    let sent = ask(&home, 2, "extractive");
    let total = total(&home, "");
    assert_eq!(total["requests"], 2);
    assert_eq!(total["sent"]["tokens"], sent);
    assert_eq!(total["unfolded"]["tokens"], sent);
    assert_eq!(total["tokens_saved"], 0);
    assert_eq!(total["overflows"], 0);
}

#[test]
fn unfolded_is_what_a_window_without_end_would_have_taken() {
    let server = server();
    let (folded, whole) = (home(&server, 4_000), home(&server, 1_000_000));
    let sent = ask(&folded, 20, "extractive");
    let unfolded = ask(&whole, 20, "extractive");
    let told = total(&folded, "");
    assert_eq!(told["sent"]["tokens"], sent);
    assert_eq!(told["unfolded"]["tokens"], unfolded);
    assert!(sent < unfolded * 2 / 3, "{sent} of {unfolded}");
    assert!(told["summaries"].as_u64() > Some(0), "{told}");
    // 20 questions of about 330 tokens: from the twelfth on they exceed the window.
    let overflows = told["overflows"].as_u64().expect("a number");
    assert!((7..=10).contains(&overflows), "{overflows}");
    assert_eq!(total(&whole, "")["tokens_saved"], 0);
}

#[test]
fn summaries_of_a_model_count_as_sent() {
    let server = server();
    let home = home(&server, 4_000);
    let sent = ask(&home, 12, "model");
    let told = total(&home, "");
    assert_eq!(told["requests"], 12);
    assert!(
        told["sent"]["tokens"].as_u64() > Some(sent + 1_000),
        "{told}"
    );
}

#[test]
fn a_fork_counts_its_own_requests_with_all_they_continue() {
    let server = server();
    let home = home(&server, 1_000_000);
    let sent = ask(&home, 3, "extractive");
    let ran = home.run("fork @", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let ran = home.run("ask @ - --json", b"and now?");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let told = total(&home, "");
    assert_eq!(told["requests"], 4);
    assert!(told["sent"]["tokens"].as_u64() > Some(sent + sent / 2));
    assert_eq!(told["sent"]["tokens"], told["unfolded"]["tokens"]);
    let own = total(&home, "--task @");
    assert_eq!(own["requests"], 1);
    assert_eq!(own["unfolded"]["tokens"], own["sent"]["tokens"]);
}

#[test]
fn only_the_period_that_is_asked_for_counts() {
    let server = server();
    let home = home(&server, 4_000);
    ask(&home, 2, "extractive");
    assert_eq!(total(&home, "--since 1d")["requests"], 2);
    assert_eq!(total(&home, "--until 2020-01-01")["requests"], 0);
}

#[test]
fn a_person_sees_what_was_saved() {
    let server = server();
    let home = home(&server, 4_000);
    assert_snapshot!(home.tell("gain"), @r"
    $ infold gain
    ! no requests yet: `infold serve`, `wrap`, `ask` and `run` record what each one takes
    ");
    ask(&home, 2, "extractive");
    let day = home.objects("gain --by day")[1]["name"]
        .as_str()
        .expect("a day")
        .to_owned();
    let text = home.tell("gain --by day,agent,model");
    assert_snapshot!(text.replace(&day, "YYYY-MM-DD"), @r#"
    $ infold gain --by day,agent,model
    2 requests of 1 task, YYYY-MM-DD to YYYY-MM-DD
                   sent  unfolded  saved
    tokens          992       992  0 (0 %)
    in the cache   33 %      33 %
    cost          $0.99     $0.99  $0.00 (0 %)
    0 requests unfolded would not have fit the window of the model
    folds: 0 with a summary, 0 without, 0 stubs

    day         requests  sent  unfolded  saved  $ saved  cached  folds  too long
    YYYY-MM-DD         2   992       992    0 %    $0.00    33 %      0  0

    agent   requests  sent  unfolded  saved  $ saved  cached  folds  too long
    infold         2   992       992    0 %    $0.00    33 %      0  0

    model    requests  sent  unfolded  saved  $ saved  cached  folds  too long
    mystery         2   992       992    0 %    $0.00    33 %      0  0
    ! unfolded: the same requests with every message of their conversation, counted as the provider counted what was sent, with all that repeats the request before in its cache
    "#);
}

#[test]
fn a_damaged_task_keeps_nobody_from_the_figures_of_the_others() {
    let server = server();
    let home = home(&server, 4_000);
    ask(&home, 2, "extractive");
    let damaged = home
        .contexts()
        .join("running/0b6f2a0e-7c53-4f6e-9d0c-5a1f6f0f2f11");
    std::fs::create_dir_all(&damaged).expect("a directory");
    std::fs::write(damaged.join("metadata.json"), "{").expect("a file");
    let ran = home.run("gain --json", b"");
    assert_eq!(ran.code, 0);
    let first = ran.stdout.split(|byte| *byte == b'\n').next();
    let total: Value = serde_json::from_slice(first.expect("a line")).expect("an object");
    assert_eq!(total["requests"], 2);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("0b6f2a0e"), "{said}");
}
