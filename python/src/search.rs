//! The Python functions that search messages and list tasks in a contexts directory.

use infold::search::{
    DEFAULT_LIMIT, SearchMode, SearchQuery, answer_json, parse_end_time, parse_role, parse_time,
};
use infold::show;
use infold_store::{Contexts, Durability, Filter};
use pyo3::prelude::*;
use serde_json::Value;

use crate::failure::BindingError;

/// The parameters of a search: a dictionary that `package/infold` builds. It must contain all of these items.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SearchOptions {
    text: String,
    exact: bool,
    regex: bool,
    task: Option<String>,
    hidden: bool,
    role: Option<String>,
    tool: Option<String>,
    file: Option<String>,
    since: Option<String>,
    until: Option<String>,
    limit: Option<usize>,
}

/// Searches the messages of one task or of all tasks; returns a JSON object with the hits.
#[pyfunction]
pub fn search(py: Python<'_>, contexts: &str, options: SearchOptions) -> PyResult<String> {
    let answer = py.detach(|| {
        let contexts = Contexts::new(contexts, Durability::Turn);
        options.run(&contexts)
    })?;
    Ok(answer.to_string())
}

impl SearchOptions {
    /// Checks the parameters and runs the search.
    fn run(&self, contexts: &Contexts) -> Result<Value, BindingError> {
        let mode = match (self.exact, self.regex) {
            (true, true) => {
                return Err(BindingError::usage(
                    "a text is either exact or a regular expression",
                ));
            }
            (true, false) => SearchMode::Exact,
            (false, true) => SearchMode::Regex,
            (false, false) => SearchMode::Words,
        };
        let task = self.task.as_ref().map(|task| contexts.resolve(task));
        let optional_time = |text: &Option<String>, parse: fn(&str) -> Result<u64, String>| {
            let time = text.as_deref().map(parse);
            time.transpose().map_err(BindingError::usage)
        };
        let role = self.role.as_deref().map(parse_role);
        let query = SearchQuery {
            text: self.text.clone(),
            mode,
            tasks: task.transpose()?.map(|task| vec![task]),
            only_hidden: self.hidden,
            role: role.transpose().map_err(BindingError::usage)?,
            tool: self.tool.clone(),
            file: self.file.clone(),
            since: optional_time(&self.since, parse_time)?,
            until: optional_time(&self.until, parse_end_time)?,
            limit: Some(self.limit.unwrap_or(DEFAULT_LIMIT)),
        };
        Ok(answer_json(&query, &query.run(contexts)?))
    }
}

/// Lists the tasks of a contexts directory as a JSON array, the one with the newest activity first.
#[pyfunction]
pub fn list_tasks(py: Python<'_>, contexts: &str, limit: Option<u64>) -> PyResult<String> {
    let rows = py.detach(|| {
        let contexts = Contexts::new(contexts, Durability::Turn);
        // Opening the registry would create the directory.
        if !contexts.root().exists() {
            return Ok(Vec::new());
        }
        let filter = Filter {
            status: None,
            user: None,
            limit,
        };
        contexts.rows(&filter).map_err(BindingError::from)
    })?;
    let rows: Vec<Value> = rows.iter().map(show::row).collect();
    Ok(Value::from(rows).to_string())
}
