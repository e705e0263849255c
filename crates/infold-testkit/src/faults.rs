//! Random faults of a server, reproducible by seed.

use std::time::Duration;

use infold_wire::Wire;

use crate::Step;
use crate::dialect;
use crate::send::Outgoing;

/// The rates of faults, for long random runs; the same seed gives the same run.
///
/// Each number is the share of requests, from 0 to 1; together they are at most 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Where the run starts.
    pub seed: u64,
    /// The connection is dropped, before or in the middle of the reply.
    pub disconnect: f64,
    /// Too many requests, or overloaded.
    pub busy: f64,
    /// 500 or 502.
    pub server_error: f64,
    /// The reply comes a few bytes at a time.
    pub slow: f64,
    /// An event in the reply is broken.
    pub malformed: f64,
    /// 200 with nothing in it.
    pub empty: f64,
}

/// The counts of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests without a fault.
    pub fine: u64,
    /// Dropped connections.
    pub disconnect: u64,
    /// 429, 503, 529.
    pub busy: u64,
    /// 500, 502.
    pub server_error: u64,
    /// Slow replies, which are whole.
    pub slow: u64,
    /// Broken replies.
    pub malformed: u64,
    /// Empty replies.
    pub empty: u64,
}

/// A fault that happens to a request.
pub(crate) enum RequestFault {
    /// The request is refused.
    Refused(Outgoing),
    /// Its reply is harmed.
    Harmed(Box<dyn FnOnce(Step) -> Step + Send>),
    /// Its reply comes late, and whole.
    Slow(Box<dyn FnOnce(Step) -> Step + Send>),
}

impl Faults {
    /// Chooses the fault of the request with this number, and counts it.
    pub(crate) fn roll(&self, number: u64, wire: Wire, tally: &mut Tally) -> Option<RequestFault> {
        let dice = |side: u64| mix(self.seed ^ mix(number ^ (side << 56)));
        // The upper 53 bits make a fraction.
        let mut left = (dice(1) >> 11) as f64 / (1u64 << 53) as f64;
        let (odd, size) = (dice(2) & 1 == 1, dice(3) as usize);
        let mut hit = |share: f64| {
            let hit = (0.0..share).contains(&left);
            left -= share;
            hit
        };
        if hit(self.disconnect) {
            tally.disconnect += 1;
            // In the status, in the first events, or somewhere in the bytes.
            return Some(RequestFault::Harmed(Box::new(move |step| {
                let step = if odd { step.reset() } else { step };
                match size % 3 {
                    0 => step.cut_after_bytes(0),
                    1 => step.cut_after_events(1 + size / 3 % 4),
                    _ => step.cut_after_bytes(1 + size / 3 % 300),
                }
            })));
        }
        if hit(self.busy) {
            tally.busy += 1;
            return Some(RequestFault::Refused(dialect::busy(wire, odd)));
        }
        if hit(self.server_error) {
            tally.server_error += 1;
            return Some(RequestFault::Refused(dialect::broken(wire, odd)));
        }
        if hit(self.slow) {
            tally.slow += 1;
            let bytes = 64 + size % 64;
            let slow = move |step: Step| step.slowly(bytes, Duration::from_millis(1));
            return Some(RequestFault::Slow(Box::new(slow)));
        }
        if hit(self.malformed) {
            tally.malformed += 1;
            return Some(RequestFault::Harmed(Box::new(move |step| {
                step.malformed_at(size % 4)
            })));
        }
        if hit(self.empty) {
            tally.empty += 1;
            return Some(RequestFault::Harmed(Box::new(|_| Step::empty())));
        }
        tally.fine += 1;
        None
    }
}

/// Scatters a number over all of its range.
fn mix(number: u64) -> u64 {
    let mut it = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    it = (it ^ it >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    it = (it ^ it >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    it ^ it >> 31
}
