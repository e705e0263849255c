//! A streamed reply on its way to the client, without look-ups: they are answered, and the reply continues.

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame};
use infold_provider::{ForwardError, ForwardResponse, ResponseBody};
use infold_wire::ReplyError;
use infold_wire::lookup::{ReplyFilter, RoundOutcome};
use infold_wire::provider_error::ClientError;

use super::form::ReplyForm;
use super::rounds::{FollowUpError, LookupRounds};
use crate::client_body::read_up_to;
use crate::content_coding::decode_beginning;
use crate::proxy::MAX_ERROR_BODY_BYTES;
use crate::translate::refusal;
use crate::translated_reply::stream_error;

/// A streamed reply without look-ups.
pub(crate) struct LookupBody {
    filter: ReplyFilter,
    step: RoundStep,
    /// The bytes to send to the client first.
    ready: Vec<u8>,
}

/// The step that a reply waits for.
enum RoundStep {
    /// More of this round.
    Reading(ResponseBody, Option<Box<LookupRounds>>),
    /// Waits for the lookups and the next round, or until all is recorded.
    Asking(Mutex<Pin<Box<dyn Future<Output = AfterRound> + Send>>>),
    Ended,
}

/// The outcome of a round.
enum AfterRound {
    Next(ResponseBody, Box<LookupRounds>),
    Done,
    Failed(ClientError),
}

impl LookupBody {
    pub fn new(body: ResponseBody, filter: ReplyFilter, rounds: LookupRounds) -> LookupBody {
        LookupBody {
            filter,
            step: RoundStep::Reading(body, Some(Box::new(rounds))),
            ready: Vec::new(),
        }
    }

    /// Handles the end of a round.
    fn end_round(&mut self, rounds: Option<Box<LookupRounds>>) {
        self.step = RoundStep::Ended;
        let has_unjudged_calls = self.filter.has_unjudged_calls();
        let outcome = self.filter.end_round();
        let Some(mut rounds) = rounds else { return };
        if let Some(error) = self.broken(&outcome, has_unjudged_calls) {
            self.fail(&error);
            return;
        }
        let future: Pin<Box<dyn Future<Output = AfterRound> + Send>> = if rounds.goes_on(&outcome) {
            self.ready.extend(self.filter.next_round());
            Box::pin(async move {
                let form = ReplyForm::Stream;
                match rounds.follow_up(outcome, form, &HeaderMap::new()).await {
                    Ok(answer) if answer.status.is_success() => {
                        AfterRound::Next(answer.body, rounds)
                    }
                    Ok(answer) => AfterRound::Failed(refused(answer).await),
                    Err(error) => AfterRound::Failed(FollowUpError::client_error(&error)),
                }
            })
        } else {
            Box::pin(async move {
                rounds.conclude(outcome).await;
                AfterRound::Done
            })
        };
        self.step = RoundStep::Asking(Mutex::new(future));
    }

    /// Returns the error with which a round broke off, unless the provider sent one: the client saw the reply begin, or
    /// not all of it.
    fn broken(&self, outcome: &RoundOutcome, has_unjudged_calls: bool) -> Option<ClientError> {
        match &outcome.reply {
            Ok(_) => None,
            // Calls that were not judged are not forwarded, nor are the texts behind them.
            Err(ReplyError::Failed { .. }) if !has_unjudged_calls => None,
            Err(_) if self.filter.is_first_round() && !outcome.is_withheld => None,
            Err(error) => Some(FollowUpError::broken(Some(error.clone())).client_error()),
        }
    }

    /// Ends the stream with an error.
    fn fail(&mut self, error: &ClientError) {
        let next = Some(self.filter.next_sequence());
        self.ready
            .extend(stream_error(self.filter.wire(), error, next));
    }

    fn after_round(&mut self, after: AfterRound) {
        self.step = match after {
            AfterRound::Next(body, rounds) => RoundStep::Reading(body, Some(rounds)),
            AfterRound::Done => {
                self.ready.extend(self.filter.finish());
                RoundStep::Ended
            }
            AfterRound::Failed(error) => {
                self.fail(&error);
                RoundStep::Ended
            }
        };
    }
}

/// Returns the provider's refusal of the next round in the client's wire.
async fn refused(answer: ForwardResponse) -> ClientError {
    let (read, _) = read_up_to(answer.body, MAX_ERROR_BODY_BYTES).await;
    let status = if answer.status.is_redirection() {
        StatusCode::BAD_GATEWAY
    } else {
        answer.status
    };
    let said = decode_beginning(&answer.headers, &read, MAX_ERROR_BODY_BYTES);
    refusal(status, &said).1
}

impl Body for LookupBody {
    type Data = Bytes;
    type Error = ForwardError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ForwardError>>> {
        let this = &mut *self;
        loop {
            if !this.ready.is_empty() {
                let ready = std::mem::take(&mut this.ready);
                return Poll::Ready(Some(Ok(Frame::data(ready.into()))));
            }
            match &mut this.step {
                RoundStep::Ended => return Poll::Ready(None),
                RoundStep::Asking(future) => {
                    let future = future.get_mut().unwrap_or_else(|it| it.into_inner());
                    let after = ready!(future.as_mut().poll(context));
                    this.after_round(after);
                }
                RoundStep::Reading(body, rounds) => {
                    let frame = ready!(Pin::new(body).poll_frame(context));
                    match frame {
                        Some(Ok(frame)) => {
                            let Ok(data) = frame.into_data() else {
                                continue;
                            };
                            this.ready = this.filter.push(&data);
                            if this.filter.is_round_complete() {
                                let rounds = rounds.take();
                                this.end_round(rounds);
                            }
                        }
                        Some(Err(error)) => {
                            this.step = RoundStep::Ended;
                            return Poll::Ready(Some(Err(error)));
                        }
                        None => {
                            let rounds = rounds.take();
                            this.end_round(rounds);
                        }
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.step, RoundStep::Ended) && self.ready.is_empty()
    }
}
