//! Where a conversation is known from.

use infold_log::Seq;
use infold_store::{Key, TaskError};
use infold_wire::Wire;
use uuid::Uuid;

use super::settle::{GIVEN, response_key};
use super::{DeskError, Inner, LITTLE, locked, tried};
use crate::held::{Follows, Held};
use crate::told::Told;
use crate::{Call, Name};

/// A place in a task up to which a conversation is known.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub task: Uuid,
    pub seq: Seq,
    /// So many of the request's messages are known.
    pub known: usize,
    /// Whoever set the client up named this task: it may be rewound.
    pub named: bool,
    /// It bears another name: it is left alone.
    pub foreign: bool,
}

impl Inner {
    /// Says whether a conversation goes on that is at hand, with little that is new.
    ///
    /// Only a hint: nothing goes wrong if it is not so any more when it comes to that.
    pub(super) fn is_near(&self, told: &Told) -> bool {
        let keys = told.said.iter().map(|said| &said.key);
        let Some((at, (task, seq))) = self.recent.find(keys) else {
            return false;
        };
        let new = told.envelope.messages.iter().skip(told.said[at].index + 1);
        let new: u64 = new.map(|range| range.end - range.start).sum();
        if new > LITTLE || self.turn(told).try_lock().is_err() {
            return false;
        }
        let Some(held) = self.opened(task) else {
            return false;
        };
        let Some(held) = tried(&held) else {
            return false;
        };
        // Else others are looked at too.
        let again = told.name.is_none() && at + 1 == told.said.len();
        let bears = |name: &Name| held.names.contains(&name.key());
        told.name.as_ref().is_none_or(bears)
            && (again || matches!(held.follows(seq), Ok(Follows::Nothing)))
    }

    /// Says whether a task is open, and known to have the name of a conversation that has one.
    fn bears(&self, task: Uuid, told: &Told) -> bool {
        let Some(name) = &told.name else { return true };
        let held = self.opened(task);
        held.is_some_and(|held| tried(&held).is_some_and(|held| held.names.contains(&name.key())))
    }

    /// Looks a conversation up.
    pub(super) fn spot(&self, call: &Call, told: &mut Told) -> Result<Option<Spot>, DeskError> {
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
        let keys = told.said.iter().map(|said| &said.key);
        if let Some((at, (task, seq))) = self.recent.find(keys)
            && self.bears(task, told)
        {
            return Ok(Some(Spot {
                task,
                seq,
                known: at + 1,
                named: matches!(told.name, Some(Name::Given(_))),
                foreign: false,
            }));
        }
        let keys: Vec<Key> = told.said.iter().map(|said| said.key).collect();
        let mut chains = self.index_of(&keys)?;
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
    pub(super) fn shorter(&self, told: &Told, spot: Spot) -> Result<Option<Spot>, DeskError> {
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
            let key = [told.said[known - 1].key];
            let mut chains = self.index_of(&key)?;
            let Some((0, places)) = chains.find(&key)? else {
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
}
