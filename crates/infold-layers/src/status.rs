//! The statuses of the steps of a plan, by their usual and other names.

/// The statuses of a step.
pub const STATUSES: [&str; 5] = [
    "pending",
    "in_progress",
    "completed",
    "blocked",
    "cancelled",
];

/// Other names that agents' lists of todos use.
const OTHER_NAMES: [(&str, &str); 12] = [
    ("open", "pending"),
    ("todo", "pending"),
    ("not_started", "pending"),
    ("doing", "in_progress"),
    ("in-progress", "in_progress"),
    ("inProgress", "in_progress"),
    ("active", "in_progress"),
    ("done", "completed"),
    ("complete", "completed"),
    ("finished", "completed"),
    ("canceled", "cancelled"),
    ("skipped", "cancelled"),
];

/// Returns the usual name of a status: `done` means `completed`. None if the name is unknown.
pub fn step_status(name: &str) -> Option<&'static str> {
    let same = STATUSES.into_iter().find(|status| *status == name);
    let other = || OTHER_NAMES.iter().find(|(other, _)| *other == name);
    same.or_else(|| other().map(|(_, status)| *status))
}

/// Returns all names of statuses that [`step_status`] knows.
pub fn status_names() -> impl Iterator<Item = &'static str> {
    let others = OTHER_NAMES.iter().map(|(other, _)| *other);
    STATUSES.into_iter().chain(others)
}
