//! Look-ups: tools that the proxy offers the model beside the client's own, and answers itself.
//!
//! The client never sees them. [`LookupOffer`] adds them to a request, [`ReplyFilter`] takes calls of them out of the reply on its
//! way, [`find_calls`] and [`write_results`] read and answer them, and [`splice_lookups`] puts them back where the client's next
//! request has the reply without them. Calls that are refused ([`CallJudge`]) take the same way.

mod offer;
mod held;
mod calls;
mod usage;
mod filter;
mod whole;
mod used_up;
mod splice;
pub use calls::{
    HeldCall, JudgedReply, PendingResult, ReplyCalls, find_calls, judge_reply, strip_calls,
    write_results,
};
pub use filter::{ReplyFilter, RoundOutcome};
pub(crate) use held::{APPROVAL_REQUEST, is_client_item};
pub use held::{CallJudge, HeldCalls, HeldKind};
pub use offer::{LookupNames, LookupOffer, LookupTool, withdraw_offer, write_follow_up};
pub use splice::splice_lookups;
pub use used_up::{NO_LOOKUP_LEFT, NoAnswer, reply_in_place};
