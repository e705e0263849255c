//! Single passes: the folded messages, the remaining ones, and the outcome.

mod common;

use std::time::Duration;

use common::*;
use infold::summarizer::{CommandSummarizer, Extractive};
use infold::{
    GeminiStatus, Hooks, ManageError, PassAction, Scratch, SkipReason, Strategy, manage, rehearse,
    will_manage,
};
use infold_log::{Budget, Due, Limits, Seq, Size};
use infold_store::{Usage, What};

#[test]
fn nothing_is_done_while_there_is_room() {
    let mut task = chat(20, 10);
    let outcome = managed(&mut task, &aim(32_000));
    assert_eq!(
        (outcome.action, outcome.due, outcome.skipped),
        (PassAction::Untouched, None, None)
    );
    assert_eq!(task.log().state().at().event, 0);
}

#[test]
fn old_turns_are_condensed_and_the_newest_stay() {
    let mut task = chat(200, 40);
    let aim = aim(8_000);
    let outcome = managed(&mut task, &aim);
    assert_eq!(
        (outcome.action, outcome.due),
        (PassAction::Condensed, Some(Due::Window))
    );
    assert!(outcome.after.within(outcome.target), "{outcome:?}");
    let shown = shown(&task);
    assert!(shown[0].contains("request 0 "), "{}", shown[0]);
    assert!(
        shown[1].starts_with("[Summary of messages 2.."),
        "{}",
        shown[1]
    );
    assert!(shown[shown.len() - 1].contains("reply 199 "));
}

fn summary(task: &Scratch) -> String {
    let shown = shown(task);
    let found = shown.iter().find(|text| text.starts_with("[Summary"));
    found.expect("a summary").clone()
}

#[test]
fn what_stays_in_view_is_not_summarised() {
    let rule = "Never paint the north pier before May.";
    let mut task = chat(20, 40);
    say(&mut task, "user", rule);
    say(&mut task, "assistant", "noted");
    for at in 20..200 {
        say(
            &mut task,
            "user",
            &format!("request {at} {}", words(40, at)),
        );
        say(
            &mut task,
            "assistant",
            &format!("reply {at} {}", words(40, at)),
        );
    }
    let pinned = Seq::new(41).expect("not zero");
    let writer = task.writer().expect("a task");
    writer.pin(pinned).expect("it is shown");
    managed(&mut task, &aim(8_000));
    assert!(!summary(&task).contains(rule), "{}", summary(&task));
    assert!(shown(&task).iter().any(|text| text.contains(rule)));
}

#[test]
fn the_prompt_of_a_command_that_stays_in_view_is_no_request() {
    let mut task = task();
    say(
        &mut task,
        "user",
        "<command-message>review</command-message>\\n<command-name>/review</command-name>",
    );
    say(
        &mut task,
        "user",
        "You are an expert code reviewer. Follow these steps to the end.",
    );
    for at in 0..200 {
        say(
            &mut task,
            "assistant",
            &format!("reply {at} {}", words(40, at)),
        );
        say(
            &mut task,
            "user",
            &format!("request {at} {}", words(40, at)),
        );
    }
    managed(&mut task, &aim(8_000));
    let summary = summary(&task);
    assert!(!summary.contains("expert code reviewer"), "{summary}");
}

#[test]
fn large_old_tool_output_is_condensed_with_what_stands_around_it() {
    let mut task = tools(&[4_000, 4_000, 10, 10, 10, 10]);
    let outcome = managed(&mut task, &aim(10_000));
    assert_eq!(outcome.action, PassAction::Condensed, "{outcome:?}");
}

#[test]
fn large_old_tool_output_is_masked_when_bytes_are_the_trouble() {
    let mut task = task();
    say(&mut task, "user", "look around");
    let lines = "price_table.get(berth_id) of src/price.rs\\n".repeat(600);
    for (at, body) in [&*lines, &words(4_000, 1), "ten", "ten", "ten", "ten"]
        .iter()
        .enumerate()
    {
        let result = format!("fn berth_price() {{\\n{body}}}\\nexit code: 0");
        call(&mut task, at, &result);
    }
    say(&mut task, "assistant", "looked");
    let aim = infold::Aim {
        budget: budget(200_000, Some(30_000)),
        ..aim(200_000)
    };
    let outcome = managed(&mut task, &aim);
    assert_eq!(outcome.action, PassAction::Masked, "{outcome:?}");
    let shown = shown(&task);
    for told in [
        "tokens folded away",
        "603 lines",
        "first: fn berth_price() {",
        "last: exit code: 0",
        "src/price.rs",
        "price_table.get",
    ] {
        assert!(shown[2].contains(told), "{told}: {}", shown[2]);
    }
    assert!(!shown.iter().any(|text| text.starts_with("[Summary")));
}

#[test]
fn of_identical_reads_only_the_newest_is_shown() {
    let mut task = task();
    say(&mut task, "user", "read it");
    for at in 0..4 {
        call(&mut task, at, &words(2_000, 1));
    }
    say(&mut task, "assistant", "read");
    say(&mut task, "user", "again");
    say(&mut task, "assistant", "done");
    let aim = infold::Aim {
        budget: budget(200_000, Some(30_000)),
        ..aim(200_000)
    };
    let outcome = managed(&mut task, &aim);
    assert_eq!(outcome.action, PassAction::Masked, "{outcome:?}");
    let shown = shown(&task);
    let stubs = shown
        .iter()
        .filter(|text| text.contains("tokens folded away"));
    assert_eq!(stubs.count(), 3);
    assert!(
        shown[8].contains("alpha"),
        "the newest is whole: {}",
        shown[8]
    );
}

#[test]
fn images_are_masked_when_bytes_are_the_trouble() {
    let mut task = task();
    say(&mut task, "user", "look");
    for at in 0..6 {
        let data = "A".repeat(40_000);
        push(
            &mut task,
            format!(
                r#"{{"role":"user","content":[{{"type":"text","text":"picture {at}"}},{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}]}}"#
            ),
        );
        say(&mut task, "assistant", "seen");
    }
    let aim = infold::Aim {
        budget: budget(200_000, Some(150_000)),
        ..aim(200_000)
    };
    let outcome = managed(&mut task, &aim);
    assert_eq!(
        (outcome.action, outcome.due),
        (PassAction::Masked, Some(Due::Bytes))
    );
    assert!(outcome.after.bytes <= 150_000, "{outcome:?}");
    assert!(shown(&task).iter().any(|text| text.contains("picture 0")));
}

#[test]
fn a_window_below_the_floor_is_refused_with_its_parts() {
    let mut task = task();
    say(&mut task, "system", &words(900, 0));
    say(&mut task, "user", &words(300, 1));
    say(&mut task, "assistant", "yes");
    say(&mut task, "user", "go on");
    let writer = task.writer().expect("a task");
    let error = manage(writer, &aim(1_024), &mut Extractive, &Hooks::default());
    let Err(ManageError::Floor { floor }) = error else {
        panic!("{error:?}");
    };
    assert_eq!(floor.allow, 665);
    let names: Vec<&str> = floor.parts.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["system prompt", "first request", "last round"]);
    assert_eq!(task.log().state().at().event, 0, "nothing was folded");
}

#[test]
fn a_pass_that_was_undone_is_not_made_again_until_the_view_grew() {
    let mut task = chat(125, 20);
    let mut aim = aim(12_000);
    aim.budget = budget_at(12_000, 50.0);
    assert_eq!(managed(&mut task, &aim).due, Some(Due::Threshold));
    task.writer()
        .expect("a task")
        .undo()
        .expect("a pass to undo");
    let again = managed(&mut task, &aim);
    assert_eq!(
        (again.action, again.skipped),
        (PassAction::Untouched, Some(SkipReason::Waiting))
    );
    assert_eq!(will_manage(task.log(), &aim).expect("a log"), None);
    // A requested fold is made nevertheless.
    let forced = infold::Aim {
        forced: true,
        ..aim.clone()
    };
    assert_eq!(managed(&mut task, &forced).action, PassAction::Condensed);
}

#[test]
fn a_floor_near_the_threshold_is_reported_once_instead_of_folded_at() {
    let mut task = task();
    say(&mut task, "system", &words(5_750, 0));
    for at in 0..12 {
        say(
            &mut task,
            "user",
            &format!("request {at} {}", words(10, at)),
        );
        say(&mut task, "assistant", &words(10, at));
    }
    // A threshold of the whole window; the default is relative to the foldable part.
    let strategy: Strategy = "roo".parse().expect("a preset");
    let aim = infold::Aim::new(budget_at(10_000, 60.0), strategy);
    let outcome = managed(&mut task, &aim);
    assert_eq!(
        (outcome.due, outcome.skipped),
        (Some(Due::Threshold), Some(SkipReason::Floor))
    );
    let events = task.log().state().at().event;
    assert_eq!(events, 1, "reported");
    managed(&mut task, &aim);
    assert_eq!(task.log().state().at().event, events, "once");
}

#[test]
fn a_pass_frees_a_useful_share_of_what_can_be_folded() {
    // Instructions and tools take two thirds of the window.
    let mut aim = aim(32_000);
    aim.budget = Budget::new(Limits {
        window: 32_000,
        max_tokens: Some(2_000),
        threshold: Some(75.0),
        ..Limits::default()
    })
    .expect("a window with room");
    aim.frame = Size {
        tokens: 21_000,
        bytes: 84_000,
    };
    let mut task = task();
    let mut passes = 0;
    for at in 0..100 {
        say(
            &mut task,
            "user",
            &format!("request {at} {}", words(20, at)),
        );
        call(&mut task, at, &words(120, at));
        let outcome = managed(&mut task, &aim);
        assert!(outcome.fits, "{at}: {outcome:?}");
        passes += usize::from(outcome.action > PassAction::Untouched);
        say(
            &mut task,
            "assistant",
            &format!("reply {at} {}", words(20, at)),
        );
    }
    assert!(
        passes <= 12,
        "{passes} of 100 turns changed what was sent before"
    );
}

#[test]
fn a_last_round_that_does_not_fit_shows_head_and_tail_of_its_largest_results() {
    let mut task = chat(4, 40);
    say(&mut task, "user", "read all of it");
    let calls: Vec<String> = (0..3)
        .map(|at| {
            format!(
                r#"{{"id":"r{at}","type":"function","function":{{"name":"read_file","arguments":"{{}}"}}}}"#
            )
        })
        .collect();
    push(
        &mut task,
        format!(
            r#"{{"role":"assistant","content":"reading","tool_calls":[{}]}}"#,
            calls.join(",")
        ),
    );
    for (at, size) in [9_000, 12_000, 50].into_iter().enumerate() {
        let text = format!("first-{at} {} last-{at}", words(size, at));
        push(
            &mut task,
            format!(r#"{{"role":"tool","tool_call_id":"r{at}","content":"{text}"}}"#),
        );
    }
    let aim = aim(16_000);
    let outcome = managed(&mut task, &aim);
    assert!(outcome.fits, "{outcome:?}");
    let shown = shown(&task);
    for (at, text) in shown[shown.len() - 3..].iter().enumerate() {
        assert!(text.starts_with(&format!("first-{at} ")), "{text:.60}");
        assert!(text.ends_with(&format!(" last-{at}")), "{at}");
        assert_eq!(text.contains("left out to fit the window"), at < 2, "{at}");
    }
    assert!(shown[shown.len() - 4].contains("reading"));
    let log = task.log();
    let last = log
        .state()
        .last_seq()
        .and_then(|seq| seq.prev())
        .expect("three results");
    assert!(shown[shown.len() - 2].contains(&format!("message {last} keeps all of it")));
    // With a smaller window, more of the same results is left out.
    let outcome = managed(&mut task, &common::aim(6_000));
    assert!(outcome.fits, "{outcome:?}");
    let writer = task.writer().expect("a task");
    writer.undo().expect("a pass");
    writer.undo().expect("a pass");
    assert_eq!(self::shown(&task).len(), 8 + 1 + 4);
}

#[test]
fn one_large_result_in_the_last_round_does_not_leave_all_before_it_without_a_summary() {
    let rule = "Never sell the lighthouse on Mole 7.";
    let mut task = chat(20, 40);
    say(&mut task, "user", rule);
    say(&mut task, "assistant", "noted");
    say(&mut task, "user", "read the whole harbour log");
    call(&mut task, 1, &words(30_000, 1));
    let aim = aim(16_000);
    let outcome = managed(&mut task, &aim);
    assert!(outcome.fits, "{outcome:?}");
    assert!(summary(&task).contains(rule), "{:?}", shown(&task));
    let shown = shown(&task);
    let result = shown.last().expect("the result");
    assert!(
        result.contains("left out to fit the window"),
        "{result:.200}"
    );
    let half = aim.budget.allow() / 2;
    assert!(size(&task) > half, "{} of {half}", size(&task));
}

#[test]
fn a_summary_that_was_short_for_want_of_room_grows_again() {
    let mut task = task();
    for at in 0..120 {
        say(
            &mut task,
            "user",
            &format!(
                "Berth {at} is rented to boat-{at}; note that. {}",
                words(6, at)
            ),
        );
        say(&mut task, "assistant", &format!("noted for berth {at}"));
    }
    // Most of the window is taken by the frame.
    let mut tight = aim(16_000);
    tight.frame = Size {
        tokens: 8_500,
        bytes: 34_000,
    };
    managed(&mut task, &tight);
    let short = summary(&task);
    for at in 120..400 {
        say(&mut task, "user", &format!("go on {at} {}", words(30, at)));
        say(&mut task, "assistant", &format!("done {at}"));
    }
    managed(&mut task, &aim(16_000));
    let long = summary(&task);
    let boats = |text: &str| {
        (0..120)
            .filter(|at| text.contains(&format!("boat-{at};")))
            .count()
    };
    assert!(
        boats(&long) > boats(&short),
        "{} boats, then {}",
        boats(&short),
        boats(&long)
    );
}

#[test]
fn what_the_user_says_is_never_clipped() {
    let mut task = chat(4, 40);
    say(&mut task, "user", &words(20_000, 1));
    let writer = task.writer().expect("a task");
    let error = manage(writer, &aim(16_000), &mut Extractive, &Hooks::default());
    let error = error.expect_err("it does not fit").to_string();
    assert!(error.contains("last round 20"), "{error}");
}

#[test]
fn what_the_provider_reported_counts_for_more_than_what_we_count() {
    let mut task = chat(400, 20);
    let counted = size(&task);
    let aim = aim(100_000);
    assert_eq!(will_manage(task.log(), &aim).expect("a log"), None);
    let usage = Usage {
        provider: "test".to_owned(),
        model: "m".to_owned(),
        tokens: 80_000,
        cached: 0,
        output: 10,
        frame: 0,
        cost: 0,
        purpose: infold_store::Purpose::Reply,
    };
    task.writer().expect("a task").usage(usage).expect("room");
    assert_eq!(
        will_manage(task.log(), &aim).expect("a log"),
        Some(Due::Threshold)
    );
    let outcome = managed(&mut task, &aim);
    assert_eq!(outcome.before.tokens, 80_000, "we counted {counted}");
    // The view changed: the report no longer holds, and nothing is due.
    assert_eq!(will_manage(task.log(), &aim).expect("a log"), None);
    let other = infold::Aim {
        model: Some("other".to_owned()),
        ..aim
    };
    assert_eq!(will_manage(task.log(), &other).expect("a log"), None);
}

#[test]
fn what_is_sent_beside_the_view_counts() {
    let task = chat(100, 20);
    let mut aim = aim(20_000);
    assert_eq!(will_manage(task.log(), &aim).expect("a log"), None);
    aim.frame = Size {
        tokens: 12_000,
        bytes: 0,
    };
    assert_eq!(
        will_manage(task.log(), &aim).expect("a log"),
        Some(Due::Window)
    );
}

#[test]
fn an_earlier_summary_is_handed_over_and_integrated() {
    let mut task = chat(100, 40);
    let aim = aim(8_000);
    managed(&mut task, &aim);
    for at in 100..200 {
        say(
            &mut task,
            "user",
            &format!("request {at} {}", words(40, at)),
        );
        say(
            &mut task,
            "assistant",
            &format!("reply {at} {}", words(40, at)),
        );
    }
    let path = task.log().dir().join("seen.txt");
    let mut summarizer = command(&format!(
        "tee {} | tail -c 200 | tr -d '\\n'",
        path.display()
    ));
    let writer = task.writer().expect("a task");
    let outcome = manage(writer, &aim, &mut summarizer, &Hooks::default()).expect("it fits");
    assert_eq!(outcome.errors, [""; 0]);
    let seen = std::fs::read_to_string(path).expect("the command was run");
    assert!(seen.starts_with("[summary]: "), "{}", &seen[..80]);
    assert!(seen.contains("[user]: request 120 "));
    let folds = task.log().state().shown().items().iter();
    let folds = folds.filter(|item| matches!(item, infold_log::Item::Fold(_)));
    assert_eq!(folds.count(), 1, "one stand-in, not two");
}

#[test]
fn a_summarizer_that_misbehaves_is_reported_and_the_built_in_one_helps_out() {
    let cases = [
        ("exit 3", "ended with exit status: 3"),
        ("echo no model >&2; exit 1", "no model"),
        ("kill -9 $$", "ended with signal: 9"),
        ("true", "the summary is empty"),
        ("printf ' \\n '", "the summary is empty"),
        ("sleep 300", "gave no summary within 1 s"),
        ("sleep 300 & sleep 300", "gave no summary within 1 s"),
        (
            "cat; cat /proc/self/environ",
            "not valid UTF-8|tokens, and what it would replace",
        ),
        ("cat", "the summary has"),
        ("yes", "returned more than"),
        ("printf '\\377\\376'", "not valid UTF-8"),
        ("/no/such/program", "ended with exit status: 127"),
    ];
    for (shell, said) in cases {
        let mut task = chat(60, 40);
        let writer = task.writer().expect("a task");
        let mut command = command(shell);
        if shell.starts_with("sleep") {
            command.timeout = Duration::from_secs(1);
        }
        let outcome = manage(writer, &aim(8_000), &mut command, &Hooks::default());
        let outcome = outcome.expect("it fits all the same");
        assert_eq!(outcome.action, PassAction::Condensed, "{shell}");
        assert_eq!(outcome.steps[0].summarizer.as_deref(), Some("extractive"));
        let errors = outcome.errors.join("\n");
        assert!(
            said.split('|').any(|said| errors.contains(said)),
            "{shell}: {errors}"
        );
        assert!(shown(&task)[1].starts_with("[Summary of messages"));
    }
}

#[test]
fn a_summarizer_that_takes_little_is_asked_in_chunks_but_not_for_ever() {
    let mut task = chat(400, 40);
    let calls = task.log().dir().join("calls");
    let mut summarizer = command(&format!("echo x >> {}; echo it went on", calls.display()));
    summarizer.takes = Some(500);
    let writer = task.writer().expect("a task");
    let outcome = manage(writer, &aim(8_000), &mut summarizer, &Hooks::default()).expect("it fits");
    assert_eq!(outcome.calls, 16);
    let asked = std::fs::read_to_string(calls).expect("it was asked");
    assert_eq!(asked.lines().count(), 16);
}

#[test]
fn outcomes_have_a_name_in_gemini_s_terms() {
    let mut task = chat(3, 3);
    let forced = infold::Aim {
        forced: true,
        ..aim(8_000)
    };
    assert_eq!(managed(&mut task, &aim(8_000)).gemini(), GeminiStatus::Noop);
    let mut longwinded = command("yes word | head -n 2000");
    let writer = task.writer().expect("a task");
    let outcome = manage(writer, &forced, &mut longwinded, &Hooks::default()).expect("it fits");
    assert_eq!(outcome.gemini(), GeminiStatus::Inflated, "{outcome:?}");
    let writer = task.writer().expect("a task");
    let outcome = manage(writer, &forced, &mut command("false"), &Hooks::default());
    assert_eq!(outcome.expect("it fits").gemini(), GeminiStatus::CountError);
    let mut task = chat(200, 40);
    assert_eq!(
        managed(&mut task, &aim(8_000)).gemini(),
        GeminiStatus::Compressed
    );
}

#[test]
fn a_hook_may_veto_and_is_told_why() {
    let mut task = chat(200, 40);
    let told = task.log().dir().join("told.json");
    let hooks = Hooks {
        before_fold: Some(format!(
            "cat > {}; echo not now >&2; exit 1",
            told.display()
        )),
        after_fold: None,
    };
    let writer = task.writer().expect("a task");
    let outcome = manage(writer, &aim(8_000), &mut Extractive, &hooks).expect("vetoed");
    assert_eq!(
        (outcome.action, outcome.skipped),
        (PassAction::Untouched, Some(SkipReason::Vetoed))
    );
    assert!(
        outcome.errors[0].contains("not now"),
        "{:?}",
        outcome.errors
    );
    assert!(!outcome.fits);
    let told = std::fs::read_to_string(told).expect("the hook was run");
    assert!(told.contains(r#""due":"window""#) && told.contains(r#""trigger":"auto""#));
}

#[test]
fn a_hook_is_told_what_was_folded() {
    let mut task = chat(200, 40);
    let told = task.log().dir().join("told.json");
    let hooks = Hooks {
        before_fold: Some("true".to_owned()),
        after_fold: Some(format!("cat > {}", told.display())),
    };
    let writer = task.writer().expect("a task");
    manage(writer, &aim(8_000), &mut Extractive, &hooks).expect("it fits");
    let told = std::fs::read_to_string(told).expect("the hook was run");
    assert!(told.contains(r#""outcome":"condensed""#), "{told}");
}

#[test]
fn every_reason_stands_in_the_log() {
    let mut task = chat(200, 40);
    managed(&mut task, &aim(8_000));
    let last = task.log().state().last_event().expect("an event");
    let line = task.log().event(last).expect("a log");
    let What::Manage(record) = line.what else {
        panic!("{line:?}");
    };
    for said in [
        r#""due":"window""#,
        r#""trigger":"auto""#,
        r#""strategy":"infold""#,
        r#""outcome":"condensed""#,
        r#""summarizer":"extractive""#,
        r#""window":8000"#,
    ] {
        assert!(record.contains(said), "{said} in {record}");
    }
}

#[test]
fn a_rehearsal_comes_to_what_the_pass_comes_to() {
    for strategy in infold::STRATEGIES {
        let mut task = chat(200, 40);
        let aim = infold::Aim::new(budget_at(8_000, strategy.threshold), strategy);
        let rehearsed = rehearse(task.log(), &aim, &mut Extractive).expect("it fits");
        assert_eq!(task.log().state().at().event, 0);
        let outcome = managed(&mut task, &aim);
        assert_eq!(rehearsed.action, outcome.action, "{strategy}");
        assert_eq!(rehearsed.after, outcome.after, "{strategy}");
    }
}

#[test]
fn each_strategy_shows_its_stand_in_its_own_way() {
    let mut seen = Vec::new();
    for strategy in infold::STRATEGIES {
        let mut task = chat(200, 40);
        let aim = infold::Aim::new(budget_at(8_000, strategy.threshold), strategy);
        managed(&mut task, &aim);
        let roles = roles(&task);
        let text = &shown(&task)[1];
        let head: String = text.chars().take(12).collect();
        let snapshot = text.contains("<state_snapshot>");
        seen.push(format!(
            "{strategy}: {} {head} {snapshot} then {}",
            roles[1], roles[2]
        ));
    }
    insta::assert_snapshot!(seen.join("\n"), @r"
    infold: user [Summary of  false then model
    roo: model [Summary of  false then model
    gemini: user [Summary of  true then model
    file: model [Summary of  false then model
    truncate: user [348 earlier false then model
    ");
}

#[test]
fn without_a_summary_the_oldest_are_hidden() {
    let strategy: Strategy = "truncate".parse().expect("a preset");
    let mut task = chat(200, 40);
    let outcome = managed(&mut task, &infold::Aim::new(budget(8_000, None), strategy));
    assert_eq!(outcome.action, PassAction::Truncated);
    assert!(outcome.fits);
    assert!(shown(&task)[1].contains("earlier messages are hidden to fit the window"));
}

fn command(shell: &str) -> CommandSummarizer {
    CommandSummarizer {
        command: shell.to_owned(),
        timeout: Duration::from_secs(60),
        takes: None,
    }
}
