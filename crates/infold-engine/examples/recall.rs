//! Measures how much of what a session needs later survives in a summary.
//!
//! `cargo run --release -p infold-engine --example recall -- [--print CUT TOKENS | --speed] FILE…`, where each file is a pi session or
//! holds one conversation a line (`{"messages":[…]}`, OpenAI form).

use std::collections::BTreeMap;

use infold::Extract;
use infold::refs::{self, Later};
use infold_log::{Role, Seq};
use infold_wire::Message;
use infold_wire::acts::{Deed, deeds};
use serde_json::{Value, json};

#[derive(Clone)]
struct Said {
    json: String,
    role: Role,
    /// All of it, arguments of calls included.
    text: String,
}

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mut print = None;
    if args.first().is_some_and(|arg| arg == "--print") {
        let number = |text: &str| text.parse::<usize>().expect("a number");
        print = Some((number(&args[1]), number(&args[2])));
        args.drain(..3);
    }
    let speed = args.first().is_some_and(|arg| arg == "--speed");
    args.drain(..usize::from(speed));
    for file in &args {
        let text = std::fs::read_to_string(file).expect("a readable file");
        let sessions = sessions(&text);
        if let Some((cut, budget)) = print {
            let session = &sessions[0];
            let extract = extract(&session[1..cut.min(session.len())]);
            println!("{}", extract.write(budget));
            continue;
        }
        if speed {
            time(&sessions.concat());
            continue;
        }
        println!("{file}: {} sessions", sessions.len());
        let long = sessions.iter().any(|session| session.len() > 200);
        let budgets: &[usize] = if long {
            &[1100, 2000, 4000]
        } else {
            &[200, 400, 800]
        };
        for budget in budgets {
            evaluate(&sessions, *budget, long);
        }
    }
}

/// Takes in the messages again and again, half a gigabyte in all.
fn time(messages: &[Said]) {
    let mut extract = Extract::new();
    let mut bytes = 0;
    let start = std::time::Instant::now();
    for (said, seq) in messages.iter().cycle().zip(1..) {
        let message = Message::parse(said.json.as_bytes()).expect("a message");
        extract.message(Seq::new(seq).expect("not zero"), &message);
        bytes += said.json.len();
        if bytes > 500 << 20 {
            break;
        }
    }
    let took = start.elapsed().as_secs_f64();
    let start = std::time::Instant::now();
    let summary = extract.write(4000);
    println!(
        "{:.0} MB/s, and {:.0} ms to write {} bytes",
        bytes as f64 / 1e6 / took,
        start.elapsed().as_secs_f64() * 1e3,
        summary.len()
    );
}

type Design = (&'static str, fn(&[Said], usize) -> String);

const DESIGNS: [Design; 4] = [
    ("extractive", |folded, budget| extract(folded).write(budget)),
    ("prose", prose),
    ("names only", names_only),
    ("truncation", |folded, _| {
        format!("[{} earlier messages are hidden]", folded.len())
    }),
];

fn evaluate(sessions: &[Vec<Said>], budget: usize, long: bool) {
    let mut rows: BTreeMap<&str, (usize, usize, usize, f64, usize)> = BTreeMap::new();
    for session in sessions {
        for (start, cut, horizon) in cuts(session, long) {
            let folded = &session[1..start];
            let later = &session[cut..(cut + horizon).min(session.len())];
            let later: Vec<Later<'_>> = later
                .iter()
                .map(|said| match said.role {
                    Role::Tool => Later::Result(&said.text),
                    _ => Later::Spoken(&said.text),
                })
                .collect();
            for (name, design) in DESIGNS {
                let stand_in = design(folded, budget);
                let shown = session[..1].iter().chain(&session[start..cut]);
                let recall = refs::recall(
                    folded.iter().map(|said| &*said.text),
                    shown.map(|said| &*said.text),
                    &stand_in,
                    &later,
                );
                if recall.wanted() == 0 {
                    continue;
                }
                let row = rows.entry(name).or_default();
                row.0 += recall.kept.len();
                row.1 += recall.wanted();
                row.2 += stand_in.len().div_ceil(3);
                row.3 += recall.share();
                row.4 += 1;
                if name == "extractive" && std::env::var_os("LOST").is_some() {
                    eprintln!("{cut}: lost {:?}", recall.lost);
                }
            }
        }
    }
    println!("budget {budget}");
    for (name, _) in DESIGNS {
        let (kept, wanted, tokens, shares, folds) = rows[name];
        println!(
            "  {name:12} recall {:.3} ({kept} of {wanted}), mean of folds {:.3}, kept per 1000 tokens {:.2}, tokens {}",
            kept as f64 / wanted as f64,
            shares / folds as f64,
            1000.0 * kept as f64 / tokens as f64,
            tokens / folds,
        );
    }
}

/// Where to fold: the first message kept, the message that comes next, and how many after it are looked at.
fn cuts(session: &[Said], long: bool) -> Vec<(usize, usize, usize)> {
    let mut out = Vec::new();
    if !long {
        for cut in [session.len() / 2, session.len() * 2 / 3] {
            out.push((cut - 6, cut, 20));
        }
        return out;
    }
    for cut in (100..session.len().saturating_sub(30)).step_by(20) {
        for window in [32_000, 100_000] {
            let mut start = cut;
            let mut tokens = 0;
            while start > 1 && tokens < window / 5 {
                start -= 1;
                tokens += session[start].text.len().div_ceil(3);
            }
            if start > 20 {
                out.push((start, cut, 40));
            }
        }
    }
    out
}

fn extract(folded: &[Said]) -> Extract {
    let mut extract = Extract::new();
    for (said, seq) in folded.iter().zip(2..) {
        let message = Message::parse(said.json.as_bytes()).expect("a message");
        extract.message(Seq::new(seq).expect("not zero"), &message);
    }
    extract
}

/// The first sentences of what was said, evenly over the whole range, as many as there is room for.
fn prose(folded: &[Said], budget: usize) -> String {
    let texts: Vec<String> = folded
        .iter()
        .filter(|said| said.role != Role::Tool)
        .filter_map(|said| {
            let message = Message::parse(said.json.as_bytes()).ok()?;
            deeds(&message).into_iter().find_map(|deed| match deed {
                Deed::Said(text) if !text.trim().is_empty() => {
                    Some(infold_wire::shorten(&text, 4000))
                }
                _ => None,
            })
        })
        .collect();
    let leading = |text: &str, sentences: usize| {
        let end = text
            .match_indices(". ")
            .nth(sentences - 1)
            .map_or(text.len(), |(at, _)| at + 1);
        text[..end].to_owned()
    };
    let room = budget * 3;
    let size = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
    let mut lines = Vec::new();
    for sentences in 1..20 {
        lines = texts.iter().map(|text| leading(text, sentences)).collect();
        if size(&lines) >= room {
            break;
        }
    }
    let share = room as f64 / size(&lines).max(1) as f64;
    let mut out = String::new();
    let mut due = 0.0;
    for line in lines {
        due += (line.len() + 1) as f64 * share;
        if out.len() + line.len() < room && due + 100.0 >= (out.len() + line.len()) as f64 {
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}

/// The most frequent references and nothing else: what a summary may not be.
fn names_only(folded: &[Said], budget: usize) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for said in folded {
        refs::each(&said.text, |name| *counts.entry(name).or_default() += 1);
    }
    let mut ranked: Vec<(&str, usize)> = counts.into_iter().collect();
    ranked.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let mut out = String::new();
    for (name, _) in ranked {
        if out.len() + name.len() + 2 > budget * 3 {
            break;
        }
        out.push_str(name);
        out.push_str(", ");
    }
    out
}

fn sessions(text: &str) -> Vec<Vec<Said>> {
    let values: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    if values
        .first()
        .is_some_and(|value| value.get("messages").is_some())
    {
        let list = |value: &Value| value["messages"].as_array().cloned().unwrap_or_default();
        // The system prompt and the first request are never folded.
        let joined = |value: &Value| list(value).iter().skip(1).map(said).collect();
        return values.iter().map(joined).collect();
    }
    let messages = values.iter().filter(|value| value["type"] == "message");
    vec![
        messages
            .filter_map(|value| from_pi(&value["message"]))
            .map(|value| said(&value))
            .collect(),
    ]
}

fn from_pi(message: &Value) -> Option<Value> {
    let blocks = message["content"].as_array()?;
    if message["role"] == "toolResult" {
        let texts: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        return Some(
            json!({"role": "tool", "tool_call_id": message["toolCallId"], "is_error": message["isError"], "content": texts.join("\n")}),
        );
    }
    let blocks: Vec<Value> = blocks
        .iter()
        .map(|block| match block["type"].as_str() {
            Some("toolCall") => json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": block["arguments"]}),
            _ => block.clone(),
        })
        .collect();
    Some(json!({"role": message["role"], "content": blocks}))
}

fn said(value: &Value) -> Said {
    let mut text = String::new();
    let content = &value["content"];
    match content {
        Value::String(said) => text.push_str(said),
        _ => content.as_array().into_iter().flatten().for_each(|block| {
            if block["type"] == "text" {
                text.push_str(block["text"].as_str().unwrap_or_default());
            }
            flatten(&block["input"], &mut text);
            text.push('\n');
        }),
    }
    for call in value["tool_calls"].as_array().into_iter().flatten() {
        text.push('\n');
        let function = &call["function"];
        text.push_str(function["name"].as_str().unwrap_or_default());
        let arguments = function["arguments"].as_str().unwrap_or_default();
        flatten(
            &serde_json::from_str(arguments).unwrap_or_default(),
            &mut text,
        );
    }
    let role = match value["role"].as_str() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => Role::Tool,
    };
    Said {
        json: value.to_string(),
        role,
        text,
    }
}

fn flatten(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push('\n');
            out.push_str(text);
        }
        Value::Number(number) => {
            out.push('\n');
            out.push_str(&number.to_string());
        }
        Value::Object(members) => members.values().for_each(|value| flatten(value, out)),
        Value::Array(items) => items.iter().for_each(|value| flatten(value, out)),
        _ => {}
    }
}
