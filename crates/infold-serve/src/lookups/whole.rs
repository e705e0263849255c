//! A reply as one body, without look-ups: they are answered before the client gets it.

use bytes::Bytes;
use infold_provider::ForwardResponse;
use infold_wire::lookup::{HeldCalls, ReplyFilter, RoundOutcome};
use infold_wire::{Delivery, Json, JsonKind, ReplyError};

use super::form::{ReplyForm, read_whole};
use super::rounds::{FollowUpError, LookupRounds};

/// Returns the reply for the client, or the error that came in its place.
pub(crate) async fn pass_whole(
    mut answer: ForwardResponse,
    held: HeldCalls,
    mut rounds: LookupRounds,
) -> Result<ForwardResponse, FollowUpError> {
    let mut filter = ReplyFilter::new(rounds.wire(), Delivery::Whole, held);
    let is_judged = rounds.is_judged();
    let mut events = Vec::new();
    loop {
        if !answer.status.is_success() {
            return Ok(answer);
        }
        let body = without_mark(read_whole(answer.body).await?);
        let chunks = chunks(&body);
        match &chunks {
            Some(chunks) => chunks
                .iter()
                .for_each(|chunk| events.extend(filter.push(chunk))),
            None => filter.push_body(&body),
        }
        let outcome = filter.end_round();
        if !passes(&outcome, &filter, &body, is_judged) {
            return Err(FollowUpError::broken(outcome.reply.err()));
        }
        if rounds.goes_on(&outcome) {
            let form = match chunks {
                Some(_) => {
                    events.extend(filter.next_round());
                    ReplyForm::List
                }
                None => {
                    filter.next_body(&body);
                    ReplyForm::Whole
                }
            };
            answer = rounds.follow_up(outcome, form, &answer.headers).await?;
            continue;
        }
        rounds.conclude(outcome).await;
        let body = if chunks.is_some() {
            events.extend(filter.finish());
            list(&events)
        } else {
            filter.last_body(&body)
        };
        return Ok(ForwardResponse {
            status: answer.status,
            headers: answer.headers,
            body: Bytes::from(body).into(),
        });
    }
}

/// Returns a body without the mark of UTF-8 that some servers put before JSON.
fn without_mark(body: Bytes) -> Bytes {
    if body.starts_with(b"\xef\xbb\xbf") {
        body.slice(3..)
    } else {
        body
    }
}

/// Says whether a body is forwarded: it is a reply, an error in the first round, or contains no part of a look-up.
fn passes(outcome: &RoundOutcome, filter: &ReplyFilter, body: &[u8], is_judged: bool) -> bool {
    match &outcome.reply {
        Ok(_) => Json::parse(body).is_ok(),
        Err(_) if !filter.is_first_round() => false,
        Err(ReplyError::Failed { .. }) => true,
        Err(_) if is_judged => false,
        Err(ReplyError::Foreign { .. } | ReplyError::Empty) => true,
        Err(_) => !outcome.is_withheld && !filter.may_hold_lookup(body),
    }
}

/// Returns the chunks of a reply that is a list of them, as events: Gemini streams lists without `alt=sse`.
fn chunks(body: &[u8]) -> Option<Vec<Vec<u8>>> {
    let json = Json::parse(body).ok()?;
    let event = |chunk: Json<'_>| {
        // Line breaks in JSON occur only between tokens.
        let line = chunk.bytes().iter().filter(|byte| !b"\r\n".contains(byte));
        let mut event = b"data: ".to_vec();
        event.extend(line);
        event.extend_from_slice(b"\n\n");
        event
    };
    (json.kind() == JsonKind::Array).then(|| json.elements().map(event).collect())
}

/// Returns events as a list.
fn list(events: &[u8]) -> Vec<u8> {
    let events = String::from_utf8_lossy(events);
    let chunks = events
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    format!("[{}]", chunks.collect::<Vec<_>>().join(",\n")).into_bytes()
}
