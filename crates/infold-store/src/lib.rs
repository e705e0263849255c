//! Stores the logs of tasks in files, and the registry of all tasks in SQLite.
//!
//! Only this crate handles bytes on disk, locks and SQL. `docs/DESIGN.md` §3 and §9 describe the files.
//!
//! ```
//! use infold_log::{Seq, View};
//! use infold_store::{Contexts, Durability, Metadata};
//!
//! let dir = tempfile::tempdir()?;
//! let contexts = Contexts::new(dir.path(), Durability::Turn);
//! let task = contexts.create(Metadata::default())?;
//!
//! let (mut writer, repairs) = contexts.write(task)?;
//! assert!(repairs.is_empty());
//! let say = |role: &str, text: &str| format!(r#"{{"role":"{role}","content":"{text}"}}"#);
//! writer.append(&[say("user", "name the project"), say("assistant", "call it silt")])?;
//! writer.append(&[say("user", "better"), say("assistant", "call it infold")])?;
//!
//! writer.condense("2..3".parse()?, "one name was turned down")?;
//! writer.undo()?;
//! writer.redo()?;
//! drop(writer);
//!
//! // Readers need no lock. The view shows message 1, the summary and message 4; the log still has all four.
//! let log = contexts.read(task)?;
//! let view = View::of(log.state().shown(), &log)?;
//! assert_eq!(String::from_utf8(log.rendered(&view)?)?.lines().count(), 3);
//! assert_eq!(log.message(Seq::new(2).unwrap())?, say("assistant", "call it silt").as_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Errors, times, files and directories.
mod error;
mod time;
mod file;
mod dirs;
// The records of one task's log and of its sidecars, and how they are read.
mod stored;
mod table;
mod entry;
mod snapshot;
mod event;
mod lines;
mod log;
mod show;
mod boot;
// Files that are derived from the log, and working files.
mod current;
mod derived;
mod facts;
mod text_vectors;
mod working_file;
// The one writer of a task: its lock, the repair on open, and what it appends.
mod lock;
mod repair;
mod unsynced;
mod tool_use;
mod writer;
mod push_journal;
mod push;
mod frame;
// A contexts directory: all tasks, with the databases that index them.
mod metadata;
mod database;
mod registry;
mod chain_index;
mod contexts;
// Imports of transcripts and of single messages.
mod imported;
mod task_draft;
mod incoming;
// Checks and repairs of damaged tasks.
mod verify;
mod mend;
mod lengthen;
mod fork_point;
mod doctor;
// Removal of secrets and redacted texts, also from later copies.
mod redact;
mod redacted_name;
mod redacted_digests;
mod redacted_copies;
mod redacted_values;
mod redacted_lines;
mod redaction_index;
mod secrets;
// The search index over all tasks.
mod search;

pub use chain_index::{ChainIndex, Key, KnownChain};
pub use contexts::{Contexts, Enqueued, NewTask, TaskError, end_of, recorded_status};
pub use derived::{Derived, RecordError};
pub use dirs::TaskDirs;
pub use doctor::size;
pub use error::{LogError, StepError};
pub use event::{
    AppendLine, CallStartedLine, CheckpointLine, CheckpointNote, EventLine, Extent, Failure,
    FileCounts, FoldLine, LookupLine, MaskLine, Purpose, RecallLine, RedactLine, RedactedForms,
    RefusalLine, RestoreLine, StateAuthor, StateLine, ToolsShownLine, Usage, What,
};
pub use file::Access;
pub use frame::Frame;
pub use imported::{Imported, ImportedPiece};
pub use incoming::{Incoming, IncomingError};
pub use lock::{Claim, Holder, host};
pub use log::{FilesAt, Log, MissingLines, Tail};
pub use metadata::{InEffect, Metadata};
pub use push::{ContentDigest, NextMessage, PushError, PushKey};
pub use redact::{RedactTarget, RedactedFile, RedactedTask, Redaction};
pub use redacted_copies::RedactedCopies;
pub use redacted_digests::{RedactedDigests, TaskRedactions};
pub use redacted_lines::RedactedLine;
pub use redacted_name::redacted_name;
pub use redacted_values::RedactedValue;
pub use registry::{
    ClaimRequest, Counters, Filter, LearnedWindow, Lease, Outcome, QueueEntry, Quirks, Registry,
    RegistryError, Report, Return, Status, StatusError, StopRequest, TaskRow, TaskStats,
};
pub use repair::Repair;
pub use search::{
    IndexCoverage, Matching, MentionIndex, SearchAnswer, SearchHit, SearchRequest, Snippet,
};
pub use secrets::{Scanned, SecretPlace, StoredSecret};
pub use show::Visit;
pub use task_draft::{DraftError, TaskDraft};
pub use text_vectors::TextVectors;
pub use time::{iso, now, parse_iso};
pub use unsynced::UnsyncedFiles;
pub use verify::Problem;
pub use working_file::{Working, WorkingFile};
pub use writer::{
    AppendError, Durability, MAX_MESSAGE, OpenError, Restoration, ToolError, Trigger, Writer,
    stand_in_tokens,
};
