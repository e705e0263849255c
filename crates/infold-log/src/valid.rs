//! Checks that a rendered view is one that a provider accepts.

use crate::{Call, Facts, Floor, Role, Rounds, Seq};

/// One message of a rendered view.
#[derive(Clone, Debug)]
pub struct Line {
    /// Where it comes from.
    pub source: Source,
    /// The facts that the rules use.
    pub facts: Facts,
}

/// Where a message of a view comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the log.
    Message(Seq),
    /// From the log: a result without its call, or too late, as text behind its round.
    Late(Seq),
    /// From a fold or a note.
    StandIn,
    /// Put in so that an interrupted call has a result.
    Repair,
    /// From an event: the messages of look-ups that a reply was made with.
    Lookup,
}

impl Source {
    /// The message of the log it is, if it is one.
    pub fn seq(self) -> Option<Seq> {
        match self {
            Source::Message(seq) | Source::Late(seq) => Some(seq),
            Source::StandIn | Source::Repair | Source::Lookup => None,
        }
    }
}

/// A violation of the rules for a view.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A result whose call is not right before it.
    #[error("line {line}: a tool result answers no call (id {})", call_name(.call))]
    Orphan {
        /// Where, counted from one.
        line: usize,
        /// The call that it refers to.
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

/// The result of [`check`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Everything that breaks a rule; a view without faults is valid.
    pub faults: Vec<Fault>,
    /// The last round still waits for results, so the view is not to be sent.
    pub open: bool,
}

/// Checks a view against all rules:
///
/// 1. A tool result follows its call, with nothing but other results between.
/// 2. A call has its result, unless it is in the last round: then the view is open.
/// 3. Stand-ins hold text only: no call, no result, no reasoning.
/// 4. No message is empty.
/// 5. Messages stand in the order in which they came, each once; late results behind their round.
/// 6. The system prompt and the first request are there.
pub fn check(lines: impl IntoIterator<Item = Line>, floor: &Floor) -> Verdict {
    let mut reading = Reading::new(floor);
    lines.into_iter().for_each(|line| reading.read(&line));
    reading.verdict()
}

/// A view being checked, for callers who do not hold all its lines: see [`check`].
#[derive(Clone, Debug, Default)]
pub struct Reading {
    line: usize,
    rounds: Rounds,
    /// Late results were read, so the round before them takes no more.
    behind: bool,
    last: Option<Seq>,
    /// The first message of the round that late results may belong to, or the last of them.
    round: Option<Seq>,
    missing: Vec<Seq>,
    faults: Vec<Fault>,
}

impl Reading {
    /// Starts before the first line.
    pub fn new(floor: &Floor) -> Reading {
        Reading {
            missing: floor.seqs().to_vec(),
            ..Reading::default()
        }
    }

    /// Takes the next line.
    pub fn read(&mut self, Line { source, facts }: &Line) {
        self.line += 1;
        let line = self.line;
        match *source {
            Source::Late(seq) => {
                self.late(seq);
                let calls = facts.answers.iter().cloned();
                self.faults
                    .extend(calls.map(|call| Fault::Orphan { line, call }));
            }
            Source::Message(seq) => {
                let starts = self.pair(facts);
                self.message(seq, starts);
            }
            Source::StandIn | Source::Repair | Source::Lookup => {
                self.pair(facts);
            }
        }
        if *source == Source::StandIn && !plain(facts) {
            self.faults.push(Fault::NotPlain { line });
        }
        if facts.empty {
            self.faults.push(Fault::Empty { line });
        }
    }

    /// Pairs results with calls, and says whether a round starts here.
    fn pair(&mut self, facts: &Facts) -> bool {
        let line = self.line;
        let unanswered = |call: &Call| Fault::Unanswered {
            line,
            call: call.clone(),
        };
        if std::mem::take(&mut self.behind) {
            let left = std::mem::take(&mut self.rounds);
            self.faults.extend(left.waiting().map(unanswered));
        }
        let number = Seq::new(line as u64).expect("lines are counted from one");
        if self.rounds.is_cut_by(facts) {
            self.faults.extend(self.rounds.waiting().map(unanswered));
        }
        let (heard, paired) = self.rounds.pair(number, facts, None);
        let answers = facts.answers.iter().zip(paired);
        let orphans = answers.filter(|(_, paired)| !paired).map(|(call, _)| call);
        self.faults
            .extend(orphans.cloned().map(|call| Fault::Orphan { line, call }));
        heard.round == number
    }

    fn message(&mut self, seq: Seq, starts: bool) {
        if self.last.is_some_and(|last| seq <= last) {
            let line = self.line;
            self.faults.push(Fault::Disorder { line, seq });
        }
        self.last = self.last.max(Some(seq));
        self.missing.retain(|floor| *floor != seq);
        if starts {
            self.round = Some(seq);
        }
    }

    fn late(&mut self, seq: Seq) {
        if self.round.is_some_and(|round| seq <= round) {
            let line = self.line;
            self.faults.push(Fault::Disorder { line, seq });
        }
        self.behind = true;
        self.last = self.last.max(Some(seq));
        self.round = Some(seq);
    }

    /// Returns the verdict, once all lines were read.
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

    /// Says what was found, once all lines were read.
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
