//! Production: what is left of a tool, and what its calls may have.

use std::sync::Arc;

use infold_tools::{OfferedTool, Policy, PolicyDraft, ShownTools, ToolVerdict, Validators};
use infold_wire::Json;
use infold_wire::tool_list::EditedTools;

struct Shown {
    sent: String,
    checks: ShownTools,
    verdicts: Vec<ToolVerdict>,
}

fn shown(draft: PolicyDraft, tools: &str) -> Shown {
    let draft = PolicyDraft {
        permissions: ["read", "execute", "admin"].map(str::to_owned).to_vec(),
        environment: draft.environment.or_else(|| Some("production".to_owned())),
        commands: draft.commands.or_else(|| Some(vec!["npm test".to_owned()])),
        paths: vec!["/tmp/a".to_owned()],
        ..draft
    };
    let policy = Arc::new(Policy::new(draft).expect("a policy"));
    let json = Json::parse(tools.as_bytes()).expect("JSON");
    let tools = OfferedTool::read_all(json);
    let validators = Arc::new(Validators::default());
    let projection = policy.project(&tools, policy.situation(), &validators);
    let sent = match projection.apply(json) {
        EditedTools::Changed(bytes) => String::from_utf8(bytes).expect("text"),
        EditedTools::Unchanged => String::from_utf8_lossy(json.bytes()).into_owned(),
        EditedTools::Empty => String::new(),
    };
    let verdicts = projection.decisions.iter().map(|it| it.verdict.clone());
    Shown {
        sent,
        verdicts: verdicts.collect(),
        checks: ShownTools::new(policy, validators, &tools, &projection),
    }
}

fn tool(name: &str, properties: &str) -> String {
    format!(
        r#"[{{"name":"{name}","input_schema":{{"type":"object","properties":{properties},"required":[]}}}}]"#
    )
}

fn passes(shown: &Shown, name: &str, arguments: &str) -> bool {
    let arguments = Json::parse(arguments.as_bytes()).expect("JSON");
    shown.checks.check(name, Some(arguments)).is_ok()
}

#[test]
fn a_narrowed_tool_takes_nothing_but_what_is_known() {
    let text = r#"{"type":"string"}"#;
    let properties = format!(
        r#"{{"command":{text},"description":{text},"timeout":{{"type":"number"}},"workdir":{text},"run_in_background":{{"type":"boolean"}},"args":{{"type":"array","items":{text}}},"env":{{"type":"object"}},"pre_command":{text},"stdin":{text},"dangerouslyDisableSandbox":{{"type":"boolean"}},"then":{{"type":"object","properties":{{"command":{text}}}}}}}"#
    );
    let declared = shown(PolicyDraft::default(), &tool("Bash", &properties));
    assert!(passes(
        &declared,
        "Bash",
        r#"{"command":"npm test","description":"all","timeout":5,"workdir":"/w","run_in_background":true}"#
    ));
    for member in [
        r#""args":["; rm -rf /"]"#,
        r#""env":{"BASH_ENV":"/tmp/evil"}"#,
        r#""pre_command":"rm""#,
        r#""stdin":"rm""#,
        r#""dangerouslyDisableSandbox":true"#,
        r#""then":{"command":"rm"}"#,
        r#""cmd":"rm""#,
        r#""Command":"rm""#,
        r#""command ":"rm""#,
        r#""undeclared":1"#,
    ] {
        let arguments = format!(r#"{{"command":"npm test",{member}}}"#);
        assert!(!passes(&declared, "Bash", &arguments), "{arguments}");
    }
    for gone in ["args", "env", "pre_command", "stdin", "Sandbox", "then"] {
        assert!(!declared.sent.contains(gone), "{}", declared.sent);
    }
    assert!(declared.sent.contains(r#""additionalProperties":false"#));
    // Additional properties that a schema allows are removed as well, and removed members are no longer
    // required.
    let open = r#"[{"name":"Bash","input_schema":{"type":"object","properties":{"command":{"type":"string"},"args":{"type":"array"}},"required":["command","args"],"additionalProperties":true,"patternProperties":{"^x":{}}}}]"#;
    let open = shown(PolicyDraft::default(), open);
    assert!(passes(&open, "Bash", r#"{"command":"npm test"}"#));
    assert!(!passes(
        &open,
        "Bash",
        r#"{"command":"npm test","x1":"rm"}"#
    ));
    assert!(!open.sent.contains("args") && !open.sent.contains("patternProperties"));
}

#[test]
fn a_narrowed_path_is_all_that_a_deletion_takes() {
    let tools = tool(
        "deleteFile",
        r#"{"path":{"type":"string"},"recursive":{"type":"boolean"},"exec":{"type":"string"}}"#,
    );
    let shown = shown(PolicyDraft::default(), &tools);
    assert!(passes(
        &shown,
        "deleteFile",
        r#"{"path":"/tmp/a","recursive":true}"#
    ));
    assert!(!passes(
        &shown,
        "deleteFile",
        r#"{"path":"/tmp/a","exec":"rm"}"#
    ));
    assert!(!passes(
        &shown,
        "deleteFile",
        r#"{"path":"/tmp/a","paths":["/"]}"#
    ));
}

/// Gemini refuses members of a schema that it does not know.
#[test]
fn a_schema_of_gemini_is_closed_where_it_is_checked() {
    let tools = r#"[{"functionDeclarations":[{"name":"Bash","parameters":{"type":"OBJECT","properties":{"command":{"type":"STRING"},"env":{"type":"OBJECT"}},"required":["command"]}}]}]"#;
    let shown = shown(PolicyDraft::default(), tools);
    assert!(
        !shown.sent.contains("additionalProperties"),
        "{}",
        shown.sent
    );
    assert!(passes(&shown, "Bash", r#"{"command":"npm test"}"#));
    assert!(!passes(
        &shown,
        "Bash",
        r#"{"command":"npm test","cmd":"rm"}"#
    ));
    assert!(!passes(
        &shown,
        "Bash",
        r#"{"command":"npm test","env":{}}"#
    ));
}

#[test]
fn tests_with_a_free_command_are_narrowed() {
    for name in ["run_tests", "test"] {
        let free = shown(
            PolicyDraft::default(),
            &tool(name, r#"{"command":{"type":"string"}}"#),
        );
        assert!(matches!(free.verdicts[0], ToolVerdict::Narrowed { .. }));
        assert!(passes(&free, name, r#"{"command":"npm test"}"#));
        assert!(!passes(&free, name, r#"{"command":"rm -rf /"}"#));
        for own in [
            r#"{"name":{"type":"string"}}"#,
            r#"{"command":{"enum":["unit","all"]}}"#,
        ] {
            let own = shown(PolicyDraft::default(), &tool(name, own));
            assert_eq!(own.verdicts, [ToolVerdict::Shown]);
        }
    }
}

#[test]
fn a_schema_that_is_no_object_hides_the_tool() {
    for schema in [
        r#""text""#,
        "7",
        "[]",
        "false",
        "true",
        r#"{"type":"strang"}"#,
    ] {
        let tools = format!(r#"[{{"type":"function","name":"Read","parameters":{schema}}}]"#);
        let production = shown(PolicyDraft::default(), &tools);
        assert!(
            matches!(production.verdicts[0], ToolVerdict::Hidden(_)),
            "{schema}"
        );
        let dev = PolicyDraft {
            environment: Some("dev".to_owned()),
            ..PolicyDraft::default()
        };
        let dev = shown(dev, &tools);
        assert_eq!(dev.verdicts, [ToolVerdict::Shown], "{schema}");
        assert!(passes(&dev, "Read", r#"{"a":1}"#), "{schema}");
    }
}

#[test]
fn a_tool_that_was_not_offered_is_not_called_in_production() {
    let tools = tool("Read", r#"{"path":{"type":"string"}}"#);
    let production = shown(PolicyDraft::default(), &tools);
    assert!(passes(&production, "Read", r#"{"path":"a"}"#));
    for name in [
        "done",
        "set_phase",
        "recall",
        "mcp__q__read_graph",
        "mcp__q__Read",
        "TodoWrite",
    ] {
        assert!(!passes(&production, name, r#"{"path":"a"}"#), "{name}");
    }
}

#[test]
fn the_budget_counts_the_schema_as_it_is_sent() {
    let commands = (0..400).map(|number| format!("npm run task-{number}"));
    let draft = PolicyDraft {
        commands: Some(commands.collect()),
        budget_client_tools: true,
        ..PolicyDraft::default()
    };
    let shown = shown(draft, &tool("Bash", r#"{"command":{"type":"string"}}"#));
    assert!(
        matches!(shown.verdicts[0], ToolVerdict::Hidden(_)),
        "{:?}",
        shown.verdicts
    );
}

#[test]
fn arguments_with_a_member_twice_are_refused() {
    let shown = shown(
        PolicyDraft::default(),
        &tool("Bash", r#"{"command":{"type":"string"}}"#),
    );
    for arguments in [
        r#"{"command":"rm","command":"npm test"}"#,
        r#"{"command":"npm test","command":"npm test"}"#,
        r#"{"command":"npm test","c\u006fmmand":"npm test"}"#,
        r#""{\"command\":\"rm\",\"command\":\"npm test\"}""#,
    ] {
        assert!(!passes(&shown, "Bash", arguments), "{arguments}");
    }
    let nested = tool("Read", r#"{"a":{"type":"array"}}"#);
    let nested = self::shown(PolicyDraft::default(), &nested);
    assert!(passes(&nested, "Read", r#"{"a":[{"b":1},{"b":2}]}"#));
    assert!(!passes(&nested, "Read", r#"{"a":[{"b":1,"b":2}]}"#));
}
