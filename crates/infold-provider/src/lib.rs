//! Calls each model API.
//!
//! This crate alone knows HTTP clients. A request is a file that is posted while it is
//! read, however large; the reply is read as it comes; an error says what to do.
//!
//! ```no_run
//! use infold_provider::{CallEvent, Client, Endpoint, RequestBody, RetryPolicy};
//! use infold_wire::ReplyDelta;
//!
//! # async fn call() -> Result<(), Box<dyn std::error::Error>> {
//! let local = Endpoint::new("local", "ollama", None, None)?;
//! let client = Client::new(RetryPolicy::default())?;
//! let request = std::path::Path::new("request.json");
//! let reply = client
//!     .send(&local, "smollm2", RequestBody::File(request), true, &mut |event| {
//!         if let CallEvent::Delta(ReplyDelta::Text(text)) = event {
//!             print!("{text}");
//!         }
//!     })
//!     .await?;
//! # Ok(())
//! # }
//! ```

mod secret;
mod endpoint;
mod http;
mod body;
mod retry;
mod client;
mod attempt;
mod models;
mod window;
mod forward;
mod http_address;
mod error;
pub use body::{BodyPart, RequestBody};
pub use client::{CallEvent, CallReply, Client};
pub use endpoint::{APIS, Endpoint, EndpointError, percent_decode, percent_encode};
pub use error::{CallError, redact_keys};
pub use forward::{ForwardError, ForwardRequest, ForwardResponse, Forwarder, ResponseBody};
pub use http_address::HttpAddress;
pub use infold_wire::ListedModel;
pub use retry::RetryPolicy;
pub use secret::Secret;
