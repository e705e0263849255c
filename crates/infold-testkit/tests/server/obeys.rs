//! A model that does what prompts say, with the tools that an agent brings.

use crate::http::post;
use infold_testkit::{Model, Script, Server};

/// A tool, a prompt that asks to run a command twice, and so many results of it.
fn loops(results: usize) -> [(&'static str, String); 5] {
    let prompt = "please run `ls` 2 times, then please say 3 words";
    let schema = r#"{"type":"object","properties":{"command":{"type":"string"}}}"#;
    let function = format!(r#"{{"name":"dev__shell","parameters":{schema}}}"#);
    let tools = format!(r#""tools":[{{"type":"function","function":{function}}}]"#);
    let user = format!(r#"{{"role":"user","content":"{prompt}"}}"#);
    let with = |result: &str| vec![result; results].concat();
    let done = with(r#",{"role":"tool","tool_call_id":"c","content":"file"}"#);
    let output = with(r#",{"type":"function_call_output","call_id":"c","output":"file"}"#);
    let block = r#"{"type":"tool_result","tool_use_id":"c","content":"file"}"#;
    let blocks = with(&format!(r#",{{"role":"user","content":[{block}]}}"#));
    let part = r#"{"functionResponse":{"name":"dev__shell","response":{}}}"#;
    let parts = with(&format!(r#",{{"role":"user","parts":[{part}]}}"#));
    [
        (
            "/v1/chat/completions",
            format!(r#"{{"messages":[{user}{done}],{tools}}}"#),
        ),
        (
            "/api/chat",
            format!(r#"{{"messages":[{user}{done}],{tools},"stream":false}}"#),
        ),
        (
            "/v1/responses",
            format!(r#"{{"input":[{user}{output}],"tools":[{{"type":"web_search"}},{function}]}}"#),
        ),
        (
            "/v1/messages",
            format!(
                r#"{{"messages":[{user}{blocks}],"tools":[{{"name":"dev__shell","input_schema":{schema}}}]}}"#
            ),
        ),
        (
            "/v1beta/models/m:generateContent",
            format!(
                r#"{{"contents":[{{"role":"user","parts":[{{"text":"{prompt}"}}]}}{parts}],"tools":[{{"functionDeclarations":[{function}]}}]}}"#
            ),
        ),
    ]
}

#[test]
fn a_command_is_run_as_often_as_asked_and_then_there_is_an_answer() {
    let model = Model {
        strict: false,
        ..Model::default()
    };
    let server = Server::start(Script::new().obedient(false).model(model));
    for results in 0..3 {
        for (path, body) in loops(results) {
            let got = post(&server, path, &body);
            assert_eq!(got.status, 200, "{path} {got:?}");
            let calls = got.body.contains("dev__shell");
            assert_eq!(
                calls,
                results < 2,
                "{path} with {results} results: {}",
                got.body
            );
            let answers = got.body.contains("alder birch cedar");
            assert_eq!(
                answers,
                results == 2,
                "{path} with {results} results: {}",
                got.body
            );
        }
    }
}
