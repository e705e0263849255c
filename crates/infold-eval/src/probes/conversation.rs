//! Writes a conversation: noise, and facts at their distances from the end.

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
/// Tokens between a sentence and its correction.
const CORRECTION_TOKENS: u64 = 1_500;
/// More tokens than one exchange of noise has.
const MAX_ROUND_TOKENS: u64 = 3_000;
/// The number of conversations in a sample.
const SAMPLE_CONVERSATIONS: usize = 14;
/// The user speaks before one in this many calls.
const REQUEST_EVERY_CALLS: usize = 4;
/// The user pastes something into one in this many messages.
const PASTE_EVERY_MESSAGES: usize = 6;
/// The number of lines that are pasted.
const PASTE_LINES: usize = 14;

/// The plan of one conversation.
pub struct ProbePlan {
    language: Language,
    noise: Noise,
    /// The index of the distance of the first kind; the others follow in turn.
    shift: usize,
    seed: u64,
}

impl ProbePlan {
    /// Returns the number of plans.
    pub fn count(all: bool) -> usize {
        if all {
            LANGUAGES.len() * NOISES.len() * DISTANCES_TOKENS.len()
        } else {
            SAMPLE_CONVERSATIONS
        }
    }

    /// Returns the plan with a number.
    pub fn new(number: usize, all: bool) -> ProbePlan {
        let pair = number / DISTANCES_TOKENS.len();
        let (language, noise) = if all {
            (pair / NOISES.len(), pair % NOISES.len())
        } else if number < LANGUAGES.len() {
            // A sample has each language once, then English again, and each noise twice.
            (number, number)
        } else {
            (0, number)
        };
        ProbePlan {
            language: LANGUAGES[language % LANGUAGES.len()],
            noise: NOISES[noise % NOISES.len()],
            shift: number % DISTANCES_TOKENS.len(),
            seed: (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }

    /// Returns the facts, and the sentences that corrections correct.
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
                // Chats have no tools.
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
        let end = LEAD_TOKENS + group + CORRECTION_TOKENS + most + MAX_ROUND_TOKENS;
        let mut planned: Vec<(u64, Speaker, &str)> = Vec::new();
        let mut before = [0; DISTANCES_TOKENS.len()];
        for (probe, earlier) in &facts {
            let distance = DISTANCES_TOKENS
                .iter()
                .position(|known| *known == probe.distance);
            let before = &mut before[distance.unwrap_or(0)];
            *before += GAP_TOKENS;
            // The noise before a fact may end later than planned.
            let at = end - probe.distance - *before - MAX_ROUND_TOKENS;
            planned.push((at, probe.speaker, &probe.text));
            if let Some(earlier) = earlier {
                planned.push((at - CORRECTION_TOKENS, Speaker::User, earlier));
            }
        }
        planned.sort_by_key(|(at, ..)| *at);
        writer.say_request();
        for (at, speaker, text) in planned {
            while writer.tokens < at {
                writer.write_noise();
            }
            writer.plant(speaker, text);
        }
        while writer.tokens < end {
            writer.write_noise();
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

    fn say_request(&mut self) {
        let text = self.language.request(&mut self.random);
        self.say("user", &text);
    }

    /// Writes one exchange of noise: a call and its result, or a question and an answer.
    fn write_noise(&mut self) {
        match self.noise.exchange(&mut self.random) {
            Some(exchange) => {
                if self.random.below(REQUEST_EVERY_CALLS) == 0 {
                    let text = self.long_request();
                    self.start_turn(&text);
                }
                let remark = self.language.filler(&mut self.random);
                self.call(&remark, exchange);
            }
            None => {
                let count = self.random.below(3) + 1;
                let said = self.language.fillers(count, &mut self.random);
                let asked = self.language.request(&mut self.random);
                self.start_turn(&format!("{said} {asked}"));
            }
        }
    }

    /// Returns a message of the user between facts: some sentences, and sometimes pasted text.
    fn long_request(&mut self) -> String {
        let count = self.random.below(4);
        let mut text = self.language.fillers(count, &mut self.random);
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&self.language.request(&mut self.random));
        if self.random.below(PASTE_EVERY_MESSAGES) == 0
            && let Some(exchange) = self.noise.exchange(&mut self.random)
        {
            let lines: Vec<&str> = exchange.result.lines().take(PASTE_LINES).collect();
            text.push_str("\n\n");
            text.push_str(&lines.join("\n"));
        }
        text
    }

    /// Ends the assistant's turn, and starts the next one with the user's text.
    fn start_turn(&mut self, text: &str) {
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
        let among = self.surround(fact);
        let exchange = self.noise.exchange(&mut self.random);
        match (speaker, exchange) {
            (Speaker::User, _) => self.start_turn(&among),
            (_, None) => {
                self.say("assistant", &among);
                self.say_request();
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

    /// Puts a fact among other sentences.
    fn surround(&mut self, fact: &str) -> String {
        let before = self.random.below(3);
        let after = self.random.below(3);
        let before = self.language.fillers(before, &mut self.random);
        let after = self.language.fillers(after, &mut self.random);
        let parts = [&*before, fact, &*after];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    }
}
