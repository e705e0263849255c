//! A scripted model server on loopback that speaks every wire.
//!
//! Tests start one, point a client at it, and inspect the requests that it received:
//!
//! ```
//! use infold_testkit::{Script, Server, Step};
//!
//! let server = Server::start(Script::steps([
//!     Step::say("Good morning."),
//!     Step::named("openai/rate-limit"),
//!     Step::call("ls", r#"{"path":"."}"#).cut_after_events(2),
//! ]));
//! let address = format!("{}/v1/chat/completions", server.url());
//! assert!(address.starts_with("http://127.0.0.1:"));
//! assert_eq!(server.count(), 0);
//! ```
//!
//! After the script, a model answers by repeating its input. It checks
//! requests as a provider does, counts tokens, keeps a prefix cache and may have a window.

mod random;
mod seen;
mod answer;
mod step;
mod script;
mod server;
mod server_connection;
mod upload;
mod respond;
mod send;
mod reply_request;
mod check;
mod rules;
mod count;
mod model;
mod agent;
mod dialect;
mod errors;
mod faults;
mod list;
mod embed;
mod steps;
mod conversation;
mod disk;
mod forge;
pub use answer::Answer;
pub use conversation::{Conversation, ScriptedExchange};
pub use disk::{
    CheckReport, Flaw, Fuzz, PowerCuts, Sweep, TrialFilter, Violation, cut_power, fuzz_store,
    sweep_faults,
};
pub use errors::{NamedError, errors};
pub use faults::{Faults, Tally};
pub use forge::{
    Forge, ForgeComment, ForgeFault, ForgeItem, ForgeRate, ForgeRepo, ForgeState, ReceivedCall,
};
pub use model::Model;
pub use rules::{refusal, seal};
pub use script::Script;
pub use seen::{Refusal, Seen, hash};
pub use server::Server;
pub use step::{Gate, Step};
pub use steps::{ScriptError, read_steps};
