//! Puts tasks from any source into the queue.

use std::path::PathBuf;

use infold_log::Role;
use infold_store::{Contexts, DraftError, Enqueued, Lease, Metadata, NewTask};
use infold_wire::{Wire, render_text};
use uuid::Uuid;

use crate::Config;
use crate::setup::in_effect;

/// The system prompt of tasks that workers carry out, unless another is configured.
pub const AGENT_PROMPT: &str = include_str!("queue/prompt.txt");

/// A task that is to be carried out.
#[derive(Clone, Debug, Default)]
pub struct EnqueueRequest {
    /// The work to be done, as the first message of the user.
    pub text: String,
    /// The system prompt; none if there is none.
    pub system: Option<String>,
    /// The source of the task: `cli`, `github`, `gitlab`.
    pub task_source: Option<String>,
    /// The owner of the task's repository.
    pub owner: Option<String>,
    /// The repository.
    pub repo: Option<String>,
    /// The kind of the task: `issue`, `pull_request`, `merge_request`.
    pub task_type: Option<String>,
    /// The id at the source. While a task of the same source, owner, repository, kind and id is unfinished, it is not
    /// queued again.
    pub task_id: Option<String>,
    /// The user for whom the task is done.
    pub user: Option<String>,
    /// The id that the caller brings; the same one is queued once.
    pub uuid: Option<Uuid>,
    /// Tasks with a higher one come first.
    pub priority: i64,
    /// The directory in which the task is done.
    pub workspace: Option<PathBuf>,
    /// The lease of the process that carries the task out at once, without waiting in the queue.
    pub lease: Option<Lease>,
    /// Whether a person allows the model to run commands, whatever is configured.
    pub allows_commands: bool,
    /// The form of the messages, the provider and model, and the fold settings, as configured.
    pub metadata: Metadata,
}

impl EnqueueRequest {
    /// Returns a request with the configured system prompt, model and workspace.
    pub fn new(config: &Config, text: impl Into<String>) -> EnqueueRequest {
        let prompt = config.work.system_prompt.as_ref();
        let prompt = prompt.map_or(AGENT_PROMPT, |set| &set.value).trim();
        let wire = config
            .provider()
            .map(|provider| provider.api.value.as_str());
        let wire = wire.and_then(wire_of_api).unwrap_or(Wire::Chat);
        EnqueueRequest {
            text: text.into(),
            system: Some(prompt.to_owned()).filter(|prompt| !prompt.is_empty()),
            workspace: config.work.workspace.as_ref().map(|set| set.value.clone()),
            metadata: Metadata {
                agent: Some("infold".to_owned()),
                wire: Some(wire.name().to_owned()),
                in_effect: in_effect(config, None, None),
                ..Metadata::default()
            },
            ..EnqueueRequest::default()
        }
    }
}

/// Returns the form of the messages of an API.
fn wire_of_api(api: &str) -> Option<Wire> {
    match api {
        "responses" => Some(Wire::Responses),
        "anthropic" => Some(Wire::Anthropic),
        "gemini" => Some(Wire::Gemini),
        "ollama" => Some(Wire::Ollama),
        _ => None,
    }
}

/// Puts a task into the queue: either completely, with its text in the log and its row in the registry, or not at all.
pub fn enqueue(contexts: &Contexts, request: EnqueueRequest) -> Result<Enqueued, DraftError> {
    let wire = request.metadata.form();
    let system = request.system.as_deref();
    let system = system.map(|text| render_text(wire, Role::System, text));
    let text = render_text(wire, Role::User, &request.text);
    let workspace = request.workspace.as_deref();
    contexts.enqueue(NewTask {
        metadata: Metadata {
            task_source: request.task_source,
            owner: request.owner,
            repo: request.repo,
            task_type: request.task_type,
            task_id: request.task_id,
            user: request.user,
            cwd: workspace.and_then(|dir| Some(dir.to_str()?.to_owned())),
            ..request.metadata
        },
        uuid: request.uuid,
        priority: request.priority,
        messages: system.into_iter().chain([text]).collect(),
        lease: request.lease,
        allows_commands: request.allows_commands,
    })
}
