//! Sorts messages into rounds as they come.

use std::collections::VecDeque;

use crate::{Call, Facts, Link, LinkKind, Role, Seq};

/// Sorts messages into rounds as they come, pairing tool results with calls.
///
/// An *exchange* is one output and, if it calls tools, the results that answer it. On most wires an output is one
/// message. Where it comes as items, adjacent items are one output. An item after a result or a step begins the next
/// output, because the step may have folded the earlier items, or may fold them again when it is redone. An exchange
/// stays open while calls wait; any message that is neither a tool result nor an item of the same output closes it. A
/// result that answers no waiting call is *late*: it joins the open exchange, if there is one, and is shown as text.
///
/// A round is one exchange, or several if the provider's own tools tie them together: a use that has not ended keeps
/// its round open until it ends or the user makes a request, which abandons it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    round: Option<Seq>,
    /// Results mostly come in the order of their calls, so calls are taken from the front.
    waiting: VecDeque<Call>,
    /// Whether the last message is an item, so that the next one may continue its output.
    output: bool,
    /// Ids of uses in this round that have not ended.
    uses: Vec<String>,
    /// The earliest round that a message of this round is tied to; itself if there is none.
    tied: Option<Seq>,
}

/// The most uses that may be open at once; the oldest are dropped first.
const MAX_OPEN_USES: usize = 256;

/// The round that a message belongs to, and how the message changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundPlacement {
    /// The first message of its round.
    pub round: Seq,
    /// The first message of the earliest round that its round is tied to so far.
    pub tied: Seq,
    /// Calls of its exchange that still wait.
    pub waiting: u32,
    /// Whether at least one of its results answers no waiting call.
    pub late: bool,
    /// Whether it closed an exchange that still waited.
    pub cuts: bool,
    /// Whether it continues the output of the message before.
    pub continues_output: bool,
    /// Whether it begins an exchange.
    pub starts: bool,
    /// Whether a use of its round has not ended.
    pub unended: bool,
    /// Whether it is tied to an earlier round itself.
    pub is_tied: bool,
}

impl Rounds {
    /// Adds the next message, and returns its round. `tied` is the earlier round in which one of its
    /// [unresolved ids](Rounds::unresolved) was found.
    pub fn add(&mut self, seq: Seq, facts: &Facts, tied: Option<Seq>) -> RoundPlacement {
        self.pair(seq, facts, tied).0
    }

    /// Like [`Rounds::add`]; also returns for each result whether it answers a waiting call.
    pub fn pair(
        &mut self,
        seq: Seq,
        facts: &Facts,
        tied: Option<Seq>,
    ) -> (RoundPlacement, Vec<bool>) {
        let results = is_results(facts);
        let output = self.round.filter(|_| self.output && facts.item);
        // The result of a provider's tool is part of the output that used it.
        let hosted = results && facts.answers.iter().all(|answer| self.is_use(answer));
        let exchange = self.exchange_of(facts);
        let unended = self
            .round
            .filter(|_| !self.uses.is_empty() && !facts.is_request());
        let cuts = self.is_cut_by(facts);
        if exchange.is_none() {
            self.waiting.clear();
        }
        let round = exchange.or(unended).unwrap_or(seq);
        if round == seq {
            self.uses.clear();
            self.tied = None;
        }
        self.round = Some(round);
        self.tied = tied.into_iter().chain(self.tied).min();
        self.output = facts.item || hosted;
        let paired: Vec<bool> = facts
            .answers
            .iter()
            .map(|answer| self.take(answer) || self.end_use(answer))
            .collect();
        if !results {
            self.waiting.extend(facts.calls.iter().cloned());
        }
        for link in &facts.links {
            self.follow(link, facts.role);
        }
        let placement = RoundPlacement {
            round,
            tied: self.tied.map_or(round, |tied| tied.min(round)),
            waiting: u32::try_from(self.waiting.len()).unwrap_or(u32::MAX),
            late: paired.contains(&false),
            cuts,
            continues_output: output.is_some(),
            starts: exchange.is_none(),
            unended: !self.uses.is_empty(),
            is_tied: tied.is_some_and(|tied| tied < round),
        };
        (placement, paired)
    }

    /// Says whether a message closes the open exchange although calls of it still wait.
    pub fn is_cut_by(&self, facts: &Facts) -> bool {
        self.round.is_some() && !self.waiting.is_empty() && self.exchange_of(facts).is_none()
    }

    /// Returns the round of the open exchange, if a message belongs to that exchange.
    fn exchange_of(&self, facts: &Facts) -> Option<Seq> {
        let goes_on = self.output && facts.item;
        let is_awaited = !self.waiting.is_empty();
        // The result of a provider's tool is part of the output that used it.
        let is_hosted = || facts.answers.iter().all(|answer| self.is_use(answer));
        let answers = is_results(facts) && (is_awaited || is_hosted());
        self.round.filter(|_| goes_on || answers)
    }

    /// Returns the ids by which a message may belong to an earlier round that is closed already. The caller,
    /// who has the log, looks them up there.
    pub fn unresolved<'f>(&self, facts: &'f Facts) -> Vec<&'f str> {
        let mut uses: Vec<&str> = if facts.is_request() {
            Vec::new()
        } else {
            self.uses.iter().map(String::as_str).collect()
        };
        let mut unresolved = Vec::new();
        for link in &facts.links {
            match link.kind {
                LinkKind::Opens => uses.push(&link.id),
                _ if uses.contains(&&*link.id) => {}
                _ => unresolved.push(&*link.id),
            }
        }
        unresolved
    }

    /// Ends the current output because of a step: the next item begins another round, unless a use keeps this one open.
    pub fn end_output(&mut self) {
        self.output &= !self.uses.is_empty();
    }

    /// Returns the calls that wait for a result now.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &Call> {
        self.waiting.iter()
    }

    fn follow(&mut self, link: &Link, role: Role) {
        match link.kind {
            // Only the model uses tools.
            LinkKind::Opens if role == Role::Assistant => {
                if self.uses.len() == MAX_OPEN_USES {
                    self.uses.remove(0);
                }
                self.uses.push(link.id.clone());
            }
            LinkKind::Ends => self.uses.retain(|id| *id != link.id),
            LinkKind::Opens | LinkKind::Continues | LinkKind::Mentions => {}
        }
    }

    fn is_use(&self, answer: &Call) -> bool {
        answer.id.as_ref().is_some_and(|id| self.uses.contains(id))
    }

    /// Removes the open use that `answer` is for.
    fn end_use(&mut self, answer: &Call) -> bool {
        let found = self.is_use(answer);
        self.uses.retain(|id| Some(id) != answer.id.as_ref());
        found
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

fn is_results(facts: &Facts) -> bool {
    !facts.answers.is_empty() && facts.role != Role::Assistant
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
            links: vec![],
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
            let placement = rounds.add(seq, facts, None);
            out.push((
                placement.round.get(),
                placement.waiting,
                placement.late,
                placement.cuts,
            ));
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
        rounds.add(Seq::FIRST, &item, None);
        rounds.end_output();
        let second = Seq::FIRST.next();
        assert_eq!(rounds.add(second, &item, None).round, second);
        assert_eq!(rounds.add(second.next(), &item, None).round, second);
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
        rounds.add(Seq::FIRST, &asks, None);
        for (name, left) in [(Some("write"), 2), (Some("read"), 1), (None, 0)] {
            let mut result = message(Role::Tool, &[], &[]);
            result.answers = vec![call(None, name)];
            let placement = rounds.add(Seq::FIRST.next(), &result, None);
            assert_eq!((placement.waiting, placement.late), (left, false));
        }
    }

    fn linked(role: Role, links: &[(LinkKind, &str)]) -> Facts {
        let links = links.iter().map(|(kind, id)| Link {
            id: (*id).to_owned(),
            kind: *kind,
        });
        Facts {
            links: links.collect(),
            ..message(role, &[], &[])
        }
    }

    #[test]
    fn a_use_and_its_end_are_one_round_across_other_exchanges() {
        use LinkKind::{Continues, Ends, Opens};
        let mut uses = linked(Role::Assistant, &[(Opens, "s")]);
        uses.calls = message(Role::Assistant, &["a"], &[]).calls;
        let mut goes_on = linked(Role::Assistant, &[(Continues, "s")]);
        goes_on.calls = message(Role::Assistant, &["b"], &[]).calls;
        let seen = rounds(&[
            message(Role::User, &[], &[]),
            uses,
            message(Role::User, &[], &["a"]),
            goes_on,
            message(Role::User, &[], &["b"]),
            linked(Role::Assistant, &[(Ends, "s")]),
            message(Role::Assistant, &[], &[]),
        ]);
        let rounds: Vec<u64> = seen.iter().map(|seen| seen.0).collect();
        assert_eq!(rounds, [1, 2, 2, 2, 2, 2, 7]);
        let waiting: Vec<u32> = seen.iter().map(|seen| seen.1).collect();
        assert_eq!(waiting, [0, 1, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn what_the_providers_own_tool_gave_back_is_part_of_the_output() {
        let item = |facts: Facts| Facts {
            item: true,
            ..facts
        };
        let mut uses = linked(Role::Assistant, &[(LinkKind::Opens, "s")]);
        uses.item = true;
        let seen = rounds(&[
            message(Role::User, &[], &[]),
            item(message(Role::Assistant, &[], &[])),
            uses,
            message(Role::Tool, &[], &["s"]),
            item(message(Role::Assistant, &["a"], &[])),
            message(Role::Tool, &[], &["a"]),
            item(message(Role::Assistant, &[], &[])),
        ]);
        let rounds: Vec<u64> = seen.iter().map(|seen| seen.0).collect();
        assert_eq!(rounds, [1, 2, 2, 2, 2, 2, 7]);
        assert!(seen.iter().all(|seen| !seen.2 && !seen.3));
    }

    #[test]
    fn a_request_abandons_a_use_and_a_use_that_ends_at_once_opens_nothing() {
        use LinkKind::{Ends, Opens};
        let seen = rounds(&[
            linked(Role::Assistant, &[(Opens, "s")]),
            message(Role::User, &[], &[]),
            linked(Role::Assistant, &[(Opens, "t"), (Ends, "t")]),
            message(Role::Assistant, &[], &[]),
        ]);
        let rounds: Vec<u64> = seen.iter().map(|seen| seen.0).collect();
        assert_eq!(rounds, [1, 2, 3, 4]);
    }

    #[test]
    fn what_no_open_use_explains_is_looked_for() {
        use LinkKind::{Ends, Mentions, Opens};
        let mut rounds = Rounds::default();
        rounds.add(Seq::FIRST, &linked(Role::Assistant, &[(Opens, "s")]), None);
        let next = linked(
            Role::Assistant,
            &[
                (Ends, "s"),
                (Opens, "t"),
                (Ends, "t"),
                (Ends, "u"),
                (Mentions, "v"),
            ],
        );
        assert_eq!(rounds.unresolved(&next), ["u", "v"]);
    }
}
