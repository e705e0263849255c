//! Translation between wires: a client of one API uses a provider of another.
//!
//! [`translate`] makes a request of one wire from a request of another, [`ReplyRelay`] translates the reply while it is
//! streamed, and [`write_reply`] and [`stream_reply`] write a whole reply as a provider would. Messages are converted
//! by [`infold_wire::Converter`].

mod request;
mod reply;
pub use reply::{ReplyRelay, stream_reply, write_reply};
pub use request::{TranslateError, TranslateTarget, TranslatedRequest, count_tokens, translate};
