//! `infold doctor --secrets`: finds secrets in stored data.

use std::collections::BTreeMap;

use infold::redact::pattern_of;
use infold_store::{Contexts, Scanned, SecretPlace, StoredSecret};
use infold_wire::secrets::rule_count;
use serde_json::json;
use uuid::Uuid;

use crate::error::{CliError, CliResult};
use crate::output::{BAD, DIM, GOOD, Output, count, note, paint, say};
use crate::progress::ProgressLine;

/// `infold doctor --secrets`
pub fn find(contexts: &Contexts, task: Option<&str>, out: &mut Output) -> CliResult {
    let tasks = match task {
        Some(task) => vec![contexts.resolve(task)?],
        None => contexts.tasks()?,
    };
    let places = tasks.iter().filter_map(|task| contexts.place(*task));
    let total = places
        .map(|dir| infold_store::size(&dir))
        .sum::<Result<u64, _>>()?;
    let mut progress = ProgressLine::new(out.is_json(), "searching for secrets", total);
    let (mut scanned, mut total) = (Scanned::default(), 0);
    let places = tasks.iter().copied().map(Some);
    for task in places.chain(task.is_none().then_some(None)) {
        let mut found: Vec<StoredSecret> = Vec::new();
        let mut read = |bytes| progress.advance(bytes);
        let mut take = |secret| found.push(secret);
        let looked_at = match task {
            Some(task) => contexts.find_secrets(task, &mut read, &mut take)?,
            None => contexts.find_secrets_beside_tasks(&mut read, &mut take)?,
        };
        scanned.messages += looked_at.messages;
        remove_derived(&mut found);
        total += found.len() as u64;
        print_secrets(task, &found, out)?;
    }
    let mut kept: BTreeMap<Uuid, Vec<StoredSecret>> = BTreeMap::new();
    contexts.find_secrets_in_checkpoints(&tasks, &mut |task, secret| {
        kept.entry(task).or_default().push(secret);
    })?;
    for (task, found) in kept {
        total += found.len() as u64;
        print_secrets(Some(task), &found, out)?;
    }
    drop(progress);
    out.finish()?;
    let text = format!(
        "searched {} in {}, with {}",
        count(scanned.messages, "message"),
        count(tasks.len() as u64, "task"),
        count(rule_count() as u64, "rule"),
    );
    note(out.is_json(), text);
    match total {
        0 => {
            say(out.is_json(), paint(GOOD, "no secrets found"));
            Ok(())
        }
        found => Err(CliError::no(format!("{} found", count(found, "secret"))).hint(
            "`infold redact TASK SEQ` removes a message, `infold redact TASK --pattern RE` all matches; `redact: true` in config.yaml keeps new ones off the disk; revoke real keys",
        )),
    }
}

/// Removes secrets in files derived from the log: redacting the log redacts them too.
fn remove_derived(found: &mut Vec<StoredSecret>) {
    const DERIVED_FILES: [&str; 3] = ["current.jsonl", "summaries.jsonl", "tools.jsonl"];
    let is_derived = |secret: &StoredSecret| DERIVED_FILES.contains(&secret.file.as_str());
    let log = found.iter().filter(|secret| !is_derived(secret));
    let log: Vec<_> = log.map(|secret| secret.found.clone()).collect();
    found.retain(|secret| !is_derived(secret) || !log.contains(&secret.found));
}

fn print_secrets(task: Option<Uuid>, found: &[StoredSecret], out: &mut Output) -> CliResult {
    let name = task.map_or_else(|| "beside the tasks".to_owned(), |task| task.to_string());
    let mut last_command = None;
    for secret in found {
        let StoredSecret {
            file,
            place,
            found,
            stays,
        } = secret;
        let (seq, shown) = match place {
            SecretPlace::Message(seq) => (Some(*seq), format!("seq {seq}")),
            SecretPlace::Event(id) => (None, format!("{file} e{id}")),
            SecretPlace::Line(line) => (None, format!("{file} line {line}")),
            SecretPlace::File => (None, file.clone()),
        };
        let command = task.filter(|_| !stays).map(|task| match seq {
            Some(seq) => format!("infold redact {task} {seq}"),
            None => {
                let pattern = pattern_of(&found.start, found.chars);
                format!(
                    "infold redact {task} --pattern '{}'",
                    pattern.replace('\'', ".")
                )
            }
        });
        // The remains of a task that was removed or never completed have no messages to redact.
        let is_left = task.is_none() && file.contains("/.");
        let command = command.or_else(|| is_left.then(|| "infold doctor --repair".to_owned()));
        if out.is_json() {
            out.object(&json!({
                "uuid": task.map(|task| task.to_string()), "file": file, "seq": seq, "rule": found.rule,
                "start": found.start, "characters": found.chars, "command": command, "stays": stays,
            }))?;
            continue;
        }
        let rule = paint(BAD, found.rule);
        let (start, chars) = (&found.start, found.chars);
        out.line(format!(
            "{name}  {shown}  {rule}  {start}… ({chars} characters)"
        ))?;
        if *stays {
            let reason = "an id or tool name, which `infold redact` does not change: revoke it";
            out.line(paint(DIM, format!("    {reason}")))?;
        }
        if let Some(command) = command.filter(|command| last_command.as_ref() != Some(command)) {
            out.line(paint(DIM, format!("    {command}")))?;
            last_command = Some(command);
        }
    }
    Ok(())
}
