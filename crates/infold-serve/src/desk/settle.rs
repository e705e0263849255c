//! Which task a request belongs to, and what of it is new.

use std::borrow::Cow;

use infold_log::steer::{Side, Target};
use infold_log::{Item, Past as _, Place, Role, Seq, Span};
use infold_store::{FoldLine, Key, Metadata, TaskError, Trigger, What, Writer};
use infold_wire::Wire;
use uuid::Uuid;

use super::{DeskError, Inner, TURNS, locked};
use crate::held::{Follows, Held};
use crate::told::Told;
use crate::{Call, Name};

/// Where a conversation was found.
pub(crate) struct Settled {
    /// Its task.
    pub task: Uuid,
    /// The last message of the conversation as it was told.
    pub base: Seq,
    /// The task has gone on since: the request is an old one that comes again.
    pub late: bool,
}

/// A place in a task up to which a conversation is known.
#[derive(Clone, Copy)]
struct Spot {
    task: Uuid,
    seq: Seq,
    /// So many of the request's messages are known.
    known: usize,
    /// Whoever set the client up named this task: it may be rewound.
    named: bool,
    /// It bears another name: it is left alone.
    foreign: bool,
}

/// A fold, and what it took to make it.
enum Kept {
    Fold(FoldLine),
    Mask(Seq, u32),
}

impl Inner {
    /// Finds the task of a conversation, or makes one, and keeps what is new.
    pub fn settle(&self, call: &Call, told: &mut Told) -> Result<Settled, DeskError> {
        let first = told.said.first().map_or(0, |said| said.digest[0]);
        let _turn = locked(&self.turns[usize::from(first) % TURNS]);
        /// Rows of the index that lead nowhere are dropped, and it is looked again.
        const TRIES: usize = 8;
        for _ in 0..TRIES {
            let Some(spot) = self.spot(call, told)? else {
                return self.begin(call, told);
            };
            let spot = self.shorter(told, spot)?.unwrap_or(spot);
            if let Some(settled) = self.go_on(call, told, spot)? {
                return Ok(settled);
            }
        }
        self.begin(call, told)
    }

    /// Looks a conversation up.
    fn spot(&self, call: &Call, told: &mut Told) -> Result<Option<Spot>, DeskError> {
        if let Some(Name::Given(name)) = &told.name
            && let Some(spot) = self.of_task(name, told)?
        {
            return Ok(Some(spot));
        }
        if let Some(previous) = told.params.previous.clone()
            && call.wire == Wire::Responses
        {
            return self.after_response(&previous, told);
        }
        let keys: Vec<Key> = told.said.iter().map(|said| said.key).collect();
        if told.name.is_none()
            && let Some((at, (task, seq))) = self.recent.find(&keys)
        {
            return Ok(Some(Spot {
                task,
                seq,
                known: at + 1,
                named: false,
                foreign: false,
            }));
        }
        let chains = self.chains();
        let Some((at, places)) = chains.find(&keys)? else {
            return Ok(None);
        };
        let Some(wanted) = told.name.as_ref().map(Name::key) else {
            return Ok(places.first().map(|(task, seq)| Spot {
                task: *task,
                seq: *seq,
                known: at + 1,
                named: false,
                foreign: false,
            }));
        };
        let mut spot: Option<Spot> = None;
        for (task, seq) in places.into_iter().take(16) {
            let names = chains.names_of(task)?;
            let own = names.contains(&wanted);
            let given = |name: &String| name.starts_with(GIVEN);
            let found = Spot {
                task,
                seq,
                known: at + 1,
                named: own && matches!(told.name, Some(Name::Given(_))),
                foreign: !own
                    && matches!(told.name, Some(Name::Given(_)))
                    && names.iter().any(given),
            };
            if own {
                return Ok(Some(found));
            }
            if spot.is_none_or(|spot| spot.foreign && !found.foreign) {
                spot = Some(found);
            }
        }
        Ok(spot)
    }

    /// A task of which a little less is known, and which ends just there, where going on with the other would
    /// mean a fork: conversations that say the same are told apart by where they end.
    fn shorter(&self, told: &Told, spot: Spot) -> Result<Option<Spot>, DeskError> {
        /// What was said since by one and not yet by the other: a question, and what tools gave back.
        const FEWER: usize = 4;
        // Whoever has no name and says nothing new takes what is there.
        let nothing_new = told.name.is_none() && spot.known == told.said.len();
        if spot.known == 0 || nothing_new || !spot.foreign && self.ends_at(spot)? {
            return Ok(None);
        }
        let wanted = told.name.as_ref().map(Name::key);
        for known in (spot.known.saturating_sub(FEWER).max(1)..spot.known).rev() {
            if !told.said[..known].iter().any(|said| said.is_reply) {
                break;
            }
            let chains = self.chains();
            let Some((0, places)) = chains.find(&[told.said[known - 1].key])? else {
                continue;
            };
            let mut spots = Vec::new();
            for (task, seq) in places.into_iter().take(16) {
                let names = chains.names_of(task)?;
                let own = wanted.as_ref().is_some_and(|name| names.contains(name));
                let given = names.iter().any(|name| name.starts_with(GIVEN));
                // Whoever has a name keeps to it.
                if own || wanted.is_none() && !given {
                    spots.push(Spot {
                        task,
                        seq,
                        known,
                        named: own && matches!(told.name, Some(Name::Given(_))),
                        foreign: false,
                    });
                }
            }
            drop(chains);
            for spot in spots {
                if self.ends_at(spot)? {
                    return Ok(Some(spot));
                }
            }
        }
        Ok(None)
    }

    /// Says whether a task has nothing to say beyond a spot.
    fn ends_at(&self, spot: Spot) -> Result<bool, DeskError> {
        let held = match self.open(spot.task) {
            Ok(held) => held,
            Err(TaskError::Unknown { .. } | TaskError::Ended { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let held = locked(&held);
        let there = held.log().state().last_seq() >= Some(spot.seq);
        Ok(there && held.follows(spot.seq)? == Follows::Nothing)
    }

    /// The spot in a task that is named by its id, unless it holds another conversation.
    fn of_task(&self, name: &str, told: &Told) -> Result<Option<Spot>, DeskError> {
        let Ok(task) = name.parse::<Uuid>() else {
            return Ok(None);
        };
        if self.contexts.place(task).is_none() {
            return Ok(None);
        }
        let held = self.open(task)?;
        let mut held = locked(&held);
        let Held { places, writer, .. } = &mut *held;
        let there = places.follow(writer.log())?;
        let pairs = there.iter().zip(&told.said);
        let known = pairs
            .take_while(|((_, log), said)| *log == said.digest)
            .count();
        let seq = match known.checked_sub(1) {
            Some(last) => there[last].0,
            // It has a system prompt at most: the conversation begins here.
            None if there.is_empty() => {
                let last = writer.log().state().shown().last();
                last.unwrap_or(Seq::FIRST)
            }
            None => return Ok(None),
        };
        Ok(Some(Spot {
            task,
            seq,
            known,
            named: true,
            foreign: false,
        }))
    }

    /// The spot behind a response that the provider keeps.
    fn after_response(&self, id: &str, told: &mut Told) -> Result<Option<Spot>, DeskError> {
        let found = self.chains().find(&[response_key(id)])?;
        let Some((task, seq)) = found.and_then(|(_, places)| places.first().copied()) else {
            return Ok(None);
        };
        let held = match self.open(task) {
            Ok(held) => held,
            Err(TaskError::Unknown { .. } | TaskError::Ended { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut held = locked(&held);
        let Held { places, writer, .. } = &mut *held;
        let there = places.follow(writer.log())?;
        let before = there.iter().take_while(|(at, _)| *at <= seq);
        told.go_on_from(before.map(|(_, digest)| *digest));
        Ok(Some(Spot {
            task,
            seq,
            known: 0,
            named: false,
            foreign: false,
        }))
    }

    /// Goes on with a task; nothing if it does not hold what the index says, which then forgets it.
    fn go_on(
        &self,
        call: &Call,
        told: &Told,
        mut spot: Spot,
    ) -> Result<Option<Settled>, DeskError> {
        let held = match self.open(spot.task) {
            Ok(held) => held,
            Err(TaskError::Unknown { .. }) => {
                self.forget(spot.task, None)?;
                return Ok(None);
            }
            Err(TaskError::Ended { .. }) => {
                return self.fork(call, told, spot, Vec::new()).map(Some);
            }
            Err(error) => return Err(error.into()),
        };
        let mut guard = locked(&held);
        if !holds(&guard, told, spot)? {
            self.forget(spot.task, Some(spot.seq))?;
            return Ok(None);
        }
        let empty = guard.log().state().shown().last().is_none();
        let follows = |held: &Held, seq| match empty {
            true => Ok(Follows::Nothing),
            false => held.follows(seq),
        };
        let mut follow = follows(&guard, spot.seq)?;
        if follow != Follows::Nothing && self.catch_up(told, &mut guard, &mut spot)? {
            follow = follows(&guard, spot.seq)?;
        }
        let next = told.said.get(spot.known);
        let settled = |base, late| Settled {
            task: spot.task,
            base,
            late,
        };
        let free = spot.named && self.is_idle(spot.task);
        match (follow, next) {
            _ if spot.foreign => {}
            (Follows::Nothing, _) => {
                let base = self.append(call, told, &mut guard, spot.known)?;
                return Ok(Some(settled(base.unwrap_or(spot.seq), false)));
            }
            // An answered request comes again. As long as nothing is folded, what comes of it can wait.
            (Follows::Reply | Follows::More, None) if is_unfolded(&guard) => {
                return Ok(Some(settled(spot.seq, true)));
            }
            // The client has its own version of what the model said.
            (Follows::Reply, Some(next)) if next.is_reply && self.is_idle(spot.task) => {
                rewind(&mut guard, spot.seq)?;
                let base = self.append(call, told, &mut guard, spot.known)?;
                return Ok(Some(settled(base.unwrap_or(spot.seq), false)));
            }
            _ if free => {
                rewind(&mut guard, spot.seq)?;
                let base = self.append(call, told, &mut guard, spot.known)?;
                return Ok(Some(settled(base.unwrap_or(spot.seq), false)));
            }
            _ => {}
        }
        let kept = kept(&guard, spot.seq)?;
        drop(guard);
        self.fork(call, told, spot, kept).map(Some)
    }

    /// Goes further along what the task holds than the index did. Whoever was stopped between the
    /// one and the other left it behind. Says whether it went.
    fn catch_up(&self, told: &Told, held: &mut Held, spot: &mut Spot) -> Result<bool, DeskError> {
        let Held { places, writer, .. } = &mut *held;
        let there = places.follow(writer.log())?;
        let from = there.partition_point(|(seq, _)| *seq <= spot.seq);
        let on_path = from
            .checked_sub(1)
            .is_some_and(|at| there[at].0 == spot.seq);
        let pairs = there[from..].iter().zip(&told.said[spot.known..]);
        let same = pairs.take_while(|((_, log), said)| on_path && *log == said.digest);
        let rows: Vec<(Key, Seq)> = same.map(|((seq, _), said)| (said.key, *seq)).collect();
        let Some((_, last)) = rows.last() else {
            return Ok(false);
        };
        (spot.seq, spot.known) = (*last, spot.known + rows.len());
        self.index(held.id, &rows)?;
        Ok(true)
    }

    /// Makes a task for a conversation that nobody knows.
    fn begin(&self, call: &Call, told: &Told) -> Result<Settled, DeskError> {
        let task = self.contexts.create(Metadata {
            task_source: Some("proxy".to_owned()),
            task_id: told.name.as_ref().map(|name| name.text().to_owned()),
            llm_provider: Some(call.provider.name.clone()),
            model: Some(told.model.clone()).filter(|model| !model.is_empty()),
            wire: Some(call.wire.name().to_owned()),
            ..Metadata::default()
        })?;
        self.metrics.tasks("made");
        self.tell(task, "task", r#"{"how":"new"}"#.to_owned());
        self.or_unmade(task, || {
            if told.params.previous.is_some() {
                // What came before is not here: such a conversation is never folded.
                self.chains().name(PARTIAL, task)?;
            }
            self.first(call, told, task, 0)
        })
    }

    /// Does something to a task that was made for it. If that fails, the task goes: its request
    /// passes untouched, and comes again with the next one.
    fn or_unmade<T>(
        &self,
        task: Uuid,
        work: impl FnOnce() -> Result<T, DeskError>,
    ) -> Result<T, DeskError> {
        work().inspect_err(|_| {
            self.drop_out(task);
            let unmade = self.contexts.unmake(task).map_err(DeskError::from);
            let forgotten = self.forget(task, None).map_err(DeskError::from);
            if let Err(error) = unmade.and(forgotten) {
                self.failed(&error);
            }
        })
    }

    /// Makes a task that goes on from an earlier point of another.
    fn fork(
        &self,
        call: &Call,
        told: &Told,
        spot: Spot,
        kept: Vec<Kept>,
    ) -> Result<Settled, DeskError> {
        let task = self.forked(spot.task, spot.seq, kept)?;
        let mut settled = self.or_unmade(task, || {
            if self.is_partial(spot.task)? {
                self.chains().name(PARTIAL, task)?;
            }
            self.first(call, told, task, spot.known)
        })?;
        settled.base = settled.base.max(spot.seq);
        Ok(settled)
    }

    /// Forks a task at a message; folds of what comes before it stay.
    fn forked(&self, parent: Uuid, seq: Seq, kept: Vec<Kept>) -> Result<Uuid, DeskError> {
        let task = self
            .contexts
            .fork(parent, Some(Target::Message(seq.get())))?;
        self.metrics.tasks("forked");
        self.tell(task, "task", format!(r#"{{"how":"fork","of":"{parent}"}}"#));
        self.or_unmade(task, || {
            let held = self.open(task)?;
            fold_again(&mut locked(&held).writer, kept)?;
            Ok(task)
        })
    }

    /// Forks the task of an exchange at what it asked.
    pub fn fork_at(&self, parent: &Held, seq: Seq) -> Result<Uuid, DeskError> {
        let kept = kept(parent, seq)?;
        let task = self.forked(parent.id, seq, kept)?;
        let mut chains = self.chains();
        for name in chains.names_of(parent.id)? {
            chains.name(&name, task)?;
        }
        Ok(task)
    }

    /// Keeps the first messages that are a task's own.
    fn first(
        &self,
        call: &Call,
        told: &Told,
        task: Uuid,
        known: usize,
    ) -> Result<Settled, DeskError> {
        let held = self.open(task)?;
        let mut guard = locked(&held);
        let base = self.append(call, told, &mut guard, known)?;
        let base = base.or(guard.log().state().shown().last());
        drop(guard);
        Ok(Settled {
            task,
            base: base.unwrap_or(Seq::FIRST),
            late: false,
        })
    }

    /// Keeps what is new; returns the last message, if there is one.
    fn append(
        &self,
        call: &Call,
        told: &Told,
        held: &mut Held,
        known: usize,
    ) -> Result<Option<Seq>, DeskError> {
        if let Some(name) = told.name.as_ref().map(Name::key)
            && !held.names.contains(&name)
        {
            self.chains().name(&name, held.id)?;
            held.names.push(name);
        }
        if told.said.len() <= known {
            return Ok(None);
        }
        let from = match known.checked_sub(1) {
            Some(last) => told.said[last].index + 1,
            None => told.envelope.leading,
        };
        let bodies: Vec<Cow<'_, [u8]>> = (from..told.messages())
            .map(|index| told.message(call, index))
            .collect::<Result<_, _>>()?;
        let Some(span) = held.writer.append(&bodies)? else {
            return Ok(None);
        };
        let seq = |index: usize| Seq::new(span.from().get() + (index - from) as u64);
        let new = told.said[known..].iter();
        let rows: Vec<(Key, Seq)> = new
            .filter_map(|said| Some((said.key, seq(said.index)?)))
            .collect();
        self.index(held.id, &rows)?;
        self.wrote(held);
        if brings_results(held, span)? {
            self.later.tools(held.id, span);
        }
        self.tell(
            held.id,
            "message",
            format!(r#"{{"from":{},"to":{}}}"#, span.from(), span.to()),
        );
        Ok(Some(span.to()))
    }

    /// What came before a task's first message is not here.
    pub fn is_partial(&self, task: Uuid) -> Result<bool, DeskError> {
        Ok(self
            .chains()
            .names_of(task)?
            .iter()
            .any(|name| name == PARTIAL))
    }
}

/// Names that somebody gave.
const GIVEN: &str = "given ";

/// A task whose conversation began elsewhere.
const PARTIAL: &str = "partial";

impl Name {
    /// What it is kept under.
    pub(crate) fn key(&self) -> String {
        match self {
            Name::Given(name) => format!("{GIVEN}{name}"),
            Name::Session(name) => format!("session {name}"),
        }
    }

    /// What it says.
    pub(crate) fn text(&self) -> &str {
        match self {
            Name::Given(name) | Name::Session(name) => name,
        }
    }
}

/// What a response that a provider keeps is found by.
pub(crate) fn response_key(id: &str) -> Key {
    crate::told::name(format!("response {id}").as_bytes())
}

/// Says whether a task really holds what the index says. After a power cut it may not.
fn holds(held: &Held, told: &Told, spot: Spot) -> Result<bool, DeskError> {
    let Some(last) = held.log().state().last_seq() else {
        return Ok(spot.known == 0);
    };
    if spot.seq > last {
        return Ok(false);
    }
    let Some(said) = spot.known.checked_sub(1).map(|at| told.said[at]) else {
        return Ok(true);
    };
    Ok(held.said_at(spot.seq)? == Some(said.digest))
}

/// Says whether messages bring what tools gave back.
fn brings_results(held: &Held, span: Span) -> Result<bool, DeskError> {
    let log = held.log();
    let mut requests = match span.from().prev() {
        Some(before) => log.record(before)?.sums.requests,
        None => 0,
    };
    for seq in span.seqs() {
        let record = log.record(seq)?;
        let asks = record.sums.requests > requests;
        requests = record.sums.requests;
        if record.role == Role::Tool || record.role == Role::User && !asks {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Says whether nothing of a task is folded away or added.
pub(crate) fn is_unfolded(held: &Held) -> bool {
    let shown = held.log().state().shown();
    let folded = shown
        .items()
        .iter()
        .any(|item| matches!(item, Item::Fold(_)));
    !folded && shown.all_masks().next().is_none() && shown.notes().next().is_none()
}

/// Goes back to a message; folds of what comes before it stay.
pub(crate) fn rewind(held: &mut Held, seq: Seq) -> Result<(), DeskError> {
    let kept = kept(held, seq)?;
    held.ready = None;
    held.writer.rewind(Side::To, Target::Message(seq.get()))?;
    fold_again(&mut held.writer, kept)
}

/// The folds that lie wholly before a message, or end with it.
fn kept(held: &Held, seq: Seq) -> Result<Vec<Kept>, DeskError> {
    let shown = held.log().state().shown();
    let mut kept = Vec::new();
    for item in shown.items() {
        if let Item::Fold(fold) = item
            && fold.span().to() <= seq
            && let What::Fold(line) = held.log().event(fold.id)?.what
        {
            kept.push(Kept::Fold(line));
        }
    }
    let masks = shown.all_masks().filter(|(masked, ..)| *masked <= seq);
    kept.extend(masks.map(|(masked, part, _)| Kept::Mask(masked, part)));
    Ok(kept)
}

/// Makes folds again that going back has opened.
fn fold_again(writer: &mut Writer, kept: Vec<Kept>) -> Result<(), DeskError> {
    if kept.is_empty() {
        return Ok(());
    }
    writer.begin_pass();
    let mut folded = Ok(());
    for one in kept {
        folded = fold_one(writer, one);
        if folded.is_err() {
            break;
        }
    }
    writer.end_pass(None)?;
    folded
}

/// Makes a fold again, unless it is there already, or what it hid is not on this path.
fn fold_one(writer: &mut Writer, kept: Kept) -> Result<(), DeskError> {
    let log = writer.log();
    let shown = log.state().shown();
    match kept {
        Kept::Fold(line) => {
            let there = shown.items().iter().any(|item| match item {
                Item::Fold(fold) => fold.span() == line.span,
                Item::Run(_) => false,
            });
            let cover = infold_log::steer::cover(log.state(), line.span, log).ok();
            let same = cover.filter(|cover| cover.span == line.span && !there);
            if let Some(cover) = same.filter(|cover| cover.messages == line.messages) {
                writer.fold(line.cause, &cover, Trigger::Auto, line.stand_in)?;
            }
        }
        Kept::Mask(seq, part) => {
            let mut masks = shown.all_masks();
            let there = masks.any(|(masked, its, _)| (masked, its) == (seq, part));
            drop(masks);
            if !there && shown.place(seq) == Place::Open {
                writer.mask(seq, part)?;
            }
        }
    }
    Ok(())
}
