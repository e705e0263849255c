//! Requests to a source: retries, rate limits, redirects, cached pages, and errors that suggest a remedy.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, StatusCode};
use infold_provider::{
    RestClient, RestError, RestRequest, RestResponse, RestServer, RestUrl, RetryPolicy,
    requested_wait,
};
use infold_wire::Json;
use tokio::time::{Instant, sleep};

use crate::etag_cache::EtagCache;
use crate::rate_limit::{limited, until_reset};
use crate::text::{shortened, visible_line};
use crate::{SourceError, SourceKind, pages};

/// How many redirects of one request are followed.
const MAX_REDIRECTS: u32 = 5;

/// How many pages of one list are read.
const MAX_PAGES: u32 = 10_000;

/// How many characters of a server's own words are repeated.
const MAX_SAID_CHARS: usize = 300;

/// Called before each wait, with its reason and its duration.
type OnWait = Box<dyn FnMut(&str, Duration) + Send>;

/// A server, and how it is asked.
pub struct ForgeApi {
    pub kind: SourceKind,
    pub server: RestServer,
    pub client: RestClient,
    pub cache: EtagCache,
    pub retry: RetryPolicy,
    /// A rate limit that lasts longer is an error.
    pub longest_rate_wait: Duration,
    /// How long to wait between two requests that write.
    pub write_interval: Duration,
    /// Told before each wait: why, and how long.
    pub on_wait: OnWait,
    /// The server takes no request before this.
    pub blocked_until: Option<Instant>,
    pub last_write: Option<Instant>,
}

/// Whether a request may be sent again after one that got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Done twice, it has the effect of once.
    Idempotent,
    /// A repeated request would take effect twice.
    NotIdempotent,
}

/// A request: its description for errors, and the data to send.
pub struct ForgeCall<'a> {
    /// The thing that is asked for, for errors: `repository o/r`.
    pub what: &'a str,
    pub method: Method,
    pub url: RestUrl,
    pub body: Option<String>,
    pub repeat: Repeat,
}

/// The next step after an attempt of a request.
enum Next {
    Done(RestResponse),
    Redirect(RestUrl),
    Again { why: String, wait: Option<Duration> },
    Limited { wait: Duration },
    Fail(SourceError),
}

impl ForgeApi {
    /// Reads a list page by page; `take` gets each page. Ends with the first error.
    pub async fn list(
        &mut self,
        what: &str,
        first: RestUrl,
        is_cached: bool,
        take: &mut (dyn FnMut(Json<'_>) + Send),
    ) -> Result<(), SourceError> {
        let mut url = first;
        for _ in 0..MAX_PAGES {
            let response = self.get(what, url.clone(), is_cached).await?;
            let page = self.parse(what, &response.body)?;
            if !matches!(page.kind(), infold_wire::JsonKind::Array) {
                return Err(self.unreadable(what, "it is no list"));
            }
            take(page);
            match pages::next_page(&self.server, &url, &response.headers) {
                Some(next) => url = next,
                None => return Ok(()),
            }
        }
        Err(self.unreadable(what, "the list has no end"))
    }

    /// Gets a page; one that has not changed comes from the cache.
    pub async fn get(
        &mut self,
        what: &str,
        url: RestUrl,
        is_cached: bool,
    ) -> Result<RestResponse, SourceError> {
        let name = url.to_string();
        let cached = if is_cached {
            self.cache.get(&name).cloned()
        } else {
            None
        };
        let etag = cached.as_ref().and_then(|page| page.etag());
        let request = ForgeCall {
            what,
            method: Method::GET,
            url,
            body: None,
            repeat: Repeat::Idempotent,
        };
        let response = self.send_with(request, etag).await?;
        if response.status == StatusCode::NOT_MODIFIED {
            let page =
                cached.ok_or_else(|| self.unreadable(what, "304 to a request without an ETag"))?;
            return Ok(RestResponse {
                status: StatusCode::OK,
                headers: page.headers(),
                body: page.body().to_vec(),
            });
        }
        if is_cached {
            self.cache.put(&name, &response.headers, &response.body);
        }
        Ok(response)
    }

    /// Sends a request until it is answered, as far as its repetition does no harm.
    pub async fn send(&mut self, request: ForgeCall<'_>) -> Result<RestResponse, SourceError> {
        self.send_with(request, None).await
    }

    async fn send_with(
        &mut self,
        mut request: ForgeCall<'_>,
        etag: Option<HeaderValue>,
    ) -> Result<RestResponse, SourceError> {
        let (mut attempt, mut limits, mut redirects) = (0, 0, 0);
        let end = Instant::now() + self.retry.deadline;
        loop {
            self.await_turn(&request.method).await?;
            let answer = self
                .client
                .send(&self.server, self.prepare(&request, etag.clone()))
                .await;
            if let Ok(response) = &answer {
                let blocked = until_reset(&response.headers);
                self.blocked_until = blocked.map(|wait| Instant::now() + wait);
            }
            match self.judge(&request, answer, limits + 1) {
                Next::Done(response) => return Ok(response),
                Next::Fail(error) => return Err(error),
                Next::Redirect(url) => {
                    redirects += 1;
                    if redirects > MAX_REDIRECTS {
                        return Err(self.unreadable(request.what, "it redirects without end"));
                    }
                    request.url = url;
                }
                Next::Limited { wait } => {
                    limits += 1;
                    if limits >= self.retry.attempts || wait > self.longest_rate_wait {
                        return Err(self.rate_limited(wait));
                    }
                    self.blocked_until = Some(Instant::now() + wait);
                }
                Next::Again { why, wait } => {
                    attempt += 1;
                    let backoff = self.retry.backoff(attempt);
                    let wait = wait.map_or(backoff, |wait| wait.max(backoff));
                    let in_time = Instant::now() + wait < end && wait <= self.longest_rate_wait;
                    if attempt >= self.retry.attempts || !in_time {
                        return Err(SourceError::Unavailable {
                            server: self.name(),
                            what: why,
                        });
                    }
                    (self.on_wait)(&why, wait);
                    sleep(wait).await;
                }
            }
        }
    }

    /// Waits until the server takes requests again, and between two that write.
    async fn await_turn(&mut self, method: &Method) -> Result<(), SourceError> {
        let now = Instant::now();
        if let Some(until) = self.blocked_until.take().filter(|until| *until > now) {
            let wait = until - now;
            if wait > self.longest_rate_wait {
                self.blocked_until = Some(until);
                return Err(self.rate_limited(wait));
            }
            (self.on_wait)("rate limit", wait);
            sleep(wait).await;
        }
        if *method != Method::GET {
            if let Some(last) = self.last_write {
                tokio::time::sleep_until(last + self.write_interval).await;
            }
            self.last_write = Some(Instant::now());
        }
        Ok(())
    }

    fn prepare(&self, request: &ForgeCall<'_>, etag: Option<HeaderValue>) -> RestRequest {
        let mut headers = HeaderMap::new();
        let json = HeaderValue::from_static("application/json");
        match self.kind {
            SourceKind::Github => {
                let accept = HeaderValue::from_static("application/vnd.github+json");
                headers.insert("accept", accept);
                let version = HeaderValue::from_static("2022-11-28");
                headers.insert("x-github-api-version", version);
            }
            SourceKind::Gitlab => {
                headers.insert("accept", json.clone());
            }
        }
        if request.body.is_some() {
            headers.insert("content-type", json);
        }
        headers.extend(etag.map(|etag| (http::header::IF_NONE_MATCH, etag)));
        RestRequest {
            method: request.method.clone(),
            url: request.url.clone(),
            headers,
            body: request.body.clone().map(Into::into),
        }
    }

    /// Decides on the next step from an answer.
    fn judge(
        &self,
        request: &ForgeCall<'_>,
        answer: Result<RestResponse, RestError>,
        attempt: u32,
    ) -> Next {
        let server = self.name();
        let repeat = |why: String, wait| match request.repeat {
            Repeat::Idempotent => Next::Again { why, wait },
            Repeat::NotIdempotent => Next::Fail(SourceError::Unconfirmed {
                server: self.name(),
                what: format!("{}: {why}", request.what),
            }),
        };
        let response = match answer {
            Ok(response) => response,
            Err(error @ RestError::Unreached(_)) => {
                return Next::Again {
                    why: error.to_string(),
                    wait: None,
                };
            }
            Err(error @ RestError::Broken(_)) => return repeat(error.to_string(), None),
            Err(error @ (RestError::Refused(_) | RestError::TooLarge { .. })) => {
                return Next::Fail(self.unreadable(request.what, &error.to_string()));
            }
        };
        let status = response.status;
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            return Next::Done(response);
        }
        if let Some(wait) = limited(status, &response.headers, &response.body, attempt) {
            return Next::Limited { wait };
        }
        let said = self.said(&response.body);
        let what = request.what.to_owned();
        match status.as_u16() {
            301 | 302 | 307 | 308 => self.redirect(request, &response),
            401 => Next::Fail(SourceError::Token {
                server,
                variable: self.kind.token_variable(),
                said,
            }),
            403 => Next::Fail(SourceError::Forbidden { server, what, said }),
            404 | 410 => Next::Fail(SourceError::Missing { server, what }),
            408 | 500..=599 => {
                let why = format!("{} {said}", status.as_u16());
                repeat(why, requested_wait(&response.headers))
            }
            status => Next::Fail(SourceError::Refused {
                server,
                what,
                status,
                said,
            }),
        }
    }

    /// Follows a redirect within the server. It keeps the method: a renamed repository is the same one.
    fn redirect(&self, request: &ForgeCall<'_>, response: &RestResponse) -> Next {
        let location = response.headers.get("location");
        let location = location.and_then(|to| to.to_str().ok()).unwrap_or_default();
        match self.server.linked(&request.url, location) {
            Some(url) if !location.is_empty() => Next::Redirect(url),
            _ => Next::Fail(SourceError::Moved {
                server: self.name(),
                to: shortened(
                    &visible_line(&self.server.redact(location)),
                    MAX_SAID_CHARS,
                    "…",
                ),
            }),
        }
    }

    /// Parses a body.
    pub fn parse<'b>(&self, what: &str, body: &'b [u8]) -> Result<Json<'b>, SourceError> {
        Json::parse(body).map_err(|error| self.unreadable(what, &format!("no JSON: {error}")))
    }

    /// Returns the error of an answer that this API would not give.
    pub fn unreadable(&self, what: &str, why: &str) -> SourceError {
        SourceError::Unreadable {
            server: self.name(),
            what: format!("{what}: {}", self.server.redact(why)),
        }
    }

    /// Returns the name of the server for messages.
    pub fn name(&self) -> String {
        format!("{} ({})", self.kind.title(), self.server.host())
    }

    fn rate_limited(&self, wait: Duration) -> SourceError {
        SourceError::RateLimited {
            server: self.name(),
            wait,
        }
    }

    /// Returns the server's own words in an error: GitHub has `message`, GitLab `message` or `error`.
    fn said(&self, body: &[u8]) -> String {
        let json = Json::parse(body).ok();
        let member = |name| json.and_then(|json| json.get(name));
        let words = member("error_description")
            .or_else(|| member("message"))
            .or_else(|| member("error"));
        let text = words.map(|words| match words.text() {
            Some(text) => text.into_owned(),
            None => String::from_utf8_lossy(words.bytes()).into_owned(),
        });
        // The token is taken out before the text is cut: part of it would not be recognised.
        let text = self
            .server
            .redact(&text.unwrap_or_else(|| "without a message".to_owned()));
        shortened(&visible_line(&text), MAX_SAID_CHARS, "…")
    }
}
