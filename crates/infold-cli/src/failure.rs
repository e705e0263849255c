use std::fmt;
use std::process::ExitCode;

use infold_log::steer::Refused;
use infold_store::{
    AppendError, DraftError, IncomingError, LogError, OpenError, PushError, RegistryError,
    StepError, TaskError, ToolError,
};

use infold_wire::transcript::{DetectError, TranscriptError};

use crate::out::aside;

/// Why a command did not do what it was asked to, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    error: String,
    hint: Option<String>,
    task: Option<String>,
}

/// What a script does about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It ran, and the answer is no.
    No = 1,
    /// The command is wrong.
    Usage = 2,
    /// The store could not be read or written.
    Store = 3,
    /// A provider did not answer, or not well.
    Provider = 4,
    /// A person ended it.
    Interrupted = 130,
    /// Nobody reads what we print any more.
    Pipe = 0,
}

impl Failure {
    /// Makes a failure without a hint.
    pub fn new(kind: Kind, error: impl fmt::Display) -> Failure {
        Failure {
            kind,
            error: error.to_string(),
            hint: None,
            task: None,
        }
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Says where it happened, in front of what.
    pub fn within(mut self, place: &str) -> Failure {
        self.error = format!("{place}: {}", self.error);
        self
    }

    /// Says what was done before the store failed.
    pub fn after(self, done: &str) -> Failure {
        if self.kind != Kind::Store {
            return self;
        }
        let hint = match &self.hint {
            Some(hint) if hint.contains(done) => hint.clone(),
            Some(hint) => format!("{done}; {hint}"),
            None => done.to_owned(),
        };
        self.hint(hint)
    }

    /// Puts the task's name where the hint says `TASK`, so that it can be typed as it stands.
    pub fn about(mut self, task: &str) -> Failure {
        self.hint = self.hint.map(|hint| hint.replace("TASK", task));
        self
    }

    /// Says of which task it is, to scripts.
    pub fn of(mut self, task: &str) -> Failure {
        self.task = Some(task.to_owned());
        self
    }

    /// Tells the person, or the script, of something that did not keep the command from being done.
    pub fn warn(&self, json: bool) {
        if json {
            let object = serde_json::json!({"warning": self.error, "hint": self.hint});
            aside(object.to_string());
        } else {
            let yellow = anstyle::AnsiColor::Yellow.on_default().bold();
            aside(format!("{yellow}warning:{yellow:#} {}", self.error));
        }
    }

    /// Tells the person, or the script, and returns the exit code.
    pub fn report(&self, json: bool) -> ExitCode {
        if self.kind != Kind::Pipe {
            if json {
                let mut object = serde_json::json!({
                    "error": self.error, "hint": self.hint, "exit": self.kind as u8
                });
                if let Some(task) = &self.task {
                    object["task"] = task.as_str().into();
                }
                aside(object.to_string());
            } else {
                let red = anstyle::AnsiColor::Red.on_default().bold();
                let dim = anstyle::AnsiColor::Cyan.on_default();
                aside(format!("{red}error:{red:#} {}", self.error));
                if let Some(hint) = &self.hint {
                    aside(format!("{dim}hint:{dim:#} {hint}"));
                }
            }
        }
        ExitCode::from(self.kind as u8)
    }
}

/// An error and everything behind it, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some errors already say what is behind them.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        let kind = match error.kind() {
            std::io::ErrorKind::BrokenPipe => Kind::Pipe,
            _ => Kind::Store,
        };
        Failure::new(kind, format!("the output could not be written: {error}"))
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Failure {
        let hint = match &error {
            LogError::Full { .. } => {
                Some("free some space and do it again; nothing that was acknowledged is lost")
            }
            LogError::Denied { .. } => Some("the contexts directory must be writable by you"),
            LogError::Unsure { .. } => {
                Some("look at the disk; `infold log TASK` shows whether it did")
            }
            LogError::Damaged { .. } => Some(
                "`infold verify` says how much is damaged, `infold doctor --repair` sets it aside",
            ),
            LogError::LockLost { .. } => Some(
                "do it again: nothing was written; leave `lock` files alone, they are taken over by themselves",
            ),
            LogError::NoParent { .. } => {
                Some("bring that task's directory back into this contexts directory")
            }
            LogError::Circular { .. } => Some(
                "the first line of its events.jsonl is wrong: bring that file back from a copy",
            ),
            LogError::Io { .. } => {
                Some("--contexts DIR or INFOLD_CONTEXTS says where the tasks are")
            }
        };
        let failure = Failure::new(Kind::Store, chain(&error));
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Failure {
        let hint = match &error {
            RegistryError::TooNew { .. } => Some("a newer infold reads it; nothing was changed"),
            RegistryError::Busy { .. } => {
                Some("another process is using it; do it again in a moment")
            }
            RegistryError::ReadOnly { .. } => {
                Some("the contexts directory must be writable by you")
            }
            RegistryError::Full { .. } => {
                Some("free some space and do it again; nothing that was acknowledged is lost")
            }
            RegistryError::Damaged { .. } => Some(
                "`infold doctor --repair` keeps it aside and makes a new one from the task directories",
            ),
            RegistryError::PathTooLong { .. } => Some(
                "name a directory with a shorter path: --contexts DIR or INFOLD_CONTEXTS; nothing was made",
            ),
            RegistryError::Open { .. } => {
                Some("--contexts DIR or INFOLD_CONTEXTS says where the tasks are")
            }
            RegistryError::Sql { .. } => Some("look at the disk: it may be full, or failing"),
        };
        let kind = match &error {
            RegistryError::PathTooLong { .. } => Kind::Usage,
            _ => Kind::Store,
        };
        let failure = Failure::new(kind, chain(&error));
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<TaskError> for Failure {
    fn from(error: TaskError) -> Failure {
        let text = chain(&error);
        let names = |ids: &[uuid::Uuid]| {
            let names: Vec<String> = ids.iter().take(5).map(|id| id.to_string()).collect();
            names.join(", ")
        };
        match error {
            TaskError::Unknown { nearest, .. } => {
                let failure = Failure::new(Kind::Usage, text);
                match nearest.is_empty() {
                    true => failure.hint("there are no tasks here; `infold task new` makes one, --contexts DIR looks elsewhere"),
                    false => failure.hint(format!("nearest: {}; `infold task list` names all", names(&nearest))),
                }
            }
            TaskError::Ambiguous { matches, .. } => Failure::new(Kind::Usage, text)
                .hint(format!("say more of its id: {}", names(&matches))),
            TaskError::Ended { task, .. } => Failure::new(Kind::Usage, text).hint(format!(
                "`infold fork {task}` goes on from there in a new task"
            )),
            TaskError::Continued { .. } => Failure::new(Kind::No, text)
                .hint("--with-forks removes those as well; nothing was removed"),
            TaskError::Open {
                source: OpenError::Held { holder },
                ..
            } => {
                let failure = Failure::new(Kind::Store, text);
                match holder {
                    Some(holder) if holder.address.is_some() => failure.hint(
                        "it did not let go of it: wait for its request to end, or set INFOLD_TOKEN if it wants a token",
                    ),
                    Some(holder) => {
                        failure.hint(format!("wait for it, or stop process {}", holder.pid))
                    }
                    None => failure.hint("wait for it"),
                }
            }
            TaskError::Removed { .. } => Failure::new(Kind::Store, text)
                .hint("`infold doctor --repair` removes what is left of it"),
            TaskError::Redacting { .. } => Failure::new(Kind::Store, text)
                .hint("the rest is done as soon as the task is opened; `infold doctor --repair` does it too"),
            TaskError::Made { task, .. } => Failure::new(Kind::Store, text)
                .of(&task.to_string())
                .hint(format!(
                    "look at the disk; `infold verify {task}` says whether it is whole"
                )),
            TaskError::Open {
                source: OpenError::Log(error),
                ..
            } => error.into(),
            TaskError::Step { source, .. } => (*source).into(),
            TaskError::Log(error) => error.into(),
            TaskError::Registry(error) => error.into(),
        }
    }
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Failure {
        let text = error.to_string();
        let (kind, hint) = match error {
            Refused::Past(error) => return error.into(),
            Refused::NothingToUndo => (Kind::No, "`infold log TASK` shows the steps".to_owned()),
            Refused::NothingToRedo => (
                Kind::No,
                "only an undo with nothing after it can be redone".to_owned(),
            ),
            Refused::Already => (Kind::No, "nothing was changed".to_owned()),
            Refused::Vetoed { .. } => (
                Kind::No,
                "`hooks.before_fold` of the configuration decides; `infold config show` names it"
                    .to_owned(),
            ),
            Refused::Nothing { .. } => (
                Kind::No,
                "`infold view TASK` shows what is visible".to_owned(),
            ),
            Refused::NoMessage { .. } | Refused::NoEvent { .. } | Refused::TooEarly => (
                Kind::Usage,
                "`infold log TASK` shows all messages and events".to_owned(),
            ),
            Refused::Elsewhere { seq } => (
                Kind::Usage,
                format!(
                    "`infold recall TASK {seq}` shows it; `infold rewind TASK --to {seq}` goes back to it"
                ),
            ),
            Refused::Under { fold, .. } => (
                Kind::Usage,
                format!("open the fold first: `infold unfold TASK {fold}`"),
            ),
            Refused::Waiting { round, .. } => (
                Kind::Usage,
                format!("wait for the results, or end the range before message {round}"),
            ),
            Refused::Inactive { .. } => (
                Kind::Usage,
                "`infold folds TASK` shows which are active".to_owned(),
            ),
            Refused::Inner { outer, .. } => (
                Kind::Usage,
                format!("open the outer one first: `infold unfold TASK {outer}`"),
            ),
            Refused::Part { seq, .. } => (
                Kind::Usage,
                format!("`infold recall TASK {seq}` shows the message"),
            ),
            Refused::Pinned { seq } => (
                Kind::No,
                format!("`infold unpin TASK {seq}` takes the pin away"),
            ),
            Refused::Blank => (Kind::Usage, "nothing was pinned".to_owned()),
            Refused::NotPinned { .. } => (
                Kind::No,
                "`infold view TASK` marks what is pinned".to_owned(),
            ),
        };
        Failure::new(kind, text).hint(hint)
    }
}

impl From<IncomingError> for Failure {
    fn from(error: IncomingError) -> Failure {
        let hint = match &error {
            IncomingError::Read(source) if source.kind() == std::io::ErrorKind::StorageFull => {
                return Failure::new(Kind::Store, chain(&error)).hint(
                    "the input is kept in TMPDIR while it is checked; free some space there",
                );
            }
            IncomingError::Read(_) => "nothing of it was kept",
            IncomingError::TooLarge { .. } => {
                "put large data into a file and its path into the message; nothing of it was kept"
            }
            IncomingError::NotAMessage { .. } | IncomingError::Array { .. } => {
                "the input is JSON Lines (each message on one line) or a JSON array, of messages with \"role\" and \"content\"; nothing of it was kept"
            }
        };
        Failure::new(Kind::Usage, chain(&error)).hint(hint)
    }
}

impl From<TranscriptError> for Failure {
    fn from(error: TranscriptError) -> Failure {
        let hint = match &error {
            TranscriptError::Detect(DetectError::Empty) => "say which file holds the conversation",
            TranscriptError::Detect(_) => "--format FORMAT reads it as one of them all the same",
            TranscriptError::TooLarge { .. } => {
                "records of this size are not read; nothing was kept"
            }
            TranscriptError::Record { .. } | TranscriptError::Shape { .. } => {
                "put that line right, or cut it off if it is torn; nothing was kept"
            }
            TranscriptError::Read(_) => "nothing was kept",
        };
        Failure::new(Kind::Usage, chain(&error)).hint(hint)
    }
}

impl From<DraftError> for Failure {
    fn from(error: DraftError) -> Failure {
        match error {
            DraftError::Append(error) => error.into(),
            DraftError::Task(error) => error.into(),
        }
    }
}

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Failure {
        match error {
            AppendError::Log(error) => error.into(),
            other => Failure::new(Kind::Usage, chain(&other)).hint("nothing of it was kept"),
        }
    }
}

impl From<PushError> for Failure {
    fn from(error: PushError) -> Failure {
        let is_unsure = matches!(
            &error,
            PushError::Log(LogError::Unsure { .. })
                | PushError::Append(AppendError::Log(LogError::Unsure { .. }))
        );
        let failure: Failure = match error {
            PushError::Incoming(error) => error.into(),
            PushError::Append(error) => error.into(),
            PushError::Log(error) => error.into(),
            error @ PushError::OtherContent { .. } => {
                return Failure::new(Kind::Usage, error)
                    .hint("give each push a key of its own; nothing of it was kept");
            }
        };
        // A push that could not be taken back says so itself.
        match is_unsure {
            true => failure,
            false => failure.after("nothing of it was kept"),
        }
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Failure {
        match error {
            ToolError::Log(error) => error.into(),
            other => Failure::new(Kind::Usage, chain(&other))
                .hint(r#"such as {"tool":"ls","args":{},"result":"a b","status":"success","duration_ms":3}"#),
        }
    }
}
