//! What a provider's error means: what to do about it.

use std::time::Duration;

/// An error of a provider, sorted by what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It has no time now: ask again later, not before this long.
    Busy {
        /// What it asks to wait.
        after: Option<Duration>,
    },
    /// The request is too long for the model: fold harder and ask again.
    TooLong {
        /// How many tokens it has, as the provider counts.
        tokens: Option<u64>,
        /// How many there may be.
        limit: Option<u64>,
    },
    /// The request has too many bytes: fold harder and ask again.
    TooLarge,
    /// It wants the roles of user and assistant to alternate.
    Alternate,
    /// A person must act.
    Refused(Refused),
    /// The connection or the reply broke: ask again.
    Broken,
}

/// What a person must act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The key is missing, wrong, or may not do this.
    Key,
    /// There is no such model, or not for this key.
    Model,
    /// There is no money left, or the plan does not allow it.
    Quota,
    /// The address is wrong: nothing of that kind is there.
    Address,
    /// The request is refused as it is.
    Request,
}
