use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use http::Method;
use infold_wire::Wire;

use crate::desk::locked;
use crate::metrics::{InFlight, Metrics};

/// How many requests each client has under way.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    taken: Mutex<HashMap<IpAddr, usize>>,
}

/// A request under way. Dropped when its response has ended, however it did.
pub(crate) struct Seat {
    seats: Arc<Seats>,
    metrics: Arc<Metrics>,
    client: IpAddr,
    began: Instant,
    _under_way: InFlight,
    /// What is asked for, and of what.
    pub method: Method,
    pub path: String,
    /// In which form it is, once that is known.
    pub wire: Option<Wire>,
    /// What it was answered with.
    pub status: u16,
    /// The task that the answer names, and how many folds were sent in its place.
    pub task: Option<String>,
    pub folds: Option<u64>,
    /// How many bytes went to the client.
    pub sent: u64,
}

/// What servers note where nobody is left to be answered.
const GONE: u16 = 499;

impl Seats {
    /// A seat, unless this client has so many.
    pub fn take(
        self: &Arc<Seats>,
        client: IpAddr,
        most: usize,
        metrics: &Arc<Metrics>,
        method: Method,
        path: String,
    ) -> Option<Seat> {
        let mut taken = locked(&self.taken);
        let count = taken.entry(client).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Seat {
            seats: Arc::clone(self),
            metrics: Arc::clone(metrics),
            client,
            began: Instant::now(),
            _under_way: metrics.begin(),
            method,
            path,
            wire: None,
            // The client went away before there was a response.
            status: GONE,
            task: None,
            folds: None,
            sent: 0,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.metrics.count(self.wire, self.status, took);
        self.metrics.moved(0, self.sent);
        if self.status == GONE {
            self.metrics.disconnected();
        }
        tracing::info!(
            method = %self.method,
            path = self.path,
            wire = self.wire.map(Wire::name),
            status = self.status,
            task = self.task,
            folds = self.folds,
            bytes = self.sent,
            ms = took.as_micros() as f64 / 1000.0,
            "answered"
        );
        let mut taken = locked(&self.seats.taken);
        if let Some(count) = taken.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.client);
            }
        }
    }
}
