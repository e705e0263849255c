//! Tools that the proxy offers the model and answers itself: the client sees the same as without them.

#[path = "../front/mod.rs"]
mod front;
mod blocks;
mod filter;
mod client;
mod conversations;
mod failures;
mod offers;
mod endings;
mod later;
mod policy;
mod broken;
mod copies;
mod layers;
