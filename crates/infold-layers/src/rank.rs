//! The order in which the items of a part are selected.

use crate::{Attribute, BuildRequest, Field, LayerItem};

/// An observation counts as recent for this long.
const RECENT_MILLIS: u64 = 60_000;

/// The sort key of an item within its part, the greatest first: its priority, whether it is the only one of its field,
/// whether it is recent, its relevance and its time.
pub type ItemRank = (i64, bool, bool, f64, Option<u64>);

/// Returns the rank of an item; `now` is in milliseconds since 1970.
pub fn rank(field: Field, item: &LayerItem, relevance: Option<f64>, now: u64) -> ItemRank {
    let is_fresh = |time: u64| now.saturating_sub(time) < RECENT_MILLIS;
    let is_recent = field == Field::Observations && item.time.is_some_and(is_fresh);
    // The only item of a field comes before items of lists: the phase matters more than one of many permissions.
    let is_single = !field.is_list();
    let relevance = relevance.unwrap_or(0.0);
    (item.priority, is_single, is_recent, relevance, item.time)
}

/// Returns how well each item of a field matches the goal; none if the field is not ranked by that.
pub fn scores(
    field: Field,
    items: &[LayerItem],
    goal: &str,
    request: &BuildRequest<'_>,
) -> Option<Vec<Option<f64>>> {
    // Retrieved items have the relevance that the search gave them.
    let stated = |item: &LayerItem| item.attribute(Attribute::Relevance)?.parse().ok();
    if field == Field::Retrieved {
        return Some(items.iter().map(stated).collect());
    }
    if !request.ranked.contains(&field) || goal.is_empty() {
        return None;
    }
    let texts: Vec<&str> = items.iter().map(|item| item.text.as_str()).collect();
    let scores = (request.score)(goal, &texts);
    // The caller's function may return any number of scores.
    (scores.len() == items.len()).then(|| scores.into_iter().map(Some).collect())
}
