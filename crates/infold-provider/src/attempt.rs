use std::error::Error;
use std::io;
use std::pin::pin;
use std::time::Duration;

use infold_wire::trouble::{self, Refused};
use infold_wire::{Delivery, Delta, Reader, Reply, ReplyError, Trouble};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Response, Url};
use tokio::time::{Instant, timeout, timeout_at};

use crate::body::{Progress, Source};
use crate::endpoint::public;
use crate::patience::asked;
use crate::{CallError, Endpoint, Heard};

/// The most of an error body that is read: more than is looked at.
const MOST_ERROR: usize = 128 << 10;

/// How often it is said how much was sent.
const LOOK: Duration = Duration::from_millis(200);

/// One request and its reply.
pub(crate) struct Attempt<'a> {
    pub http: &'a reqwest::Client,
    pub to: &'a Endpoint,
    pub target: Url,
    pub form: Delivery,
    /// How long nothing may move.
    pub idle: Duration,
    /// When a reply must have begun.
    pub until: Instant,
}

/// Why an attempt gave no reply.
pub(crate) enum Failure {
    /// There was an answer, and nothing in it.
    Empty(CallError),
    /// Anything else.
    Other(CallError),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        Failure::Other(error)
    }
}

impl Attempt<'_> {
    /// Posts the request and reads the reply.
    pub async fn run(
        &self,
        source: &Source,
        hear: &mut (dyn FnMut(Heard) + Send),
    ) -> Result<Reply, Failure> {
        let opened = source.open().await;
        let (body, progress) = opened.map_err(|error| self.unreadable(source, &error))?;
        let request = self
            .http
            .post(self.target.clone())
            .headers(self.to.headers())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let response = self.response(request.send(), &progress, hear).await?;
        if !response.status().is_success() {
            return Err(self.error(response).await.into());
        }
        if is_page(&response) {
            return Err(self.odd(PAGE).into());
        }
        let mut told = |delta| hear(Heard::Delta(delta));
        self.reply(response, &mut told).await
    }

    /// Waits for the answer to begin.
    ///
    /// While the request is taken something must move; then a model may read and think
    /// for as long as there is patience at all.
    async fn response(
        &self,
        call: impl Future<Output = reqwest::Result<Response>>,
        progress: &Progress,
        hear: &mut (dyn FnMut(Heard) + Send),
    ) -> Result<Response, CallError> {
        let mut call = pin!(call);
        let mut moved = (progress.sent(), Instant::now());
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            let look = LOOK
                .min(self.idle)
                .min(left.max(Duration::from_millis(100)));
            if let Ok(answered) = timeout(look, &mut call).await {
                return answered.map_err(|error| self.unreached(&error));
            }
            let now = Instant::now();
            hear(Heard::Sent {
                bytes: progress.sent(),
                of: progress.total(),
            });
            if progress.sent() != moved.0 {
                moved = (progress.sent(), now);
            }
            if progress.is_complete() && now >= self.until {
                return Err(self.broken("did not answer in time"));
            }
            if !progress.is_complete() && now - moved.1 >= self.idle {
                let what = format!("stopped reading the request after {} bytes", moved.0);
                return Err(self.broken(&what));
            }
        }
    }

    async fn reply(
        &self,
        mut response: Response,
        hear: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, Failure> {
        let wait = asked(response.headers());
        let mut reader = Reader::new(self.to.wire, self.form);
        let begin = Instant::now();
        // When a part of the reply came, and when anything did.
        let (mut progress, mut moved, mut alive) = (0, begin, begin);
        let ended = loop {
            // What keeps the connection open is no reply: until the deadline it is enough
            // that it comes, from then on the reply itself must move.
            let quiet = self.until.max(later(moved, self.idle));
            let silent = later(alive, self.idle);
            let (since, end) = match progress > 0 && silent < quiet {
                true => (alive, silent),
                false => (moved, quiet),
            };
            match timeout_at(end, response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    let pushed = reader.push(&bytes, hear);
                    pushed.map_err(|error| self.unread(error, wait))?;
                    alive = Instant::now();
                    if reader.progress() != progress {
                        (progress, moved) = (reader.progress(), alive);
                    }
                }
                Ok(Ok(None)) => break None,
                Ok(Err(error)) => break Some(format!("broke off: {}", reason(&error))),
                Err(_) => break Some(format!("was silent for {} s", (end - since).as_secs_f32())),
            }
        };
        // What is complete is complete, however the connection ended.
        reader.finish().map_err(|error| match ended {
            Some(what) if !matches!(error, ReplyError::Failed { .. }) => {
                self.broken(&format!("{what} while it answered")).into()
            }
            _ => self.unread(error, wait),
        })
    }

    /// Reads the start of an error's body and sorts it.
    pub async fn error(&self, mut response: Response) -> CallError {
        let status = response.status().as_u16();
        let wait = asked(response.headers());
        let moved = response
            .headers()
            .get(LOCATION)
            .filter(|_| (300..400).contains(&status));
        if let Some(to) = moved.and_then(|to| self.target.join(to.to_str().ok()?).ok()) {
            let what = format!("answered {status}: it moved to {}", public(to));
            let error = CallError::refused(Refused::Address, self.to, &self.url(), &what);
            return CallError {
                status: Some(status),
                ..error
            };
        }
        let mut body = Vec::new();
        // What is missing of it is missing: the status alone says enough.
        while let Ok(Ok(Some(bytes))) = timeout(self.idle, response.chunk()).await {
            body.extend_from_slice(&bytes);
            if body.len() > MOST_ERROR {
                break;
            }
        }
        let trouble = trouble::sort(status, wait, &body);
        CallError::answered(trouble, self.to, &self.url(), status, &body)
    }

    /// Why a reply could not be read.
    fn unread(&self, error: ReplyError, wait: Option<Duration>) -> Failure {
        let url = self.url();
        let failed = match &error {
            ReplyError::Failed { body } => {
                let trouble = trouble::sort(200, wait, body);
                return CallError::answered(trouble, self.to, &url, 200, body).into();
            }
            // Somebody else lives there, and will tomorrow.
            ReplyError::Foreign { start } => {
                let page = ["<!doctype", "<html"].iter().any(|tag| {
                    let begins = start.get(..tag.len());
                    begins.is_some_and(|begins| begins.eq_ignore_ascii_case(tag))
                });
                let text = || format!("answers, but not as this API: it begins `{start}`");
                let what = if page { PAGE.to_owned() } else { text() };
                return self.odd(&what).into();
            }
            // The same request would bring the same again.
            ReplyError::TooLarge { .. } => Trouble::Refused(Refused::Request),
            ReplyError::Cut { .. } | ReplyError::Empty | ReplyError::Malformed { .. } => {
                Trouble::Broken
            }
        };
        let call = CallError {
            status: Some(200),
            ..CallError::silent(failed, self.to, &url, &format!("answered, but {error}"))
        };
        match error {
            ReplyError::Empty => Failure::Empty(call),
            _ => Failure::Other(call),
        }
    }

    /// Why there was no answer.
    pub fn unreached(&self, error: &reqwest::Error) -> CallError {
        let why = reason(error);
        let what = match error.is_connect() {
            true => format!("cannot be reached: {why}"),
            false => format!("did not answer: {why}"),
        };
        // A certificate does not become right by asking again, nor does a server learn TLS.
        let lasting = ["invalid peer certificate", "corrupt message"];
        match error.is_builder() || lasting.iter().any(|words| why.contains(words)) {
            true => CallError::refused(Refused::Address, self.to, &self.url(), &what),
            false => self.broken(&what),
        }
    }

    fn unreadable(&self, source: &Source, error: &io::Error) -> CallError {
        let what = match source {
            Source::File { path, .. } => {
                format!("was not asked: cannot read `{}`: {error}", path.display())
            }
            Source::Bytes(_) => format!("was not asked: {error}"),
        };
        CallError {
            requests: 0,
            ..CallError::refused(Refused::Request, self.to, &self.url(), &what)
        }
    }

    pub fn broken(&self, what: &str) -> CallError {
        CallError::silent(Trouble::Broken, self.to, &self.url(), what)
    }

    /// What answers is not what was expected there.
    pub fn odd(&self, what: &str) -> CallError {
        CallError {
            status: Some(200),
            ..CallError::refused(Refused::Address, self.to, &self.url(), what)
        }
    }

    fn url(&self) -> String {
        public(self.target.clone())
    }
}

/// So much after a moment; what is longer than a year is one.
fn later(moment: Instant, wait: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    moment + wait.min(YEAR)
}

/// What is said of a page for people.
const PAGE: &str = "answered with a web page";

/// Says whether an answer is a page for people.
fn is_page(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// What lies at the bottom of an error: the layers above only say where it passed.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    match std::ptr::eq(cause, error) {
        // Without its address, which may hold a password.
        true => "the connection failed".to_owned(),
        false => cause.to_string(),
    }
}
