//! The engine shows the same messages that the tag form sends, except for known defects of the peers.

mod history;

use std::collections::HashMap;

use history::{Agent, Deed, Next, any_next, tagged, text};
use infold_log::steer::{self, Side, Target};
use infold_log::{Cause, Floor, Item, Line, Memory, Rounds, Seq, Shows, Source, Span, View, check};
use infold_tags::{TagFold, TagId, TagKind, Tagged, TaggedRole, effective, from_tags, to_tags};
use infold_wire::Message;
use proptest::prelude::*;

fn config() -> ProptestConfig {
    let asked = ProptestConfig::default();
    ProptestConfig {
        cases: asked.cases.max(2000),
        failure_persistence: None,
        ..asked
    }
}

/// An agent with its tags and an engine with its log that live through the same.
struct Both {
    agent: Agent,
    log: Memory,
    /// The texts of the messages, by seq.
    said: Vec<String>,
}

/// One element of a request to a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Sent {
    Said(String),
    StandIn(Cause),
}

impl Both {
    fn asked() -> Both {
        let mut both = Both {
            agent: Agent::asked(),
            log: Memory::default(),
            said: Vec::new(),
        };
        both.hear_from(0);
        both
    }

    fn after(deeds: &[Deed]) -> Both {
        let mut both = Both::asked();
        deeds.iter().for_each(|deed| both.does(*deed));
        both
    }

    /// Does the same to both, also where a weakness shows.
    fn does(&mut self, deed: Deed) {
        match deed {
            Deed::Say(next) => self.say(next),
            Deed::Truncate(percent) => drop(self.truncate(f64::from(percent) / 100.0)),
            Deed::Condense => self.condense(),
            Deed::Rewind(at) => self.rewind(at),
            Deed::Store => {}
        }
    }

    /// Does the same to both, unless a weakness of the tag form would show.
    fn does_well(&mut self, deed: Deed) {
        let well = match deed {
            Deed::Truncate(percent) => self.truncates_well(f64::from(percent) / 100.0),
            Deed::Condense => self.condenses_well(),
            _ => true,
        };
        if well {
            self.does(deed);
        }
    }

    fn say(&mut self, next: Next) {
        let before = self.agent.history.len();
        self.agent.say(next);
        self.hear_from(before);
    }

    /// Appends the agent's new messages to the engine.
    fn hear_from(&mut self, at: usize) {
        for message in &self.agent.history[at..] {
            let text = text(message);
            let facts = Message::parse(text.as_bytes()).expect("a message").facts();
            self.log.message(&facts, 0);
            self.said.push(text);
        }
    }

    /// Truncates both, and says whether the engine did.
    fn truncate(&mut self, fraction: f64) -> bool {
        self.agent.truncate(fraction);
        let Ok(cover) = steer::oldest(self.log.state(), fraction, &self.log) else {
            return false;
        };
        self.log
            .event(&steer::folded(Cause::Window, &cover, 1), None, 0);
        true
    }

    /// Condenses everything between the first message and the last three.
    fn condense(&mut self) {
        if !self.agent.condense() {
            return;
        }
        let path = path(&self.log);
        let [first, .., last, _, _, _] = path[..] else {
            return;
        };
        let span = Span::new(first.next(), last).expect("in order");
        if let Ok(cover) = steer::cover(self.log.state(), span, &self.log) {
            self.log
                .event(&steer::folded(Cause::Summary, &cover, 1), None, 0);
        }
    }

    /// Rewinds both to just before a message of the model.
    fn rewind(&mut self, at: u16) {
        let plain = from_tags(&self.agent.history).messages;
        let replies = plain
            .iter()
            .filter(|said| said.role() == TaggedRole::Assistant);
        let replies: Vec<&Tagged> = replies.collect();
        let Some(at) = usize::from(at).checked_rem(replies.len()) else {
            return;
        };
        let seq = self.seq_of(&text(replies[at]));
        self.agent
            .rewind(replies[at].ts().given().expect("all have a time"));
        let target = Target::Message(seq.get());
        if let Ok(event) = steer::rewind(self.log.state(), Side::Before, target, &self.log) {
            self.log.event(&event, None, 0);
        }
    }

    /// There is no summary, which truncation would miscount, and the last round stays.
    fn truncates_well(&self, fraction: f64) -> bool {
        let mut agent = self.agent.clone();
        agent.truncate(fraction);
        let history = &agent.history;
        let summary = history
            .iter()
            .any(|message| message.is_stand_in(TagKind::Summary));
        let last = history
            .iter()
            .rfind(|message| !message.is_stand_in(TagKind::Window));
        !summary && last.is_some_and(|last| last.parent(TagKind::Window).is_none())
    }

    /// The cut splits no round, and no kept message is hidden or a stand-in.
    fn condenses_well(&self) -> bool {
        let history = &self.agent.history;
        let kept = &history[history.len().saturating_sub(3)..];
        let plain = |message: &Tagged| {
            !TagKind::ALL.iter().any(|fold| message.is_stand_in(*fold))
                && message.parent(TagKind::Window).is_none()
        };
        let results = |message: &Tagged| text(message).contains("tool_result");
        kept.iter().all(plain) && kept.first().is_some_and(|first| !results(first))
    }

    fn seq_of(&self, said: &str) -> Seq {
        let at = self.said.iter().rposition(|other| other == said);
        Seq::new(at.expect("it was said") as u64 + 1).expect("one more")
    }

    /// Returns the elements that the agent would send; adjacent markers count as one.
    fn agent_sends(&self) -> Vec<Sent> {
        let mut sent = sent_by_tags(&effective(&self.agent.history));
        sent.dedup_by(|a, b| a == b && *a == Sent::StandIn(Cause::Window));
        sent
    }

    fn engine_sends(&self) -> Vec<Sent> {
        sent_by(&self.log, &self.said)
    }

    /// Returns the faults in the request that the engine would send.
    fn faults(&self) -> Vec<String> {
        let shown = self.log.state().shown();
        let Ok(floor) = Floor::of(shown, &self.log);
        let seqs = self.said.iter().zip(seqs()).collect();
        let sent = self.engine_sends();
        let lines = sent.iter().map(|sent| line(sent, &seqs));
        let faults = check(lines, &floor).faults;
        faults.iter().map(ToString::to_string).collect()
    }

    /// The folds that are active, over the messages of the path.
    fn folds(&self) -> Vec<TagFold> {
        let numbers: HashMap<Seq, Seq> = path(&self.log).into_iter().zip(seqs()).collect();
        let items = self.log.state().shown().items().iter();
        let folds = items.filter_map(|item| match item {
            Item::Fold(fold) => Some(fold),
            Item::Run(_) => None,
        });
        let fold = |fold: &infold_log::Folded| {
            let id = fold.id.to_string();
            let flags = match fold.cause {
                Cause::Summary => format!(r#""isSummary":true,"condenseId":"{id}""#),
                Cause::Window => format!(r#""isTruncationMarker":true,"truncationId":"{id}""#),
            };
            let stand_in = tagged(&format!(r#"{{"role":"user","content":"",{flags}}}"#));
            let (from, to) = (numbers[&fold.span().from()], numbers[&fold.span().to()]);
            let span = Span::new(from, to).expect("in order");
            TagFold::new(TagId::new(&id), fold.cause, span, stand_in)
        };
        folds.map(|found| fold(found)).collect()
    }
}

fn line(sent: &Sent, seqs: &HashMap<&String, Seq>) -> Line {
    let (source, text) = match sent {
        Sent::Said(text) => (Source::Message(seqs[text]), text.as_str()),
        Sent::StandIn(_) => (Source::StandIn, r#"{"role":"user","content":"in short"}"#),
    };
    let facts = Message::parse(text.as_bytes()).expect("a message").facts();
    Line { source, facts }
}

fn seqs() -> impl Iterator<Item = Seq> {
    (1..).filter_map(Seq::new)
}

fn path(log: &Memory) -> Vec<Seq> {
    log.state()
        .shown()
        .path()
        .into_iter()
        .flat_map(Span::seqs)
        .collect()
}

fn sent_by(log: &Memory, said: &[String]) -> Vec<Sent> {
    let shown = log.state().shown();
    let Ok(view) = View::of(shown, log);
    let said = |seq: Seq| Sent::Said(said[seq.get() as usize - 1].clone());
    let sent = |shows: &Shows| match shows {
        Shows::Verbatim(span) => span.seqs().map(said).collect(),
        Shows::Round { members, .. } => members.iter().copied().map(said).collect(),
        Shows::StandIn(id) => {
            let fold = shown.outermost(*id).expect("a stand-in has its fold");
            vec![Sent::StandIn(fold.cause)]
        }
        Shows::Note(_) => vec![],
    };
    view.pieces()
        .iter()
        .flat_map(|piece| sent(&piece.shows))
        .collect()
}

fn sent_by_tags(messages: &[Tagged]) -> Vec<Sent> {
    let sent = |message: &Tagged| {
        if message.is_stand_in(TagKind::Summary) {
            Sent::StandIn(Cause::Summary)
        } else if message.is_stand_in(TagKind::Window) {
            Sent::StandIn(Cause::Window)
        } else {
            Sent::Said(text(message))
        }
    };
    messages.iter().map(sent).collect()
}

/// A log made of a tagged array: its messages, then its folds.
fn imported(array: &[Tagged]) -> (Memory, Vec<String>) {
    let parts = from_tags(array);
    let mut log = Memory::default();
    let said: Vec<String> = parts.messages.iter().map(text).collect();
    for text in &said {
        let facts = Message::parse(text.as_bytes()).expect("a message").facts();
        log.message(&facts, 0);
    }
    for fold in &parts.folds {
        let Some(span) = fold.covers else { continue };
        let cover = steer::cover(log.state(), span, &log).expect("tags cover something");
        log.event(&steer::folded(fold.cause, &cover, 1), None, 0);
    }
    (log, said)
}

fn any_deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        6 => any_next().prop_map(Deed::Say),
        3 => (0..=100u8).prop_map(Deed::Truncate),
        2 => Just(Deed::Condense),
        1 => any::<u16>().prop_map(Deed::Rewind),
    ];
    prop::collection::vec(deed, 0..40)
}

fn count(sent: &[Sent], cause: Cause) -> usize {
    let wanted = Sent::StandIn(cause);
    sent.iter().filter(|sent| **sent == wanted).count()
}

/// Returns the number of results that the agent would send without their calls right before them.
fn orphans(both: &Both) -> usize {
    let mut rounds = Rounds::default();
    let mut orphans = 0;
    for (message, seq) in effective(&both.agent.history).iter().zip(seqs()) {
        let text = text(message);
        let facts = Message::parse(text.as_bytes()).expect("a message").facts();
        orphans += usize::from(rounds.add(seq, &facts, None).late);
    }
    orphans
}

proptest! {
    #![proptest_config(config())]

    /// Unless a known defect applies, the engine's view is the tag form's effective history.
    #[test]
    fn the_engine_shows_what_the_tag_form_sends(deeds in any_deeds()) {
        let mut both = Both::asked();
        for deed in deeds {
            both.does_well(deed);
            prop_assert_eq!(both.engine_sends(), both.agent_sends(), "after {:?}", deed);
        }
    }

    /// A tagged array that is read into an engine has the same view as before.
    #[test]
    fn tags_read_into_an_engine_show_the_same(deeds in any_deeds()) {
        let mut both = Both::asked();
        deeds.iter().for_each(|deed| both.does_well(*deed));
        let (log, said) = imported(&both.agent.history);
        prop_assert_eq!(sent_by(&log, &said), sent_by_tags(&effective(&both.agent.history)));
    }

    /// Folds of the engine, written as tags, hide the same messages and show the same stand-ins.
    #[test]
    fn folds_written_as_tags_show_the_same(deeds in any_deeds()) {
        let both = Both::after(&deeds);
        let path = path(&both.log);
        let messages = path.iter().map(|seq| tagged(&both.said[seq.get() as usize - 1]));
        let array = to_tags(&messages.collect::<Vec<_>>(), &both.folds());
        let sent: Vec<Tagged> = effective(&array);
        prop_assert_eq!(sent_by_tags(&sent), both.engine_sends());
    }

    /// Condensing and truncating in any order orphans no result.
    #[test]
    fn the_engine_orphans_no_result(deeds in any_deeds()) {
        let mut both = Both::asked();
        for deed in deeds {
            both.does(deed);
            if !matches!(deed, Deed::Say(_)) {
                prop_assert_eq!(both.faults(), Vec::<String>::new());
            }
        }
    }

    /// A truncation right after a condense shrinks the view, or is refused.
    #[test]
    fn truncating_after_condensing_shrinks_the_view(deeds in any_deeds(), percent in 0..=100u8) {
        let mut both = Both::after(&deeds);
        both.condense();
        let weight = |sent: &[Sent]| sent.len() - count(sent, Cause::Window);
        let before = both.engine_sends();
        if both.truncate(f64::from(percent) / 100.0) {
            prop_assert!(weight(&both.engine_sends()) < weight(&before));
        } else {
            prop_assert_eq!(both.engine_sends(), before);
        }
    }

    /// After any number of truncations there is one marker.
    #[test]
    fn the_engine_has_one_marker(deeds in any_deeds()) {
        let mut both = Both::asked();
        for deed in deeds.into_iter().filter(|deed| !matches!(deed, Deed::Condense)) {
            both.does(deed);
            prop_assert!(count(&both.engine_sends(), Cause::Window) <= 1);
        }
    }
}

fn worked(rounds: usize) -> Both {
    let mut both = Both::asked();
    (0..rounds).for_each(|_| both.say(Next::Work(1)));
    both
}

#[test]
fn condensing_and_truncating_orphans_a_result_in_the_tag_form_only() {
    let mut both = worked(6);
    both.condense();
    both.say(Next::Work(1));
    // Ten condensed messages are counted, too, so the cut falls right behind the summary, which has the call that the
    // next message answers.
    both.truncate(0.8);
    assert_eq!(orphans(&both), 1);
    assert_eq!(both.faults(), Vec::<String>::new());
}

#[test]
fn truncating_after_condensing_only_adds_a_marker_in_the_tag_form() {
    let mut both = worked(6);
    both.condense();
    (0..2).for_each(|_| both.say(Next::Work(1)));
    let (agent, engine) = (both.agent_sends(), both.engine_sends());
    assert!(both.truncate(0.5));
    assert_eq!(both.agent_sends().len(), agent.len() + 1);
    assert!(both.engine_sends().len() < engine.len());
}

#[test]
fn markers_pile_up_in_the_tag_form_only() {
    let mut both = worked(20);
    (0..4).for_each(|_| assert!(both.truncate(0.5)));
    let sent = sent_by_tags(&effective(&both.agent.history));
    assert_eq!(count(&sent, Cause::Window), 4);
    assert_eq!(count(&both.engine_sends(), Cause::Window), 1);
    assert_eq!(both.engine_sends(), both.agent_sends());
}
