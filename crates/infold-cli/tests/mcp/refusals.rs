//! Nonsense is answered in words, and ends nothing.

use serde_json::{Value, json};

use crate::client::{Client, JSON, Piped, Served};
use crate::home;

/// Calls that cannot be answered, and what is said.
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

#[test]
fn nonsense_on_the_pipe_is_survived() {
    let home = home();
    let mut piped = Piped::silent(&home, "");
    for nonsense in [
        "",
        "   ",
        "not JSON",
        "{",
        "\u{0}\u{1}",
        "\"\\ud800\"",
        "[[[[",
    ] {
        piped.send(nonsense.as_bytes());
    }
    piped.send(b"\xff\xfe\xfd");
    assert_eq!(piped.initialize()["serverInfo"]["name"], "infold");
    piped.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    piped.send(b"nonsense");
    piped.send(&vec![b'x'; 20 << 20]);
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
    for (method, params) in [
        ("tools/call", json!({"name": 3})),
        ("tools/call", json!({"name": "view", "arguments": []})),
        ("resources/read", json!({"uri": 3})),
    ] {
        let shapeless = piped.request(method, params.clone());
        assert_eq!(shapeless["error"]["code"], -32602, "{params}: {shapeless}");
    }
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
    // A call is under way, and nobody reads its result.
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
    for (body, code, id) in [
        ("", -32700, json!(null)),
        ("nonsense", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        ("{}", -32600, json!(null)),
        (r#"{"jsonrpc":"2.0"}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":4,"method":3}"#, -32600, json!(4)),
        (
            r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#,
            -32600,
            json!("a"),
        ),
    ] {
        let (answer, text) = served.ask("POST", JSON, body);
        assert_eq!(answer, 400, "{body}: {text}");
        let text: Value = serde_json::from_str(&text).expect("JSON-RPC");
        assert_eq!(text["error"]["code"], code, "{body}: {text}");
        assert_eq!(text["id"], id, "{body}: {text}");
    }
    for (method, code) in [("tools/call", -32602), ("unheard/of", -32601)] {
        let body = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": {"name": 3}});
        let (_, text) = served.ask("POST", JSON, &body.to_string());
        let text: Value = serde_json::from_str(&text).expect("JSON-RPC");
        assert_eq!(text["error"]["code"], code, "{body}: {text}");
        assert_eq!(text["id"], 5, "{body}: {text}");
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
