//! Prints the example session: a coding agent's work on a small berth-booking service.
//!
//! `cargo run -p infold-cli --example session > examples/long-session.jsonl`
//!
//! The service lies in `quayside/`, what is said and done in `script/`. The files are really read, searched
//! and edited on the way, so that what the agent sees is what it wrote before.

mod story;

fn main() {
    print!("{}", story::session());
}
