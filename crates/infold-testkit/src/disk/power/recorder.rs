//! Runs the steps of a session, recorded by the shim.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::session::SessionKind;
use super::trace::{self, TraceRecord};
use crate::disk::fixture::Fixture;
use crate::disk::holdings::Holdings;
use crate::disk::names::Names;
use crate::disk::proxy::{DiskProxy, ProxyConversation};
use crate::disk::sandbox::Sandbox;
use crate::disk::shim::Mode;

/// A session under way.
pub(super) struct Recorder {
    pub(super) sandbox: Sandbox,
    /// Acknowledged contents at each mark.
    pub(super) marks: Vec<Holdings>,
}

impl Recorder {
    pub(super) fn new() -> Result<Recorder, String> {
        let sandbox = Sandbox::new().map_err(|error| error.to_string())?;
        Ok(Recorder {
            sandbox,
            marks: Vec::new(),
        })
    }

    /// Commands, each of which is promised when it has ended.
    pub(super) fn command(
        &mut self,
        fixture: &Fixture,
        kind: SessionKind,
        lines: &[&str],
    ) -> Result<(), String> {
        let mut names = Names::new(fixture.inputs());
        for line in lines.iter().copied() {
            let (line, input) = match line.split_once(" < ") {
                Some((line, input)) => (line, format!(" < {input}")),
                None => (line, String::new()),
            };
            let line = format!("{line} --durability {}{input}", kind.name());
            names.perform(&fixture.program, &self.sandbox, &line, Some(Mode::Trace))?;
            let held = self.held();
            self.mark(match kind {
                // Without syncs, nothing is guaranteed.
                SessionKind::Never => Holdings::default(),
                _ => held,
            })?;
        }
        Ok(())
    }

    /// Turns through the proxy. They are guaranteed once they are synced, which is soon.
    pub(super) fn serve(&mut self, fixture: &Fixture) -> Result<(), String> {
        let mut talks = [
            ProxyConversation::new("ferries"),
            ProxyConversation::new("lighthouses"),
        ];
        for visit in 0..2 {
            let upstream = fixture.upstream();
            let started = DiskProxy::start(
                &self.sandbox,
                &fixture.program,
                &upstream,
                Some(Mode::Trace),
            );
            let proxy = started.map_err(|ran| ran.ending())?;
            for turn in 0..3 {
                for talk in &mut talks {
                    talk.turn(proxy.port, &format!("what of {visit}.{turn}?"))?;
                }
                if turn < 2 {
                    let held = self.held();
                    self.await_sync(&held)?;
                    self.mark(held)?;
                }
            }
            let ran = proxy.stop(&self.sandbox);
            if !ran.is_ok() {
                return Err(ran.ending());
            }
            let held = self.held();
            self.mark(held)?;
        }
        Ok(())
    }

    fn held(&self) -> Holdings {
        Holdings::read(&self.sandbox.contexts())
    }

    fn mark(&mut self, held: Holdings) -> Result<(), String> {
        self.marks.push(held);
        let mark = TraceRecord::mark(self.marks.len());
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.sandbox.calls());
        let written = log.and_then(|mut log| log.write_all(mark.as_bytes()));
        written.map_err(|error| error.to_string())
    }

    pub(super) fn records(&self) -> Result<Vec<TraceRecord>, String> {
        let bytes = fs::read(self.sandbox.calls()).map_err(|error| error.to_string())?;
        trace::parse(&bytes, &self.sandbox.disk())
    }

    /// Waits until the logs of these tasks were synced after they were last written to.
    fn await_sync(&self, held: &Holdings) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            // The end of the trace may be torn while it grows.
            let records = self.records().unwrap_or_default();
            let is_synced = |id: &String| {
                let is_log = |path: &Path| {
                    let is_named =
                        path.ends_with("messages.jsonl") || path.ends_with("events.jsonl");
                    is_named && path.to_string_lossy().contains(id.as_str())
                };
                let written = |record: &&TraceRecord| matches!(record, TraceRecord::Write(path, ..) if is_log(path));
                let Some(TraceRecord::Write(path, ..)) = records.iter().rfind(written) else {
                    return false;
                };
                let synced = TraceRecord::Sync(path.clone());
                let place =
                    |wanted: &dyn Fn(&TraceRecord) -> bool| records.iter().rposition(wanted);
                place(&|record| *record == synced) > place(&|record| written(&record))
            };
            if !records.is_empty() && held.tasks.keys().all(is_synced) {
                return Ok(());
            }
            if begin.elapsed() > Duration::from_secs(60) {
                return Err(
                    "what clients said is not forced onto the disk within a minute".to_owned(),
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
