//! Recalled excerpts behind tool results, converted to wires whose results are messages of their own.

use infold_wire::{Converter, RECALLED_HEAD, Wire};

/// Converts a call and its result with an excerpt behind it.
fn converted(to: Wire) -> Vec<String> {
    let excerpt = format!("{RECALLED_HEAD}3 of this conversation:]\\n> PORT = 8080");
    let messages = [
        r#"{"role":"user","content":"go"}"#.to_owned(),
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"ls","input":{}}]}"#
            .to_owned(),
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"a.rs"}},{{"type":"text","text":"{excerpt}"}}]}}"#
        ),
    ];
    let mut converter = Converter::new(to);
    let mut out = Vec::new();
    let mut keep = |bytes: &[u8]| out.push(String::from_utf8_lossy(bytes).into_owned());
    for message in &messages {
        converter
            .push(message.as_bytes(), &mut keep)
            .expect("a message");
    }
    converter.finish(&mut keep);
    out
}

#[test]
fn an_excerpt_stays_in_the_message_with_the_results() {
    for to in Wire::ALL {
        let shown = converted(to);
        assert_eq!(shown.len(), 3, "{to}: {shown:?}");
        let last = &shown[2];
        assert!(
            last.contains("a.rs") && last.contains("PORT = 8080"),
            "{to}: {last}"
        );
    }
}
