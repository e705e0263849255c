//! Errors of the REST API.

use std::error::Error;

use http::{Method, Response, StatusCode};
use infold::{ManageError, SetupError};
use infold_store::{
    AppendError, IncomingError, LogError, OpenError, PushError, RegistryError, StepError, TaskError,
};
use serde_json::json;

use super::ApiBody;
use super::reply::whole;

/// The error of a request, with a hint.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    kind: &'static str,
    message: String,
    hint: Option<String>,
}

impl ApiError {
    /// A redaction pattern that matches nothing in its scope.
    pub fn nothing_found() -> ApiError {
        let text = "the pattern matches nothing; nothing was changed";
        ApiError::new(StatusCode::CONFLICT, "nothing_found", text)
    }

    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> ApiError {
        ApiError {
            status,
            kind,
            message: message.into(),
            hint: None,
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> ApiError {
        self.hint = Some(hint.into());
        self
    }

    /// The request is invalid.
    pub fn bad(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "bad_request", message)
            .hint("GET /infold/api/openapi.json says what each address takes; nothing was changed")
    }

    /// There is no such address.
    pub fn no_route(path: &str) -> ApiError {
        ApiError::new(
            StatusCode::NOT_FOUND,
            "no_route",
            format!("nothing at `{path}`"),
        )
        .hint("GET /infold/api/openapi.json names all addresses")
    }

    /// The address is there, for something else.
    pub fn method(method: &Method, allowed: &str) -> ApiError {
        let message = format!("{method} is not taken here");
        ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
            .hint(format!("this address takes {allowed}"))
    }

    /// The body is too long.
    pub fn too_large(most: usize) -> ApiError {
        let message = format!("the body is longer than {} MiB", most >> 20);
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
            .hint("send it in parts; nothing of it was kept")
    }

    /// The body does not come.
    pub fn slow() -> ApiError {
        let message = "the body did not come in time";
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow", message)
            .hint("send it in one go; nothing of it was kept")
    }

    /// There are too many readers.
    pub fn busy(message: &str) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).hint("try again later")
    }

    /// The registry does not know a task that is there.
    pub fn no_row(id: uuid::Uuid) -> ApiError {
        let message = format!("task {id} has no row in the registry");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "store", message)
            .hint("`infold doctor --repair` adds it")
    }

    /// The operation ran, and its outcome is negative.
    pub fn refused(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", message)
            .hint("nothing was changed")
    }

    /// An internal error.
    pub fn broken() -> ApiError {
        let message = "the server broke while it answered";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "broken", message)
            .hint("its traces say where; what was acknowledged is kept")
    }

    /// The message and the hint, in one line.
    pub fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }

    /// Returns the error as a response.
    pub fn response(self) -> Response<ApiBody> {
        let error =
            json!({"error": {"message": self.message, "hint": self.hint, "kind": self.kind}});
        whole(self.status, "application/json", format!("{error}\n"))
    }
}

/// Returns an error and its sources in one line.
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

impl From<TaskError> for ApiError {
    fn from(error: TaskError) -> ApiError {
        let text = chain(&error);
        let names = |ids: &[uuid::Uuid]| {
            let names: Vec<String> = ids.iter().take(5).map(|id| id.to_string()).collect();
            names.join(", ")
        };
        match error {
            TaskError::Unknown { nearest, .. } => {
                ApiError::new(StatusCode::NOT_FOUND, "unknown_task", text).hint(
                    if nearest.is_empty() {
                        "there are no tasks like it".to_owned()
                    } else {
                        format!("nearest: {}", names(&nearest))
                    },
                )
            }
            TaskError::Ambiguous { matches, .. } => {
                ApiError::new(StatusCode::BAD_REQUEST, "ambiguous_task", text)
                    .hint(format!("say more of its id: {}", names(&matches)))
            }
            TaskError::Ended { .. } => ApiError::new(StatusCode::CONFLICT, "ended", text)
                .hint("fork it to go on from there in a new task"),
            TaskError::Continued { .. } => {
                ApiError::new(StatusCode::CONFLICT, "continued", text).hint("remove those first")
            }
            TaskError::Open {
                source: OpenError::Held { holder },
                ..
            } => ApiError::new(StatusCode::CONFLICT, "held", text).hint(match holder {
                Some(holder) => format!("wait for it, or stop process {}", holder.pid),
                None => "wait for it".to_owned(),
            }),
            TaskError::Removed { .. } => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "store", text)
                    .hint("`infold doctor --repair` removes what is left of it")
            }
            TaskError::Redacting { .. } => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "store", text)
                    .hint("look at the disk; the rest is done as soon as the task is opened")
            }
            TaskError::Made { .. } => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "store", text)
                    .hint("look at the disk; the task is there")
            }
            TaskError::Open {
                source: OpenError::Log(error),
                ..
            } => error.into(),
            TaskError::Step { source, .. } => (*source).into(),
            TaskError::Checkpoint(_) => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "store", text)
                    .hint("`infold doctor` shows the state of the checkpoints")
            }
            TaskError::Log(error) => error.into(),
            TaskError::Registry(error) => error.into(),
        }
    }
}

impl From<StepError> for ApiError {
    fn from(error: StepError) -> ApiError {
        match error {
            StepError::Past(error) => error.into(),
            error => ApiError::refused(error.to_string()),
        }
    }
}

impl From<LogError> for ApiError {
    fn from(error: LogError) -> ApiError {
        let text = chain(&error);
        match error {
            LogError::Full { .. } => ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "full", text)
                .hint("free some space and do it again; nothing that was acknowledged is lost"),
            LogError::Unsure { .. } => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "unsure", text)
                    .hint("look at the disk, then at the task's log, before it is done again")
            }
            LogError::Damaged { .. } => {
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", text)
                    .hint("`infold doctor --repair` keeps what is readable")
            }
            _ => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "store", text)
                .hint("look at the disk and at who may write to it"),
        }
    }
}

impl From<RegistryError> for ApiError {
    fn from(error: RegistryError) -> ApiError {
        let text = chain(&error);
        match error {
            RegistryError::Busy { .. } => ApiError::busy(&text),
            RegistryError::Full { .. } => {
                ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "full", text)
                    .hint("free some space and do it again")
            }
            _ => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "store", text)
                .hint("`infold doctor` says what is wrong"),
        }
    }
}

impl From<IncomingError> for ApiError {
    fn from(error: IncomingError) -> ApiError {
        let large = matches!(error, IncomingError::TooLarge { .. });
        let (status, kind) = if large {
            (StatusCode::PAYLOAD_TOO_LARGE, "too_large")
        } else {
            (StatusCode::BAD_REQUEST, "bad_request")
        };
        ApiError::new(status, kind, chain(&error)).hint(
            "the body is JSON Lines (each message on one line) or a JSON array, of messages with \"role\" and \"content\"; nothing of it was kept",
        )
    }
}

impl From<AppendError> for ApiError {
    fn from(error: AppendError) -> ApiError {
        match error {
            AppendError::Log(error) => error.into(),
            other => ApiError::bad(chain(&other)),
        }
    }
}

impl From<PushError> for ApiError {
    fn from(error: PushError) -> ApiError {
        let error: ApiError = match error {
            PushError::Incoming(error) => error.into(),
            PushError::Append(error) => error.into(),
            PushError::Log(error) => error.into(),
            error @ PushError::OtherContent { .. } => {
                return ApiError::refused(error.to_string())
                    .hint("give each push a key of its own; nothing of it was kept");
            }
        };
        match (&error.hint, error.kind) {
            // An append that could not be rolled back (`unsure`) has its own hint.
            (_, "unsure" | "bad_request" | "too_large") | (None, _) => error,
            (Some(hint), _) => {
                let hint = format!("nothing of it was kept; {hint}");
                error.hint(hint)
            }
        }
    }
}

impl From<SetupError> for ApiError {
    fn from(error: SetupError) -> ApiError {
        match error {
            SetupError::Task(error) => error.into(),
            other => ApiError::bad(chain(&other)),
        }
    }
}

impl From<ManageError> for ApiError {
    fn from(error: ManageError) -> ApiError {
        match error {
            ManageError::Step(error) => error.into(),
            ManageError::Log(error) => error.into(),
            error @ ManageError::Floor { .. } => ApiError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "too_small",
                error.to_string(),
            )
            .hint("give a larger window, or a smaller max_tokens for the reply"),
            error @ ManageError::Cancelled => ApiError::refused(error.to_string()),
        }
    }
}
