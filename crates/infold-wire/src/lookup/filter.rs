//! Removes calls of our tools from a stream, and joins the streams of several rounds into one.

mod state;
mod chat;
mod responses;
mod anthropic;
mod gemini;
mod ollama;

use super::calls::{ReplyCalls, find_calls, with_own_ids};
use super::held::{HeldCalls, has_call};
use crate::reply::chat_calls::CallPlaces;
use crate::reply::growing_json::with_members;
use crate::reply::stream::{EventSplitter, StreamEvent};
use crate::{Delivery, Json, JsonKind, Reply, ReplyError, ReplyReader, StopReason, Wire};

/// Forwards a reply without calls of our tools, all rounds as if they were one.
///
/// Events outside of such calls are passed on at once. The end of a round that has one, or that follows one, is held
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
    /// The events from the first call of a round on, if calls are judged once they are complete; `None` before it.
    unjudged: Option<Vec<UnjudgedEvent>>,
    /// The bytes of those events, and of an incomplete last one, that the client gets.
    judged: Vec<u8>,
    /// Whether an unreadable event came in this round. The client does not get it: it may be a part of a look-up.
    has_unreadable: bool,
    /// Whether the mark after the last event of a chat came.
    is_done: bool,
    pub(super) state: FilterState,
}

/// The result of a round.
#[derive(Debug)]
pub struct RoundOutcome {
    /// The whole reply, calls of our tools included; or why there is none.
    pub reply: Result<Reply, ReplyError>,
    /// The calls of the reply.
    pub calls: ReplyCalls,
    /// The calls that are held back.
    pub held: HeldCalls,
    /// Whether the client did not get all that came.
    pub is_withheld: bool,
}

/// The decision about an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallVerdict {
    /// The event is forwarded byte for byte.
    Pass,
    /// The client does not see it.
    Drop,
    /// The event is forwarded with other data.
    Change(String),
    /// The event is part of the end of a round with a call of ours; the rest of its data.
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
    /// Returns the filter for a reply, before its first round.
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
            has_unreadable: false,
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
        // Bytes behind the end of a reply do not break it; Gemini has no mark for its end.
        let is_over = self.wire != Wire::Gemini && self.reader.is_complete();
        if self.failed.is_none() && !is_over {
            self.failed = self.reader.push(bytes, &mut |_| {}).err();
        }
        let mut out = Vec::with_capacity(bytes.len());
        // Events end at line breaks, so the bytes of each event are known.
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(line);
            let mut events: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            let split = self.events.push(line, &mut |event: StreamEvent<'_>| {
                events.push((event.name.to_vec(), event.data.to_vec()));
                Ok(())
            });
            if split.is_err() {
                // It is no stream of this wire: its reader will report the error.
                self.pending.clear();
                self.has_unreadable = true;
                continue;
            }
            // If lines end with CR alone, several events may end in one line; they are written anew.
            let is_single = events.len() == 1;
            for (name, data) in events {
                let own = self.take_pending();
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

    /// Ends a round, and returns its result.
    pub fn end_round(&mut self) -> RoundOutcome {
        self.end_events();
        let next = ReplyReader::new(self.wire, self.delivery);
        let reader = std::mem::replace(&mut self.reader, next);
        let reply = match self.failed.take() {
            Some(failed) => Err(failed),
            None => reader.finish(),
        };
        let (reply, calls) = self.judged_reply(reply);
        let is_withheld = self.has_unreadable || self.state.lookups > 0 || self.unjudged.is_some();
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
            is_withheld,
        }
    }

    /// Returns the bytes of an event that ended, and keeps those of an incomplete line: the end of a line with CR alone
    /// is found by the next byte.
    fn take_pending(&mut self) -> Vec<u8> {
        let mut own = std::mem::take(&mut self.pending);
        if !self.events.is_json() {
            self.pending = own.split_off(lines_end(&own));
        }
        own
    }

    /// Handles an event without its end at the end of a round: some clients read it nevertheless.
    fn end_events(&mut self) {
        let is_open = self.events.is_open();
        let rest = self.events.rest();
        let rest = rest.map(|event| (event.name.to_vec(), event.data.to_vec()));
        let mut own = std::mem::take(&mut self.pending);
        let mut out = Vec::new();
        match rest {
            Some((name, data)) => self.event(name, &data, Some(own), &mut out),
            None if is_open || self.events.unknown_line().is_some() => self.has_unreadable = true,
            // Comments and blank lines; the next bytes could continue an incomplete line.
            None => {
                own.truncate(lines_end(&own));
                out = own;
            }
        }
        self.judged.extend(out);
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

    /// Begins the next round; returns the rest of the end of this one for the client.
    pub fn next_round(&mut self) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.judged);
        out.extend(self.release(false));
        self.events = EventSplitter::default();
        self.has_unreadable = false;
        self.pending.clear();
        self.is_done = false;
        self.state.next_round();
        out
    }

    /// Ends the reply: returns its last bytes.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.judged);
        out.extend(self.release(true));
        out
    }

    /// Returns the bytes for the client of the end of a round.
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
            // Events behind the end are not judged.
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
        if self.has_unreadable {
            // It may continue an event that could not be read.
            return;
        }
        let verdict = match Json::parse(data) {
            Ok(json) if json.kind() == JsonKind::Object => self.verdict(&name, json),
            Ok(_) => CallVerdict::Pass,
            Err(_) => self.unparsed_verdict(&name, data.trim_ascii()),
        };
        if verdict != CallVerdict::Pass {
            // The end of the preceding line, if that arrived separately.
            let own = own.iter().flatten();
            out.extend(own.take_while(|byte| b"\r\n".contains(byte)));
        }
        match (verdict, own) {
            (CallVerdict::Pass, Some(own)) => out.extend_from_slice(&own),
            (CallVerdict::Pass, None) => self.frame(&name, &String::from_utf8_lossy(data), out),
            (CallVerdict::Change(data), _) => self.frame(&name, &data, out),
            (CallVerdict::Hold(data), _) => self.held.push(HeldEvent { name, data }),
            (CallVerdict::Drop, _) => {}
        }
    }

    /// Decides on an event whose data is no JSON.
    fn unparsed_verdict(&mut self, name: &[u8], data: &[u8]) -> CallVerdict {
        match data {
            b"[DONE]" if self.state.holds_end() => CallVerdict::Hold("[DONE]".to_owned()),
            b"[DONE]" | b"" => CallVerdict::Pass,
            // A provider may put an error in any words.
            _ if name == b"error" => CallVerdict::Pass,
            _ => {
                self.has_unreadable = true;
                CallVerdict::Drop
            }
        }
    }

    fn verdict(&mut self, name: &[u8], json: Json<'_>) -> CallVerdict {
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
    /// Returns whether the model waits for results of ours alone, or was cut off while it called our tools: without
    /// another round the client would get nothing.
    pub fn waits_for_lookups(&self) -> bool {
        let is_waiting =
            |reply: &Reply| matches!(reply.stop, StopReason::Calls | StopReason::Length);
        !self.calls.held.is_empty()
            && self.calls.others == 0
            && self.reply.as_ref().is_ok_and(is_waiting)
    }
}

pub(super) use ollama::{counts as ollama_counts, summed_counts};
pub(super) use responses::{of_response as response_changes, output as response_output};
pub(super) use state::FilterState;

/// Returns where the last whole line ends.
fn lines_end(bytes: &[u8]) -> usize {
    let last = bytes.iter().rposition(|byte| b"\r\n".contains(byte));
    last.map_or(0, |at| at + 1)
}

/// Returns an object with changes; none if there are none.
pub(super) fn changed(json: Json<'_>, changes: &[(&str, Option<String>)]) -> Option<String> {
    (!changes.is_empty()).then(|| with_members(json, changes))
}
