use std::sync::OnceLock;
use std::time::Duration;

use infold_wire::trouble::Refused;
use infold_wire::{Delivery, Delta, Reply, Trouble, Wire};
use reqwest::redirect;
use tokio::time::Instant;

use crate::attempt::{Attempt, Failure};
use crate::body::Source;
use crate::{Body, CallError, Endpoint, Patience};

/// What calls providers. One is enough: it keeps connections open.
#[derive(Debug)]
pub struct Client {
    patience: Patience,
    /// By where the provider is and how it is reached; made when first needed.
    https: [OnceLock<reqwest::Client>; 4],
}

/// What is heard while a call is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// So much of the request was sent. Said now and then until the reply begins.
    Sent {
        /// Bytes.
        bytes: u64,
        /// All there are; zero for a request that is small.
        of: u64,
    },
    /// A piece of the reply.
    Delta(Delta),
    /// It did not work, and will be tried again.
    Waiting {
        /// What happened.
        why: String,
        /// How long until then.
        wait: Duration,
        /// Which attempt failed, counted from one.
        attempt: u32,
    },
    /// The reply broke: what was heard of it does not count.
    Again,
}

/// A call that worked.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// What was answered.
    pub reply: Reply,
    /// How many requests it took.
    pub requests: u32,
}

/// So often may a stream be empty before it means something.
const EMPTY: u32 = 2;

impl Client {
    /// Makes ready to call, with this much patience.
    pub fn new(patience: Patience) -> Result<Client, CallError> {
        // A process has one provider of cryptography; whoever came first has chosen it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let https = Default::default();
        Ok(Client { patience, https })
    }

    /// Posts a request and reads the reply; asks again while the provider is busy or the connection breaks.
    ///
    /// Dropping the future ends the call. A reply that was begun and broke is followed
    /// by [`Heard::Again`], also when nothing more is tried.
    pub async fn send(
        &self,
        to: &Endpoint,
        model: &str,
        body: Body<'_>,
        stream: bool,
        hear: &mut (dyn FnMut(Heard) + Send),
    ) -> Result<Called, CallError> {
        let target = to.target(model, stream);
        let attempt = Attempt {
            http: self.http(to)?,
            to,
            target,
            form: if stream {
                Delivery::Stream
            } else {
                Delivery::Whole
            },
            idle: self.patience.idle,
            until: self.until(),
        };
        let source = Source::from(body);
        let (mut requests, mut empty) = (0, 0);
        loop {
            requests += 1;
            let mut begun = false;
            let mut pass = |heard| {
                begun |= matches!(heard, Heard::Delta(_));
                hear(heard);
            };
            let mut error = match attempt.run(&source, &mut pass).await {
                Ok(reply) => return Ok(Called { reply, requests }),
                Err(Failure::Empty(error)) => {
                    empty += 1;
                    error
                }
                Err(Failure::Other(error)) => {
                    empty = 0;
                    error
                }
            };
            if begun {
                hear(Heard::Again);
            }
            // One server of this wire (llama-cpp-python) answers a stream that is too long
            // so, always; any other may do it once, by accident.
            if empty == EMPTY && stream && to.wire == Wire::Chat {
                error.trouble = Trouble::Unexplained { status: 200 };
            }
            error.requests = error.requests.min(1) + requests - 1;
            let wait = self.patience.wait(requests, &error.trouble);
            let again = matches!(error.trouble, Trouble::Busy { .. } | Trouble::Broken);
            let in_time = Instant::now().checked_add(wait) < Some(attempt.until);
            if !again || requests >= self.patience.attempts || !in_time {
                return Err(error);
            }
            hear(Heard::Waiting {
                why: error.text,
                wait,
                attempt: requests,
            });
            tokio::time::sleep(wait).await;
        }
    }

    /// When patience ends, if it begins now.
    pub(crate) fn until(&self) -> Instant {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        Instant::now() + self.patience.deadline.min(YEAR)
    }

    pub(crate) fn idle(&self) -> Duration {
        self.patience.idle
    }

    pub(crate) fn http(&self, to: &Endpoint) -> Result<&reqwest::Client, CallError> {
        let place = usize::from(to.is_local()) * 2 + usize::from(to.is_secure());
        if let Some(http) = self.https[place].get() {
            return Ok(http);
        }
        let built = build(to, true).or_else(|error| match to.is_secure() {
            true => Err(error),
            // A system without certificates can still speak without them.
            false => build(to, false),
        });
        let http = built.map_err(|_| {
            let what = "cannot be called: this system has no certificates to trust (they come with the package ca-certificates)";
            let url = to.url("", false);
            CallError { requests: 0, ..CallError::refused(Refused::Address, to, &url, what) }
        })?;
        Ok(self.https[place].get_or_init(|| http))
    }
}

/// Makes a client for providers like this one; `trusting` loads the system's certificates.
fn build(to: &Endpoint, trusting: bool) -> reqwest::Result<reqwest::Client> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("infold/", env!("CARGO_PKG_VERSION")))
        // A request with a key and a whole conversation goes where it was meant to, or nowhere.
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(Duration::from_secs(15))
        // A model may think for minutes; only this tells a dead connection from a quiet one.
        .tcp_keepalive(Duration::from_secs(20));
    if to.is_local() {
        // What is on this machine is not asked for through another.
        builder = builder.no_proxy();
    }
    if !trusting || to.is_local() && !to.is_secure() {
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}
