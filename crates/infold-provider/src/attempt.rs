//! One attempt of a call: posts the request, reads the reply, classifies the error. The client decides about retries.

use std::io;
use std::pin::pin;
use std::time::Duration;

use infold_wire::provider_error::{self, RefusalCause};
use infold_wire::{Delivery, ProviderError, Reply, ReplyDelta, ReplyError, ReplyReader};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Response, Url};
use tokio::time::{Instant, timeout, timeout_at};

use crate::body::UploadProgress;
use crate::endpoint::without_secrets;
use crate::http::root_cause;
use crate::retry::{deadline, requested_wait};
use crate::{CallError, CallEvent, Endpoint, RequestBody};

/// No more of an error body is read than this and the chunk that exceeds it: the cause is at its start.
const MAX_ERROR_BODY_BYTES: usize = 128 << 10;

/// The interval of upload progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// One attempt to send a request and read its reply.
pub(crate) struct Attempt<'a> {
    pub http: &'a reqwest::Client,
    pub to: &'a Endpoint,
    /// The full address of the request.
    pub target: Url,
    pub delivery: Delivery,
    /// How long an attempt may go without sending or receiving a byte.
    pub idle: Duration,
    /// The time at which the reply must have begun.
    pub until: Instant,
}

/// The reason that an attempt gave no reply.
pub(crate) enum AttemptError {
    /// The reply was empty. The client counts these, because one server answers so if a request is too long.
    Empty(CallError),
    /// Any other reason.
    Other(CallError),
}

impl From<CallError> for AttemptError {
    fn from(error: CallError) -> AttemptError {
        AttemptError::Other(error)
    }
}

impl Attempt<'_> {
    /// Posts the request and reads the reply.
    pub async fn run(
        &self,
        body: &RequestBody<'_>,
        on_event: &mut (dyn FnMut(CallEvent) + Send),
    ) -> Result<Reply, AttemptError> {
        let opened = body.open().await;
        let (body, progress) = opened.map_err(|error| self.body_error(body, &error))?;
        let request = self
            .http
            .post(self.target.clone())
            .headers(self.to.headers())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let sent = self.wait_for_response(request.send(), &progress, on_event);
        let response = sent.await?;
        if !response.status().is_success() {
            return Err(self.error(response).await.into());
        }
        if is_web_page(&response) {
            return Err(self.unexpected(WEB_PAGE).into());
        }
        let mut on_delta = |delta| on_event(CallEvent::Delta(delta));
        self.read_reply(response, &mut on_delta).await
    }

    /// Waits for the response to begin, and reports the progress of the upload.
    ///
    /// While the request is sent, the server must accept bytes. After that it may be silent until the deadline, while
    /// its model reads and thinks.
    async fn wait_for_response(
        &self,
        call: impl Future<Output = reqwest::Result<Response>>,
        progress: &UploadProgress,
        on_event: &mut (dyn FnMut(CallEvent) + Send),
    ) -> Result<Response, CallError> {
        let mut call = pin!(call);
        // The bytes sent so far, and the time at which the last of them were.
        let mut last_sent = (progress.sent(), Instant::now());
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            let interval = PROGRESS_INTERVAL.min(self.idle);
            let interval = interval.min(left.max(Duration::from_millis(100)));
            if let Ok(answered) = timeout(interval, &mut call).await {
                return answered.map_err(|error| self.unreached(&error));
            }
            let now = Instant::now();
            on_event(CallEvent::Sent {
                bytes: progress.sent(),
                of: progress.total,
            });
            if progress.sent() != last_sent.0 {
                last_sent = (progress.sent(), now);
            }
            if progress.is_complete() && now >= self.until {
                return Err(self.broken("did not answer in time"));
            }
            if !progress.is_complete() && now - last_sent.1 >= self.idle {
                let what = format!("stopped reading the request after {} bytes", last_sent.0);
                return Err(self.broken(&what));
            }
        }
    }

    /// Reads the reply of a response.
    ///
    /// Until the deadline, a server may delay the reply and send only bytes that keep the connection open. From then on
    /// the reply itself must grow. Once it has begun, some byte must come within each period of `idle`.
    async fn read_reply(
        &self,
        mut response: Response,
        on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
    ) -> Result<Reply, AttemptError> {
        let wait = requested_wait(response.headers());
        let mut reader = ReplyReader::new(self.to.wire, self.delivery);
        let begin = Instant::now();
        let (mut progress, mut last_growth, mut last_byte) = (0, begin, begin);
        let ended = loop {
            let growth_deadline = self.until.max(deadline(last_growth, self.idle));
            let byte_deadline = deadline(last_byte, self.idle);
            let (since, end) = if progress > 0 && byte_deadline < growth_deadline {
                (last_byte, byte_deadline)
            } else {
                (last_growth, growth_deadline)
            };
            match timeout_at(end, response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    let pushed = reader.push(&bytes, on_delta);
                    pushed.map_err(|error| self.reply_error(error, wait))?;
                    last_byte = Instant::now();
                    if reader.progress() != progress {
                        (progress, last_growth) = (reader.progress(), last_byte);
                    }
                }
                Ok(Ok(None)) => break None,
                Ok(Err(error)) => break Some(format!("broke off: {}", cause(&error))),
                Err(_) => break Some(format!("was silent for {} s", (end - since).as_secs_f32())),
            }
        };
        // A complete reply counts, even if the connection failed afterwards.
        reader.finish().map_err(|error| match ended {
            Some(what) if !matches!(error, ReplyError::Failed { .. }) => {
                self.broken(&format!("{what} while it answered")).into()
            }
            _ => self.reply_error(error, wait),
        })
    }

    /// Returns the error of a response with an error status, classified by its status and the start of its body.
    pub async fn error(&self, mut response: Response) -> CallError {
        let status = response.status().as_u16();
        let wait = requested_wait(response.headers());
        // Redirects are not followed: that would send the key and the conversation to another address.
        let location = response
            .headers()
            .get(LOCATION)
            .filter(|_| (300..400).contains(&status));
        if let Some(to) = location.and_then(|to| self.target.join(to.to_str().ok()?).ok()) {
            let what = format!("answered {status}: it moved to {}", without_secrets(to));
            let error = CallError::refused(RefusalCause::Address, self.to, &self.url(), &what);
            return CallError {
                status: Some(status),
                ..error
            };
        }
        let mut body = Vec::new();
        // If the body breaks off, the part that came is used: the status alone would be enough.
        while let Ok(Ok(Some(bytes))) = timeout(self.idle, response.chunk()).await {
            body.extend_from_slice(&bytes);
            if body.len() > MAX_ERROR_BODY_BYTES {
                break;
            }
        }
        let trouble = provider_error::classify(status, wait, &body);
        CallError::answered(trouble, self.to, &self.url(), status, &body)
    }

    /// Classifies the error of a reply that could not be read.
    fn reply_error(&self, error: ReplyError, wait: Option<Duration>) -> AttemptError {
        let url = self.url();
        let failed = match &error {
            ReplyError::Failed { body } => {
                let trouble = provider_error::classify(200, wait, body);
                return CallError::answered(trouble, self.to, &url, 200, body).into();
            }
            // Another service answers at this address. A retry would not change that, so it is refused, not broken.
            ReplyError::Foreign { start } => {
                let page = ["<!doctype", "<html"].iter().any(|tag| {
                    let begins = start.get(..tag.len());
                    begins.is_some_and(|begins| begins.eq_ignore_ascii_case(tag))
                });
                let text = || format!("answers, but not as this API: it begins `{start}`");
                let what = if page { WEB_PAGE.to_owned() } else { text() };
                return self.unexpected(&what).into();
            }
            // A retry would bring the same reply.
            ReplyError::TooLarge { .. } => ProviderError::Refused(RefusalCause::Request),
            ReplyError::Cut { .. } | ReplyError::Empty | ReplyError::Malformed { .. } => {
                ProviderError::Broken
            }
        };
        let call = CallError {
            status: Some(200),
            ..CallError::silent(failed, self.to, &url, &format!("answered, but {error}"))
        };
        match error {
            ReplyError::Empty => AttemptError::Empty(call),
            _ => AttemptError::Other(call),
        }
    }

    /// Classifies the error of a request that got no response.
    pub fn unreached(&self, error: &reqwest::Error) -> CallError {
        let why = cause(error);
        let what = if error.is_connect() {
            format!("cannot be reached: {why}")
        } else {
            format!("did not answer: {why}")
        };
        // A retry changes neither a certificate nor whether a server speaks TLS.
        let lasting = ["invalid peer certificate", "corrupt message"];
        if error.is_builder() || lasting.iter().any(|words| why.contains(words)) {
            return CallError::refused(RefusalCause::Address, self.to, &self.url(), &what);
        }
        self.broken(&what)
    }

    /// Returns the error for a request body that could not be read. No request was sent.
    fn body_error(&self, body: &RequestBody<'_>, error: &io::Error) -> CallError {
        let what = match body {
            RequestBody::File(path) | RequestBody::Spliced { file: path, .. } => {
                format!("was not called: cannot read `{}`: {error}", path.display())
            }
            RequestBody::Bytes(_) => format!("was not called: {error}"),
        };
        CallError {
            requests: 0,
            ..CallError::refused(RefusalCause::Request, self.to, &self.url(), &what)
        }
    }

    /// Returns the error for an attempt that failed without a refusal, so that a retry may succeed.
    pub fn broken(&self, what: &str) -> CallError {
        CallError::silent(ProviderError::Broken, self.to, &self.url(), what)
    }

    /// Returns the error for a successful response that no server of this API would send: the address is wrong.
    pub fn unexpected(&self, what: &str) -> CallError {
        CallError {
            status: Some(200),
            ..CallError::refused(RefusalCause::Address, self.to, &self.url(), what)
        }
    }

    /// Returns the address for error texts.
    fn url(&self) -> String {
        without_secrets(self.target.clone())
    }
}

const WEB_PAGE: &str = "answered with a web page";

/// Returns whether a response is a web page: a proxy or a login page answers with one where an API was expected.
fn is_web_page(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

fn cause(error: &reqwest::Error) -> String {
    root_cause(error).unwrap_or_else(|| "the connection failed".to_owned())
}
