//! Decides the meaning of errors that give no reason.

use super::{ProviderError, RefusalCause};

/// The size of a request, and the window it was meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSize {
    /// The request's tokens, as estimated.
    pub tokens: u64,
    /// The model's window, as far as it is known.
    pub window: u64,
    /// The request's bytes.
    pub bytes: u64,
}

/// Estimates are off by less than this factor, so a shorter request is not too long.
const NEAR_WINDOW_DIVISOR: u64 = 2;

/// The smallest common body limit, the default of web servers.
const MIN_BODY_LIMIT_BYTES: u64 = 1_000_000;

impl ProviderError {
    /// Classifies an error without an explanation.
    ///
    /// Some providers refuse requests that are too long without a message, but so do broken ones. The request is taken
    /// to be too long if it fills at least half of the window, or, if the status is that of a large request, if it has
    /// at least a million bytes.
    pub fn explain(self, size: RequestSize) -> ProviderError {
        let ProviderError::Unexplained { status } = self else {
            return self;
        };
        if size.tokens >= (size.window / NEAR_WINDOW_DIVISOR).max(1) {
            return ProviderError::TooLong {
                tokens: None,
                limit: None,
            };
        }
        match status {
            413 if size.bytes >= MIN_BODY_LIMIT_BYTES => ProviderError::TooLarge,
            200..=299 => ProviderError::Broken,
            _ => ProviderError::Refused(RefusalCause::Request),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_words_is_an_overflow_only_where_one_is_plausible() {
        let explained = |status, tokens, bytes| {
            let window = 200_000;
            ProviderError::Unexplained { status }.explain(RequestSize {
                tokens,
                window,
                bytes,
            })
        };
        let long = ProviderError::TooLong {
            tokens: None,
            limit: None,
        };
        let refused = ProviderError::Refused(RefusalCause::Request);
        for status in [200, 400, 413] {
            assert_eq!(explained(status, 100_000, 400_000), long, "{status}");
        }
        assert_eq!(explained(400, 99_999, 400_000), refused);
        assert_eq!(explained(400, 4_000, 16_000_000), refused);
        assert_eq!(explained(413, 4_000, 999_999), refused);
        assert_eq!(explained(413, 4_000, 1_000_000), ProviderError::TooLarge);
        assert_eq!(explained(200, 4_000, 16_000), ProviderError::Broken);
    }

    #[test]
    fn an_error_with_words_means_what_it_says() {
        let size = RequestSize {
            tokens: 1,
            window: 200_000,
            bytes: 10,
        };
        let long = ProviderError::TooLong {
            tokens: Some(9),
            limit: Some(8),
        };
        assert_eq!(long.clone().explain(size), long);
        assert_eq!(
            ProviderError::TooLarge.explain(size),
            ProviderError::TooLarge
        );
    }
}
