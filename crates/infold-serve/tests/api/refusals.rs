use std::io::{BufReader, Write as _};
use std::net::TcpStream;

use serde_json::json;

use crate::server::{Server, answer};

#[test]
fn what_is_wrong_is_said_with_a_status_of_its_own() {
    let server = Server::start();
    let task = server.task(3);
    let other = server.task(1);
    let steps = format!("{task}/steps");
    let messages = format!("{task}/messages");
    server.ask("POST", &format!("{other}/complete"), "", b"");
    let id = task.rsplit('/').next().unwrap();
    let ended = other.rsplit('/').next().unwrap();
    let table = [
        (
            "GET",
            "/infold/api/nothing".to_owned(),
            "",
            "404 no_route: nothing at `/infold/api/nothing`",
        ),
        (
            "GET",
            format!("{task}/log/"),
            "",
            "404 no_route: nothing at",
        ),
        (
            "PUT",
            "/infold/api/tasks".to_owned(),
            "",
            "405 method: PUT is not taken here",
        ),
        (
            "GET",
            "/infold/api/tasks/x".to_owned(),
            "",
            "404 unknown_task: no task `x`",
        ),
        (
            "GET",
            "/infold/api/tasks/..%2f..%2fetc".to_owned(),
            "",
            "404 unknown_task: no task `..%2f..%2fetc`",
        ),
        (
            "GET",
            "/infold/api/events?task=x".to_owned(),
            "",
            "404 unknown_task: no task `x`",
        ),
        (
            "GET",
            "/infold/api/tasks?stauts=running".to_owned(),
            "",
            "400 bad_request: no query parameter `stauts` here; it takes status, user, limit",
        ),
        (
            "GET",
            "/infold/api/tasks?status=ill".to_owned(),
            "",
            "400 bad_request: `status` of the query: no status `ill`",
        ),
        (
            "GET",
            "/infold/api/tasks?limit=0".to_owned(),
            "",
            "400 bad_request: `limit=0`: give a number, counted from 1",
        ),
        (
            "GET",
            "/infold/api/tasks?limit=1&limit=2".to_owned(),
            "",
            "400 bad_request: `limit` is in the query twice",
        ),
        (
            "GET",
            format!("{task}/log?from=4&to=2"),
            "",
            "400 bad_request: from=4 lies behind to=2",
        ),
        (
            "GET",
            format!("{task}/view?at=soon"),
            "",
            "400 bad_request: `at` of the query: `soon` is neither",
        ),
        ("GET", format!("{task}/view?at=900"), "", "422 refused: "),
        (
            "GET",
            format!("{task}/messages/4..2"),
            "",
            "400 bad_request: ",
        ),
        (
            "GET",
            format!("{task}/messages/1..900"),
            "",
            "422 refused: ",
        ),
        (
            "POST",
            "/infold/api/tasks".to_owned(),
            "{",
            "400 bad_request: the body is not JSON: EOF while parsing an object at line 1 column 1",
        ),
        (
            "POST",
            "/infold/api/tasks".to_owned(),
            "[]",
            "400 bad_request: the body is not a JSON object",
        ),
        (
            "POST",
            "/infold/api/tasks".to_owned(),
            r#"{"modle":"x"}"#,
            "400 bad_request: no member \"modle\" here; there are task_source",
        ),
        (
            "POST",
            "/infold/api/tasks".to_owned(),
            r#"{"context_length":"8k"}"#,
            "400 bad_request: \"context_length\" must be a whole number above 0",
        ),
        (
            "POST",
            "/infold/api/tasks".to_owned(),
            r#"{"wire":"telex"}"#,
            "400 bad_request: \"wire\": no wire `telex`",
        ),
        (
            "POST",
            messages.clone(),
            "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\"}",
            "400 bad_request: line 2, message 2: no \"content\"",
        ),
        (
            "POST",
            steps.clone(),
            r#"{"step":"jump"}"#,
            "400 bad_request: no step `jump`",
        ),
        ("POST", steps.clone(), r#"{"step":"redo"}"#, "422 refused: "),
        (
            "POST",
            steps.clone(),
            r#"{"step":"unfold","fold":"e9"}"#,
            "422 refused: ",
        ),
        (
            "POST",
            format!("{task}/fork"),
            r#"{"at":900}"#,
            "422 refused: ",
        ),
        (
            "POST",
            format!("{task}/fail"),
            "{}",
            "400 bad_request: say why",
        ),
        (
            "POST",
            format!("{task}/manage"),
            r#"{"window":10,"max_tokens":100}"#,
            "400 bad_request: ",
        ),
        (
            "POST",
            format!("{task}/manage"),
            r#"{"strategy":"hope"}"#,
            "400 bad_request: \"strategy\": ",
        ),
        (
            "POST",
            format!("{other}/steps"),
            r#"{"step":"undo"}"#,
            "409 ended: task",
        ),
        (
            "POST",
            format!("{other}/messages"),
            r#"{"role":"user","content":"a"}"#,
            "409 ended: task",
        ),
    ];
    for (method, path, body, expected) in table {
        let error = server.ask(method, &path, "", body.as_bytes()).error();
        assert!(
            error.starts_with(expected),
            "{method} {path} {body}\n{error}\n{expected}"
        );
    }
    // Nothing of the refused requests was recorded.
    assert_eq!(server.get(&task).json()["messages"], 6);
    assert_eq!(server.get(&task).json()["events"], 0);

    // An id that is nearly right gets a hint.
    // No id has an x, so that it is never the beginning of one.
    let near = format!("{}x", &id[..7]);
    let answer = server.get(&format!("/infold/api/tasks/{near}")).json();
    assert!(
        answer["error"]["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains(id)),
        "{near}: {answer} {ended}"
    );
    let method = server.ask("DELETE", "/infold/api/tasks", "", b"");
    assert!(
        method.head.contains("\r\nallow: get, post\r\n"),
        "{}",
        method.head
    );

    // Another writer has it.
    assert_eq!(
        server.post(&format!("{task}/release"), &json!({})).status,
        204
    );
    let held = server.contexts.write(id.parse().unwrap()).unwrap();
    let answer = server.post(&steps, &json!({"step": "truncate"}));
    let expected = format!("409 held: task {id}: process {} on", std::process::id());
    assert!(answer.error().starts_with(&expected), "{}", answer.error());
    assert_eq!(
        server.list(&format!("{task}/log")).len(),
        6,
        "it can be read all the same"
    );
    drop(held);
    assert_eq!(
        server.post(&steps, &json!({"step": "truncate"})).status,
        200
    );
}

#[test]
fn a_body_that_is_too_long_is_refused_before_it_is_sent() {
    let server = Server::start();
    let task = server.task(1);
    let mut stream = TcpStream::connect(server.address).unwrap();
    // Were it to wait for the body, it would wait for ever.
    let limit = Some(std::time::Duration::from_secs(60));
    stream.set_read_timeout(limit).unwrap();
    let length = (64 << 20) + 1;
    write!(
        stream,
        "POST {task}/messages HTTP/1.0\r\ncontent-length: {length}\r\n\r\n"
    )
    .unwrap();
    let error = answer(BufReader::new(stream)).error();
    assert_eq!(error, "413 too_large: the body is longer than 64 MiB");
}
