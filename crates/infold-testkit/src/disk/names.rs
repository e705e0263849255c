//! Tasks and inputs by short names, so that command lines can be written down before there are ids.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::sandbox::{Program, Sandbox};
use super::shim::Mode;

/// The values of placeholders in a command line.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    inputs: PathBuf,
    tasks: BTreeMap<String, String>,
}

impl Names {
    pub(crate) fn new(inputs: &Path) -> Names {
        Names {
            inputs: inputs.to_owned(),
            tasks: BTreeMap::new(),
        }
    }

    /// The id of a task; nothing for a name that is not known.
    pub(crate) fn task(&self, name: &str) -> &str {
        self.tasks.get(name).map_or("", String::as_str)
    }

    pub(crate) fn keep(&mut self, name: &str, id: &str) {
        self.tasks.insert(name.to_owned(), id.to_owned());
    }

    pub(crate) fn input(&self, name: &str) -> PathBuf {
        self.inputs.join(name)
    }

    /// Words of a command line: `@main` is a task, `=chat.jsonl` an input.
    pub(crate) fn words(&self, line: &str) -> Vec<String> {
        let word = |word: &str| match (word.strip_prefix('@'), word.strip_prefix('=')) {
            (Some(name), _) => self.task(name).to_owned(),
            (_, Some(name)) => self.input(name).display().to_string(),
            _ => word.to_owned(),
        };
        line.split(' ').map(word).collect()
    }

    /// Runs a command that must succeed.
    ///
    /// `main: task new` keeps the id of the task that it makes, `task tool @main < record.json` reads an input.
    pub(crate) fn perform(
        &mut self,
        program: &Program,
        sandbox: &Sandbox,
        line: &str,
        mode: Option<Mode>,
    ) -> Result<(), String> {
        let (name, command) = match line.split_once(": ") {
            Some((name, command)) => (Some(name), command),
            None => (None, line),
        };
        let (command, input) = match command.split_once(" < ") {
            Some((command, input)) => (command, Some(self.input(input))),
            None => (command, None),
        };
        let ran = sandbox.run_with(program, &self.words(command), input.as_deref(), mode);
        if !ran.is_ok() {
            return Err(format!("infold {command}: {}", ran.ending()));
        }
        if let Some(name) = name {
            let objects = ran.objects();
            let id = |object: &'_ Value| {
                let id = object["uuid"].as_str().or(object["task"].as_str());
                id.map(str::to_owned)
            };
            let id = objects.iter().find_map(id);
            self.keep(
                name,
                &id.ok_or_else(|| format!("infold {command}: names no task"))?,
            );
        }
        Ok(())
    }
}
