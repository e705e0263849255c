//! Keeps what tasks said and did.

mod error;
mod time;
mod file;
mod stored;
mod table;
mod entry;
mod snapshot;
mod event;
mod lines;
mod log;
mod registry;
pub use error::{LogError, StepError};
pub use event::{EventLine, FoldLine, MaskLine, What};
pub use file::Access;
pub use log::{Find, Log, Tail};
pub use registry::{
    Counters, Filter, Outcome, Registry, RegistryError, Status, StatusError, TaskRow,
};
