//! The index of conversations, filled again from the tasks' own files when it is lost.

use infold_log::{Past as _, Role, Seq};
use infold_store::{Chains, Contexts, Key, Metadata, RegistryError};
use infold_wire::normal;
use uuid::Uuid;

use super::DeskError;
use crate::Name;
use crate::held::Places;

/// Opens the index of a contexts directory. One that turns out to be damaged, now or later, is filled again.
pub(super) fn open(contexts: &Contexts) -> Result<Chains, RegistryError> {
    let mut chains = Chains::open(contexts.root())?;
    if chains.is_new() {
        fill(&mut chains, contexts);
    }
    let contexts = contexts.clone();
    chains.fill_with(move |chains| fill(chains, &contexts));
    Ok(chains)
}

/// Adds the tasks that are there. If that fails half way, what is there is of use, and the next
/// one who opens the index begins again.
fn fill(chains: &mut Chains, contexts: &Contexts) {
    if let Some(aside) = chains.torn() {
        tracing::warn!(
            ?aside,
            "the index of conversations was damaged, and made anew"
        );
    }
    if let Err(error) = add_all(chains, contexts) {
        tracing::warn!(%error, "not all conversations will be recognised");
    }
}

/// Adds the tasks that are there. One that cannot be read is left out: it could not go on anyway.
fn add_all(chains: &mut Chains, contexts: &Contexts) -> Result<(), DeskError> {
    for task in contexts.tasks()? {
        let Leads { name, rows } = match leads(contexts, task) {
            Ok(leads) => leads,
            Err(error) => {
                tracing::warn!(%task, %error, "a conversation will not be recognised");
                continue;
            }
        };
        if let Some(name) = name {
            chains.name(&name.key(), task)?;
        }
        if !rows.is_empty() {
            chains.add(task, &rows)?;
        }
    }
    Ok(chains.filled()?)
}

/// What leads to a task.
#[derive(Default)]
struct Leads {
    name: Option<Name>,
    rows: Vec<(Key, Seq)>,
}

/// What leads to a task. As long as nobody answered, more than the words would count, and that is lost.
fn leads(contexts: &Contexts, task: Uuid) -> Result<Leads, DeskError> {
    let Some(dir) = contexts.place(task) else {
        return Ok(Leads::default());
    };
    let metadata = Metadata::read(&dir)?;
    if metadata.task_source.as_deref() != Some("proxy") {
        return Ok(Leads::default());
    }
    let mut rows = Vec::new();
    let log = contexts.read(task)?;
    let (mut chain, mut answered) = (normal::root(), false);
    for (seq, digest) in Places::default().follow(&log)? {
        chain = normal::chain(chain, *digest);
        answered |= log.record(*seq)?.role == Role::Assistant;
        // What a fork has from its parent leads to the parent.
        if answered && seq.get() >= log.own().seq {
            rows.push((chain, *seq));
        }
    }
    Ok(Leads {
        name: Name::of(&metadata),
        rows,
    })
}
