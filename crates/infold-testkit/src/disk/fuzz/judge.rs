//! Checks of a store with a damaged file.

use std::collections::BTreeMap;
use std::io;

use serde_json::Value;

use super::FuzzCase;
use super::kept::{Lines, missing};
use super::store::Store;
use crate::disk::check::{crash, recorded, repaired};
use crate::disk::fixture::Fixture;
use crate::disk::proxy::{DiskProxy, ProxyConversation};
use crate::disk::report::Flaw;
use crate::disk::sandbox::{FinishedCommand, Sandbox};
use crate::random::Random;

/// Commands that only read.
const READS: [&str; 11] = [
    "view @",
    "view @ --raw",
    "log @",
    "folds @",
    "recall @ 1..3",
    "export @",
    "view @ --at 2",
    "task show @",
    "task list",
    "verify",
    "doctor",
];

/// Commands that write.
const WRITES: [&str; 5] = [
    "task push @ =question.jsonl",
    "undo @",
    "fork @",
    "pin @ --note gently",
    "manage @ --force --window 400k",
];

type Wrongs = Vec<(Flaw, String)>;

/// Damages a file twice: once followed by check and repair, once followed by further writes.
pub(super) fn judge(fixture: &Fixture, case: &FuzzCase<'_>) -> (bool, Wrongs) {
    let mut wrong = Wrongs::new();
    let is_repaired = look_and_repair(fixture, case, &mut wrong)
        .and_then(|is_repaired| go_on(fixture, case, &mut wrong).map(|()| is_repaired));
    match is_repaired {
        Ok(is_repaired) => (is_repaired, wrong),
        Err(error) => {
            wrong.push((Flaw::Crash, format!("no run: {error}")));
            (false, wrong)
        }
    }
}

fn damaged(case: &FuzzCase<'_>) -> io::Result<Sandbox> {
    let sandbox = Sandbox::copy_of(&case.store.contexts())?;
    let path = sandbox.contexts().join(&case.damaged.path);
    case.damage.inflict(&path, &mut Random::new(case.seed))?;
    Ok(sandbox)
}

fn look_and_repair(fixture: &Fixture, case: &FuzzCase<'_>, wrong: &mut Wrongs) -> io::Result<bool> {
    let sandbox = damaged(case)?;
    let before = Lines::read(&sandbox.contexts(), case);
    for line in READS {
        let ran = run(fixture, &sandbox, case, line);
        if let Some(what) = crash(&ran) {
            wrong.push((Flaw::Crash, format!("{line}: {what}")));
        } else if ran.is_ok() {
            let found = changed(case, &ran).map(|what| (Flaw::Untrue, format!("{line}: {what}")));
            wrong.extend(found);
        }
    }
    let repaired = repaired(fixture, &sandbox);
    let is_repaired = matches!(repaired, Ok(true));
    wrong.extend(repaired.err());
    wrong.extend(missing(case, &before, &sandbox));
    wrong.extend(unusable(fixture, &sandbox, case).filter(|_| wrong.is_empty()));
    Ok(is_repaired)
}

/// Returns the commands that fail in a repaired task.
fn unusable(fixture: &Fixture, sandbox: &Sandbox, case: &FuzzCase<'_>) -> Option<(Flaw, String)> {
    [
        "view @",
        "export @",
        "task push @ =question.jsonl",
        "view @",
    ]
    .into_iter()
    .find_map(|line| {
        let ran = run(fixture, sandbox, case, line);
        // A task that has ended is not written to.
        let is_fair = ran.is_ok() || ran.code == Some(2) && ran.err.contains("has ended");
        (!is_fair).then(|| {
            (
                Flaw::Unrepaired,
                format!("after doctor --repair: {line}: {}", ran.ending()),
            )
        })
    })
}

/// Runs writing commands and a server on the damaged store before it is repaired.
fn go_on(fixture: &Fixture, case: &FuzzCase<'_>, wrong: &mut Wrongs) -> io::Result<()> {
    let sandbox = damaged(case)?;
    let before = Lines::read(&sandbox.contexts(), case);
    if case.seed.is_multiple_of(2) {
        for line in WRITES {
            if let Some(what) = crash(&run(fixture, &sandbox, case, line)) {
                wrong.push((Flaw::Crash, format!("{line}: {what}")));
            }
        }
    }
    wrong.extend(serve(fixture, &sandbox).err());
    wrong.extend(
        repaired(fixture, &sandbox)
            .err()
            .map(|(kind, what)| (kind, format!("gone on with: {what}"))),
    );
    wrong.extend(missing(case, &before, &sandbox));
    Ok(())
}

fn run(fixture: &Fixture, sandbox: &Sandbox, case: &FuzzCase<'_>, line: &str) -> FinishedCommand {
    let words = fixture.names().words(line).into_iter();
    let words: Vec<String> = words
        .map(|word| {
            // `@` alone is the task in question.
            if word.is_empty() {
                case.damaged.id.clone()
            } else {
                word
            }
        })
        .collect();
    sandbox.run(&fixture.program, &words)
}

/// Checks that a server starts, answers, and records a new conversation, even if the old ones are damaged.
fn serve(fixture: &Fixture, sandbox: &Sandbox) -> Result<(), (Flaw, String)> {
    let started = DiskProxy::start(sandbox, &fixture.program, &fixture.upstream(), None);
    let proxy = started.map_err(|ran| {
        (
            Flaw::Unrepaired,
            format!("serve does not start: {}", ran.ending()),
        )
    })?;
    let mut talks = [fixture.talk().clone(), ProxyConversation::new("whales")];
    for talk in &mut talks {
        for text in ["what swims there?", "and what flies?"] {
            let answered = talk.turn(proxy.port, text);
            answered
                .map_err(|what| (Flaw::Untrue, format!("a client was not answered: {what}")))?;
        }
    }
    let ran = proxy.stop(sandbox);
    if !ran.is_ok() {
        return Err((Flaw::Crash, format!("serve: {}", ran.ending())));
    }
    let [_, new] = &talks;
    match recorded(fixture, sandbox, new) {
        Ok(said) if said == new.said() => Ok(()),
        other => Err((
            Flaw::Unrepaired,
            format!("serve recorded {other:?} of a new conversation"),
        )),
    }
}

/// Returns a description of a message that a command shows and that differs from the original.
fn changed(case: &FuzzCase<'_>, ran: &FinishedCommand) -> Option<String> {
    if ran.out.contains(&0) {
        return Some("exit 0 and zeros in what is shown".to_owned());
    }
    let original = original_messages(case.store, &case.damaged.id);
    ran.objects().iter().find_map(|object| {
        let said = original.get(&object["seq"].as_u64()?)?;
        let shown = object
            .get("message")
            .filter(|message| message.is_object())?;
        // A message that is masked or clipped is noted as such, and shown otherwise.
        let is_whole = object["note"].as_str().unwrap_or_default().is_empty();
        let seq = &object["seq"];
        (is_whole && shown != said)
            .then(|| format!("exit 0 and message {seq} is not what was said: {shown}"))
    })
}

/// Returns the original messages of a task and of the one that it continues, by seq.
fn original_messages(store: &Store, id: &str) -> BTreeMap<u64, Value> {
    let mut messages = BTreeMap::new();
    let mut next = Some(id.to_owned());
    while let Some(task) = next.take().and_then(|id| store.holdings.tasks.get(&id)) {
        for line in &task.messages {
            let mut message: Value = serde_json::from_str(line).unwrap_or_default();
            let seq = message["seq"].as_u64().unwrap_or_default();
            if let Some(object) = message.as_object_mut() {
                for name in ["seq", "timestamp", "tokens"] {
                    object.remove(name);
                }
            }
            messages.entry(seq).or_insert(message);
        }
        let first: Option<Value> = task
            .events
            .first()
            .and_then(|line| serde_json::from_str(line).ok());
        let parent = first.filter(|event| event["type"] == "fork");
        next = parent.and_then(|event| event["task"].as_str().map(str::to_owned));
    }
    messages
}
