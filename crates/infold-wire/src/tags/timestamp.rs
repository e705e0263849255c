//! Times of messages, with the comparisons that JavaScript makes.

use crate::{Json, JsonKind};

/// Milliseconds since 1970, a double as in JavaScript.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Millis(pub f64);

/// The time of a message, from its `ts` member.
///
/// Agents test it in three ways that differ for zero and `null`, each a method here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ts {
    /// No `ts`, or one that is neither a number nor `null`.
    Missing,
    /// `null`: as good as missing, except that comparisons take it for zero.
    Null,
    /// A time, zero included.
    At(Millis),
}

impl Ts {
    /// Reads the value of a `ts` member.
    pub fn of(value: Json<'_>) -> Ts {
        match value.kind() {
            JsonKind::Null => Ts::Null,
            _ => value.number().map_or(Ts::Missing, |at| Ts::At(Millis(at))),
        }
    }

    /// Returns the time, zero included; JavaScript's `ts ?? …`.
    pub fn given(self) -> Option<Millis> {
        match self {
            Ts::At(at) => Some(at),
            Ts::Missing | Ts::Null => None,
        }
    }

    /// Returns the time unless it is zero; JavaScript's `ts || …`.
    pub fn nonzero(self) -> Option<Millis> {
        self.given().filter(|at| at.0 != 0.0)
    }

    /// Returns the value that `<` and `>=` compare; none if `ts` is missing.
    pub fn compared(self) -> Option<Millis> {
        match self {
            Ts::Null => Some(Millis(0.0)),
            other => other.given(),
        }
    }
}
