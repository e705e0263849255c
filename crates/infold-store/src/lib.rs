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
mod show;
mod current;
mod derived;
mod lock;
mod repair;
mod writer;
mod metadata;
mod registry;
mod contexts;
mod incoming;
mod verify;
mod doctor;
pub use contexts::{Contexts, TaskError, end_of};
pub use derived::{Derived, RecordError};
pub use doctor::size;
pub use error::{LogError, StepError};
pub use event::{EventLine, FoldLine, MaskLine, What};
pub use file::Access;
pub use incoming::{Incoming, IncomingError};
pub use lock::Holder;
pub use log::{Find, Log, Tail};
pub use metadata::Metadata;
pub use registry::{
    Counters, Filter, Outcome, Registry, RegistryError, Status, StatusError, TaskRow,
};
pub use repair::Repair;
pub use show::Visit;
pub use time::{iso, now, parse_iso};
pub use verify::Problem;
pub use writer::{AppendError, Durability, MAX_MESSAGE, OpenError, ToolError, Writer};
