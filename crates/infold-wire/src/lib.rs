//! The forms of messages, requests and replies.
//!
//! Pure: bytes in, facts and bytes out. This crate alone knows the shapes of JSON
//! messages; everything else works on the facts it returns.
//!
//! ```
//! use infold_wire::Message;
//!
//! let text = br#"{"role":"assistant","content":null,
//!     "tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#;
//! let message = Message::parse(text)?;
//! assert_eq!(message.facts().calls[0].id.as_deref(), Some("c1"));
//! # Ok::<(), infold_wire::MessageError>(())
//! ```

mod wire;
mod brackets;
mod scan;
mod value_end;
mod json;
mod edits;
mod message;
mod render;
pub mod stand_in;
mod alternate;
mod excerpt;
mod plain_text;
mod content_block;
mod embedding;
pub mod terms;
pub mod neutral;
pub mod call_ids;
mod convert;
pub mod tools;
pub mod tool_list;
pub mod tool_use;
pub mod envelope;
pub mod request_options;
pub mod digest;
pub mod redact;
pub mod secrets;
pub mod request;
pub mod reply;
pub mod lookup;
mod client_call;
mod json_arguments;
pub mod provider_error;
mod model_list;
mod phrase_list;
pub mod tool_action;
mod typed_text;
mod title;
pub mod js;
pub mod tokens;
pub mod tags;
pub mod transcript;
pub use alternate::Alternation;
pub use client_call::{ClientCall, write_call_results};
pub use content_block::{ContentBlock, argument_values, searchable_text};
pub use convert::Converter;
pub use edits::{splice, splice_unordered};
pub use embedding::{embedding_request, read_embeddings};
pub use excerpt::{message_excerpt, shorten};
pub use json::{Json, JsonError, JsonKind, quote};
pub use json_arguments::with_json_arguments;
pub use message::{Form, Item, Message, MessageError, Part, PartKind, estimate_tokens};
pub use model_list::{ListedModel, read_model_list, read_ollama_window, write_model_list};
pub use plain_text::{append_plain_text, append_words};
pub use provider_error::ProviderError;
pub use render::{
    CONTEXT_HEAD, CONTEXT_TAIL, EMPTY_PLACEHOLDER, INTERRUPTED_RESULT, RECALLED_HEAD,
    RenderedMessage, append_system_text, append_text, clip_result, part_text, render_round,
    render_stand_in, render_stub, render_text, without_thinking,
};
pub use reply::{Delivery, Reply, ReplyDelta, ReplyError, ReplyReader, StopReason, TokenUsage};
pub use title::title_of;
pub use typed_text::{TypedTextFilter, is_compaction};
pub use wire::{UnknownWire, Wire, Wires};
