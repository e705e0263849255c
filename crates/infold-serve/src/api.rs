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

use bytes::Bytes;
use http::header::{ALLOW, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use infold::Config;

use crate::{Change, Desk, Metrics, News};
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
}

impl Api {
    /// Answers for a desk.
    pub fn new(desk: Desk) -> Api {
        Api {
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
            asked.body = read(body).await?;
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

async fn read<B>(body: B) -> Result<Bytes, Refusal>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // What it says of itself is believed only if it is too much.
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(Refusal::too_large(MAX_BODY));
    }
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::too_large(MAX_BODY)),
        Err(error) => Err(Refusal::bad(format!("the body could not be read: {error}"))),
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
