//! The contents of summaries made by code, shown with conversations.

use infold::Extract;
use infold::extract::tokens;
use infold_log::Seq;
use infold_wire::{Message, quote};
use proptest::prelude::*;

fn taken(extract: &mut Extract, from: u64, messages: &[String]) {
    for (text, seq) in messages.iter().zip(from..) {
        let message = Message::parse(text.as_bytes()).expect("a message");
        extract.message(Seq::new(seq).expect("not zero"), &message);
    }
}

fn extract(messages: &[String]) -> Extract {
    let mut extract = Extract::new();
    taken(&mut extract, 2, messages);
    extract
}

fn user(text: &str) -> String {
    format!(r#"{{"role":"user","content":{}}}"#, quote(text))
}

fn says(text: &str) -> String {
    format!(r#"{{"role":"assistant","content":{}}}"#, quote(text))
}

fn calls(name: &str, input: &str) -> String {
    format!(
        r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"{name}","input":{input}}}]}}"#
    )
}

fn gives(text: &str) -> String {
    let text = quote(text);
    format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":{text}}}]}}"#
    )
}

fn story() -> Vec<String> {
    vec![
        user("Rename `getUser` to `fetchUser` in src/api.ts, and keep the tests green."),
        calls("Read", r#"{"file_path":"src/api.ts"}"#),
        gives("export function getUser(userId: string) { return db.findUser(userId); }"),
        says("The problem is that `getUser` is also called by `loadProfile`. I'll change both."),
        calls(
            "Edit",
            r#"{"file_path":"src/api.ts","old_string":"function getUser(","new_string":"function fetchUser("}"#,
        ),
        gives("ok"),
        calls("Bash", r#"{"command":"npm test"}"#),
        gives(
            "FAIL src/profile.test.ts\nTypeError: getUser is not a function\n\n2 failed, 10 passed\nexit code: 1",
        ),
        calls(
            "TodoWrite",
            r#"{"todos":[{"content":"rename in api.ts","status":"completed"},{"content":"fix loadProfile","status":"pending"}]}"#,
        ),
        gives("ok"),
        user("also bump MAX_RETRIES to 250 please"),
    ]
}

#[test]
fn a_summary_says_what_was_asked_done_and_left() {
    insta::assert_snapshot!(extract(&story()).write(600), @r#"
    ## Goal
    - First asked [2] "Rename `getUser` to `fetchUser` in src/api.ts, and keep the tests green."
    - Last asked [12] "also bump MAX_RETRIES to 250 please"

    ## Decisions and findings
    - [5] The problem is that `getUser` is also called by `loadProfile`.

    ## Files
    - src/api.ts (edited [6]): userId db.findUser

    ## Commands
    - npm test (failed with 1 [8]): src/profile.test.ts

    ## Errors
    - [9] TypeError: getUser is not a function (npm test)

    ## Open work
    - [ ] fix loadProfile [10]
    - 1 of 2 done [10]
    - Last said [5] "[…] I'll change both."

    ## Seen in results
    - [4] export function getUser(userId: string) { return db.findUser(userId); }

    ## Recall
    [n] is message n. Nothing is lost: the log keeps all of messages 2..12 in full, word for word. After → stands the message that says otherwise.
    "#);
}

/// The check of quotations finds in the messages all that the summary quotes.
#[test]
fn a_summary_quotes_only_what_was_said() {
    let long = format!(
        "Do \"this\" first, … then\n\n*that* `x`.  {}",
        "and so on, item after item ".repeat(400)
    );
    let mut story = story();
    story.push(user(&long));
    story.push(r#"{"role":"system","content":"Never touch /etc/hosts"}"#.to_owned());
    for budget in [200, 400, 1000, 4000] {
        let summary = extract(&story).write(budget);
        let said = [
            "Rename `getUser` to `fetchUser` in src/api.ts, and keep the tests green.",
            "also bump MAX_RETRIES to 250 please",
            &long,
        ];
        let checked = infold::claims::check(&summary, said);
        assert_eq!(checked.dropped, [], "{summary}");
        assert_eq!(checked.text, summary);
    }
}

#[test]
fn lists_leave_out_what_the_summary_says() {
    let extract = extract(&story());
    let lists = extract.lists("", 400);
    for part in [
        "src/api.ts (edited [6])",
        "npm test",
        "fix loadProfile",
        "MAX_RETRIES",
    ] {
        assert!(lists.contains(part), "{part} is not in:\n{lists}");
    }
    let shorter = extract.lists(
        "Renamed it; MAX_RETRIES is next, then fix loadProfile.",
        400,
    );
    assert!(!shorter.contains("MAX_RETRIES"), "{shorter}");
    assert!(!shorter.contains("loadProfile"), "{shorter}");
}

#[test]
fn what_matters_survives_much_that_comes_after_it() {
    let mut extract = extract(&story());
    for batch in 1..=2 {
        let more: Vec<String> = (0..30)
            .flat_map(|n| {
                [
                    calls("Read", &format!(r#"{{"file_path":"src/other{n}.ts"}}"#)),
                    gives(&format!("const value{n}_{batch} = 1;")),
                ]
            })
            .collect();
        taken(&mut extract, 2 + batch * 100, &more);
    }
    let summary = extract.write(500);
    for kept in [
        "src/api.ts (edited [6])",
        "fetchUser",
        "[ ] fix loadProfile [10]",
        "Rename `getUser` to `fetchUser`",
        "npm test (failed with 1 [8])",
    ] {
        assert!(summary.contains(kept), "{kept} is gone:\n{summary}");
    }
}

#[test]
fn a_summary_that_code_wrote_is_not_summarised_again() {
    let summary = extract(&story()).write(500);
    let mut next = Extract::new();
    next.previous(&summary);
    taken(&mut next, 20, &[user("go on")]);
    let text = next.write(500);
    assert!(!text.contains("## Earlier summary"), "{text}");
}

#[test]
fn a_summary_of_somebody_elses_is_kept_shortened() {
    let mut extract = Extract::new();
    extract.previous("We decided to use PostgreSQL for the billing_ledger table.\nNothing else.");
    taken(&mut extract, 9, &[user("go on")]);
    let text = extract.write(300);
    assert!(
        text.contains("## Earlier summary") && text.contains("billing_ledger"),
        "{text}"
    );
}

#[test]
fn a_later_value_and_a_passing_run_replace_what_was_before() {
    let text = extract(&[
        user("go on"),
        says("The factor is settled: `MULTIHULL` is 150 because the council said so."),
        says("Now `MULTIHULL` is 135, as the council changed it."),
        calls(
            "Bash",
            r#"{"command":"cd web && npm test a.ts 2>&1 | tail"}"#,
        ),
        gives("TypeError: x is not a function\nexit code: 1"),
        calls("Bash", r#"{"command":"npm test"}"#),
        gives("12 passed\nexit code: 0"),
        calls("Read", r#"{"file_path":"/code/old_export.py"}"#),
        gives("import csv"),
        calls("Bash", r#"{"command":"git rm old_export.py"}"#),
        gives("rm 'old_export.py'"),
    ])
    .write(600);
    assert!(text.contains("`MULTIHULL` is 135"), "{text}");
    assert!(!text.contains("is 150"), "{text}");
    assert!(!text.contains("## Errors"), "{text}");
    assert!(
        text.contains("/code/old_export.py (deleted [11])"),
        "{text}"
    );
}

#[test]
fn requests_come_before_all_else_and_rules_before_other_requests() {
    let mut messages = vec![user(
        "STOP. Port 8417 is the real harbour! Load tests only against port 8418.",
    )];
    for n in 0..40 {
        messages.push(user(&format!(
            "Next please have a look at ticket QS-{n}00 and at what the office says of it."
        )));
        messages.push(says(&format!(
            "The ticket QS-{n}00 is done because of `value_{n}`."
        )));
    }
    let mut extract = Extract::new();
    taken(&mut extract, 30, &messages);
    let text = extract.write(500);
    assert!(
        text.contains("Load tests only against port 8418."),
        "{text}"
    );
    assert!(text.contains("- Last asked [109]"), "{text}");
    assert!(
        !text.contains("First asked"),
        "message 30 is not the first:\n{text}"
    );
}

fn refuses(text: &str) -> String {
    let text = quote(text);
    format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","is_error":true,"content":{text}}}]}}"#
    )
}

#[test]
fn what_failed_was_not_done_to_a_file() {
    let edit = r#"{"file_path":"src/tide.rs","old_string":"a","new_string":"b"}"#;
    let messages = [
        user("Change the tide table."),
        calls("Edit", edit),
        gives("ok"),
        calls("Edit", edit),
        refuses("The string was not found"),
        calls("Read", r#"{"file_path":"src/tide.rs"}"#),
        refuses("timed out"),
        calls("Edit", edit),
        gives("ok"),
        calls("Edit", edit),
        refuses("The user doesn't want to proceed with this tool use."),
    ];
    let summary = extract(&messages).write(600);
    assert!(summary.contains("src/tide.rs (edited 2× [9])"), "{summary}");
    let messages = [
        user("Look."),
        calls("Read", r#"{"file_path":"src/gone.rs"}"#),
        refuses("File does not exist."),
    ];
    let summary = extract(&messages).write(600);
    assert!(!summary.contains("src/gone.rs ["), "{summary}");
}

#[test]
fn what_was_done_before_a_removal_is_not_counted_with_it() {
    let edit = r#"{"file_path":"a/old.json","old_string":"a","new_string":"b"}"#;
    let mut messages = vec![user("Clean up.")];
    for _ in 0..3 {
        messages.extend([calls("Edit", edit), gives("ok")]);
    }
    messages.extend([calls("Bash", r#"{"command":"rm a/old.json"}"#), gives("")]);
    let summary = extract(&messages).write(600);
    assert!(summary.contains("a/old.json (deleted [9])"), "{summary}");
}

#[test]
fn every_cut_is_marked_also_one_that_was_made_before() {
    let long: String = (0..400)
        .map(|n| format!("Row {n} of the tide table goes out. "))
        .collect();
    let messages = [
        user("Start."),
        user(&long),
        says("Done."),
        user("Go on with the harbour lights at the north pier."),
    ];
    let summary = extract(&messages).write(900);
    let line = summary
        .lines()
        .find(|line| line.starts_with("- [3] "))
        .expect("it is quoted");
    assert!(line.ends_with("[…]\""), "{line}");
    let plan = quote(&"Raise the mast and set the sail. ".repeat(300));
    let messages = [
        user("Plan it."),
        calls("ExitPlanMode", &format!(r#"{{"plan":{plan}}}"#)),
        gives("ok"),
    ];
    let summary = extract(&messages).write(4000);
    assert!(summary.contains("[…]"), "{summary}");
}

#[test]
fn what_was_proposed_and_rejected_is_no_finding() {
    let mut messages = vec![
        user("The second click books twice. What do you suggest?"),
        says(
            "The cause is that each click gets a fresh key. I suggest a lock in the lighthouse cache for each shipment.",
        ),
        user("No, there is no cache on the boxes."),
    ];
    messages.extend((0..8).flat_map(|at| [says(&format!("Step {at} is done.")), user("go on")]));
    let summary = extract(&messages).write(600);
    assert!(summary.contains("each click gets a fresh key"), "{summary}");
    assert!(!summary.contains("lighthouse cache"), "{summary}");
    messages[2] = user("Yes, do that.");
    let summary = extract(&messages).write(600);
    assert!(summary.contains("lighthouse cache"), "{summary}");
}

#[test]
fn words_of_languages_and_line_numbers_are_not_listed_as_names() {
    let query = "SELECT berth_id, price_cents FROM harbour_fees WHERE paid IS NULL GROUP BY pier";
    let mut messages = vec![user("which fees are open?")];
    for at in 0..6 {
        messages.push(calls(
            "query",
            &format!(r#"{{"sql":"{query} LIMIT {at}"}}"#),
        ));
        let lines =
            (510..560).map(|line| format!("{line}\u{2192}if fee_open(pier) then echo done; fi"));
        messages.push(gives(&lines.collect::<Vec<_>>().join("\n")));
    }
    messages.push(says("Six are open."));
    let summary = extract(&messages).write(800);
    let lists = summary
        .split("\n## ")
        .filter(|part| part.starts_with("Other calls") || part.starts_with("Also mentioned"));
    let lists = lists.flat_map(str::lines).flat_map(|line| {
        line.split("]:")
            .skip(1)
            .chain(line.strip_prefix("- ").filter(|line| !line.contains('[')))
    });
    let names: Vec<&str> = lists.flat_map(|line| line.split([',', ' '])).collect();
    assert!(names.contains(&"fee_open"), "{summary}");
    for word in [
        "SELECT", "FROM", "WHERE", "GROUP", "NULL", "then", "echo", "517", "533",
    ] {
        assert!(!names.contains(&word), "{word}: {summary}");
    }
}

#[test]
fn a_request_beside_a_long_paste_survives_and_the_paste_does_not_fill_the_room() {
    let log: String = (0..3_000)
        .map(|n| {
            format!(
                "2025-02-25T22:{:02}:12Z INFO node.stock scale={n} took {}ms\n",
                n % 60,
                n % 900
            )
        })
        .collect();
    // More than 64 KB are read at their ends only.
    let short = &log[..20_000];
    let request = "Please find out why the Tuesday import skips the last row";
    for text in [
        format!("{log}\n{request}"),
        format!("{request}\n\n{log}"),
        format!("{short}\n{request}\n\n{short}"),
    ] {
        let mut messages = vec![user("Start."), says("Yes."), user(&text)];
        for _ in 0..20 {
            messages.extend([calls("Bash", r#"{"command":"make"}"#), gives("ok")]);
        }
        let summary = extract(&messages).write(1_500);
        assert!(summary.contains(request), "{summary}");
        let goal = summary
            .split("## ")
            .find(|part| part.starts_with("Goal"))
            .expect("a goal");
        assert!(goal.len() < 1_500, "{goal}");
        assert!(goal.contains("[…]"), "{goal}");
    }
}

#[test]
fn names_that_stay_in_view_make_room_for_others() {
    let list = |prefix: &str| {
        let names = (0..60).map(|n| format!("{prefix}_module_{n}.run()"));
        names.collect::<Vec<_>>().join(", ")
    };
    let (old, new) = (list("harbour"), list("quay"));
    let messages = [
        user("Start."),
        says(&format!("It calls {old}.")),
        says(&format!("It calls {new}.")),
    ];
    let count = |extract: &Extract, prefix: &str| extract.write(400).matches(prefix).count();
    let mut beside = extract(&messages);
    let alone = ["harbour_module", "quay_module"].map(|prefix| count(&beside, prefix));
    let kept = says(&format!("So {new}."));
    beside.stays(&Message::parse(kept.as_bytes()).unwrap());
    assert!(count(&beside, "harbour_module") > alone[0]);
    assert!(count(&beside, "quay_module") < alone[1]);
}

#[test]
fn a_rule_that_begins_with_a_path_is_no_data() {
    let talk: String = (0..300)
        .map(|n| format!("柜台第{n}个人说打印机比页面还老。"))
        .collect();
    let rule = "/k/123 这种旧链接要继续能用。";
    let messages = [
        user("开始。"),
        says("好。"),
        user(&format!("{talk}\n{rule}\n{talk}")),
        says("好。"),
    ];
    let summary = extract(&messages).write(1_000);
    assert!(summary.contains(rule), "{summary}");
}

#[test]
fn rules_that_are_alike_do_not_replace_one_another() {
    let mut messages = vec![user("Start."), says("Yes.")];
    for zone in 1..9 {
        messages.push(user(&format!(
            "Parcels to zone {zone} cost {} euros.",
            zone * 3 + 100
        )));
        messages.push(says("Noted."));
        messages.push(user(&format!(
            "The {} service listens on port 71{zone:02}.",
            [
                "billing", "search", "login", "print", "mail", "chat", "map", "tide"
            ][zone - 1]
        )));
        messages.push(says("Noted."));
    }
    messages.push(user("Print the list for the notice board."));
    let summary = extract(&messages).write(2_000);
    assert!(!summary.contains("\" → ["), "{summary}");
}

#[test]
fn only_the_last_of_several_runs_is_said_to_have_failed() {
    let mut messages = vec![user("Make it green.")];
    for _ in 0..3 {
        messages.extend([
            calls("Bash", r#"{"command":"make check"}"#),
            gives("all good\nexit code: 0"),
        ]);
    }
    messages.extend([
        calls("Bash", r#"{"command":"make check"}"#),
        gives("boom\nexit code: 2"),
    ]);
    let summary = extract(&messages).write(600);
    assert!(
        summary.contains("make check (ran 4×, failed with 2 [9])"),
        "{summary}"
    );
}

#[test]
fn a_message_without_a_word_is_not_quoted() {
    let messages = [
        user("Start with the boats."),
        says("Yes."),
        user("/"),
        says("?"),
        user("Count the oars."),
    ];
    let summary = extract(&messages).write(600);
    assert!(!summary.contains("\"\""), "{summary}");
}

#[test]
fn thanks_are_not_taken_for_the_request_being_worked_on() {
    let messages = [
        user("Start with the boats."),
        says("Yes."),
        user("Move the winter berths to the south basin, all but number 12."),
        says("They are moved."),
        user("ok thanks. noted."),
    ];
    let summary = extract(&messages).write(600);
    let goal = summary
        .split("## ")
        .find(|part| part.starts_with("Goal"))
        .expect("a goal");
    assert!(
        goal.contains(
            "- Asked before [4] \"Move the winter berths to the south basin, all but number 12.\""
        ),
        "{summary}"
    );
    assert!(
        goal.contains("- Last asked [6] \"ok thanks. noted.\""),
        "{summary}"
    );
}

#[test]
fn what_takes_back_a_sentence_stands_beside_it() {
    let filler = "The crew list for the regatta came in from four clubs, each in another form, and nobody has merged them. ";
    let messages = [
        user("Start with the boats."),
        says("Yes."),
        user(&format!(
            "{filler}Cancelled ones stay out, unless they were cancelled in June. Hmm, no, just leave out all of them. {filler}"
        )),
        says("Done."),
        user("Print the list of winners for the notice board."),
    ];
    for budget in [120, 160, 200, 300] {
        let summary = extract(&messages).write(budget);
        assert_eq!(
            summary.contains("Cancelled ones"),
            summary.contains("Hmm, no"),
            "{summary}"
        );
    }
}

#[test]
fn a_value_that_was_changed_points_to_the_newer_one() {
    let messages = [
        user("Start with the boats."),
        says("Yes."),
        user("Sessions end after 20 minutes without a click."),
        says("Set."),
        user("Paint the pier."),
        says("Painted."),
        user("Sessions end after 35 minutes, not earlier."),
        says("Set."),
        user("Now print the notice about the harbour lights."),
    ];
    let summary = extract(&messages).write(900);
    assert!(
        summary.contains("- [4] \"Sessions end after 20 minutes without a click.\" → [8]"),
        "{summary}"
    );
    assert!(
        summary.contains("- [8] \"Sessions end after 35 minutes, not earlier.\""),
        "{summary}"
    );
}

#[test]
fn a_fact_said_once_survives_much_talk_that_repeats_itself() {
    let mut messages = vec![user("Go through the lots.")];
    for n in 0..120 {
        messages.push(says(&format!(
            "The second list still differs from the sample for lot {n}."
        )));
        messages.push(user(&format!(
            "All right, carry on with item {}. My notes follow page {n} of the handout.",
            n * 7
        )));
        if n == 30 {
            messages.push(says("A wet pallet weighs 587 kilograms."));
            messages.push(user(
                "By the way, only two people may ever see the salaries. Next one, 31.",
            ));
        }
    }
    let summary = extract(&messages).write(1_000);
    assert!(summary.contains("587 kilograms"), "{summary}");
    assert!(
        summary.contains("only two people may ever see the salaries"),
        "{summary}"
    );
}

#[test]
fn any_language() {
    let text = extract(&[
        user("请把登录页面的按钮改成蓝色"),
        says("问题是样式表没有加载。已修复完成。"),
        user("ありがとう"),
    ])
    .write(300);
    for part in [
        "请把登录页面的按钮改成蓝色",
        "问题是样式表没有加载。",
        "ありがとう",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn hostile_messages_are_read_at_their_edges_only() {
    let huge = "a_b1".repeat(12 << 20);
    let mut extract = extract(&[
        user(&huge),
        gives(&huge),
        says(&huge),
        calls(
            "Write",
            &format!(r#"{{"file_path":"x","content":"{huge}"}}"#),
        ),
        r#"{"role":"user","content":"lone \ud83d here \u0000\u0007"}"#.to_owned(),
        gives(&"\u{1}\u{2}\u{7f}é".repeat(1000)),
    ]);
    extract.previous(&"[".repeat(100_000));
    assert!(tokens(&extract.write(300)) <= 300);
    assert!(
        extract.memory_bytes() < 1 << 20,
        "{}",
        extract.memory_bytes()
    );
}

#[test]
fn state_stays_small_however_much_passes() {
    let mut extract = Extract::new();
    for n in 0..30_000_u64 {
        let name = n * 2_654_435_761 % 1_000_003;
        let messages = [
            user(&format!(
                "please change item_{name} in dir{name}/f{name}.rs"
            )),
            calls(
                "Edit",
                &format!(r#"{{"file_path":"dir{name}/f{name}.rs","new":"fn new_{n}() {{}}"}}"#),
            ),
            says(&format!(
                "We decided that new_{n} should call item_{name} because of the issue."
            )),
        ];
        taken(&mut extract, 1 + n * 3, &messages);
    }
    assert!(
        extract.memory_bytes() < 9 << 20,
        "{}",
        extract.memory_bytes()
    );
    let text = extract.write(1000);
    assert!(
        text.contains("item_0 in dir0/f0.rs"),
        "the first request stays:\n{text}"
    );
    assert!(text.contains("new_29999"), "the newest stays:\n{text}");
}

fn any_message() -> impl Strategy<Value = String> {
    let word = r"[a-z]{1,9}[A-Z][a-z]+|[a-z]+/[a-z]+\.rs|[0-9]{3,6}|the|because|\PC{0,6}|\n|\[[0-9]+\]|## Files|- ";
    let text = prop::collection::vec(word, 0..20).prop_map(|words| words.join(" "));
    (text, 0..6).prop_map(|(text, kind)| {
        let inside = quote(&text);
        match kind {
            0 => user(&text),
            1 => says(&text),
            // The leading `a` keeps a path or command from being taken for a citation.
            2 => calls(
                "Edit",
                &format!(
                    r#"{{"file_path":{},"new":{inside}}}"#,
                    quote(&format!("a{text}"))
                ),
            ),
            3 => calls(
                "Bash",
                &format!(r#"{{"command":{}}}"#, quote(&format!("a{text}"))),
            ),
            4 => calls("anything", &format!(r#"{{"x":[{inside},7]}}"#)),
            _ => gives(&text),
        }
    })
}

/// The messages that lines cite in front.
fn citations(summary: &str) -> Vec<u64> {
    let lines = summary.lines().filter_map(|line| line.strip_prefix("- ["));
    lines
        .filter_map(|line| line.split(']').next()?.parse().ok())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// The budget is kept, no other message is cited, and the same messages have the same summary.
    #[test]
    fn a_summary_fits_cites_and_repeats(messages in prop::collection::vec(any_message(), 0..30), budget in 96_usize..1500) {
        let summary = extract(&messages).write(budget);
        prop_assert!(tokens(&summary) <= budget);
        prop_assert_eq!(&summary, &extract(&messages).write(budget));
        let last = 1 + messages.len() as u64;
        for seq in citations(&summary) {
            prop_assert!((2..=last).contains(&seq), "{} in\n{}", seq, summary);
        }
        let mut next = Extract::new();
        next.previous(&summary);
        prop_assert!(tokens(&next.write(budget)) <= budget);
        prop_assert!(tokens(&next.lists(&summary, budget)) <= budget);
    }
}
