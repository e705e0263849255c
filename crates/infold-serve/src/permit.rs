//! Permits: how many requests a client may have under way, and what is counted and traced when one ends.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use http::Method;
use infold_wire::Wire;

use crate::locked;
use crate::metrics::{InFlight, Metrics};

/// How many requests each client has under way.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    in_use: Mutex<HashMap<IpAddr, usize>>,
}

/// The right of a request to be under way. Dropped when its response has ended, however it did.
pub(crate) struct Permit {
    permits: Arc<Permits>,
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
const CLIENT_CLOSED_REQUEST: u16 = 499;

impl Permits {
    /// A seat, unless this client has so many.
    pub fn take(
        self: &Arc<Permits>,
        client: IpAddr,
        most: usize,
        metrics: &Arc<Metrics>,
        method: Method,
        path: String,
    ) -> Option<Permit> {
        let mut in_use = locked(&self.in_use);
        let count = in_use.entry(client).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Permit {
            permits: Arc::clone(self),
            metrics: Arc::clone(metrics),
            client,
            began: Instant::now(),
            _under_way: metrics.begin(),
            method,
            path,
            wire: None,
            // The client went away before there was a response.
            status: CLIENT_CLOSED_REQUEST,
            task: None,
            folds: None,
            sent: 0,
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.metrics.count(self.wire, self.status, took);
        self.metrics.moved(0, self.sent);
        if self.status == CLIENT_CLOSED_REQUEST {
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
        let mut in_use = locked(&self.permits.in_use);
        if let Some(count) = in_use.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                in_use.remove(&self.client);
            }
        }
    }
}
