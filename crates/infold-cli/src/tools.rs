//! `infold tools`: the tools that a model may see, with the reasons, and those it was shown and refused.

use std::sync::Arc;

use clap::{Args, Subcommand};
use infold::Config;
use infold::layers::task_situation;
use infold::turn::TurnTools;
use infold_log::EventId;
use infold_store::{Contexts, Log, What, iso};
use infold_tools::{
    Decision, OfferedTool, Policy, PolicyDraft, Projection, ShownTools, SituationChange,
    ToolVerdict, Validators,
};
use infold_wire::Json;
use infold_wire::tool_list::EditedTools;
use serde_json::{Value, json};

use crate::error::{CliError, CliResult};
use crate::output::{DIM, FOLD, Output, format_table, note, number, one_line, paint};
use crate::steps::short;

/// A command of `infold tools`.
#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// Show which tools the model may see in a situation
    Project(ProjectArgs),
    /// Show which tools the model was shown when, and every refused call
    Audit {
        /// The task
        #[arg(default_value = "@")]
        task: String,
    },
}

/// The arguments of `infold tools project`.
#[derive(Debug, Args)]
pub struct ProjectArgs {
    /// The task whose tools are meant: those of its last request [default: the tools of the configuration]
    task: Option<String>,
    /// The phase: planning, executing, reflecting, verifying, or one of the configuration
    #[arg(long)]
    phase: Option<String>,
    /// A permission that is granted, such as read or fs:write; replaces those of the configuration
    #[arg(long = "permission", value_name = "PERMISSION", value_delimiter = ',')]
    permissions: Vec<String>,
    /// The environment: dev, staging or production
    #[arg(long)]
    environment: Option<String>,
    /// Take the task as urgent
    #[arg(long)]
    urgent: bool,
    /// Show hidden tools too, and the reason for each
    #[arg(long)]
    explain: bool,
}

/// The length up to which reasons are never cut: they are the purpose of the command.
const MAX_LINE_CELLS: usize = 1000;

/// `infold tools`
pub fn run(
    contexts: &Contexts,
    config: &Config,
    command: &ToolsCommand,
    out: &mut Output,
) -> CliResult {
    match command {
        ToolsCommand::Project(args) => project(contexts, config, args, out),
        ToolsCommand::Audit { task } => audit(contexts, task, out),
    }
}

fn project(
    contexts: &Contexts,
    config: &Config,
    args: &ProjectArgs,
    out: &mut Output,
) -> CliResult {
    let built_in;
    let policy: &Policy = match &config.tools {
        Some(tools) => &tools.policy,
        None => {
            note(
                out.is_json(),
                "no policy is configured, so all tools are shown; this is what the built-in rules would show",
            );
            built_in = Policy::new(PolicyDraft::default()).map_err(CliError::usage)?;
            &built_in
        }
    };
    let (tools, state) = match &args.task {
        Some(task) => {
            let log = contexts.read(contexts.resolve(task)?)?;
            let tools = last_tools(&log).map_err(|error| error.about(&short(task)))?;
            let state = task_situation(&log, log.state().shown(), infold_store::now())?;
            (tools, state)
        }
        None => (policy.defined_tools(), SituationChange::default()),
    };
    let permissions = Some(args.permissions.clone()).filter(|given| !given.is_empty());
    let change = SituationChange {
        phase: args.phase.clone().or(state.phase),
        permissions: permissions.or(state.permissions),
        environment: args.environment.clone().or(state.environment),
        is_urgent: args.urgent.then_some(true).or(state.is_urgent),
    };
    let situation = policy.situation_with(&change).map_err(CliError::usage)?;
    if tools.is_empty() {
        note(out.is_json(), "there are no tools to choose from");
    }
    let projection = policy.project(&tools, &situation, &Validators::default());
    print(&projection, &tools, args.explain, out)
}

/// The tools of a call, under the policy if there is one.
pub struct CallTools {
    /// The list of the tools that the model may see; `None` if there are none.
    pub shown: Option<Vec<u8>>,
    /// The rules that check its calls.
    pub policy: Option<TurnTools>,
}

/// Applies the policy to the tools of a call. `situation` is that of its task.
///
/// Hidden tools are named on stderr. A call of one cannot be demanded.
pub fn call_tools(
    config: &Config,
    situation: &SituationChange,
    list: Option<Json<'_>>,
    choice: Option<&str>,
    json: bool,
) -> CliResult<CallTools> {
    let own = list.map(|list| list.bytes().to_vec());
    let Some(tools) = &config.tools else {
        return Ok(CallTools {
            shown: own,
            policy: None,
        });
    };
    let policy = &tools.policy;
    let offered = list.map(OfferedTool::read_all).unwrap_or_default();
    let situation = policy.situation_with(situation).map_err(CliError::usage)?;
    let validators = Arc::new(Validators::default());
    let projection = policy.project(&offered, &situation, &validators);
    for decision in projection.decisions.iter().filter(|it| !it.is_shown()) {
        let text = format!("`{}` is hidden: {}", decision.name, reason(decision));
        if choice == Some(&*decision.name) {
            return Err(CliError::usage(text).hint("--tool-choice names a tool that is shown"));
        }
        note(json, text);
    }
    let shown = match list.map(|list| projection.apply(list)) {
        None | Some(EditedTools::Unchanged) => own,
        Some(EditedTools::Changed(shown)) => Some(shown),
        Some(EditedTools::Empty) => None,
    };
    let judge = ShownTools::new(Arc::clone(policy), validators, &offered, &projection);
    Ok(CallTools {
        shown,
        policy: Some(TurnTools::new(judge, &projection)),
    })
}

/// Returns the tools of the last request of a task.
fn last_tools(log: &Log) -> CliResult<Vec<OfferedTool>> {
    let frame = log.last_frame()?.ok_or_else(|| {
        CliError::usage("no request of this task is recorded, so its tools are not known")
            .hint("without a task the tools of the configuration are shown")
    })?;
    let lists = ["tools", "functions"].iter();
    let lists = lists.filter_map(|name| frame.members.get(*name));
    let lists = lists.filter_map(|bytes| Json::parse(bytes).ok());
    Ok(lists.flat_map(OfferedTool::read_all).collect())
}

fn print(
    projection: &Projection,
    tools: &[OfferedTool],
    explain: bool,
    out: &mut Output,
) -> CliResult {
    let mut rows: Vec<(&Decision, &OfferedTool)> = projection.decisions.iter().zip(tools).collect();
    rows.sort_by_key(|(decision, _)| std::cmp::Reverse(decision.priority));
    rows.retain(|(decision, _)| explain || decision.is_shown());
    if out.is_json() {
        for (decision, tool) in rows {
            out.object(&decision_json(decision, tool))?;
        }
        return Ok(());
    }
    let cell = |decision: &Decision, tool: &OfferedTool| {
        [
            if decision.is_shown() { "in" } else { "out" }.to_owned(),
            one_line(&decision.name),
            one_line(decision.category.as_deref().unwrap_or("unknown")),
            decision.priority.to_string(),
            number(tool.tokens(&decision.verdict)),
            reason(decision),
        ]
    };
    let table: Vec<[String; 6]> = rows.iter().map(|(one, tool)| cell(one, tool)).collect();
    let lines = format_table(&table, &[3, 4], MAX_LINE_CELLS);
    for ((decision, _), line) in rows.iter().zip(lines) {
        let style = if decision.is_shown() { FOLD } else { DIM };
        out.line(paint(style, line))?;
    }
    let situation = &projection.situation;
    let granted: Vec<&str> = situation.permissions().map(|it| it.as_str()).collect();
    let shown = projection.decisions.iter().zip(tools);
    let shown: Vec<u64> = shown
        .filter(|(decision, _)| decision.is_shown())
        .map(|(decision, tool)| tool.tokens(&decision.verdict))
        .collect();
    note(
        false,
        format!(
            "{} of {} tools, {} tokens: {} in {}{}, granted: {}",
            shown.len(),
            tools.len(),
            number(shown.iter().sum()),
            situation.phase(),
            situation.environment(),
            if situation.is_urgent() {
                ", urgent"
            } else {
                ""
            },
            if granted.is_empty() {
                "nothing".to_owned()
            } else {
                granted.join(", ")
            }
        ),
    );
    Ok(())
}

fn reason(decision: &Decision) -> String {
    match &decision.verdict {
        ToolVerdict::Shown if decision.category.is_none() => {
            "its category is unknown, and such tools are allowed".to_owned()
        }
        ToolVerdict::Shown if decision.required.is_empty() => "requires nothing".to_owned(),
        ToolVerdict::Shown => {
            let required: Vec<&str> = decision.required.iter().map(|it| it.as_str()).collect();
            format!("{} is granted", required.join(", "))
        }
        ToolVerdict::Narrowed { arguments, .. } => {
            format!("whitelist only: {}", one_line(&arguments.join(", ")))
        }
        ToolVerdict::Hidden(reason) => one_line(&reason.to_string()),
    }
}

fn decision_json(decision: &Decision, tool: &OfferedTool) -> Value {
    let required: Vec<&str> = decision.required.iter().map(|it| it.as_str()).collect();
    let mut object = json!({
        "tool": decision.name,
        "shown": decision.is_shown(),
        "category": decision.category,
        "priority": decision.priority,
        "requires": required,
        "tokens": tool.tokens(&decision.verdict),
        "reason": reason(decision),
    });
    if let ToolVerdict::Narrowed { schema, arguments } = &decision.verdict {
        object["narrowed"] = json!(arguments);
        object["schema"] = serde_json::from_str(schema).unwrap_or(Value::Null);
    }
    object
}

fn audit(contexts: &Contexts, task: &str, out: &mut Output) -> CliResult {
    let log = contexts.read(contexts.resolve(task)?)?;
    let mut is_empty = true;
    for id in (1..=log.state().at().event).filter_map(EventId::new) {
        let line = log.event(id)?;
        let mut object = json!({ "event": id.get(), "at": iso(line.ts), "after": line.after });
        let text = match &line.what {
            What::ToolsShown(shown) => {
                object["type"] = json!("tools_shown");
                object["phase"] = json!(shown.phase);
                object["environment"] = json!(shown.environment);
                object["shown"] = json!(shown.shown);
                object["narrowed"] = json!(shown.narrowed);
                let hidden = shown.hidden.iter();
                let hidden = hidden.map(|(name, why)| (name.clone(), json!(why)));
                object["hidden"] = Value::Object(hidden.collect());
                object["tool_choice"] = json!(shown.choice);
                let names = |names: &[String]| {
                    if names.is_empty() {
                        "none".to_owned()
                    } else {
                        names.join(", ")
                    }
                };
                let hidden: Vec<String> = shown.hidden.iter().map(|(it, _)| it.clone()).collect();
                let mut text = format!(
                    "{} in {}: shown {}; hidden {}",
                    shown.phase,
                    shown.environment,
                    names(&shown.shown),
                    names(&hidden)
                );
                if !shown.narrowed.is_empty() {
                    text.push_str(&format!("; whitelist only {}", names(&shown.narrowed)));
                }
                if let Some(choice) = &shown.choice {
                    text.push_str(&format!("; the client demanded {choice}"));
                }
                text
            }
            What::Refusal(refusal) => {
                object["type"] = json!("refusal");
                object["tool"] = json!(refusal.tool);
                object["call"] = json!(refusal.call);
                object["told"] = json!(refusal.told);
                format!("refused: {}", refusal.told)
            }
            _ => continue,
        };
        is_empty = false;
        if out.is_json() {
            out.object(&object)?;
        } else {
            let head = format!("{}  {id}  after {}", iso(line.ts), line.after);
            out.line(format!("{}  {}", paint(DIM, head), one_line(&text)))?;
        }
    }
    if is_empty {
        note(
            out.is_json(),
            "no tool policy has applied to this task: nothing was hidden or refused",
        );
    }
    Ok(())
}
