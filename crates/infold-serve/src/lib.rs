//! The proxy between an agent and its model: records the conversation, and folds it to fit.

mod server;
mod route;
mod content_coding;
mod decoded_body;
mod body;
mod model_call;
mod proxy;
mod parsed_request;
mod request_cache;
mod message_digest;
mod open_task;
mod pool;
mod conversation_index;
mod model_rules;
mod conversations;
mod exchange;
mod lookups;
mod tool_policy;
mod recorded_summary;
mod prefetch;
mod background;
mod checkpoints;
mod search_worker;
mod splice;
mod upstream;
mod headers;
mod exchange_recorder;
mod client_body;
mod translate;
mod translated_reply;
mod auxiliary;
mod unrecorded_paths;
mod release_request;
mod task_lock;
mod live_events;
mod metrics;
mod api;
pub mod mcp;
pub use api::{Api, ApiBody};
pub use body::{IncomingBody, OutgoingBody, OutgoingPart};
pub use conversations::{AcceptedCall, ConversationError, Conversations};
pub use exchange::Exchange;
pub use live_events::{EventListener, LiveEvent, LiveEvents, LiveItem};
pub use metrics::{InFlight, Metrics};
pub use model_call::{ConversationName, ModelCall};
pub use release_request::request_release;
pub use server::{Options, ServeError, Server, ServerLimits};
pub use task_lock::acquire_task;
pub use upstream::{Upstream, UpstreamError, Upstreams};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a panic: the data in these mutexes is checked when it is used.
fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
