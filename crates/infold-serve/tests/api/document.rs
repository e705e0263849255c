use std::io::BufRead as _;

use serde_json::{Value, json};

use crate::server::Server;

/// Each operation of the document is there and answers as it says; no other is.
#[test]
fn each_route_is_in_the_document_and_answers() {
    let server = Server::start();
    let answer = server.get("/infold/api/openapi.json");
    if let Ok(path) = std::env::var("INFOLD_OPENAPI") {
        std::fs::write(path, &answer.body).unwrap();
    }
    let document = answer.json();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for part in answer
        .text()
        .split("\"$ref\":\"#/components/schemas/")
        .skip(1)
    {
        let name = part.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
    let mut names = std::collections::BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name), "{name} is there twice");
            let expected = operation["responses"].as_object().unwrap();
            let expected = expected.keys().find(|status| *status != "default").unwrap();
            let task = server.task(10);
            // This makes one of every kind for the checks.
            let fold = server.post(&format!("{task}/steps"), &json!({"step": "truncate"}));
            let fold = fold.json()["event"].as_str().unwrap().to_owned();
            let path = path
                .replace("/infold/api/tasks/{task}", &task)
                .replace("{range}", "2..3")
                .replace("{fold}", &fold);
            let body = match name {
                "step" => json!({"step": "truncate"}),
                "fail" => json!({"error": "no time"}),
                "redact" => json!({"messages": 2}),
                "push" => json!([{"role": "user", "content": "hm"}]),
                _ => json!({}),
            };
            if name == "events" {
                let mut stream = server.open("GET", &path, "", b"");
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                assert!(line.contains(" 200 "), "{line}");
                continue;
            }
            let answer = server.ask(
                &method.to_uppercase(),
                &path,
                "",
                body.to_string().as_bytes(),
            );
            assert_eq!(
                answer.status.to_string(),
                *expected,
                "{name}: {}",
                answer.text()
            );
            let content = operation["responses"][expected.as_str()]["content"].as_object();
            let Some((kind, content)) = content.and_then(|content| content.iter().next()) else {
                assert_eq!(answer.text(), "", "{name}");
                continue;
            };
            assert!(
                answer.head.contains(&format!("content-type: {kind}")),
                "{name}: {}",
                answer.head
            );
            if kind == "application/json" {
                check(&document, &content["schema"], &answer.json(), name);
            }
        }
        let other = server.ask(
            "PATCH",
            &path
                .replace("{task}", "x")
                .replace("{range}", "2")
                .replace("{fold}", "e1"),
            "",
            b"",
        );
        assert_eq!(other.status, 405, "{path}");
    }
    assert_eq!(names.len(), 25);
}

/// Checks that a value is of a schema: as much of JSON Schema as the document uses.
fn check(document: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = document.pointer(name.trim_start_matches('#')).expect(name);
        return check(document, schema, value, at);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        return match value {
            Value::Null => assert_eq!(any[1], json!({"type": "null"}), "{at}"),
            value => check(document, &any[0], value, at),
        };
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let wanted = &schema["type"];
    let fits = wanted.is_null() || wanted == kind || (wanted == "number" && kind == "integer");
    assert!(fits, "{at}: {value} is no {wanted}");
    for item in value.as_array().into_iter().flatten() {
        check(document, &schema["items"], item, at);
    }
    if let (Some(object), Some(properties)) = (value.as_object(), schema["properties"].as_object())
    {
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(
                object.contains_key(name.as_str().expect("a name")),
                "{at}: no {name} in {value}"
            );
        }
        for (name, value) in object {
            if let Some(schema) = properties.get(name) {
                check(document, schema, value, &format!("{at}.{name}"));
            }
        }
    }
}
