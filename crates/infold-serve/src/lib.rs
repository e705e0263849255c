//! The proxy: stands between an agent and its model, keeps the conversation, and folds it to fit.

mod body;
mod outgoing;
mod call;
mod desk;
mod exchange;
pub use body::Body;
pub use call::{Call, Name};
pub use desk::{Desk, DeskError, Taken};
pub use exchange::Exchange;
pub use outgoing::{Outgoing, Piece};
