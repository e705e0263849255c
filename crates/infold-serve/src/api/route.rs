//! The table of routes, from which router and OpenAPI document are made.

use http::{Method, StatusCode};

use super::error::ApiError;
use super::reply::ApiReply;
use super::request::ApiRequest;
use super::{Api, manage, openapi, queries, status, steps, tasks};

/// An API route. The router and the OpenAPI document are both generated from these.
pub struct ApiRoute {
    pub method: Method,
    /// The path; `{task}` and `{range}` are places.
    pub path: &'static str,
    /// Its operation id.
    pub name: &'static str,
    /// Its summary in the OpenAPI document.
    pub about: &'static str,
    /// The parameters of the query it takes.
    pub query: &'static [QueryParameter],
    pub takes: Takes,
    pub gives: Gives,
    /// The status when all went well.
    pub status: StatusCode,
    pub run: fn(&Api, &ApiRequest) -> Result<ApiReply, ApiError>,
}

/// A parameter of the query.
pub struct QueryParameter {
    pub name: &'static str,
    pub about: &'static str,
    /// The JSON type of the parameter.
    pub kind: &'static str,
}

/// The content of a request body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    /// An object of this schema.
    Object(&'static str),
    /// Messages, as an array or one a line.
    Messages,
}

/// The content of a reply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    Nothing,
    Text,
    Events,
    /// An object of this schema.
    Object(&'static str),
    /// A list of elements of this schema.
    List(&'static str),
}

impl ApiRoute {
    /// Returns the path parameters, if a path belongs to this route.
    pub fn places(&self, path: &str) -> Option<Vec<String>> {
        let mut places = Vec::new();
        let (mut ours, mut theirs) = (self.path.split('/'), path.split('/'));
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return Some(places),
                (Some(our), Some(their)) if our.starts_with('{') => {
                    if their.is_empty() {
                        return None;
                    }
                    places.push(their.to_owned());
                }
                (Some(our), Some(their)) if our == their => {}
                _ => return None,
            }
        }
    }
}

const AT: QueryParameter = QueryParameter {
    name: "at",
    about: "As it was right after this: a message (32), an event (e3), or a time (2026-11-15T12:00Z)",
    kind: "string",
};

const fn number(name: &'static str, about: &'static str) -> QueryParameter {
    QueryParameter {
        name,
        about,
        kind: "integer",
    }
}

const fn text(name: &'static str, about: &'static str) -> QueryParameter {
    QueryParameter {
        name,
        about,
        kind: "string",
    }
}

const fn flag(name: &'static str, about: &'static str) -> QueryParameter {
    QueryParameter {
        name,
        about,
        kind: "boolean",
    }
}

const OK: StatusCode = StatusCode::OK;
const MADE: StatusCode = StatusCode::CREATED;

/// All routes.
#[rustfmt::skip]
pub static ROUTES: &[ApiRoute] = &[
    ApiRoute { method: Method::GET, path: "/healthz", name: "health", status: OK, run: status::health,
        about: "Says ok if tasks can be kept",
        query: &[], takes: Takes::Nothing, gives: Gives::Text },
    ApiRoute { method: Method::GET, path: "/metrics", name: "metrics", status: OK, run: status::metrics,
        about: "What the server counts of itself, as Prometheus reads it",
        query: &[], takes: Takes::Nothing, gives: Gives::Text },
    ApiRoute { method: Method::GET, path: "/infold/api/openapi.json", name: "openapi", status: OK, run: openapi::document,
        about: "This document",
        query: &[], takes: Takes::Nothing, gives: Gives::Object("Any") },
    ApiRoute { method: Method::GET, path: "/infold/api/events", name: "events", status: OK, run: status::events,
        about: "Changes as they happen, as server-sent events: task, message, fold, step, usage, failure; lagged says that some were missed",
        query: &[text("task", "Only those of this task")], takes: Takes::Nothing, gives: Gives::Events },
    ApiRoute { method: Method::GET, path: "/infold/api/usage", name: "usage", status: OK, run: tasks::usage,
        about: "What all tasks came to, in all and by model",
        query: &[text("user", "Only tasks of this user")], takes: Takes::Nothing, gives: Gives::Object("Usage") },
    ApiRoute { method: Method::GET, path: "/infold/api/search", name: "search", status: OK, run: queries::search,
        about: "Finds messages by their words, hidden ones too, best first",
        query: &[text("q", "What to search for: words, \"phrases\", -excluded words, prefixes*"), text("task", "Only this task, with the messages that it continues"),
            flag("hidden", "Only messages that the model does not see"), text("role", "Only messages of this role: user, model, tool or system"),
            text("tool", "Only calls of this tool, and their results"), text("file", "Only calls that touch this file, and their results; the end of a path is enough"),
            text("since", "Only messages from then on: a time, a date, or an age such as 3d"), text("until", "Only messages up to then; a date is meant to its end"),
            number("limit", "No more hits than so many; 20 if it is not said"), flag("exact", "Find the text exactly as it is written"),
            flag("regex", "Find what a regular expression matches")],
        takes: Takes::Nothing, gives: Gives::Object("Found") },
    ApiRoute { method: Method::GET, path: "/infold/api/tasks", name: "listTasks", status: OK, run: tasks::list,
        about: "The tasks, newest first",
        query: &[text("status", "Only those of this status: running, completed, failed …"), text("user", "Only those of this user"),
            number("limit", "No more than so many; 100 if it is not said")],
        takes: Takes::Nothing, gives: Gives::List("Task") },
    ApiRoute { method: Method::POST, path: "/infold/api/tasks", name: "makeTask", status: MADE, run: tasks::make,
        about: "Makes a task",
        query: &[], takes: Takes::Object("NewTask"), gives: Gives::Object("Made") },
    ApiRoute { method: Method::GET, path: "/infold/api/tasks/{task}", name: "showTask", status: OK, run: tasks::show,
        about: "All there is to say of one task",
        query: &[], takes: Takes::Nothing, gives: Gives::Object("WholeTask") },
    ApiRoute { method: Method::GET, path: "/infold/api/tasks/{task}/log", name: "log", status: OK, run: queries::log,
        about: "Messages and events as they happened, hidden ones too",
        query: &[number("from", "The first message; 1 if it is not said"), number("to", "The last message"),
            number("limit", "No more messages than so many: the first from `from` on, else the last"), AT],
        takes: Takes::Nothing, gives: Gives::List("Entry") },
    ApiRoute { method: Method::GET, path: "/infold/api/tasks/{task}/messages/{range}", name: "recall", status: OK, run: queries::recall,
        about: "Messages in full, hidden ones too: one (12), a range (12..40, 12..) or those of a fold (e3)",
        query: &[], takes: Takes::Nothing, gives: Gives::List("Recalled") },
    ApiRoute { method: Method::POST, path: "/infold/api/tasks/{task}/messages", name: "push", status: OK, run: tasks::push,
        about: "Appends messages, all or none; repeated with the same Idempotency-Key it appends nothing and answers as before",
        query: &[], takes: Takes::Messages, gives: Gives::Object("Pushed") },
    ApiRoute { method: Method::GET, path: "/infold/api/tasks/{task}/view", name: "view", status: OK, run: queries::view,
        about: "What the model sees",
        query: &[AT, QueryParameter { name: "raw", about: "Only the messages, just as the model gets them", kind: "boolean" }],
        takes: Takes::Nothing, gives: Gives::List("Piece") },
    ApiRoute { method: Method::GET, path: "/infold/api/tasks/{task}/folds", name: "folds", status: OK, run: queries::folds,
        about: "All folds ever made, and what became of them",
        query: &[AT], takes: Takes::Nothing, gives: Gives::List("Fold") },
    ApiRoute { method: Method::GET, path: "/infold/api/tasks/{task}/folds/{fold}", name: "fold", status: OK, run: queries::fold,
        about: "A fold with the text that the model sees in its place",
        query: &[], takes: Takes::Nothing, gives: Gives::Object("FoldText") },
    ApiRoute { method: Method::GET, path: "/infold/api/tasks/{task}/state", name: "state", status: OK, run: queries::state,
        about: "The layered state: a list of items for each field that holds something; the step `state` changes it",
        query: &[AT], takes: Takes::Nothing, gives: Gives::Object("Any") },
    ApiRoute { method: Method::GET, path: "/infold/api/tasks/{task}/layers", name: "layers", status: OK, run: queries::layers,
        about: "The document that a model is shown of the layered state, and what became of each item",
        query: &[AT, number("max_tokens", "The tokens that it may take; nine tenths of them are used")], takes: Takes::Nothing, gives: Gives::Object("Layers") },
    ApiRoute { method: Method::GET, path: "/infold/api/tasks/{task}/frames", name: "frames", status: OK, run: queries::frames,
        about: "What stood around the messages: instructions, tools, parameters, each time they changed; credentials are blanked",
        query: &[], takes: Takes::Nothing, gives: Gives::List("Frame") },
    ApiRoute { method: Method::POST, path: "/infold/api/tasks/{task}/steps", name: "step", status: OK, run: steps::step,
        about: "Takes a step: condense, truncate, mask, unfold, rewind, undo, redo, pin, note, unpin, state",
        query: &[], takes: Takes::Object("Step"), gives: Gives::Object("Taken") },
    ApiRoute { method: Method::POST, path: "/infold/api/tasks/{task}/manage", name: "manage", status: OK, run: manage::manage,
        about: "Folds as much as it takes to fit, or only says what would be folded",
        query: &[], takes: Takes::Object("Manage"), gives: Gives::Object("Managed") },
    ApiRoute { method: Method::POST, path: "/infold/api/tasks/{task}/fork", name: "fork", status: MADE, run: steps::fork,
        about: "Makes a task that continues this one, from its end or from a point in it",
        query: &[], takes: Takes::Object("Fork"), gives: Gives::Object("Forked") },
    ApiRoute { method: Method::POST, path: "/infold/api/tasks/{task}/redact", name: "redact", status: OK, run: steps::redact,
        about: "Takes what messages say, or what a pattern matches, out of the log for good; or only says what would go",
        query: &[], takes: Takes::Object("Redact"), gives: Gives::Object("Redacted") },
    ApiRoute { method: Method::POST, path: "/infold/api/tasks/{task}/complete", name: "complete", status: OK, run: tasks::complete,
        about: "Ends a task; it stays readable",
        query: &[], takes: Takes::Nothing, gives: Gives::Object("Ended") },
    ApiRoute { method: Method::POST, path: "/infold/api/tasks/{task}/fail", name: "fail", status: OK, run: tasks::fail,
        about: "Ends a task that failed; it stays readable",
        query: &[], takes: Takes::Object("Fail"), gives: Gives::Object("Ended") },
    ApiRoute { method: Method::POST, path: "/infold/api/tasks/{task}/release", name: "release", status: StatusCode::NO_CONTENT, run: tasks::release,
        about: "Lets go of a task, so that another process can write to it",
        query: &[], takes: Takes::Nothing, gives: Gives::Nothing },
];
