//! The output of a model on any wire: thoughts, texts, look-ups and calls of the client's tool.

use infold_testkit::seal;
use infold_wire::{Reply, StopReason, TokenUsage, Wire, quote};

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    Think(String),
    Text(String),
    /// A call of ours, with a query.
    Lookup(String),
    /// A call of the client's tool.
    Call(String),
    /// A call of any tool: its name and its arguments.
    Tool(&'static str, String),
}

/// A piece with an id that no other has.
pub type Numbered = (String, Block);

/// The client's tool.
pub const TOOL: &str = "run";

impl Block {
    fn call(&self) -> Option<(&str, String)> {
        let given = |name: &str, value: &str| format!("{{{}:{}}}", quote(name), quote(value));
        match self {
            Block::Lookup(query) => Some(("search_history", given("query", query))),
            Block::Call(command) => Some((TOOL, given("command", command))),
            Block::Tool(name, given) => Some((name, given.clone())),
            Block::Think(_) | Block::Text(_) => None,
        }
    }
}

/// Numbers the pieces of a reply.
pub fn numbered(round: usize, blocks: &[Block]) -> Vec<Numbered> {
    let blocks = blocks.iter().enumerate();
    blocks
        .map(|(at, block)| (format!("{round}x{at}"), block.clone()))
        .collect()
}

/// Returns the reply that the client is to see for several rounds: with the usage of all, and no look-up.
pub fn merged(wire: Wire, rounds: &[Vec<Numbered>]) -> Reply {
    let all = rounds.iter().flatten();
    let all = all.filter(|(_, block)| !matches!(block, Block::Lookup(_)));
    let all: Vec<Numbered> = all.cloned().collect();
    let usages = (0..rounds.len()).map(|round| usage(wire, round));
    let total = usages.fold(TokenUsage::default(), |sum, one| TokenUsage {
        input: sum.input + one.input,
        cache_read: sum.cache_read + one.cache_read,
        cache_write: 0,
        output: sum.output + one.output,
        reasoning: sum.reasoning + one.reasoning,
    });
    Reply {
        usage: Some(total),
        ..reply(wire, 0, &all)
    }
}

fn usage(wire: Wire, round: usize) -> TokenUsage {
    let round = round as u64;
    TokenUsage {
        input: 100 + round,
        cache_read: if wire == Wire::Ollama { 0 } else { 7 * round },
        cache_write: 0,
        output: 10 + round,
        reasoning: 0,
    }
}

/// A reply of one round.
pub fn reply(wire: Wire, round: usize, blocks: &[Numbered]) -> Reply {
    let calls = blocks.iter().any(|(_, block)| block.call().is_some());
    let messages = match wire {
        Wire::Chat => vec![chat(blocks)],
        Wire::Responses => blocks.iter().map(item).collect(),
        Wire::Anthropic => {
            let blocks: Vec<String> = blocks.iter().map(anthropic).collect();
            vec![format!(
                r#"{{"role":"assistant","content":[{}]}}"#,
                blocks.join(",")
            )]
        }
        Wire::Gemini => {
            let parts: Vec<String> = blocks.iter().map(|(_, block)| part(block)).collect();
            vec![format!(
                r#"{{"role":"model","parts":[{}]}}"#,
                parts.join(",")
            )]
        }
        Wire::Ollama => vec![ollama(blocks)],
    };
    Reply {
        messages: messages.into_iter().map(String::into_bytes).collect(),
        stop: if calls {
            StopReason::Calls
        } else {
            StopReason::End
        },
        usage: Some(usage(wire, round)),
        model: Some("m".to_owned()),
        id: Some(format!("resp_{round}")),
    }
}

/// The texts of a kind, joined; none if there are none.
fn joined(blocks: &[Numbered], of: impl Fn(&Block) -> Option<&String>) -> Option<String> {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|(_, block)| Some(of(block)?.as_str()))
        .collect();
    (!texts.is_empty()).then(|| quote(&texts.concat()))
}

fn text(block: &Block) -> Option<&String> {
    match block {
        Block::Text(text) => Some(text),
        _ => None,
    }
}

fn thought(block: &Block) -> Option<&String> {
    match block {
        Block::Think(text) => Some(text),
        _ => None,
    }
}

fn chat(blocks: &[Numbered]) -> String {
    let content = joined(blocks, text).unwrap_or_else(|| "null".to_owned());
    let mut out = format!(r#"{{"role":"assistant","content":{content}"#);
    if let Some(thought) = joined(blocks, thought) {
        out += &format!(r#","reasoning_content":{thought}"#);
    }
    let calls = blocks.iter().filter_map(|(id, block)| {
        let (name, given) = block.call()?;
        let given = quote(&given);
        Some(format!(
            r#"{{"id":"call_{id}","type":"function","function":{{"name":"{name}","arguments":{given}}}}}"#
        ))
    });
    out + &list("tool_calls", calls.collect()) + "}"
}

fn ollama(blocks: &[Numbered]) -> String {
    let content = joined(blocks, text).unwrap_or_else(|| "\"\"".to_owned());
    let mut out = format!(r#"{{"role":"assistant","content":{content}"#);
    if let Some(thought) = joined(blocks, thought) {
        out += &format!(r#","thinking":{thought}"#);
    }
    let calls = blocks.iter().filter_map(|(_, block)| {
        let (name, given) = block.call()?;
        Some(format!(
            r#"{{"function":{{"name":"{name}","arguments":{given}}}}}"#
        ))
    });
    out + &list("tool_calls", calls.collect()) + "}"
}

fn list(name: &str, values: Vec<String>) -> String {
    if values.is_empty() {
        return String::new();
    }
    format!(r#","{name}":[{}]"#, values.join(","))
}

fn item((id, block): &Numbered) -> String {
    match block {
        Block::Think(thought) => format!(
            r#"{{"id":"rs_{id}","type":"reasoning","summary":[{{"type":"summary_text","text":{}}}],"encrypted_content":"{}"}}"#,
            quote(thought),
            seal(&format!("rs_{id}"))
        ),
        Block::Text(text) => format!(
            r#"{{"id":"msg_{id}","type":"message","status":"completed","role":"assistant","content":[{{"type":"output_text","text":{},"annotations":[]}}]}}"#,
            quote(text)
        ),
        Block::Lookup(_) | Block::Call(_) | Block::Tool(..) => {
            let (name, given) = block.call().expect("a call");
            format!(
                r#"{{"id":"fc_{id}","type":"function_call","status":"completed","call_id":"call_{id}","name":"{name}","arguments":{}}}"#,
                quote(&given)
            )
        }
    }
}

fn anthropic((id, block): &Numbered) -> String {
    match block {
        Block::Think(thought) => format!(
            r#"{{"type":"thinking","thinking":{},"signature":"{}"}}"#,
            quote(thought),
            seal(thought)
        ),
        Block::Text(text) => format!(r#"{{"type":"text","text":{}}}"#, quote(text)),
        Block::Lookup(_) | Block::Call(_) | Block::Tool(..) => {
            let (name, given) = block.call().expect("a call");
            format!(r#"{{"type":"tool_use","id":"toolu_{id}","name":"{name}","input":{given}}}"#)
        }
    }
}

fn part(block: &Block) -> String {
    match block {
        Block::Think(thought) => format!(r#"{{"text":{},"thought":true}}"#, quote(thought)),
        Block::Text(text) => format!(r#"{{"text":{}}}"#, quote(text)),
        Block::Lookup(_) | Block::Call(_) | Block::Tool(..) => {
            let (name, given) = block.call().expect("a call");
            // In the order in which the client writes it again.
            let call = format!(r#"{{"args":{given},"name":"{name}"}}"#);
            let signature = seal(&call);
            format!(r#"{{"functionCall":{call},"thoughtSignature":"{signature}"}}"#)
        }
    }
}
