//! `infold search`: finds messages in all tasks, hidden ones too.

use clap::Args;
use infold::search::{
    DEFAULT_LIMIT, SearchError, SearchMode, SearchQuery, describe_coverage, describe_place,
    hit_json, parse_end_time, parse_role, parse_time,
};
use infold_log::Role;
use infold_store::{Contexts, SearchHit, iso};

use crate::error::{CliError, CliResult};
use crate::output::{DIM, FOLD, GOOD, Output, escape_bidi, fit, note, paint, role_style};

/// The arguments of `infold search`.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// What to look for: words, "phrases", -excluded words, prefixes*
    #[arg(value_name = "QUERY", allow_hyphen_values = true)]
    text: String,
    /// Only this task, with the messages that it continues
    #[arg(long)]
    task: Option<String>,
    /// Only messages that the model does not see
    #[arg(long)]
    hidden: bool,
    /// Only messages of this role: user, model, tool or system
    #[arg(long, value_parser = parse_role)]
    role: Option<Role>,
    /// Only calls of this tool, and their results
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only calls that touch this file, and their results; the end of a path is enough
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Only messages from then on: a time, a date, or an age such as 3d or 12h
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<u64>,
    /// Only messages up to then; a date is meant to its end
    #[arg(long, value_name = "TIME", value_parser = parse_end_time)]
    until: Option<u64>,
    /// The number of hits
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT, value_parser = parse_limit)]
    limit: usize,
    /// Find the text exactly as it is written
    #[arg(long, conflicts_with = "regex")]
    exact: bool,
    /// Find what a regular expression matches
    #[arg(long)]
    regex: bool,
}

fn parse_limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| *limit > 0);
    limit.ok_or_else(|| "give a number, counted from 1".to_owned())
}

/// `infold search`
pub fn run(contexts: &Contexts, args: &SearchArgs, out: &mut Output) -> CliResult {
    let task = args.task.as_ref().map(|task| contexts.resolve(task));
    let query = SearchQuery {
        text: args.text.clone(),
        mode: match (args.exact, args.regex) {
            (true, _) => SearchMode::Exact,
            (_, true) => SearchMode::Regex,
            _ => SearchMode::Words,
        },
        tasks: task.transpose()?.map(|task| vec![task]),
        only_hidden: args.hidden,
        role: args.role,
        tool: args.tool.clone(),
        file: args.file.clone(),
        since: args.since,
        until: args.until,
        limit: Some(args.limit),
    };
    let answer = query.run(contexts)?;
    for hit in &answer.hits {
        if out.is_json() {
            out.object(&hit_json(hit))?;
        } else {
            print_hit(hit, out)?;
        }
    }
    // Flush first: notes about the answer belong below it.
    out.finish()?;
    if answer.hits.is_empty() {
        note(out.is_json(), query.describe(&answer));
    }
    if let Some(coverage) = describe_coverage(&answer) {
        CliError::store(coverage)
            .hint("search again to have more of them searched")
            .warn(out.is_json());
    }
    Ok(())
}

fn print_hit(hit: &SearchHit, out: &mut Output) -> CliResult {
    let place = describe_place(hit.place);
    let task = &hit.task.to_string()[..8];
    let role = paint(role_style(hit.role), fit(&hit.role.to_string(), 7));
    let time = paint(DIM, iso(hit.time)[..19].replace('T', " "));
    let name = fit(&format!("{task} {}", hit.seq), 16);
    out.line(format!("{name}{role}{time}{}", paint(FOLD, place)))?;
    let snippet = hit.snippet.marked("\u{1}", "\u{2}");
    let mut line = String::from("    ");
    // The marks are readable without colour too.
    for piece in escape_bidi(&snippet).split_inclusive(['\u{1}', '\u{2}']) {
        match piece.strip_suffix('\u{2}') {
            Some(matched) => line.push_str(&paint(GOOD, format!("[{matched}]"))),
            None => line.push_str(piece.trim_end_matches('\u{1}')),
        }
    }
    out.line(line)
}

impl From<SearchError> for CliError {
    fn from(error: SearchError) -> CliError {
        match error {
            SearchError::Pattern(error) => CliError::usage(error)
                .hint("--exact finds a text as it is written, whatever characters it has"),
            SearchError::Task(error) => error.into(),
        }
    }
}
