//! The newest part of a conversation that is kept unchanged.

use std::fmt;

/// The newest part of a conversation that is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeepRecent {
    /// This many messages, widened to rounds.
    Messages(u32),
    /// A share between 0 and 1; the strategy defines of what.
    Share(f64),
}

impl KeepRecent {
    /// Converts a number as people write it: below 1 it is a share, else a number of messages.
    pub fn new(number: f64) -> Option<KeepRecent> {
        match number {
            _ if number > 0.0 && number < 1.0 => Some(KeepRecent::Share(number)),
            _ if number >= 0.0 && number <= f64::from(u32::MAX) && number.fract() == 0.0 => {
                Some(KeepRecent::Messages(number as u32))
            }
            _ => None,
        }
    }
}

impl fmt::Display for KeepRecent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeepRecent::Messages(1) => write!(f, "1 message"),
            KeepRecent::Messages(count) => write!(f, "{count} messages"),
            KeepRecent::Share(share) => write!(f, "{} %", (share * 1e4).round() / 100.0),
        }
    }
}
