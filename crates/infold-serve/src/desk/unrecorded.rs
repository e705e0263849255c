//! Requests of known conversations that cannot be recorded: their folds still apply.

use infold_log::{Item, Seq, View};
use infold_store::{Key, Log, Quirks};
use infold_wire::normal::Digest;
use uuid::Uuid;

use super::{Desk, DeskError, Inner, Pace, locked};
use crate::held::{Held, Places};
use crate::splice::{is_plain, spliced};
use crate::told::Told;
use crate::{Call, Name, Outgoing};

impl Desk {
    /// Applies the folds of a call's conversation without writing anything; returns nothing if the
    /// conversation is unknown or unfolded.
    ///
    /// Messages that the log does not hold go out as the client sent them.
    pub(crate) fn fold_unrecorded(&self, call: &Call) -> Result<Option<Outgoing>, DeskError> {
        let told = self.read(call)?;
        if told.params.previous.is_some() || told.text.is_some() {
            // The client sends only the end of the conversation: there is nothing to replace.
            return Ok(None);
        }
        let Some(task) = self.inner.find_task(&told)? else {
            return Ok(None);
        };
        let rule = self
            .inner
            .rule(&call.provider, &told.model, false, Pace::Hasty);
        let rule = rule.ok().flatten();
        let quirks = rule.map_or_else(Quirks::default, |rule| rule.quirks);
        if let Some(held) = self.inner.opened(task) {
            let mut held = locked(&held);
            let Held { places, writer, .. } = &mut *held;
            let log = writer.log();
            return apply_folds(call, &told, log, places.follow(log)?, quirks);
        }
        let log = self.inner.contexts.read(task)?;
        let mut places = Places::default();
        apply_folds(call, &told, &log, places.follow(&log)?, quirks)
    }
}

impl Inner {
    /// Finds the task that holds the longest known beginning of a conversation, without opening it.
    fn find_task(&self, told: &Told) -> Result<Option<Uuid>, DeskError> {
        if let Some(Name::Given(name)) = &told.name
            && let Ok(task) = name.parse::<Uuid>()
            && self.contexts.place(task).is_some()
        {
            return Ok(Some(task));
        }
        let keys: Vec<Key> = told.said.iter().map(|said| said.key).collect();
        let recent = self.recent.find_any(&keys);
        let mut chains = self.chains();
        // An index that cannot be read knows nothing.
        let Some((at, places)) = chains.find(&keys).unwrap_or_default() else {
            return Ok(recent.map(|(_, task)| task));
        };
        if let Some((recent_at, task)) = recent
            && recent_at > at
        {
            return Ok(Some(task));
        }
        if let Some(wanted) = told.name.as_ref().map(Name::key) {
            for (task, _) in &places {
                if chains.names_of(*task)?.contains(&wanted) {
                    return Ok(Some(*task));
                }
            }
        }
        Ok(places.first().map(|(task, _)| *task))
    }
}

/// Puts a request together of what the log shows and of what it does not hold.
fn apply_folds(
    call: &Call,
    told: &Told,
    log: &Log,
    places: &[(Seq, Digest)],
    quirks: Quirks,
) -> Result<Option<Outgoing>, DeskError> {
    let pairs = places.iter().zip(&told.said);
    let is_same = |((_, held), said): &(&(Seq, Digest), &crate::told::Said)| *held == said.digest;
    let known = &places[..pairs.take_while(is_same).count()];
    let shown = log.state().shown();
    let view = View::of(shown, log)?;
    // A summary of messages that the client does not send would tell of another conversation.
    let is_beyond = |item: &Item| match (item, known.last()) {
        (Item::Fold(fold), Some((last, _))) => fold.span().to() > *last,
        (Item::Fold(_), None) => true,
        _ => false,
    };
    if is_plain(&view) || shown.items().iter().any(is_beyond) {
        return Ok(None);
    }
    spliced(call, told, log, &view, known, quirks).map(Some)
}
