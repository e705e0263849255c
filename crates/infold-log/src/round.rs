use crate::{Call, Facts, Role, Seq};

/// Sorts messages into rounds as they come, pairing tool results with calls.
///
/// A round is one output and, if it calls tools, the results that answer it. On most
/// wires an output is one message; where it comes as items, those that follow each other
/// are one, and an item behind a result or a step begins the next: a step before it may
/// have folded, or may yet again fold, what it would belong to. A round stays open while calls
/// wait; any message that is neither a tool result nor an item of the same output closes
/// it. A result that answers no waiting call is *late*: it joins the open round, if there
/// is one, and is shown as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    round: Option<Seq>,
    waiting: Vec<Call>,
    /// The last message is an item, and so the next one may go on with its output.
    output: bool,
}

/// Where a message belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The first message of its round.
    pub round: Seq,
    /// Calls of that round that still wait.
    pub waiting: u32,
    /// At least one of its results answers nothing that waits.
    pub late: bool,
    /// It closed a round that still waited.
    pub cuts: bool,
    /// It goes on with the output of the message before.
    pub goes_on: bool,
}

impl Rounds {
    /// Takes the next message and says where it belongs.
    pub fn hear(&mut self, seq: Seq, facts: &Facts) -> Heard {
        self.pair(seq, facts).0
    }

    /// As [`Rounds::hear`], and says for each result whether it answers a waiting call.
    pub fn pair(&mut self, seq: Seq, facts: &Facts) -> (Heard, Vec<bool>) {
        let results = !facts.answers.is_empty() && facts.role != Role::Assistant;
        let open = self.round.filter(|_| !self.waiting.is_empty());
        let output = self.round.filter(|_| self.output && facts.item);
        let joined = output.or(open.filter(|_| results));
        let cuts = open.is_some() && joined.is_none();
        let round = joined.unwrap_or_else(|| {
            self.waiting.clear();
            seq
        });
        self.round = Some(round);
        self.output = facts.item;
        let paired: Vec<bool> = facts
            .answers
            .iter()
            .map(|answer| self.take(answer))
            .collect();
        if !results {
            self.waiting.extend(facts.calls.iter().cloned());
        }
        let heard = Heard {
            round,
            waiting: u32::try_from(self.waiting.len()).unwrap_or(u32::MAX),
            late: paired.contains(&false),
            cuts,
            goes_on: output.is_some(),
        };
        (heard, paired)
    }

    /// A step was taken: an item that comes now belongs to another output.
    pub fn end_output(&mut self) {
        self.output = false;
    }

    /// The calls that wait for a result now.
    pub fn waiting(&self) -> &[Call] {
        &self.waiting
    }

    /// Removes the waiting call that `answer` is for: by id; without one, by name and order.
    fn take(&mut self, answer: &Call) -> bool {
        let found = self
            .waiting
            .iter()
            .position(|call| match (&answer.id, &call.id) {
                (Some(wanted), Some(id)) => wanted == id,
                _ => answer.name.is_none() || call.name.is_none() || answer.name == call.name,
            });
        found.map(|at| self.waiting.remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, calls: &[&str], answers: &[&str]) -> Facts {
        let by_id = |ids: &[&str]| ids.iter().map(|id| call(Some(id), None)).collect();
        Facts {
            role,
            calls: by_id(calls),
            answers: by_id(answers),
            reasoning: false,
            empty: false,
            item: false,
            tokens: 1,
            bytes: 4,
        }
    }

    fn call(id: Option<&str>, name: Option<&str>) -> Call {
        Call {
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
        }
    }

    fn rounds(messages: &[Facts]) -> Vec<(u64, u32, bool, bool)> {
        let mut rounds = Rounds::default();
        let mut seq = Seq::FIRST;
        let mut out = Vec::new();
        for facts in messages {
            let heard = rounds.hear(seq, facts);
            out.push((heard.round.get(), heard.waiting, heard.late, heard.cuts));
            seq = seq.next();
        }
        out
    }

    #[test]
    fn results_join_the_round_of_their_call() {
        let seen = rounds(&[
            message(Role::User, &[], &[]),
            message(Role::Assistant, &["a", "b"], &[]),
            message(Role::Tool, &[], &["b"]),
            message(Role::Tool, &[], &["a"]),
            message(Role::Assistant, &[], &[]),
        ]);
        assert_eq!(
            seen,
            [
                (1, 0, false, false),
                (2, 2, false, false),
                (2, 1, false, false),
                (2, 0, false, false),
                (5, 0, false, false)
            ]
        );
    }

    #[test]
    fn a_request_closes_the_round_and_its_result_comes_late() {
        let seen = rounds(&[
            message(Role::Assistant, &["a"], &[]),
            message(Role::User, &[], &[]),
            message(Role::Tool, &[], &["a"]),
        ]);
        assert_eq!(
            seen,
            [
                (1, 1, false, false),
                (2, 0, false, true),
                (3, 0, true, false)
            ]
        );
    }

    #[test]
    fn a_result_for_nobody_does_not_close_the_round() {
        let seen = rounds(&[
            message(Role::Assistant, &["a"], &[]),
            message(Role::Tool, &[], &["x"]),
            message(Role::Tool, &[], &["a"]),
        ]);
        assert_eq!(
            seen,
            [
                (1, 1, false, false),
                (1, 1, true, false),
                (1, 0, false, false)
            ]
        );
    }

    #[test]
    fn an_item_behind_a_step_begins_another_round() {
        let item = Facts {
            item: true,
            ..message(Role::Assistant, &[], &[])
        };
        let mut rounds = Rounds::default();
        rounds.hear(Seq::FIRST, &item);
        rounds.end_output();
        let second = Seq::FIRST.next();
        assert_eq!(rounds.hear(second, &item).round, second);
        assert_eq!(rounds.hear(second.next(), &item).round, second);
    }

    #[test]
    fn items_of_one_output_are_one_round_with_their_results() {
        let item = |calls: &[&str]| Facts {
            item: true,
            ..message(Role::Assistant, calls, &[])
        };
        let seen = rounds(&[
            message(Role::User, &[], &[]),
            item(&[]),
            item(&["a"]),
            item(&["b"]),
            message(Role::Tool, &[], &["b"]),
            message(Role::Tool, &[], &["a"]),
            item(&[]),
            item(&["c"]),
            message(Role::Tool, &[], &["x"]),
            item(&["d"]),
            message(Role::User, &[], &[]),
        ]);
        let rounds: Vec<u64> = seen.iter().map(|seen| seen.0).collect();
        assert_eq!(rounds, [1, 2, 2, 2, 2, 2, 7, 7, 7, 10, 11]);
        let waiting: Vec<u32> = seen.iter().map(|seen| seen.1).collect();
        assert_eq!(waiting, [0, 0, 1, 2, 1, 0, 0, 1, 1, 1, 0]);
        let cuts: Vec<usize> = (1..12).filter(|at| seen[at - 1].3).collect();
        assert_eq!(cuts, [10, 11]);
    }

    #[test]
    fn results_without_an_id_pair_by_name_and_order() {
        let mut rounds = Rounds::default();
        let mut asks = message(Role::Assistant, &[], &[]);
        asks.calls = vec![
            call(Some("1"), Some("read")),
            call(Some("2"), Some("write")),
            call(Some("3"), Some("read")),
        ];
        rounds.hear(Seq::FIRST, &asks);
        for (name, left) in [(Some("write"), 2), (Some("read"), 1), (None, 0)] {
            let mut result = message(Role::Tool, &[], &[]);
            result.answers = vec![call(None, name)];
            let heard = rounds.hear(Seq::FIRST.next(), &result);
            assert_eq!((heard.waiting, heard.late), (left, false));
        }
    }
}
