use crate::count::{padded, unpadded};
use crate::{
    Fold, Images, Kept, Millis, Model, Prompt, Reply, Request, TagId, Tagged,
    keep_with_tool_blocks, since_last_summary,
};
use infold_wire::tokens::{self, Encoding};
use infold_wire::{js, quote};

/// A conversation, and how a model is asked to summarise it.
#[derive(Clone, Copy, Debug)]
pub struct Conversation<'a> {
    /// All messages, hidden ones and stand-ins included.
    pub messages: &'a [Tagged],
    /// The system prompt that is sent with them.
    pub system: &'a str,
    /// What asks for a summary.
    pub prompt: Prompt<'a>,
    /// How tools are called.
    pub tools: Tools,
    /// What becomes of images in the request.
    pub images: Images,
}

/// How a conversation's tools are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tools {
    /// By `tool_use` blocks. Calls that the first kept message answers go into the summary.
    Blocks,
    /// In the text. There is nothing to keep together.
    Text,
}

/// Where new stand-ins have their times and ids from.
pub struct Stamps<'a> {
    /// The time of a stand-in that comes before a message without one.
    pub now: Millis,
    /// Draws an id that was not drawn before.
    pub ids: &'a mut dyn FnMut() -> TagId,
}

/// What [`condense`] made of a conversation.
#[derive(Clone, Debug)]
pub struct Condensed {
    /// All messages, some of them newly tagged, and the summary.
    pub messages: Vec<Tagged>,
    /// The id of the new fold.
    pub id: TagId,
    /// What the model wrote, without white space around it.
    pub summary: String,
    /// What the model's answer cost.
    pub cost: f64,
    /// How many tokens the conversation is now, to the peer: its first message is not counted.
    pub tokens: f64,
}

/// That a conversation was not condensed and is what it was.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{why}")]
pub struct Refused {
    /// The reason.
    pub why: Refusal,
    /// What was spent on a model's answer nevertheless.
    pub cost: f64,
}

/// Why a conversation was not condensed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// There are four messages or fewer, and not two of them to summarise.
    #[error("there are too few messages to condense")]
    TooFew,
    /// A summary is one of the kept messages, or little else comes before them.
    #[error("the conversation was condensed only just now")]
    Recent,
    /// There is no model to ask.
    #[error("there is no model to write a summary")]
    NoModel,
    /// The model wrote nothing but white space.
    #[error("the model wrote an empty summary")]
    Empty,
    /// It would not be smaller.
    #[error("condensing would leave {tokens} tokens, no fewer than before")]
    Grew {
        /// How many tokens it would be.
        tokens: f64,
    },
}

/// Why [`condense`] changed nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CondenseError<E> {
    /// There is a reason not to.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The model failed. The peer lets that through.
    #[error("the model failed: {0}")]
    Model(E),
}

/// Replaces what comes between the first and the last three messages by a summary.
///
/// The model is asked about all from the last summary on, what a marker hides
/// included. What it makes of that must be smaller than `before`. Then the
/// messages between get the tag, earlier stand-ins too, if no summary had
/// tagged them yet. The new summary stands before the kept messages and is
/// dated just before them, or before `now` if they have no time.
///
/// ```
/// use infold_tags::{
///     Conversation, Images, Millis, Prompt, Reply, Stamps, TagId, Tagged, Tools, condense, effective,
/// };
///
/// let said = r#"{"role":"user","content":"go on"}"#;
/// let messages = Tagged::parse_list(format!("[{}]", [said; 9].join(",")).as_bytes())?;
/// let conversation = Conversation {
///     messages: &messages,
///     system: "",
///     prompt: Prompt::Default,
///     tools: Tools::Blocks,
///     images: Images::Sent,
/// };
/// let stamps = Stamps { now: Millis(9.0), ids: &mut || TagId::new("c1") };
/// let done = condense::<std::io::Error>(
///     conversation,
///     1000.0,
///     Some(Box::new(|request| {
///         // Six of them, and what is wanted.
///         assert_eq!(request.messages.len(), 7);
///         Ok(Reply { text: "They went on.".to_owned(), ..Reply::default() })
///     })),
///     stamps,
/// )?;
/// assert_eq!(done.messages.len(), 10);
/// assert_eq!(effective(&done.messages).len(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn condense<E>(
    conversation: Conversation<'_>,
    before: f64,
    model: Option<Model<'_, E>>,
    stamps: Stamps<'_>,
) -> Result<Condensed, CondenseError<E>> {
    let kept = kept(conversation);
    let request = request(conversation, &kept, stamps.now)?;
    let model = model.ok_or(Refusal::NoModel.free())?;
    let reply = model(&request).map_err(CondenseError::Model)?;
    Ok(finish(conversation, &kept, before, reply, stamps)?)
}

/// How many messages stay as they are.
const KEPT: usize = 3;

fn kept(conversation: Conversation<'_>) -> Kept<'_> {
    let mut kept = keep_with_tool_blocks(conversation.messages, KEPT);
    if conversation.tools == Tools::Text {
        kept.calls.clear();
        kept.reasoning.clear();
    }
    kept
}

fn request<'a>(
    conversation: Conversation<'a>,
    kept: &Kept<'_>,
    now: Millis,
) -> Result<Request<'a>, Refused> {
    let messages = conversation.messages;
    // With the calls in the summary goes what they led to in the request.
    let end = messages.len() - kept.messages.len() + usize::from(!kept.calls.is_empty());
    let since = since_last_summary(&messages[..end], now);
    if since.len() < 2 && messages.len() <= KEPT + 1 {
        return Err(Refusal::TooFew.free());
    }
    let is_summary = |message: &Tagged| message.is_stand_in(Fold::Summary);
    if since.len() < 2 || kept.messages.iter().any(is_summary) {
        return Err(Refusal::Recent.free());
    }
    Ok(Request::of(
        &since,
        conversation.prompt,
        conversation.images,
    ))
}

fn finish(
    conversation: Conversation<'_>,
    kept: &Kept<'_>,
    before: f64,
    reply: Reply,
    stamps: Stamps<'_>,
) -> Result<Condensed, Refused> {
    let cost = reply.cost;
    let refused = |why| Refused { why, cost };
    let summary = js::trim(&reply.text);
    if summary.is_empty() {
        return Err(refused(Refusal::Empty));
    }
    let id = (stamps.ids)();
    let stand_in = stand_in(summary, kept, &id, stamps.now);
    let counted = (reply.tokens == 0.0).then_some(&stand_in);
    let counted = counted.into_iter().chain(kept.messages);
    let tokens = reply.tokens + tokens(conversation.system, counted);
    if tokens >= before {
        return Err(refused(Refusal::Grew { tokens }));
    }
    Ok(Condensed {
        messages: hide(conversation.messages, kept.messages.len(), &id, stand_in),
        id,
        summary: summary.to_owned(),
        cost,
        tokens,
    })
}

/// The tokens of a system prompt and some messages, counted in one call.
fn tokens<'a>(system: &str, messages: impl Iterator<Item = &'a Tagged>) -> f64 {
    let messages: u64 = messages.filter_map(Tagged::content).map(unpadded).sum();
    padded(tokens::count(Encoding::O200k, system) + messages) as f64
}

fn hide(messages: &[Tagged], kept: usize, id: &TagId, stand_in: Tagged) -> Vec<Tagged> {
    let at = messages.len() - kept;
    let mut all = Vec::with_capacity(messages.len() + 1);
    all.extend_from_slice(&messages[..at]);
    for message in all.iter_mut().skip(1) {
        if message.parent(Fold::Summary).is_none() {
            message.tag(Fold::Summary, id);
        }
    }
    all.push(stand_in);
    all.extend_from_slice(&messages[at..]);
    all
}

/// Opens every summary; the text is the peer's.
const REASONING: &[u8] = br#"{"type":"reasoning","text":"Condensing conversation context. The summary below captures the key information from the prior conversation."}"#;

fn stand_in(summary: &str, kept: &Kept<'_>, id: &TagId, now: Millis) -> Tagged {
    let text = format!(r#"{{"type":"text","text":{}}}"#, quote(summary));
    let mut blocks = vec![REASONING];
    blocks.extend(kept.reasoning.iter().map(|block| block.bytes()));
    blocks.push(text.as_bytes());
    blocks.extend(kept.calls.iter().map(|block| block.bytes()));
    let before = kept.messages.first().and_then(|first| first.ts().given());
    let end = format!(
        r#"],"ts":{},"isSummary":true,"condenseId":{}}}"#,
        js::json_number(before.unwrap_or(now).0 - 1.0),
        id.json()
    );
    let start: &[u8] = br#"{"role":"assistant","content":["#;
    let whole = [start, &blocks.join(&b','), end.as_bytes()].concat();
    Tagged::parse(&whole).expect("a summary is an object")
}

impl Refusal {
    /// Before any model was asked.
    fn free(self) -> Refused {
        Refused {
            why: self,
            cost: 0.0,
        }
    }
}
