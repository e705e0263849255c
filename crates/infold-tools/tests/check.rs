//! Calls against what was shown.

use std::sync::Arc;

use infold_tools::{OfferedTool, Policy, PolicyDraft, ShownTools, Validators};
use infold_wire::Json;

const TOOLS: &str = r#"[
    {"name":"Bash","input_schema":{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"number"}},"required":["command"]}},
    {"name":"Read","input_schema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"],"additionalProperties":false}},
    {"name":"Grep","input_schema":{"type":"object"}},
    {"name":"odd","input_schema":{"type":"objekt"}}
]"#;

fn shown(tools: &str, environment: &str) -> ShownTools {
    let draft = PolicyDraft {
        permissions: ["read", "execute"].map(str::to_owned).to_vec(),
        environment: Some(environment.to_owned()),
        ..PolicyDraft::default()
    };
    let policy = Arc::new(Policy::new(draft).expect("a policy"));
    let tools = OfferedTool::read_all(Json::parse(tools.as_bytes()).expect("JSON"));
    let validators = Arc::new(Validators::default());
    let projection = policy.project(&tools, policy.situation(), &validators);
    ShownTools::new(policy, validators, &tools, &projection)
}

fn told(shown: &ShownTools, name: &str, arguments: &str) -> String {
    let json = Json::parse(arguments.as_bytes()).expect("JSON");
    match shown.check(name, Some(json)) {
        Ok(()) => "fine".to_owned(),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn a_call_is_checked_against_its_schema() {
    let shown = shown(TOOLS, "dev");
    assert_eq!(told(&shown, "Bash", r#"{"command":"rm -rf /"}"#), "fine");
    assert_eq!(told(&shown, "Bash", r#""{\"command\":\"ls\"}""#), "fine");
    let refused = told(&shown, "Bash", r#"{"timeout":"long"}"#);
    for part in [
        "The call of `Bash` was refused and not executed: its arguments are not allowed: ",
        r#"`timeout`: "long" is not of type "number""#,
        r#""command" is a required property"#,
        ". Correct the arguments and call it again, or go on without it.",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(told(&shown, "Bash", r#""{\"command\":""#).contains("its arguments are not JSON"));
    assert!(told(&shown, "Read", r#"{"file_path":"a","x":1}"#).contains("Additional properties"));
    assert!(told(&shown, "Read", "\"\"").contains("required property"));
}

#[test]
fn a_hidden_tool_is_refused_with_the_others_named() {
    let shown = shown(TOOLS, "dev");
    assert_eq!(
        told(&shown, "Grep", "{}"),
        "The call of `Grep` was refused and not executed: search does not belong to the phase executing. \
         Tools that may be called now: Read, Bash, odd."
    );
    // A tool that the request does not have is judged by its name.
    assert!(told(&shown, "deleteFile", "{}").contains("the permission admin is not granted"));
    assert_eq!(told(&shown, "invented", "{}"), "fine");
    // A schema that cannot be read checks nothing where unknown tools are allowed.
    assert_eq!(told(&shown, "odd", r#"{"anything":1}"#), "fine");
}

#[test]
fn production_allows_the_whitelist_alone() {
    let shown = shown(TOOLS, "production");
    assert_eq!(told(&shown, "Bash", r#"{"command":"npm test"}"#), "fine");
    let refused = told(&shown, "Bash", r#"{"command":"npm test; rm -rf /"}"#);
    assert!(
        refused.contains(r#"is not one of "npm test", "npm run build" or "npm run lint""#),
        "{refused}"
    );
    assert!(told(&shown, "invented", "{}").contains("its category is unknown"));
    assert!(told(&shown, "odd", "{}").contains("its category is unknown"));
}

#[test]
fn schemas_of_every_draft_and_of_gemini_are_read() {
    let mut tools = Vec::new();
    let drafts = [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ];
    for (at, draft) in drafts.iter().enumerate() {
        tools.push(format!(
            r#"{{"name":"t{at}","input_schema":{{"$schema":"{draft}","properties":{{"a":{{"type":"integer"}}}}}}}}"#
        ));
    }
    tools.push(r#"{"functionDeclarations":[{"name":"t5","parameters":{"type":"OBJECT","properties":{"a":{"type":"INTEGER"}}}}]}"#.to_owned());
    let shown = shown(&format!("[{}]", tools.join(",")), "dev");
    for at in 0..6 {
        assert_eq!(told(&shown, &format!("t{at}"), r#"{"a":1}"#), "fine");
        assert!(
            told(&shown, &format!("t{at}"), r#"{"a":"x"}"#).contains("is not of type"),
            "t{at}"
        );
    }
}

#[test]
fn recursive_schemas_end() {
    let tree = r##"[{"name":"family","input_schema":{"type":"object","properties":{"child":{"$ref":"#"},"name":{"type":"string"}}}},
        {"name":"loop","input_schema":{"$ref":"#"}},
        {"name":"ring","input_schema":{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}}]"##;
    let shown = shown(tree, "dev");
    assert_eq!(
        told(&shown, "family", r#"{"child":{"child":{"name":"x"}}}"#),
        "fine"
    );
    assert!(
        told(&shown, "family", r#"{"child":{"child":{"name":7}}}"#).contains("child/child/name")
    );
    assert_eq!(told(&shown, "loop", r#"{"a":1}"#), "fine");
    assert_eq!(told(&shown, "ring", r#"{"a":1}"#), "fine");
    // Deeper than any parser goes.
    let deep = format!(
        "{}{}",
        "{\"child\":".repeat(5000),
        "{}".to_owned() + &"}".repeat(5000)
    );
    assert!(told(&shown, "family", &deep).contains("not JSON"));
}

#[test]
fn compiled_schemas_are_bounded() {
    let validators = Validators::default();
    for at in 0..100 {
        let schema = format!(r#"{{"description":"{at}{}"}}"#, "x".repeat(100_000));
        assert!(validators.get(&schema).is_ok());
        assert!(validators.cached_bytes() <= 4 << 20);
    }
    // An expression that would be tried for ever is given up.
    let evil = validators
        .get(r#"{"pattern":"^(?=(a+)+$)"}"#)
        .expect("a schema");
    let text = format!("{}!", "a".repeat(60));
    assert!(!evil.is_valid(&serde_json::json!(text)));
    assert!(validators.get(r#"{"pattern":"(x{5000}){5000}"}"#).is_err());
}

#[test]
fn references_that_multiply_are_refused() {
    let level = |at: usize| {
        let next = at + 1;
        format!(
            r##""a{at}":{{"allOf":[{{"$ref":"#/$defs/a{next}"}},{{"$ref":"#/$defs/a{next}"}}]}}"##
        )
    };
    let schema = |levels: usize| {
        let all: Vec<String> = (0..levels).map(level).collect();
        let all = all.join(",");
        format!(r##"{{"$ref":"#/$defs/a0","$defs":{{{all},"a{levels}":{{"type":"object"}}}}}}"##)
    };
    let validators = Validators::default();
    assert!(validators.get(&schema(8)).is_ok());
    let error = validators.get(&schema(40)).expect_err("too many");
    assert!(error.to_string().contains("too many others"), "{error}");
}
