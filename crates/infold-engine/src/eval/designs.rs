use std::collections::HashMap;

use infold_log::Seq;
use infold_wire::Message;
use infold_wire::tokens::{Encoding, count};

use super::{Material, Session};
use crate::Extract;

/// What may stand in for what was folded, at equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// What the built-in summarizer writes.
    Extractive,
    /// What the session's own agent wrote.
    Agent,
    /// The newest text of what was folded, as it was.
    Truncation,
    /// Sentences of user and assistant, evenly from the whole range.
    Prose,
    /// The names that occur most often, and nothing else: no summary, but a point of reference.
    Frequent,
}

impl Design {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Design::Extractive => "extractive",
            Design::Agent => "agent",
            Design::Truncation => "truncation",
            Design::Prose => "prose",
            Design::Frequent => "frequent",
        }
    }
}

/// Tokens of a text, the same for all designs.
pub fn size(text: &str) -> u64 {
    count(Encoding::O200k, text)
}

/// Composes a text again until it has as many tokens as it may, but for a few: what pieces weigh one
/// by one is more than what they weigh together.
fn filled(budget: u64, compose: impl Fn(u64) -> String) -> String {
    let mut best = String::new();
    let (mut most, mut room) = (0, budget);
    for _ in 0..6 {
        let text = compose(room);
        let used = size(&text);
        if used > budget {
            room = room * 99 / 100;
            continue;
        }
        if used <= most {
            break;
        }
        (most, best) = (used, text);
        room = room * budget / used;
    }
    best
}

/// The newest text of these messages, as much as has so many tokens.
pub fn truncation(material: &Material, covers: &[usize], budget: u64) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut room = budget;
    for place in covers.iter().rev() {
        let text = material.messages[*place].text();
        let tokens = size(&text) + 1;
        if tokens > room {
            texts.push(ending(&text, room.saturating_sub(1)).to_owned());
            break;
        }
        room -= tokens;
        texts.push(text);
    }
    texts.reverse();
    texts.join("\n").trim().to_owned()
}

/// The longest end of a text that has at most so many tokens.
fn ending(text: &str, most: u64) -> &str {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let cut = starts.partition_point(|start| size(&text[*start..]) > most);
    starts.get(cut).map_or("", |start| &text[*start..])
}

/// Sentences of user and assistant in order, taken evenly from all of these messages.
pub fn prose(material: &Material, covers: &[usize], budget: u64) -> String {
    filled(budget, |room| sentences(material, covers, room))
}

fn sentences(material: &Material, covers: &[usize], budget: u64) -> String {
    let all = || {
        covers
            .iter()
            .flat_map(|place| &material.messages[*place].sentences)
    };
    let total: u64 = all().map(|(_, tokens)| tokens).sum();
    let share = budget as f64 / total.max(1) as f64;
    let mut out: Vec<&str> = Vec::new();
    let (mut seen, mut used) = (0, 0);
    for (sentence, tokens) in all() {
        seen += tokens;
        // A sentence is taken when as much is due by now, rounded to whole sentences.
        let due = seen as f64 * share;
        if used + tokens <= budget && (used as f64 + *tokens as f64 / 2.0) <= due {
            used += tokens;
            out.push(sentence);
        }
    }
    out.join(" ")
}

/// The most frequent names of these messages.
pub fn frequent(material: &Material, covers: &[usize], budget: u64) -> String {
    let mut counts: HashMap<usize, u32> = HashMap::new();
    for place in covers {
        for (name, count) in &material.messages[*place].names {
            *counts.entry(*name).or_default() += count;
        }
    }
    let mut ranked: Vec<(usize, u32)> = counts.into_iter().collect();
    ranked.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    filled(budget, |room| {
        let mut out: Vec<&str> = Vec::new();
        let mut used = 0;
        for (name, _) in &ranked {
            let name = &material.names[*name];
            used += size(name) + 1;
            if used > room {
                break;
            }
            out.push(name);
        }
        out.join(", ")
    })
}

/// What the built-in summarizer writes of these messages and what it wrote before.
pub fn extractive(
    session: &Session,
    covers: &[usize],
    previous: Option<&str>,
    budget: u64,
) -> String {
    let mut extract = Extract::new();
    if let Some(previous) = previous {
        extract.previous(previous);
    }
    for place in covers {
        let seq = Seq::new(*place as u64 + 1);
        if let (Some(seq), Ok(message)) = (seq, Message::parse(&session.messages[*place])) {
            extract.message(seq, &message);
        }
    }
    extract.write(budget as usize)
}
