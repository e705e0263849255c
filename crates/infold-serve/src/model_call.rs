//! A call of a model, as a client made it, and the name of its conversation.

use std::sync::Arc;

use infold::config::Provider;
use infold_store::{Metadata, redacted_name};
use infold_wire::Wire;

use crate::IncomingBody;

/// A call of a model, as a client made it.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// The form of the request and of the reply.
    pub wire: Wire,
    /// The model, where the path names it (Gemini); else the body does.
    pub model: Option<String>,
    /// Whether the reply streams, where the path says so (Gemini); else the body does.
    pub stream: Option<bool>,
    /// Its headers ask for a window of a million tokens.
    pub long_context: bool,
    /// The program that makes it, if it is known.
    pub agent: Option<String>,
    /// The name of the conversation, if its header or path has one.
    pub name: Option<ConversationName>,
    /// Where it goes.
    pub provider: Arc<Provider>,
    /// The request itself.
    pub body: IncomingBody,
}

/// The name of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationName {
    /// Given in a header or the path by the person who set the client up.
    Given(String),
    /// The client's own session, which many conversations may be part of.
    Session(String),
}

/// The prefix under which given names are indexed.
pub(crate) const GIVEN_PREFIX: &str = "given ";

impl ConversationName {
    /// Returns the key under which it is indexed.
    pub(crate) fn key(&self) -> String {
        match self {
            ConversationName::Given(name) => format!("{GIVEN_PREFIX}{name}"),
            ConversationName::Session(name) => format!("session {name}"),
        }
    }

    /// Returns it in the form in which redacted names are kept.
    pub(crate) fn redacted(&self) -> ConversationName {
        match self {
            ConversationName::Given(name) => ConversationName::Given(redacted_name(name)),
            ConversationName::Session(name) => ConversationName::Session(redacted_name(name)),
        }
    }

    /// Says whether it is among indexed names, as it is or redacted.
    pub(crate) fn is_among(&self, names: &[String]) -> bool {
        names.contains(&self.key()) || names.contains(&self.redacted().key())
    }

    /// Says whether it was given by the person who set the client up.
    pub(crate) fn is_given(&self) -> bool {
        matches!(self, ConversationName::Given(_))
    }

    /// Returns the task type that stands for it in a task's metadata.
    pub(crate) fn task_type(&self) -> &'static str {
        match self {
            ConversationName::Given(_) => "named",
            ConversationName::Session(_) => "session",
        }
    }

    /// Returns the name that a task was made with.
    pub(crate) fn of(metadata: &Metadata) -> Option<ConversationName> {
        let text = metadata.task_id.clone()?;
        let names = [
            ConversationName::Given(text.clone()),
            ConversationName::Session(text),
        ];
        names
            .into_iter()
            .find(|name| metadata.task_type.as_deref() == Some(name.task_type()))
    }

    /// Returns the name itself.
    pub(crate) fn text(&self) -> &str {
        match self {
            ConversationName::Given(name) | ConversationName::Session(name) => name,
        }
    }
}
