//! Names of tools in other spellings.

use std::sync::Arc;

use infold_tools::{OfferedTool, Policy, PolicyDraft, ShownTools, ToolRule, Validators};
use infold_wire::Json;

/// Reading is granted in dev; `Foo` deploys, and a tool of a server needs more.
fn policy() -> Policy {
    let rule = |category: &str, permission: &str| ToolRule {
        category: Some(category.to_owned()),
        permissions: Some(vec![permission.to_owned()]),
        ..ToolRule::default()
    };
    let draft = PolicyDraft {
        permissions: vec!["read".to_owned()],
        tools: vec![
            ("Foo".to_owned(), rule("deploy", "deploy")),
            (
                "mcp__github__delete_branch".to_owned(),
                rule("delete", "admin"),
            ),
            ("mcp__GitLab__*".to_owned(), rule("write", "write")),
        ],
        ..PolicyDraft::default()
    };
    Policy::new(draft).expect("a policy")
}

fn is_shown(policy: &Policy, name: &str) -> bool {
    let tools = [OfferedTool::named(name)];
    let projection = policy.project(&tools, policy.situation(), &Validators::default());
    projection.decisions[0].is_shown()
}

#[test]
fn rules_hold_for_every_spelling() {
    let policy = policy();
    for name in [
        "Foo",
        "foo",
        "FOO",
        "mcp__x__Foo",
        "functions.Foo",
        "mcp__github__deleteBranch",
        "mcp__GitHub__delete_branch",
        "mcp__github__delete-branch",
        "mcp__gitlab__anything",
        "mcp__git_lab__anything",
    ] {
        assert!(!is_shown(&policy, name), "{name}");
    }
    for name in [
        "Food",
        "mcp__other__delete_branch",
        "mcp__gitlabs__anything",
    ] {
        assert!(is_shown(&policy, name), "{name}");
    }
}

#[test]
fn another_spelling_of_a_hidden_tool_is_hidden() {
    let policy = Arc::new(policy());
    let tools = r#"[{"name":"Foo"},{"name":"mcp__github__delete_branch"},{"name":"Read","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}]"#;
    let tools = OfferedTool::read_all(Json::parse(tools.as_bytes()).expect("JSON"));
    let validators = Arc::new(Validators::default());
    let projection = policy.project(&tools, policy.situation(), &validators);
    let shown = ShownTools::new(policy, validators, &tools, &projection);
    for name in [
        "foo",
        "Foo ",
        " Foo",
        "functions.Foo",
        "mcp__github__delete_branch ",
        "mcp__github__deleteBranch",
        "delete_branch",
        "deleteBranch",
    ] {
        assert!(shown.check(name, None).is_err(), "{name}");
    }
    let wrong = Json::parse(br#"{"path":7}"#).expect("JSON");
    assert!(shown.check("read", Some(wrong)).is_err());
    assert!(shown.check("invented", None).is_ok());
}

#[test]
fn tools_of_providers_are_known_by_the_start_of_their_names() {
    let policy = policy();
    for name in [
        "web_search_preview",
        "web_search_preview_2025_03_11",
        "web_search_2025_08_26",
        "googleSearchRetrieval",
        "google_search_retrieval",
        "enterpriseWebSearch",
        "googleMaps",
        "web_fetch_20250910",
        "code_execution_20250825",
        "computer_use_preview",
        "file_search_2026",
    ] {
        assert!(!is_shown(&policy, name), "{name}");
    }
    let granted = Policy::new(PolicyDraft {
        phase: Some("planning".to_owned()),
        permissions: vec!["search:web".to_owned()],
        ..PolicyDraft::default()
    });
    let granted = granted.expect("a policy");
    for name in ["web_search_preview", "googleMaps", "enterpriseWebSearch"] {
        assert!(is_shown(&granted, name), "{name}");
    }
}
