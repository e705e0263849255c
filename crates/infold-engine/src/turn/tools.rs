//! The policy for tools in a turn: the shown tools are recorded, and the calls are judged.

use std::fmt;
use std::sync::Arc;

use infold_log::{Seq, Span};
use infold_store::{LogError, RefusalLine, ToolsShownLine};
use infold_tools::{Projection, ShownTools};
use infold_wire::lookup::{CallJudge, PendingResult, judge_reply, write_results};

use super::{TurnContext, TurnError};
use crate::tool_record::{last_tools_shown, tools_shown_line};

/// The rules that check the calls of a reply.
#[derive(Clone)]
pub struct TurnTools {
    judge: CallJudge,
    shown: ToolsShownLine,
}

impl TurnTools {
    /// Returns the rules for calls of the tools that a projection shows.
    pub fn new(shown: ShownTools, projection: &Projection) -> TurnTools {
        TurnTools {
            judge: Arc::new(move |name, arguments| {
                let checked = shown.check(name, arguments);
                checked.err().map(|refusal| refusal.to_string())
            }),
            shown: tools_shown_line(projection),
        }
    }
}

impl fmt::Debug for TurnTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnTools")
            .field("shown", &self.shown)
            .finish_non_exhaustive()
    }
}

/// A reply in its recorded form.
#[derive(Default)]
pub(super) struct JudgedMessages {
    /// The messages to append: the reply, and results of its calls if all of them were refused.
    pub messages: Vec<Vec<u8>>,
    /// The number of messages of the reply.
    reply: usize,
    /// The whole reply, if some of its calls were refused, and their results.
    beside: Option<(Vec<Vec<u8>>, Vec<PendingResult>)>,
    refusals: Vec<RefusalLine>,
}

impl TurnContext<'_> {
    /// Records which tools the model is shown, if that changed.
    pub(super) fn record_tools_shown(&mut self) -> Result<(), LogError> {
        let Some(tools) = self.tools else {
            return Ok(());
        };
        let is_empty = tools.shown.shown.is_empty() && tools.shown.hidden.is_empty();
        if is_empty || last_tools_shown(self.writer.log())?.as_ref() == Some(&tools.shown) {
            return Ok(());
        }
        self.writer.tools_shown(tools.shown.clone()).map(drop)
    }

    /// Judges the calls of a reply.
    pub(super) fn judge(&self, messages: Vec<Vec<u8>>) -> JudgedMessages {
        let judged = match self.tools {
            Some(tools) => judge_reply(Arc::clone(&tools.judge), &messages),
            None => Default::default(),
        };
        let refusals = judged.refused.iter().map(|(call, told)| RefusalLine {
            tool: call.name.clone(),
            call: call.id.clone(),
            told: told.clone(),
        });
        let refusals: Vec<RefusalLine> = refusals.collect();
        let wire = self.connection.wire();
        let answers = judged.refused.iter();
        let answers: Vec<_> = answers
            .map(|(call, told)| (call, Err(told.clone())))
            .collect();
        if refusals.is_empty() {
            return JudgedMessages {
                reply: messages.len(),
                messages,
                ..JudgedMessages::default()
            };
        }
        let Some(others) = judged.others else {
            let reply = messages.len();
            let results = write_results(wire, &answers);
            return JudgedMessages {
                messages: messages.into_iter().chain(results).collect(),
                reply,
                refusals,
                beside: None,
            };
        };
        let results = answers.iter().flat_map(|answer| {
            let written = write_results(wire, std::slice::from_ref(answer)).into_iter();
            written.map(|message| PendingResult {
                before: answer.0.before,
                message,
            })
        });
        JudgedMessages {
            reply: others.len(),
            messages: others,
            beside: Some((messages, results.collect())),
            refusals,
        }
    }

    /// Appends a reply, and records the refused calls. Returns the messages of the reply.
    pub(super) fn append_judged(
        &mut self,
        judged: JudgedMessages,
    ) -> Result<(Span, Vec<RefusalLine>), TurnError> {
        let first = self.writer.log().state().next_seq();
        self.writer.append(&judged.messages)?;
        let last = first.get() + judged.reply.saturating_sub(1) as u64;
        let last = Seq::new(last).unwrap_or(first);
        let reply = Span::new(first, last).unwrap_or(Span::one(first));
        for refusal in &judged.refusals {
            self.writer.refusal(refusal.clone())?;
        }
        if let Some((messages, results)) = judged.beside {
            let wire = self.connection.wire();
            self.writer.lookup(first, wire, messages, results)?;
        }
        Ok((reply, judged.refusals))
    }
}
