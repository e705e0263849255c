//! Tests of a store on a failing disk: injected faults, simulated power cuts, damaged files.
//!
//! Everything here works on a given `infold` binary from outside: it runs commands and reads the documented
//! files, and knows nothing of how they are written.

mod shim;
mod sandbox;
mod holdings;
mod http;
mod proxy;
mod names;
mod fixture;
mod check;
mod workers;
mod report;
mod trial_filter;
mod sweep;
mod power;
mod fuzz;
pub use fuzz::{Fuzz, fuzz_store};
pub use power::{PowerCuts, cut_power};
pub use report::{CheckReport, Flaw, Violation};
pub use sweep::{Sweep, sweep_faults};
pub use trial_filter::TrialFilter;
