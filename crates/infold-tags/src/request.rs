use crate::Tagged;
use infold_wire::{Json, js};

/// What a model is asked when a conversation is to be condensed.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The system prompt of the call.
    pub prompt: Prompt<'a>,
    /// What to summarise, and at the end the request to do so; of each message
    /// only `role` and `content`.
    pub messages: Vec<Tagged>,
}

/// Which system prompt asks for a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt<'a> {
    /// The caller's own. The peer's is no part of the tag form.
    Default,
    /// This text: not blank, and without white space around it.
    Custom(&'a str),
}

/// Whether the main model takes images. The one that summarises is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Images {
    /// They are sent.
    Sent,
    /// A short text stands for each; those inside tool results are sent all the same.
    Named,
}

/// A model that summarises: it gets a request, once at most, and answers or fails.
pub type Model<'a, E> = Box<dyn FnOnce(&Request<'_>) -> Result<Reply, E> + 'a>;

/// What a model answered. A stream of [`Chunk`]s can be collected into one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// All its text.
    pub text: String,
    /// What the call cost; zero if it did not say.
    pub cost: f64,
    /// How many tokens the answer is; zero if it did not say.
    pub tokens: f64,
}

/// A part of an answer. Thoughts are none.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// More text.
    Text(String),
    /// What was used so far; of several the last one counts, with what it leaves out.
    Usage {
        /// What the call cost.
        cost: Option<f64>,
        /// How many tokens the answer is.
        tokens: Option<f64>,
    },
}

impl<'a> Prompt<'a> {
    /// Returns the prompt for a text that may be missing or blank.
    pub fn of(custom: Option<&'a str>) -> Prompt<'a> {
        match custom.map(js::trim) {
            None | Some("") => Prompt::Default,
            Some(text) => Prompt::Custom(text),
        }
    }
}

impl FromIterator<Chunk> for Reply {
    fn from_iter<T: IntoIterator<Item = Chunk>>(chunks: T) -> Reply {
        let mut reply = Reply::default();
        for chunk in chunks {
            match chunk {
                Chunk::Text(text) => reply.text.push_str(&text),
                Chunk::Usage { cost, tokens } => {
                    reply.cost = cost.unwrap_or_default();
                    reply.tokens = tokens.unwrap_or_default();
                }
            }
        }
        reply
    }
}

impl<'a> Request<'a> {
    pub(crate) fn of(messages: &[Tagged], prompt: Prompt<'a>, images: Images) -> Request<'a> {
        let asked = format!(r#"{{"role":"user","content":"{ASKED}"}}"#);
        let bare = messages.iter().map(|message| bare(message, images));
        Request {
            prompt,
            messages: bare.chain([message(asked.as_bytes())]).collect(),
        }
    }
}

const ASKED: &str = "Summarize the conversation so far, as described in the prompt instructions.";
const IMAGE: &[u8] = br#"{"type":"text","text":"[Referenced image in conversation]"}"#;

/// A message with nothing but its role and its content, each as it was written.
fn bare(whole: &Tagged, images: Images) -> Tagged {
    let mut text = b"{".to_vec();
    for name in ["role", "content"] {
        let Some(value) = whole.member(name) else {
            continue;
        };
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend_from_slice(format!("\"{name}\":").as_bytes());
        match images {
            Images::Sent => text.extend_from_slice(value.bytes()),
            Images::Named => name_images(value, &mut text),
        }
    }
    text.push(b'}');
    message(&text)
}

/// Copies a content with a text for each image that is one of its blocks.
fn name_images(content: Json<'_>, out: &mut Vec<u8>) {
    let (start, bytes) = (content.range().start, content.bytes());
    let mut copied = 0;
    for block in content.elements() {
        if block.get("type").is_some_and(|kind| kind.is("image")) {
            let range = block.range();
            out.extend_from_slice(&bytes[copied..range.start - start]);
            out.extend_from_slice(IMAGE);
            copied = range.end - start;
        }
    }
    out.extend_from_slice(&bytes[copied..]);
}

fn message(text: &[u8]) -> Tagged {
    Tagged::parse(text).expect("a request is made of objects")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sent_as_they_were_written_but_for_images() {
        let whole = br#"{"ts":1, "content" : [ {"type":"imag\u0065","x":[1]} ,{"n":1.0,
            "type":"tool_result","content":[{"type":"image"}]},{"type":"image"} ],"role":"us\u0065r"}"#;
        let whole = [Tagged::parse(whole).unwrap(), message(b"{}")];
        let sent = |images| {
            let request = Request::of(&whole, Prompt::Default, images);
            let texts = request.messages.iter().map(|m| m.bytes().into_owned());
            let mut texts = texts.map(|bytes| String::from_utf8(bytes).unwrap());
            [texts.next().unwrap(), texts.next().unwrap()]
        };
        let inner =
            "{\"n\":1.0,\n            \"type\":\"tool_result\",\"content\":[{\"type\":\"image\"}]}";
        let name = std::str::from_utf8(IMAGE).unwrap();
        let with = |first: &str, last: &str| {
            format!(r#"{{"role":"us\u0065r","content":[ {first} ,{inner},{last} ]}}"#)
        };
        assert_eq!(
            sent(Images::Sent),
            [
                with(r#"{"type":"imag\u0065","x":[1]}"#, r#"{"type":"image"}"#),
                "{}".to_owned()
            ]
        );
        assert_eq!(sent(Images::Named), [with(name, name), "{}".to_owned()]);
    }

    #[test]
    fn of_several_usages_the_last_counts_with_what_it_leaves_out() {
        let usage = |cost, tokens| Chunk::Usage { cost, tokens };
        let chunks = [
            Chunk::Text("a".to_owned()),
            usage(Some(0.5), Some(7.0)),
            Chunk::Text("b".to_owned()),
            usage(None, Some(9.0)),
        ];
        let reply: Reply = chunks.into_iter().collect();
        assert_eq!(
            (reply.text.as_str(), reply.cost, reply.tokens),
            ("ab", 0.0, 9.0)
        );
    }

    #[test]
    fn a_blank_prompt_is_the_default_one() {
        for blank in [None, Some(""), Some(" \u{feff}\u{2028}\n")] {
            assert_eq!(Prompt::of(blank), Prompt::Default);
        }
        assert_eq!(Prompt::of(Some(" be brief\n")), Prompt::Custom("be brief"));
    }
}
