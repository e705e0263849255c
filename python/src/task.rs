//! A task: a conversation that is kept in a contexts directory.

use std::sync::{Mutex, PoisonError};

use infold::checkpoint::FileHistory;
use infold::layers::model::Transitions;
use infold::show::{LogSnapshot, RecallTarget, RecalledMessage, TaskReport, fold_json};
use infold::step::{self, FoldPermission, Step, StepContext, StepResult};
use infold::{Draft, Hooks, draft, manage};
use infold_log::steer::{Side, Target};
use infold_log::{EventId, Pinned, Seq, Span};
use infold_serve::acquire_task;
use infold_store::{
    ContentDigest, Contexts, Durability, Incoming, Log, Metadata, PushKey, Writer, now,
};
use infold_wire::Wire;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;
use uuid::Uuid;

use crate::failure::BindingError;
use crate::fold::render_view;
use crate::json_list::JsonList;
use crate::options::{FoldKeywords, KnownModel};

/// A task. It is opened for each call, so that other processes can use it in between.
#[pyclass(frozen, module = "infold._infold")]
pub struct Task {
    contexts: Contexts,
    id: Uuid,
    /// Held while a thread of this process writes to the task.
    writing: Mutex<()>,
}

/// The metadata of a new task, from a Python dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TaskMetadata {
    wire: String,
    model: Option<String>,
    provider: Option<String>,
    window: Option<u64>,
    user: Option<String>,
    agent: Option<String>,
    directory: Option<String>,
}

#[pymethods]
impl Task {
    /// Creates a task.
    #[staticmethod]
    fn create(py: Python<'_>, contexts: &str, redact: bool, about: TaskMetadata) -> PyResult<Task> {
        let made = py.detach(|| {
            let contexts = open_contexts(contexts, redact);
            let id = contexts.create(about.metadata()?)?;
            Ok::<_, BindingError>(Task::new(contexts, id))
        });
        Ok(made?)
    }

    /// Finds a task by its id, the start of its id, or `@` for the newest.
    #[staticmethod]
    fn open(py: Python<'_>, contexts: &str, redact: bool, name: &str) -> PyResult<Task> {
        let found = py.detach(|| {
            let contexts = open_contexts(contexts, redact);
            let id = contexts.resolve(name)?;
            Ok::<_, BindingError>(Task::new(contexts, id))
        });
        Ok(found?)
    }

    /// The id.
    #[getter]
    fn id(&self) -> String {
        self.id.to_string()
    }

    /// Appends messages, JSON Lines, all or none; returns the numbers of the first and the last.
    fn append(
        &self,
        py: Python<'_>,
        lines: &[u8],
        key: Option<&str>,
    ) -> PyResult<Option<(u64, u64)>> {
        let span = py.detach(|| self.append_lines(lines, key))?;
        Ok(span.map(|span| (span.from().get(), span.to().get())))
    }

    /// Returns the view, a JSON array of messages.
    fn view<'py>(&self, py: Python<'py>, at: Option<&str>) -> PyResult<Bound<'py, PyBytes>> {
        let view = py.detach(|| {
            let at = at.map(parse_target).transpose()?;
            let snapshot = LogSnapshot::new(self.log()?, at)?;
            render_view(&snapshot.log, &snapshot.view()?)
        })?;
        Ok(PyBytes::new(py, &view))
    }

    /// Folds as far as the window requires; returns a JSON object that describes the result.
    fn manage(&self, py: Python<'_>, options: FoldKeywords) -> PyResult<String> {
        Ok(py.detach(|| self.fold_to_fit(&options))?.to_string())
    }

    /// Folds a range of messages, or the range that `manage` would fold, behind a summary.
    fn condense(
        &self,
        py: Python<'_>,
        range: Option<&str>,
        text: Option<&str>,
        options: FoldKeywords,
    ) -> PyResult<String> {
        Ok(py
            .detach(|| self.fold_range(range, text, &options))?
            .to_string())
    }

    /// Takes a step: `unfold e3`, `undo`, `rewind-to 32` and so on; returns its result as JSON.
    fn step(&self, py: Python<'_>, verb: &str, target: Option<&str>) -> PyResult<String> {
        let taken = py.detach(|| {
            let step = read_step(verb, target)?;
            self.write(|writer| {
                let context = StepContext {
                    hooks: &Hooks::default(),
                    transitions: &Transitions::default(),
                    files: &FileHistory::new(&self.contexts),
                };
                let taken = step.take(writer, context);
                Ok(step_json(taken?))
            })
        })?;
        Ok(taken.to_string())
    }

    /// Returns messages in full, hidden or not, as a JSON array; for a fold its own object comes first.
    fn recall<'py>(&self, py: Python<'py>, target: &str) -> PyResult<Bound<'py, PyBytes>> {
        let list = py.detach(|| {
            let target: RecallTarget = target.parse()?;
            let log = self.log()?;
            let found = target.find(&log)?;
            let mut list = JsonList::new();
            if let Some(line) = &found.fold {
                list.push(fold_json(line).to_string().as_bytes());
            }
            for span in found.spans {
                RecalledMessage::each(&log, span, &mut |recalled| {
                    list.push_with(&recalled.json(), "message", recalled.bytes);
                    Ok::<_, BindingError>(())
                })?;
            }
            Ok::<_, BindingError>(list.finish())
        })?;
        Ok(PyBytes::new(py, &list))
    }

    /// Returns the task's row, sizes and directory as a JSON object.
    fn info(&self, py: Python<'_>) -> PyResult<String> {
        let report = py.detach(|| {
            TaskReport::of(&self.contexts, self.id)?
                .map(|report| report.json())
                .ok_or_else(|| {
                    BindingError::refused(format!("task {} has no row in the registry", self.id))
                        .hint("`infold doctor --repair` adds it")
                })
        })?;
        Ok(report.to_string())
    }
}

impl Task {
    fn new(contexts: Contexts, id: Uuid) -> Task {
        Task {
            contexts,
            id,
            writing: Mutex::new(()),
        }
    }

    fn log(&self) -> Result<Log, BindingError> {
        Ok(self.contexts.read(self.id)?)
    }

    /// Opens the task for writing; a server that holds it is asked to release it.
    fn write<T>(
        &self,
        act: impl FnOnce(&mut Writer) -> Result<T, BindingError>,
    ) -> Result<T, BindingError> {
        let _guard = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let token = std::env::var("INFOLD_TOKEN").ok();
        let (mut writer, _) = acquire_task(token.as_deref(), || self.contexts.write(self.id))?;
        let done = act(&mut writer);
        // The write has succeeded even if this fails; the next write updates the registry too.
        let _ = self.contexts.settle(self.id, &writer);
        done
    }

    /// Appends messages, all or none. A `key` makes it safe to repeat: messages with the same key are stored once.
    fn append_lines(&self, lines: &[u8], key: Option<&str>) -> Result<Option<Span>, BindingError> {
        let mut digest = ContentDigest::default();
        // All messages are checked before the first is stored.
        let mut checked = Incoming::new(lines);
        while let Some(message) = checked.next_message()? {
            digest.add(&message);
        }
        let key = key.map(|key| {
            PushKey::new(key, digest).ok_or_else(|| {
                BindingError::usage("the key is blank, too long or not printable")
                    .hint("a key has at most 255 bytes; nothing was stored")
            })
        });
        let key = key.transpose()?;
        let key = key.map(|key| self.contexts.stored_key(key)).transpose()?;
        self.write(|writer| {
            let mut incoming = Incoming::new(lines);
            Ok(writer.push(key.as_ref(), &mut || incoming.next_message())?)
        })
    }

    /// Returns the model of the task and the properties learned about it.
    fn model(&self, log: &Log) -> Result<KnownModel, BindingError> {
        let metadata = Metadata::read(log.dir())?;
        let model = metadata
            .llm_provider
            .as_deref()
            .zip(metadata.model.as_deref());
        let factor = match model {
            Some((provider, model)) => {
                infold::usage::learned_factor(&self.contexts, provider, model)?
            }
            None => None,
        };
        Ok(KnownModel {
            name: metadata.model,
            window: metadata.context_length,
            factor,
        })
    }

    /// Folds as far as the window requires.
    fn fold_to_fit(&self, options: &FoldKeywords) -> Result<Value, BindingError> {
        self.write(|writer| {
            // `raised` has the exception of a summarizer that is a Python function, if it raised one.
            let (mut setup, raised) = options.setup(self.model(writer.log())?, true)?;
            let outcome = manage(writer, &setup.aim, &mut *setup.summarizer, &setup.hooks);
            let outcome =
                outcome.map_err(|error| BindingError::from(error).raising(raised.take()))?;
            let mut object = outcome.json();
            object["warnings"] = setup.warnings.into();
            Ok(object)
        })
    }

    /// Folds a range behind a summary, which is `text` or is made by the summarizer.
    fn fold_range(
        &self,
        range: Option<&str>,
        text: Option<&str>,
        options: &FoldKeywords,
    ) -> Result<Value, BindingError> {
        let range = range.map(str::parse::<Span>).transpose();
        let range = range.map_err(BindingError::usage)?;
        if text.is_some_and(|text| text.trim().is_empty()) {
            return Err(BindingError::usage("the summary is empty").hint("nothing was folded"));
        }
        self.write(|writer| {
            let (mut setup, raised) = options.setup(self.model(writer.log())?, false)?;
            let drafted = match text {
                Some(text) => Draft::given(writer.log(), &setup.aim, range, text),
                None => draft(writer, &setup.aim, range, &mut *setup.summarizer),
            };
            let drafted =
                drafted.map_err(|error| BindingError::from(error).raising(raised.take()))?;
            let drafted = drafted.ok_or_else(|| {
                BindingError::refused("there is nothing to fold that a summary would make smaller")
                    .hint("give a range, or a text of your own")
            })?;
            let errors = drafted.errors.clone();
            let hooks = Hooks::default();
            let permission = FoldPermission::ask(&hooks, writer.log(), "condense")?;
            let mut object = step_json(step::fold(writer, drafted, &permission)?);
            object["errors"] = errors.into();
            object["warnings"] = setup.warnings.into();
            Ok(object)
        })
    }
}

impl TaskMetadata {
    /// Converts it to the metadata of a log.
    fn metadata(&self) -> Result<Metadata, BindingError> {
        // `openai` is the name that metadata has for the wire chat.
        let wire = match self.wire.as_str() {
            "openai" => "openai",
            other => other.parse::<Wire>().map_err(BindingError::usage)?.name(),
        };
        Ok(Metadata {
            task_source: Some("python".to_owned()),
            user: self.user.clone(),
            agent: self.agent.clone(),
            cwd: self.directory.clone(),
            llm_provider: self.provider.clone(),
            model: self.model.clone(),
            context_length: self.window,
            wire: Some(wire.to_owned()),
            ..Metadata::default()
        })
    }
}

/// Opens a contexts directory; `redact` replaces secrets before they reach the disk.
fn open_contexts(path: &str, redact: bool) -> Contexts {
    Contexts::new(path, Durability::Turn).redacting(redact)
}

/// Returns the result of a step as JSON.
fn step_json(taken: StepResult) -> Value {
    let mut object = taken.json;
    object["text"] = taken.text.into();
    if let Some(note) = taken.note {
        object["note"] = note.into();
    }
    object
}

/// Parses a target: a message, an event or a time.
fn parse_target(text: &str) -> Result<Target, BindingError> {
    step::target(text).map_err(BindingError::usage)
}

/// Parses a step from its verb and its target.
fn read_step(verb: &str, given: Option<&str>) -> Result<Step, BindingError> {
    let required_target =
        || given.ok_or_else(|| BindingError::usage(format!("{verb} needs a target")));
    let rewind = |side| {
        let target = parse_target(required_target()?)?;
        if matches!(target, Target::Time(time) if time > now()) {
            return Err(BindingError::usage("that time is in the future"));
        }
        Ok(Step::Rewind {
            side,
            target,
            files: false,
        })
    };
    let seq = |number: u64| {
        Seq::new(number).ok_or_else(|| BindingError::usage("messages are counted from 1"))
    };
    let event = |number: u64| {
        EventId::new(number).ok_or_else(|| BindingError::usage("events are counted from 1"))
    };
    Ok(match verb {
        "undo" => Step::Undo,
        "redo" => Step::Redo,
        "rewind-to" => rewind(Side::To)?,
        "rewind-before" => rewind(Side::Before)?,
        "note" => Step::Note {
            text: required_target()?.to_owned(),
        },
        "unfold" | "pin" | "unpin" => match (verb, parse_target(required_target()?)?) {
            ("unfold", Target::Event(id)) => Step::Unfold { fold: event(id)? },
            ("pin", Target::Message(number)) => Step::Pin { seq: seq(number)? },
            ("unpin", Target::Message(number)) => Step::Unpin {
                what: Pinned::Message(seq(number)?),
            },
            ("unpin", Target::Event(id)) => Step::Unpin {
                what: Pinned::Note(event(id)?),
            },
            ("unfold", _) => {
                return Err(BindingError::usage(
                    "a fold is named by its event, such as \"e3\"",
                ));
            }
            _ => return Err(BindingError::usage("a message is named by its number")),
        },
        other => return Err(BindingError::usage(format!("no step `{other}`"))),
    })
}
