//! Generated conversations, the same for the same seed, on any wire.
//!
//! A client keeps its history and sends it in full with each request, as real clients do. The replies of the
//! model are generated with it, so that a server can be scripted with them.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use infold_wire::{Reply, StopReason, Wire};
use serde_json::Value;

use crate::random::Random;

/// A conversation of one client with one model.
#[derive(Debug)]
pub struct Conversation {
    wire: Wire,
    seed: u64,
    model: String,
    max_tokens: u64,
    thinking: bool,
    alternating: bool,
    random: Random,
    /// How many ids were made. They are never used again, whatever is taken back.
    ids: u64,
    history: Vec<Value>,
    state: ConversationState,
    /// Where the user spoke next, so that the client can go back there.
    turns: Vec<(usize, ConversationState)>,
    asked: Option<OpenRequest>,
    /// Whether the client never got the reply and asks again.
    unheard: bool,
}

/// The state of a conversation.
#[derive(Clone, Debug, Default)]
struct ConversationState {
    pending: NextStep,
    /// How many further rounds of calls the model wants.
    rounds: u64,
    /// A tool of the server that has not reported: its id, and which tool it is.
    running: Option<(String, &'static str)>,
    /// Whether that tool calls the client's.
    programmatic: bool,
    /// A tool in the background: its id, and how many of the model's turns it still takes.
    background: Option<(String, u64)>,
    /// Approvals that were granted, by the id of their request.
    approved: Vec<String>,
}

/// The client's next step.
#[derive(Clone, Debug, Default)]
enum NextStep {
    /// Say something.
    #[default]
    User,
    /// Answer these calls: ids, names, and kinds where the wire has several; then these requests for approval.
    Results(Vec<ScriptedCall>, Vec<String>),
    /// Let the server continue after its pause.
    Resume,
}

#[derive(Clone, Debug)]
struct ScriptedCall {
    id: String,
    name: String,
    kind: &'static str,
}

/// A request under way.
#[derive(Clone, Debug)]
struct OpenRequest {
    /// The state before the model's turn.
    before: ConversationState,
    after: ConversationState,
    said: Vec<Value>,
    stop: StopReason,
}

/// A request, and the scripted reply of the model.
#[derive(Clone, Debug)]
pub struct ScriptedExchange {
    /// Path and query.
    pub path: String,
    /// The body.
    pub body: Vec<u8>,
    /// The reply, in the form of the wire.
    pub reply: Reply,
    /// Whether the reply is streamed.
    pub stream: bool,
}

/// The kind of a model's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Plain,
    /// Calls of the client's tools.
    Calls,
    /// A tool of the server that reports at once.
    Server,
    /// A tool of the server that the provider pauses for.
    Paused,
    /// A tool of the server in addition to one of the client's.
    Mixed,
    /// Code of the server that calls the client's tools.
    Programmatic,
    Mcp,
    /// A tool of a kind that is new, in the background.
    Background,
}

impl Conversation {
    /// Generates a conversation; `model` is the model that the client requests.
    pub fn new(wire: Wire, seed: u64, model: impl Into<String>) -> Conversation {
        let mut random = Random::new(seed.wrapping_mul(5).wrapping_add(wire as u64));
        Conversation {
            wire,
            seed,
            model: model.into(),
            max_tokens: [64, 256, 1_024][random.below(3) as usize],
            thinking: random.chance(40),
            alternating: false,
            random,
            ids: 0,
            history: Vec::new(),
            state: ConversationState::default(),
            turns: Vec::new(),
            asked: None,
            unheard: false,
        }
    }

    /// Lets user and assistant speak in turn, with nothing between: no later system message, no text beside
    /// results, no turn that is paused.
    pub fn alternating(mut self) -> Conversation {
        self.alternating = true;
        self
    }

    /// Returns the next request.
    pub fn ask(&mut self) -> ScriptedExchange {
        let again = self.asked.take().filter(|_| self.unheard);
        self.unheard = false;
        let asked = match again {
            // A retry: the model repeats its reply, or gives another one.
            Some(asked) if self.random.chance(50) => asked,
            Some(asked) => self.answered(asked.before),
            None => {
                self.speak();
                let before = self.state.clone();
                self.answered(before)
            }
        };
        let stream = self.random.chance(50);
        let body = self.body(stream).to_string().into_bytes();
        let said = asked
            .said
            .iter()
            .map(|message| message.to_string().into_bytes());
        let reply = Reply {
            messages: said.collect(),
            stop: asked.stop.clone(),
            usage: None,
            model: Some(self.model.clone()),
            id: None,
        };
        self.asked = Some(asked);
        ScriptedExchange {
            path: self.path(stream),
            body,
            reply,
            stream,
        }
    }

    /// Takes in the reply to the last request, or loses it.
    pub fn hear(&mut self) {
        if self.random.chance(4) {
            self.unheard = true;
            return;
        }
        if let Some(asked) = self.asked.take() {
            self.history.extend(asked.said);
            self.state = asked.after;
        }
        if self.random.chance(3) {
            self.regenerate();
        }
    }

    /// Drops the last reply of the model, so that it is requested again.
    fn regenerate(&mut self) {
        if let Some((len, state)) = self.turns.pop() {
            self.history.truncate(len);
            self.state = state;
        }
    }

    /// Returns the messages that the client appends before its request.
    fn speak(&mut self) {
        if matches!(self.state.pending, NextStep::User) {
            // An edit of something said before.
            if self.turns.len() > 2 && self.random.chance(5) {
                let back = 1 + self.random.below(self.turns.len() as u64 / 2);
                for _ in 0..back {
                    self.regenerate();
                }
            }
            self.turns.push((self.history.len(), self.state.clone()));
        }
        let said = match self.wire {
            Wire::Anthropic => self.anthropic_client(),
            Wire::Chat => self.chat_client(),
            Wire::Responses => self.responses_client(),
            Wire::Gemini => self.gemini_client(),
            Wire::Ollama => self.ollama_client(),
        };
        self.history.extend(said);
    }

    /// Returns the model's answer in this state.
    fn answered(&mut self, before: ConversationState) -> OpenRequest {
        self.state = before.clone();
        self.state.pending = NextStep::User;
        let (said, stop) = match self.wire {
            Wire::Anthropic => self.anthropic_model(),
            Wire::Chat => self.chat_model(),
            Wire::Responses => self.responses_model(),
            Wire::Gemini => self.gemini_model(),
            Wire::Ollama => self.ollama_model(),
        };
        let after = std::mem::replace(&mut self.state, before.clone());
        OpenRequest {
            before,
            after,
            said,
            stop,
        }
    }

    /// Chooses the kind of the model's next turn. A loop of calls is finished first.
    fn shape(&mut self) -> Shape {
        if self.state.rounds > 0 {
            self.state.rounds -= 1;
            return Shape::Calls;
        }
        let dice = self.random.below(100);
        match dice {
            0..35 => Shape::Plain,
            35..60 => {
                // Most loops are short, some are very long.
                let most = [2, 5, 30][self.random.below(3) as usize];
                self.state.rounds = self.random.below(most);
                Shape::Calls
            }
            60..70 => Shape::Server,
            70..77 if self.alternating => Shape::Plain,
            70..77 => Shape::Paused,
            77..83 => Shape::Mixed,
            83..89 => Shape::Programmatic,
            89..95 => Shape::Mcp,
            _ => Shape::Background,
        }
    }

    /// Returns the id of the tool in the background if it reports now.
    fn reports(&mut self) -> Option<String> {
        let (id, left) = self.state.background.take()?;
        if left == 0 {
            return Some(id);
        }
        self.state.background = Some((id, left - 1));
        None
    }

    /// Starts a tool in the background, unless one is running.
    fn start_background(&mut self, prefix: &str) -> Option<String> {
        if self.state.background.is_some() {
            return None;
        }
        let id = self.id(prefix);
        self.state.background = Some((id.clone(), self.random.below(2)));
        Some(id)
    }

    /// Returns a unique id.
    fn id(&mut self, prefix: &str) -> String {
        self.ids += 1;
        format!("{prefix}_{}x{}", self.seed, self.ids)
    }

    /// Returns some words, usually few.
    fn words(&mut self) -> String {
        let most = [12, 40, 160][self.random.below(3) as usize];
        self.text(most)
    }

    fn text(&mut self, most: u64) -> String {
        let count = 2 + self.random.below(most);
        let mut text = format!("({}.{})", self.seed, self.ids);
        self.ids += 1;
        for _ in 0..count {
            text.push(' ');
            text.push_str(self.random.word());
        }
        text
    }

    /// Returns a tool's output, which is sometimes very long.
    fn output(&mut self) -> String {
        match self.random.below(20) {
            0 => self.text(2_000),
            1 => self.text(700),
            _ => self.words(),
        }
    }

    /// Returns at random whether the client adds something that it need not say.
    fn adds(&mut self, percent: u64) -> bool {
        self.random.chance(percent) && !self.alternating
    }

    /// Returns the number of calls that are made at once.
    fn width(&mut self) -> u64 {
        if self.random.chance(40) {
            2 + self.random.below(3)
        } else {
            1
        }
    }

    fn tool(&mut self) -> String {
        let tools = ["read_file", "run_command", "search"];
        tools[self.random.below(3) as usize].to_owned()
    }

    fn path(&self, stream: bool) -> String {
        match (self.wire, stream) {
            (Wire::Chat, _) => "/v1/chat/completions".to_owned(),
            (Wire::Responses, _) => "/v1/responses".to_owned(),
            (Wire::Anthropic, _) => "/v1/messages".to_owned(),
            (Wire::Ollama, _) => "/api/chat".to_owned(),
            (Wire::Gemini, false) => format!("/v1beta/models/{}:generateContent", self.model),
            (Wire::Gemini, true) => {
                format!(
                    "/v1beta/models/{}:streamGenerateContent?alt=sse",
                    self.model
                )
            }
        }
    }

    fn body(&mut self, stream: bool) -> Value {
        match self.wire {
            Wire::Chat => self.chat_body(stream),
            Wire::Responses => self.responses_body(stream),
            Wire::Anthropic => self.anthropic_body(stream),
            Wire::Gemini => self.gemini_body(),
            Wire::Ollama => self.ollama_body(stream),
        }
    }
}

/// The smallest picture there is.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
