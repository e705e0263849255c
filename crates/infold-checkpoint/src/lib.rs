//! Snapshots of a directory, in a shadow git repository that is separate from the directory's own.
//!
//! [`Checkpoints`] has the snapshots of all workspaces, a [`Shadow`] those of one. A snapshot contains the files that
//! git's ignore rules do not leave out, with their permissions, and lists the paths that it does not contain. A
//! restoration first takes a snapshot of the current files, and never touches files that are in no snapshot.
//!
//! ```
//! use infold_checkpoint::{CheckpointSettings, Checkpoints};
//! use uuid::Uuid;
//!
//! # let root = tempfile::tempdir()?;
//! # let (contexts, workspace) = (root.path().join("contexts"), root.path().join("work"));
//! # std::fs::create_dir(&workspace)?;
//! let checkpoints = Checkpoints::new(&contexts, CheckpointSettings::default());
//! let task = Uuid::from_u128(7);
//! std::fs::write(workspace.join("plan.txt"), "first")?;
//!
//! let mut shadow = checkpoints.open(&workspace)?;
//! let first = shadow.snapshot(task, 0)?;
//! std::fs::write(workspace.join("plan.txt"), "second")?;
//!
//! let (before, restored) = shadow.restore("an id", task, 0, first.at)?;
//! assert_eq!(std::fs::read_to_string(workspace.join("plan.txt"))?, "first");
//! assert_eq!((restored.written, restored.removed), (1, 0));
//!
//! // Nothing is lost by it: what was there before is a snapshot, too.
//! let content = shadow.content(before.at, "plan.txt".as_ref())?;
//! assert_eq!(content.as_deref(), Some(&b"second"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checkpoints;
mod shadow;
mod id;
mod snapshot;
mod passing;
mod restore;
mod changes;
mod all;
mod redact;
mod error;
mod about;
mod workspace;
mod repository;
mod lock;
mod git;
mod refs;
mod listing;
mod objects;
mod import;
mod compact;
mod last_snapshot;
mod stat;
mod walk;
mod read;
mod rules;
mod tracked;
mod user_repository;
mod journal;
mod plan;
mod target_rules;
mod carry_out;
mod staging;
pub use about::{LeftOut, LeftOutReason};
pub use all::{Forgotten, ShadowInfo};
pub use changes::{ChangeKind, DiffOptions, FileChange};
pub use checkpoints::{CheckpointSettings, Checkpoints};
pub use compact::Compacted;
pub use error::{CheckpointError, WorkspaceProblem};
pub use id::SnapshotRef;
pub use journal::PendingRestore;
pub use redact::{BlobId, BlobIdError, Dropped, FoundBlob};
pub use restore::{Kept, KeptReason, PreparedRestore, Restored};
pub use shadow::Shadow;
pub use snapshot::{ChangeCounts, Snapshot};
