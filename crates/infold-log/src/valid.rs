//! Checks that providers accept a rendered view.
//!
//! Providers refuse a request whose messages break rules, for example a tool result without its call. A view is built by
//! code that knows these rules; this module checks its result message by message, from facts alone.

use crate::{Call, Facts, Floor, Role, Rounds, Seq};

/// One message of a rendered view, as the check needs it.
#[derive(Clone, Debug)]
pub struct Line {
    /// Where the message comes from.
    pub source: Source,
    /// The facts that the rules use.
    pub facts: Facts,
}

/// Where a message of a view comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A message of the log.
    Message(Seq),
    /// A message of the log whose tool results have no call, or came too late to follow it. It is rendered as plain text after
    /// its round.
    Late(Seq),
    /// A message of a fold's stand-in, or a note.
    StandIn,
    /// A result that was made up for an interrupted call, because each call needs one.
    Repair,
    /// A message of the look-ups that were made for a reply. An event recorded it.
    Lookup,
}

impl Source {
    /// Returns the seq of a message of the log; none for a message from elsewhere.
    pub fn seq(self) -> Option<Seq> {
        match self {
            Source::Message(seq) | Source::Late(seq) => Some(seq),
            Source::StandIn | Source::Repair | Source::Lookup => None,
        }
    }
}

/// A violation of one of the rules of [`check`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A tool result that does not follow its call.
    #[error("line {line}: a tool result answers no call (id {})", call_name(.call))]
    Orphan {
        /// Where, counted from one.
        line: usize,
        /// The call that the result names.
        call: Call,
    },
    /// A call without a result, although other messages follow.
    #[error("line {line}: the call {} before it has no result", call_name(.call))]
    Unanswered {
        /// The line that follows, counted from one.
        line: usize,
        /// The call.
        call: Call,
    },
    /// A stand-in that has a tool call, a tool result, reasoning, or a role other than user and assistant.
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
    /// A message that is out of order, or that occurs a second time.
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

/// The result of [`check`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// All violations, in the order of the lines; a view without any is valid.
    pub faults: Vec<Fault>,
    /// Whether the last round still waits for tool results. Such a view is valid, but must not be sent yet.
    pub open: bool,
}

/// Checks a view against all rules:
///
/// 1. A tool result follows its call, with nothing but other results between.
/// 2. A call has its result. In the last round it may be missing: then the view is open.
/// 3. A stand-in contains only text, as user or assistant: no call, no result, no reasoning.
/// 4. No message is empty.
/// 5. Messages are in the order of the log, each once; late results follow their round.
/// 6. The system prompt and the first request (the floor) are present.
pub fn check(lines: impl IntoIterator<Item = Line>, floor: &Floor) -> Verdict {
    let mut checker = ViewChecker::new(floor);
    lines.into_iter().for_each(|line| checker.read(&line));
    checker.verdict()
}

/// Checks a view line by line, for callers that do not have all lines in memory at once. [`check`] lists the rules.
#[derive(Clone, Debug, Default)]
pub struct ViewChecker {
    /// The number of lines read.
    line: usize,
    /// Pairs tool results with calls. Its seqs are line numbers, because not every line is a message of the log.
    rounds: Rounds,
    /// Whether the last line was a late result. The round before it is then over: later results cannot belong to it.
    is_after_late: bool,
    /// The highest seq read.
    last: Option<Seq>,
    /// The seq that the next late result must exceed: the first of the round it belongs to, or the late result before it.
    late_after: Option<Seq>,
    /// The messages of the floor that were not read yet.
    missing: Vec<Seq>,
    faults: Vec<Fault>,
}

impl ViewChecker {
    /// Returns the state before the first line. `floor` are the messages that rule 6 requires.
    pub fn new(floor: &Floor) -> ViewChecker {
        ViewChecker {
            missing: floor.seqs().to_vec(),
            ..ViewChecker::default()
        }
    }

    /// Checks the next line.
    pub fn read(&mut self, Line { source, facts }: &Line) {
        self.line += 1;
        let line = self.line;
        match *source {
            Source::Late(seq) => {
                self.check_late_order(seq);
                let calls = facts.answers.iter().cloned();
                self.faults
                    .extend(calls.map(|call| Fault::Orphan { line, call }));
            }
            Source::Message(seq) => {
                let starts = self.pair(facts);
                self.check_order(seq, starts);
            }
            Source::StandIn | Source::Repair | Source::Lookup => {
                self.pair(facts);
            }
        }
        if *source == Source::StandIn && !is_plain(facts) {
            self.faults.push(Fault::NotPlain { line });
        }
        if facts.empty {
            self.faults.push(Fault::Empty { line });
        }
    }

    /// Pairs the results and calls of the current line with those before it, and returns whether the line starts a round.
    fn pair(&mut self, facts: &Facts) -> bool {
        let line = self.line;
        let unanswered = |call: &Call| Fault::Unanswered {
            line,
            call: call.clone(),
        };
        if std::mem::take(&mut self.is_after_late) {
            let left = std::mem::take(&mut self.rounds);
            self.faults.extend(left.waiting().map(unanswered));
        }
        let number = Seq::new(line as u64).expect("lines are counted from one");
        if self.rounds.is_cut_by(facts) {
            self.faults.extend(self.rounds.waiting().map(unanswered));
        }
        let (placement, paired) = self.rounds.pair(number, facts, None);
        let answers = facts.answers.iter().zip(paired);
        let orphans = answers.filter(|(_, paired)| !paired).map(|(call, _)| call);
        self.faults
            .extend(orphans.cloned().map(|call| Fault::Orphan { line, call }));
        placement.round == number
    }

    /// Checks the order of a message of the log.
    fn check_order(&mut self, seq: Seq, starts: bool) {
        if self.last.is_some_and(|last| seq <= last) {
            let line = self.line;
            self.faults.push(Fault::Disorder { line, seq });
        }
        self.last = self.last.max(Some(seq));
        self.missing.retain(|floor| *floor != seq);
        if starts {
            self.late_after = Some(seq);
        }
    }

    /// Checks the order of a late result. It follows its round, so messages with higher seqs may come before it.
    fn check_late_order(&mut self, seq: Seq) {
        if self.late_after.is_some_and(|round| seq <= round) {
            let line = self.line;
            self.faults.push(Fault::Disorder { line, seq });
        }
        self.is_after_late = true;
        self.last = self.last.max(Some(seq));
        self.late_after = Some(seq);
    }

    /// Returns the result of the check after the last line.
    pub fn verdict(self) -> Verdict {
        let mut faults = self.faults;
        let hidden = self.missing.into_iter();
        faults.extend(hidden.map(|seq| Fault::FloorHidden { seq }));
        Verdict {
            faults,
            open: self.rounds.waiting().len() > 0,
        }
    }
}

/// Says whether a message is allowed as a stand-in by rule 3.
fn is_plain(facts: &Facts) -> bool {
    facts.calls.is_empty()
        && facts.answers.is_empty()
        && !facts.reasoning
        && matches!(facts.role, Role::User | Role::Assistant)
}

/// Returns the id of a call for an error text; its name on wires without ids.
fn call_name(call: &Call) -> &str {
    call.id
        .as_deref()
        .or(call.name.as_deref())
        .unwrap_or("none")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(source: Source, role: Role, calls: &[&str], answers: &[&str]) -> Line {
        let by_id = |ids: &[&str]| {
            let call = |id: &&str| Call {
                id: Some((*id).to_owned()),
                name: None,
            };
            ids.iter().map(call).collect()
        };
        let facts = Facts {
            role,
            calls: by_id(calls),
            answers: by_id(answers),
            links: vec![],
            reasoning: false,
            empty: false,
            item: false,
            tokens: 1,
            bytes: 4,
        };
        Line { source, facts }
    }

    fn said(seq: u64, role: Role, calls: &[&str], answers: &[&str]) -> Line {
        let seq = Seq::new(seq).unwrap();
        line(Source::Message(seq), role, calls, answers)
    }

    fn late(seq: u64) -> Line {
        line(Source::Late(Seq::new(seq).unwrap()), Role::User, &[], &[])
    }

    /// Returns the error texts of the faults, and whether the view is open.
    pub fn verdict(lines: Vec<Line>) -> (Vec<String>, bool) {
        let verdict = check(lines, &Floor::default());
        let faults = verdict.faults.iter().map(ToString::to_string);
        (faults.collect(), verdict.open)
    }

    #[test]
    fn a_late_result_stands_behind_its_round() {
        let round = || {
            vec![
                said(1, Role::Assistant, &["a"], &[]),
                said(3, Role::Tool, &[], &["a"]),
            ]
        };
        let mut lines = round();
        lines.extend([late(2), said(4, Role::User, &[], &[])]);
        assert_eq!(verdict(lines), (vec![], false));
        let mut twice = round();
        twice.extend([late(2), late(2)]);
        let fault = "line 4: message 2 stands after a later one";
        assert_eq!(verdict(twice).0, [fault]);
    }

    #[test]
    fn a_late_result_leaves_an_open_view_open() {
        let lines = vec![said(1, Role::Assistant, &["a"], &[]), late(2)];
        assert_eq!(verdict(lines), (vec![], true));
    }

    #[test]
    fn nothing_stands_between_a_call_and_its_result() {
        for between in [late(2), line(Source::StandIn, Role::User, &[], &[])] {
            let lines = vec![
                said(1, Role::Assistant, &["a"], &[]),
                between,
                said(3, Role::Tool, &[], &["a"]),
            ];
            let faults = verdict(lines).0;
            assert!(faults[0].ends_with("the call a before it has no result"));
            assert_eq!(faults[1], "line 3: a tool result answers no call (id a)");
        }
    }

    #[test]
    fn a_stand_in_says_plain_things() {
        let lines = vec![line(Source::StandIn, Role::System, &[], &[])];
        assert_eq!(
            verdict(lines).0,
            ["line 1: a stand-in holds a tool call, a result or reasoning"]
        );
    }

    #[test]
    fn what_is_missing_of_the_floor_is_named() {
        let mut log = crate::Memory::default();
        log.message(&said(1, Role::User, &[], &[]).facts, 0);
        let Ok(floor) = Floor::of(log.state().shown(), &log);
        let faults = check(vec![], &floor).faults;
        assert_eq!(
            faults[0].to_string(),
            "message 1 must always be shown, and is not"
        );
    }
}
