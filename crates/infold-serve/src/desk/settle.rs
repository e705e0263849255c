//! Which task a request belongs to, and what of it is new.

use std::borrow::Cow;
use std::sync::Mutex;

use infold::setup::in_effect;
use infold_log::steer::Target;
use infold_log::{Item, Past as _, Role, Seq, Span};
use infold_store::{Key, Log, Metadata, TaskError};
use uuid::Uuid;

use super::back::{Kept, fold_again, is_unused, kept, last_sent, rewind};
use super::spot::Spot;
use super::{DeskError, Inner, TURNS, locked};
use crate::held::{Follows, Held, Places};
use crate::told::Told;
use crate::{Call, Name, agent};

/// Where a conversation was found.
pub(crate) struct Settled {
    /// Its task.
    pub task: Uuid,
    /// The last message of the conversation as it was told.
    pub base: Seq,
}

/// What is known of a task at the point where it is forked.
struct Known {
    /// The folds that stay.
    kept: Vec<Kept>,
    /// The messages up to there that say something.
    places: Places,
}

impl Inner {
    /// Finds the task of a conversation, or makes one, and keeps what is new. From then on an
    /// exchange is under way in it, and whoever comes next knows.
    pub fn settle(&self, call: &Call, told: &mut Told) -> Result<Settled, DeskError> {
        let _turn = locked(self.turn(told));
        let settled = self.found_or_made(call, told)?;
        self.under_way(settled.task, true);
        Ok(settled)
    }

    fn found_or_made(&self, call: &Call, told: &mut Told) -> Result<Settled, DeskError> {
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

    /// Whoever begins like this takes turns.
    pub(super) fn turn(&self, told: &Told) -> &Mutex<()> {
        let first = told.said.first().map_or(0, |said| said.digest[0]);
        &self.turns[usize::from(first) % TURNS]
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
                let log = self.contexts.read(spot.task)?;
                let kept = kept(&log, must_show(&log, told, spot)?)?;
                let known = Known {
                    kept,
                    places: Places::default(),
                };
                return self.fork(call, told, spot, known).map(Some);
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
        let is_new = told.said.len() > spot.known;
        let settled = |base: Option<Seq>| Settled {
            task: spot.task,
            base: base.unwrap_or(spot.seq),
        };
        let free = spot.named && self.is_idle(spot.task);
        let unused = match follow {
            Follows::Elsewhere => self.is_idle(spot.task) && is_unused(&guard, spot.seq)?,
            Follows::Asked => self.is_idle(spot.task) && guard.is_unused_after(spot.seq)?,
            follow => follow == Follows::Reply,
        };
        match (follow, is_new) {
            _ if spot.foreign => {}
            (Follows::Nothing, _) => {
                let base = self.append(call, told, &mut guard, spot.known)?;
                return Ok(Some(settled(base)));
            }
            // An answered request comes again. As long as nothing is folded, what comes of it can wait.
            (Follows::Reply | Follows::Asked | Follows::More, false) if is_unfolded(&guard) => {
                return Ok(Some(settled(None)));
            }
            // What the task has behind it was never gone on with: the client has its own version of
            // what the model said, or asks again. Nothing is lost: a rewind only hides.
            _ if free || unused => {
                let before = must_show(guard.log(), told, spot)?;
                rewind(&mut guard, spot.seq, before)?;
                self.wrote(&mut guard);
                let base = self.append(call, told, &mut guard, spot.known)?;
                return Ok(Some(settled(base)));
            }
            _ => {}
        }
        let kept = kept(guard.log(), must_show(guard.log(), told, spot)?)?;
        let places = guard.places_up_to(spot.seq)?;
        // Whoever reads the fork need not find out what the index of its parent misses.
        let _ = guard.writer.save_index();
        drop(guard);
        self.fork(call, told, spot, Known { kept, places })
            .map(Some)
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
        self.index(held, &rows)?;
        Ok(true)
    }

    /// Makes a task for a conversation that nobody knows.
    fn begin(&self, call: &Call, told: &Told) -> Result<Settled, DeskError> {
        let mut metadata = Metadata {
            task_source: Some(SOURCE.to_owned()),
            task_id: told.name.as_ref().map(|name| name.text().to_owned()),
            task_type: told.name.as_ref().map(|name| name.kind().to_owned()),
            agent: call.agent.clone(),
            cwd: agent::directory(&call.body),
            ..Metadata::default()
        };
        made_by(told, &mut metadata);
        let model = metadata.model.as_deref();
        metadata.in_effect = in_effect(&self.config, model, metadata.context_length);
        let task = self.contexts.create(metadata)?;
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
        known: Known,
    ) -> Result<Settled, DeskError> {
        let task = self.forked(told, spot.task, spot.seq, known)?;
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
    fn forked(&self, told: &Told, parent: Uuid, seq: Seq, known: Known) -> Result<Uuid, DeskError> {
        let at = Some(Target::Message(seq.get()));
        let task = self
            .contexts
            .fork_as(parent, at, |metadata| made_by(told, metadata))?;
        self.metrics.tasks("forked");
        self.tell(task, "task", format!(r#"{{"how":"fork","of":"{parent}"}}"#));
        self.or_unmade(task, || {
            let held = self.open(task)?;
            let mut held = locked(&held);
            fold_again(&mut held.writer, known.kept)?;
            held.places = known.places;
            self.wrote(&mut held);
            Ok(task)
        })
    }

    /// Forks the task of an exchange at what it asked.
    pub fn fork_at(&self, told: &Told, parent: &mut Held, seq: Seq) -> Result<Uuid, DeskError> {
        let _ = parent.writer.save_index();
        let known = Known {
            kept: kept(parent.log(), last_sent(parent.log(), seq)?)?,
            places: parent.places_up_to(seq)?,
        };
        let task = self.forked(told, parent.id, seq, known)?;
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
        held.brought = Some(span.to());
        let seq = |index: usize| Seq::new(span.from().get() + (index - from) as u64);
        let new = told.said[known..].iter();
        let rows: Vec<(Key, Seq)> = new
            .filter_map(|said| Some((said.key, seq(said.index)?)))
            .collect();
        self.index(held, &rows)?;
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

/// Says of a new task what the request that made it says: what it goes on from may have been
/// asked of another model, on another wire.
fn made_by(told: &Told, metadata: &mut Metadata) {
    metadata.llm_provider = Some(told.provider.clone());
    metadata.model = Some(told.model.clone()).filter(|model| !model.is_empty());
    metadata.wire = Some(told.wire.name().to_owned());
}

/// Where tasks come from that this server makes.
pub(crate) const SOURCE: &str = "proxy";

/// Names that somebody gave.
pub(super) const GIVEN: &str = "given ";

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

    /// Which of both it is, for a task's metadata.
    fn kind(&self) -> &'static str {
        match self {
            Name::Given(_) => "named",
            Name::Session(_) => "session",
        }
    }

    /// The name that a task was made with.
    pub(super) fn of(metadata: &Metadata) -> Option<Name> {
        let text = metadata.task_id.clone()?;
        let names = [Name::Given(text.clone()), Name::Session(text)];
        names
            .into_iter()
            .find(|name| metadata.task_type.as_deref() == Some(name.kind()))
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

/// The first message that no fold may hide: what is sent last is always shown.
fn must_show(log: &Log, told: &Told, spot: Spot) -> Result<Seq, DeskError> {
    if told.said.len() > spot.known {
        return Ok(spot.seq.next());
    }
    last_sent(log, spot.seq)
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
