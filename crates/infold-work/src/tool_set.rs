//! The tools of a task: the built-in ones, and those of its toolbox that the policy shows now.

use std::sync::Arc;
use std::time::Duration;

use infold::layers::task_situation;
use infold::tool_record::tools_shown_line;
use infold_store::{Log, LogError, ToolsShownLine};
use infold_toolbox::{CallResult, CallStatus, ServerProblem, Tool, Toolbox};
use infold_tools::{OfferedTool, Policy, ShownTools, UnknownName, Validators};
use infold_wire::tool_list::EditedTools;
use infold_wire::tools::{ToolsError, convert_tools};
use infold_wire::{ClientCall, Json, JsonError, Wire, quote};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinError;

use crate::built_in;

/// A policy that decides which tools of the toolbox the model may see and call.
#[derive(Clone, Debug)]
pub struct TaskToolPolicy {
    policy: Arc<Policy>,
    validators: Arc<Validators>,
}

impl TaskToolPolicy {
    /// Applies a policy.
    pub fn new(policy: Arc<Policy>) -> TaskToolPolicy {
        TaskToolPolicy {
            policy,
            validators: Arc::default(),
        }
    }
}

/// The tools of a task.
#[derive(Debug)]
pub struct ToolSet {
    toolbox: Arc<Toolbox>,
    runtime: Handle,
    policy: Option<TaskToolPolicy>,
    /// The tools of the toolbox, when they were last listed.
    listed: Vec<Tool>,
    /// The tools that the policy shows, if there is one.
    shown: Option<ShownTools>,
}

/// The tools of a request, and their record.
pub(crate) struct OfferedTools {
    /// The tools in the form of the wire.
    pub tools: String,
    /// The record of the tools shown, under a policy.
    pub line: Option<ToolsShownLine>,
    /// Servers whose tools are missing.
    pub problems: Vec<ServerProblem>,
}

/// Why tools cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum ToolSetError {
    /// The state of the task names a phase, an environment or a permission that the policy does not know.
    #[error("the state of the task: {0}")]
    Situation(#[from] UnknownName),
    /// A tool cannot be written in the form of the wire.
    #[error("the tools cannot be offered: {0}")]
    Form(#[from] ToolsError),
    /// A definition of a tool is not JSON.
    #[error("the tools cannot be offered: {0}")]
    Json(#[from] JsonError),
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// The most tool names listed to a model that calls an unknown tool.
const MAX_TOLD_NAMES: usize = 60;

impl ToolSet {
    /// Offers the tools of a toolbox beside the built-in ones. The toolbox works on `runtime`.
    pub fn new(toolbox: Toolbox, runtime: Handle, policy: Option<TaskToolPolicy>) -> ToolSet {
        ToolSet {
            toolbox: Arc::new(toolbox),
            runtime,
            policy,
            listed: Vec::new(),
            shown: None,
        }
    }

    /// Returns the tools of the next request of a task.
    pub(crate) fn offer(&mut self, log: &Log, wire: Wire) -> Result<OfferedTools, ToolSetError> {
        let list = self.runtime.block_on(self.toolbox.tools());
        self.listed = list.tools;
        // The toolbox renames such tools if these names are reserved in it.
        self.listed
            .retain(|tool| !built_in::NAMES.contains(&tool.name.as_str()));
        let defined: Vec<String> = self.listed.iter().map(define).collect();
        let defined = format!("[{}]", defined.join(","));
        let json = Json::parse(defined.as_bytes())?;
        let (shown, line) = match &self.policy {
            None => (Some(defined.clone().into_bytes()), None),
            Some(TaskToolPolicy { policy, validators }) => {
                let change = task_situation(log, log.state().shown(), infold_store::now())?;
                let situation = policy.situation_with(&change)?;
                let offered = OfferedTool::read_all(json);
                let projection = policy.project(&offered, &situation, validators);
                let (policy, validators) = (Arc::clone(policy), Arc::clone(validators));
                self.shown = Some(ShownTools::new(policy, validators, &offered, &projection));
                let edited = match projection.apply(json) {
                    EditedTools::Unchanged => Some(defined.clone().into_bytes()),
                    EditedTools::Changed(shown) => Some(shown),
                    EditedTools::Empty => None,
                };
                (edited, Some(tools_shown_line(&projection)))
            }
        };
        let own = built_in::definitions().into_iter();
        let mut all: Vec<String> = own.map(|tool| tool.to_string()).collect();
        let shown = shown.unwrap_or_else(|| b"[]".to_vec());
        let elements = Json::parse(&shown)?.elements();
        all.extend(elements.map(|tool| String::from_utf8_lossy(tool.bytes()).into_owned()));
        let all = format!("[{}]", all.join(","));
        Ok(OfferedTools {
            tools: convert_tools(Json::parse(all.as_bytes())?, wire)?,
            line,
            problems: list.problems,
        })
    }

    /// Returns whether a call changes nothing, so that it may run beside others.
    pub(crate) fn is_read_only(&self, call: &ClientCall) -> bool {
        let mut tools = self.listed.iter();
        tools.any(|tool| tool.name == call.name && tool.read_only)
    }

    /// Returns whether a call may change files.
    pub(crate) fn may_write(&self, call: &ClientCall) -> bool {
        !built_in::NAMES.contains(&call.name.as_str()) && !self.is_read_only(call)
    }

    /// Returns the reason for the model why a call is not run; none if it is.
    pub(crate) fn refusal(&self, call: &ClientCall) -> Option<String> {
        if built_in::NAMES.contains(&call.name.as_str()) {
            return None;
        }
        if !self.listed.iter().any(|tool| tool.name == call.name) {
            let listed = self.listed.iter().map(|tool| tool.name.as_str());
            let names: Vec<&str> = built_in::NAMES.into_iter().chain(listed).collect();
            let told = names[..names.len().min(MAX_TOLD_NAMES)].join(", ");
            let name = &call.name;
            return Some(format!(
                "There is no tool `{name}`, so nothing was run. There are: {told}."
            ));
        }
        let shown = self.shown.as_ref()?;
        let quoted = quote(&call.arguments);
        let arguments = Json::parse(quoted.as_bytes()).ok();
        let checked = shown.check(&call.name, arguments);
        checked.err().map(|refusal| refusal.to_string())
    }

    /// Runs calls at the same time; returns their results in order.
    pub(crate) fn call_all(&self, calls: &[&ClientCall]) -> Vec<CallResult> {
        self.runtime.block_on(async {
            let started: Vec<_> = calls
                .iter()
                .map(|call| {
                    let (toolbox, call) = (Arc::clone(&self.toolbox), (*call).clone());
                    tokio::spawn(async move { toolbox.call(&call.name, &call.arguments).await })
                })
                .collect();
            let mut results = Vec::new();
            for one in started {
                // A panic of a tool is a bug, but not the end of the task.
                results.push(one.await.unwrap_or_else(|error| broken_off(&error)));
            }
            results
        })
    }

    /// Ends the processes of the tools.
    pub(crate) fn shutdown(&self) {
        self.runtime.block_on(self.toolbox.shutdown());
    }
}

/// Makes the result of a call whose tool gave none.
fn broken_off(error: &JoinError) -> CallResult {
    let text = format!("the tool broke off: {error}. The call may have had an effect");
    CallResult {
        text: text.clone(),
        status: CallStatus::Error,
        duration: Duration::ZERO,
        error: Some(text),
    }
}

/// Defines a tool in the form of the chat wire.
fn define(tool: &Tool) -> String {
    json!({"type": "function", "function": {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
    }})
    .to_string()
}
