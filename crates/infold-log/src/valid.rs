use crate::{Call, Facts, Floor, Role, Rounds, Seq};

/// One message of a rendered view.
#[derive(Clone, Debug)]
pub struct Line {
    /// Where it comes from.
    pub source: Source,
    /// What it says, as far as the rules go.
    pub facts: Facts,
}

/// Where a message of a view comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the log.
    Message(Seq),
    /// From a fold or a note.
    StandIn,
    /// Put in so that an interrupted call has a result.
    Repair,
}

/// What is wrong with a view.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A result whose call is not right before it.
    #[error("line {line}: a tool result answers no call (id {})", call_name(.call))]
    Orphan {
        /// Where, counted from one.
        line: usize,
        /// What it claims to answer.
        call: Call,
    },
    /// A call that has no result although the conversation goes on.
    #[error("line {line}: the call {} before it has no result", call_name(.call))]
    Unanswered {
        /// The line that follows, counted from one.
        line: usize,
        /// The call.
        call: Call,
    },
    /// A stand-in that calls a tool, brings a result or reasons.
    #[error("line {line}: a stand-in holds a tool call, a result or reasoning")]
    NotPlain {
        /// Where, counted from one.
        line: usize,
    },
    /// A message without content.
    #[error("line {line}: empty content")]
    Empty {
        /// Where, counted from one.
        line: usize,
    },
    /// Messages out of order, or one twice.
    #[error("line {line}: message {seq} stands after a later one")]
    Disorder {
        /// Where, counted from one.
        line: usize,
        /// The message.
        seq: Seq,
    },
    /// The system prompt or the first request is missing.
    #[error("message {seq} must always be shown, and is not")]
    FloorHidden {
        /// The message.
        seq: Seq,
    },
}

/// What [`check`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Everything that breaks a rule; a view without faults is valid.
    pub faults: Vec<Fault>,
    /// The last round still waits for results, so the view is not to be sent.
    pub open: bool,
}

/// Says what is wrong with a view. These are all the rules there are:
///
/// 1. A tool result follows its call, with nothing but other results between.
/// 2. A call has its result, unless it is in the last round: then the view is open.
/// 3. Stand-ins hold text only: no call, no result, no reasoning.
/// 4. No message is empty.
/// 5. Messages stand in the order in which they came, each once; only results that came
///    while their round waited for others stand, as text, behind it.
/// 6. The system prompt and the first request are there.
pub fn check(lines: impl IntoIterator<Item = Line>, floor: &Floor) -> Verdict {
    let mut rounds = Rounds::default();
    let mut faults = Vec::new();
    let mut last: Option<Seq> = None;
    // The messages since the last call, that one included.
    let mut round: Vec<Seq> = Vec::new();
    let mut missing: Vec<Seq> = floor.seqs().to_vec();
    for (at, Line { source, facts }) in lines.into_iter().enumerate() {
        let line = at + 1;
        let waiting = rounds.waiting().to_vec();
        let number = Seq::new(line as u64).expect("lines are counted from one");
        let (heard, paired) = rounds.pair(number, &facts);
        if heard.cuts {
            let unanswered = |call| Fault::Unanswered { line, call };
            faults.extend(waiting.into_iter().map(unanswered));
        }
        let orphans = facts
            .answers
            .iter()
            .zip(paired)
            .filter(|(_, paired)| !paired);
        faults.extend(orphans.map(|(call, _)| Fault::Orphan {
            line,
            call: call.clone(),
        }));
        if facts.empty {
            faults.push(Fault::Empty { line });
        }
        match source {
            Source::Message(seq) => {
                if !facts.calls.is_empty() {
                    round.clear();
                }
                let late = plain(&facts)
                    && round.first().is_some_and(|first| *first < seq)
                    && !round.contains(&seq);
                if last.is_some_and(|last| seq <= last) && !late {
                    faults.push(Fault::Disorder { line, seq });
                }
                round.push(seq);
                last = last.max(Some(seq));
                missing.retain(|floor| *floor != seq);
            }
            Source::StandIn if !plain(&facts) => faults.push(Fault::NotPlain { line }),
            Source::StandIn | Source::Repair => {}
        }
    }
    faults.extend(missing.into_iter().map(|seq| Fault::FloorHidden { seq }));
    Verdict {
        faults,
        open: !rounds.waiting().is_empty(),
    }
}

fn plain(facts: &Facts) -> bool {
    facts.calls.is_empty()
        && facts.answers.is_empty()
        && !facts.reasoning
        && matches!(facts.role, Role::User | Role::Assistant)
}

fn call_name(call: &Call) -> &str {
    call.id
        .as_deref()
        .or(call.name.as_deref())
        .unwrap_or("none")
}
