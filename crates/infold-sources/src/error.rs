//! Why a request to a source (a GitHub or GitLab server) failed, sorted by what the caller can do about it.

use std::time::Duration;

/// Why a request to a source failed. No text contains a token.
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
    /// The token is valid, but does not permit the request.
    #[error("{server} does not allow {what}: {said}")]
    Forbidden {
        /// The server.
        server: String,
        /// The request.
        what: String,
        /// The server's own words.
        said: String,
    },
    /// The server has no such item, or the token cannot see it: servers do not say which.
    #[error("{server} has no {what}")]
    Missing {
        /// The server.
        server: String,
        /// The item.
        what: String,
    },
    /// The repository is archived: nothing can be written there.
    #[error("{repo} is archived")]
    Archived {
        /// The repository.
        repo: String,
    },
    /// The rate limit is reached, and waiting did not help or would take too long: try again after `wait`.
    #[error("{server} takes no more requests for {} s (rate limit)", wait.as_secs())]
    RateLimited {
        /// The server.
        server: String,
        /// How long the server asks to wait.
        wait: Duration,
    },
    /// The server did not answer, or answered with a server error (5xx), and no retry is left.
    #[error("{server} did not answer: {what}")]
    Unavailable {
        /// The server.
        server: String,
        /// The last failure.
        what: String,
    },
    /// A request that must not be repeated, such as a new comment, got no answer: it may have been carried out.
    #[error("{server} did not confirm {what}")]
    Unconfirmed {
        /// The server.
        server: String,
        /// The request and its failure.
        what: String,
    },
    /// The server answers, but not in the form of this API: perhaps the address is that of another server.
    #[error("{server} answers, but not as expected: {what}")]
    Unreadable {
        /// The server.
        server: String,
        /// The problem with the answer.
        what: String,
    },
    /// The repository moved to another server. The redirect is not followed, because the token must not be sent there.
    #[error("{server} has moved: {to}")]
    Moved {
        /// The server.
        server: String,
        /// The new address.
        to: String,
    },
    /// The server refuses the request for a reason that none of the other variants names.
    #[error("{server} refuses {what} ({status}): {said}")]
    Refused {
        /// The server.
        server: String,
        /// The request.
        what: String,
        /// The HTTP status.
        status: u16,
        /// The server's own words.
        said: String,
    },
}
