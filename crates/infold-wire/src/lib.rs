//! What messages look like.
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
mod scan;
mod json;
mod message;
mod render;
mod alternate;
mod gist;
mod plain;
mod said;
mod convert;
pub mod tools;
pub mod uses;
pub mod envelope;
pub mod params;
pub mod normal;
pub mod redact;
pub mod secrets;
pub mod request;
pub mod reply;
pub mod provider_error;
mod listed;
mod phrase_list;
pub mod tool_action;
mod typed_text;
mod title;
pub mod js;
pub mod tokens;
pub mod tags;
pub mod transcript;
pub use alternate::Alternation;
pub use convert::Converter;
pub use gist::{gist, shorten};
pub use json::{Json, JsonError, Kind, quote};
pub use listed::{Listed, list, listed, set_window};
pub use message::{Form, Item, Message, MessageError, Part, PartKind, estimate};
pub use plain::{plain, spoken};
pub use provider_error::ProviderError;
pub use render::{
    EMPTY, INTERRUPTED, Rendered, clip_result, part_text, render_round, render_stand_in,
    render_stub, render_text, splice, splice_apart, without_thinking,
};
pub use reply::{Delivery, Reply, ReplyDelta, ReplyError, ReplyReader, StopReason, TokenUsage};
pub use title::title_of;
pub use typed_text::{TypedTextFilter, is_compaction};
pub use wire::{UnknownWire, Wire, Wires};
