//! The server over plain HTTP: what it answers, what it refuses, how it breaks.

mod http;
mod serves;
mod refuses;
mod picky;
mod breaks;
mod obeys;
