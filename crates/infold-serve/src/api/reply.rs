//! Replies of the REST API.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use infold_store::LogError;
use serde_json::Value;
use uuid::Uuid;

use super::ApiBody;
use super::stream::{Pipe, Stream, watch};
use crate::live_events::EventListener;

/// The reply of a route.
pub enum ApiReply {
    /// A single object.
    Json(Value),
    /// A list of objects, produced while it is sent.
    List(Writes),
    /// A text.
    Text(String),
    /// Live events of one task or of all.
    Live(EventListener, Option<Uuid>),
    /// An empty body.
    Nothing,
}

/// Writes a list, in a thread that may block.
type Writes = Box<dyn FnOnce(&mut List) -> Result<(), Stop> + Send>;

/// The reason that a list was cut short.
#[derive(Debug)]
pub enum Stop {
    /// The client closed the connection.
    Gone,
    /// The log could not be read. Elements that were sent before remain sent.
    Log(LogError),
}

impl From<LogError> for Stop {
    fn from(error: LogError) -> Stop {
        Stop::Log(error)
    }
}

/// A list on its way.
pub struct List {
    pipe: Pipe,
    lines: bool,
    count: u64,
}

impl List {
    /// Sends an object.
    pub fn put(&mut self, object: &Value) -> Result<(), Stop> {
        self.begin()?;
        self.pipe.write(object.to_string().as_bytes())?;
        self.end()
    }

    /// Sends an object whose last member is a message, as it came.
    pub fn put_message(&mut self, object: &Value, message: &[u8]) -> Result<(), Stop> {
        self.begin()?;
        let text = object.to_string();
        let head = text.strip_suffix('}').unwrap_or(&text);
        self.pipe.write(head.as_bytes())?;
        self.pipe.write(b",\"message\":")?;
        self.pipe.write(message)?;
        self.pipe.write(b"}")?;
        self.end()
    }

    /// Sends a message, as it came.
    pub fn put_raw(&mut self, message: &[u8]) -> Result<(), Stop> {
        self.begin()?;
        self.pipe.write(message)?;
        self.end()
    }

    fn begin(&mut self) -> Result<(), Stop> {
        match (self.lines, self.count) {
            (true, _) => Ok(()),
            (false, 0) => self.pipe.write(b"[\n"),
            (false, _) => self.pipe.write(b",\n"),
        }
    }

    fn end(&mut self) -> Result<(), Stop> {
        self.count += 1;
        if self.lines {
            self.pipe.write(b"\n")
        } else {
            Ok(())
        }
    }

    fn close(&mut self) -> Result<(), Stop> {
        match (self.lines, self.count) {
            (true, _) => {}
            (false, 0) => self.pipe.write(b"[]\n")?,
            (false, _) => self.pipe.write(b"\n]\n")?,
        }
        self.pipe.flush()
    }
}

impl ApiReply {
    /// Returns the reply as a response. Lists are sent as one object a line if `lines`, else as an array.
    pub fn response(self, status: StatusCode, lines: bool) -> Response<ApiBody> {
        match self {
            ApiReply::Json(object) => whole(status, "application/json", format!("{object}\n")),
            ApiReply::Text(text) => whole(status, "text/plain; version=0.0.4; charset=utf-8", text),
            ApiReply::Nothing => {
                let mut response = whole(status, "text/plain", String::new());
                response.headers_mut().remove(CONTENT_TYPE);
                response
            }
            ApiReply::List(write) => {
                let (pipe, stream) = Pipe::new();
                tokio::task::spawn_blocking(move || {
                    let count = 0;
                    let mut list = List { pipe, lines, count };
                    let written = write(&mut list).and_then(|()| list.close());
                    if let Err(Stop::Log(error)) = written {
                        list.pipe.fail(&error);
                    }
                });
                let kind = if lines {
                    "application/x-ndjson"
                } else {
                    "application/json"
                };
                streamed(status, kind, stream)
            }
            ApiReply::Live(listener, task) => {
                let stream = watch(listener, task);
                let mut response = streamed(status, "text/event-stream", stream);
                let headers = response.headers_mut();
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                response
            }
        }
    }
}

/// An answer that is there as a whole.
pub fn whole(status: StatusCode, kind: &'static str, text: String) -> Response<ApiBody> {
    let body = Full::new(Bytes::from(text));
    with_body(status, kind, body.map_err(|never| match never {}).boxed())
}

fn streamed(status: StatusCode, kind: &'static str, stream: Stream) -> Response<ApiBody> {
    with_body(status, kind, stream.boxed())
}

fn with_body(status: StatusCode, kind: &'static str, body: ApiBody) -> Response<ApiBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // Conversations must not be cached by intermediaries, nor rendered as a page.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    response
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    async fn body(
        write: impl FnOnce(&mut List) -> Result<(), Stop> + Send + 'static,
    ) -> Result<String, String> {
        let response = ApiReply::List(Box::new(write)).response(StatusCode::OK, false);
        let body = response.into_body().collect().await;
        let body = body.map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
    }

    #[tokio::test]
    async fn a_list_is_whole_or_breaks_off() {
        let whole = body(|list| {
            list.put(&json!({"seq": 1}))?;
            list.put_message(&json!({"seq": 2}), br#"{"content":"\ud83d"}"#)
        });
        let expected = "[\n{\"seq\":1},\n{\"seq\":2,\"message\":{\"content\":\"\\ud83d\"}}\n]\n";
        assert_eq!(whole.await.as_deref(), Ok(expected));
        assert_eq!(body(|_| Ok(())).await.as_deref(), Ok("[]\n"));
        let broken = body(|list| {
            list.put(&json!({"seq": 1}))?;
            Err(LogError::damaged(Path::new("messages.jsonl"), 7, "torn").into())
        });
        let expected = "messages.jsonl is damaged at byte 7: torn";
        assert_eq!(broken.await, Err(expected.to_owned()));
    }
}
