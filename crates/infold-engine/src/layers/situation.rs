//! The situation of a task by its layered state, for the policy for tools.

use infold_layers::{Field, LayerState};
use infold_log::Shown;
use infold_store::{Log, LogError};
use infold_tools::SituationChange;

use super::read_state;

/// A task is urgent if its deadline is at most this many milliseconds away, or has passed.
const URGENT_MILLIS: u64 = 3_600_000;

/// Returns the situation of a task by its state; empty if it has no state. `now` is in milliseconds since 1970.
pub fn task_situation(log: &Log, shown: &Shown, now: u64) -> Result<SituationChange, LogError> {
    if shown.state_changes().last.is_none() {
        return Ok(SituationChange::default());
    }
    Ok(situation_of(&read_state(log, shown)?, now))
}

fn situation_of(state: &LayerState, now: u64) -> SituationChange {
    let text = |field: Field| state.text(field).map(str::to_owned);
    let permissions = state.items(Field::Permissions).iter();
    let permissions: Vec<String> = permissions.map(|item| item.text.clone()).collect();
    let deadline = state.items(Field::Deadline).first();
    let deadline = deadline.and_then(|item| item.time);
    SituationChange {
        phase: text(Field::Phase),
        permissions: Some(permissions).filter(|given| !given.is_empty() || state.grants_nothing()),
        environment: text(Field::Environment),
        is_urgent: deadline.map(|deadline| deadline.saturating_sub(now) <= URGENT_MILLIS),
    }
}

#[cfg(test)]
mod tests {
    use infold_layers::{Author, Change, LayerItem};

    use super::*;

    #[test]
    fn permissions_that_are_set_to_none_grant_nothing() {
        let mut state = LayerState::default();
        let mut granted = |changes: &[Change]| {
            for change in changes {
                state.apply(change, Author::Person).expect("a change");
            }
            let mut again = LayerState::default();
            for change in state.to_changes() {
                again.apply(&change, Author::Person).expect("a change");
            }
            assert_eq!(again, state);
            situation_of(&state, 0).permissions
        };
        let set = |items: Vec<LayerItem>| Change::Set(Field::Permissions, items);
        assert_eq!(granted(&[]), None);
        assert_eq!(granted(&[set(Vec::new())]), Some(Vec::new()));
        let read = Some(vec!["read".to_owned()]);
        assert_eq!(granted(&[set(vec![LayerItem::new("read")])]), read);
        let last = Change::Remove(Field::Permissions, 1);
        assert_eq!(granted(&[last]), Some(Vec::new()));
    }

    #[test]
    fn a_deadline_within_an_hour_is_urgent() {
        let mut state = LayerState::default();
        assert_eq!(situation_of(&state, 0), SituationChange::default());
        let deadline = LayerItem {
            time: Some(10_000_000),
            ..LayerItem::new("later")
        };
        state.fill(Field::Deadline, vec![deadline]);
        state.fill(Field::Permissions, vec![LayerItem::new("read")]);
        assert_eq!(situation_of(&state, 6_399_999).is_urgent, Some(false));
        assert_eq!(situation_of(&state, 6_400_000).is_urgent, Some(true));
        assert_eq!(situation_of(&state, 20_000_000).is_urgent, Some(true));
        let granted = situation_of(&state, 0).permissions;
        assert_eq!(granted, Some(vec!["read".to_owned()]));
    }
}
