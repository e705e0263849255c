//! Counters of the server, in Prometheus' text format.

mod seconds;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use infold_wire::Wire;

use crate::locked;
use seconds::Seconds;

/// Counters of the server.
#[derive(Debug, Default)]
pub struct Metrics {
    /// By wire, the last for none, and by the first digit of the status.
    requests: [[AtomicU64; 6]; Wire::ALL.len() + 1],
    in_flight: AtomicI64,
    took: Seconds<{ TOOK.len() }>,
    added: Seconds<{ ADDED.len() }>,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    tokens_before: AtomicU64,
    tokens_after: AtomicU64,
    retries: AtomicU64,
    fallbacks: AtomicU64,
    recalls: AtomicU64,
    lookups: AtomicU64,
    recorded: AtomicU64,
    broken: AtomicU64,
    disconnects: AtomicU64,
    folds: NamedCounters,
    tasks: NamedCounters,
    failures: NamedCounters,
}

/// Buckets for the duration of requests, to the end of a long reply.
const TOOK: [Duration; 12] = [
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(25),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
];

/// Buckets for the time that the proxy adds.
const ADDED: [Duration; 12] = [
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(10),
];

/// Counters by name, for rare events.
#[derive(Debug, Default)]
struct NamedCounters(Mutex<BTreeMap<&'static str, u64>>);

impl NamedCounters {
    fn add(&self, name: &'static str) {
        *locked(&self.0).entry(name).or_default() += 1;
    }

    fn counts(&self) -> BTreeMap<&'static str, u64> {
        locked(&self.0).clone()
    }
}

/// A request under way; it ends when this is dropped.
#[derive(Debug)]
pub struct InFlight(Arc<Metrics>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

impl Metrics {
    /// Counts a request that was answered.
    pub fn count(&self, wire: Option<Wire>, status: u16, took: Duration) {
        let wire = wire.and_then(|wire| Wire::ALL.iter().position(|other| *other == wire));
        let wire = &self.requests[wire.unwrap_or(Wire::ALL.len())];
        let class = usize::from(status / 100).min(wire.len() - 1);
        wire[class].fetch_add(1, Relaxed);
        self.took.add(&TOOK, took);
    }

    /// Counts a request as in progress until the returned value is dropped.
    pub fn begin(self: &Arc<Metrics>) -> InFlight {
        self.in_flight.fetch_add(1, Relaxed);
        InFlight(Arc::clone(self))
    }

    /// Adds the time that the proxy added to a request.
    pub fn added(&self, took: Duration) {
        self.added.add(&ADDED, took);
    }

    /// Counts bytes that came from a client, and that went to one.
    pub fn moved(&self, from_client: u64, to_client: u64) {
        self.bytes_in.fetch_add(from_client, Relaxed);
        self.bytes_out.fetch_add(to_client, Relaxed);
    }

    /// Counts a failure of our own: the request was passed on untouched.
    pub fn failed(&self, what: &'static str) {
        self.failures.add(what);
    }

    /// Counts a fold, and the view's tokens before and after it.
    pub fn folded(&self, kind: &'static str, before: u64, after: u64) {
        self.folds.add(kind);
        self.tokens_before.fetch_add(before, Relaxed);
        self.tokens_after.fetch_add(after, Relaxed);
    }

    /// Counts a task, by how it came to be: `made`, `forked`.
    pub fn tasks(&self, how: &'static str) {
        self.tasks.add(how);
    }

    /// Counts a request that was sent again because it was too long.
    pub fn retried(&self) {
        self.retries.fetch_add(1, Relaxed);
    }

    /// Counts a folded request that was refused and sent again as the client wrote it.
    pub fn fell_back(&self) {
        self.fallbacks.fetch_add(1, Relaxed);
    }

    /// Counts excerpts of hidden messages that a request was given.
    pub fn recalled(&self, excerpts: u64) {
        self.recalls.fetch_add(excerpts, Relaxed);
    }

    /// Counts calls of the tools that look up folded messages.
    pub fn looked_up(&self, calls: u64) {
        self.lookups.fetch_add(calls, Relaxed);
    }

    /// Counts a reply: recorded whole, or broken off.
    pub fn replied(&self, whole: bool) {
        let count = if whole { &self.recorded } else { &self.broken };
        count.fetch_add(1, Relaxed);
    }

    /// Counts a client that disconnected before its reply was complete.
    pub fn disconnected(&self) {
        self.disconnects.fetch_add(1, Relaxed);
    }

    /// Returns all metrics in the text format of Prometheus.
    pub fn render(&self) -> String {
        let mut out = String::new();
        self.render_requests(&mut out);
        for (name, about, count) in [
            ("bytes_in", "Bytes that came from clients.", &self.bytes_in),
            ("bytes_out", "Bytes that went to clients.", &self.bytes_out),
            (
                "fold_tokens_before",
                "Tokens of views before folds.",
                &self.tokens_before,
            ),
            (
                "fold_tokens_after",
                "Tokens of views after folds.",
                &self.tokens_after,
            ),
            (
                "overflow_retries",
                "Requests sent again because they were too long.",
                &self.retries,
            ),
            (
                "fold_fallbacks",
                "Folded requests that were refused and sent again as the client wrote them: each is a bug.",
                &self.fallbacks,
            ),
            (
                "recalled_excerpts",
                "Excerpts of hidden messages that requests were given.",
                &self.recalls,
            ),
            (
                "recall_tool_calls",
                "Calls of the tools that look up what is folded away.",
                &self.lookups,
            ),
            (
                "replies_recorded",
                "Replies that were recorded whole.",
                &self.recorded,
            ),
            ("replies_broken", "Replies that broke off.", &self.broken),
            (
                "client_disconnects",
                "Clients that left before their reply was whole.",
                &self.disconnects,
            ),
        ] {
            let name = format!("infold_{name}_total");
            head(&mut out, &name, "counter", about);
            let _ = writeln!(out, "{name} {}", count.load(Relaxed));
        }
        for (name, label, about, counts) in [
            ("infold_folds_total", "kind", "Folds made.", &self.folds),
            (
                "infold_tasks_total",
                "how",
                "Tasks that came to be.",
                &self.tasks,
            ),
            (
                "infold_failures_total",
                "what",
                "Failures of infold itself; the request was passed on untouched.",
                &self.failures,
            ),
        ] {
            head(&mut out, name, "counter", about);
            for (value, count) in counts.counts() {
                let value = escaped(value);
                let _ = writeln!(out, "{name}{{{label}=\"{value}\"}} {count}");
            }
        }
        if let Some(bytes) = resident() {
            let name = "process_resident_memory_bytes";
            head(&mut out, name, "gauge", "Memory of the process.");
            let _ = writeln!(out, "{name} {bytes}");
        }
        out
    }

    fn render_requests(&self, out: &mut String) {
        head(
            out,
            "infold_requests_total",
            "counter",
            "Requests answered.",
        );
        let names = Wire::ALL.iter().map(|wire| wire.name()).chain(["none"]);
        for (name, classes) in names.zip(&self.requests) {
            for (class, count) in classes.iter().enumerate() {
                let count = count.load(Relaxed);
                if count > 0 {
                    let _ = writeln!(
                        out,
                        "infold_requests_total{{wire=\"{name}\",status=\"{class}xx\"}} {count}"
                    );
                }
            }
        }
        let name = "infold_request_seconds";
        head(out, name, "histogram", "How long requests took in all.");
        self.took.render(out, name, &TOOK);
        let name = "infold_added_seconds";
        head(out, name, "histogram", "What infold added to that.");
        self.added.render(out, name, &ADDED);
        let in_flight = self.in_flight.load(Relaxed).max(0);
        head(
            out,
            "infold_requests_in_flight",
            "gauge",
            "Requests under way.",
        );
        let _ = writeln!(out, "infold_requests_in_flight {in_flight}");
    }
}

fn head(out: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}");
}

fn escaped(label: &str) -> String {
    let label = label.replace('\\', "\\\\").replace('"', "\\\"");
    label.replace('\n', "\\n")
}

/// The memory of this process, where the system says so.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_told() {
        let metrics = Arc::new(Metrics::default());
        metrics.count(Some(Wire::Anthropic), 200, Duration::from_millis(30));
        metrics.count(Some(Wire::Anthropic), 204, Duration::from_secs(2_000));
        metrics.count(None, 404, Duration::ZERO);
        metrics.count(None, 999, Duration::ZERO);
        metrics.added(Duration::from_micros(100));
        metrics.moved(10, 3);
        metrics.failed("a \"disk\"\n");
        metrics.folded("summary", 900, 100);
        metrics.folded("summary", 900, 100);
        metrics.tasks("made");
        metrics.retried();
        metrics.fell_back();
        metrics.replied(true);
        metrics.replied(false);
        metrics.disconnected();
        let under_way = metrics.begin();
        let text = metrics.render();
        drop(under_way);
        for line in [
            "infold_requests_total{wire=\"anthropic\",status=\"2xx\"} 2",
            "infold_requests_total{wire=\"none\",status=\"4xx\"} 1",
            "infold_requests_total{wire=\"none\",status=\"5xx\"} 1",
            "infold_request_seconds_bucket{le=\"0.025\"} 2",
            "infold_request_seconds_bucket{le=\"0.1\"} 3",
            "infold_request_seconds_bucket{le=\"600\"} 3",
            "infold_request_seconds_bucket{le=\"+Inf\"} 4",
            "infold_request_seconds_sum 2000.030000",
            "infold_request_seconds_count 4",
            "infold_added_seconds_bucket{le=\"0.00005\"} 0",
            "infold_added_seconds_bucket{le=\"0.0001\"} 1",
            "infold_requests_in_flight 1",
            "infold_bytes_in_total 10",
            "infold_bytes_out_total 3",
            "infold_fold_tokens_before_total 1800",
            "infold_fold_tokens_after_total 200",
            "infold_overflow_retries_total 1",
            "infold_fold_fallbacks_total 1",
            "infold_replies_recorded_total 1",
            "infold_replies_broken_total 1",
            "infold_client_disconnects_total 1",
            "infold_folds_total{kind=\"summary\"} 2",
            "infold_tasks_total{how=\"made\"} 1",
            "infold_failures_total{what=\"a \\\"disk\\\"\\n\"} 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n\n{text}");
        }
        assert!(metrics.render().contains("infold_requests_in_flight 0"));
    }
}
