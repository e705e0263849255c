//! The section `tools` of a configuration.

use infold::Config;
use infold_tools::{Environment, UnknownTools, Validators};

fn told(text: &str) -> String {
    match Config::parse("c.yaml", text, &|_| None) {
        Ok((_, warnings)) => format!("read; {}", warnings.join("; ")),
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            errors.join("\n")
        }
    }
}

const WHOLE: &str = "\
tools:
  phase: executing
  permissions: [read, execute, fs]
  environment: prod
  urgent: true
  unknown: allow
  budget: 1500
  budget_client_tools: true
  categories: [invoice]
  phases:
    executing: [readFile, execute, invoice]
    billing: [invoice]
  tools:
    readFile: {category: read, priority: 90, permissions: [fs:read]}
    mcp__books__*: {category: invoice, permissions: []}
    bill:
      category: invoice
      permissions: []
      description: Writes an invoice
      schema:
        type: object
        properties: {total: {type: number, minimum: 0.5}, open: {type: boolean, default: true}, note: {type: string, default: '7'}}
        required: [total]
    run: {category: execute, schema: {properties: {command: {type: string}}}}
  production:
    commands: [make test]
    paths: build
";

#[test]
fn a_whole_policy_is_read() {
    let (config, warnings) = Config::parse("c.yaml", WHOLE, &|_| None).expect("it is fine");
    assert!(warnings.is_empty(), "{warnings:?}");
    let policy = config.tools.expect("a policy").policy;
    let situation = policy.situation();
    assert_eq!(situation.phase(), "executing");
    assert_eq!(situation.environment(), Environment::Production);
    assert!(situation.is_urgent());
    let unknown = policy.unknown_tools(Environment::Production);
    assert_eq!(unknown, UnknownTools::Allow);
    let tools = policy.defined_tools();
    let projection = policy.project(&tools, situation, &Validators::default());
    assert_eq!(projection.shown_names(), ["readFile", "bill", "run"]);
    assert_eq!(projection.narrowed_names(), ["run"]);
    let phases: Vec<&str> = policy.phases().collect();
    assert_eq!(
        phases,
        [
            "billing",
            "executing",
            "planning",
            "reflecting",
            "verifying"
        ]
    );
}

#[test]
fn without_a_section_there_is_no_policy() {
    for text in ["llm: {}\n", "tools: {}\n", "tools:\n"] {
        let (config, _) = Config::parse("c.yaml", text, &|_| None).expect("it is fine");
        assert_eq!(config.tools, None, "{text}");
    }
}

#[test]
fn a_policy_without_permissions_says_what_that_means() {
    assert_eq!(
        told("tools:\n  phase: planning\n"),
        "read; c.yaml:1: `tools.permissions` is not set: tools that require a permission are hidden"
    );
    assert_eq!(told("tools:\n  permissions: []\n"), "read; ");
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, expected) in [
        (
            "tools:\n  phase: plannig\n  permissions: [read]\n",
            "c.yaml:2: `tools.phase`: there is no phase `plannig`; did you mean `planning`?",
        ),
        (
            "tools:\n  permissions: [raed]\n",
            "c.yaml:2: `tools.permissions`: there is no permission `raed`; did you mean `read`?",
        ),
        (
            "tools:\n  permissions: []\n  environment: productoin\n",
            "c.yaml:3: `tools.environment`: there is no environment `productoin`; did you mean `production`?",
        ),
        (
            "tools:\n  permissions: []\n  phases:\n    planning: [serch]\n",
            "c.yaml:4: `tools.phases.planning`: there is no category `serch`; did you mean `search`?",
        ),
        (
            "tools:\n  permissions: []\n  tools:\n    t:\n      category: wirte\n",
            "c.yaml:5: `tools.tools.t.category`: there is no category `wirte`; did you mean `write`?",
        ),
        (
            "tools:\n  permissions: []\n  budget: -5\n",
            "c.yaml:3: `tools.budget` takes a number of tokens, not `-5`",
        ),
        (
            "tools:\n  permissions: []\n  unknown: alow\n",
            "c.yaml:3: `tools.unknown` takes one of allow, deny, not `alow`; did you mean `allow`?",
        ),
        (
            "tools:\n  permissions: []\n  tools:\n    t: {}\n    t: {}\n",
            "c.yaml:5: `t` was set before, on line 4",
        ),
        (
            "tools:\n  permision: []\n",
            "c.yaml:2: `permision` has no meaning in `tools`; did you mean `permissions`?",
        ),
        (
            "tools: [{name: t}]\n",
            "c.yaml:1: `tools` takes a mapping of keys to values, not a list",
        ),
        (
            "tools:\n  permissions: []\n  tools:\n    t: {priority: -1}\n",
            "c.yaml:4: `tools.tools.t.priority` takes a whole number: tools with a higher one come first, not `-1`",
        ),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
    let schema =
        told("tools:\n  permissions: []\n  tools:\n    t:\n      schema: {type: objekt}\n");
    assert!(
        schema.starts_with("c.yaml:5: `tools.tools.t.schema`: not a JSON Schema: "),
        "{schema}"
    );
}
