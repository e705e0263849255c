//! The client that calls providers, and retries if they are busy or the connection breaks.

use std::time::Duration;

use infold_wire::provider_error::RefusalCause;
use infold_wire::{Delivery, ProviderError, Reply, ReplyDelta, Wire};
use tokio::time::Instant;

use crate::attempt::{Attempt, AttemptError};
use crate::http::{HttpClients, NO_CERTIFICATES};
use crate::retry::deadline;
use crate::{CallError, Endpoint, RequestBody, RetryPolicy};

/// Calls providers. A process should have only one: it keeps connections open and reuses them.
#[derive(Debug)]
pub struct Client {
    pub(crate) policy: RetryPolicy,
    clients: HttpClients,
}

/// Something that happens while a call is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEvent {
    /// Part of the request was sent. Repeated now and then until the reply begins.
    Sent {
        /// Bytes sent.
        bytes: u64,
        /// The total bytes; zero for a small request.
        of: u64,
    },
    /// A part of the reply.
    Delta(ReplyDelta),
    /// The attempt failed, and another one follows.
    Retrying {
        /// The error of the attempt.
        why: String,
        /// The time until the next attempt.
        wait: Duration,
        /// The failed attempt, counted from one.
        attempt: u32,
    },
    /// The reply broke off: the deltas of this attempt are no part of the reply.
    Discarded,
}

/// The reply to a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallReply {
    /// The reply.
    pub reply: Reply,
    /// The number of requests that were made.
    pub requests: u32,
}

/// After this many empty streams in a row, the request is taken to be too long.
const EMPTY_STREAMS_UNTIL_TOO_LONG: u32 = 2;

impl Client {
    /// Creates a client with this retry policy.
    pub fn new(policy: RetryPolicy) -> Result<Client, CallError> {
        let clients = HttpClients::default();
        Ok(Client { policy, clients })
    }

    /// Posts a request and reads the reply; retries while the provider is busy or the connection breaks.
    ///
    /// Dropping the future ends the call. A reply that was begun and broke is followed
    /// by [`CallEvent::Discarded`], also if there is no further attempt.
    pub async fn send(
        &self,
        to: &Endpoint,
        model: &str,
        body: RequestBody<'_>,
        stream: bool,
        on_event: &mut (dyn FnMut(CallEvent) + Send),
    ) -> Result<CallReply, CallError> {
        let attempt = Attempt {
            http: self.http(to)?,
            to,
            target: to.target(model, stream),
            delivery: if stream {
                Delivery::Stream
            } else {
                Delivery::Whole
            },
            idle: self.policy.idle,
            until: self.until(),
        };
        let (mut requests, mut empty_streams) = (0, 0);
        loop {
            requests += 1;
            let mut begun = false;
            let mut forward_event = |event| {
                begun |= matches!(event, CallEvent::Delta(_));
                on_event(event);
            };
            let mut error = match attempt.run(&body, &mut forward_event).await {
                Ok(reply) => return Ok(CallReply { reply, requests }),
                Err(AttemptError::Empty(error)) => {
                    empty_streams += 1;
                    error
                }
                Err(AttemptError::Other(error)) => {
                    empty_streams = 0;
                    error
                }
            };
            if begun {
                on_event(CallEvent::Discarded);
            }
            // One server of this wire (llama-cpp-python) always answers a request that is too long with an empty
            // stream; any other may do it once, by accident.
            if empty_streams == EMPTY_STREAMS_UNTIL_TOO_LONG && stream && to.wire == Wire::Chat {
                error.trouble = ProviderError::Unexplained { status: 200 };
            }
            // The last attempt counts as a request only if it made one: it may have failed before.
            error.requests = error.requests.min(1) + requests - 1;
            let wait = self.policy.wait(requests, &error.trouble);
            let can_retry = matches!(
                error.trouble,
                ProviderError::Busy { .. } | ProviderError::Broken
            );
            let in_time = deadline(Instant::now(), wait) < attempt.until;
            if !can_retry || requests >= self.policy.attempts || !in_time {
                return Err(error);
            }
            on_event(CallEvent::Retrying {
                why: error.text,
                wait,
                attempt: requests,
            });
            tokio::time::sleep(wait).await;
        }
    }

    /// Returns the time at which the reply to a call that begins now must have begun.
    pub(crate) fn until(&self) -> Instant {
        deadline(Instant::now(), self.policy.deadline)
    }

    /// Returns the HTTP client for an endpoint.
    pub(crate) fn http(&self, to: &Endpoint) -> Result<&reqwest::Client, CallError> {
        let agent = concat!("infold/", env!("CARGO_PKG_VERSION"));
        let client = self
            .clients
            .get(to.reach(), |builder| builder.user_agent(agent));
        client.map_err(|_| {
            let what = format!("cannot be called: {NO_CERTIFICATES}");
            let error = CallError::refused(RefusalCause::Address, to, &to.url("", false), &what);
            CallError {
                requests: 0,
                ..error
            }
        })
    }
}
