//! The tools shown in each situation, and the reasons.

use std::collections::BTreeSet;

use infold_tools::{
    HiddenReason, OfferedTool, Policy, PolicyDraft, PolicyProblems, Projection, SituationChange,
    ToolRule, ToolVerdict, UnknownTools, Validators, built_in_category,
};
use infold_wire::Json;
use infold_wire::tool_list::EditedTools;
use proptest::prelude::*;

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

/// The tools of the examples: name, priority and what each requires beyond its category's permission.
fn example(paths: &[&str]) -> Policy {
    let argument = |name: &str| {
        format!(
            r#"{{"type":"object","properties":{{"{name}":{{"type":"string"}}}},"required":["{name}"]}}"#
        )
    };
    let tools = [
        ("search", 80, vec!["search"], "query"),
        ("readFile", 90, vec!["read"], "path"),
        ("writeFile", 85, vec!["write"], "path"),
        ("deleteFile", 50, vec!["admin"], "path"),
        ("execute", 70, vec!["execute"], "command"),
        ("test", 75, vec![], "name"),
        ("deploy", 60, vec!["deploy"], "target"),
    ];
    let tools = tools.map(|(name, priority, permissions, schema)| {
        let rule = ToolRule {
            priority: Some(priority),
            permissions: Some(texts(&permissions)),
            schema: Some(argument(schema)),
            ..ToolRule::default()
        };
        (name.to_owned(), rule)
    });
    Policy::new(PolicyDraft {
        tools: tools.into(),
        paths: texts(paths),
        ..PolicyDraft::default()
    })
    .expect("a policy")
}

fn project(policy: &Policy, phase: &str, permissions: &[&str], environment: &str) -> Projection {
    project_tools(
        policy,
        &policy.defined_tools(),
        phase,
        permissions,
        environment,
    )
}

fn project_tools(
    policy: &Policy,
    tools: &[OfferedTool],
    phase: &str,
    permissions: &[&str],
    environment: &str,
) -> Projection {
    let situation = policy.situation_with(&SituationChange {
        phase: Some(phase.to_owned()),
        permissions: Some(texts(permissions)),
        environment: Some(environment.to_owned()),
        is_urgent: None,
    });
    policy.project(
        tools,
        &situation.expect("a situation"),
        &Validators::default(),
    )
}

#[test]
fn planning_shows_what_reads_and_searches() {
    let shown = project(&example(&[]), "planning", &["read", "search"], "dev");
    assert_eq!(shown.shown_names(), ["readFile", "search"]);
}

#[test]
fn executing_shows_what_is_granted() {
    let granted = ["read", "write", "execute"];
    let shown = project(&example(&[]), "executing", &granted, "dev");
    assert_eq!(
        shown.shown_names(),
        ["readFile", "writeFile", "test", "execute"]
    );
    let deploy = shown.decisions.iter().find(|it| it.name == "deploy");
    let verdict = deploy.map(|it| &it.verdict);
    assert!(
        matches!(verdict, Some(ToolVerdict::Hidden(HiddenReason::Permission(missing))) if missing[0].as_str() == "deploy")
    );
}

#[test]
fn production_narrows_commands_and_paths() {
    let policy = example(&["tmp/a", "tmp/b"]);
    let granted = ["read", "write", "execute", "admin"];
    let shown = project(&policy, "executing", &granted, "production");
    let names = ["readFile", "writeFile", "test", "execute", "deleteFile"];
    assert_eq!(shown.shown_names(), names);
    assert_eq!(shown.narrowed_names(), ["deleteFile", "execute"]);
    let schema = |name: &str| {
        let decision = shown.decisions.iter().find(|it| it.name == name);
        match decision.map(|it| &it.verdict) {
            Some(ToolVerdict::Narrowed { schema, .. }) => schema.clone(),
            other => panic!("{name}: {other:?}"),
        }
    };
    assert_eq!(
        schema("execute"),
        r#"{"type":"object","properties":{"command":{"type":"string","description":"(whitelist only: npm test, npm run build, npm run lint)","enum":["npm test","npm run build","npm run lint"]}},"required":["command"],"additionalProperties":false}"#
    );
    assert!(schema("deleteFile").contains(r#""enum":["tmp/a","tmp/b"]"#));
    // `prod` is another name of it; without a path nothing can be deleted.
    let shown = project(&example(&[]), "executing", &granted, "prod");
    assert_eq!(
        shown.shown_names(),
        ["readFile", "writeFile", "test", "execute"]
    );
    let staging = project(&policy, "executing", &granted, "staging");
    assert!(staging.narrowed_names().is_empty());
}

#[test]
fn each_phase_shows_its_categories() {
    let categories: Vec<String> = infold_tools::CATEGORIES.map(str::to_owned).to_vec();
    let tools: Vec<OfferedTool> = categories
        .iter()
        .map(|name| OfferedTool::named(name))
        .collect();
    let policy = Policy::new(PolicyDraft::default()).expect("a policy");
    let all = ["read", "write", "execute", "admin", "search", "deploy"];
    for (phase, expected) in [
        ("planning", "analyze estimate read search"),
        ("executing", "delete deploy execute modify read test write"),
        ("reflecting", "compare evaluate measure read test"),
        ("verifying", "approve audit read test verify"),
    ] {
        let shown = project_tools(&policy, &tools, phase, &all, "dev");
        let names: BTreeSet<&str> = shown.shown_names().into_iter().collect();
        let names: Vec<&str> = names.into_iter().collect();
        assert_eq!(names.join(" "), expected, "{phase}");
    }
}

#[test]
fn tools_that_steer_the_work_belong_to_every_phase() {
    let own = PolicyDraft {
        phases: vec![("resting".to_owned(), Vec::new())],
        ..PolicyDraft::default()
    };
    let policy = Policy::new(own).expect("a policy");
    let names = [
        "set_phase",
        "done",
        "recall",
        "search_history",
        "mcp__infold__remember",
        "infold_get_state",
        "mark_step",
    ];
    let tools: Vec<OfferedTool> = names.iter().map(|name| OfferedTool::named(name)).collect();
    for phase in [
        "planning",
        "executing",
        "reflecting",
        "verifying",
        "resting",
    ] {
        let shown = project_tools(&policy, &tools, phase, &[], "production");
        assert_eq!(shown.shown_names(), names, "{phase}");
    }
}

#[test]
fn an_unknown_phase_is_an_error_that_names_the_nearest() {
    let policy = example(&[]);
    let change = SituationChange {
        phase: Some("plannning".to_owned()),
        ..SituationChange::default()
    };
    let error = policy.situation_with(&change).expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "there is no phase `plannning`; did you mean `planning`?"
    );
    let change = SituationChange {
        phase: Some("lunch".to_owned()),
        ..SituationChange::default()
    };
    let error = policy.situation_with(&change).expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "there is no phase `lunch`; valid are executing, planning, reflecting, verifying"
    );
}

fn problems(draft: PolicyDraft) -> String {
    match Policy::new(draft) {
        Ok(_) => "none".to_owned(),
        Err(PolicyProblems(problems)) => {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            all.join("\n")
        }
    }
}

fn with_tool(rule: ToolRule) -> PolicyDraft {
    PolicyDraft {
        tools: vec![("t".to_owned(), rule)],
        ..PolicyDraft::default()
    }
}

#[test]
fn bad_input_is_named() {
    let granted = |text: &str| PolicyDraft {
        permissions: texts(&[text]),
        ..PolicyDraft::default()
    };
    assert_eq!(
        problems(granted("raed")),
        "permissions: there is no permission `raed`; did you mean `read`?"
    );
    assert_eq!(
        problems(with_tool(ToolRule {
            category: Some("reed".to_owned()),
            ..ToolRule::default()
        })),
        "tools.t.category: there is no category `reed`; did you mean `read`?"
    );
    let phases = PolicyDraft {
        phases: vec![("planning".to_owned(), texts(&["readFile", "serch"]))],
        ..PolicyDraft::default()
    };
    assert_eq!(
        problems(phases),
        "phases.planning: there is no category `serch`; did you mean `search`?"
    );
    let environment = PolicyDraft {
        environment: Some("prd".to_owned()),
        ..PolicyDraft::default()
    };
    assert_eq!(
        problems(environment),
        "environment: there is no environment `prd`; did you mean `prod`?"
    );
    let twice = PolicyDraft {
        tools: vec![
            ("t".to_owned(), ToolRule::default()),
            ("t".to_owned(), ToolRule::default()),
        ],
        ..PolicyDraft::default()
    };
    assert_eq!(problems(twice), "tools.t: this tool is there twice");
    let schema = |schema: &str| {
        problems(with_tool(ToolRule {
            schema: Some(schema.to_owned()),
            ..ToolRule::default()
        }))
    };
    let prefix = "tools.t.schema: not a JSON Schema: ";
    for bad in [
        "{",
        "[]",
        "7",
        r#"{"type":"objekt"}"#,
        r#"{"properties":[]}"#,
        r##"{"$ref":"#/nowhere"}"##,
    ] {
        let told = schema(bad);
        assert!(told.starts_with(prefix), "{bad}: {told}");
    }
    // Nothing is fetched.
    for elsewhere in [
        "http://127.0.0.1:9/s.json",
        "file:///etc/passwd",
        "other.json",
    ] {
        let told = schema(&format!(r#"{{"$ref":"{elsewhere}"}}"#));
        assert!(told.starts_with(prefix), "{elsewhere}: {told}");
    }
    let long = format!(r#"{{"description":"{}"}}"#, "x".repeat(5 << 20));
    assert_eq!(
        schema(&long),
        "tools.t.schema: the schema has 5242898 bytes, and at most 262144 are read"
    );
    assert_eq!(
        schema(r##"{"type":"object","properties":{"child":{"$ref":"#"}}}"##),
        "none"
    );
}

#[test]
fn a_permission_is_known_if_something_requires_it() {
    let draft = PolicyDraft {
        permissions: texts(&["fs"]),
        ..with_tool(ToolRule {
            category: Some("read".to_owned()),
            permissions: Some(texts(&["fs:read"])),
            ..ToolRule::default()
        })
    };
    let policy = Policy::new(draft).expect("a policy");
    let tools = policy.defined_tools();
    let shown = policy.project(&tools, policy.situation(), &Validators::default());
    assert_eq!(shown.shown_names(), ["t"]);
    let error = policy.situation_with(&SituationChange {
        permissions: Some(texts(&["fs:write"])),
        ..SituationChange::default()
    });
    let error = error.expect_err("unknown").to_string();
    assert!(
        error.starts_with("there is no permission `fs:write`"),
        "{error}"
    );
}

#[test]
fn a_tool_that_is_there_twice_counts_once() {
    let tools =
        br#"[{"name":"Read","input_schema":{}},{"name":"Read","input_schema":{"type":"object"}}]"#;
    let json = Json::parse(tools).expect("JSON");
    let policy = Policy::new(PolicyDraft {
        permissions: texts(&["read"]),
        ..PolicyDraft::default()
    });
    let policy = policy.expect("a policy");
    let shown = policy.project(
        &OfferedTool::read_all(json),
        policy.situation(),
        &Validators::default(),
    );
    assert_eq!(
        shown.decisions[1].verdict,
        ToolVerdict::Hidden(HiddenReason::Twice)
    );
    let left = br#"[{"name":"Read","input_schema":{}}]"#.to_vec();
    assert_eq!(shown.apply(json), EditedTools::Changed(left));
}

#[test]
fn servers_have_rules_as_a_whole_and_for_a_tool() {
    let rule = |category: &str| ToolRule {
        category: Some(category.to_owned()),
        ..ToolRule::default()
    };
    let draft = PolicyDraft {
        permissions: texts(&["read"]),
        unknown: Some(UnknownTools::Deny),
        tools: vec![
            ("mcp__db__*".to_owned(), rule("read")),
            ("mcp__db__drop_table".to_owned(), rule("delete")),
        ],
        ..PolicyDraft::default()
    };
    let policy = Policy::new(draft).expect("a policy");
    let names = [
        "mcp__db__query",
        "mcp__db__drop_table",
        "mcp__db",
        "mcp__dbx__query",
    ];
    let tools = names.map(OfferedTool::named);
    let shown = policy.project(&tools, policy.situation(), &Validators::default());
    assert_eq!(shown.shown_names(), ["mcp__db__query", "mcp__db"]);
}

#[test]
fn unknown_tools_are_allowed_in_dev_and_denied_in_production() {
    let policy = Policy::new(PolicyDraft::default()).expect("a policy");
    let tools = [OfferedTool::named("frobnicate")];
    let shown = |environment| {
        let shown = project_tools(&policy, &tools, "planning", &[], environment);
        shown.shown_names().len()
    };
    assert_eq!(
        (shown("dev"), shown("staging"), shown("production")),
        (1, 1, 0)
    );
}

#[test]
fn tools_of_well_known_agents_have_categories() {
    for (category, names) in [
        (
            "read",
            "Read read_file readFile BashOutput view_image ReadMcpResourceTool mcp__fs__read_text_file git_diff Skill",
        ),
        (
            "search",
            "Grep Glob WebFetch WebSearch google_web_search list_directory search_file_content codesearch fetch",
        ),
        (
            "write",
            "Write write_file writeFile create_directory save_memory create_entities",
        ),
        (
            "modify",
            "Edit MultiEdit NotebookEdit replace apply_patch str_replace_based_edit_tool developer__text_editor move_file git_commit",
        ),
        ("delete", "deleteFile delete_file delete_entities"),
        (
            "execute",
            "Bash bash shell exec_command write_stdin run_shell_command developer__shell Task KillShell local_shell execute",
        ),
        (
            "control",
            "TodoWrite update_plan write_todos ExitPlanMode AskUserQuestion request_user_input set_phase done recall search_history",
        ),
        ("test", "test run_tests"),
        ("deploy", "deploy"),
    ] {
        for name in names.split(' ') {
            assert_eq!(built_in_category(name), Some(category), "{name}");
        }
    }
    assert_eq!(built_in_category("frobnicate"), None);
}

#[test]
fn the_budget_skips_what_does_not_fit_and_urgency_takes_the_first_five() {
    let tool = |name: &str, priority: u32, words: usize| {
        let rule = ToolRule {
            category: Some("read".to_owned()),
            priority: Some(priority),
            permissions: Some(Vec::new()),
            description: Some("word ".repeat(words)),
            ..ToolRule::default()
        };
        (name.to_owned(), rule)
    };
    let draft = PolicyDraft {
        tools: vec![
            tool("a", 90, 1500),
            tool("b", 80, 900),
            tool("c", 70, 300),
            tool("d", 60, 1900),
            tool("e", 50, 10),
            tool("f", 40, 2500),
        ],
        ..PolicyDraft::default()
    };
    let policy = Policy::new(draft).expect("a policy");
    let shown = project(&policy, "planning", &[], "dev");
    assert_eq!(shown.shown_names(), ["a", "c", "e"]);
    let urgent = policy.situation_with(&SituationChange {
        is_urgent: Some(true),
        ..SituationChange::default()
    });
    let tools = policy.defined_tools();
    let shown = policy.project(&tools, &urgent.expect("urgent"), &Validators::default());
    assert_eq!(shown.shown_names(), ["a", "b", "c", "d", "e"]);
}

#[test]
fn the_budget_holds_for_a_client_only_if_it_says_so() {
    let definition = format!(
        r#"[{{"name":"Read","description":"{}"}}]"#,
        "word ".repeat(3000)
    );
    let json = Json::parse(definition.as_bytes()).expect("JSON");
    for (budget_client_tools, count) in [(false, 1), (true, 0)] {
        let policy = Policy::new(PolicyDraft {
            permissions: texts(&["read"]),
            budget_client_tools,
            ..PolicyDraft::default()
        });
        let policy = policy.expect("a policy");
        let tools = OfferedTool::read_all(json);
        let shown = policy.project(&tools, policy.situation(), &Validators::default());
        assert_eq!(shown.shown_names().len(), count);
    }
}

const NAMES: [&str; 12] = [
    "Read",
    "Write",
    "Edit",
    "Bash",
    "Grep",
    "deleteFile",
    "deploy",
    "test",
    "verify",
    "done",
    "frobnicate",
    "WebFetch",
];
const PERMISSIONS: [&str; 7] = [
    "read",
    "write",
    "execute",
    "search",
    "admin",
    "deploy",
    "search:web",
];
const PHASES: [&str; 4] = ["planning", "executing", "reflecting", "verifying"];
const ENVIRONMENTS: [&str; 3] = ["dev", "staging", "production"];

fn tools_of(chosen: &[(usize, u32)]) -> (Policy, Vec<OfferedTool>) {
    let mut rules: Vec<(String, ToolRule)> = Vec::new();
    let mut names = BTreeSet::new();
    for (at, priority) in chosen {
        if names.insert(*at) {
            let rule = ToolRule {
                priority: Some(*priority),
                schema: Some(r#"{"properties":{"command":{},"path":{}}}"#.to_owned()),
                description: Some("word ".repeat(*priority as usize * 10)),
                ..ToolRule::default()
            };
            rules.push((NAMES[*at].to_owned(), rule));
        }
    }
    let draft = PolicyDraft {
        tools: rules,
        paths: texts(&["tmp"]),
        ..PolicyDraft::default()
    };
    let policy = Policy::new(draft).expect("a policy");
    let tools = policy.defined_tools();
    (policy, tools)
}

proptest! {
    /// A tool is shown only if phase, permissions and environment allow it, in the order of priorities and within the budget.
    #[test]
    fn only_what_is_allowed_is_shown(
        chosen in prop::collection::vec((0..NAMES.len(), 0u32..100), 0..12),
        granted in prop::sample::subsequence(PERMISSIONS.to_vec(), 0..=PERMISSIONS.len()),
        phase in prop::sample::select(PHASES.to_vec()),
        environment in prop::sample::select(ENVIRONMENTS.to_vec()),
    ) {
        let (policy, tools) = tools_of(&chosen);
        let shown = project(&policy, phase, &granted, environment);
        let mut tokens = 0;
        for (tool, decision) in tools.iter().zip(&shown.decisions) {
            if !decision.is_shown() {
                continue;
            }
            tokens += tool.tokens(&decision.verdict);
            for required in &decision.required {
                let is_granted = |it: &&str| {
                    let rest = required.as_str().strip_prefix(*it);
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
                };
                prop_assert!(granted.iter().any(is_granted));
            }
            let category = decision.category.as_deref();
            prop_assert!(category.is_some() || environment != "production");
            let narrowed = matches!(decision.verdict, ToolVerdict::Narrowed { .. });
            let is_production = environment == "production";
            let must_be = is_production && matches!(category, Some("execute" | "delete"));
            // Those that test are, if they take any command.
            let may_be = is_production && category == Some("test");
            prop_assert!(narrowed == must_be || narrowed && may_be);
            let of_phase = match phase {
                "planning" => vec!["search", "analyze", "estimate", "read"],
                "executing" => vec!["read", "write", "delete", "execute", "modify", "test", "deploy"],
                "reflecting" => vec!["evaluate", "test", "compare", "measure", "read"],
                _ => vec!["verify", "audit", "approve", "test", "read"],
            };
            prop_assert!(category.is_none_or(|it| it == "control" || of_phase.contains(&it)));
        }
        prop_assert!(tokens <= 2000);
        let priorities: Vec<u32> = shown.by_priority().iter().map(|it| it.priority).collect();
        prop_assert!(priorities.is_sorted_by(|one, next| one >= next));
    }

    /// One more permission never hides a tool, the budget aside.
    #[test]
    fn a_permission_more_hides_nothing(
        granted in prop::sample::subsequence(PERMISSIONS.to_vec(), 0..=PERMISSIONS.len()),
        more in prop::sample::select(PERMISSIONS.to_vec()),
        phase in prop::sample::select(PHASES.to_vec()),
        environment in prop::sample::select(ENVIRONMENTS.to_vec()),
    ) {
        let policy = Policy::new(PolicyDraft::default()).expect("a policy");
        let tools = NAMES.map(OfferedTool::named);
        let names = |granted: &[&str]| -> BTreeSet<String> {
            let shown = project_tools(&policy, &tools, phase, granted, environment);
            shown.shown_names().into_iter().map(str::to_owned).collect()
        };
        let before = names(&granted);
        let after = names(&[&granted[..], &[more]].concat());
        prop_assert!(before.is_subset(&after));
    }
}
