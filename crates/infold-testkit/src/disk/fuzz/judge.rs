//! What must hold once a file is damaged.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::Case;
use super::harm::Harm;
use super::store::{ASIDE, Store};
use crate::disk::check::{crash, recorded, repaired};
use crate::disk::fixture::Fixture;
use crate::disk::holdings::Holdings;
use crate::disk::proxy::{Proxy, Talk};
use crate::disk::report::Wrong;
use crate::disk::sandbox::Sandbox;
use crate::random::Random;

/// What people look at.
const READS: [&str; 10] = [
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

/// What people do.
const WRITES: [&str; 5] = [
    "task push @ =question.jsonl",
    "undo @",
    "fork @",
    "pin @ --note gently",
    "manage @ --force --window 400k",
];

type Wrongs = Vec<(Wrong, String)>;

/// Damages a file twice: once for people who look and repair, once for people and servers who go on.
pub(super) fn judge(fixture: &Fixture, case: &Case<'_>) -> (bool, Wrongs) {
    let mut wrong = Wrongs::new();
    let is_repaired = look_and_repair(fixture, case, &mut wrong)
        .and_then(|is_repaired| go_on(fixture, case, &mut wrong).map(|()| is_repaired));
    match is_repaired {
        Ok(is_repaired) => (is_repaired, wrong),
        Err(error) => {
            wrong.push((Wrong::Crash, format!("no run: {error}")));
            (false, wrong)
        }
    }
}

fn damaged(case: &Case<'_>) -> io::Result<Sandbox> {
    let sandbox = Sandbox::copy_of(&case.store.contexts())?;
    let path = sandbox.contexts().join(&case.victim.path);
    case.harm.inflict(&path, &mut Random::new(case.seed))?;
    Ok(sandbox)
}

fn look_and_repair(fixture: &Fixture, case: &Case<'_>, wrong: &mut Wrongs) -> io::Result<bool> {
    let sandbox = damaged(case)?;
    let before = Lines::read(&sandbox.contexts(), case);
    for line in READS {
        let ran = run(fixture, &sandbox, case, line);
        if let Some(what) = crash(&ran) {
            wrong.push((Wrong::Crash, format!("{line}: {what}")));
        } else if ran.is_ok()
            && let Some(what) = changed(case, &ran.objects())
        {
            wrong.push((Wrong::Untrue, format!("{line}: {what}")));
        }
    }
    let repaired = repaired(fixture, &sandbox);
    let is_repaired = matches!(repaired, Ok(true));
    wrong.extend(repaired.err());
    wrong.extend(missing(case, &before, &sandbox));
    wrong.extend(unusable(fixture, &sandbox, case).filter(|_| wrong.is_empty()));
    Ok(is_repaired)
}

/// What a person cannot do in a task that was repaired.
fn unusable(fixture: &Fixture, sandbox: &Sandbox, case: &Case<'_>) -> Option<(Wrong, String)> {
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
                Wrong::Unrepaired,
                format!("after doctor --repair: {line}: {}", ran.ending()),
            )
        })
    })
}

/// Writers and a server meet the damage before anybody repairs it.
fn go_on(fixture: &Fixture, case: &Case<'_>, wrong: &mut Wrongs) -> io::Result<()> {
    let sandbox = damaged(case)?;
    let before = Lines::read(&sandbox.contexts(), case);
    if case.seed.is_multiple_of(2) {
        for line in WRITES {
            if let Some(what) = crash(&run(fixture, &sandbox, case, line)) {
                wrong.push((Wrong::Crash, format!("{line}: {what}")));
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

fn run(
    fixture: &Fixture,
    sandbox: &Sandbox,
    case: &Case<'_>,
    line: &str,
) -> crate::disk::sandbox::Ran {
    let words = fixture.names().words(line).into_iter();
    let words: Vec<String> = words
        .map(|word| match word.is_empty() {
            // `@` alone is the task in question.
            true => case.victim.id.clone(),
            false => word,
        })
        .collect();
    sandbox.run(&fixture.program, &words)
}

/// A server starts, answers, and records a new conversation, whatever became of the old ones.
fn serve(fixture: &Fixture, sandbox: &Sandbox) -> Result<(), (Wrong, String)> {
    let started = Proxy::start(sandbox, &fixture.program, &fixture.upstream(), None);
    let proxy = started.map_err(|ran| {
        (
            Wrong::Unrepaired,
            format!("serve does not start: {}", ran.ending()),
        )
    })?;
    let mut talks = [fixture.talk().clone(), Talk::new("whales")];
    for talk in &mut talks {
        for text in ["what swims there?", "and what flies?"] {
            let answered = talk.turn(proxy.port, text);
            answered
                .map_err(|what| (Wrong::Untrue, format!("a client was not answered: {what}")))?;
        }
    }
    let ran = proxy.stop(sandbox);
    if !ran.is_ok() {
        return Err((Wrong::Crash, format!("serve: {}", ran.ending())));
    }
    let [_, new] = &talks;
    match recorded(fixture, sandbox, new) {
        Ok(said) if said == new.said() => Ok(()),
        other => Err((
            Wrong::Unrepaired,
            format!("serve recorded {other:?} of a new conversation"),
        )),
    }
}

/// A message or event that a command shows, and that was never said so.
fn changed(case: &Case<'_>, objects: &[Value]) -> Option<String> {
    let original = original_messages(case.store, &case.victim.id);
    objects.iter().find_map(|object| {
        let seq = object["seq"].as_u64()?;
        let shown = object
            .get("message")
            .filter(|message| message.is_object())?;
        // Stand-ins have no seq; a masked or clipped message is shown otherwise.
        let is_whole = object["note"].as_str().unwrap_or_default().is_empty();
        let said = original.get(&seq)?;
        (is_whole && shown != said)
            .then(|| format!("exit 0 and message {seq} is not what was said: {shown}"))
    })
}

/// The messages of a task and of the one that it continues, by seq, as they came.
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

/// The lines of the logs of a task, as they are on the disk.
struct Lines {
    messages: Vec<Vec<u8>>,
    events: Vec<Vec<u8>>,
}

impl Lines {
    fn read(contexts: &Path, case: &Case<'_>) -> Lines {
        let dir = ["running", "completed"].map(|place| contexts.join(place).join(&case.victim.id));
        let read = |name: &str| {
            let found = dir.iter().find_map(|dir| fs::read(dir.join(name)).ok());
            let bytes = found.unwrap_or_default();
            bytes
                .split(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect()
        };
        Lines {
            messages: read("messages.jsonl"),
            events: read("events.jsonl"),
        }
    }
}

/// What was intact or set aside, and is not there any more.
fn missing(case: &Case<'_>, before: &Lines, sandbox: &Sandbox) -> Option<(Wrong, String)> {
    let contexts = sandbox.contexts();
    let now = Holdings::read(&contexts);
    let id = &case.victim.id;
    let mut others = case.store.holdings.clone();
    others.tasks.remove(id);
    if let Some(lost) = others.lost_in(&now) {
        return Some((Wrong::Lost, lost));
    }
    let task = case.store.holdings.tasks.get(id)?;
    let after = Lines::read(&contexts, case);
    let aside = set_aside(&contexts).concat();
    let is_aside = |line: &[u8]| {
        aside
            .windows(line.len().max(1))
            .any(|window| window == line)
    };
    // Lines in their place stay there; those that were moved are at least set aside.
    let is_moved = matches!(case.harm, Harm::Swap | Harm::Duplicate);
    let logs = [
        (
            "message",
            &task.messages,
            &before.messages,
            &after.messages,
            is_moved,
        ),
        ("event", &task.events, &before.events, &after.events, true),
    ];
    for (name, original, before, after, may_be_aside) in logs {
        for line in original {
            let line = line.as_bytes();
            let was_there = before.iter().any(|other| other == line);
            let is_there = after.iter().any(|other| other == line);
            if was_there && !is_there && !(may_be_aside && is_aside(line)) {
                let what = String::from_utf8_lossy(line);
                return Some((Wrong::Lost, format!("an intact {name} is gone: {what}")));
            }
        }
        // What is neither is kept for a person to look at.
        for line in before.iter().filter(|line| !line.is_empty()) {
            if !after.contains(line) && !is_aside(line) {
                let what = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
                return Some((
                    Wrong::Lost,
                    format!("a damaged {name} was not set aside: {what}"),
                ));
            }
        }
    }
    let kept = set_aside(&contexts).iter().any(|bytes| bytes == ASIDE.1);
    (!kept).then(|| (Wrong::Lost, format!("{} is gone", ASIDE.0)))
}

/// Everything that repairs have set aside.
fn set_aside(dir: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if path.is_dir() {
            found.extend(set_aside(&path));
        } else if name.contains("torn-") || name.contains("damaged-") {
            found.extend(fs::read(&path));
        }
    }
    found
}
