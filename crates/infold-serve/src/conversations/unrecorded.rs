//! Requests of known conversations that cannot be recorded: their folds still apply.

use infold_log::{Item, Seq, View};
use infold_store::{Log, Quirks};
use infold_wire::digest::Digest;
use uuid::Uuid;

use super::{ConversationError, Conversations, Core};
use crate::message_digest::DigestPath;
use crate::model_rules::ModelRule;
use crate::open_task::OpenTask;
use crate::parsed_request::{ParsedRequest, RequestMessage};
use crate::splice::{is_plain, splice_contexts, splice_request};
use crate::{ConversationName, ModelCall, OutgoingBody};

impl Conversations {
    /// Applies the folds of a call's conversation, and the texts of its state, without writing anything; returns `None`
    /// if the conversation is unknown, or nothing changes.
    ///
    /// Messages that the log does not hold are sent unchanged.
    pub(crate) fn fold_unrecorded(
        &self,
        call: &ModelCall,
    ) -> Result<Option<OutgoingBody>, ConversationError> {
        let core = &self.core;
        let parsed = self.parse(call)?;
        if parsed.params.previous.is_some() || parsed.is_text() {
            // The client sends only the end of the conversation: there is nothing to replace.
            return Ok(None);
        }
        let Some(task) = core.find_task_read_only(&parsed)? else {
            return Ok(None);
        };
        let rule = core.rules.cached(&call.provider, &parsed.model, false);
        if let Some(mut open) = core.pool.lease_if_open(task) {
            let OpenTask { path, writer, .. } = &mut *open;
            let log = writer.log();
            return core.apply_unrecorded(call, &parsed, log, path.follow(log)?, rule.as_deref());
        }
        let log = core.contexts.read(task)?;
        let mut path = DigestPath::default();
        core.apply_unrecorded(call, &parsed, &log, path.follow(&log)?, rule.as_deref())
    }
}

impl Core {
    /// Applies the folds of a conversation, and its state behind the system prompt.
    fn apply_unrecorded(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
        log: &Log,
        digests: &[(Seq, Digest)],
        rule: Option<&ModelRule>,
    ) -> Result<Option<OutgoingBody>, ConversationError> {
        let quirks = rule.map_or_else(Quirks::default, |rule| rule.quirks);
        let folded = apply_folds(call, parsed, log, digests, quirks)?;
        let context = match rule {
            Some(rule) => self.inject_unrecorded(call, parsed, log, rule.profile.window)?,
            None => None,
        };
        let Some(context) = context else {
            return Ok(folded);
        };
        let outgoing = folded.unwrap_or_else(|| OutgoingBody::untouched(&call.body));
        Ok(Some(context.apply(parsed, outgoing)))
    }

    /// Finds the task that holds the longest known beginning of a conversation, without opening it.
    fn find_task_read_only(
        &self,
        parsed: &ParsedRequest,
    ) -> Result<Option<Uuid>, ConversationError> {
        if let Some(ConversationName::Given(name)) = &parsed.name
            && let Ok(task) = name.parse::<Uuid>()
            && self.contexts.place(task).is_some()
        {
            return Ok(Some(task));
        }
        let Some(found) = self.index.find_read_only(&parsed.keys()) else {
            return Ok(None);
        };
        let places = &found.places;
        if let (Some(name), true) = (&parsed.name, places.len() > 1) {
            for (task, _) in places {
                if name.is_among(&self.index.names_of(*task)?) {
                    return Ok(Some(*task));
                }
            }
        }
        Ok(places.first().map(|(task, _)| *task))
    }
}

/// Assembles a request from the view of the log and the messages that the log does not hold.
fn apply_folds(
    call: &ModelCall,
    parsed: &ParsedRequest,
    log: &Log,
    digests: &[(Seq, Digest)],
    quirks: Quirks,
) -> Result<Option<OutgoingBody>, ConversationError> {
    let pairs = digests.iter().zip(&parsed.messages);
    let is_same =
        |((_, digest), message): &(&(Seq, Digest), &RequestMessage)| *digest == message.digest;
    let known = &digests[..pairs.take_while(is_same).count()];
    let shown = log.state().shown();
    let view = View::of(shown, log)?;
    // A summary of messages that the client does not send belongs to another conversation.
    let is_beyond = |item: &Item| match (item, known.last()) {
        (Item::Fold(fold), Some((last, _))) => fold.span().to() > *last,
        (Item::Fold(_), None) => true,
        _ => false,
    };
    if shown.items().iter().any(is_beyond) {
        return Ok(None);
    }
    if is_plain(&view, shown) {
        let outgoing = splice_contexts(call, parsed, log, known)?;
        return Ok(Some(outgoing).filter(|it| *it != OutgoingBody::untouched(&call.body)));
    }
    splice_request(call, parsed, log, &view, known, quirks, false).map(Some)
}
