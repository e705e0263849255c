//! Properties of every conversation after any sequence of operations.

mod talk;

use std::collections::BTreeSet;

use infold_log::steer::{self, Refused, Side};
use infold_log::{
    Cause, Event, EventId, Floor, Fold, Hides, INTERRUPTED_TOKENS, Item, LinkKind, Past, Pin,
    Pinned, Place, Point, Recall, Role, Seq, Shown, Shows, Source, Span, View, check,
    pinned_rounds, view_at,
};
use proptest::prelude::*;
use talk::Talk;
use talk::lines::lines;
use talk::moves::{
    Move, Moves, Says, Step, any_cover, any_fold, any_moves, any_pin, any_rewind, any_says,
    any_side, any_step, any_where,
};

/// Thousands of cases each; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let asked = ProptestConfig::default();
    ProptestConfig {
        cases: asked.cases.max(3000),
        max_global_rejects: 100_000,
        // A failing case prints its moves; a story test keeps it better than a seed.
        failure_persistence: None,
        ..asked
    }
}

/// The look-ups, and the excerpts of messages that neither a pin nor the floor shows.
fn needed_recalls(talk: &Talk) -> Vec<(EventId, Recall)> {
    let Ok(pinned) = pinned_rounds(talk.shown(), &talk.log);
    let Ok(floor) = Floor::of(talk.shown(), &talk.log);
    let is_needed = |recall: &Recall| {
        recall.quoted().is_none_or(|source| {
            let Ok(record) = talk.log.record(source);
            !pinned.contains(&record.round) && !floor.holds(source)
        })
    };
    let all = talk.shown().all_recalls();
    all.filter(|(_, recall)| is_needed(recall)).collect()
}

proptest! {
    #![proptest_config(config())]

    /// The view is valid after any sequence of operations.
    #[test]
    fn every_view_is_valid(moves in any_moves(40)) {
        let mut talk = Talk::default();
        for next in &moves.0 {
            talk.play(next);
            prop_assert_eq!(faults(&talk), "", "{:?}", talk.view());
        }
    }

    /// A view weighs what it shows.
    #[test]
    fn a_view_weighs_what_it_shows(moves in any_moves(40)) {
        let talk = Talk::of(&moves);
        prop_assume!(talk.shown().all_masks().next().is_none());
        let stand_ins = folds(talk.shown()).map(|fold| fold.tokens).sum::<u64>();
        let notes = talk.shown().notes().map(|(_, tokens)| tokens).sum::<u64>();
        let messages = 10 * told(&talk).len() as u64;
        let repairs = lines(&talk, &talk.view()).into_iter().filter(|line| line.source == Source::Repair);
        let repairs = repairs.map(|line| line.facts.answers.len() as u64 * INTERRUPTED_TOKENS).sum::<u64>();
        let recalls = needed_recalls(&talk).into_iter().map(|(_, recall)| recall.tokens).sum::<u64>();
        prop_assert_eq!(talk.view().tokens(), messages + stand_ins + notes + repairs + recalls);
    }

    /// An excerpt is shown as long as what it quotes is hidden and not pinned, and the message that carries it is not.
    #[test]
    fn excerpts_are_shown_while_what_they_quote_is_hidden(moves in any_moves(60)) {
        let mut talk = Talk::of(&moves);
        let carried = |talk: &Talk| -> Vec<(Seq, EventId)> {
            let view = talk.view();
            let rounds = view.pieces().iter().filter_map(|piece| match &piece.shows {
                Shows::Round { recalls, .. } => Some(recalls.clone()),
                _ => None,
            });
            rounds.flatten().collect()
        };
        let all = needed_recalls(&talk).into_iter().map(|(id, recall)| (recall.at, id));
        prop_assert_eq!(carried(&talk), all.collect::<Vec<_>>());
        for (_, recall) in talk.shown().all_recalls() {
            prop_assert!(recall.quoted().is_none_or(|source| talk.shown().is_hidden(source)));
            prop_assert_eq!(talk.shown().place(recall.at), Place::Open);
        }
        while talk.step(Step::Unfold(0)).is_some() {}
        let lookups = talk.shown().all_recalls().filter(|(_, recall)| recall.quoted().is_none());
        let lookups = lookups.map(|(id, recall)| (recall.at, id));
        prop_assert_eq!(carried(&talk), lookups.collect::<Vec<_>>());
    }

    /// An excerpt is no step: `undo` takes back what it would have taken back without it, and keeps the excerpt if it can.
    #[test]
    fn undo_passes_over_excerpts(moves in any_moves(40), source in any::<u16>()) {
        let mut talk = Talk::of(&moves);
        let mut without = talk.clone();
        let Some(id) = talk.step(Step::Recall(source)) else { return Ok(()) };
        let recall = talk.shown().all_recalls().find(|(event, _)| *event == id);
        let (_, recall) = recall.expect("it was just shown");
        prop_assert_eq!(talk.log.state().step(), without.log.state().step());
        prop_assume!(talk.step(Step::Undo).is_some() && without.step(Step::Undo).is_some());
        prop_assert_eq!(talk.shown().items(), without.shown().items());
        let is_kept = talk.shown().all_recalls().any(|(event, _)| event == id);
        let is_needed = recall.quoted().is_none_or(|source| talk.shown().is_hidden(source))
            && talk.shown().place(recall.at) == Place::Open;
        let Ok(rewound) = talk.log.mark(id.prev().expect("a fold comes before"));
        prop_assert!(is_kept == is_needed || rewound.step != talk.log.state().step());
    }

    /// Rewinding shows what was shown then.
    #[test]
    fn rewinding_is_time_travel(
        moves in any_moves(40),
        side in any_side(),
        to in any_where(),
        at in any::<u16>(),
    ) {
        let mut talk = Talk::of(&moves);
        let Some(target) = talk.target(to, at) else { return Ok(()) };
        let then = talk.remembered(side, target);
        match steer::rewind(talk.log.state(), side, target, &talk.log) {
            Ok(event) => {
                let Event::Rewind(point) = event else { panic!("{event:?} is no rewind") };
                prop_assert_eq!(view_at(point, &talk.log), View::of(&then, &talk.log));
                talk.event(&event, None);
            }
            Err(Refused::Already) => {}
            Err(Refused::TooEarly) => {
                prop_assert_eq!(&then, &Shown::default());
                return Ok(());
            }
            Err(other) => panic!("{other}"),
        }
        prop_assert_eq!(talk.shown(), &then);
    }

    /// A message that a rewind hid can be rewound to, and what followed it by hand goes on.
    #[test]
    fn hidden_branches_can_be_rewound_to(
        moves in any_moves(40),
        back in any_rewind(),
        says in any_says(),
        at in any::<prop::sample::Index>(),
    ) {
        let mut talk = Talk::of(&moves);
        talk.step(back);
        talk.say(says);
        let path: BTreeSet<Seq> = talk.path().into_iter().collect();
        let all = (1..=talk.at().seq).filter_map(Seq::new);
        let hidden: Vec<Seq> = all.filter(|seq| !path.contains(seq)).collect();
        prop_assume!(!hidden.is_empty());
        let seq = hidden[at.index(hidden.len())];
        let target = steer::Target::Message(seq.get());
        let then = talk.remembered(Side::To, target);
        let event = steer::rewind(talk.log.state(), Side::To, target, &talk.log);
        talk.event(&event.expect("a hidden message is in the past"), None);
        prop_assert_eq!(talk.shown(), &then);
        prop_assert_eq!(talk.shown().last(), Some(seq));
        talk.say(says);
        prop_assert_eq!(faults(&talk), "", "{:?}", talk.view());
    }

    /// Undoing a step shows what was shown before it.
    #[test]
    fn undo_takes_back_the_step(moves in any_moves(40), step in any_step()) {
        let mut talk = Talk::of(&moves);
        let before = talk.clone();
        prop_assume!(is_step(&talk, step) && talk.step(step).is_some());
        talk.step(Step::Undo).expect("a step can be undone");
        prop_assert_eq!(talk.shown(), before.shown());
        prop_assert_eq!(talk.log.state().step(), before.log.state().step());
    }

    /// Messages appended since a step stay when it is undone, unless it is a rewind.
    #[test]
    fn undo_keeps_what_was_said_since(
        moves in any_moves(40),
        step in any_step(),
        says in prop::collection::vec(any_says(), 1..5),
    ) {
        let mut talk = Talk::of(&moves);
        let mut expected = talk.shown().clone();
        let last = talk.at().seq;
        prop_assume!(is_step(&talk, step) && talk.step(step).is_some());
        says.iter().for_each(|says| { talk.say(*says); });
        talk.step(Step::Undo).expect("a step can be undone");
        if !matches!(step, Step::Rewind(..)) {
            expected.append_up_to(last, talk.at().seq);
        }
        prop_assert_eq!(talk.shown(), &expected);
    }

    /// Redoing takes back as many undos as there were, one by one.
    #[test]
    fn redo_takes_back_undo(moves in any_moves(40), count in 1..6usize) {
        let mut talk = Talk::of(&moves);
        let mut undone = Vec::new();
        for _ in 0..count {
            let before = talk.clone();
            if talk.step(Step::Undo).is_some() {
                undone.push(before);
            }
        }
        for before in undone.iter().rev() {
            talk.step(Step::Redo).expect("every undo can be redone");
            prop_assert_eq!(talk.shown(), before.shown());
            prop_assert_eq!(talk.log.state().step(), before.log.state().step());
        }
        let redo = |talk: &Talk| talk.plan(Step::Redo).is_some();
        if let Some(before) = undone.first() {
            prop_assert_eq!(redo(&talk), redo(before));
        }
    }

    /// A message or a new step makes undos final; a fact does not.
    #[test]
    fn a_message_or_a_step_empties_redo(
        moves in any_moves(40),
        says in any_says(),
        step in any_step(),
    ) {
        let mut talk = Talk::of(&moves);
        prop_assume!(talk.step(Step::Undo).is_some());
        let mut told = talk.clone();
        told.say(says);
        prop_assert!(told.plan(Step::Redo).is_none());
        let fact = is_step(&talk, step) && talk.step(step).is_some();
        prop_assert_eq!(talk.plan(Step::Redo).is_none(), fact);
    }

    /// Opening a fold shows what was shown before it, and what was said since.
    #[test]
    fn unfold_takes_back_the_fold(
        moves in any_moves(40),
        fold in any_fold(),
        says in prop::collection::vec(any_says(), 0..3),
    ) {
        let mut talk = Talk::of(&moves);
        let mut expected = talk.shown().clone();
        let last = talk.at().seq;
        let Some(id) = talk.step(fold) else { return Ok(()) };
        says.iter().for_each(|says| { talk.say(*says); });
        let event = steer::unfold(talk.log.state(), id, &talk.log);
        talk.event(&event.expect("a new fold is outermost"), None);
        expected.append_up_to(last, talk.at().seq);
        prop_assert_eq!(talk.shown(), &expected);
    }

    /// Opening folds until there is none shows every message of the path.
    #[test]
    fn opening_every_fold_shows_the_whole_path(moves in any_moves(40)) {
        let mut talk = Talk::of(&moves);
        let path = talk.path();
        while talk.step(Step::Unfold(0)).is_some() {}
        prop_assert_eq!(told(&talk), path.iter().copied().collect::<BTreeSet<_>>());
        prop_assert_eq!(talk.path(), path);
    }

    /// Folds, pins and taking them back never lose a message of the path.
    #[test]
    fn only_rewinds_change_the_path(moves in any_moves(40)) {
        let mut talk = Talk::default();
        for next in &moves.0 {
            let (before, rewinds) = (talk.clone(), may_rewind(&talk, next));
            talk.play(next);
            let mut path = before.path();
            path.extend(Seq::new(talk.at().seq).filter(|seq| seq.get() > before.at().seq));
            prop_assert!(rewinds || path == talk.path(), "{:?} changed {:?}", next, path);
        }
    }

    /// Active folds are disjoint and in order, none cuts a round, and none covers a mask.
    #[test]
    fn rounds_are_shown_or_hidden_whole(moves in any_moves(40)) {
        let mut talk = Talk::default();
        for next in &moves.0 {
            talk.play(next);
            let spans = || talk.shown().items().iter().map(Item::span);
            prop_assert!(spans().zip(spans().skip(1)).all(|(a, b)| a.to() < b.from()));
            for (seq, ..) in talk.shown().all_masks() {
                prop_assert_eq!(talk.shown().place(seq), Place::Open);
            }
            let told = told(&talk);
            for seq in talk.path() {
                let round = talk.round(seq);
                prop_assert_eq!(talk.shown().place(seq), talk.shown().place(round));
                prop_assert_eq!(told.contains(&seq), told.contains(&round));
            }
        }
    }

    /// Messages tied by ids are shown or hidden together.
    #[test]
    fn tied_rounds_are_shown_or_hidden_together(moves in any_moves(40)) {
        let mut talk = Talk::default();
        for next in &moves.0 {
            // A tie that came after a fold was opened is cut if that is taken back.
            if opens_or_reverses(next) {
                continue;
            }
            talk.play(next);
            let told = told(&talk);
            let Ok(floor) = Floor::of(talk.shown(), &talk.log);
            for seq in talk.path().into_iter().filter(|seq| !floor.holds(*seq)) {
                let Ok(record) = talk.log.record(seq);
                let between = |other: &Seq| record.tied <= *other && *other <= seq;
                let between: Vec<Seq> = talk.path().into_iter().filter(between).collect();
                let same = between.iter().all(|other| talk.shown().place(*other) == talk.shown().place(seq));
                prop_assert!(same, "{seq} is tied to {} {:?}", record.tied, talk.view());
                prop_assert_eq!(told.contains(&seq), told.contains(&record.tied));
            }
        }
    }

    /// The view from a visible round on is the end of the whole view.
    #[test]
    fn a_view_can_be_laid_out_from_any_visible_round(moves in any_moves(40)) {
        let talk = Talk::of(&moves);
        let view = talk.view();
        let whole = parts(&view);
        for from in talk.uncovered().into_iter().filter(|seq| talk.round(*seq) == *seq) {
            let Ok(since) = View::since(talk.shown(), from, &talk.log);
            let at = whole.iter().position(|part| part.starts_at(from));
            // Notes that come before any request belong to the first round.
            let at = at.filter(|_| from != Seq::FIRST).unwrap_or(0);
            prop_assert_eq!(&parts(&since), &whole[at..]);
            prop_assert_eq!(since.is_open(), view.is_open());
        }
    }

    /// A pass of several folds is undone, and redone, in one step.
    #[test]
    fn a_pass_is_one_step(
        moves in any_moves(40),
        folds in prop::collection::vec(any_fold(), 2..5),
    ) {
        let mut talk = Talk::of(&moves);
        let before = talk.shown().clone();
        prop_assume!(!talk.pass(&folds).is_empty());
        let after = talk.shown().clone();
        talk.step(Step::Undo).expect("a pass can be undone");
        prop_assert_eq!(talk.shown(), &before);
        talk.step(Step::Redo).expect("an undo can be redone");
        prop_assert_eq!(talk.shown(), &after);
    }

    /// A fold hides as many messages as its cover said, and only from what was asked, widened.
    #[test]
    fn a_cover_counts_what_its_fold_hides(moves in any_moves(40), fold in any_cover()) {
        let mut talk = Talk::of(&moves);
        let Step::Fold(cause, from, to) = fold else { panic!("{fold:?} is no cover") };
        let Some((from, to)) = talk.any_seq(from).zip(talk.any_seq(to)) else { return Ok(()) };
        let asked = Span::new(from.min(to), from.max(to)).expect("in order");
        let Ok(cover) = steer::cover(talk.log.state(), asked, &talk.log) else { return Ok(()) };
        let id = talk.event(&steer::folded(cause, &cover, 3), None);
        let told = told(&talk);
        let hidden = |seq: &Seq| talk.shown().place(*seq) == Place::Under(id) && !told.contains(seq);
        let hidden = talk.path().iter().filter(|seq| hidden(seq)).count() as u64;
        prop_assert_eq!((cover.messages, cover.tokens), (hidden, 10 * hidden));
    }

    /// A truncation really shrinks the view, or is refused.
    #[test]
    fn truncating_shrinks_the_view_until_it_is_refused(
        moves in any_moves(60),
        percent in 1..=100u8,
    ) {
        let mut talk = Talk::of(&moves);
        let weight = |talk: &Talk| {
            told(talk).len() + folds(talk.shown()).filter(|f| f.cause == Cause::Summary).count()
        };
        let mut before = weight(&talk);
        while talk.step(Step::Truncate(percent)).is_some() {
            prop_assert!(weight(&talk) < before, "{:?}", talk.view());
            before = weight(&talk);
        }
    }

    /// Truncations between summaries leave one marker each, however many there were.
    #[test]
    fn markers_do_not_pile_up(moves in any_moves(60)) {
        let mut talk = Talk::default();
        for next in &moves.0 {
            if makes_markers_by_hand(next) {
                continue;
            }
            talk.play(next);
            let count = |cause| folds(talk.shown()).filter(|fold| fold.cause == cause).count();
            let (markers, summaries) = (count(Cause::Window), count(Cause::Summary));
            prop_assert!(markers <= summaries + 1, "{:?}", talk.view());
        }
    }

    /// Events that no planner would write do no harm: the log goes on.
    #[test]
    fn senseless_events_do_no_harm(
        moves in any_moves(30),
        events in prop::collection::vec((0..10u8, any::<u16>(), any::<u16>()), 1..12),
        says in any_says(),
    ) {
        let mut talk = Talk::of(&moves);
        talk.say(Says::Request);
        for (kind, a, b) in events {
            let event = senseless(&talk, kind, a, b);
            talk.event(&event, None);
            talk.view();
            let Ok(_) = Floor::of(talk.shown(), &talk.log);
        }
        let seq = talk.say(says);
        prop_assert_eq!(talk.shown().place(seq), Place::Open);
    }

    /// A pin and its unpin leave no trace.
    #[test]
    fn unpin_takes_back_the_pin(moves in any_moves(40), pin in any_pin()) {
        let mut talk = Talk::of(&moves);
        let before = talk.shown().clone();
        let pinned = match talk.plan(pin) {
            Some(Event::Pin(Pin::Message(seq))) => Pinned::Message(seq),
            Some(Event::Pin(Pin::Note { .. })) => Pinned::Note(talk.log.state().next_event()),
            _ => return Ok(()),
        };
        talk.step(pin);
        let event = steer::unpin(talk.log.state(), pinned, &talk.log);
        talk.event(&event.expect("a new pin can be taken away"), None);
        prop_assert_eq!(talk.shown(), &before);
    }
}

/// Returns the faults of the view, one per line.
fn faults(talk: &Talk) -> String {
    let Ok(floor) = Floor::of(talk.shown(), &talk.log);
    let view = talk.view();
    let verdict = check(lines(talk, &view), &floor);
    let mut faults: Vec<String> = verdict.faults.iter().map(ToString::to_string).collect();
    if verdict.open != view.is_open() {
        faults.push(format!("open is {} to the view", view.is_open()));
    }
    faults.join("\n")
}

/// The messages that the view shows.
fn told(talk: &Talk) -> BTreeSet<Seq> {
    let seqs = lines(talk, &talk.view())
        .into_iter()
        .filter_map(|line| line.source.seq());
    seqs.collect()
}

fn folds(shown: &Shown) -> impl Iterator<Item = &infold_log::Folded> {
    shown.items().iter().filter_map(|item| match item {
        Item::Fold(fold) => Some(&**fold),
        Item::Run(_) => None,
    })
}

/// A view with its spans taken apart.
fn parts(view: &View) -> Vec<Part> {
    let pieces = view.pieces().iter();
    let part = |shows: &Shows| match shows {
        Shows::Verbatim(span) => span.seqs().map(Part::Message).collect(),
        other => vec![Part::Other(other.clone())],
    };
    pieces.flat_map(|piece| part(&piece.shows)).collect()
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Message(Seq),
    Other(Shows),
}

impl Part {
    fn starts_at(&self, seq: Seq) -> bool {
        match self {
            Part::Message(first) => *first == seq,
            Part::Other(Shows::Round { members, .. }) => members.first() == Some(&seq),
            Part::Other(_) => false,
        }
    }
}

/// Says whether a move could be undone afterwards.
fn is_step(talk: &Talk, step: Step) -> bool {
    talk.plan(step).is_some_and(|event| event.is_step())
}

/// Says whether a move is a rewind, or takes one back.
fn may_rewind(talk: &Talk, next: &Move) -> bool {
    let state = talk.log.state();
    let rewinds = |step: Option<EventId>| {
        step.is_some_and(|step| {
            let Ok(mark) = talk.log.mark(step);
            mark.rewinds
        })
    };
    match next {
        Move::Step(Step::Rewind(..)) => true,
        Move::Step(Step::Undo) => rewinds(state.step()),
        Move::Step(Step::Redo) => {
            let Ok(undo) = state.undone(&talk.log);
            let step = undo.and_then(EventId::prev).and_then(|before| {
                let Ok(mark) = talk.log.mark(before);
                mark.step
            });
            rewinds(step)
        }
        _ => false,
    }
}

fn opens_or_reverses(next: &Move) -> bool {
    use Step::{Redo, Undo, Unfold, UnfoldAny};
    matches!(next, Move::Step(Unfold(_) | UnfoldAny(_) | Undo | Redo))
}

fn makes_markers_by_hand(next: &Move) -> bool {
    let by_hand = |step: &Step| match step {
        Step::Fold(cause, ..) => *cause == Cause::Window,
        Step::Unfold(_) | Step::UnfoldAny(_) | Step::Pin(_) => true,
        _ => false,
    };
    match next {
        Move::Step(step) => by_hand(step),
        Move::Pass(steps) => steps.iter().any(by_hand),
        Move::Say(_) => false,
    }
}

/// An event about messages and events that exist, and nothing more can be said for it.
fn senseless(talk: &Talk, kind: u8, a: u16, b: u16) -> Event {
    let (from, to) = (talk.any_seq(a), talk.any_seq(b));
    let (from, to) = (from.expect("some message"), to.expect("some message"));
    let span = Span::new(from.min(to), from.max(to)).expect("in order");
    let id = EventId::new(u64::from(a) + 1).expect("one more");
    let hides = match kind {
        0 => Hides::Rounds(Cause::Summary, span),
        1 => Hides::Rounds(Cause::Window, span),
        _ => Hides::Part {
            seq: from,
            part: 0,
            tokens: 99,
        },
    };
    let events = u64::from(b) % (talk.at().event + 1);
    let after = EventId::new(events).map_or(0, |id| {
        let Ok(mark) = talk.log.mark(id);
        mark.after
    });
    match kind {
        0..=2 => Event::Fold(Fold { hides, tokens: 1 }),
        3 => Event::Unfold(id),
        4 => Event::Pin(Pin::Message(from)),
        5 => Event::Unpin(Pinned::Message(from)),
        6 => Event::Rewind(Point {
            seq: after,
            event: events,
        }),
        7 => Event::Undo,
        8 => Event::Recall(Recall {
            at: to,
            source: Some(from).filter(|from| from.get() % 3 > 0),
            tokens: 1,
        }),
        _ => Event::Redo,
    }
}

/// The first request may mention what was said before it, if a conversation begins with the model.
#[test]
fn what_is_always_shown_does_not_widen_what_a_pin_keeps() {
    let say = Move::Say;
    let linked = |role, kind| Move::Say(Says::Linked(role, kind, 5, 0));
    let moves = Moves(vec![
        say(Says::System),
        linked(Role::Assistant, LinkKind::Continues),
        say(Says::Empty(Role::Assistant)),
        linked(Role::User, LinkKind::Mentions),
        say(Says::Empty(Role::Assistant)),
    ]);
    let mut talk = Talk::of(&moves);
    let seq = |seq| Seq::new(seq).expect("not zero");
    talk.event(&Event::Pin(Pin::Message(seq(2))), None);
    let asked = Span::new(seq(2), seq(3)).expect("in order");
    let cover = steer::cover(talk.log.state(), asked, &talk.log).expect("they are visible");
    talk.event(&steer::folded(Cause::Summary, &cover, 3), None);
    let told = told(&talk);
    let hidden = talk.path().iter().filter(|seq| !told.contains(seq)).count() as u64;
    assert_eq!(
        (cover.messages, told.contains(&seq(2))),
        (hidden, true),
        "{cover:?}"
    );
}
