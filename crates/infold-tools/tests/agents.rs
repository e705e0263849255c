//! The tools of real agents, as they sent them.

use infold_tools::{
    OfferedTool, Policy, PolicyDraft, SituationChange, Validators, built_in_category,
};
use infold_wire::Json;

const AGENTS: [(&str, &str); 3] = [
    (
        "Claude Code",
        include_str!("../../../tests/tools/claude-code.json"),
    ),
    ("Codex", include_str!("../../../tests/tools/codex.json")),
    ("goose", include_str!("../../../tests/tools/goose.json")),
];
const GEMINI_CLI: &str = include_str!("../../../tests/tools/gemini-cli.json");
const TABLE: &str = include_str!("../../../docs/TOOLS.md");

fn tools(text: &str) -> Vec<OfferedTool> {
    OfferedTool::read_all(Json::parse(text.as_bytes()).expect("JSON"))
}

/// The names that are shown, a star behind those that are narrowed, and how many are of every phase.
fn shown(text: &str, phase: &str, permissions: &[&str], environment: &str) -> String {
    let policy = Policy::new(PolicyDraft::default()).expect("a policy");
    let situation = policy.situation_with(&SituationChange {
        phase: Some(phase.to_owned()),
        permissions: Some(permissions.iter().map(|it| (*it).to_owned()).collect()),
        environment: Some(environment.to_owned()),
        is_urgent: None,
    });
    let tools = tools(text);
    let projection = policy.project(
        &tools,
        &situation.expect("a situation"),
        &Validators::default(),
    );
    let narrowed = projection.narrowed_names();
    let (mut names, mut control) = (Vec::new(), 0);
    for name in projection.shown_names() {
        if built_in_category(name) == Some("control") {
            control += 1;
            continue;
        }
        let star = if narrowed.contains(&name) { "\\*" } else { "" };
        names.push(format!("{name}{star}"));
    }
    if control > 0 {
        names.push(format!("(+{control})"));
    }
    names.join(", ")
}

#[test]
fn every_tool_of_these_agents_is_known() {
    for (agent, text) in AGENTS.into_iter().chain([("Gemini CLI", GEMINI_CLI)]) {
        let tools = tools(text);
        assert!(tools.len() > 7, "{agent}");
        for tool in tools {
            assert!(
                built_in_category(tool.name()).is_some(),
                "{agent}: {}",
                tool.name()
            );
        }
    }
}

#[test]
fn the_table_in_the_documents_is_right() {
    let mut table = String::from(
        "| phase | granted | environment | Claude Code | Codex | goose |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for (phase, permissions, environment) in [
        ("planning", vec!["read"], "dev"),
        ("planning", vec!["read", "search"], "dev"),
        ("executing", vec!["read", "write"], "dev"),
        ("executing", vec!["read", "write", "execute"], "dev"),
        (
            "executing",
            vec!["read", "write", "execute", "admin"],
            "dev",
        ),
        (
            "executing",
            vec!["read", "write", "execute", "admin"],
            "production",
        ),
        ("reflecting", vec!["read"], "dev"),
        ("verifying", vec!["read"], "production"),
    ] {
        let cells = AGENTS.map(|(_, text)| shown(text, phase, &permissions, environment));
        table += &format!(
            "| {phase} | {} | {environment} | {} |\n",
            permissions.join(", "),
            cells.join(" | ")
        );
    }
    assert!(TABLE.contains(&table), "docs/TOOLS.md should have\n{table}");
}
