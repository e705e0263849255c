//! Errors, by the exception class that they are raised as, with remedies in Python's terms.

use infold::redact::PatternError;
use infold::search::SearchError;
use infold::show::RecallTargetError;
use infold::{ManageError, ScratchError, SetupError, error_chain};
use infold_log::steer::Refused;
use infold_store::{
    AppendError, IncomingError, LogError, OpenError, PushError, StepError, TaskError,
};
use infold_wire::transcript::TranscriptError;
use pyo3::prelude::*;

/// Why a call failed.
pub struct BindingError {
    class: &'static str,
    text: String,
    hint: Option<String>,
    /// An exception of a Python function, which is raised again.
    raised: Option<Box<PyErr>>,
}

/// The classes of `infold/_errors.py`.
const USAGE: &str = "UsageError";
const REFUSED: &str = "RefusedError";
const TOO_LARGE: &str = "TooLargeError";
const STORE: &str = "StoreError";
const BUSY: &str = "BusyError";

impl BindingError {
    fn new(class: &'static str, text: impl ToString) -> BindingError {
        BindingError {
            class,
            text: text.to_string(),
            hint: None,
            raised: None,
        }
    }

    /// The arguments are wrong.
    pub fn usage(text: impl ToString) -> BindingError {
        BindingError::new(USAGE, text)
    }

    /// An error for a request that was understood and refused.
    pub fn refused(text: impl ToString) -> BindingError {
        BindingError::new(REFUSED, text)
    }

    /// Adds a remedy.
    pub fn hint(self, hint: impl Into<String>) -> BindingError {
        let hint = Some(hint.into());
        BindingError { hint, ..self }
    }

    /// Raises the exception of a Python function instead, if there is one.
    pub fn raising(self, raised: Option<PyErr>) -> BindingError {
        let raised = raised.map(Box::new);
        BindingError { raised, ..self }
    }
}

impl From<BindingError> for PyErr {
    fn from(failure: BindingError) -> PyErr {
        if let Some(raised) = failure.raised {
            return *raised;
        }
        Python::attach(|py| {
            let class = py
                .import("infold._errors")
                .and_then(|module| module.getattr(failure.class));
            let error = class.and_then(|class| class.call1((failure.text, failure.hint)));
            error.map_or_else(|error| error, PyErr::from_value)
        })
    }
}

impl From<LogError> for BindingError {
    fn from(error: LogError) -> BindingError {
        let failure = BindingError::new(STORE, error_chain(&error));
        match &error {
            LogError::Full { .. } => {
                failure.hint("free some space and try again; nothing that was acknowledged is lost")
            }
            LogError::Denied { .. } => failure.hint("the contexts directory must be writable"),
            LogError::Damaged { .. } => {
                failure.hint("`infold doctor --repair` sets the damage aside")
            }
            _ => failure,
        }
    }
}

impl From<TaskError> for BindingError {
    fn from(error: TaskError) -> BindingError {
        let text = error_chain(&error);
        match error {
            TaskError::Unknown { .. } => BindingError::usage(text)
                .hint("infold.tasks() lists the tasks of a contexts directory"),
            TaskError::Ambiguous { .. } => BindingError::usage(text).hint("use more of its id"),
            TaskError::Ended { .. } => {
                BindingError::refused(text).hint("`infold fork` continues it in a new task")
            }
            TaskError::Open {
                source: OpenError::Held { .. },
                ..
            } => BindingError::new(BUSY, text).hint("wait until the other process is done"),
            TaskError::Open {
                source: OpenError::Log(error),
                ..
            } => error.into(),
            TaskError::Step { source, .. } => (*source).into(),
            TaskError::Log(error) => error.into(),
            _ => BindingError::new(STORE, text),
        }
    }
}

impl From<StepError> for BindingError {
    fn from(error: StepError) -> BindingError {
        let text = error.to_string();
        match error {
            Refused::Past(error) => error.into(),
            Refused::Elsewhere { seq } => {
                BindingError::refused(text).hint(format!("rewind(to={seq}) returns to it"))
            }
            Refused::Under { fold, .. } => {
                BindingError::refused(text).hint(format!("open the fold first: unfold(\"{fold}\")"))
            }
            Refused::Inner { outer, .. } => BindingError::refused(text)
                .hint(format!("open the outer fold first: unfold(\"{outer}\")")),
            Refused::NothingToRedo => {
                BindingError::refused(text).hint("only an undo with nothing after it can be redone")
            }
            Refused::NoMessage { .. } | Refused::NoEvent { .. } => {
                BindingError::usage(text).hint("info() has the numbers of messages and events")
            }
            _ => BindingError::refused(text),
        }
    }
}

impl From<ManageError> for BindingError {
    fn from(error: ManageError) -> BindingError {
        let text = error.to_string();
        match error {
            ManageError::Floor { floor } => {
                BindingError::new(TOO_LARGE, text).hint(if floor.bytes.is_some() {
                    "nothing was folded; use a larger max_bytes"
                } else {
                    "nothing was folded; use a larger window or a smaller max_tokens"
                })
            }
            ManageError::Cancelled => BindingError::refused(text),
            ManageError::Step(error) => error.into(),
            ManageError::Log(error) => error.into(),
        }
    }
}

impl From<SetupError> for BindingError {
    fn from(error: SetupError) -> BindingError {
        let text = error_chain(&error);
        match error {
            SetupError::Room(_) => BindingError::usage(text)
                .hint("use a larger window, or a smaller max_tokens for the reply"),
            SetupError::Task(error) => error.into(),
            _ => BindingError::usage(text),
        }
    }
}

impl From<ScratchError> for BindingError {
    fn from(error: ScratchError) -> BindingError {
        match error {
            ScratchError::Task(error) => error.into(),
            ScratchError::Append(error) => error.into(),
            error @ ScratchError::Dir { .. } => {
                BindingError::new(STORE, error).hint("TMPDIR sets the directory of temporary files")
            }
        }
    }
}

impl From<AppendError> for BindingError {
    fn from(error: AppendError) -> BindingError {
        match error {
            AppendError::Log(error) => error.into(),
            other => BindingError::usage(error_chain(&other)).hint("nothing was stored"),
        }
    }
}

impl From<IncomingError> for BindingError {
    fn from(error: IncomingError) -> BindingError {
        let text = match &error {
            // There is a message on each line.
            IncomingError::NotAMessage { count, reason, .. } => {
                format!("message {count}: {reason}")
            }
            other => error_chain(other),
        };
        BindingError::usage(text).hint("nothing was stored")
    }
}

impl From<PushError> for BindingError {
    fn from(error: PushError) -> BindingError {
        match error {
            PushError::Incoming(error) => error.into(),
            PushError::Append(error) => error.into(),
            PushError::Log(error) => error.into(),
            error @ PushError::OtherContent { .. } => BindingError::usage(error)
                .hint("use another key for each append; nothing was stored"),
        }
    }
}

impl From<TranscriptError> for BindingError {
    fn from(error: TranscriptError) -> BindingError {
        let failure = match &error {
            TranscriptError::Record { count, reason, .. } => {
                BindingError::usage(format!("message {count}: {reason}"))
            }
            other => BindingError::usage(error_chain(other)),
        };
        failure.hint("messages are those of the openai and anthropic SDKs: a role and content; format= names another form")
    }
}

impl From<RecallTargetError> for BindingError {
    fn from(error: RecallTargetError) -> BindingError {
        BindingError::usage(error)
    }
}

impl From<SearchError> for BindingError {
    fn from(error: SearchError) -> BindingError {
        match error {
            SearchError::Pattern(error) => error.into(),
            SearchError::Task(error) => error.into(),
        }
    }
}

impl From<PatternError> for BindingError {
    fn from(error: PatternError) -> BindingError {
        BindingError::usage(error).hint("exact=True finds a text as it is written")
    }
}
