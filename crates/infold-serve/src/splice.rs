//! Assembles a folded request from the bytes of the original one.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use infold::layers::shows_context;
use infold_log::{EventId, Role, Seq, Shown, Shows, Span, View};
use infold_store::{Log, Quirks, What};
use infold_wire::digest::Digest;
use infold_wire::envelope::is_stored_conversation;
use infold_wire::lookup::{LookupOffer, splice_lookups};
use infold_wire::{
    Alternation, Json, Message, PartKind, Wire, render_round, render_stand_in, render_text,
    splice_unordered, without_thinking,
};

use crate::conversations::{InjectedContext, RequestAdditions};
use crate::parsed_request::ParsedRequest;
use crate::{ConversationError, ModelCall, OutgoingBody, OutgoingPart};

/// Assembles a request: the messages of a view, in the client's own bytes wherever it sent them, and everything that
/// the client sent after the last of `digests`.
///
/// The bytes before the first fold and behind the last one do not change, so that the provider's cache remains valid
/// until a new fold is made. Replies are shown with their look-ups if `shows_lookups`, else as the client has them.
pub(crate) fn splice_request(
    call: &ModelCall,
    parsed: &ParsedRequest,
    log: &Log,
    view: &View,
    digests: &[(Seq, Digest)],
    quirks: Quirks,
    shows_lookups: bool,
) -> Result<OutgoingBody, ConversationError> {
    let known = digests.iter().zip(&parsed.messages);
    if let Some(at) = known
        .clone()
        .position(|((_, digest), message)| *digest != message.digest)
    {
        return Err(ConversationError::Internal(format!(
            "message {} of the request is not what the task has in its place",
            parsed.messages[at].index + 1
        )));
    }
    // The log has several messages for some of the client's. Only the last of them is mapped to it, so that the
    // client's message is sent once.
    let is_last = |at: usize| {
        let next = parsed.messages.get(at + 1);
        next.is_none_or(|next| next.index != parsed.messages[at].index)
    };
    let index: HashMap<Seq, usize> = known
        .enumerate()
        .filter(|(at, _)| is_last(*at))
        .map(|(_, ((seq, _), message))| (*seq, message.index))
        .collect();
    let mut splicer = RequestSplicer {
        call,
        parsed,
        log,
        index,
        pieces: Vec::new(),
        end: None,
        shows_lookups,
        alternation: Alternation::of(call.wire, quirks.alternate),
        stale_thinking: if quirks.bound && call.wire == Wire::Anthropic {
            log.changed_before()?
        } else {
            None
        },
    };
    let messages = &parsed.envelope.messages;
    let first = messages.get(parsed.envelope.leading);
    // If there is no message after the leading ones, this is the place before the closing bracket of the list.
    let start = first.map_or(parsed.envelope.list.end - 1, |first| first.start);
    splicer.pieces.push(OutgoingPart::Client(0..start));
    for piece in view.pieces() {
        match &piece.shows {
            Shows::Verbatim(span) => {
                for seq in span.seqs() {
                    splicer.push_message(seq);
                }
            }
            Shows::Round {
                members,
                closed,
                masks,
                recalls,
            } => splicer.push_round(members, *closed, masks, recalls)?,
            // Stand-ins and notes are rendered for the wire of this request, which need not be that of the task.
            Shows::StandIn(id) | Shows::Note(id) => match log.event(*id)?.what {
                What::Fold(fold) => {
                    for line in render_stand_in(call.wire, &fold.stand_in) {
                        splicer.push_inserted_message(Bytes::from(line));
                    }
                }
                What::Note { text, .. } => {
                    splicer.push_inserted_message(Bytes::from(render_text(
                        call.wire,
                        Role::User,
                        &text,
                    )));
                }
                _ => {}
            },
        }
    }
    // Messages without content are not in `digests`, nor are those that could not be recorded.
    let known = parsed.messages.len().min(digests.len());
    if let Some(last) = parsed.messages[..known].last() {
        for range in &messages[last.index + 1..] {
            splicer.push_client_message(range.clone());
        }
    }
    let end = messages.last().map_or(start, |last| last.end);
    splicer
        .pieces
        .push(OutgoingPart::Client(end..call.body.len()));
    Ok(OutgoingBody::new(splicer.pieces))
}

/// Collects the parts of a request.
struct RequestSplicer<'a> {
    call: &'a ModelCall,
    parsed: &'a ParsedRequest,
    log: &'a Log,
    /// The places in the client's request of the messages in the log.
    index: HashMap<Seq, usize>,
    pieces: Vec<OutgoingPart>,
    /// The end of the client's last message, if it is the last part so far.
    end: Option<u64>,
    /// Whether look-ups are shown: the request offers the tools that they call. Providers refuse calls in a request
    /// without tools.
    shows_lookups: bool,
    /// Separates turns of one role, where roles must alternate.
    alternation: Option<Alternation>,
    /// Thinking up to this message is left out: its signature covers messages that are shown otherwise now.
    stale_thinking: Option<Seq>,
}

impl RequestSplicer<'_> {
    /// Adds the client's bytes of a message, and of messages without content right before it.
    fn push_message(&mut self, seq: Seq) {
        let Some(at) = self.index.get(&seq).copied() else {
            // The client did not send the message back: it is reasoning.
            return;
        };
        for at in self.first_without_content_before(at)..=at {
            let range = self.parsed.envelope.messages[at].clone();
            match self.without_stale_thinking(seq, &range) {
                Some(bytes) => self.push_inserted_message(Bytes::from(bytes)),
                None => self.push_client_message(range),
            }
        }
    }

    /// Returns the client's message without thinking that would be refused; none if it has none.
    fn without_stale_thinking(&self, seq: Seq, range: &Range<u64>) -> Option<Vec<u8>> {
        self.stale_thinking.filter(|stale| seq <= *stale)?;
        without_thinking(&self.call.body.part(range).ok()?)
    }

    /// Returns the first of the messages without content that precede a message and belong to it.
    fn first_without_content_before(&self, at: usize) -> usize {
        let count = self
            .parsed
            .messages
            .partition_point(|message| message.index < at);
        match count.checked_sub(1) {
            Some(before) => self.parsed.messages[before].index + 1,
            None => self.parsed.envelope.leading,
        }
    }

    /// Adds a message of the client in its own bytes.
    fn push_client_message(&mut self, range: Range<u64>) {
        // The bytes are read only where the role of the message matters.
        if self.alternation.is_some()
            && let Ok(bytes) = self.call.body.part(&range)
        {
            let bytes = bytes.into_owned();
            let follows = self.end.is_some_and(|end| self.follows(end, &range));
            self.push_separator(&bytes, !follows);
        }
        match self.end {
            // The client's own separator, such as a comma and a line break, belongs to the part.
            Some(end) if end <= range.start && self.follows(end, &range) => {
                self.pieces.push(OutgoingPart::Client(end..range.end));
            }
            _ => {
                self.push_comma();
                self.pieces.push(OutgoingPart::Client(range.clone()));
            }
        }
        self.end = Some(range.end);
    }

    /// Says whether the message at `range` directly follows the one that ends at `end`.
    fn follows(&self, end: u64, range: &Range<u64>) -> bool {
        let messages = &self.parsed.envelope.messages;
        let at = messages.partition_point(|message| message.start < range.start);
        at.checked_sub(1)
            .is_some_and(|before| messages[before].end == end)
    }

    /// Adds a message that the client did not send, or not with these bytes.
    fn push_inserted_message(&mut self, bytes: Bytes) {
        self.push_separator(&bytes, true);
        self.push_inserted(bytes);
    }

    /// Adds a separator before the message `next` if the turn before it has the same role, where roles must alternate.
    /// At a `seam`, `next` does not follow the message that it follows in the client's request.
    fn push_separator(&mut self, next: &[u8], seam: bool) {
        let alternation = self.alternation.as_mut();
        if let Some(separator) = alternation.and_then(|turns| turns.separator(next, seam)) {
            self.push_inserted(Bytes::from(separator));
        }
    }

    /// Adds bytes that the client did not send.
    fn push_inserted(&mut self, bytes: Bytes) {
        self.push_comma();
        self.pieces.push(OutgoingPart::Inserted(bytes));
        self.end = None;
    }

    /// Adds the comma before a message, unless it is the first one.
    fn push_comma(&mut self) {
        // The first part is the client's bytes before the messages.
        if self.pieces.len() > 1 {
            self.pieces
                .push(OutgoingPart::Inserted(Bytes::from_static(b",")));
        }
    }

    /// Adds a round that is not shown as it came: with stubs, excerpts, look-ups or results of interrupted calls.
    fn push_round(
        &mut self,
        members: &[Seq],
        closed: bool,
        masks: &[(Seq, u32, EventId)],
        recalls: &[(Seq, EventId)],
    ) -> Result<(), ConversationError> {
        let mut bodies = Vec::new();
        for seq in members {
            let Some(at) = self.index.get(seq).copied() else {
                continue;
            };
            let messages = &self.parsed.envelope.messages;
            for silent in &messages[self.first_without_content_before(at)..at] {
                bodies.push((*seq, self.call.body.part(silent)?.into_owned()));
            }
            let body = match self.without_stale_thinking(*seq, &messages[at]) {
                Some(body) => body,
                None => self.call.body.part(&messages[at])?.into_owned(),
            };
            let ids = masks.iter().filter(|(masked, ..)| masked == seq);
            let body = self.with_stubs(body, ids.map(|(.., id)| *id))?;
            let ids = recalls.iter().filter(|(carrier, _)| carrier == seq);
            let ids = ids.map(|(_, id)| *id);
            bodies.push((*seq, self.log.with_recalls(body, ids)?));
        }
        if bodies.is_empty() {
            return Ok(());
        }
        let mut rendered = render_round(&bodies, closed).map_err(|error| {
            ConversationError::Internal(format!("a round cannot be shown: {error}"))
        })?;
        for mut lookup in self.log.lookups(recalls)? {
            // Lookups on another wire are not sent on this one: the client's reply stands for them.
            if lookup.wire != self.call.wire || !self.shows_lookups {
                continue;
            }
            let (from, at) = (lookup.span.from(), lookup.span.to());
            if self.stale_thinking.is_some_and(|stale| at <= stale) {
                for message in &mut lookup.messages {
                    *message = without_thinking(message).unwrap_or_else(|| message.clone());
                }
            }
            rendered = splice_lookups(rendered, (from, at), &lookup.messages, &lookup.results);
        }
        for line in rendered {
            self.push_inserted_message(Bytes::from(line.bytes));
        }
        Ok(())
    }

    /// Returns the client's message with stubs for the masked parts.
    fn with_stubs(
        &self,
        body: Vec<u8>,
        masks: impl Iterator<Item = EventId>,
    ) -> Result<Vec<u8>, ConversationError> {
        let message = Message::read(&body).map_err(|error| {
            ConversationError::Internal(format!("a message cannot be read: {error}"))
        })?;
        // The client's message may lack blocks that the log has, such as reasoning. So a part is not identified by its
        // index, but by its position among the parts that can be masked.
        let maskable = |part: &infold_wire::Part| part.kind != PartKind::Other;
        let own: Vec<_> = message.parts().into_iter().filter(maskable).collect();
        let mut edits = Vec::new();
        for id in masks {
            let What::Mask(mask) = self.log.event(id)?.what else {
                continue;
            };
            let stored = self.log.message(mask.seq)?;
            let stored = Message::read(&stored).map_err(|error| {
                ConversationError::Internal(format!("a message cannot be read: {error}"))
            })?;
            let parts: Vec<_> = stored.parts().into_iter().filter(maskable).collect();
            if parts.len() != own.len() && self.log.redacted(mask.seq)?.is_some() {
                // Images of a redacted message are gone from the log, so its parts cannot be matched by counting.
                continue;
            }
            let place = parts.iter().position(|part| part.index == mask.part);
            if let Some(part) = place.and_then(|place| own.get(place)) {
                edits.push((part.range.clone(), mask.stub));
            }
        }
        Ok(splice_unordered(&body, edits))
    }
}

/// Says whether a view shows all messages as they came, but for parts of the layered state behind some of them.
pub(crate) fn is_plain(view: &View, shown: &Shown) -> bool {
    let is_context = |at: Seq, id: EventId| {
        let mut recalls = shown.recalls(Span::one(at));
        recalls.any(|(other, recall)| other == id && recall.is_context())
    };
    let verbatim = |shows: &Shows| match shows {
        Shows::Verbatim(_) => true,
        // A client may send rounds in disorder, as long as nothing is folded.
        Shows::Round { masks, recalls, .. } => {
            masks.is_empty() && recalls.iter().all(|(at, id)| is_context(*at, *id))
        }
        Shows::StandIn(_) | Shows::Note(_) => false,
    };
    view.pieces().iter().all(|piece| verbatim(&piece.shows))
}

/// Returns the client's request with the parts of the layered state that its messages carry. Every other byte stays as
/// it came.
///
/// Of a conversation that the provider stores, the client sends only the end: the provider has the parts before that.
pub(crate) fn splice_contexts(
    call: &ModelCall,
    parsed: &ParsedRequest,
    log: &Log,
    digests: &[(Seq, Digest)],
) -> Result<OutgoingBody, ConversationError> {
    let mut outgoing = OutgoingBody::untouched(&call.body);
    let shown = log.state().shown();
    if !shows_context(shown) {
        return Ok(outgoing);
    }
    let first = match parsed.params.previous {
        Some(_) => digests.len().saturating_sub(parsed.messages.len()),
        None => 0,
    };
    for ((seq, digest), message) in digests[first..].iter().zip(&parsed.messages) {
        // A client may repeat an old request, with messages that a rewind has hidden since.
        if *digest != message.digest {
            break;
        }
        let carried = shown.recalls(Span::one(*seq));
        let mut carried = carried.filter(|(_, recall)| recall.is_context()).peekable();
        if carried.peek().is_none() {
            continue;
        }
        let body = parsed.message(call, message.index)?.into_owned();
        let longer = log.with_recalls(body, carried.map(|(id, _)| id))?;
        let (range, longer) = match parsed.envelope.messages.get(message.index) {
            Some(range) => (range.clone(), longer),
            // The request has a plain text in place of a list of messages.
            None => {
                let text = Json::parse(&longer).ok().and_then(|it| it.get("content"));
                let Some(text) = text.map(|text| text.bytes().to_vec()) else {
                    break;
                };
                (parsed.envelope.list.clone(), text)
            }
        };
        outgoing = outgoing.replace(range, longer.into());
    }
    Ok(outgoing)
}

/// Assembles a whole request for a conversation of which the client sent only the end: the view of the log, without the
/// ids that refer to the messages before.
pub(crate) fn splice_full(
    call: &ModelCall,
    parsed: &ParsedRequest,
    log: &Log,
    view: &View,
    additions: RequestAdditions<'_>,
    offer: Option<&LookupOffer>,
) -> Result<OutgoingBody, ConversationError> {
    let added = additions.context.and_then(InjectedContext::member);
    let mut head = b"{".to_vec();
    let mut put = |name: &str, value: &[u8]| {
        head.extend_from_slice(infold_wire::quote(name).as_bytes());
        head.push(b':');
        head.extend_from_slice(value);
        head.push(b',');
    };
    for (name, range) in &parsed.envelope.members {
        match name.as_str() {
            name if is_stored_conversation(name) => {}
            "tools" if offer.is_some() => {}
            name if added.is_some_and(|(added, _)| added == name) => {}
            name => match additions.tools.and_then(|tools| tools.member(name)) {
                Some(changed) => changed.into_iter().for_each(|value| put(name, &value)),
                None => put(name, &call.body.part(range)?),
            },
        }
    }
    if let Some((name, value)) = added {
        put(name, value);
    }
    if let Some(offer) = offer {
        put("tools", offer.tools.as_bytes());
    }
    head.extend_from_slice(br#""input":["#);
    let mut first = true;
    let leading = &parsed.envelope.messages[..parsed.envelope.leading];
    for range in leading {
        push_separating_comma(&mut first, &mut head);
        head.extend_from_slice(&call.body.part(range)?);
    }
    log.render(view, &mut |_, bytes| {
        push_separating_comma(&mut first, &mut head);
        head.extend_from_slice(bytes);
        Ok(())
    })?;
    head.extend_from_slice(b"]}");
    Ok(OutgoingBody::new([OutgoingPart::Inserted(Bytes::from(
        head,
    ))]))
}

/// Appends a comma, unless this is the first element.
fn push_separating_comma(first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::take(first) {
        out.push(b',');
    }
}
