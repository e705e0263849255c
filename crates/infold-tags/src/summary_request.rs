//! The request that asks a model for a summary in the tag form, and the model's reply.

use infold_wire::{Json, js};

use crate::Tagged;

/// A request for a summary.
#[derive(Clone, Debug)]
pub struct SummaryRequest<'a> {
    /// The system prompt of the call.
    pub prompt: SummaryPrompt<'a>,
    /// The messages to summarise, followed by the instruction; of each message only `role` and `content`.
    pub messages: Vec<Tagged>,
}

/// The system prompt that asks for a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryPrompt<'a> {
    /// The caller's default. The agent's own prompt is not part of the tag form.
    Default,
    /// This text: not blank, and without white space around it.
    Custom(&'a str),
}

/// What happens to images in the messages to summarise. The agent decides this by whether its main model takes images,
/// even if another model summarises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageHandling {
    /// Images are sent unchanged.
    Sent,
    /// A short text replaces each image; those inside tool results are sent nevertheless.
    Named,
}

/// The call of a model that summarises. It is made at most once, so a failure is not retried.
pub type SummaryModel<'a, E> = Box<dyn FnOnce(&SummaryRequest<'_>) -> Result<SummaryReply, E> + 'a>;

/// The reply of a model. A stream of [`ReplyChunk`]s can be collected into one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryReply {
    /// The whole text.
    pub text: String,
    /// The cost of the call; zero if not reported.
    pub cost: f64,
    /// The tokens of the reply; zero if not reported.
    pub tokens: f64,
}

/// A part of a streamed reply. Reasoning is not part of a summary, so there is no variant for it.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyChunk {
    /// More text.
    Text(String),
    /// The usage so far. Only the last report counts; values that it does not have are zero, even if an earlier one had
    /// them.
    Usage {
        /// The cost of the call.
        cost: Option<f64>,
        /// The tokens of the reply.
        tokens: Option<f64>,
    },
}

impl<'a> SummaryPrompt<'a> {
    /// Returns the prompt for a text that may be missing or blank.
    pub fn of(custom: Option<&'a str>) -> SummaryPrompt<'a> {
        match custom.map(js::trim) {
            None | Some("") => SummaryPrompt::Default,
            Some(text) => SummaryPrompt::Custom(text),
        }
    }
}

impl FromIterator<ReplyChunk> for SummaryReply {
    fn from_iter<T: IntoIterator<Item = ReplyChunk>>(chunks: T) -> SummaryReply {
        let mut reply = SummaryReply::default();
        for chunk in chunks {
            match chunk {
                ReplyChunk::Text(text) => reply.text.push_str(&text),
                ReplyChunk::Usage { cost, tokens } => {
                    reply.cost = cost.unwrap_or_default();
                    reply.tokens = tokens.unwrap_or_default();
                }
            }
        }
        reply
    }
}

impl<'a> SummaryRequest<'a> {
    /// Builds the request for these messages, with the instruction as the last one.
    pub(crate) fn of(
        messages: &[Tagged],
        prompt: SummaryPrompt<'a>,
        images: ImageHandling,
    ) -> SummaryRequest<'a> {
        let instruction = format!(r#"{{"role":"user","content":"{INSTRUCTION}"}}"#);
        let bare = messages
            .iter()
            .map(|message| strip_message(message, images));
        SummaryRequest {
            prompt,
            messages: bare
                .chain([parse_message(instruction.as_bytes())])
                .collect(),
        }
    }
}

const INSTRUCTION: &str =
    "Summarize the conversation so far, as described in the prompt instructions.";
const IMAGE_REPLACEMENT: &[u8] = br#"{"type":"text","text":"[Referenced image in conversation]"}"#;

/// Returns a message with only its role and its content. The bytes of both are kept, except those of images that are
/// named.
fn strip_message(message: &Tagged, images: ImageHandling) -> Tagged {
    let mut text = b"{".to_vec();
    for name in ["role", "content"] {
        let Some(value) = message.member(name) else {
            continue;
        };
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend_from_slice(format!("\"{name}\":").as_bytes());
        match images {
            ImageHandling::Sent => text.extend_from_slice(value.bytes()),
            ImageHandling::Named => replace_images(value, &mut text),
        }
    }
    text.push(b'}');
    parse_message(&text)
}

/// Copies a content with a text in place of each image block. Blocks inside tool results are not searched.
fn replace_images(content: Json<'_>, out: &mut Vec<u8>) {
    let (start, bytes) = (content.range().start, content.bytes());
    let mut copied = 0;
    for block in content.elements() {
        if block.get("type").is_some_and(|kind| kind.is("image")) {
            let range = block.range();
            out.extend_from_slice(&bytes[copied..range.start - start]);
            out.extend_from_slice(IMAGE_REPLACEMENT);
            copied = range.end - start;
        }
    }
    out.extend_from_slice(&bytes[copied..]);
}

fn parse_message(text: &[u8]) -> Tagged {
    Tagged::parse(text).expect("a request is made of objects")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sent_as_they_were_written_but_for_images() {
        let whole = br#"{"ts":1, "content" : [ {"type":"imag\u0065","x":[1]} ,{"n":1.0,
            "type":"tool_result","content":[{"type":"image"}]},{"type":"image"} ],"role":"us\u0065r"}"#;
        let whole = [Tagged::parse(whole).unwrap(), parse_message(b"{}")];
        let sent = |images| {
            let request = SummaryRequest::of(&whole, SummaryPrompt::Default, images);
            let texts = request.messages.iter().map(|m| m.bytes().into_owned());
            let mut texts = texts.map(|bytes| String::from_utf8(bytes).unwrap());
            [texts.next().unwrap(), texts.next().unwrap()]
        };
        let inner =
            "{\"n\":1.0,\n            \"type\":\"tool_result\",\"content\":[{\"type\":\"image\"}]}";
        let name = std::str::from_utf8(IMAGE_REPLACEMENT).unwrap();
        let with = |first: &str, last: &str| {
            format!(r#"{{"role":"us\u0065r","content":[ {first} ,{inner},{last} ]}}"#)
        };
        assert_eq!(
            sent(ImageHandling::Sent),
            [
                with(r#"{"type":"imag\u0065","x":[1]}"#, r#"{"type":"image"}"#),
                "{}".to_owned()
            ]
        );
        assert_eq!(
            sent(ImageHandling::Named),
            [with(name, name), "{}".to_owned()]
        );
    }

    #[test]
    fn of_several_usages_the_last_counts_with_what_it_leaves_out() {
        let usage = |cost, tokens| ReplyChunk::Usage { cost, tokens };
        let chunks = [
            ReplyChunk::Text("a".to_owned()),
            usage(Some(0.5), Some(7.0)),
            ReplyChunk::Text("b".to_owned()),
            usage(None, Some(9.0)),
        ];
        let reply: SummaryReply = chunks.into_iter().collect();
        assert_eq!(
            (reply.text.as_str(), reply.cost, reply.tokens),
            ("ab", 0.0, 9.0)
        );
    }

    #[test]
    fn a_blank_prompt_is_the_default_one() {
        for blank in [None, Some(""), Some(" \u{feff}\u{2028}\n")] {
            assert_eq!(SummaryPrompt::of(blank), SummaryPrompt::Default);
        }
        assert_eq!(
            SummaryPrompt::of(Some(" be brief\n")),
            SummaryPrompt::Custom("be brief")
        );
    }
}
