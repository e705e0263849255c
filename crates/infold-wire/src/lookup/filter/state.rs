//! The state that the rounds of a reply share.

use std::collections::HashMap;

use crate::lookup::held::HeldCalls;
use crate::lookup::usage::{overlay_usage, sum_usage};
use crate::reply::chat_calls::CallPlaces;
use crate::reply::growing_json::{raw, text_of};
use crate::{Json, JsonKind};

/// The state that the rounds of a reply share, and the progress of the current one.
#[derive(Debug)]
pub(in crate::lookup) struct FilterState {
    pub held: HeldCalls,
    /// The number of calls in this round so far, on wires on which they come in pieces.
    pub calls: usize,
    /// The number of rounds before this one.
    pub round: usize,
    /// The number of calls of our tools in this round so far.
    pub lookups: usize,
    /// Whether this round has a call for the client.
    pub has_client_calls: bool,
    /// The id of the first round, and when it was made, in JSON.
    pub id: Option<String>,
    pub created: Option<String>,
    /// The usage of the rounds before, and of this one.
    pub usage: Option<String>,
    pub round_usage: Option<String>,
    /// The index for the client of each indexed item; `None` if it is a call of ours.
    pub indexes: HashMap<u64, Option<u64>>,
    /// The calls of a chat, with the index of each for the client; `None` if it is a call of ours.
    pub places: CallPlaces,
    pub call_indexes: Vec<Option<u64>>,
    pub next_index: u64,
    pub next_sequence: Option<u64>,
    /// The output items of the rounds before, and of this one.
    pub items_before: Vec<String>,
    pub items: Vec<String>,
}

impl FilterState {
    pub fn new(held: HeldCalls) -> FilterState {
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

    /// Stores the usage report of this round; later reports replace earlier ones.
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

    /// Returns whether the end of this round is held back: another may follow, or look-ups have to be recorded first.
    pub fn holds_end(&self) -> bool {
        self.lookups > 0 || self.round > 0
    }

    /// Returns whether no round came before this one.
    pub fn is_first(&self) -> bool {
        self.round == 0
    }
}
