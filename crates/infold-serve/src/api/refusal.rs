use std::error::Error;

use http::{Method, Response, StatusCode};
use infold::{ManageError, SetupError};
use infold_store::{
    AppendError, IncomingError, LogError, OpenError, PushError, RegistryError, StepError, TaskError,
};
use serde_json::json;

use super::ApiBody;
use super::reply::whole;

/// Why something was not done, and what to do about it.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    kind: &'static str,
    message: String,
    hint: Option<String>,
}

impl Refusal {
    /// A pattern matches nothing of what it was for.
    pub fn nothing_found() -> Refusal {
        let text = "the pattern matches nothing; nothing was changed";
        Refusal::new(StatusCode::CONFLICT, "nothing_found", text)
    }

    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Refusal {
        Refusal {
            status,
            kind,
            message: message.into(),
            hint: None,
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }

    /// What was asked makes no sense.
    pub fn bad(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, "bad_request", message)
            .hint("GET /infold/api/openapi.json says what each address takes; nothing was changed")
    }

    /// There is no such address.
    pub fn no_route(path: &str) -> Refusal {
        Refusal::new(
            StatusCode::NOT_FOUND,
            "no_route",
            format!("nothing at `{path}`"),
        )
        .hint("GET /infold/api/openapi.json names all addresses")
    }

    /// The address is there, for something else.
    pub fn method(method: &Method, allowed: &str) -> Refusal {
        let message = format!("{method} is not taken here");
        Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
            .hint(format!("this address takes {allowed}"))
    }

    /// The body is too long.
    pub fn too_large(most: usize) -> Refusal {
        let message = format!("the body is longer than {} MiB", most >> 20);
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
            .hint("send it in parts; nothing of it was kept")
    }

    /// The body does not come.
    pub fn slow() -> Refusal {
        let message = "the body did not come in time";
        Refusal::new(StatusCode::REQUEST_TIMEOUT, "slow", message)
            .hint("send it in one go; nothing of it was kept")
    }

    /// There are too many readers.
    pub fn busy(message: &str) -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).hint("try again later")
    }

    /// The registry does not know a task that is there.
    pub fn no_row(id: uuid::Uuid) -> Refusal {
        let message = format!("task {id} has no row in the registry");
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "store", message)
            .hint("`infold doctor --repair` adds it")
    }

    /// It ran, and the answer is no.
    pub fn refused(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", message)
            .hint("nothing was changed")
    }

    /// We are at fault.
    pub fn broken() -> Refusal {
        let message = "the server broke while it answered";
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "broken", message)
            .hint("its traces say where; what was acknowledged is kept")
    }

    /// As an answer.
    pub fn response(self) -> Response<ApiBody> {
        let error =
            json!({"error": {"message": self.message, "hint": self.hint, "kind": self.kind}});
        whole(self.status, "application/json", format!("{error}\n"))
    }
}

/// An error and everything behind it, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

impl From<TaskError> for Refusal {
    fn from(error: TaskError) -> Refusal {
        let text = chain(&error);
        let names = |ids: &[uuid::Uuid]| {
            let names: Vec<String> = ids.iter().take(5).map(|id| id.to_string()).collect();
            names.join(", ")
        };
        match error {
            TaskError::Unknown { nearest, .. } => {
                Refusal::new(StatusCode::NOT_FOUND, "unknown_task", text).hint(
                    match nearest.is_empty() {
                        true => "there are no tasks like it".to_owned(),
                        false => format!("nearest: {}", names(&nearest)),
                    },
                )
            }
            TaskError::Ambiguous { matches, .. } => {
                Refusal::new(StatusCode::BAD_REQUEST, "ambiguous_task", text)
                    .hint(format!("say more of its id: {}", names(&matches)))
            }
            TaskError::Ended { .. } => Refusal::new(StatusCode::CONFLICT, "ended", text)
                .hint("fork it to go on from there in a new task"),
            TaskError::Continued { .. } => {
                Refusal::new(StatusCode::CONFLICT, "continued", text).hint("remove those first")
            }
            TaskError::Open {
                source: OpenError::Held { holder },
                ..
            } => Refusal::new(StatusCode::CONFLICT, "held", text).hint(match holder {
                Some(holder) => format!("wait for it, or stop process {}", holder.pid),
                None => "wait for it".to_owned(),
            }),
            TaskError::Removed { .. } => {
                Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "store", text)
                    .hint("`infold doctor --repair` removes what is left of it")
            }
            TaskError::Redacting { .. } => {
                Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "store", text)
                    .hint("look at the disk; the rest is done as soon as the task is opened")
            }
            TaskError::Made { .. } => {
                Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "store", text)
                    .hint("look at the disk; the task is there")
            }
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

impl From<StepError> for Refusal {
    fn from(error: StepError) -> Refusal {
        match error {
            StepError::Past(error) => error.into(),
            error => Refusal::refused(error.to_string()),
        }
    }
}

impl From<LogError> for Refusal {
    fn from(error: LogError) -> Refusal {
        let text = chain(&error);
        match error {
            LogError::Full { .. } => Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "full", text)
                .hint("free some space and do it again; nothing that was acknowledged is lost"),
            LogError::Unsure { .. } => {
                Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "unsure", text)
                    .hint("look at the disk, then at the task's log, before it is done again")
            }
            LogError::Damaged { .. } => {
                Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", text)
                    .hint("`infold doctor --repair` keeps what is readable")
            }
            _ => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "store", text)
                .hint("look at the disk and at who may write to it"),
        }
    }
}

impl From<RegistryError> for Refusal {
    fn from(error: RegistryError) -> Refusal {
        let text = chain(&error);
        match error {
            RegistryError::Busy { .. } => Refusal::busy(&text),
            RegistryError::Full { .. } => {
                Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "full", text)
                    .hint("free some space and do it again")
            }
            _ => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "store", text)
                .hint("`infold doctor` says what is wrong"),
        }
    }
}

impl From<IncomingError> for Refusal {
    fn from(error: IncomingError) -> Refusal {
        let large = matches!(error, IncomingError::TooLarge { .. });
        let (status, kind) = match large {
            true => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
            false => (StatusCode::BAD_REQUEST, "bad_request"),
        };
        Refusal::new(status, kind, chain(&error)).hint(
            "the body is JSON Lines (each message on one line) or a JSON array, of messages with \"role\" and \"content\"; nothing of it was kept",
        )
    }
}

impl From<AppendError> for Refusal {
    fn from(error: AppendError) -> Refusal {
        match error {
            AppendError::Log(error) => error.into(),
            other => Refusal::bad(chain(&other)),
        }
    }
}

impl From<PushError> for Refusal {
    fn from(error: PushError) -> Refusal {
        let refusal: Refusal = match error {
            PushError::Incoming(error) => error.into(),
            PushError::Append(error) => error.into(),
            PushError::Log(error) => error.into(),
            error @ PushError::OtherContent { .. } => {
                return Refusal::refused(error.to_string())
                    .hint("give each push a key of its own; nothing of it was kept");
            }
        };
        match (&refusal.hint, refusal.kind) {
            // One that could not be taken back says so itself.
            (_, "unsure" | "bad_request" | "too_large") | (None, _) => refusal,
            (Some(hint), _) => {
                let hint = format!("nothing of it was kept; {hint}");
                refusal.hint(hint)
            }
        }
    }
}

impl From<SetupError> for Refusal {
    fn from(error: SetupError) -> Refusal {
        match error {
            SetupError::Task(error) => error.into(),
            other => Refusal::bad(chain(&other)),
        }
    }
}

impl From<ManageError> for Refusal {
    fn from(error: ManageError) -> Refusal {
        match error {
            ManageError::Step(error) => error.into(),
            ManageError::Log(error) => error.into(),
            error @ ManageError::Floor { .. } => Refusal::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "too_small",
                error.to_string(),
            )
            .hint("give a larger window, or a smaller max_tokens for the reply"),
            error @ ManageError::Cancelled => Refusal::refused(error.to_string()),
        }
    }
}
