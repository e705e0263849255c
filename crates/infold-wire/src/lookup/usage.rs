//! Adds up the usage of several calls, with all members that a provider reports.

use crate::reply::growing_json::{array, object, raw};
use crate::{Json, JsonKind};

/// Adds the numbers of two reports; other values are those of the second.
pub fn sum_usage(before: &str, now: &str) -> String {
    match (Json::parse(before.as_bytes()), Json::parse(now.as_bytes())) {
        (Ok(before), Ok(now)) => sum(before, now, 0),
        (Ok(_), Err(_)) => before.to_owned(),
        (Err(_), _) => now.to_owned(),
    }
}

/// Reports are not nested deeper.
const MAX_DEPTH: usize = 8;

fn sum(before: Json<'_>, now: Json<'_>, depth: usize) -> String {
    match (before.kind(), now.kind()) {
        _ if depth > MAX_DEPTH => raw(now),
        (JsonKind::Number, JsonKind::Number) => add(before, now),
        (JsonKind::Object, JsonKind::Object) => {
            let mut members: Vec<(String, Option<String>)> = Vec::new();
            for (key, value) in now.members() {
                let name = String::from_utf8_lossy(&key.name()).into_owned();
                let value = match before.get(&name) {
                    Some(other) => sum(other, value, depth + 1),
                    None => raw(value),
                };
                members.push((name, Some(value)));
            }
            for (key, value) in before.members() {
                let name = String::from_utf8_lossy(&key.name()).into_owned();
                if now.get(&name).is_none() {
                    members.push((name, Some(raw(value))));
                }
            }
            let members: Vec<(&str, Option<String>)> = members
                .iter()
                .map(|(name, value)| (name.as_str(), value.clone()))
                .collect();
            object(&members)
        }
        // Counts by kind of content, in the same order.
        (JsonKind::Array, JsonKind::Array)
            if before.elements().count() == now.elements().count() =>
        {
            let pairs = before.elements().zip(now.elements());
            let sums: Vec<String> = pairs.map(|(one, two)| sum(one, two, depth + 1)).collect();
            array(&sums).unwrap_or_else(|| "[]".to_owned())
        }
        // A count that is missing in one report is not undone by that.
        (JsonKind::Number | JsonKind::Object, JsonKind::Null) => raw(before),
        _ => raw(now),
    }
}

fn add(before: Json<'_>, now: Json<'_>) -> String {
    let whole = |json: Json<'_>| std::str::from_utf8(json.bytes()).ok()?.parse::<u64>().ok();
    match (whole(before), whole(now)) {
        (Some(before), Some(now)) => before.saturating_add(now).to_string(),
        _ => {
            let sum = before.number().unwrap_or(0.0) + now.number().unwrap_or(0.0);
            if sum.is_finite() {
                sum.to_string()
            } else {
                raw(now)
            }
        }
    }
}

/// Returns a report in which the members of a later one replace those before.
pub fn overlay_usage(before: &str, later: Json<'_>) -> String {
    let changes: Vec<(String, String)> = later
        .members()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| {
            (
                String::from_utf8_lossy(&key.name()).into_owned(),
                raw(value),
            )
        })
        .collect();
    let changes: Vec<(&str, Option<String>)> = changes
        .iter()
        .map(|(name, value)| (name.as_str(), Some(value.clone())))
        .collect();
    match Json::parse(before.as_bytes()) {
        Ok(before) => crate::reply::growing_json::with_members(before, &changes),
        Err(_) => object(&changes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_added_and_all_else_is_that_of_the_last() {
        let before = r#"{"input_tokens":10,"details":{"cached":3},"tier":"a","only":1,"by":[{"kind":"TEXT","count":2}]}"#;
        let now = r#"{"input_tokens":5,"details":{"cached":4,"new":1},"tier":"b","by":[{"kind":"TEXT","count":7}],"cost":null}"#;
        assert_eq!(
            sum_usage(before, now),
            r#"{"input_tokens":15,"details":{"cached":7,"new":1},"tier":"b","by":[{"kind":"TEXT","count":9}],"cost":null,"only":1}"#
        );
    }
}
