//! `infold state`: shows and changes the layered state of a task.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use infold::Hooks;
use infold::layers::model::{Attribute, Author, Change, Field, FieldForm, LayerItem};
use infold::layers::{item_line, read_state, read_state_file, state_json};
use infold::show::LogSnapshot;
use infold::step::Step;
use infold_log::steer::Target;
use infold_store::{Contexts, parse_iso};

use crate::error::{CliError, CliResult};
use crate::output::{DIM, Output, note, paint, printable};
use crate::steps::{short, take};

/// The arguments of `infold state`.
#[derive(Debug, Args)]
pub struct StateArgs {
    /// The task
    pub task: String,
    #[command(subcommand)]
    pub command: StateCommand,
}

/// A command of `infold state`.
#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// Print the state, or one field of it
    Get {
        /// The field
        #[arg(value_parser = parse_field)]
        field: Option<Field>,
        /// As it was right after a message, or an event such as e3, or at a time
        #[arg(long, value_name = "SEQ|EVENT|TIME", value_parser = infold::step::target)]
        at: Option<Target>,
    },
    /// Set a field to one or more values; without a value it is emptied
    Set {
        /// The field
        #[arg(value_parser = parse_field)]
        field: Field,
        /// The values
        #[arg(value_name = "TEXT")]
        texts: Vec<String>,
    },
    /// Add an item to a list
    Add {
        /// The field
        #[arg(value_parser = parse_field)]
        field: Field,
        /// What it says
        text: String,
        #[command(flatten)]
        details: ItemDetails,
    },
    /// Remove an item from a list
    Remove {
        /// The field
        #[arg(value_parser = parse_field)]
        field: Field,
        /// Its number, counted from 1
        item: usize,
    },
    /// Mark a step of the plan as completed
    Done {
        /// The field: plan or hypotheses
        #[arg(value_parser = parse_field)]
        field: Field,
        /// Its number, counted from 1
        item: usize,
        /// Another status: pending, in_progress, blocked or cancelled
        #[arg(long, default_value = "completed")]
        status: String,
    },
    /// Set what a file in YAML names
    Load {
        /// The file, such as state.yaml
        file: PathBuf,
    },
}

/// What is known of an item beside its text.
#[derive(Debug, Args)]
pub struct ItemDetails {
    /// The name of a variable, a skill or a term
    #[arg(long)]
    name: Option<String>,
    /// Where it comes from
    #[arg(long)]
    source: Option<String>,
    /// Its status, of a step of the plan
    #[arg(long)]
    status: Option<String>,
    /// The tool that gave it
    #[arg(long)]
    tool: Option<String>,
    /// How well it matches what was looked for, from 0 to 1
    #[arg(long)]
    relevance: Option<String>,
    /// Items with a higher one are shown first
    #[arg(long, default_value_t = 0, allow_hyphen_values = true)]
    priority: i64,
}

impl ItemDetails {
    fn item(&self, text: &str) -> LayerItem {
        let mut item = LayerItem {
            priority: self.priority,
            ..LayerItem::new(text)
        };
        let given = [
            (Attribute::Name, &self.name),
            (Attribute::Source, &self.source),
            (Attribute::Status, &self.status),
            (Attribute::Tool, &self.tool),
            (Attribute::Relevance, &self.relevance),
        ];
        for (attribute, value) in given {
            if let Some(value) = value {
                item.attributes.insert(attribute, value.clone());
            }
        }
        item
    }
}

/// `infold state`
pub fn run(contexts: &Contexts, args: &StateArgs, out: &mut Output) -> CliResult {
    let changes = match &args.command {
        StateCommand::Get { field, at } => return get(contexts, &args.task, *field, *at, out),
        StateCommand::Set { field, texts } => {
            let items = texts.iter().map(|text| item_of(*field, text));
            vec![Change::Set(*field, items.collect())]
        }
        StateCommand::Add {
            field,
            text,
            details,
        } => vec![Change::Add(*field, details.item(text))],
        StateCommand::Remove { field, item } => vec![Change::Remove(*field, *item)],
        StateCommand::Done {
            field,
            item,
            status,
        } => vec![Change::Mark(*field, *item, status.clone())],
        StateCommand::Load { file } => read_file(file)?,
    };
    if changes.is_empty() {
        note(out.is_json(), "the file sets nothing; nothing was changed");
        return Ok(());
    }
    let step = Step::State {
        author: Author::Person,
        changes,
    };
    take(contexts, &Hooks::default(), &args.task, &step, out)
}

/// An item as `set` gives it: `NAME=VALUE` in a map, a time where the field holds one.
fn item_of(field: Field, text: &str) -> LayerItem {
    match field.form() {
        FieldForm::Map => match text.split_once('=') {
            Some((name, value)) => LayerItem::new(value).with(Attribute::Name, name),
            None => LayerItem::new(text),
        },
        FieldForm::Time => LayerItem {
            time: parse_iso(text),
            ..LayerItem::new(text)
        },
        _ => LayerItem::new(text),
    }
}

/// The largest state file: an item of 10 MB is legal, a device without an end is not.
const MAX_STATE_FILE_BYTES: u64 = 64 << 20;

fn read_bounded(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let opened = File::open(file)?;
    opened
        .take(MAX_STATE_FILE_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MAX_STATE_FILE_BYTES {
        let mebibytes = MAX_STATE_FILE_BYTES >> 20;
        return Err(io::Error::other(format!(
            "the file has more than {mebibytes} MiB"
        )));
    }
    Ok(text)
}

fn read_file(file: &Path) -> CliResult<Vec<Change>> {
    let text = read_bounded(file);
    let text = text.map_err(|error| CliError::usage(format!("{}: {error}", file.display())))?;
    read_state_file(&text).map_err(|error| {
        let text = format!("{}: {error}", file.display());
        match &error.nearest {
            Some(nearest) => CliError::usage(text).hint(format!("did you mean `{nearest}`?")),
            None => CliError::usage(text),
        }
    })
}

fn get(
    contexts: &Contexts,
    task: &str,
    field: Option<Field>,
    at: Option<Target>,
    out: &mut Output,
) -> CliResult {
    let log = contexts.read(contexts.resolve(task)?)?;
    let seen = LogSnapshot::new(log, at);
    let seen = seen.map_err(|error| CliError::from(error).about(&short(task)))?;
    let state = read_state(&seen.log, &seen.shown)?;
    if out.is_json() {
        return out.object(&state_json(&state, field));
    }
    let wanted = |one: &Field| field.is_none_or(|field| field == *one);
    let mut is_empty = true;
    for (field, items) in state.fields().filter(|(field, _)| wanted(field)) {
        is_empty = false;
        out.line(paint(DIM, field.path()))?;
        for (at, item) in items.iter().enumerate() {
            let number = if field.is_list() {
                format!("{:>3} ", at + 1)
            } else {
                "    ".to_owned()
            };
            out.line(format!("{number}{}", printable(&item_line(item))))?;
        }
    }
    if is_empty {
        let what = field.map_or("the state", Field::path);
        note(out.is_json(), format!("{what} is empty"));
    }
    Ok(())
}

fn parse_field(name: &str) -> Result<Field, String> {
    Field::find(name).ok_or_else(|| {
        let names: Vec<&str> = Field::all().map(Field::name).collect();
        match infold::layers::nearest_field(name) {
            Some(field) => format!("there is no such field; did you mean `{}`?", field.name()),
            None => format!("there is no such field; there are {}", names.join(", ")),
        }
    })
}
