//! Keeps what tasks said and did: the registry of tasks.

mod registry;
pub use registry::{
    Counters, Filter, Outcome, Registry, RegistryError, Status, StatusError, TaskRow,
};
