//! Calls each model API.
//!
//! This crate alone knows HTTP clients. A request lies in a file and is posted from
//! there, however large; the reply is heard as it comes; an error says what to do.
//!
//! ```no_run
//! use infold_provider::{Body, Client, Endpoint, Heard, Patience};
//! use infold_wire::Delta;
//!
//! # async fn call() -> Result<(), Box<dyn std::error::Error>> {
//! let local = Endpoint::new("local", "ollama", None, None)?;
//! let client = Client::new(Patience::default())?;
//! let request = std::path::Path::new("request.json");
//! let called = client
//!     .send(&local, "smollm2", Body::File(request), true, &mut |heard| {
//!         if let Heard::Delta(Delta::Text(text)) = heard {
//!             print!("{text}");
//!         }
//!     })
//!     .await?;
//! # Ok(())
//! # }
//! ```

mod secret;
mod endpoint;
mod body;
mod patience;
mod client;
mod attempt;
mod models;
mod window;
mod forward;
mod error;
pub use body::Body;
pub use client::{Called, Client, Heard};
pub use endpoint::{Endpoint, EndpointError, escaped, unescaped};
pub use error::{CallError, redacted};
pub use forward::{Answer, Forward, ForwardError, Part, Passing, Stream};
pub use infold_wire::Listed;
pub use patience::Patience;
pub use secret::Secret;
