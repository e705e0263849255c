//! Nonsense is answered in words, and ends nothing.

use serde_json::{Value, json};

use crate::client::{Client, JSON, Piped, Served};
use crate::home;

/// Returns calls that cannot be answered, with the answers.
fn wrong_calls() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "recall",
            json!({"range": "7"}),
            "message 7 does not exist; the last one is 6",
        ),
        (
            "recall",
            json!({"range": "1..99"}),
            "message 99 does not exist",
        ),
        (
            "recall",
            json!({"range": "e99"}),
            "event e99 does not exist",
        ),
        (
            "recall",
            json!({"range": "e1"}),
            "folds are counted in each conversation",
        ),
        ("recall", json!({"range": "6..2"}), "ends before it starts"),
        (
            "recall",
            json!({"range": "the one with the pool"}),
            "neither a message",
        ),
        (
            "recall",
            json!({"range": "99999999999999999999999"}),
            "neither a message",
        ),
        ("recall", json!({"range": ""}), "neither a message"),
        ("recall", json!({}), "`range` is missing"),
        ("recall", json!({"range": ["1"]}), "`range` must be a text"),
        (
            "recall",
            json!({"range": "1", "offset": -1}),
            "`offset` must be a whole number",
        ),
        (
            "recall",
            json!({"range": "1", "task": "ffff"}),
            "no task `ffff`",
        ),
        (
            "recall",
            json!({"range": "1", "task": "../../etc/passwd"}),
            "no task",
        ),
        ("recall", json!({"range": "1", "task": ""}), "``"),
        ("search_history", json!({}), "`query` is missing"),
        (
            "search_history",
            json!({"query": {"a": 1}}),
            "`query` must be a text",
        ),
        (
            "search_history",
            json!({"query": "x", "limit": 0}),
            "`limit` must be",
        ),
        (
            "search_history",
            json!({"query": "x", "sql": "1"}),
            "no argument `sql`; it takes query, limit, task",
        ),
        (
            "list_conversations",
            json!({"from": 50}),
            "only 1 conversation",
        ),
        ("view", json!({"from": 1e300}), "`from` must be"),
        ("pin", json!({"seq": 99}), "message 99 does not exist"),
        ("pin", json!({}), "`seq` is missing"),
        ("note", json!({"text": " "}), "the note is empty"),
        (
            "note",
            json!({"text": "x".repeat(5000)}),
            "more than 4000 characters",
        ),
    ]
}

#[test]
fn wrong_calls_are_answered_in_words() {
    let home = home();
    home.config("serve:\n  mcp_write: true\n");
    let before = home.bytes();
    let mut piped = Piped::start(&home, "--write");
    let mut served = Served::start(&home, "");
    for client in [&mut piped as &mut dyn Client, &mut served] {
        for (tool, arguments, wanted) in wrong_calls() {
            let said = client.call(tool, arguments.clone());
            let said = said.expect_err(&format!("{tool} {arguments}"));
            assert!(said.contains(wanted), "{tool} {arguments}: {said}");
        }
        // Queries are never wrong.
        for query in [
            "",
            "\"",
            "a OR",
            "'; DROP TABLE x; --",
            "(((",
            "NEAR(a b)",
            "検",
            "🚀",
            &"long ".repeat(20_000),
        ] {
            client
                .call("search_history", json!({"query": query}))
                .expect("an answer");
        }
    }
    drop(served);
    let changed: Vec<_> = home
        .bytes()
        .into_iter()
        .filter(|(path, bytes)| before.get(path) != Some(bytes))
        .map(|(path, _)| path)
        .collect();
    assert!(
        changed
            .iter()
            .all(|path| path.to_string_lossy().ends_with(".db")),
        "{changed:?}"
    );
}

#[test]
fn a_reader_does_not_write() {
    let home = home();
    for client in [
        &mut Piped::start(&home, "") as &mut dyn Client,
        &mut Served::start(&home, ""),
    ] {
        let said = client
            .call("pin", json!({"seq": 1}))
            .expect_err("it only reads");
        assert!(said.contains("only reads"), "{said}");
    }
}

/// Messages that are none, the code of the error, and the id that is answered.
fn wrong_messages() -> Vec<(&'static str, i64, Value)> {
    vec![
        ("nonsense", -32700, json!(null)),
        ("{", -32700, json!(null)),
        ("\u{0}\u{1}", -32700, json!(null)),
        ("[[[[", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        ("1", -32600, json!(null)),
        ("null", -32600, json!(null)),
        ("{}", -32600, json!(null)),
        (r#"{"jsonrpc":"2.0"}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":4,"method":3}"#, -32600, json!(4)),
        (
            r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#,
            -32600,
            json!("a"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#,
            -32600,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
            -32600,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            -32600,
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            -32600,
            json!(1.5),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"tools/call","params":7}"#,
            -32602,
            json!(null),
        ),
    ]
}

/// Requests with parameters of another form: the code of the error.
fn wrong_params() -> Vec<(&'static str, Value, i64)> {
    vec![
        ("unheard/of", json!({}), -32601),
        ("tools/call", json!({"name": 3}), -32602),
        (
            "tools/call",
            json!({"name": "view", "arguments": []}),
            -32602,
        ),
        ("tools/call", json!({"name": "rm"}), -32602),
        ("tools/call", json!([1]), -32602),
        ("tools/call", json!("x"), -32602),
        ("ping", json!([1]), -32602),
        ("initialize", json!([]), -32602),
        ("resources/read", json!({"uri": 3}), -32602),
    ]
}

#[test]
fn parameters_of_another_form_are_answered_with_the_id() {
    let home = home();
    for client in [
        &mut Piped::start(&home, "") as &mut dyn Client,
        &mut Served::start(&home, ""),
    ] {
        for (method, params, code) in wrong_params() {
            let said = client.request(method, params.clone());
            assert_eq!(said["error"]["code"], code, "{method} {params}: {said}");
            assert_eq!(said["id"], 7, "{method} {params}: {said}");
        }
    }
}

#[test]
fn nonsense_on_the_pipe_is_answered_and_survived() {
    let home = home();
    let mut piped = Piped::silent(&home, "");
    for blank in ["", "   "] {
        piped.send(blank.as_bytes());
    }
    let is_wrong = |piped: &mut Piped, message: &[u8], code: i64, id: Value| {
        piped.send(message);
        let said = piped.line();
        let message = String::from_utf8_lossy(&message[..message.len().min(80)]).into_owned();
        assert_eq!(said["error"]["code"], code, "{message}: {said}");
        assert_eq!(said["id"], id, "{message}: {said}");
    };
    for is_initialized in [false, true] {
        for (message, code, id) in wrong_messages() {
            is_wrong(&mut piped, message.as_bytes(), code, id);
        }
        is_wrong(&mut piped, b"\xff\xfe\xfd", -32700, json!(null));
        is_wrong(&mut piped, &vec![b'x'; 20 << 20], -32600, json!(null));
        if !is_initialized {
            assert_eq!(piped.initialize()["serverInfo"]["name"], "infold");
            piped.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
    }
    piped.send(br#"{"jsonrpc":"2.0","method":"notifications/unheard-of","params":{}}"#);
    let unknown = piped.request("unheard/of", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let unknown = piped.request("tools/call", json!({"name": "rm", "arguments": {}}));
    assert!(
        unknown["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("no tool `rm`")),
        "{unknown}"
    );
    assert!(piped.call("view", json!({})).is_ok());
    let (code, out, err) = piped.end();
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
}

#[test]
fn a_client_that_disappears_ends_the_process() {
    let home = home();
    let (code, out, err) = Piped::silent(&home, "").end();
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", ""));
    let mut piped = Piped::start(&home, "");
    // The input ends while a call is in progress.
    piped.send(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_history","arguments":{"query":"pool"}}}"#);
    let (code, out, err) = piped.end();
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    for line in out.lines() {
        let message: Value = serde_json::from_str(line).expect("the protocol, and nothing else");
        assert_eq!(message["jsonrpc"], "2.0");
    }
}

#[test]
fn the_address_is_guarded_as_the_rest_of_the_server() {
    let home = home();
    let served = Served::start(&home, "");
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let ask = |more: &str| served.ask("POST", &format!("{JSON}{more}"), list).0;
    assert_eq!(ask(""), 200);
    assert_eq!(ask("origin: http://evil.example\r\n"), 403);
    assert_eq!(ask("host: evil.example\r\n"), 421);
    assert_eq!(served.ask("GET", JSON, "").0, 405);
    assert_eq!(served.ask("DELETE", JSON, "").0, 405);
    for (body, code, id) in wrong_messages()
        .into_iter()
        .chain([("", -32700, json!(null))])
    {
        let (answer, text) = served.ask("POST", JSON, body);
        assert_eq!(answer, 400, "{body}: {text}");
        let text: Value = serde_json::from_str(&text).expect("JSON-RPC");
        assert_eq!(text["error"]["code"], code, "{body}: {text}");
        assert_eq!(text["id"], id, "{body}: {text}");
    }
    let huge = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#,
        "x".repeat(5 << 20)
    );
    assert_eq!(served.ask("POST", JSON, &huge).0, 413);
    assert_eq!(ask(""), 200);
    let token = "0123456789abcdef0123";
    let served = Served::with_token(&home, "--token-env TEST_TOKEN", token);
    let ask = |more: &str| served.ask("POST", &format!("{JSON}{more}"), list).0;
    assert_eq!(ask(""), 401);
    assert_eq!(ask(&format!("authorization: Bearer {token}\r\n")), 200);
}
