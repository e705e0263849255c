//! The layered state in a task's log, and its parts in requests.

use infold::Config;
use infold::Scratch;
use infold::checkpoint::FileHistory;
use infold::layers::model::{
    Attribute, Author, Change, ChangeError, Field, LayerItem, LayerState, Transitions,
    encode_changes,
};
use infold::layers::{
    ContextRequest, StateError, build_context, change_state, read_state, read_state_file,
    request_context, show_changing,
};
use infold::step::{Step, StepContext, StepResult};
use infold_store::{Contexts, Durability, StepError, Writer};

fn set(field: Field, text: &str) -> Change {
    Change::Set(field, vec![LayerItem::new(text)])
}

fn add(field: Field, text: &str) -> Change {
    Change::Add(field, LayerItem::new(text))
}

fn change(writer: &mut Writer, author: Author, change: Change) -> Result<(), StateError> {
    change_state(writer, author, &[change], &Transitions::default()).map(drop)
}

fn state(writer: &Writer) -> LayerState {
    let log = writer.log();
    read_state(log, log.state().shown()).expect("a state")
}

fn say(task: &mut Scratch, role: &str, text: &str) {
    let message = format!(r#"{{"role":"{role}","content":"{text}"}}"#);
    task.push(message.into_bytes()).expect("a message");
}

fn texts(state: &LayerState, field: Field) -> Vec<&str> {
    state
        .items(field)
        .iter()
        .map(|item| item.text.as_str())
        .collect()
}

/// Takes a step without hooks and files.
fn take(
    step: &Step,
    writer: &mut Writer,
    transitions: &Transitions,
) -> Result<StepResult, StepError> {
    let nowhere = Contexts::new("/nonexistent", Durability::Never);
    let context = StepContext {
        hooks: &infold::Hooks::default(),
        transitions,
        files: &FileHistory::new(&nowhere),
    };
    step.take(writer, context)
}

#[test]
fn undo_takes_back_one_change_and_keeps_those_of_a_model() {
    let mut task = Scratch::new().expect("a task");
    say(&mut task, "user", "begin");
    let writer = task.writer().expect("a writer");
    change(writer, Author::Person, set(Field::Goal, "migrate")).expect("allowed");
    change(writer, Author::Person, add(Field::Policies, "no downtime")).expect("allowed");
    change(writer, Author::Model, add(Field::Facts, "40 million rows")).expect("allowed");
    writer.undo().expect("a step");
    let after = state(writer);
    assert_eq!(texts(&after, Field::Policies), [""; 0]);
    assert_eq!(texts(&after, Field::Facts), ["40 million rows"]);
    assert_eq!(after.text(Field::Goal), Some("migrate"));
    writer.undo().expect("a step");
    assert_eq!(state(writer).text(Field::Goal), None);
    assert_eq!(texts(&state(writer), Field::Facts), ["40 million rows"]);
    assert!(writer.undo().is_err(), "a model's change is no step");
}

#[test]
fn redo_rewind_and_fork_know_the_state() {
    let mut task = Scratch::new().expect("a task");
    say(&mut task, "user", "begin");
    let writer = task.writer().expect("a writer");
    change(writer, Author::Person, set(Field::Goal, "first")).expect("allowed");
    say(&mut task, "assistant", "well");
    let writer = task.writer().expect("a writer");
    change(writer, Author::Person, set(Field::Goal, "second")).expect("allowed");
    writer.undo().expect("a step");
    assert_eq!(state(writer).text(Field::Goal), Some("first"));
    writer.redo().expect("an undo");
    assert_eq!(state(writer).text(Field::Goal), Some("second"));
    let back = Step::read(br#"{"step":"rewind","to":1}"#).expect("a step");
    take(&back, writer, &Transitions::default()).expect("a rewind");
    assert_eq!(
        state(writer).text(Field::Goal),
        None,
        "the goal was set after message 1"
    );
    writer.undo().expect("a step");
    assert_eq!(state(writer).text(Field::Goal), Some("second"));
}

#[test]
fn a_state_with_many_changes_is_read_from_its_last_base() {
    let mut task = Scratch::new().expect("a task");
    say(&mut task, "user", "begin");
    let writer = task.writer().expect("a writer");
    change(writer, Author::Person, set(Field::Goal, "count")).expect("allowed");
    for at in 0..300 {
        let variable = LayerItem::new(at.to_string()).with(Attribute::Name, "at");
        change(
            writer,
            Author::Model,
            Change::Add(Field::WorkingVariables, variable),
        )
        .expect("allowed");
    }
    assert_eq!(texts(&state(writer), Field::WorkingVariables), ["299"]);
    let events = std::fs::read_to_string(writer.log().dir().join("events.jsonl")).expect("events");
    let bases = events.matches(r#""base":"#).count();
    assert!((1..10).contains(&bases), "{bases}");
    // A change that was undone before a base is not in force, although the base holds it.
    writer.undo().expect("a step");
    assert_eq!(state(writer).text(Field::Goal), None);
    assert_eq!(texts(&state(writer), Field::WorkingVariables), ["299"]);
}

#[test]
fn a_model_may_not_change_what_binds_it() {
    let mut task = Scratch::new().expect("a task");
    say(&mut task, "user", "begin");
    let writer = task.writer().expect("a writer");
    change(writer, Author::Person, set(Field::Phase, "planning")).expect("allowed");
    for field in [
        Field::Goal,
        Field::Policies,
        Field::Permissions,
        Field::Environment,
    ] {
        let refused = change(writer, Author::Model, set(field, "prod"));
        assert!(
            matches!(refused, Err(StateError::Change(ChangeError::Forbidden(_)))),
            "{field:?}"
        );
    }
    let jump = change(writer, Author::Model, set(Field::Phase, "verifying"))
        .expect_err("no such transition");
    assert_eq!(
        jump.to_string(),
        "phase verifying does not follow planning; what may follow: executing"
    );
    change(writer, Author::Model, set(Field::Phase, "executing")).expect("allowed");
    change(writer, Author::Person, set(Field::Phase, "planning")).expect("a person may");
}

#[test]
fn changes_are_all_made_or_none() {
    let mut task = Scratch::new().expect("a task");
    say(&mut task, "user", "begin");
    let writer = task.writer().expect("a writer");
    let changes = [set(Field::Goal, "x"), set(Field::Phase, "exec")];
    let error = change_state(writer, Author::Person, &changes, &Transitions::default());
    assert!(error.is_err());
    assert!(state(writer).is_empty());
}

#[test]
fn a_state_file_says_what_is_wrong_and_where() {
    let wrong = [
        (
            "task:\n  gaol: x\n",
            "line 2: no key `gaol` in task; there are goal, success_criteria, output_format, deadline",
            Some("goal"),
        ),
        (
            "sytem: {}\n",
            "line 1: no key `sytem` in here; there are system, task, runtime, memory, evidence, work",
            Some("system"),
        ),
        (
            "work:\n  plan:\n    - {stat: done, text: a}\n",
            "line 3: no key `stat` in an item of work.plan; there are text, priority, status",
            Some("status"),
        ),
        (
            "task:\n  goal: [a, b]\n",
            "line 2: `task.goal` holds one value",
            None,
        ),
        (
            "memory:\n  semantic:\n    facts:\n      - {source: a}\n",
            "line 4: an item of memory.semantic.facts without a `text`",
            None,
        ),
    ];
    for (text, problem, nearest) in wrong {
        let error = read_state_file(text).expect_err(text);
        assert_eq!(
            (error.to_string().as_str(), error.nearest.as_deref()),
            (problem, nearest)
        );
    }
    assert_eq!(read_state_file("").expect("an empty state"), []);
}

#[test]
fn what_was_said_and_done_fills_the_state() {
    let mut task = Scratch::new().expect("a task");
    say(&mut task, "user", "run the tests");
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"make\"}"}}]}"#;
    task.push(call.as_bytes().to_vec()).expect("a call");
    let result = r#"{"role":"tool","tool_call_id":"c1","content":"2 tests failed"}"#;
    task.push(result.as_bytes().to_vec()).expect("a result");
    let todos = r#"{"role":"assistant","content":"noted","tool_calls":[{"id":"c2","type":"function","function":{"name":"TodoWrite","arguments":"{\"todos\":[{\"content\":\"fix the parser\",\"status\":\"in_progress\"}]}"}}]}"#;
    task.push(todos.as_bytes().to_vec()).expect("a call");
    let writer = task.writer().expect("a writer");
    let config = Config::default();
    let request = ContextRequest {
        max_tokens: 2_000,
        now: infold_store::now(),
        config: &config.layers,
    };
    let log = writer.log();
    let built = build_context(log, log.state().shown(), &request).expect("room");
    let document = built.document();
    for part in [
        r#"<turn role="user">run the tests</turn>"#,
        r#"<observation tool="bash" timestamp=""#,
        ">2 tests failed</observation>",
        r#"<step id="1" status="in_progress">fix the parser</step>"#,
    ] {
        assert!(document.contains(part), "{part} in\n{document}");
    }
}

#[test]
fn what_failed_is_shown_once() {
    let mut task = Scratch::new().expect("a task");
    say(&mut task, "user", "run the tests");
    for at in 0..7 {
        let call = format!(
            r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"c{at}","name":"Bash","input":{{"command":"make"}}}}]}}"#
        );
        task.push(call.into_bytes()).expect("a call");
        let result = format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{at}","is_error":true,"content":"failure number {at}"}}]}}"#
        );
        task.push(result.into_bytes()).expect("a result");
    }
    let writer = task.writer().expect("a writer");
    let config = Config::default();
    let request = ContextRequest {
        max_tokens: 4_000,
        now: infold_store::now(),
        config: &config.layers,
    };
    let log = writer.log();
    let built = build_context(log, log.state().shown(), &request).expect("room");
    let document = built.document();
    for at in 0..7 {
        let times = document.matches(&format!("failure number {at}")).count();
        assert_eq!(times, 1, "{at} in\n{document}");
    }
    assert_eq!(document.matches("<failure ").count(), 5, "{document}");
}

#[test]
fn what_is_wrong_with_changes_in_json_is_said() {
    let said = |changes: serde_json::Value| {
        infold::layers::read_changes(Some(&changes)).expect_err("it is wrong")
    };
    for (change, wanted) in [
        (
            r#"{"op":"ad","field":"facts","item":"x"}"#,
            r#"did you mean "add"?"#,
        ),
        (
            r#"{"op":"add","field":"facts","itm":"x"}"#,
            r#"add takes field, item, not "itm"; did you mean "item"?"#,
        ),
        (
            r#"{"op":"add","field":"facts","item":"x","index":1}"#,
            r#"add takes field, item, not "index""#,
        ),
        (
            r#"{"op":"mark","field":"plan","index":1,"stauts":"done"}"#,
            r#"did you mean "status"?"#,
        ),
        (
            r#"{"op":"add","field":"facts","item":{"text":"x","sorce":"y"}}"#,
            r#"an item has no "sorce"; did you mean "source"?"#,
        ),
        (r#""set""#, "a change is an object"),
    ] {
        let change: serde_json::Value = serde_json::from_str(change).expect("JSON");
        let text = said(serde_json::json!([change]));
        assert!(text.contains(wanted), "{change}: {text}");
    }
}

#[test]
fn a_status_that_was_recorded_before_statuses_were_checked_is_kept() {
    let mut task = Scratch::new().expect("a task");
    let writer = task.writer().expect("a writer");
    let step = LayerItem::new("write it").with(Attribute::Status, "half way");
    let changes = encode_changes(&[Change::Set(Field::Plan, vec![step])]);
    writer
        .change_state(infold_store::StateAuthor::Person, changes, None)
        .expect("recorded");
    let log = writer.log();
    let state = infold::layers::read_state(log, log.state().shown()).expect("readable");
    let status = state.items(Field::Plan)[0].attribute(Attribute::Status);
    assert_eq!(status, Some("half way"));
}

#[test]
fn requests_show_what_was_set_and_repeat_it_only_when_it_changed() {
    let mut task = Scratch::new().expect("a task");
    say(&mut task, "user", "begin");
    let config = Config::default();
    let request = ContextRequest {
        max_tokens: 2_000,
        now: 0,
        config: &config.layers,
    };
    let writer = task.writer().expect("a writer");
    assert_eq!(
        request_context(writer.log(), &request).expect("readable"),
        None
    );
    change(writer, Author::Person, set(Field::Goal, "migrate")).expect("allowed");
    change(writer, Author::Person, add(Field::Plan, "rehearse")).expect("allowed");
    let context = request_context(writer.log(), &request)
        .expect("room")
        .expect("a state");
    let stable = context.stable.expect("a goal");
    let changing = context.changing.expect("a plan");
    assert!(stable.contains("<goal>migrate</goal>") && !stable.contains("rehearse"));
    assert!(changing.contains("rehearse") && !changing.contains("migrate"));
    show_changing(writer, Some(&changing)).expect("shown");
    show_changing(writer, Some(&changing)).expect("shown already");
    let shown = |writer: &Writer| {
        let mut all = String::new();
        let log = writer.log();
        let view = infold_log::View::of(log.state().shown(), log).expect("a view");
        log.render(&view, &mut |_, bytes| {
            all.push_str(&String::from_utf8_lossy(bytes));
            Ok(())
        })
        .expect("rendered");
        all
    };
    assert_eq!(shown(writer).matches("rehearse").count(), 1);
    // Undo skips the shown context, and undoes the change of the state.
    writer.undo().expect("a step");
    assert_eq!(shown(writer).matches("rehearse").count(), 1);
    let context = request_context(writer.log(), &request).expect("room");
    assert_eq!(context.expect("a goal").changing, None);
    // The context shown before no longer holds; this is stated once.
    say(&mut task, "user", "go on");
    let writer = task.writer().expect("a writer");
    show_changing(writer, None).expect("shown");
    show_changing(writer, None).expect("shown already");
    assert_eq!(shown(writer).matches(r"<context>\n</context>").count(), 1);
}

#[test]
fn a_model_leaves_the_configured_phase_only_along_the_transitions() {
    let text = "tools:\n  phase: planning\n  permissions: [read]\nlayers:\n  transitions: {planning: [verifying]}\n";
    let (config, _) = Config::parse("config.yaml", text, &|_| None).expect("a configuration");
    let mut task = Scratch::new().expect("a task");
    say(&mut task, "user", "begin");
    let writer = task.writer().expect("a writer");
    // The state has no phase: that of the policy is in force.
    let step = |phase: &str| {
        let json = format!(
            r#"{{"step":"state","author":"model","changes":[{{"op":"set","field":"phase","items":["{phase}"]}}]}}"#
        );
        Step::read(json.as_bytes()).expect("a step")
    };
    let transitions = &config.layers.transitions;
    let refused = take(&step("executing"), writer, transitions);
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(state(writer).text(Field::Phase), None);
    take(&step("verifying"), writer, transitions).expect("allowed");
}

#[test]
fn a_step_of_a_model_follows_the_configured_transitions() {
    let text = "layers:\n  transitions: {planning: [verifying]}\n";
    let (config, _) = Config::parse("config.yaml", text, &|_| None).expect("a configuration");
    let mut task = Scratch::new().expect("a task");
    say(&mut task, "user", "begin");
    let writer = task.writer().expect("a writer");
    change(writer, Author::Person, set(Field::Phase, "planning")).expect("allowed");
    let step = |author: &str, phase: &str| {
        let json = format!(
            r#"{{"step":"state","author":"{author}","changes":[{{"op":"set","field":"phase","items":["{phase}"]}}]}}"#
        );
        Step::read(json.as_bytes())
    };
    let jump = step("model", "verifying").expect("a step");
    let refused = take(&jump, writer, &Transitions::default());
    assert!(refused.is_err(), "{refused:?}");
    let usual = step("model", "executing").expect("a step");
    let refused = take(&usual, writer, &config.layers.transitions);
    let why = refused.expect_err("no such transition").to_string();
    assert!(why.contains("what may follow: verifying"), "{why}");
    take(&jump, writer, &config.layers.transitions).expect("allowed");
    assert_eq!(state(writer).text(Field::Phase), Some("verifying"));
    // A person goes where they like.
    let back = step("person", "planning").expect("a step");
    take(&back, writer, &config.layers.transitions).expect("allowed");
    assert_eq!(
        step("modle", "planning"),
        Err(r#""author" of state must be "person" or "model""#.to_owned())
    );
}
