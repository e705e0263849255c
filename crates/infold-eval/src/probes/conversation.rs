//! Puts a conversation together: noise, and facts at their distances from the end.

use serde_json::{Value, json};

use super::noise::ToolExchange;
use super::{
    DISTANCES_TOKENS, FACT_KINDS, LANGUAGES, Language, NOISES, Noise, Probe, ProbeConversation,
    Speaker,
};
use crate::bootstrap::XorShift;
use crate::{RecordedSession, designs};

/// Tokens before the first fact.
const LEAD_TOKENS: u64 = 4_000;
/// Tokens between two facts of the same distance.
const GAP_TOKENS: u64 = 600;
/// Tokens between what is said first and its correction.
const CORRECTION_TOKENS: u64 = 1_500;
/// More tokens than a stretch of noise has.
const ROUND_TOKENS: u64 = 3_000;
/// How many conversations a sample has.
const SAMPLE: usize = 14;
/// A user speaks before one in so many calls.
const ASK_EVERY: usize = 4;
/// In one of so many messages a user pastes something.
const PASTE_EVERY: usize = 6;
/// How many lines of it.
const PASTE_LINES: usize = 14;

/// What one conversation holds.
pub struct ProbePlan {
    language: Language,
    noise: Noise,
    /// Which distance the first kind has; the others follow in turn.
    shift: usize,
    seed: u64,
}

impl ProbePlan {
    /// How many there are.
    pub fn count(all: bool) -> usize {
        match all {
            true => LANGUAGES.len() * NOISES.len() * DISTANCES_TOKENS.len(),
            false => SAMPLE,
        }
    }

    /// The plan with a number.
    pub fn new(number: usize, all: bool) -> ProbePlan {
        let (language, noise, shift) = match all {
            true => {
                let pair = number / DISTANCES_TOKENS.len();
                (pair / NOISES.len(), pair % NOISES.len(), number)
            }
            // Each language once, then English again; each noise twice.
            false if number < LANGUAGES.len() => (number, number, number),
            false => (0, number, number),
        };
        ProbePlan {
            language: LANGUAGES[language % LANGUAGES.len()],
            noise: NOISES[noise % NOISES.len()],
            shift: shift % DISTANCES_TOKENS.len(),
            seed: (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }

    /// The facts, and what was said before those that are corrections.
    pub fn facts(&self) -> Vec<(Probe, Option<String>)> {
        let mut random = XorShift::new(self.seed);
        // The first numbers of similar seeds are similar.
        for _ in 0..8 {
            random.next();
        }
        let kinds = FACT_KINDS.into_iter().enumerate();
        let facts = kinds.map(|(at, kind)| {
            let fact = self.language.fact(kind, &mut random);
            let speaker = match random.below(20) {
                0..14 => Speaker::User,
                14..18 => Speaker::Assistant,
                // There are no tools in plain talk.
                _ if self.noise == Noise::Chat => Speaker::Assistant,
                _ => Speaker::Tool,
            };
            let probe = Probe {
                kind,
                language: self.language,
                noise: self.noise,
                distance: DISTANCES_TOKENS[(at + self.shift) % DISTANCES_TOKENS.len()],
                speaker,
                text: fact.text,
                keys: fact.keys,
            };
            (probe, fact.earlier)
        });
        facts.collect()
    }

    /// Writes the conversation.
    pub fn generate(&self) -> ProbeConversation {
        let facts = self.facts();
        let mut writer = ConversationWriter {
            language: self.language,
            noise: self.noise,
            random: XorShift::new(self.seed ^ 0x5555),
            messages: Vec::new(),
            tokens: 0,
            calls: 0,
        };
        let most = DISTANCES_TOKENS.into_iter().max().unwrap_or(0);
        let group = facts.len().div_ceil(DISTANCES_TOKENS.len()) as u64 * GAP_TOKENS;
        let end = LEAD_TOKENS + group + CORRECTION_TOKENS + most + ROUND_TOKENS;
        let mut planned: Vec<(u64, Speaker, &str)> = Vec::new();
        let mut before = [0; DISTANCES_TOKENS.len()];
        for (probe, earlier) in &facts {
            let distance = DISTANCES_TOKENS
                .iter()
                .position(|known| *known == probe.distance);
            let before = &mut before[distance.unwrap_or(0)];
            *before += GAP_TOKENS;
            // The noise before a fact may end later than it should.
            let at = end - probe.distance - *before - ROUND_TOKENS;
            planned.push((at, probe.speaker, &probe.text));
            if let Some(earlier) = earlier {
                planned.push((at - CORRECTION_TOKENS, Speaker::User, earlier));
            }
        }
        planned.sort_by_key(|(at, ..)| *at);
        writer.begin();
        for (at, speaker, text) in planned {
            while writer.tokens < at {
                writer.round();
            }
            writer.plant(speaker, text);
        }
        while writer.tokens < end {
            writer.round();
        }
        ProbeConversation {
            session: RecordedSession {
                messages: writer.messages,
                compactions: Vec::new(),
            },
            probes: facts.into_iter().map(|(probe, _)| probe).collect(),
        }
    }
}

struct ConversationWriter {
    language: Language,
    noise: Noise,
    random: XorShift,
    messages: Vec<Vec<u8>>,
    tokens: u64,
    calls: usize,
}

impl ConversationWriter {
    fn push(&mut self, role: &str, content: Value, text: &str) {
        self.tokens += designs::count_tokens(text);
        let message = json!({"role": role, "content": content});
        self.messages.push(message.to_string().into_bytes());
    }

    fn say(&mut self, role: &str, text: &str) {
        self.push(role, json!([{"type": "text", "text": text}]), text);
    }

    fn begin(&mut self) {
        let text = self.language.ask(&mut self.random);
        self.say("user", &text);
    }

    /// One stretch of noise: a call and its result, or a question and an answer.
    fn round(&mut self) {
        match self.noise.exchange(&mut self.random) {
            Some(exchange) => {
                if self.random.below(ASK_EVERY) == 0 {
                    let text = self.request();
                    self.turn(&text);
                }
                let remark = self.language.filler(&mut self.random);
                self.call(&remark, exchange);
            }
            None => {
                let count = self.random.below(3) + 1;
                let said = self.language.fillers(count, &mut self.random);
                let asked = self.language.ask(&mut self.random);
                self.turn(&format!("{said} {asked}"));
            }
        }
    }

    /// What a user says between facts: some sentences, and now and then something pasted.
    fn request(&mut self) -> String {
        let count = self.random.below(4);
        let mut text = self.language.fillers(count, &mut self.random);
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&self.language.ask(&mut self.random));
        if self.random.below(PASTE_EVERY) == 0
            && let Some(exchange) = self.noise.exchange(&mut self.random)
        {
            let lines: Vec<&str> = exchange.result.lines().take(PASTE_LINES).collect();
            text.push_str("\n\n");
            text.push_str(&lines.join("\n"));
        }
        text
    }

    /// The assistant ends its turn, and the user says something.
    fn turn(&mut self, text: &str) {
        let count = self.random.below(5) + 2;
        let closing = self.language.fillers(count, &mut self.random);
        self.say("assistant", &closing);
        self.say("user", text);
    }

    fn call(&mut self, remark: &str, exchange: ToolExchange) {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        let input = json!({exchange.argument: exchange.value});
        let content = json!([
            {"type": "text", "text": remark},
            {"type": "tool_use", "id": id, "name": exchange.tool, "input": input},
        ]);
        self.push(
            "assistant",
            content,
            &format!("{remark}\n{}", exchange.value),
        );
        let result =
            json!([{"type": "tool_result", "tool_use_id": id, "content": exchange.result}]);
        self.push("user", result, &exchange.result);
    }

    /// Says a fact, alone or among other sentences.
    fn plant(&mut self, speaker: Speaker, fact: &str) {
        let among = self.among(fact);
        let exchange = self.noise.exchange(&mut self.random);
        match (speaker, exchange) {
            (Speaker::User, _) => self.turn(&among),
            (_, None) => {
                self.say("assistant", &among);
                let text = self.language.ask(&mut self.random);
                self.say("user", &text);
            }
            (Speaker::Assistant, Some(exchange)) => self.call(&among, exchange),
            (Speaker::Tool, Some(mut exchange)) => {
                let lines = exchange.result.lines().count();
                let mut result: Vec<&str> = exchange.result.lines().collect();
                result.insert(lines / 2, fact);
                exchange.result = result.join("\n");
                let remark = self.language.filler(&mut self.random);
                self.call(&remark, exchange);
                if let Some(next) = self.noise.exchange(&mut self.random) {
                    self.call(&among, next);
                }
            }
        }
    }

    fn among(&mut self, fact: &str) -> String {
        let before = self.random.below(3);
        let after = self.random.below(3);
        let before = self.language.fillers(before, &mut self.random);
        let after = self.language.fillers(after, &mut self.random);
        let parts = [&*before, fact, &*after];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    }
}
