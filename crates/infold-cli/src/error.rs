//! Errors of commands: exit code, text and hint, and how the errors of the libraries map to them.

use std::borrow::Cow;
use std::fmt;
use std::process::ExitCode;

use infold::error_chain;
use infold_log::steer::Refused;
use infold_store::{
    AppendError, DraftError, IncomingError, LogError, OpenError, PushError, RegistryError,
    StepError, TaskError, ToolError,
};
use infold_wire::transcript::{DetectError, RecordError, TranscriptError};

use crate::output::print_stderr;

/// The result of a command.
pub type CliResult<T = ()> = Result<T, CliError>;

/// The reason that a command failed, with a hint for the user.
#[derive(Debug)]
pub struct CliError {
    exit: Exit,
    error: String,
    hint: Option<String>,
    task: Option<String>,
}

/// The exit code of a failed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command ran, with a negative result.
    No = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// The store could not be read or written.
    Store = 3,
    /// A provider gave no usable answer.
    Provider = 4,
    /// The user interrupted the command.
    Interrupted = 130,
    /// The reader of standard output closed the pipe.
    Pipe = 0,
}

impl CliError {
    /// Makes an error without a hint.
    pub fn new(exit: Exit, error: impl fmt::Display) -> CliError {
        CliError {
            exit,
            error: error.to_string(),
            hint: None,
            task: None,
        }
    }

    /// Makes an error with exit code 1: a negative result.
    pub fn no(error: impl fmt::Display) -> CliError {
        CliError::new(Exit::No, error)
    }

    /// Makes an error with exit code 2: a wrong command or configuration.
    pub fn usage(error: impl fmt::Display) -> CliError {
        CliError::new(Exit::Usage, error)
    }

    /// Makes an error with exit code 3: the store failed.
    pub fn store(error: impl fmt::Display) -> CliError {
        CliError::new(Exit::Store, error)
    }

    /// Makes an error with exit code 4: a provider failed.
    pub fn provider(error: impl fmt::Display) -> CliError {
        CliError::new(Exit::Provider, error)
    }

    /// Makes an error with exit code 130.
    pub fn interrupted(error: impl fmt::Display) -> CliError {
        CliError::new(Exit::Interrupted, error)
    }

    /// Returns the error without the hint.
    pub fn text(&self) -> &str {
        &self.error
    }

    /// Returns the hint for the user.
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Adds a hint for the user.
    pub fn hint(mut self, hint: impl Into<String>) -> CliError {
        self.hint = Some(hint.into());
        self
    }

    /// Prefixes the text with the file or object it is about.
    pub fn within(mut self, place: &str) -> CliError {
        self.error = format!("{place}: {}", self.error);
        self
    }

    /// Adds the changes made before the store failed to the hint.
    pub fn after(self, done: &str) -> CliError {
        if self.exit != Exit::Store {
            return self;
        }
        let hint = match &self.hint {
            Some(hint) if hint.contains(done) => hint.clone(),
            Some(hint) => format!("{done}; {hint}"),
            None => done.to_owned(),
        };
        self.hint(hint)
    }

    /// Replaces `TASK` in the hint, so that the commands in it can be copied.
    pub fn about(mut self, task: &str) -> CliError {
        self.hint = self.hint.map(|hint| hint.replace("TASK", task));
        self
    }

    /// Sets the `task` member of the JSON form.
    pub fn of(mut self, task: &str) -> CliError {
        self.task = Some(task.to_owned());
        self
    }

    /// Prints this as a warning.
    pub fn warn(&self, json: bool) {
        if json {
            let object = serde_json::json!({"warning": self.error, "hint": self.hint});
            print_stderr(object.to_string());
        } else {
            let yellow = anstyle::AnsiColor::Yellow.on_default().bold();
            print_stderr(format!("{yellow}warning:{yellow:#} {}", self.error));
        }
    }

    /// Prints this as an error and returns the exit code.
    pub fn report(&self, json: bool) -> ExitCode {
        if self.exit == Exit::Pipe {
            return ExitCode::SUCCESS;
        }
        if json {
            let mut object = serde_json::json!({
                "error": self.error, "hint": self.hint, "exit": self.exit as u8
            });
            if let Some(task) = &self.task {
                object["task"] = task.as_str().into();
            }
            print_stderr(object.to_string());
        } else {
            let red = anstyle::AnsiColor::Red.on_default().bold();
            let cyan = anstyle::AnsiColor::Cyan.on_default();
            print_stderr(format!("{red}error:{red:#} {}", self.error));
            if let Some(hint) = &self.hint {
                print_stderr(format!("{cyan}hint:{cyan:#} {hint}"));
            }
        }
        ExitCode::from(self.exit as u8)
    }
}

const NOTHING_STORED: &str = "nothing was stored";
const NOT_WRITABLE: &str = "the contexts directory must be writable by you";
const DISK_FULL: &str = "free some space and try again; nothing that was acknowledged is lost";
const WHERE_TASKS_ARE: &str = "--contexts DIR or INFOLD_CONTEXTS sets the directory of the tasks";

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> CliError {
        let exit = match error.kind() {
            std::io::ErrorKind::BrokenPipe => Exit::Pipe,
            _ => Exit::Store,
        };
        CliError::new(exit, format!("the output could not be written: {error}"))
    }
}

impl From<LogError> for CliError {
    fn from(error: LogError) -> CliError {
        CliError::store(error_chain(&error)).hint(match &error {
            LogError::Full { .. } => DISK_FULL,
            LogError::Denied { .. } => NOT_WRITABLE,
            LogError::Unsure { .. } => "check the disk; `infold log TASK` shows whether it did",
            LogError::Damaged { .. } => {
                "`infold verify` shows the extent of the damage, `infold doctor --repair` sets it aside"
            }
            LogError::LockLost { .. } => {
                "try again: nothing was written; do not touch `lock` files, stale ones are taken over"
            }
            LogError::NoParent { .. } => {
                "restore that task's directory into this contexts directory"
            }
            LogError::Circular { .. } => {
                "the first line of its events.jsonl is wrong: restore that file from a copy"
            }
            LogError::Io { .. } => WHERE_TASKS_ARE,
        })
    }
}

impl From<RegistryError> for CliError {
    fn from(error: RegistryError) -> CliError {
        let exit = match &error {
            RegistryError::PathTooLong { .. } => Exit::Usage,
            _ => Exit::Store,
        };
        CliError::new(exit, error_chain(&error)).hint(match &error {
            RegistryError::TooNew { .. } => "use a newer infold; nothing was changed",
            RegistryError::Busy { .. } => "another process is using it; try again in a moment",
            RegistryError::ReadOnly { .. } => NOT_WRITABLE,
            RegistryError::Full { .. } => DISK_FULL,
            RegistryError::Damaged { .. } => {
                "`infold doctor --repair` sets it aside and rebuilds it from the task directories"
            }
            RegistryError::PathTooLong { .. } => {
                "use a directory with a shorter path: --contexts DIR or INFOLD_CONTEXTS; nothing was created"
            }
            RegistryError::Open { .. } => WHERE_TASKS_ARE,
            RegistryError::Sql { .. } => "check the disk: it may be full, or failing",
        })
    }
}

impl From<TaskError> for CliError {
    fn from(error: TaskError) -> CliError {
        let text = error_chain(&error);
        let names = |ids: &[uuid::Uuid]| {
            let names: Vec<String> = ids.iter().take(5).map(|id| id.to_string()).collect();
            names.join(", ")
        };
        match error {
            TaskError::Unknown { nearest, .. } if nearest.is_empty() => CliError::usage(text).hint(
                "there are no tasks here; `infold task new` creates one, --contexts DIR sets another directory",
            ),
            TaskError::Unknown { nearest, .. } => {
                let nearest = names(&nearest);
                CliError::usage(text).hint(format!("nearest: {nearest}; `infold task list` lists all"))
            }
            TaskError::Ambiguous { matches, .. } => {
                CliError::usage(text).hint(format!("use more of its id: {}", names(&matches)))
            }
            TaskError::Ended { task, .. } => CliError::usage(text)
                .hint(format!("`infold fork {task}` continues it in a new task")),
            TaskError::Continued { .. } => {
                CliError::no(text).hint("--with-forks deletes those as well; nothing was deleted")
            }
            TaskError::Open {
                source: OpenError::Held { holder },
                ..
            } => CliError::store(text).hint(match holder {
                Some(holder) if holder.address.is_some() => "it did not release the task: wait for its request to end, or set INFOLD_TOKEN if it requires a token".to_owned(),
                Some(holder) => format!("wait for it, or stop process {}", holder.pid),
                None => "wait for it".to_owned(),
            }),
            TaskError::Removed { .. } => {
                CliError::store(text).hint("`infold doctor --repair` removes what is left of it")
            }
            TaskError::Redacting { .. } => CliError::store(text).hint(
                "opening the task completes the redaction; `infold doctor --repair` does it too",
            ),
            TaskError::Made { task, .. } => CliError::store(text)
                .of(&task.to_string())
                .hint(format!("check the disk; `infold verify {task}` shows whether it is intact")),
            TaskError::Open {
                source: OpenError::Log(error),
                ..
            } => error.into(),
            TaskError::Step { source, .. } => (*source).into(),
            TaskError::Checkpoint(error) => error.into(),
            TaskError::Log(error) => error.into(),
            TaskError::Registry(error) => error.into(),
        }
    }
}

impl From<StepError> for CliError {
    fn from(error: StepError) -> CliError {
        let text = error.to_string();
        let exit = match &error {
            Refused::NothingToUndo
            | Refused::NothingToRedo
            | Refused::Already
            | Refused::Vetoed { .. }
            | Refused::Nothing { .. }
            | Refused::Pinned { .. }
            | Refused::NotPinned { .. } => Exit::No,
            _ => Exit::Usage,
        };
        let hint: Cow<'_, str> = match error {
            Refused::Past(error) => return error.into(),
            Refused::State { .. } => "`infold state TASK get` shows the state".into(),
            Refused::NothingToUndo => "`infold log TASK` shows the steps".into(),
            Refused::NothingToRedo => "only an undo with nothing after it can be redone".into(),
            Refused::Already => "nothing was changed".into(),
            Refused::Files { .. } => FILES_HINT.into(),
            Refused::Vetoed { .. } => VETO_HINT.into(),
            Refused::Nothing { .. } => "`infold view TASK` shows what is visible".into(),
            Refused::NoMessage { .. } | Refused::NoEvent { .. } | Refused::TooEarly => {
                "`infold log TASK` shows all messages and events".into()
            }
            Refused::Elsewhere { seq } => format!(
                "`infold recall TASK {seq}` shows it; `infold rewind TASK --to {seq}` returns to it"
            )
            .into(),
            Refused::Under { fold, .. } => {
                format!("remove the fold first: `infold unfold TASK {fold}`").into()
            }
            Refused::Waiting { round, .. } => {
                format!("wait for the results, or end the range before message {round}").into()
            }
            Refused::Inactive { .. } => "`infold folds TASK` shows which are active".into(),
            Refused::NotAFold { .. } => "`infold folds TASK` lists the folds".into(),
            Refused::Inner { outer, .. } => {
                format!("remove the outer fold first: `infold unfold TASK {outer}`").into()
            }
            Refused::Part { seq, .. } => {
                format!("`infold recall TASK {seq}` shows the message").into()
            }
            Refused::Pinned { seq } => format!("`infold unpin TASK {seq}` removes the pin").into(),
            Refused::Blank => "nothing was pinned".into(),
            Refused::NotPinned { .. } => "`infold view TASK` marks what is pinned".into(),
        };
        CliError::new(exit, text).hint(hint)
    }
}

/// The hint where files cannot be put in place with a step.
const FILES_HINT: &str = "`infold checkpoint list TASK` shows what is kept; without --files, and with --no-files of `undo` and `redo`, files stay as they are";

/// The hint for a fold that the hook `before_fold` refused.
pub const VETO_HINT: &str =
    "the configured `hooks.before_fold` decides; `infold config show` shows it";

impl From<IncomingError> for CliError {
    fn from(error: IncomingError) -> CliError {
        let hint = match &error {
            IncomingError::Read(source) if source.kind() == std::io::ErrorKind::StorageFull => {
                return CliError::store(error_chain(&error)).hint(
                    "the input is copied to TMPDIR while it is checked; free some space there",
                );
            }
            IncomingError::Read(_) => NOTHING_STORED,
            IncomingError::TooLarge { .. } => {
                "put large data into a file and its path into the message; nothing was stored"
            }
            IncomingError::NotAMessage { .. } | IncomingError::Array { .. } => {
                "the input is JSON Lines (one message per line) or a JSON array, of messages with \"role\" and \"content\"; nothing was stored"
            }
        };
        CliError::usage(error_chain(&error)).hint(hint)
    }
}

impl From<TranscriptError> for CliError {
    fn from(error: TranscriptError) -> CliError {
        CliError::usage(error_chain(&error)).hint(match &error {
            TranscriptError::Detect(DetectError::Empty) => "name the file with the conversation",
            TranscriptError::Detect(_) => "--format FORMAT reads it as that format",
            TranscriptError::Input(RecordError::TooLarge { .. }) => {
                "records of this size are not read; nothing was stored"
            }
            TranscriptError::Record { .. }
            | TranscriptError::Input(RecordError::Malformed { .. }) => {
                "correct that line, or remove it if it is incomplete; nothing was stored"
            }
            TranscriptError::Input(RecordError::Read(_)) => NOTHING_STORED,
        })
    }
}

impl From<DraftError> for CliError {
    fn from(error: DraftError) -> CliError {
        match error {
            DraftError::Append(error) => error.into(),
            DraftError::Task(error) => error.into(),
        }
    }
}

impl From<AppendError> for CliError {
    fn from(error: AppendError) -> CliError {
        match error {
            AppendError::Log(error) => error.into(),
            other => CliError::usage(error_chain(&other)).hint(NOTHING_STORED),
        }
    }
}

impl From<PushError> for CliError {
    fn from(error: PushError) -> CliError {
        let is_unsure = matches!(
            &error,
            PushError::Log(LogError::Unsure { .. })
                | PushError::Append(AppendError::Log(LogError::Unsure { .. }))
        );
        let error: CliError = match error {
            PushError::Incoming(error) => error.into(),
            PushError::Append(error) => error.into(),
            PushError::Log(error) => error.into(),
            error @ PushError::OtherContent { .. } => {
                return CliError::usage(error)
                    .hint("use another key for each push; nothing was stored");
            }
        };
        // The error of a push that could not be rolled back already says so.
        if is_unsure {
            error
        } else {
            error.after(NOTHING_STORED)
        }
    }
}

impl From<ToolError> for CliError {
    fn from(error: ToolError) -> CliError {
        match error {
            ToolError::Log(error) => error.into(),
            other => CliError::usage(error_chain(&other))
                .hint(r#"such as {"tool":"ls","args":{},"result":"a b","status":"success","duration_ms":3}"#),
        }
    }
}
