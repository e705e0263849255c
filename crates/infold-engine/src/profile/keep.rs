use std::fmt;

/// How much to keep of what is newest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// So many messages, widened to rounds.
    Messages(u32),
    /// This share, more than 0 and less than 1; of what is for the strategy to say.
    Share(f64),
}

impl Keep {
    /// Reads a number as people write it: below 1 it is a share, else a number of messages.
    pub fn new(number: f64) -> Option<Keep> {
        match number {
            _ if number > 0.0 && number < 1.0 => Some(Keep::Share(number)),
            _ if number >= 0.0 && number <= f64::from(u32::MAX) && number.fract() == 0.0 => {
                Some(Keep::Messages(number as u32))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::Messages(1) => write!(f, "1 message"),
            Keep::Messages(count) => write!(f, "{count} messages"),
            Keep::Share(share) => write!(f, "{} %", (share * 1e4).round() / 100.0),
        }
    }
}
