//! Our own part of the address: what the command does, over HTTP.

mod asked;
mod refusal;
mod reply;
mod stream;
mod route;
mod service;
mod tasks;
mod looks;
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

use crate::{Change, Desk, Limits, Metrics, News};
use asked::Asked;
use refusal::Refusal;
use route::{ROUTES, Route, Takes};

/// The body of an answer.
pub type ApiBody = http_body_util::combinators::BoxBody<Bytes, std::io::Error>;

/// The most bytes that a body may have.
const MAX_BODY: usize = 64 << 20;

/// Answers what is asked of the server itself, not of a model.
#[derive(Clone)]
pub struct Api {
    desk: Desk,
    metrics: Arc<Metrics>,
    news: News,
    config: Arc<Config>,
    limits: Limits,
}

impl Api {
    /// Answers for a desk. Bodies may take as long as these limits say.
    pub fn new(desk: Desk, limits: Limits) -> Api {
        Api {
            limits,
            metrics: desk.metrics(),
            news: desk.news(),
            config: desk.config(),
            desk,
        }
    }

    /// Says whether a path is ours.
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
        self.answered(request)
            .await
            .unwrap_or_else(Refusal::response)
    }

    async fn answered<B>(&self, request: Request<B>) -> Result<Response<ApiBody>, Refusal>
    where
        B: http_body::Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let (route, places) = match found(&head.method, head.uri.path()) {
            Found::Route(route, places) => (route, places),
            Found::Methods(allowed) => {
                let mut response = Refusal::method(&head.method, &allowed).response();
                if let Ok(allowed) = HeaderValue::from_str(&allowed) {
                    response.headers_mut().insert(ALLOW, allowed);
                }
                return Ok(response);
            }
            Found::Nothing => return Err(Refusal::no_route(head.uri.path())),
        };
        let mut asked = Asked::new(route, places, &head)?;
        if route.takes != Takes::Nothing {
            asked.body = read(body, &self.limits).await?;
        }
        let lines = asked.lines;
        let api = self.clone();
        // All of it reads or writes files.
        let ran = tokio::task::spawn_blocking(move || (route.run)(&api, &asked)).await;
        let reply = ran.map_err(|_| Refusal::broken())??;
        Ok(reply.response(route.status, lines))
    }

    /// Tells whoever watches of what was done here.
    fn tell(&self, task: uuid::Uuid, what: &'static str, json: &serde_json::Value) {
        let json = json.to_string();
        self.news.tell(Change { task, what, json });
    }
}

async fn read<B>(body: B, limits: &Limits) -> Result<Bytes, Refusal>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // What it says of itself is believed only if it is too much.
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(Refusal::too_large(MAX_BODY));
    }
    let mut body = std::pin::pin!(Limited::new(body, MAX_BODY));
    let mut read = BytesMut::new();
    let end = Instant::now() + limits.body_time;
    loop {
        let until = end.min(Instant::now() + limits.body_idle);
        let frame = timeout_at(until, body.frame()).await;
        match frame.map_err(|_| Refusal::slow())? {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    read.put(data);
                }
            }
            Some(Err(error)) if error.is::<LengthLimitError>() => {
                return Err(Refusal::too_large(MAX_BODY));
            }
            Some(Err(error)) => {
                return Err(Refusal::bad(format!("the body could not be read: {error}")));
            }
            None => return Ok(read.freeze()),
        }
    }
}

enum Found {
    Route(&'static Route, Vec<String>),
    /// The path is there, for other methods.
    Methods(String),
    Nothing,
}

fn found(method: &Method, path: &str) -> Found {
    // What HEAD asks for is what GET would answer; the server leaves out the body.
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
            return Found::Route(route, places);
        }
        allowed.push(route.method.as_str());
    }
    match allowed.is_empty() {
        true => Found::Nothing,
        false => Found::Methods(allowed.join(", ")),
    }
}
