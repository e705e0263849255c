//! The metadata of a task, written once when it is made (`metadata.json`).

mod restore;

use std::path::Path;

use infold_wire::transcript::AgentSession;
use infold_wire::{Json, Wire, quote};
use jiff::Timestamp;
use uuid::Uuid;

use crate::{LogError, Status, TaskRow, time};

/// The facts about a task that are written once, when it is made (`metadata.json`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Its id.
    pub uuid: Uuid,
    /// Where it comes from: `github`, `gitlab`, `cli` …
    pub task_source: Option<String>,
    /// The owner of the repository it is about.
    pub owner: Option<String>,
    /// The repository there.
    pub repo: Option<String>,
    /// Its kind: `issue`, `pull_request` …
    pub task_type: Option<String>,
    /// Its id at the source.
    pub task_id: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_at: u64,
    /// The process that made it.
    pub process_id: u32,
    /// The machine on which it was made.
    pub hostname: String,
    /// Which API its model speaks.
    pub llm_provider: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// The model's window, in tokens.
    pub context_length: Option<u64>,
    /// The user that the task is for.
    pub user: Option<String>,
    /// The agent that works on it.
    pub agent: Option<String>,
    /// The directory in which that agent works.
    pub cwd: Option<String>,
    /// The wire form of its messages: a [`Wire`]'s name, or `openai` for chat.
    pub wire: Option<String>,
    /// Settings in force when it was made, chosen or assumed.
    pub in_effect: InEffect,
    /// The session of an agent that it was made from.
    pub session: Option<AgentSession>,
}

/// The settings for folding when a task was made: information, not a choice of the task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InEffect {
    /// The model.
    pub model: Option<String>,
    /// Its window, in tokens.
    pub context_length: Option<u64>,
    /// The share of the window from which to fold.
    pub compression_threshold: Option<f64>,
}

impl Metadata {
    /// The file's name.
    pub(crate) const NAME: &str = "metadata.json";

    /// Reads it from a task's directory.
    pub fn read(dir: &Path) -> Result<Metadata, LogError> {
        let path = dir.join(Metadata::NAME);
        let bytes = std::fs::read(&path).map_err(|error| LogError::io(&path, "read", error))?;
        let json =
            Json::parse(&bytes).map_err(|error| LogError::damaged(&path, 0, error.to_string()))?;
        Metadata::decode(json)
            .ok_or_else(|| LogError::damaged(&path, 0, "no \"uuid\" or no \"created_at\""))
    }

    /// The wire form of its messages; chat, if it is not said.
    pub fn form(&self) -> Wire {
        let wire = self.wire.as_deref().and_then(|wire| wire.parse().ok());
        wire.unwrap_or(Wire::Chat)
    }

    /// The registry's row for it.
    pub fn row(&self, status: Status) -> TaskRow {
        let created = i64::try_from(self.created_at).ok();
        let created = created
            .and_then(|ms| Timestamp::from_millisecond(ms).ok())
            .unwrap_or_default();
        TaskRow {
            task_source: self.task_source.clone(),
            owner: self.owner.clone(),
            repo: self.repo.clone(),
            task_type: self.task_type.clone(),
            task_id: self.task_id.clone(),
            process_id: Some(self.process_id),
            hostname: Some(self.hostname.clone()),
            llm_provider: self.llm_provider.clone(),
            model: self.model_in_effect().cloned(),
            context_length: self.window_in_effect(),
            user: self.user.clone(),
            agent: self.agent.clone(),
            cwd: self
                .cwd
                .clone()
                .or_else(|| self.session.as_ref()?.cwd.clone()),
            ..TaskRow::new(self.uuid, status, created)
        }
    }

    fn model_in_effect(&self) -> Option<&String> {
        self.model.as_ref().or(self.in_effect.model.as_ref())
    }

    fn window_in_effect(&self) -> Option<u64> {
        self.context_length.or(self.in_effect.context_length)
    }

    /// Returns the names of the settings that were assumed, as JSON.
    fn assumed(&self) -> String {
        let model = self.model.is_none() && self.in_effect.model.is_some();
        let window = self.context_length.is_none() && self.in_effect.context_length.is_some();
        let names = [(model, "\"model\""), (window, "\"context_length\"")];
        let names: Vec<&str> = names
            .iter()
            .filter_map(|(assumed, name)| assumed.then_some(*name))
            .collect();
        if names.is_empty() {
            String::new()
        } else {
            format!(",\"assumed\":[{}]", names.join(","))
        }
    }

    /// Replaces the secrets in the metadata.
    pub(crate) fn redact(&mut self) {
        let redacted = infold_wire::secrets::without_secrets(self.encode().as_bytes());
        let json = redacted.as_deref().and_then(|json| Json::parse(json).ok());
        if let Some(redacted) = json.and_then(Metadata::decode) {
            *self = redacted;
        }
    }

    pub(crate) fn encode(&self) -> String {
        let text = |value: &Option<String>| value.as_deref().map_or("null".to_owned(), quote);
        let window = self
            .window_in_effect()
            .map_or("null".to_owned(), |tokens| tokens.to_string());
        let threshold = self
            .in_effect
            .compression_threshold
            .map_or("null".to_owned(), |share| share.to_string());
        let (model, assumed) = (self.model_in_effect().cloned(), self.assumed());
        let session = self.session.as_ref().map_or(String::new(), |session| {
            format!(
                ",\"session\":{{\"id\":{},\"cwd\":{},\"branch\":{},\"version\":{}}}",
                text(&session.id),
                text(&session.cwd),
                text(&session.branch),
                text(&session.version),
            )
        });
        format!(
            "{{\"uuid\":\"{}\",\"task_key\":{{\"task_source\":{},\"owner\":{},\"repo\":{},\"task_type\":{},\"task_id\":{}}},\
             \"created_at\":\"{}\",\"process_id\":{},\"hostname\":{},\
             \"config\":{{\"llm_provider\":{},\"model\":{},\"context_length\":{window},\"compression_threshold\":{threshold}{assumed}}},\
             \"user\":{},\"agent\":{},\"cwd\":{},\"wire\":{}{session}}}\n",
            self.uuid,
            text(&self.task_source),
            text(&self.owner),
            text(&self.repo),
            text(&self.task_type),
            text(&self.task_id),
            time::iso(self.created_at),
            self.process_id,
            quote(&self.hostname),
            text(&self.llm_provider),
            text(&model),
            text(&self.user),
            text(&self.agent),
            text(&self.cwd),
            text(&self.wire),
        )
    }

    fn decode(json: Json<'_>) -> Option<Metadata> {
        let text = |value: Option<Json<'_>>| Some(value?.text()?.into_owned());
        let whole = |value: Option<Json<'_>>| {
            let digits = std::str::from_utf8(value?.bytes()).ok()?;
            digits.parse::<u64>().ok()
        };
        let [uuid, key, created_at, process_id, hostname, config] = json.pick([
            "uuid",
            "task_key",
            "created_at",
            "process_id",
            "hostname",
            "config",
        ]);
        let [user, agent, cwd, wire, session] =
            json.pick(["user", "agent", "cwd", "wire", "session"]);
        let members = ["task_source", "owner", "repo", "task_type", "task_id"];
        let [task_source, owner, repo, task_type, task_id] =
            key.map_or([None; 5], |key| key.pick(members));
        let members = [
            "llm_provider",
            "model",
            "context_length",
            "compression_threshold",
            "assumed",
        ];
        let [llm_provider, model, context_length, threshold, assumed] =
            config.map_or([None; 5], |config| config.pick(members));
        let chosen = |name: &str| {
            let mut names = assumed.into_iter().flat_map(Json::elements);
            !names.any(|assumed| assumed.is(name))
        };
        let in_effect = InEffect {
            model: text(model),
            context_length: whole(context_length),
            compression_threshold: threshold.and_then(Json::number),
        };
        Some(Metadata {
            uuid: text(uuid)?.parse().ok()?,
            task_source: text(task_source),
            owner: text(owner),
            repo: text(repo),
            task_type: text(task_type),
            task_id: text(task_id),
            created_at: time::parse_iso(&text(created_at)?)?,
            process_id: whole(process_id)
                .and_then(|pid| pid.try_into().ok())
                .unwrap_or(0),
            hostname: text(hostname).unwrap_or_default(),
            llm_provider: text(llm_provider),
            model: in_effect.model.clone().filter(|_| chosen("model")),
            context_length: in_effect
                .context_length
                .filter(|_| chosen("context_length")),
            in_effect,
            user: text(user),
            agent: text(agent),
            cwd: text(cwd),
            wire: text(wire),
            session: session.map(|session| {
                let [id, cwd, branch, version] = session.pick(["id", "cwd", "branch", "version"]);
                AgentSession {
                    id: text(id),
                    cwd: text(cwd),
                    branch: text(branch),
                    version: text(version),
                }
            }),
        })
    }
}
