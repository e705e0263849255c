//! Servers that fail.

use std::time::Duration;

use infold_toolbox::{McpServer, McpTransport, ToolLimits};

use crate::{Fixture, assert_ends, scripted};

/// A server that has little time.
fn hasty(faults: &[&str]) -> Vec<McpServer> {
    let server = scripted("scripted", faults);
    vec![McpServer {
        timeout: Duration::from_secs(2),
        ..server
    }]
}

#[tokio::test]
async fn a_tool_that_fails_is_a_result() {
    let fixture = Fixture::new(&[]);
    let result = fixture.call("fail", "").await;
    assert_eq!(result.text, "no such page\ndetails");
    assert_eq!(result.error.as_deref(), Some("no such page"));
}

#[tokio::test]
async fn an_answer_that_is_no_result_says_that_the_call_may_have_had_an_effect() {
    let fixture = Fixture::new(&[]);
    for tool in ["misanswer", "miscontent"] {
        let told = fixture.fails(tool, "").await;
        assert!(told.contains("may have had an effect"), "{tool}: {told}");
        assert!(!told.contains("refused"), "{tool}: {told}");
    }
    assert_eq!(fixture.works("echo", "x").await, "x");
}

#[tokio::test]
async fn garbage_on_the_output_is_passed_over() {
    let fixture = Fixture::new(&["garbage"]);
    assert_eq!(fixture.works("echo", "x").await, "x");
}

#[tokio::test]
async fn a_server_that_dies_is_started_again_at_the_next_call() {
    let fixture = Fixture::new(&[]);
    let first = fixture.works("pid", "").await;
    let died = fixture.fails("die", "").await;
    assert!(
        died.contains("failed during the call") && died.contains("out of memory"),
        "{died}"
    );
    let second = fixture.works("pid", "").await;
    assert_eq!(fixture.starts("scripted"), [first, second]);
}

#[tokio::test]
async fn a_server_that_is_killed_between_calls_is_started_again() {
    let fixture = Fixture::new(&[]);
    let pid = fixture.works("pid", "").await;
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid])
        .status();
    assert!(killed.unwrap().success());
    assert_ends(&pid);
    // Whether its end is known by now or found by this call: the one after works.
    let list = fixture.toolbox.tools().await;
    assert!(!list.tools.is_empty(), "what it had is still offered");
    let mut result = fixture.call("echo", "x").await;
    if result.error.is_some() {
        result = fixture.call("echo", "x").await;
    }
    assert_eq!(result.text, "x");
    assert_eq!(fixture.starts("scripted").len(), 2);
}

#[tokio::test]
async fn starting_again_is_bounded() {
    let fixture = Fixture::new(&["exit-at-once"]);
    for _ in 0..30 {
        fixture.fails("echo", "x").await;
    }
    let starts = fixture.starts("scripted").len();
    assert!((2..=10).contains(&starts), "{starts}");
}

#[tokio::test]
async fn a_server_that_exits_at_once_says_why() {
    let fixture = Fixture::new(&["exit-at-once"]);
    let problem = fixture.problem().await;
    assert_eq!(
        problem,
        "it ended without an answer; it wrote: no configuration found"
    );
}

#[tokio::test]
async fn a_program_that_is_missing_is_named() {
    let mut server = scripted("missing", &[]);
    server.transport = McpTransport::Command {
        command: vec!["no-such-program-anywhere".to_owned()],
        environment: Vec::new(),
    };
    let fixture = Fixture::with(vec![server, scripted("works", &[])], ToolLimits::default());
    let problem = fixture.problem().await;
    assert!(
        problem.starts_with("`no-such-program-anywhere` cannot be started"),
        "{problem}"
    );
    assert_eq!(
        fixture.works("echo", "the other one works").await,
        "the other one works"
    );
}

#[tokio::test]
async fn a_server_that_hangs_at_the_start_is_killed() {
    let fixture = Fixture::with(hasty(&["hang"]), ToolLimits::default());
    let problem = fixture.problem().await;
    assert_eq!(problem, "it did not start within 2 s");
    assert_ends(&fixture.starts("scripted")[0]);
}

#[tokio::test]
async fn a_line_without_end_is_not_kept() {
    let fixture = Fixture::new(&["endless-line"]);
    let problem = fixture.problem().await;
    assert!(
        problem.starts_with("it ended without an answer"),
        "{problem}"
    );
    assert_ends(&fixture.starts("scripted")[0]);
}

#[tokio::test]
async fn garbage_without_end_is_ended_by_the_time_limit() {
    let fixture = Fixture::with(hasty(&["endless-garbage"]), ToolLimits::default());
    let problem = fixture.problem().await;
    assert!(
        problem.starts_with("it did not start within 2 s"),
        "{problem}"
    );
    assert_ends(&fixture.starts("scripted")[0]);
}

#[tokio::test]
async fn a_result_is_cut_and_one_beyond_measure_is_refused() {
    let limits = ToolLimits {
        max_result_bytes: 1000,
        ..ToolLimits::default()
    };
    let fixture = Fixture::with(vec![scripted("scripted", &[])], limits);
    let cut = fixture.works("big", "5000").await;
    assert!(
        cut.len() <= 1000 && cut.contains("the result was too long"),
        "{cut}"
    );
    let refused = fixture.fails("big", &(40 << 20).to_string()).await;
    assert!(
        refused.contains("it sent a message of more than 16777216 bytes"),
        "{refused}"
    );
    assert_eq!(fixture.works("echo", "again").await, "again");
}

#[tokio::test]
async fn a_call_that_takes_too_long_ends_and_the_server_goes_on() {
    let fixture = Fixture::with(hasty(&[]), ToolLimits::default());
    let pid = fixture.works("pid", "").await;
    let late = fixture.fails("sleep", "600").await;
    assert!(late.contains("did not answer within 2 s"), "{late}");
    assert_eq!(
        fixture.works("pid", "").await,
        pid,
        "it still answers, and was not killed"
    );
}

#[tokio::test]
async fn a_server_that_answers_nothing_any_more_is_replaced() {
    let fixture = Fixture::with(hasty(&[]), ToolLimits::default());
    let pid = fixture.works("pid", "").await;
    let late = fixture.fails("hang", "").await;
    assert!(late.contains("was stopped"), "{late}");
    assert_ends(&pid);
    assert_ne!(fixture.works("pid", "").await, pid);
}

#[tokio::test]
async fn a_list_that_is_broken_or_endless_is_a_problem() {
    for (fault, expected) in [
        ("bad-list", "does not list its tools"),
        ("endless-pages", "more than 20 tools"),
    ] {
        let limits = ToolLimits {
            max_server_tools: 20,
            ..ToolLimits::default()
        };
        let fixture = Fixture::with(hasty(&[fault]), limits);
        let problem = fixture.problem().await;
        assert!(problem.contains(expected), "{fault}: {problem}");
    }
}

#[tokio::test]
async fn a_tool_that_is_malformed_hides_no_other() {
    let fixture = Fixture::new(&["bad-tool"]);
    let problem = fixture.problem().await;
    assert!(problem.starts_with("2 of its tools"), "{problem}");
    assert_eq!(fixture.works("echo", "x").await, "x");
}

#[tokio::test]
async fn calls_run_at_the_same_time() {
    let fixture = Fixture::new(&[]);
    fixture.works("echo", "x").await;
    let (slow, fast) = tokio::join!(fixture.call("sleep", "1"), async {
        // Answered while the other one waits.
        (
            fixture.works("echo", "fast").await,
            std::time::Instant::now(),
        )
    });
    assert_eq!(slow.text, "slept");
    assert!(fast.1.elapsed() > Duration::ZERO && fast.0 == "fast");
}
