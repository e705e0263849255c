//! Tools for looking up folded messages, which the model is offered and the proxy answers.

mod answer;
mod form;
mod rounds;
mod body;
mod whole;
mod send;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use infold_log::{Budget, Item, Size};
use infold_store::{Log, RefusalLine};
use infold_wire::TokenUsage;
use infold_wire::lookup::{CallJudge, HeldCalls, LookupOffer, PendingResult};
use uuid::Uuid;

use crate::conversations::Core;
use crate::parsed_request::ParsedRequest;
use crate::tool_policy::RequestTools;
use crate::{ModelCall, OutgoingBody, locked};
pub(crate) use send::retry_without_lookups;

/// The calls of one reply that do not reach the client: of tools that the proxy offers, and of tools that a policy
/// refuses.
#[derive(Clone)]
pub(crate) struct Lookups {
    pub task: Uuid,
    /// The provider and the model of the request.
    pub model: (String, String),
    /// The tools that are offered.
    pub offer: Option<LookupOffer>,
    /// Refuses calls, if a policy is in force.
    pub judge: Option<CallJudge>,
    pub record: Arc<Mutex<LookupRecord>>,
}

/// The lookups for one reply.
#[derive(Debug, Default)]
pub(crate) struct LookupRecord {
    /// The messages between the request and the client's tool results: replies, results, and the last reply. Empty if
    /// there was no lookup.
    pub messages: Vec<Vec<u8>>,
    /// Lookup results that belong with the results of the client's own calls.
    pub results: Vec<PendingResult>,
    /// The usage of each request, the last one included.
    pub usages: Vec<TokenUsage>,
    /// Calls that were refused.
    pub refusals: Vec<RefusalLine>,
    /// The characters of results that still have room.
    pub room: usize,
    /// The provider refused the lookups: the reply is recorded as the client has it.
    pub is_refused: bool,
}

/// About how many characters a token has.
const CHARS_A_TOKEN: u64 = 3;

impl Lookups {
    /// Holds calls of a reply back; none if there is nothing to hold back. `sent` are the tokens of the request.
    pub fn new(
        task: Uuid,
        parsed: &ParsedRequest,
        offer: Option<LookupOffer>,
        judge: Option<CallJudge>,
        (budget, sent): (Option<&Budget>, u64),
    ) -> Option<Lookups> {
        if offer.is_none() && judge.is_none() {
            return None;
        }
        let room = budget.map_or(0, |budget| {
            (budget.window() * 9 / 10).saturating_sub(sent + budget.reserve())
        });
        let record = LookupRecord {
            room: usize::try_from(room.saturating_mul(CHARS_A_TOKEN)).unwrap_or(usize::MAX),
            ..LookupRecord::default()
        };
        Some(Lookups {
            task,
            model: (parsed.provider.clone(), parsed.model.clone()),
            offer,
            judge,
            record: Arc::new(Mutex::new(record)),
        })
    }

    /// Takes the record, if there were lookups.
    pub fn take(&self) -> Option<LookupRecord> {
        let record = std::mem::take(&mut *locked(&self.record));
        (record.is_refused || !record.messages.is_empty()).then_some(record)
    }

    /// Takes the calls that were refused.
    pub fn take_refusals(&self) -> Vec<RefusalLine> {
        std::mem::take(&mut locked(&self.record).refusals)
    }

    /// Returns which calls of the reply are held back.
    pub fn held_calls(&self) -> HeldCalls {
        let names = self.offer.as_ref().map(|offer| offer.names.clone());
        HeldCalls::new(names, self.judge.clone())
    }
}

impl LookupRecord {
    /// Adds messages that were sent, or came.
    fn add_messages(&mut self, messages: Vec<Vec<u8>>) {
        if !self.is_refused {
            self.messages.extend(messages);
        }
    }

    /// The provider refused the messages.
    fn refuse(&mut self) {
        self.is_refused = true;
        self.messages.clear();
    }
}

impl Core {
    fn has_recall_tool(&self) -> bool {
        let set = self.config.serve.recall_tool.as_ref();
        set.is_some_and(|set| set.value)
    }

    /// Returns the name of the tool by which the model can read folded messages in this request: the client's, or ours,
    /// which is offered with the fold.
    pub fn recall_tool(&self, call: &ModelCall, parsed: &ParsedRequest) -> Option<String> {
        let own = infold::recall::offered_tool(&parsed.params.tool_names);
        own.map(str::to_owned).or_else(|| {
            let offer = self
                .has_recall_tool()
                .then(|| self.new_offer(call, parsed, None));
            Some(offer??.names.recall().to_owned())
        })
    }

    /// Says whether the tools are offered in a conversation: once something is folded, and as long as it or a look-up is shown.
    pub fn offers_lookups(&self, log: &Log) -> bool {
        if !self.has_recall_tool() {
            return false;
        }
        let shown = log.state().shown();
        let is_fold = |item: &Item| matches!(item, Item::Fold(_));
        let mut recalls = shown.all_recalls();
        shown.items().iter().any(is_fold)
            || shown.all_masks().next().is_some()
            || recalls.any(|(_, recall)| recall.source.is_none())
    }

    /// Returns the size of a frame, with the lookup tools if they are offered.
    pub fn frame_with_lookups(&self, frame: Size, log: &Log) -> Size {
        let bytes = LookupOffer::BYTES * u64::from(self.offers_lookups(log));
        Size {
            tokens: frame.tokens + bytes / 4,
            bytes: frame.bytes + bytes,
        }
    }

    /// Offers the tools in a request, if it may have them.
    pub fn offer_lookups(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
        tools: Option<&RequestTools>,
        log: &Log,
    ) -> Option<LookupOffer> {
        let offer = self
            .offers_lookups(log)
            .then(|| self.new_offer(call, parsed, tools));
        offer.flatten()
    }

    /// Offers the tools in a request, whether something is folded or not.
    fn new_offer(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
        tools: Option<&RequestTools>,
    ) -> Option<LookupOffer> {
        let model = (parsed.provider.clone(), parsed.model.clone());
        if locked(&self.lookups_refused).contains(&model) {
            return None;
        }
        LookupOffer::new(call.wire, &mut |name| {
            if let Some(changed) = tools.and_then(|tools| tools.member(name)) {
                return changed.map(|value| value.to_vec());
            }
            let range = parsed.envelope.member(name)?;
            Some(call.body.part(&range).ok()?.into_owned())
        })
    }

    /// Remembers that a model takes no tools, or not these.
    pub fn refuse_lookups(&self, provider: &str, model: &str) {
        let model = (provider.to_owned(), model.to_owned());
        if locked(&self.lookups_refused).insert(model) {
            tracing::warn!(
                provider,
                "the recall tools were refused, and are not offered"
            );
        }
    }
}

/// Returns a request with the tools in it.
pub(crate) fn with_tools(
    parsed: &ParsedRequest,
    outgoing: OutgoingBody,
    offer: &LookupOffer,
) -> OutgoingBody {
    match parsed.envelope.member("tools") {
        Some(range) => outgoing.replace(range, Bytes::from(offer.tools.clone())),
        None => outgoing.add_member(&parsed.envelope, "tools", offer.tools.as_bytes()),
    }
}
