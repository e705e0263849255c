use std::sync::Arc;

use infold::config::Provider;
use infold_wire::Wire;

use crate::Body;

/// A call of a model, as a client made it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The form of the request and of the reply.
    pub wire: Wire,
    /// The model, where the path names it (Gemini); else the body does.
    pub model: Option<String>,
    /// Whether the reply streams, where the path says so (Gemini); else the body does.
    pub stream: Option<bool>,
    /// Its headers ask for a window of a million tokens.
    pub long_context: bool,
    /// The program that makes it, if it says so.
    pub agent: Option<String>,
    /// What the client or its address calls the conversation.
    pub name: Option<Name>,
    /// Where it goes.
    pub provider: Arc<Provider>,
    /// What it says.
    pub body: Body,
}

/// What somebody calls a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// Whoever set the client up did: a header, or the path.
    Given(String),
    /// The client has a session of its own: many conversations may be part of it.
    Session(String),
}
