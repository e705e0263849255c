//! Blocks as messages of a wire.

use infold_log::Role;

use crate::Wire;
use crate::said::gemini::UNSIGNED;
use crate::said::{Block, chat, gemini, list, message, put, responses};

/// Where messages go that are ready.
pub type Out<'o> = &'o mut dyn FnMut(&[u8]);

/// Writes what somebody says; results come first. Every block must be one that the wire has.
pub fn write(to: Wire, role: Role, blocks: &[Block<'_>], out: Out<'_>) {
    match to {
        Wire::Anthropic => out(&message(role, blocks)),
        Wire::Gemini => out(content(role, blocks).as_bytes()),
        Wire::Responses => items(role, blocks, out),
        Wire::Chat | Wire::Ollama => turns(to, role, blocks, out),
    }
}

/// The name of a role where there are system messages.
fn name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Assistant => "assistant",
        Role::User | Role::Tool => "user",
    }
}

fn content(role: Role, blocks: &[Block<'_>]) -> String {
    let role = match role {
        Role::Assistant => "model",
        other => name(other),
    };
    let mut whole = format!(r#"{{"role":"{role}","parts":"#);
    let first = blocks
        .iter()
        .position(|block| matches!(block, Block::Call(..)));
    let numbered: Vec<(usize, &Block<'_>)> = blocks.iter().enumerate().collect();
    list(&numbered, &mut whole, |(at, block), out| {
        if let Block::Result {
            id,
            name,
            content,
            failed,
        } = block
        {
            let text = chat::joined(content);
            return gemini::put_result(id, name, &text, *failed, out);
        }
        gemini::put_part(block, out);
        if first == Some(*at) {
            out.pop();
            put(out, &[",\"thoughtSignature\":", UNSIGNED, "}"]);
        }
    });
    whole.push('}');
    whole
}

fn items(role: Role, blocks: &[Block<'_>], out: Out<'_>) {
    let (name, kind) = match role {
        Role::Assistant => ("assistant", "output"),
        Role::System => ("developer", "input"),
        Role::User | Role::Tool => ("user", "input"),
    };
    let mut rest: Vec<&Block<'_>> = Vec::new();
    let mut said = |rest: &mut Vec<&Block<'_>>, item: Option<String>| {
        if !rest.is_empty() {
            out(responses::message(name, kind, rest).as_bytes());
            rest.clear();
        }
        item.iter().for_each(|item| out(item.as_bytes()));
    };
    for block in blocks {
        match block {
            Block::Text(text) if role == Role::Assistant => {
                said(&mut rest, Some(responses::said(text)));
            }
            Block::Call(id, name, input) => {
                said(&mut rest, Some(responses::call(id, name, input)));
            }
            Block::Result { id, content, .. } => {
                said(&mut rest, Some(responses::call_output(id, content, false)));
            }
            other => rest.push(other),
        }
    }
    said(&mut rest, None);
}

fn turns(to: Wire, role: Role, blocks: &[Block<'_>], out: Out<'_>) {
    let results = blocks
        .iter()
        .take_while(|block| matches!(block, Block::Result { .. }))
        .count();
    let (results, rest) = blocks.split_at(results);
    for block in results {
        if let Block::Result {
            id, name, content, ..
        } = block
        {
            out(result(to, id, name, &chat::joined(content)).as_bytes());
        }
    }
    if rest.is_empty() {
        return;
    }
    let mut whole = format!(r#"{{"role":"{}","content":"#, name(role));
    match to {
        Wire::Ollama => put(&mut whole, &[&chat::joined(rest)]),
        _ => chat_content(rest, &mut whole),
    }
    let calls = |block: &&Block<'_>| matches!(block, Block::Call(..));
    let calls: Vec<&Block<'_>> = rest.iter().filter(calls).collect();
    if !calls.is_empty() {
        whole.push_str(",\"tool_calls\":");
        list(&calls, &mut whole, |call, out| put_call(to, call, out));
    }
    let images: Vec<&str> = rest
        .iter()
        .filter_map(|block| match block {
            Block::Image(_, data) if to == Wire::Ollama => Some(&**data),
            _ => None,
        })
        .collect();
    if !images.is_empty() {
        put(&mut whole, &[",\"images\":[", &images.join(","), "]"]);
    }
    whole.push('}');
    out(whole.as_bytes());
}

fn result(to: Wire, id: &str, name: &str, text: &str) -> String {
    let mut whole = format!(r#"{{"role":"tool","content":{text}"#);
    if to == Wire::Ollama {
        put(&mut whole, &[",\"tool_name\":", name]);
    }
    if id != "\"\"" {
        put(&mut whole, &[",\"tool_call_id\":", id]);
    }
    whole.push('}');
    whole
}

fn put_call(to: Wire, call: &Block<'_>, out: &mut String) {
    let Block::Call(id, name, input) = call else {
        return;
    };
    if to == Wire::Chat {
        return chat::put_call(id, name, input, out);
    }
    let kind = r#","function":{"name":"#;
    let start = [r#"{"id":"#, id, kind, name, r#","arguments":"#, input, "}}"];
    put(out, &start);
}

/// Texts as one text, with images as a list, and nothing where there are calls alone.
fn chat_content(blocks: &[Block<'_>], out: &mut String) {
    let said: Vec<&Block<'_>> = blocks
        .iter()
        .filter(|block| !matches!(block, Block::Call(..)))
        .collect();
    let plain = said.iter().all(|block| matches!(block, Block::Text(_)));
    match plain {
        _ if said.is_empty() => out.push_str("null"),
        true => out.push_str(&chat::joined(blocks)),
        false => list(&said, out, |block, out| chat::put_part(block, out)),
    }
}
