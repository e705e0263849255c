//! Condenses a conversation: replaces its middle by a summary that a model writes.

use infold_wire::tokens::{self, Encoding};
use infold_wire::{js, quote};

use crate::{
    ImageHandling, KeptTail, Millis, SummaryModel, SummaryPrompt, SummaryReply, SummaryRequest,
    TagId, TagKind, Tagged, add_margin, count_without_margin, keep_with_tool_blocks,
    since_last_summary,
};

/// A conversation, with the settings of its summary request.
#[derive(Clone, Copy, Debug)]
pub struct TaggedConversation<'a> {
    /// All messages, hidden ones and stand-ins included.
    pub messages: &'a [Tagged],
    /// The system prompt that is sent with them.
    pub system: &'a str,
    /// The prompt that asks for a summary.
    pub prompt: SummaryPrompt<'a>,
    /// The form of tool calls.
    pub tools: ToolCallStyle,
    /// The form of images in the request.
    pub images: ImageHandling,
}

/// The form of a conversation's tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolCallStyle {
    /// `tool_use` blocks. Calls that the first kept message answers go into the summary.
    Blocks,
    /// In the text, so no calls have to be kept together with their results.
    Text,
}

/// The source of times and ids for new stand-ins.
pub struct Stamps<'a> {
    /// The time of a stand-in that comes before a message without one.
    pub now: Millis,
    /// Returns a new id with each call.
    pub ids: &'a mut dyn FnMut() -> TagId,
}

/// A condensed conversation.
#[derive(Clone, Debug)]
pub struct Condensed {
    /// All messages, some of them newly tagged, and the summary.
    pub messages: Vec<Tagged>,
    /// The id of the new fold.
    pub id: TagId,
    /// The text of the model, without white space around it.
    pub summary: String,
    /// The cost of the model's reply.
    pub cost: f64,
    /// The tokens of the conversation now, as the agent counts: without its first message.
    pub tokens: f64,
}

/// A conversation was not condensed and is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct CondenseRefusal {
    /// The reason.
    pub reason: RefusalReason,
    /// The cost of the model's reply, if it was called.
    pub cost: f64,
}

/// The reason that a conversation was not condensed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RefusalReason {
    /// There are at most four messages, so fewer than two of them could be summarised.
    #[error("there are too few messages to condense")]
    TooFew,
    /// A summary is among the kept messages, or less than two messages come before them.
    #[error("the conversation was condensed only just now")]
    Recent,
    /// There is no model to ask.
    #[error("there is no model to write a summary")]
    NoModel,
    /// The model wrote nothing but white space.
    #[error("the model wrote an empty summary")]
    Empty,
    /// The condensed conversation would not be smaller.
    #[error("condensing would leave {tokens} tokens, no fewer than before")]
    Grew {
        /// The tokens it would have.
        tokens: f64,
    },
}

/// The reason that [`condense`] changed nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CondenseError<E> {
    /// The conversation cannot be condensed, or not usefully.
    #[error(transparent)]
    Refused(#[from] CondenseRefusal),
    /// The model failed. The agent passes its error on.
    #[error("the model failed: {0}")]
    Model(E),
}

/// Replaces all messages between the first and the last three by a summary.
///
/// The model gets all messages from the last summary on, those behind a marker
/// included. With its summary the conversation must be smaller than `before`. Then the
/// messages between get the tag, earlier stand-ins too, unless a summary tagged
/// them already. The new summary stands before the kept messages and is
/// dated just before them, or before `now` if they have no time.
///
/// ```
/// use infold_tags::{
///     ImageHandling, Millis, Stamps, SummaryPrompt, SummaryReply, TagId, Tagged,
///     TaggedConversation, ToolCallStyle, condense, effective,
/// };
///
/// let said = r#"{"role":"user","content":"go on"}"#;
/// let messages = Tagged::parse_list(format!("[{}]", [said; 9].join(",")).as_bytes())?;
/// let conversation = TaggedConversation {
///     messages: &messages,
///     system: "",
///     prompt: SummaryPrompt::Default,
///     tools: ToolCallStyle::Blocks,
///     images: ImageHandling::Sent,
/// };
/// let stamps = Stamps { now: Millis(9.0), ids: &mut || TagId::new("c1") };
/// let done = condense::<std::io::Error>(
///     conversation,
///     1000.0,
///     Some(Box::new(|request| {
///         // Six messages and the instruction.
///         assert_eq!(request.messages.len(), 7);
///         Ok(SummaryReply { text: "They went on.".to_owned(), ..SummaryReply::default() })
///     })),
///     stamps,
/// )?;
/// assert_eq!(done.messages.len(), 10);
/// assert_eq!(effective(&done.messages).len(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn condense<E>(
    conversation: TaggedConversation<'_>,
    before: f64,
    model: Option<SummaryModel<'_, E>>,
    stamps: Stamps<'_>,
) -> Result<Condensed, CondenseError<E>> {
    let mut kept = keep_with_tool_blocks(conversation.messages, KEPT_MESSAGES);
    if conversation.tools == ToolCallStyle::Text {
        kept.calls.clear();
        kept.reasoning.clear();
    }
    let free = |reason| CondenseRefusal { reason, cost: 0.0 };
    let request = build_request(conversation, &kept, stamps.now).map_err(free)?;
    let model = model.ok_or(free(RefusalReason::NoModel))?;
    let reply = model(&request).map_err(CondenseError::Model)?;
    let paid = |reason| CondenseRefusal {
        reason,
        cost: reply.cost,
    };
    Ok(apply_summary(conversation, &kept, before, &reply, stamps).map_err(paid)?)
}

/// The number of last messages that stay unchanged.
const KEPT_MESSAGES: usize = 3;

fn build_request<'a>(
    conversation: TaggedConversation<'a>,
    kept: &KeptTail<'_>,
    now: Millis,
) -> Result<SummaryRequest<'a>, RefusalReason> {
    let messages = conversation.messages;
    // If the calls go into the summary, their results go into the request.
    let end = messages.len() - kept.messages.len() + usize::from(!kept.calls.is_empty());
    let since = since_last_summary(&messages[..end], now);
    if since.len() < 2 && messages.len() <= KEPT_MESSAGES + 1 {
        return Err(RefusalReason::TooFew);
    }
    let is_summary = |message: &Tagged| message.is_stand_in(TagKind::Summary);
    if since.len() < 2 || kept.messages.iter().any(is_summary) {
        return Err(RefusalReason::Recent);
    }
    Ok(SummaryRequest::of(
        &since,
        conversation.prompt,
        conversation.images,
    ))
}

fn apply_summary(
    conversation: TaggedConversation<'_>,
    kept: &KeptTail<'_>,
    before: f64,
    reply: &SummaryReply,
    stamps: Stamps<'_>,
) -> Result<Condensed, RefusalReason> {
    let summary = js::trim(&reply.text);
    if summary.is_empty() {
        return Err(RefusalReason::Empty);
    }
    let id = (stamps.ids)();
    let stand_in = build_stand_in(summary, kept, &id, stamps.now);
    // The summary itself is counted only if the reply does not report its tokens.
    let counted = (reply.tokens == 0.0).then_some(&stand_in);
    let contents = counted
        .into_iter()
        .chain(kept.messages)
        .filter_map(Tagged::content);
    let content = contents.map(count_without_margin).sum::<u64>();
    let system = tokens::count(Encoding::O200k, conversation.system);
    let tokens = reply.tokens + add_margin(system + content) as f64;
    if tokens >= before {
        return Err(RefusalReason::Grew { tokens });
    }
    Ok(Condensed {
        messages: insert_summary(conversation.messages, kept.messages.len(), &id, stand_in),
        id,
        summary: summary.to_owned(),
        cost: reply.cost,
        tokens,
    })
}

/// Tags the messages before the kept ones, except the first, and inserts the summary before the kept ones.
fn insert_summary(messages: &[Tagged], kept: usize, id: &TagId, stand_in: Tagged) -> Vec<Tagged> {
    let at = messages.len() - kept;
    let mut all = Vec::with_capacity(messages.len() + 1);
    all.extend_from_slice(&messages[..at]);
    for message in all.iter_mut().skip(1) {
        if message.parent(TagKind::Summary).is_none() {
            message.tag(TagKind::Summary, id);
        }
    }
    all.push(stand_in);
    all.extend_from_slice(&messages[at..]);
    all
}

/// The first block of every summary, as the agent writes it.
const REASONING_BLOCK: &[u8] = br#"{"type":"reasoning","text":"Condensing conversation context. The summary below captures the key information from the prior conversation."}"#;

fn build_stand_in(summary: &str, kept: &KeptTail<'_>, id: &TagId, now: Millis) -> Tagged {
    let text = format!(r#"{{"type":"text","text":{}}}"#, quote(summary));
    let mut blocks = vec![REASONING_BLOCK];
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
