//! Errors of a source, by their remedy.

use std::time::Duration;

/// The error of a request to a source. No text contains a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The token is missing, wrong or expired.
    #[error("{server} refuses the token: {said}")]
    Token {
        /// The server.
        server: String,
        /// The variable that holds the token.
        variable: &'static str,
        /// The server's own words.
        said: String,
    },
    /// The token does not allow it.
    #[error("{server} does not allow {what}: {said}")]
    Forbidden {
        /// The server.
        server: String,
        /// The request.
        what: String,
        /// The server's own words.
        said: String,
    },
    /// There is no such thing, or the token cannot see it.
    #[error("{server} has no {what}")]
    Missing {
        /// The server.
        server: String,
        /// The thing.
        what: String,
    },
    /// The repository is archived: nothing can be written there.
    #[error("{repo} is archived")]
    Archived {
        /// The repository.
        repo: String,
    },
    /// Wait, then try again.
    #[error("{server} takes no more requests for {} s (rate limit)", wait.as_secs())]
    RateLimited {
        /// The server.
        server: String,
        /// How long.
        wait: Duration,
    },
    /// The server did not answer, or answered with its own errors, several times.
    #[error("{server} did not answer: {what}")]
    Unavailable {
        /// The server.
        server: String,
        /// The last failure.
        what: String,
    },
    /// A request that must not be repeated got no answer: it may have been carried out.
    #[error("{server} did not confirm {what}")]
    Unconfirmed {
        /// The server.
        server: String,
        /// The request and its failure.
        what: String,
    },
    /// The server answers, but not as this API does.
    #[error("{server} answers, but not as expected: {what}")]
    Unreadable {
        /// The server.
        server: String,
        /// The problem with the answer.
        what: String,
    },
    /// The repository moved to another server, where the token is not sent.
    #[error("{server} has moved: {to}")]
    Moved {
        /// The server.
        server: String,
        /// The new address.
        to: String,
    },
    /// The server refuses the request.
    #[error("{server} refuses {what} ({status}): {said}")]
    Refused {
        /// The server.
        server: String,
        /// The request.
        what: String,
        /// The status.
        status: u16,
        /// The server's own words.
        said: String,
    },
}
