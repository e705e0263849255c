//! Translates a request of one wire into a request of another.
//!
//! ```
//! use infold_wire::Wire;
//! use infold_translate::{TranslateTarget, translate};
//!
//! let body = br#"{"model":"m","max_tokens":9,"system":"be brief","messages":[{"role":"user","content":"hello"}]}"#;
//! let translated = translate(Wire::Anthropic, body, &TranslateTarget::new(Wire::Chat))?;
//! let sent = r#"{"model":"m","stream":false,"max_tokens":9,"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}]}"#;
//! assert_eq!(String::from_utf8_lossy(&translated.body), sent);
//! # Ok::<(), infold_translate::TranslateError>(())
//! ```

mod parameters;
mod reply_format;

use std::collections::BTreeSet;

use infold_log::Role;

use infold_wire::envelope::{Envelope, EnvelopeError};
use infold_wire::request::{RequestFrame, remove_cache_markers, strings, system_texts};
use infold_wire::request_options::RequestOptions;
use infold_wire::tokens::{Encoding, count, message};
use infold_wire::tools::{self, ToolChoice};
use infold_wire::{Converter, Json, Message, MessageError, Wire, render_text};

use parameters::CarriedParameters;

/// The request that another one is translated into.
#[derive(Clone, Debug)]
pub struct TranslateTarget {
    /// The target's wire.
    pub to: Wire,
    /// The target's model, if not the one that the request names.
    pub model: Option<String>,
    /// Whether the reply is streamed, if the body does not say so.
    pub stream: Option<bool>,
    /// The window with which a server is to load the model.
    pub window: Option<u64>,
    /// Whether the target is OpenAI itself.
    pub official: bool,
}

impl TranslateTarget {
    /// Returns a target of this wire without further settings.
    pub fn new(to: Wire) -> TranslateTarget {
        TranslateTarget {
            to,
            model: None,
            stream: None,
            window: None,
            official: false,
        }
    }
}

/// A request that was translated.
#[derive(Clone, Debug)]
pub struct TranslatedRequest {
    /// The request's body.
    pub body: Vec<u8>,
    /// The request without its messages.
    pub frame: RequestFrame,
    /// The model that the original names.
    pub model: String,
    /// Whether the client of a chat asks for usage at the end of the stream.
    pub wants_usage: bool,
    /// The parameters and contents that could not be carried over.
    pub lost: BTreeSet<String>,
}

/// The reason that a request cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranslateError {
    /// The body is no request.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// A member is not JSON.
    #[error("\"{0}\" is not JSON")]
    Member(String),
    /// A message is malformed.
    #[error("message {number} of the request: {error}")]
    Message {
        /// The message's number, counted from one.
        number: usize,
        /// The message's error.
        error: MessageError,
    },
    /// The tools are malformed.
    #[error(transparent)]
    Tools(#[from] tools::ToolsError),
    /// The request refers to a conversation that another service stores.
    #[error(
        "`{0}` refers to a conversation that this provider does not store: send the whole conversation instead"
    )]
    StoredElsewhere(String),
}

/// Translates a request. Features that the other wire lacks are left out, and reported.
pub fn translate(
    from: Wire,
    body: &[u8],
    target: &TranslateTarget,
) -> Result<TranslatedRequest, TranslateError> {
    let mut request = SourceRequest::read(from, body)?;
    let (frame, system) = request.frame(target)?;
    let mut out = frame.head().into_bytes();
    let mut first = true;
    let mut add = |bytes: &[u8]| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        out.extend_from_slice(bytes);
    };
    system.iter().for_each(|message| add(message));
    let mut converter = Converter::new(target.to);
    if request.envelope.is_text {
        let text = Json::checked(request.part(&request.envelope.list)).text();
        let text = text.unwrap_or_default();
        add(&render_text(target.to, Role::User, &text));
    }
    let messages = request.envelope.messages.iter().enumerate();
    for (at, range) in messages.skip(request.envelope.leading) {
        let bytes = request.part(range);
        // Cache markers are for the original provider.
        let plain = (from == Wire::Anthropic)
            .then(|| remove_cache_markers(bytes))
            .flatten();
        let pushed = converter.push(plain.as_deref().unwrap_or(bytes), &mut add);
        pushed.map_err(|error| TranslateError::Message {
            number: at + 1,
            error,
        })?;
    }
    converter.finish(&mut add);
    out.extend_from_slice(RequestFrame::TAIL.as_bytes());
    let changed = converter.losses().keys().map(|name| (*name).to_owned());
    request.lost.extend(changed);
    Ok(TranslatedRequest {
        body: out,
        frame,
        model: request.params.model.clone().unwrap_or_default(),
        wants_usage: request.wants_usage(),
        lost: request.lost,
    })
}

/// Counts the tokens of a request with our own tokenizer.
pub fn count_tokens(from: Wire, body: &[u8]) -> Result<u64, TranslateError> {
    // Gemini counts a whole request, or its contents alone.
    let inner = Json::parse(body).ok();
    let inner = inner.and_then(|json| json.get("generateContentRequest"));
    let body = inner.map_or(body, Json::bytes);
    let request = SourceRequest::read(from, body)?;
    let text = |bytes: &[u8]| count(Encoding::O200k, &String::from_utf8_lossy(bytes));
    let names = SYSTEM_NAMES.iter().chain(&["tools"]);
    let beside = names.filter_map(|name| request.member(&[name]));
    let beside: u64 = beside.map(|json| text(json.bytes())).sum();
    let messages = request.envelope.messages.iter().map(|range| {
        let bytes = request.part(range);
        Message::parse(bytes).map_or_else(|_| text(bytes), |parsed| message(&parsed))
    });
    let alone = if request.envelope.is_text {
        text(request.part(&request.envelope.list))
    } else {
        0
    };
    Ok(beside + messages.sum::<u64>() + alone)
}

/// The members that may hold a system prompt.
const SYSTEM_NAMES: [&str; 4] = [
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
];

/// The request to be translated.
struct SourceRequest<'a> {
    from: Wire,
    body: &'a [u8],
    envelope: Envelope,
    params: RequestOptions,
    lost: BTreeSet<String>,
}

impl<'a> SourceRequest<'a> {
    fn read(from: Wire, body: &'a [u8]) -> Result<SourceRequest<'a>, TranslateError> {
        let envelope = Envelope::of(from, body)?;
        let part = |range: &std::ops::Range<u64>| &body[range.start as usize..range.end as usize];
        for (name, range) in &envelope.members {
            if Json::parse(part(range)).is_err() {
                return Err(TranslateError::Member(name.clone()));
            }
        }
        let params = RequestOptions::read(from, &mut |name| {
            envelope.member(name).map(|range| part(&range).to_vec())
        });
        if params.previous.is_some() {
            let named = ["previous_response_id", "conversation"];
            let name = named
                .into_iter()
                .find(|name| envelope.member(name).is_some());
            return Err(TranslateError::StoredElsewhere(
                name.unwrap_or_default().to_owned(),
            ));
        }
        Ok(SourceRequest {
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

    /// Returns the value of a member that is not null, by any of its names.
    fn member(&self, names: &[&str]) -> Option<Json<'a>> {
        let found = names.iter().find_map(|name| self.envelope.member(name));
        let json = Json::checked(self.part(&found?));
        (!json.is_null()).then_some(json)
    }

    /// Returns a setting: a member, or on some wires one of an object of settings.
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

    /// Returns the frame, and the system messages if those are messages.
    fn frame(
        &mut self,
        target: &TranslateTarget,
    ) -> Result<(RequestFrame, Vec<Vec<u8>>), TranslateError> {
        let to = target.to;
        let named = self.params.model.clone().unwrap_or_default();
        let mut frame = RequestFrame {
            stream: target.stream.unwrap_or(self.params.stream),
            max_tokens: self.params.max_tokens,
            window: self.params.num_ctx.or(target.window),
            official: target.official,
            // Clients of the original provider mark the parts to be cached.
            cache: false,
            ..RequestFrame::new(to, target.model.as_deref().unwrap_or(&named))
        };
        frame.temperature = self.setting("temperature").and_then(Json::number);
        if to == Wire::Anthropic {
            frame.temperature = frame.temperature.map(|it| it.min(1.0));
        }
        let members = self.envelope.members.iter();
        let members = members.map(|(name, at)| (name.as_str(), Json::checked(self.part(at))));
        let carried = CarriedParameters::new([self.from, to], target.official, members);
        frame.settings = carried.settings;
        self.lost.extend(carried.lost);
        if to == Wire::Anthropic && frame.temperature.is_some() {
            // Its newer models take only one of the two.
            let top_p = frame.settings.iter().position(|(name, _)| *name == "top_p");
            if let Some(at) = top_p {
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
        if to.has_separate_system_prompt() {
            frame.system = texts;
        } else if !texts.is_empty() {
            // Some providers take only one, as the first message.
            let inner = texts.iter().map(|text| &text[1..text.len() - 1]);
            let text = inner.collect::<Vec<_>>().join("\\n\\n");
            let role = match to {
                Wire::Responses => "developer",
                _ => "system",
            };
            let message = format!(r#"{{"role":"{role}","content":"{text}"}}"#);
            messages.push(message.into_bytes());
        }
        Ok((frame, messages))
    }

    /// Returns the texts of the system prompt, as JSON strings.
    fn system(&self) -> Vec<String> {
        let apart = self.member(&SYSTEM_NAMES).map(|json| {
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

    fn tools(&mut self, frame: &mut RequestFrame) -> Result<(), TranslateError> {
        let list = self.member(&["tools"]);
        if let Some(list) = list {
            let carried = tools::convert_known_tools(list, frame.wire)?;
            let names = carried.left_out.into_iter();
            self.lost.extend(names.map(|name| format!("tool {name}")));
            let members = carried.members.into_iter();
            self.lost
                .extend(members.map(|name| format!("tools.{name}")));
            frame.tools = (carried.tools != "[]").then_some(carried.tools);
        }
        if frame.tools.is_none() {
            // No provider takes it without tools.
            frame
                .settings
                .retain(|(name, _)| *name != "parallel_tool_calls");
            return Ok(());
        }
        let given = self.member(&["tool_choice", "toolConfig", "tool_config"]);
        let choice = given.and_then(read_choice);
        match (choice, frame.wire) {
            (None, _) if given.is_some() => drop(self.lost.insert("tool_choice".to_owned())),
            (None | Some(ToolChoice::Auto), Wire::Ollama) | (None, _) => {}
            // A model that is shown no tools calls none.
            (Some(ToolChoice::None), Wire::Ollama) => frame.tools = None,
            (Some(_), Wire::Ollama) => drop(self.lost.insert("tool_choice".to_owned())),
            (Some(choice), to) => frame.tool_choice = Some(tools::write_tool_choice(choice, to)),
        }
        if self.calls_one_at_a_time() {
            self.limit_calls(frame);
        }
        Ok(())
    }

    /// Returns whether the model is to call no more than one tool at a time.
    fn calls_one_at_a_time(&self) -> bool {
        if self.from == Wire::Anthropic {
            let choice = self.member(&["tool_choice"]);
            let limit = choice.and_then(|choice| choice.get("disable_parallel_tool_use"));
            return limit.is_some_and(Json::is_true);
        }
        let parallel = self.member(&["parallel_tool_calls"]);
        parallel.is_some_and(|parallel| parallel.bytes() == b"false")
    }

    fn limit_calls(&mut self, frame: &mut RequestFrame) {
        const NAME: &str = "parallel_tool_calls";
        match frame.wire {
            Wire::Anthropic => {
                let spelled = |choice| tools::write_tool_choice(choice, Wire::Anthropic);
                let choice = frame.tool_choice.take();
                let mut choice = choice.unwrap_or_else(|| spelled(ToolChoice::Auto));
                // A choice of no tool takes no limit.
                if choice != spelled(ToolChoice::None) && choice.pop().is_some() {
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

/// Reads which tool a request wants called; none if no other wire can express it.
fn read_choice(json: Json<'_>) -> Option<ToolChoice> {
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
                ("AUTO" | "MODE_UNSPECIFIED", None, _) => ToolChoice::Auto,
                ("NONE", ..) => ToolChoice::None,
                ("ANY", None, _) => ToolChoice::Any,
                ("ANY", Some(name), None) => ToolChoice::Named(name.into_owned()),
                _ => return None,
            },
        );
    }
    if let Some(word) = json.text() {
        return match &*word {
            "auto" => Some(ToolChoice::Auto),
            "none" => Some(ToolChoice::None),
            "required" => Some(ToolChoice::Any),
            _ => None,
        };
    }
    let [kind, name, function] = json.pick(["type", "name", "function"]);
    let name = name.or_else(|| function?.get("name")).and_then(Json::text);
    match (&*kind?.text()?, name) {
        ("auto", _) => Some(ToolChoice::Auto),
        ("none", _) => Some(ToolChoice::None),
        ("any", _) => Some(ToolChoice::Any),
        ("tool" | "function", Some(name)) => Some(ToolChoice::Named(name.into_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same request on every wire.
    const REQUESTS: [(Wire, &str); 5] = [
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
        let target = TranslateTarget {
            model: Some("theirs".to_owned()),
            stream: (from == Wire::Gemini).then_some(true),
            ..TranslateTarget::new(to)
        };
        let translated = translate(from, body.as_bytes(), &target).expect("it can be translated");
        assert!(Json::parse(&translated.body).is_ok());
        let lost: Vec<&str> = translated.lost.iter().map(String::as_str).collect();
        format!(
            "{from} to {to}: {} | {}",
            String::from_utf8_lossy(&translated.body),
            lost.join(", ")
        )
    }

    #[test]
    fn a_request_asks_the_same_on_another_wire() {
        let mut all = Vec::new();
        for (from, body) in REQUESTS {
            let to = match from {
                Wire::Chat => Wire::Anthropic,
                _ => Wire::Chat,
            };
            all.push(shown(from, body, to));
        }
        for to in [Wire::Responses, Wire::Gemini, Wire::Ollama] {
            all.push(shown(Wire::Anthropic, REQUESTS[2].1, to));
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
        let error =
            translate(Wire::Responses, body, &TranslateTarget::new(Wire::Chat)).unwrap_err();
        insta::assert_snapshot!(error, @"`previous_response_id` refers to a conversation that this provider does not store: send the whole conversation instead");
    }

    #[test]
    fn a_choice_that_no_other_wire_has_is_left_out() {
        let of = |text: &str| read_choice(Json::parse(text.as_bytes()).unwrap());
        assert_eq!(of(r#""auto""#), Some(ToolChoice::Auto));
        assert_eq!(
            of(r#"{"type":"allowed_tools","mode":"auto","tools":[]}"#),
            None
        );
        assert_eq!(
            of(r#"{"type":"function","function":{"name":"ls"}}"#),
            Some(ToolChoice::Named("ls".to_owned()))
        );
        assert_eq!(
            of(r#"{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["ls"]}}"#),
            Some(ToolChoice::Named("ls".to_owned()))
        );
    }
}
