//! Prints the example session: a coding agent's work on a small berth-booking service.
//!
//! `cargo run -p infold-cli --example session > examples/long-session.jsonl`
//!
//! The service is in `quayside/`, the conversation in `script/`. The files are really read, searched and edited on the
//! way, so that the agent sees its own earlier changes.

mod story;

fn main() {
    print!("{}", story::session());
}
