//! How many tokens a request has, and how much of it the server has seen before.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};

use infold_wire::tokens::{Counter, Encoding, image, message};
use infold_wire::{Json, JsonKind, Message, TokenUsage, Wire};

use crate::reply_request::listed;

/// One part of a request that is cached as a whole: a tool, the system prompt, a message.
struct Segment {
    tokens: u64,
    /// The hash of this part and of all before it.
    prefix: u64,
    /// Whether the client marked it as the end of a prefix to cache.
    marked: bool,
    tool: bool,
}

/// A request, counted.
pub(crate) struct Counted {
    segments: Vec<Segment>,
}

/// The members of a request on a wire: tools, then the prompt, then the messages.
fn names(wire: Wire) -> [&'static str; 3] {
    match wire {
        Wire::Chat | Wire::Ollama => ["tools", "system", "messages"],
        Wire::Responses => ["tools", "instructions", "input"],
        Wire::Anthropic => ["tools", "system", "messages"],
        Wire::Gemini => ["tools", "systemInstruction", "contents"],
    }
}

impl Counted {
    /// Counts the tools, the system prompt and the messages, in the order a model reads them.
    pub fn of(wire: Wire, body: Json<'_>) -> Counted {
        let mut prefix = DefaultHasher::new();
        prefix.write_u8(wire as u8);
        let mut segments = Vec::new();
        for (at, name) in names(wire).into_iter().enumerate() {
            for part in listed(body, name) {
                let marked = add(part, &mut prefix, 0);
                segments.push(Segment {
                    tokens: weigh(part),
                    prefix: prefix.finish(),
                    marked,
                    tool: at == 0,
                });
            }
        }
        // Ollama's oldest form has no messages.
        if let Some(prompt) = body.get("prompt") {
            let marked = add(prompt, &mut prefix, 0);
            let prefix = prefix.finish();
            let tokens = weigh(prompt);
            segments.push(Segment {
                tokens,
                prefix,
                marked,
                tool: false,
            });
        }
        Counted { segments }
    }

    /// A request that is too large to be read: four bytes are a token.
    pub fn guessed(bytes: u64) -> Counted {
        let segment = Segment {
            tokens: bytes / 4,
            prefix: bytes,
            marked: false,
            tool: false,
        };
        Counted {
            segments: vec![segment],
        }
    }

    /// All tokens.
    pub fn total(&self) -> u64 {
        self.segments.iter().map(|it| it.tokens).sum()
    }

    /// Those of the tools.
    pub fn tools(&self) -> u64 {
        self.segments
            .iter()
            .filter(|it| it.tool)
            .map(|it| it.tokens)
            .sum()
    }

    /// Leaves out parts at the front, but for the first, until no more than `most` are left.
    pub fn drop_front(&mut self, most: u64) {
        let mut total = self.total();
        let last = self.segments.len().saturating_sub(1);
        for segment in self.segments.iter_mut().take(last).skip(1) {
            if total > most {
                total -= std::mem::take(&mut segment.tokens);
            }
        }
        // The rest may still be too long, and is then cut inside.
        if let Some(first) = self.segments.first_mut().filter(|_| total > most) {
            let over = (total - most).min(first.tokens);
            first.tokens -= over;
            total -= over;
        }
        if let Some(last) = self.segments.last_mut().filter(|_| total > most) {
            last.tokens -= total - most;
        }
    }
}

/// The prefixes that were sent before.
#[derive(Debug, Default)]
pub(crate) struct Cache(HashSet<u64>);

/// How many prefixes are remembered before all are forgotten.
const REMEMBERED: usize = 1 << 20;

impl Cache {
    /// Computes how many tokens of a request are new, cached, and cached from now on.
    ///
    /// Anthropic caches prefixes that end at a marker; the others cache every prefix, and do not report that.
    pub fn meet(&mut self, wire: Wire, counted: &Counted) -> TokenUsage {
        let segments = &counted.segments;
        let end = match wire {
            Wire::Anthropic => segments
                .iter()
                .rposition(|it| it.marked)
                .map_or(0, |at| at + 1),
            _ => segments.len(),
        };
        let known = segments[..end]
            .iter()
            .rposition(|it| self.0.contains(&it.prefix));
        let known = known.map_or(0, |at| at + 1);
        if self.0.len() > REMEMBERED {
            self.0.clear();
        }
        let kept = segments[..end]
            .iter()
            .filter(|it| wire != Wire::Anthropic || it.marked);
        self.0.extend(kept.map(|it| it.prefix));
        let sum = |segments: &[Segment]| segments.iter().map(|it| it.tokens).sum::<u64>();
        let (read, written) = (sum(&segments[..known]), sum(&segments[known..end]));
        let rest = sum(&segments[end..]);
        match wire {
            Wire::Anthropic => TokenUsage {
                input: rest,
                cache_read: read,
                cache_write: written,
                ..TokenUsage::default()
            },
            // Ollama has a cache, but does not report it.
            Wire::Ollama => TokenUsage {
                input: read + written,
                ..TokenUsage::default()
            },
            _ => TokenUsage {
                input: written,
                cache_read: read,
                ..TokenUsage::default()
            },
        }
    }
}

/// Tokens of a message by the rules for messages, of anything else by the texts in it.
fn weigh(part: Json<'_>) -> u64 {
    if let Ok(part) = Message::parse(part.bytes()) {
        return message(&part);
    }
    let mut counter = Counter::new(Encoding::O200k);
    let mut images = 0;
    texts(part, &mut counter, &mut images, 0);
    4 + counter.finish() + images
}

/// The depth to which the text of a request is counted; deeper values are ignored.
const DEEP: usize = 100;

fn texts(json: Json<'_>, counter: &mut Counter, images: &mut u64, depth: usize) {
    match json.kind() {
        JsonKind::String => {
            counter.push_json(json);
            counter.push("\n");
        }
        JsonKind::Array if depth < DEEP => {
            json.elements()
                .for_each(|it| texts(it, counter, images, depth + 1));
        }
        JsonKind::Object if depth < DEEP => {
            for (name, value) in json.members() {
                match &*name.name() {
                    b"type" | b"role" | b"cache_control" | b"id" | b"status" => {}
                    b"data" | b"encrypted_content" => *images += image(Some(value)),
                    b"image_url" => *images += image(None),
                    _ => texts(value, counter, images, depth + 1),
                }
            }
        }
        _ => {}
    }
}

/// Hashes the contents of a part, whatever its spacing; returns whether it has a marker.
fn add(json: Json<'_>, hash: &mut DefaultHasher, depth: usize) -> bool {
    let mut marked = false;
    match json.kind() {
        JsonKind::Object if depth < DEEP => {
            for (name, value) in json.members() {
                // A marker moves from turn to turn and changes nothing.
                if name.is("cache_control") {
                    marked |= !value.is_null();
                    continue;
                }
                hash.write(&name.name());
                hash.write_u8(b':');
                if name.is("content") && value.kind() == JsonKind::String {
                    // A text alone is the same as one block of text.
                    hash.write(b",type:\"text\"text:");
                }
                marked |= add(value, hash, depth + 1);
            }
        }
        JsonKind::Array if depth < DEEP => {
            for element in json.elements() {
                hash.write_u8(b',');
                marked |= add(element, hash, depth + 1);
            }
        }
        _ => hash.write(json.bytes()),
    }
    marked
}
