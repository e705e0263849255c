//! Snapshots of directories and their restoration, on real files with a real git.

#![allow(clippy::unwrap_used)]

mod damage;
mod edits;
mod faults;
mod kill;
mod laws;
mod redact;
mod snapshots;
mod tree;
mod world;
