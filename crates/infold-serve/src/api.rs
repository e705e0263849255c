//! The REST API: what the command does, over HTTP.

mod request;
mod error;
mod reply;
mod stream;
mod route;
mod status;
mod tasks;
mod queries;
mod steps;
mod manage;
mod openapi;

use std::error::Error;
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::header::{ALLOW, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use infold::Config;
use tokio::time::{Instant, timeout_at};

use crate::mcp::{History, HttpEndpoint, McpScope, StepTaker};
use crate::{Conversations, LiveEvent, LiveEvents, Metrics, ServerLimits};
pub(crate) use error::ApiError;
use request::ApiRequest;
use route::{ApiRoute, ROUTES, Takes};

/// The body of an answer.
pub type ApiBody = http_body_util::combinators::BoxBody<Bytes, std::io::Error>;

/// The most bytes that a body may have.
const MAX_BODY_BYTES: usize = 64 << 20;

/// Where clients of the Model Context Protocol send their requests.
const MCP_PATH: &str = "/infold/mcp";

/// Answers requests to the server itself, as opposed to calls of a model.
#[derive(Clone)]
pub struct Api {
    conversations: Conversations,
    metrics: Arc<Metrics>,
    events: LiveEvents,
    config: Arc<Config>,
    limits: ServerLimits,
}

impl Api {
    /// Answers for these conversations. Bodies may take as long as these limits say.
    pub fn new(conversations: Conversations, limits: ServerLimits) -> Api {
        Api {
            limits,
            metrics: conversations.metrics(),
            events: conversations.events(),
            config: conversations.config(),
            conversations,
        }
    }

    /// Says whether a path belongs to the API.
    pub fn takes(path: &str) -> bool {
        let own = path.strip_prefix("/infold");
        own.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            || path == "/healthz"
            || path == "/metrics"
    }

    /// Answers a request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<ApiBody>
    where
        B: http_body::Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        self.try_answer(request)
            .await
            .unwrap_or_else(ApiError::response)
    }

    async fn try_answer<B>(&self, request: Request<B>) -> Result<Response<ApiBody>, ApiError>
    where
        B: http_body::Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        if head.uri.path() == MCP_PATH {
            let body = read(body, &self.limits).await?;
            return Ok(self.mcp().answer(head, body).await);
        }
        let (route, places) = match match_route(&head.method, head.uri.path()) {
            RouteMatch::Route(route, places) => (route, places),
            RouteMatch::Methods(allowed) => {
                let mut response = ApiError::method(&head.method, &allowed).response();
                if let Ok(allowed) = HeaderValue::from_str(&allowed) {
                    response.headers_mut().insert(ALLOW, allowed);
                }
                return Ok(response);
            }
            RouteMatch::Nothing => return Err(ApiError::no_route(head.uri.path())),
        };
        let mut request = ApiRequest::new(route, places, &head)?;
        if route.takes != Takes::Nothing {
            request.body = read(body, &self.limits).await?;
        }
        let lines = request.lines;
        let api = self.clone();
        // Every route reads or writes files, so it runs on a thread that may block.
        let ran = tokio::task::spawn_blocking(move || (route.run)(&api, &request)).await;
        let reply = ran.map_err(|_| ApiError::broken())??;
        Ok(reply.response(route.status, lines))
    }

    /// Returns the endpoint of the Model Context Protocol, which writes only if the configuration says so.
    fn mcp(&self) -> HttpEndpoint {
        let api = self.clone();
        let steps: StepTaker = Arc::new(move |task, step| {
            let taken = steps::take(&api, task, step)?;
            Ok(taken["text"].as_str().unwrap_or_default().to_owned())
        });
        let may_write = self.config.serve.mcp_write.as_ref();
        let steps = may_write.is_some_and(|set| set.value).then_some(steps);
        let contexts = self.conversations.contexts().clone();
        HttpEndpoint::new(History::new(contexts, McpScope::All, steps))
    }

    /// Publishes a live event about a change made through the API.
    fn publish(&self, task: uuid::Uuid, what: &'static str, json: &serde_json::Value) {
        let json = json.to_string();
        self.events.publish(LiveEvent {
            task,
            name: what,
            json,
        });
    }
}

async fn read<B>(body: B, limits: &ServerLimits) -> Result<Bytes, ApiError>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // An announced length is believed only if it is too large.
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(ApiError::too_large(MAX_BODY_BYTES));
    }
    let mut body = std::pin::pin!(Limited::new(body, MAX_BODY_BYTES));
    let mut read = BytesMut::new();
    let end = Instant::now() + limits.body_time;
    loop {
        let until = end.min(Instant::now() + limits.body_idle);
        let frame = timeout_at(until, body.frame()).await;
        match frame.map_err(|_| ApiError::slow())? {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    read.put(data);
                }
            }
            Some(Err(error)) if error.is::<LengthLimitError>() => {
                return Err(ApiError::too_large(MAX_BODY_BYTES));
            }
            Some(Err(error)) => {
                return Err(ApiError::bad(format!(
                    "the body could not be read: {error}"
                )));
            }
            None => return Ok(read.freeze()),
        }
    }
}

enum RouteMatch {
    Route(&'static ApiRoute, Vec<String>),
    /// The path is there, for other methods.
    Methods(String),
    Nothing,
}

fn match_route(method: &Method, path: &str) -> RouteMatch {
    // HEAD is answered like GET; the server omits the body.
    let method = match *method {
        Method::HEAD => &Method::GET,
        _ => method,
    };
    let mut allowed = Vec::new();
    for route in ROUTES {
        let Some(places) = route.places(path) else {
            continue;
        };
        if route.method == *method {
            return RouteMatch::Route(route, places);
        }
        allowed.push(route.method.as_str());
    }
    if allowed.is_empty() {
        RouteMatch::Nothing
    } else {
        RouteMatch::Methods(allowed.join(", "))
    }
}
