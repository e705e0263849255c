//! Fetching, commenting and relabelling, against servers on loopback that answer as documented.

mod setup;
mod flow;
mod comments;
mod lists;
mod faults;
mod refusals;
