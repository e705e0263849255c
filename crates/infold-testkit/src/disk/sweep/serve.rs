//! The proxy with faults under it: clients are answered all the same, and what was missed is caught up with.

use std::fs;

use serde_json::Value;

use super::claims::EffectClaim;
use super::judge::Judged;
use super::{Flaw, SweepRun};
use crate::disk::check::{crash, recorded, repaired};
use crate::disk::fixture::Fixture;
use crate::disk::holdings::Holdings;
use crate::disk::http;
use crate::disk::proxy::{DiskProxy, ProxyConversation};
use crate::disk::sandbox::Sandbox;
use crate::disk::shim::{Mode, read_calls};

/// Requests and responses of clients while the server ran.
struct ClientSession {
    /// A conversation that was there before, and a new one.
    talks: [ProxyConversation; 2],
    /// Turns that were not answered as they should have been.
    refused: Vec<String>,
    /// The API's response to an append: its status, and the error and hint if it failed.
    append: Option<(u16, String, String)>,
}

/// Runs the server once, undisturbed, with its calls listed.
pub(super) fn rehearse(fixture: &Fixture, sandbox: &Sandbox) -> Result<(), String> {
    let started = DiskProxy::start(
        sandbox,
        &fixture.program,
        &fixture.upstream(),
        Some(Mode::List),
    );
    let proxy = started.map_err(|ran| ran.ending())?;
    let session = ClientSession::record(fixture, &proxy);
    let ran = proxy.stop(sandbox);
    match session.refused.first() {
        Some(refused) => Err(refused.clone()),
        None if !ran.is_ok() => Err(ran.ending()),
        None => Ok(()),
    }
}

/// One run of the server with a fault, then one without.
pub(super) fn judge(run: &SweepRun<'_>, fixture: &Fixture) -> Judged {
    let sandbox = Sandbox::copy_of(&run.subject.contexts)?;
    let mut wrong = Vec::new();
    let mode = Mode::Fault(run.at, run.fault);
    let started = DiskProxy::start(&sandbox, &fixture.program, &fixture.upstream(), Some(mode));
    let (session, ran) = match started {
        Err(ran) => (ClientSession::none(fixture), ran),
        Ok(proxy) => {
            let session = ClientSession::record(fixture, &proxy);
            (session, proxy.stop(&sandbox))
        }
    };
    let is_harmed = !read_calls(&sandbox.calls()).is_empty();
    let is_killed = run.fault.is_kill() && ran.signal == Some(9);
    if let Some(what) = crash(&ran).filter(|_| !is_killed) {
        wrong.push((Flaw::Crash, what));
    }
    // Only a killed server may leave a client without an answer.
    if let Some(what) = session.refused.first().filter(|_| !is_killed) {
        wrong.push((Flaw::Untrue, format!("a client was not answered: {what}")));
    }
    wrong.extend(session.check_append(fixture, &sandbox));
    if let Err(found) = repaired(fixture, &sandbox) {
        wrong.push(found);
    }
    wrong.extend(catch_up(fixture, &sandbox, session));
    if let Err(found) = repaired(fixture, &sandbox) {
        wrong.push(found);
    }
    if let Some(lost) = run
        .subject
        .before
        .lost_in(&Holdings::read(&sandbox.contexts()))
    {
        wrong.push((Flaw::Lost, lost));
    }
    Ok((is_harmed, wrong))
}

impl ClientSession {
    fn none(fixture: &Fixture) -> ClientSession {
        ClientSession {
            talks: [fixture.talk().clone(), ProxyConversation::new("ferries")],
            refused: Vec::new(),
            append: None,
        }
    }

    /// Sends two turns of each conversation, and an append through the API.
    fn record(fixture: &Fixture, proxy: &DiskProxy) -> ClientSession {
        let mut session = ClientSession::none(fixture);
        for turn in ["who is on board?", "and who is not?"] {
            for talk in &mut session.talks {
                session.refused.extend(talk.turn(proxy.port, turn).err());
            }
        }
        let path = format!("/infold/api/tasks/{}/messages", fixture.task("main"));
        let body = fs::read(fixture.names().input("turn.jsonl")).unwrap_or_default();
        session.append = http::call(proxy.port, "POST", &path, &body)
            .ok()
            .map(|answer| {
                let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                let text = |name: &str| said["error"][name].as_str().unwrap_or_default().to_owned();
                (answer.status, text("message"), text("hint"))
            });
        session
    }

    /// An append is there if it was acknowledged, and not if it was said to have failed.
    fn check_append(&self, fixture: &Fixture, sandbox: &Sandbox) -> Option<(Flaw, String)> {
        let (status, error, hint) = self.append.as_ref()?;
        let main = fixture.task("main");
        let count = |holdings: &Holdings| {
            holdings
                .tasks
                .get(main)
                .map_or(0, |task| task.messages.len())
        };
        let before = count(&fixture.holdings());
        let added = count(&Holdings::read(&sandbox.contexts())).saturating_sub(before);
        let found = match (*status, added, EffectClaim::of(error, hint)) {
            (200..300, 2, _) => return None,
            (200..300, ..) => (Flaw::Lost, "an append was acknowledged, and is not there"),
            (_, 0, EffectClaim::Done) => (Flaw::Untrue, "an append is said to be done, and is not"),
            (_, 0, _) => return None,
            (_, 2, EffectClaim::Done | EffectClaim::Unsure) => return None,
            (_, 2, _) => (
                Flaw::Untrue,
                "an append failed, and does not say that it took effect",
            ),
            _ => (Flaw::HalfDone, "a part of an append is there"),
        };
        Some((found.0, format!("{}: {status} {error} ({hint})", found.1)))
    }
}

/// Clients go on with a new server: it records all of their conversations.
fn catch_up(fixture: &Fixture, sandbox: &Sandbox, session: ClientSession) -> Vec<(Flaw, String)> {
    let started = DiskProxy::start(sandbox, &fixture.program, &fixture.upstream(), None);
    let proxy = match started {
        Ok(proxy) => proxy,
        Err(ran) => {
            return vec![(
                Flaw::Unrepaired,
                format!("serve does not start again: {}", ran.ending()),
            )];
        }
    };
    let mut wrong = Vec::new();
    let mut talks = session.talks;
    for talk in &mut talks {
        if let Err(what) = talk.turn(proxy.port, "where do we land?") {
            wrong.push((Flaw::Retry, format!("not answered by a new server: {what}")));
        }
    }
    let ran = proxy.stop(sandbox);
    if !ran.is_ok() {
        wrong.push((Flaw::Crash, format!("a new server: {}", ran.ending())));
    }
    for talk in talks.iter().filter(|_| wrong.is_empty()) {
        let recorded = recorded(fixture, sandbox, talk);
        if recorded.as_deref() != Ok(&talk.said()) {
            let what = format!("a new server recorded {recorded:?} of {:?}", talk.said());
            wrong.push((Flaw::Retry, what));
            break;
        }
    }
    wrong
}
