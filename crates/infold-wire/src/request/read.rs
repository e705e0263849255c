//! A request of one wire as a request of another.
//!
//! ```
//! use infold_wire::Wire;
//! use infold_wire::request::read::{Aim, translate};
//!
//! let body = br#"{"model":"m","max_tokens":9,"system":"be brief","messages":[{"role":"user","content":"hello"}]}"#;
//! let told = translate(Wire::Anthropic, body, &Aim::new(Wire::Chat))?;
//! let sent = r#"{"model":"m","stream":false,"max_tokens":9,"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}]}"#;
//! assert_eq!(String::from_utf8_lossy(&told.body), sent);
//! # Ok::<(), infold_wire::request::read::ReadError>(())
//! ```

use std::collections::BTreeSet;

use infold_log::Role;

use super::parameters::Carried;
use super::{Frame, system_texts, unmarked};
use crate::envelope::{Envelope, EnvelopeError};
use crate::params::Params;
use crate::tokens::{Encoding, count, message};
use crate::tools::{self, Choice};
use crate::{Converter, Json, Kind, Message, MessageError, Wire, render_text};

/// What a request is to become.
#[derive(Clone, Debug)]
pub struct Aim {
    /// The wire that it goes to.
    pub to: Wire,
    /// The model, where it is not the one that the request names.
    pub model: Option<String>,
    /// Whether the reply is to stream, where the body does not say so.
    pub stream: Option<bool>,
    /// The window that a server is to load the model with.
    pub window: Option<u64>,
    /// It goes to OpenAI itself.
    pub official: bool,
}

impl Aim {
    /// To this wire, with nothing else to be said.
    pub fn new(to: Wire) -> Aim {
        Aim {
            to,
            model: None,
            stream: None,
            window: None,
            official: false,
        }
    }
}

/// A request of another wire.
#[derive(Clone, Debug)]
pub struct Translated {
    /// What is sent.
    pub body: Vec<u8>,
    /// What stands around its messages.
    pub frame: Frame,
    /// What the request names as its model.
    pub model: String,
    /// The client of a chat asks for usage at the end of the stream.
    pub wants_usage: bool,
    /// What could not be carried over.
    pub lost: BTreeSet<String>,
}

/// Why a request cannot be one of another wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is none.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// A member is no JSON.
    #[error("\"{0}\" is not JSON")]
    Member(String),
    /// A message is none.
    #[error("message {number} of the request: {error}")]
    Message {
        /// Which one, counted from one.
        number: usize,
        /// What is wrong with it.
        error: MessageError,
    },
    /// Its tools are none.
    #[error(transparent)]
    Tools(#[from] tools::ToolsError),
    /// It goes on from what another service keeps.
    #[error("`{0}` names what this provider does not keep: send the whole conversation instead")]
    Kept(String),
}

/// Puts a request into the form of another wire. What that has no words for is left out, and said.
pub fn translate(from: Wire, body: &[u8], aim: &Aim) -> Result<Translated, ReadError> {
    let mut asked = Asked::read(from, body)?;
    let (frame, system) = asked.frame(aim)?;
    let mut out = frame.head().into_bytes();
    let mut first = true;
    let mut add = |bytes: &[u8]| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        out.extend_from_slice(bytes);
    };
    system.iter().for_each(|message| add(message));
    let mut converter = Converter::new(aim.to);
    if asked.envelope.is_text {
        let text = Json::checked(asked.part(&asked.envelope.list)).text();
        let text = text.unwrap_or_default();
        add(&render_text(aim.to, Role::User, &text));
    }
    let messages = asked.envelope.messages.iter().enumerate();
    for (at, range) in messages.skip(asked.envelope.leading) {
        let bytes = asked.part(range);
        // Marks for a cache are for the provider that they were made for.
        let plain = (from == Wire::Anthropic).then(|| unmarked(bytes)).flatten();
        let pushed = converter.push(plain.as_deref().unwrap_or(bytes), &mut add);
        pushed.map_err(|error| ReadError::Message {
            number: at + 1,
            error,
        })?;
    }
    converter.finish(&mut add);
    out.extend_from_slice(Frame::TAIL.as_bytes());
    let changed = converter.lost().keys().map(|what| (*what).to_owned());
    asked.lost.extend(changed);
    Ok(Translated {
        body: out,
        frame,
        model: asked.params.model.clone().unwrap_or_default(),
        wants_usage: asked.wants_usage(),
        lost: asked.lost,
    })
}

/// How many tokens a request has, as they are counted here.
pub fn tokens(from: Wire, body: &[u8]) -> Result<u64, ReadError> {
    // Gemini counts a whole request, or its contents alone.
    let inner = Json::parse(body).ok();
    let inner = inner.and_then(|json| json.get("generateContentRequest"));
    let body = inner.map_or(body, Json::bytes);
    let asked = Asked::read(from, body)?;
    let text = |bytes: &[u8]| count(Encoding::O200k, &String::from_utf8_lossy(bytes));
    let names = [
        "system",
        "instructions",
        "systemInstruction",
        "system_instruction",
        "tools",
    ];
    let beside = names.iter().filter_map(|name| asked.member(&[name]));
    let beside: u64 = beside.map(|json| text(json.bytes())).sum();
    let said = asked.envelope.messages.iter().map(|range| {
        let bytes = asked.part(range);
        Message::parse(bytes).map_or_else(|_| text(bytes), |said| message(&said))
    });
    let alone = match asked.envelope.is_text {
        true => text(asked.part(&asked.envelope.list)),
        false => 0,
    };
    Ok(beside + said.sum::<u64>() + alone)
}

/// A request, found its way through.
struct Asked<'a> {
    from: Wire,
    body: &'a [u8],
    envelope: Envelope,
    params: Params,
    lost: BTreeSet<String>,
}

impl<'a> Asked<'a> {
    fn read(from: Wire, body: &'a [u8]) -> Result<Asked<'a>, ReadError> {
        let envelope = Envelope::of(from, body)?;
        let part = |range: &std::ops::Range<u64>| &body[range.start as usize..range.end as usize];
        for (name, range) in &envelope.members {
            if Json::parse(part(range)).is_err() {
                return Err(ReadError::Member(name.clone()));
            }
        }
        let params = Params::read(from, &mut |name| {
            envelope.member(name).map(|range| part(&range).to_vec())
        });
        if params.previous.is_some() {
            let named = ["previous_response_id", "conversation"];
            let name = named
                .into_iter()
                .find(|name| envelope.member(name).is_some());
            return Err(ReadError::Kept(name.unwrap_or_default().to_owned()));
        }
        Ok(Asked {
            from,
            body,
            envelope,
            params,
            lost: BTreeSet::new(),
        })
    }

    fn part(&self, range: &std::ops::Range<u64>) -> &'a [u8] {
        &self.body[range.start as usize..range.end as usize]
    }

    /// The value of a member that has one, by any of its names.
    fn member(&self, names: &[&str]) -> Option<Json<'a>> {
        let found = names.iter().find_map(|name| self.envelope.member(name));
        let json = Json::checked(self.part(&found?));
        (!json.is_null()).then_some(json)
    }

    /// A setting: a member, or on some wires one of an object of settings.
    fn setting(&self, name: &str) -> Option<Json<'a>> {
        let within = match self.from {
            Wire::Gemini => self.member(&["generationConfig", "generation_config"])?,
            Wire::Ollama => self.member(&["options"])?,
            _ => return self.member(&[name]),
        };
        within.get(name).filter(|json| !json.is_null())
    }

    fn wants_usage(&self) -> bool {
        let options = self.member(&["stream_options"]);
        options
            .and_then(|it| it.get("include_usage"))
            .is_some_and(Json::is_true)
    }

    /// What stands around the messages, and system messages where those are messages.
    fn frame(&mut self, aim: &Aim) -> Result<(Frame, Vec<Vec<u8>>), ReadError> {
        let to = aim.to;
        let named = self.params.model.clone().unwrap_or_default();
        let mut frame = Frame {
            stream: aim.stream.unwrap_or(self.params.stream),
            max_tokens: self.params.max_tokens,
            window: self.params.num_ctx.or(aim.window),
            official: aim.official,
            // Its own provider's client asks for it where it wants it.
            cache: false,
            ..Frame::new(to, aim.model.as_deref().unwrap_or(&named))
        };
        frame.temperature = self.setting("temperature").and_then(Json::number);
        if to == Wire::Anthropic {
            frame.temperature = frame.temperature.map(|it| it.min(1.0));
        }
        let members = self.envelope.members.iter();
        let members = members.map(|(name, at)| (name.as_str(), Json::checked(self.part(at))));
        let carried = Carried::new([self.from, to], aim.official, members);
        frame.settings = carried.settings;
        self.lost.extend(carried.lost);
        if to == Wire::Anthropic && frame.temperature.is_some() {
            // Its newer models take one of the two.
            let chosen = frame.settings.iter().position(|(name, _)| *name == "top_p");
            if let Some(at) = chosen {
                frame.settings.remove(at);
                let name = match self.from {
                    Wire::Gemini => "topP",
                    _ => "top_p",
                };
                self.lost.insert(name.to_owned());
            }
        }
        self.tools(&mut frame)?;
        let texts = self.system();
        let mut messages = Vec::new();
        match to.system_apart() {
            true => frame.system = texts,
            false if texts.is_empty() => {}
            // Some take no more than one, and only as the first.
            false => {
                let inner = texts.iter().map(|text| &text[1..text.len() - 1]);
                let text = inner.collect::<Vec<_>>().join("\\n\\n");
                let role = match to {
                    Wire::Responses => "developer",
                    _ => "system",
                };
                let message = format!(r#"{{"role":"{role}","content":"{text}"}}"#);
                messages.push(message.into_bytes());
            }
        }
        Ok((frame, messages))
    }

    /// The texts of the system prompt, as JSON strings.
    fn system(&self) -> Vec<String> {
        let names = [
            "system",
            "instructions",
            "systemInstruction",
            "system_instruction",
        ];
        let apart = self.member(&names).map(|json| {
            let json = json.get("parts").unwrap_or(json);
            let texts = strings(json).into_iter();
            texts.filter(|text| !Json::checked(text.as_bytes()).is_blank())
        });
        let leading = &self.envelope.messages[..self.envelope.leading];
        let leading = leading
            .iter()
            .filter_map(|range| Message::parse(self.part(range)).ok());
        let leading = leading.flat_map(|message| system_texts(&message));
        apart.into_iter().flatten().chain(leading).collect()
    }

    fn tools(&mut self, frame: &mut Frame) -> Result<(), ReadError> {
        let list = self.member(&["tools"]);
        if let Some(list) = list {
            let carried = tools::carried(list, frame.wire)?;
            let names = carried.left_out.into_iter();
            self.lost.extend(names.map(|name| format!("tool {name}")));
            let members = carried.members.into_iter();
            self.lost
                .extend(members.map(|name| format!("tools.{name}")));
            frame.tools = (carried.tools != "[]").then_some(carried.tools);
        }
        if frame.tools.is_none() {
            // Nobody takes it without tools, and it says nothing.
            frame
                .settings
                .retain(|(name, _)| *name != "parallel_tool_calls");
            return Ok(());
        }
        let given = self.member(&["tool_choice", "toolConfig", "tool_config"]);
        let choice = given.and_then(choice);
        match (choice, frame.wire) {
            (None, _) if given.is_some() => drop(self.lost.insert("tool_choice".to_owned())),
            (None | Some(Choice::Auto), Wire::Ollama) | (None, _) => {}
            // A model that is shown no tools calls none.
            (Some(Choice::None), Wire::Ollama) => frame.tools = None,
            (Some(_), Wire::Ollama) => drop(self.lost.insert("tool_choice".to_owned())),
            (Some(choice), to) => frame.tool_choice = Some(tools::tool_choice(choice, to)),
        }
        if self.calls_one_at_a_time() {
            self.limit_calls(frame);
        }
        Ok(())
    }

    /// The model is to call no more than one tool at a time.
    fn calls_one_at_a_time(&self) -> bool {
        if self.from == Wire::Anthropic {
            let choice = self.member(&["tool_choice"]);
            let limit = choice.and_then(|choice| choice.get("disable_parallel_tool_use"));
            return limit.is_some_and(Json::is_true);
        }
        let parallel = self.member(&["parallel_tool_calls"]);
        parallel.is_some_and(|parallel| parallel.bytes() == b"false")
    }

    fn limit_calls(&mut self, frame: &mut Frame) {
        const NAME: &str = "parallel_tool_calls";
        match frame.wire {
            Wire::Anthropic => {
                let spelled = |choice| tools::tool_choice(choice, Wire::Anthropic);
                let choice = frame.tool_choice.take();
                let mut choice = choice.unwrap_or_else(|| spelled(Choice::Auto));
                // Who may call none needs no limit, and it is not taken there.
                if choice != spelled(Choice::None) && choice.pop().is_some() {
                    choice.push_str(r#","disable_parallel_tool_use":true}"#);
                }
                frame.tool_choice = Some(choice);
            }
            Wire::Chat | Wire::Responses => {
                if !frame.settings.iter().any(|(name, _)| *name == NAME) {
                    frame.settings.push((NAME, "false".to_owned()));
                }
            }
            Wire::Gemini | Wire::Ollama => {
                let limit = match self.from {
                    Wire::Anthropic => "tool_choice.disable_parallel_tool_use",
                    _ => NAME,
                };
                self.lost.insert(limit.to_owned());
            }
        }
    }
}

/// A text, the texts of a list, or those of its blocks, as JSON strings.
pub(super) fn strings(json: Json<'_>) -> Vec<String> {
    let raw = |json: Json<'_>| String::from_utf8_lossy(json.bytes()).into_owned();
    let text = |json: Json<'_>| match json.kind() {
        Kind::String => Some(raw(json)),
        _ => json
            .get("text")
            .filter(|text| text.kind() == Kind::String)
            .map(raw),
    };
    match json.kind() {
        Kind::Array => json.elements().filter_map(text).collect(),
        _ => text(json).into_iter().collect(),
    }
}

/// What a request says of which tool to call; nothing if no other wire could say it.
fn choice(json: Json<'_>) -> Option<Choice> {
    if let Some(config) = json
        .get("functionCallingConfig")
        .or_else(|| json.get("function_calling_config"))
    {
        let names = config
            .get("allowedFunctionNames")
            .or_else(|| config.get("allowed_function_names"));
        let mut names = names
            .into_iter()
            .flat_map(Json::elements)
            .filter_map(Json::text);
        let mode = config.get("mode").and_then(Json::text)?;
        return Some(
            match (&*mode.to_ascii_uppercase(), names.next(), names.next()) {
                ("AUTO" | "MODE_UNSPECIFIED", None, _) => Choice::Auto,
                ("NONE", ..) => Choice::None,
                ("ANY", None, _) => Choice::Any,
                ("ANY", Some(name), None) => Choice::Named(name.into_owned()),
                _ => return None,
            },
        );
    }
    if let Some(word) = json.text() {
        return match &*word {
            "auto" => Some(Choice::Auto),
            "none" => Some(Choice::None),
            "required" => Some(Choice::Any),
            _ => None,
        };
    }
    let [kind, name, function] = json.pick(["type", "name", "function"]);
    let name = name.or_else(|| function?.get("name")).and_then(Json::text);
    match (&*kind?.text()?, name) {
        ("auto", _) => Some(Choice::Auto),
        ("none", _) => Some(Choice::None),
        ("any", _) => Some(Choice::Any),
        ("tool" | "function", Some(name)) => Some(Choice::Named(name.into_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same request on every wire.
    const ASKED: [(Wire, &str); 5] = [
        (
            Wire::Chat,
            r#"{"model":"m","stream":true,"max_tokens":9,"temperature":1.5,"top_p":0.5,"stop":"end","tools":[{"type":"function","function":{"name":"ls","parameters":{"type":"object","properties":{}}}}],"tool_choice":"required","seed":7,"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}]}"#,
        ),
        (
            Wire::Responses,
            r#"{"model":"m","stream":true,"max_output_tokens":9,"temperature":1.5,"top_p":0.5,"instructions":"be brief","store":false,"tools":[{"type":"function","name":"ls","parameters":{"type":"object","properties":{}},"strict":false},{"type":"web_search"}],"tool_choice":"required","reasoning":{"effort":"low"},"input":"hello"}"#,
        ),
        (
            Wire::Anthropic,
            r#"{"model":"m","stream":true,"max_tokens":9,"temperature":1.0,"top_p":0.5,"stop_sequences":["end"],"system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"ls","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"any"},"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":[{"type":"text","text":"hello","cache_control":{"type":"ephemeral"}}]}]}"#,
        ),
        (
            Wire::Gemini,
            r#"{"systemInstruction":{"parts":[{"text":"be brief"}]},"generationConfig":{"maxOutputTokens":9,"temperature":1.5,"topP":0.5,"stopSequences":["end"],"topK":4},"tools":[{"functionDeclarations":[{"name":"ls","parameters":{"type":"OBJECT","properties":{}}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"contents":[{"role":"user","parts":[{"text":"hello"}]}]}"#,
        ),
        (
            Wire::Ollama,
            r#"{"model":"m","options":{"num_predict":9,"temperature":1.5,"top_p":0.5,"stop":["end"],"num_ctx":4096,"mirostat":1},"tools":[{"type":"function","function":{"name":"ls","parameters":{"type":"object","properties":{}}}}],"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}]}"#,
        ),
    ];

    fn shown(from: Wire, body: &str, to: Wire) -> String {
        let aim = Aim {
            model: Some("theirs".to_owned()),
            stream: (from == Wire::Gemini).then_some(true),
            ..Aim::new(to)
        };
        let told = translate(from, body.as_bytes(), &aim).expect("it can be told");
        assert!(Json::parse(&told.body).is_ok());
        let lost: Vec<&str> = told.lost.iter().map(String::as_str).collect();
        format!(
            "{from} to {to}: {} | {}",
            String::from_utf8_lossy(&told.body),
            lost.join(", ")
        )
    }

    #[test]
    fn a_request_asks_the_same_on_another_wire() {
        let mut all = Vec::new();
        for (from, body) in ASKED {
            let to = match from {
                Wire::Chat => Wire::Anthropic,
                _ => Wire::Chat,
            };
            all.push(shown(from, body, to));
        }
        for to in [Wire::Responses, Wire::Gemini, Wire::Ollama] {
            all.push(shown(Wire::Anthropic, ASKED[2].1, to));
        }
        insta::assert_snapshot!(all.join("\n"), @r#"
        chat to anthropic: {"model":"theirs","stream":true,"max_tokens":9,"temperature":1,"stop_sequences":["end"],"system":[{"type":"text","text":"be brief"}],"tools":[{"name":"ls","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"any"},"messages":[{"role":"user","content":"hello"}]} | seed, top_p
        responses to chat: {"model":"theirs","stream":true,"max_tokens":9,"temperature":1.5,"top_p":0.5,"reasoning_effort":"low","stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"ls","parameters":{"type":"object","properties":{}}}}],"tool_choice":"required","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}]} | tool `web_search`
        anthropic to chat: {"model":"theirs","stream":true,"max_tokens":9,"temperature":1,"top_p":0.5,"stop":["end"],"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"ls","parameters":{"type":"object","properties":{}}}}],"tool_choice":"required","messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"hello"}]}]} | thinking
        gemini to chat: {"model":"theirs","stream":true,"max_tokens":9,"temperature":1.5,"top_p":0.5,"stop":["end"],"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"ls","parameters":{"type":"object","properties":{}}}}],"tool_choice":"required","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}]} | topK
        ollama to chat: {"model":"theirs","stream":true,"max_tokens":9,"temperature":1.5,"top_p":0.5,"stop":["end"],"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"ls","parameters":{"type":"object","properties":{}}}}],"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}]} | mirostat, num_ctx
        anthropic to responses: {"model":"theirs","stream":true,"max_output_tokens":9,"temperature":1,"top_p":0.5,"store":false,"tools":[{"type":"function","name":"ls","parameters":{"type":"object","properties":{}},"strict":false}],"tool_choice":"required","input":[{"role":"developer","content":"be brief"},{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}]} | stop_sequences, thinking
        anthropic to gemini: {"systemInstruction":{"parts":[{"text":"be brief"}]},"generationConfig":{"maxOutputTokens":9,"temperature":1,"topP":0.5,"stopSequences":["end"]},"tools":[{"functionDeclarations":[{"name":"ls","parametersJsonSchema":{"type":"object","properties":{}}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"contents":[{"role":"user","parts":[{"text":"hello"}]}]} | thinking
        anthropic to ollama: {"model":"theirs","stream":true,"options":{"num_predict":9,"temperature":1,"top_p":0.5,"stop":["end"]},"tools":[{"type":"function","function":{"name":"ls","parameters":{"type":"object","properties":{}}}}],"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}]} | thinking, tool_choice
        "#);
    }

    #[test]
    fn what_another_service_keeps_cannot_be_told() {
        let body = br#"{"model":"m","previous_response_id":"resp_1","input":[]}"#;
        let error = translate(Wire::Responses, body, &Aim::new(Wire::Chat)).unwrap_err();
        insta::assert_snapshot!(error, @"`previous_response_id` names what this provider does not keep: send the whole conversation instead");
    }

    #[test]
    fn a_choice_that_no_other_wire_has_is_left_out() {
        let of = |text: &str| choice(Json::parse(text.as_bytes()).unwrap());
        assert_eq!(of(r#""auto""#), Some(Choice::Auto));
        assert_eq!(
            of(r#"{"type":"allowed_tools","mode":"auto","tools":[]}"#),
            None
        );
        assert_eq!(
            of(r#"{"type":"function","function":{"name":"ls"}}"#),
            Some(Choice::Named("ls".to_owned()))
        );
        assert_eq!(
            of(r#"{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["ls"]}}"#),
            Some(Choice::Named("ls".to_owned()))
        );
    }
}
