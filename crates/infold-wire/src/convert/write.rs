//! Writes neutral blocks as messages of a wire.

use infold_log::Role;

use crate::Wire;
use crate::neutral::gemini::PLACEHOLDER_SIGNATURE;
use crate::neutral::{
    NeutralBlock, anthropic_message, chat, gemini, push_all, push_list, responses,
};

/// Receives the messages that are ready.
pub type MessageSink<'o> = &'o mut dyn FnMut(&[u8]);

/// Writes the blocks of a role, results first. The wire must have every block.
pub fn write_blocks(to: Wire, role: Role, blocks: &[NeutralBlock<'_>], out: MessageSink<'_>) {
    match to {
        Wire::Anthropic => out(&anthropic_message(role, blocks)),
        Wire::Gemini => out(gemini_content(role, blocks).as_bytes()),
        Wire::Responses => write_items(role, blocks, out),
        Wire::Chat | Wire::Ollama => write_turns(to, role, blocks, out),
    }
}

fn is_call(block: &NeutralBlock<'_>) -> bool {
    matches!(block, NeutralBlock::Call(..))
}

fn gemini_content(role: Role, blocks: &[NeutralBlock<'_>]) -> String {
    let mut whole = format!(r#"{{"role":"{}","parts":"#, gemini::role_name(role));
    let first = blocks.iter().position(is_call);
    let numbered: Vec<(usize, &NeutralBlock<'_>)> = blocks.iter().enumerate().collect();
    push_list(&numbered, &mut whole, |(at, block), out| {
        if let NeutralBlock::Result {
            id,
            name,
            content,
            failed,
        } = block
        {
            let text = chat::join_texts(content);
            return gemini::put_result(id, name, &text, *failed, out);
        }
        gemini::put_part(block, out);
        if first == Some(*at) {
            out.pop();
            push_all(out, &[",\"thoughtSignature\":", PLACEHOLDER_SIGNATURE, "}"]);
        }
    });
    whole.push('}');
    whole
}

fn write_items(role: Role, blocks: &[NeutralBlock<'_>], out: MessageSink<'_>) {
    let (name, kind) = match role {
        Role::Assistant => ("assistant", "output"),
        Role::System => ("developer", "input"),
        Role::User | Role::Tool => ("user", "input"),
    };
    let mut rest: Vec<&NeutralBlock<'_>> = Vec::new();
    let mut write = |rest: &mut Vec<&NeutralBlock<'_>>, item: Option<String>| {
        if !rest.is_empty() {
            out(responses::write_message(name, kind, rest).as_bytes());
            rest.clear();
        }
        item.iter().for_each(|item| out(item.as_bytes()));
    };
    for block in blocks {
        let item = match block {
            NeutralBlock::Text(text) if role == Role::Assistant => {
                responses::write_output_text(text)
            }
            NeutralBlock::Call(id, name, input) => responses::write_call(id, name, input),
            NeutralBlock::Result { id, content, .. } => {
                responses::write_call_output(id, content, false)
            }
            other => {
                rest.push(other);
                continue;
            }
        };
        write(&mut rest, Some(item));
    }
    write(&mut rest, None);
}

fn write_turns(to: Wire, role: Role, blocks: &[NeutralBlock<'_>], out: MessageSink<'_>) {
    let mut rest = blocks;
    while let [
        NeutralBlock::Result {
            id, name, content, ..
        },
        more @ ..,
    ] = rest
    {
        out(tool_message(to, id, name, &chat::join_texts(content)).as_bytes());
        rest = more;
    }
    if rest.is_empty() {
        return;
    }
    let role = match role {
        Role::System => "system",
        Role::Assistant => "assistant",
        Role::User | Role::Tool => "user",
    };
    let mut whole = format!(r#"{{"role":"{role}","content":"#);
    match to {
        Wire::Ollama => whole.push_str(&chat::join_texts(rest)),
        _ => write_chat_content(rest, &mut whole),
    }
    let calls: Vec<_> = rest.iter().filter(|block| is_call(block)).collect();
    if !calls.is_empty() {
        whole.push_str(",\"tool_calls\":");
        push_list(&calls, &mut whole, |call, out| write_call(to, call, out));
    }
    let images = rest.iter().filter_map(|block| match block {
        NeutralBlock::Image(_, data) if to == Wire::Ollama => Some(&**data),
        _ => None,
    });
    let images: Vec<&str> = images.collect();
    if !images.is_empty() {
        push_all(&mut whole, &[",\"images\":[", &images.join(","), "]"]);
    }
    whole.push('}');
    out(whole.as_bytes());
}

fn tool_message(to: Wire, id: &str, name: &str, text: &str) -> String {
    let mut whole = format!(r#"{{"role":"tool","content":{text}"#);
    if to == Wire::Ollama {
        push_all(&mut whole, &[",\"tool_name\":", name]);
    }
    if id != "\"\"" {
        push_all(&mut whole, &[",\"tool_call_id\":", id]);
    }
    whole.push('}');
    whole
}

fn write_call(to: Wire, call: &NeutralBlock<'_>, out: &mut String) {
    let NeutralBlock::Call(id, name, input) = call else {
        return;
    };
    if to == Wire::Chat {
        return chat::put_call(id, name, input, out);
    }
    push_all(out, &[r#"{"id":"#, id, r#","function":{"name":"#, name]);
    push_all(out, &[r#","arguments":"#, input, "}}"]);
}

/// Writes texts as one text, texts and images as a list, and `null` if there are calls alone.
fn write_chat_content(blocks: &[NeutralBlock<'_>], out: &mut String) {
    let content: Vec<_> = blocks.iter().filter(|block| !is_call(block)).collect();
    let is_text = |block: &&NeutralBlock<'_>| matches!(block, NeutralBlock::Text(_));
    if content.is_empty() {
        out.push_str("null");
    } else if content.iter().all(is_text) {
        out.push_str(&chat::join_texts(blocks));
    } else {
        push_list(&content, out, |block, out| chat::put_part(block, out));
    }
}
