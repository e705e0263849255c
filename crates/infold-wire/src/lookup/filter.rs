//! Takes calls of our tools out of a stream, and makes one stream of several rounds.

mod chat;
mod responses;
mod anthropic;
mod gemini;
mod ollama;

use std::collections::HashMap;

use super::calls::{ReplyCalls, find_calls, with_own_ids};
use super::held::{HeldCalls, has_call};
use super::usage::{overlay_usage, sum_usage};
use crate::reply::chat_calls::CallPlaces;
use crate::reply::growing_json::{raw, text_of, with_members};
use crate::reply::stream::{EventSplitter, StreamEvent};
use crate::{Delivery, Json, JsonKind, Reply, ReplyError, ReplyReader, StopReason, Wire};

/// Passes a reply on without calls of our tools, round after round, as if it were one.
///
/// What does not belong to such a call goes on at once. The end of a round in which there was one, or which follows one, is held
/// back: it ends the reply only if nothing follows.
#[derive(Debug)]
pub struct ReplyFilter {
    pub(super) wire: Wire,
    delivery: Delivery,
    events: EventSplitter,
    reader: ReplyReader,
    failed: Option<ReplyError>,
    /// The bytes since the last event ended.
    pending: Vec<u8>,
    held: Vec<HeldEvent>,
    /// The events from the first call of a round on, where calls are judged once they are whole; none before it.
    unjudged: Option<Vec<UnjudgedEvent>>,
    /// What is left of them for the client.
    judged: Vec<u8>,
    /// The mark behind the last event of a chat came.
    is_done: bool,
    pub(super) state: FilterState,
}

/// What came of a round.
#[derive(Debug)]
pub struct RoundOutcome {
    /// The whole reply, calls of our tools included; or why there is none.
    pub reply: Result<Reply, ReplyError>,
    /// Its calls.
    pub calls: ReplyCalls,
    /// Which of them are held back.
    pub held: HeldCalls,
}

/// What the rounds of a reply share, and where this one stands.
#[derive(Debug)]
pub(super) struct FilterState {
    pub held: HeldCalls,
    /// How many calls this round has so far, on wires on which they come in pieces.
    pub calls: usize,
    /// How many rounds there were before this one.
    pub round: usize,
    /// How many calls of our tools this round has so far.
    pub lookups: usize,
    /// This round has a call for the client.
    pub has_client_calls: bool,
    /// The id of the first round, and when it was made, in JSON.
    pub id: Option<String>,
    pub created: Option<String>,
    /// The usage of the rounds before, and of this one.
    pub usage: Option<String>,
    pub round_usage: Option<String>,
    /// Where the client finds what has an index; none if it is a call of ours.
    pub indexes: HashMap<u64, Option<u64>>,
    /// The calls of a chat, and where the client finds each; none if it is a call of ours.
    pub places: CallPlaces,
    pub call_indexes: Vec<Option<u64>>,
    pub next_index: u64,
    pub next_sequence: Option<u64>,
    /// The output items of the rounds before, and of this one.
    pub items_before: Vec<String>,
    pub items: Vec<String>,
}

/// What becomes of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes on byte for byte.
    Pass,
    /// The client does not see it.
    Drop,
    /// It goes on with other data.
    Change(String),
    /// It is part of the end of a round with a call of ours: this is what is left of its data.
    Hold(String),
}

#[derive(Debug)]
struct HeldEvent {
    name: Vec<u8>,
    data: String,
}

/// An event that may belong to a call, and its own bytes.
#[derive(Debug)]
struct UnjudgedEvent {
    name: Vec<u8>,
    data: Vec<u8>,
    own: Option<Vec<u8>>,
}

impl ReplyFilter {
    /// Starts with the first round of a reply.
    pub fn new(wire: Wire, delivery: Delivery, held: HeldCalls) -> ReplyFilter {
        ReplyFilter {
            wire,
            delivery,
            events: EventSplitter::default(),
            reader: ReplyReader::new(wire, delivery),
            failed: None,
            pending: Vec::new(),
            held: Vec::new(),
            unjudged: None,
            judged: Vec::new(),
            is_done: false,
            state: FilterState::new(held),
        }
    }

    /// Returns its wire.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Returns whether no round came before this one.
    pub fn is_first_round(&self) -> bool {
        self.state.is_first()
    }

    /// Returns the number of the next event, on the wire that has them numbered.
    pub fn next_sequence(&self) -> u64 {
        self.state.next_sequence.unwrap_or_default()
    }

    /// Takes a whole reply.
    pub fn push_body(&mut self, body: &[u8]) {
        self.failed = self.reader.push(body, &mut |_| {}).err();
    }

    /// Takes the next bytes of a stream, and returns those for the client.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.failed.is_none() {
            self.failed = self.reader.push(bytes, &mut |_| {}).err();
        }
        let mut out = Vec::with_capacity(bytes.len());
        // An event ends with a line, so that its own bytes are known.
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(line);
            let mut events: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            let split = self.events.push(line, &mut |event: StreamEvent<'_>| {
                events.push((event.name.to_vec(), event.data.to_vec()));
                Ok(())
            });
            if split.is_err() {
                // It is no stream of this wire: whoever reads it will say so. What cannot be judged does not go on.
                if self.state.held.has_judge() {
                    self.pending.clear()
                } else {
                    out.append(&mut self.pending)
                }
                continue;
            }
            // Where lines end with CR alone, several events may end in one; they are written anew.
            let is_single = events.len() == 1;
            for (name, data) in events {
                let own = std::mem::take(&mut self.pending);
                self.event(name, &data, is_single.then_some(own), &mut out);
            }
        }
        out
    }

    /// Returns whether a round whose end is held back is complete, though bytes may follow.
    pub fn is_round_complete(&self) -> bool {
        let holds_end = self.state.holds_end() || self.unjudged.is_some();
        holds_end && self.failed.is_none() && self.reader.is_complete()
    }

    /// Ends a round, and returns what was said in it.
    pub fn end_round(&mut self) -> RoundOutcome {
        if self.state.held.has_judge() && !self.pending.is_empty() {
            // Some clients read an event that breaks off, so it is judged like the others.
            let rest = self.push(b"\n\n");
            self.judged.extend(rest);
        }
        let next = ReplyReader::new(self.wire, self.delivery);
        let reader = std::mem::replace(&mut self.reader, next);
        let reply = match self.failed.take() {
            Some(failed) => Err(failed),
            None => reader.finish(),
        };
        let (reply, calls) = self.judged_reply(reply);
        let unjudged = self.unjudged.take().filter(|_| reply.is_ok());
        self.remember_held(&calls, unjudged.as_deref().unwrap_or_default());
        let mut judged = std::mem::take(&mut self.judged);
        for event in unjudged.into_iter().flatten() {
            self.pass_event(event.name, &event.data, event.own, &mut judged);
        }
        self.judged = judged;
        RoundOutcome {
            calls,
            reply,
            held: self.state.held.clone(),
        }
    }

    /// Finds the calls of a reply, and makes sure that those that are held back can be answered.
    fn judged_reply(
        &self,
        reply: Result<Reply, ReplyError>,
    ) -> (Result<Reply, ReplyError>, ReplyCalls) {
        let held = &self.state.held;
        let Ok(mut reply) = reply else {
            return (reply, ReplyCalls::default());
        };
        let mut calls = find_calls(held, &reply.messages);
        if held.has_judge() && !calls.held.is_empty() {
            reply.messages = with_own_ids(held, &reply.messages);
            calls = find_calls(held, &reply.messages);
        }
        (Ok(reply), calls)
    }

    /// Remembers which calls are held back, whose pieces are among these events.
    fn remember_held(&mut self, calls: &ReplyCalls, events: &[UnjudgedEvent]) {
        let read = || {
            events
                .iter()
                .filter_map(|event| Json::parse(&event.data).ok())
        };
        let mut order = Vec::new();
        if self.wire == Wire::Chat {
            let mut places = CallPlaces::default();
            read().for_each(|json| chat::place_calls(&mut places, json));
            order = places.order();
        }
        if self.wire == Wire::Responses && self.state.held.has_judge() {
            for json in read() {
                responses::remember_items(&mut self.state.held, json);
            }
        }
        self.state.held.remember(&calls.held, &order);
    }

    /// Returns whether calls wait for the end of the round, to be judged.
    pub fn has_unjudged_calls(&self) -> bool {
        self.unjudged.is_some()
    }

    /// Goes on with the next round; returns what is left of the end of this one for the client.
    pub fn next_round(&mut self) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.judged);
        out.extend(self.release(false));
        self.events = EventSplitter::default();
        self.pending.clear();
        self.is_done = false;
        self.state.next_round();
        out
    }

    /// Ends the reply: returns its last bytes.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.judged);
        out.extend(self.release(true));
        out.append(&mut self.pending);
        out
    }

    /// Returns what becomes of the end of a round.
    fn release(&mut self, is_last: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for held in std::mem::take(&mut self.held) {
            let Ok(json) = Json::parse(held.data.as_bytes()) else {
                // The marker behind the last event.
                if is_last {
                    self.frame(&held.name, &held.data, &mut out);
                }
                continue;
            };
            let state = &mut self.state;
            let left = match self.wire {
                Wire::Chat => chat::end(state, json, is_last),
                Wire::Responses => responses::end(state, json, is_last),
                Wire::Anthropic => anthropic::end(state, json, is_last),
                Wire::Gemini => gemini::end(state, json, is_last),
                Wire::Ollama => ollama::end(state, json, is_last),
            };
            if let Some(data) = left {
                self.frame(&held.name, &data, &mut out);
            }
        }
        out
    }

    fn event(&mut self, name: Vec<u8>, data: &[u8], own: Option<Vec<u8>>, out: &mut Vec<u8>) {
        let wire = self.wire;
        let state = &self.state;
        if self.is_done && state.held.has_judge() {
            // Nothing that stands behind the end is judged.
            return;
        }
        self.is_done = wire == Wire::Chat && data.trim_ascii() == b"[DONE]";
        let begins = || {
            let is_held = |json| {
                if state.held.has_judge() {
                    has_call(wire, json)
                } else {
                    wire == Wire::Chat && chat::begins_unnamed_call(state, json)
                }
            };
            Json::parse(data).is_ok_and(is_held)
        };
        if self.unjudged.is_some() || begins() {
            let data = data.to_vec();
            let unjudged = self.unjudged.get_or_insert_default();
            unjudged.push(UnjudgedEvent { name, data, own });
            return;
        }
        self.pass_event(name, data, own, out);
    }

    fn pass_event(&mut self, name: Vec<u8>, data: &[u8], own: Option<Vec<u8>>, out: &mut Vec<u8>) {
        let verdict = match Json::parse(data) {
            Ok(json) if json.kind() == JsonKind::Object => self.verdict(&name, json),
            _ if self.state.holds_end() && data.trim_ascii() == b"[DONE]" => {
                Verdict::Hold("[DONE]".to_owned())
            }
            _ => Verdict::Pass,
        };
        if verdict != Verdict::Pass {
            // The end of the line before, if that came by itself.
            let own = own.iter().flatten();
            out.extend(own.take_while(|byte| b"\r\n".contains(byte)));
        }
        match (verdict, own) {
            (Verdict::Pass, Some(own)) => out.extend_from_slice(&own),
            (Verdict::Pass, None) => self.frame(&name, &String::from_utf8_lossy(data), out),
            (Verdict::Change(data), _) => self.frame(&name, &data, out),
            (Verdict::Hold(data), _) => self.held.push(HeldEvent { name, data }),
            (Verdict::Drop, _) => {}
        }
    }

    fn verdict(&mut self, name: &[u8], json: Json<'_>) -> Verdict {
        let state = &mut self.state;
        match self.wire {
            Wire::Chat => chat::event(state, json),
            Wire::Responses => responses::event(state, name, json),
            Wire::Anthropic => anthropic::event(state, name, json),
            Wire::Gemini => gemini::event(state, json),
            Wire::Ollama => ollama::event(state, json),
        }
    }

    /// Writes an event as a provider does.
    fn frame(&self, name: &[u8], data: &str, out: &mut Vec<u8>) {
        if self.wire == Wire::Ollama {
            out.extend_from_slice(data.as_bytes());
            out.push(b'\n');
            return;
        }
        if !name.is_empty() {
            out.extend_from_slice(b"event: ");
            out.extend_from_slice(name);
            out.push(b'\n');
        }
        out.extend_from_slice(b"data: ");
        // Data with line breaks has a field for each line.
        let mut lines = data.lines();
        out.extend_from_slice(lines.next().unwrap_or_default().as_bytes());
        for line in lines {
            out.extend_from_slice(b"\ndata: ");
            out.extend_from_slice(line.as_bytes());
        }
        out.extend_from_slice(b"\n\n");
    }
}

impl RoundOutcome {
    /// Returns whether the model waits for results of ours alone, or was cut off while it called them: without another round the
    /// client would get nothing.
    pub fn waits_for_lookups(&self) -> bool {
        let is_waiting =
            |reply: &Reply| matches!(reply.stop, StopReason::Calls | StopReason::Length);
        !self.calls.held.is_empty()
            && self.calls.others == 0
            && self.reply.as_ref().is_ok_and(is_waiting)
    }
}

impl FilterState {
    fn new(held: HeldCalls) -> FilterState {
        FilterState {
            held,
            calls: 0,
            round: 0,
            lookups: 0,
            has_client_calls: false,
            id: None,
            created: None,
            usage: None,
            round_usage: None,
            indexes: HashMap::new(),
            places: CallPlaces::default(),
            call_indexes: Vec::new(),
            next_index: 0,
            next_sequence: None,
            items_before: Vec::new(),
            items: Vec::new(),
        }
    }

    pub fn next_round(&mut self) {
        self.usage = self.summed_usage();
        self.round_usage = None;
        self.round += 1;
        self.lookups = 0;
        self.calls = 0;
        self.held.next_round();
        self.has_client_calls = false;
        self.indexes.clear();
        self.places = CallPlaces::default();
        self.call_indexes.clear();
    }

    /// Remembers the id of the first round, and when it was made.
    pub fn remember(&mut self, id: Option<Json<'_>>, created: Option<Json<'_>>) {
        if self.round == 0 && self.id.is_none() {
            self.id = text_of(id).and(id).map(raw);
            self.created = created.map(raw);
        }
    }

    /// Remembers what this round reports; later reports take the place of earlier ones.
    pub fn report(&mut self, usage: Option<Json<'_>>) {
        if let Some(usage) = usage.filter(|usage| usage.kind() == JsonKind::Object) {
            let before = self.round_usage.take().unwrap_or_default();
            self.round_usage = Some(overlay_usage(&before, usage));
        }
    }

    /// Returns the usage of all rounds so far.
    pub fn summed_usage(&self) -> Option<String> {
        match (&self.usage, &self.round_usage) {
            (Some(before), Some(now)) => Some(sum_usage(before, now)),
            (before, now) => now.clone().or_else(|| before.clone()),
        }
    }

    /// Returns whether the end of this round is held back: another may follow, or what was looked up has to be recorded first.
    pub fn holds_end(&self) -> bool {
        self.lookups > 0 || self.round > 0
    }

    /// Returns whether no round came before this one.
    pub fn is_first(&self) -> bool {
        self.round == 0
    }
}

pub(super) use ollama::{counts as ollama_counts, summed_counts};
pub(super) use responses::{of_response as response_changes, output as response_output};

/// Returns an object with changes; none if there are none.
pub(super) fn changed(json: Json<'_>, changes: &[(&str, Option<String>)]) -> Option<String> {
    (!changes.is_empty()).then(|| with_members(json, changes))
}
