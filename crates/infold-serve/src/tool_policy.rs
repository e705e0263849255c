//! Applies the policy for tools to a request: the tools that are shown, and the rules for their calls.

mod choice;
mod hosted;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use infold::layers::task_situation;
use infold::tool_record::{last_tools_shown, tools_shown_line};
use infold_store::{Log, ToolsShownLine};
use infold_tools::{OfferedTool, Policy, ShownTools, Situation, Validators};
use infold_wire::lookup::CallJudge;
use infold_wire::provider_error::ClientError;
use infold_wire::tool_list::EditedTools;
use infold_wire::tools::{PLACEHOLDER_TOOL_NAME, PLACEHOLDER_TOOLS, ToolChoice, write_tool_choice};
use infold_wire::{Json, Wire};
use quick_cache::sync::Cache;

use crate::client_body::Response;
use crate::conversations::{Blocking, Core};
use crate::parsed_request::ParsedRequest;
use crate::pool::TaskLease;
use crate::proxy::{ProxiedRequest, complaint};
use crate::{ConversationError, Exchange, IncomingBody, ModelCall, OutgoingBody};
use choice::{choice_without, chosen_names};
use hosted::HostedMember;

/// The policy, and its cached projections of the tools of recent requests.
#[derive(Debug)]
pub(crate) struct ToolPolicy {
    policy: Arc<Policy>,
    validators: Arc<Validators>,
    projected: Cache<(u128, Situation), Arc<ProjectedTools>>,
}

/// The number of cached lists of tools.
const MAX_CACHED_LISTS: usize = 64;

/// A list of tools, projected.
#[derive(Debug)]
struct ProjectedTools {
    edited: EditedTools,
    shown: ShownTools,
    line: ToolsShownLine,
    /// The members besides `tools` that change; `None` removes one.
    hosted: Vec<(&'static str, Option<Vec<u8>>)>,
}

/// The changes by the tool policy to one request.
#[derive(Clone, Debug)]
pub(crate) struct RequestTools {
    /// The members of the request that change: their places and new values; `None` removes a member.
    edits: Vec<MemberEdit>,
    shown: Arc<ProjectedTools>,
    /// The event that records the shown tools.
    pub line: ToolsShownLine,
}

#[derive(Clone, Debug)]
struct MemberEdit {
    name: String,
    /// The place of the value; or of the whole member with a comma, if it is removed.
    range: Range<u64>,
    value: Option<Bytes>,
    /// The bytes before the value where the member is added.
    skipped: usize,
}

impl ToolPolicy {
    pub fn new(policy: Arc<Policy>) -> ToolPolicy {
        ToolPolicy {
            policy,
            validators: Arc::default(),
            projected: Cache::new(MAX_CACHED_LISTS),
        }
    }

    fn project(
        &self,
        tools: Option<&[u8]>,
        hosted: &[HostedMember],
        situation: &Situation,
    ) -> ProjectedTools {
        let json = tools.and_then(|tools| Json::parse(tools).ok());
        let tools = json.map(OfferedTool::read_all).unwrap_or_default();
        let projection = self.policy.project(&tools, situation, &self.validators);
        let mut shown = ShownTools::new(
            Arc::clone(&self.policy),
            Arc::clone(&self.validators),
            &tools,
            &projection,
        );
        shown.hide(PLACEHOLDER_TOOL_NAME, "it does nothing");
        let edited = match json {
            Some(json) if !tools.is_empty() => projection.apply(json),
            _ => EditedTools::Unchanged,
        };
        let mut line = tools_shown_line(&projection);
        let hosted = self.project_hosted(hosted, situation, &mut line);
        ProjectedTools {
            edited,
            shown,
            line,
            hosted,
        }
    }
}

impl Core {
    /// Applies the policy to the tools of a request. The inner option is `None` if there is no policy; the outer one if
    /// applying it would block and must not. Tools that cannot be checked are an error.
    pub fn project_tools(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
        log: &Log,
        blocking: Blocking,
    ) -> Result<Option<Option<RequestTools>>, ConversationError> {
        let Some(policy) = &self.tool_policy else {
            return Ok(Some(None));
        };
        let request = RequestMembers { call, parsed };
        request.check()?;
        let shown = log.state().shown();
        let has_state = shown.state_changes().last.is_some();
        if has_state && blocking == Blocking::Forbidden {
            return Ok(None);
        }
        let change = task_situation(log, shown, infold_store::now())?;
        let situation = policy.policy.situation_with(&change);
        let situation = situation.map_err(|error| {
            ConversationError::Internal(format!("the state of the task: {error}"))
        })?;
        let tools = request.bytes("tools")?;
        let hosted = request.hosted()?;
        let parts = hosted.iter().map(|member| member.value.as_slice());
        let parts: Vec<&[u8]> = parts.chain(tools.as_deref()).collect();
        let key = self.digests.prefixes.hasher.hash(&parts.join(&b'\n'));
        let key = (key, situation.clone());
        let shown = match policy.projected.get(&key) {
            Some(shown) => shown,
            // Schemas that were not seen before are compiled.
            None if blocking == Blocking::Forbidden => return Ok(None),
            None => {
                let shown = Arc::new(policy.project(tools.as_deref(), &hosted, &situation));
                policy.projected.insert(key, Arc::clone(&shown));
                shown
            }
        };
        request.edited(shown).map(|tools| Some(Some(tools)))
    }

    /// Records which tools are shown, if that changed.
    pub fn record_tools_shown(
        &self,
        open: &mut TaskLease,
        line: &ToolsShownLine,
    ) -> Result<(), ConversationError> {
        // Some clients also send requests without tools, for titles and the like.
        if line.shown.is_empty() && line.hidden.is_empty() {
            return Ok(());
        }
        if open.tools_shown.is_none() {
            open.tools_shown = last_tools_shown(open.log())?;
        }
        if open.tools_shown.as_ref() == Some(line) {
            return Ok(());
        }
        open.writer.tools_shown(line.clone())?;
        open.tools_shown = Some(line.clone());
        open.wrote();
        let event = serde_json::json!({
            "phase": line.phase,
            "environment": line.environment,
            "shown": line.shown,
            "narrowed": line.narrowed,
        });
        self.publish(open.id, "tools_shown", event.to_string());
        Ok(())
    }
}

impl RequestTools {
    /// Returns the new value of a member: the inner option is `None` if it is removed; the outer one if it stays.
    pub fn member(&self, name: &str) -> Option<Option<Bytes>> {
        let edit = self.edits.iter().find(|edit| edit.name == name)?;
        Some(edit.value.as_ref().map(|value| value.slice(edit.skipped..)))
    }

    /// Writes the changed members into the client's own bytes of a request.
    pub fn apply(&self, outgoing: OutgoingBody) -> OutgoingBody {
        self.edits.iter().fold(outgoing, |outgoing, edit| {
            let value = edit.value.clone().unwrap_or_default();
            outgoing.replace(edit.range.clone(), value)
        })
    }

    /// Says whether the request has tools, so that it may have calls.
    pub fn has_tools(&self) -> bool {
        !self.line.shown.is_empty()
    }

    /// Judges the calls of its reply.
    pub fn judge(&self) -> CallJudge {
        let shown = Arc::clone(&self.shown);
        Arc::new(move |name, arguments| {
            let checked = shown.shown.check(name, arguments);
            checked.err().map(|refusal| refusal.to_string())
        })
    }
}

impl Exchange {
    /// Returns a request with the tools that the model may see.
    pub(crate) fn projected(&self, outgoing: OutgoingBody) -> OutgoingBody {
        match &self.tools {
            Some(tools) => tools.apply(outgoing),
            None => outgoing,
        }
    }
}

impl ProxiedRequest<'_> {
    /// Refuses a request to which the policy for tools could not be applied; none if there is no policy.
    pub fn refused_by_policy(&self, why: &str) -> Option<Response> {
        self.state.conversations.core.tool_policy.as_ref()?;
        self.state.metrics.failed("policy");
        tracing::warn!(why, "refused: the policy for tools could not be applied");
        let what = format!(
            "infold did not send this request, since a policy for tools is in force: {why}"
        );
        Some(complaint(self.wire, false, &ClientError::Request(what)))
    }
}

/// The members of a request that have to do with tools.
struct RequestMembers<'a> {
    call: &'a ModelCall,
    parsed: &'a ParsedRequest,
}

impl RequestMembers<'_> {
    fn range(&self, name: &str) -> Option<Range<u64>> {
        self.parsed.envelope.member(name)
    }

    fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, ConversationError> {
        let range = self.range(name);
        let bytes = range.map(|range| self.call.body.part(&range).map(|it| it.into_owned()));
        Ok(bytes.transpose()?)
    }

    /// Refuses a request whose tools cannot be checked.
    fn check(&self) -> Result<(), ConversationError> {
        let holds = |name: &str, of: &dyn Fn(Json<'_>) -> bool| {
            let bytes = self.bytes(name)?;
            let json = bytes.as_deref().and_then(|bytes| Json::parse(bytes).ok());
            Ok::<bool, ConversationError>(json.is_some_and(|json| !json.is_null() && of(json)))
        };
        let many = |json: Json<'_>| json.number().is_some_and(|count| count > 1.0);
        let candidates = |json: Json<'_>| {
            let [camel, snake] = json.pick(["candidateCount", "candidate_count"]);
            camel.or(snake).is_some_and(many)
        };
        let unchecked = match self.call.wire {
            Wire::Chat if holds("functions", &|_| true)? => Some("`functions`: use `tools`"),
            Wire::Chat if holds("n", &many)? => Some("several choices (`n`)"),
            Wire::Responses if holds("background", &|json| json.is_true())? => Some("`background`"),
            Wire::Responses if holds("prompt", &|_| true)? => Some("a stored `prompt`"),
            Wire::Gemini
                if holds("cachedContent", &|_| true)? || holds("cached_content", &|_| true)? =>
            {
                Some("`cachedContent`")
            }
            Wire::Gemini
                if holds("generationConfig", &candidates)?
                    || holds("generation_config", &candidates)? =>
            {
                Some("several candidates")
            }
            _ => None,
        };
        match unchecked {
            Some(what) => Err(ConversationError::Policy(format!(
                "a policy for tools is in force, and calls cannot be checked with {what}"
            ))),
            None => Ok(()),
        }
    }

    /// Returns the changes by the projection to this request.
    fn edited(&self, shown: Arc<ProjectedTools>) -> Result<RequestTools, ConversationError> {
        let wire = self.call.wire;
        let mut line = shown.line.clone();
        let mut edits = MemberEdits::default();
        let choice_name = match wire {
            Wire::Gemini if self.range("tool_config").is_some() => "tool_config",
            Wire::Gemini => "toolConfig",
            _ => "tool_choice",
        };
        let choice = self.bytes(choice_name)?;
        let choice = choice.as_deref().and_then(|bytes| Json::parse(bytes).ok());
        let is_hidden = |name: &str| line.hidden.iter().any(|(hidden, _)| hidden == name);
        let hidden = choice.and_then(|choice| {
            let names = chosen_names(wire, choice);
            names.into_iter().find(|name| is_hidden(name))
        });
        let left = choice.filter(|_| hidden.is_some());
        let left = left.map(|choice| choice_without(wire, choice, &is_hidden));
        match &shown.edited {
            EditedTools::Unchanged => {}
            EditedTools::Changed(tools) => {
                edits.set("tools", self.range("tools"), tools.clone());
                if let Some(left) = left {
                    edits.set(choice_name, self.range(choice_name), left.into_bytes());
                }
            }
            EditedTools::Empty if wire == Wire::Anthropic => {
                edits.set("tools", self.range("tools"), PLACEHOLDER_TOOLS.into());
                let none = write_tool_choice(ToolChoice::None, wire).into_bytes();
                match (self.range(choice_name), self.range("tools")) {
                    (None, Some(tools)) => edits.add(choice_name, tools.end, &none),
                    (range, _) => edits.set(choice_name, range, none),
                }
            }
            EditedTools::Empty => {
                let mut names = ["tools", choice_name, "parallel_tool_calls"];
                // From the front, so that each removal knows which comma is left for it.
                names.sort_by_key(|name| self.range(name).map(|range| range.start));
                for name in names {
                    edits.remove(name, self.range(name), &self.call.body)?;
                }
            }
        }
        line.choice = hidden;
        for (name, value) in &shown.hosted {
            match value {
                Some(value) => edits.set(name, self.range(name), value.clone()),
                None => edits.remove(name, self.range(name), &self.call.body)?,
            }
        }
        Ok(RequestTools {
            edits: edits.0,
            shown,
            line,
        })
    }
}

#[derive(Default)]
struct MemberEdits(Vec<MemberEdit>);

impl MemberEdits {
    fn set(&mut self, name: &str, range: Option<Range<u64>>, value: Vec<u8>) {
        self.0.extend(range.map(|range| MemberEdit {
            name: name.to_owned(),
            range,
            skipped: 0,
            value: Some(value.into()),
        }));
    }

    /// Adds a member behind a value.
    fn add(&mut self, name: &str, at: u64, value: &[u8]) {
        let start = format!(",{}:", infold_wire::quote(name)).into_bytes();
        self.0.push(MemberEdit {
            name: name.to_owned(),
            range: at..at,
            skipped: start.len(),
            value: Some([start.as_slice(), value].concat().into()),
        });
    }

    /// Removes a member, with the comma before it, or behind it if it is the first that is left.
    fn remove(
        &mut self,
        name: &str,
        range: Option<Range<u64>>,
        body: &IncomingBody,
    ) -> Result<(), ConversationError> {
        let Some(value) = range else { return Ok(()) };
        /// A name and the white space around it are not longer.
        const MAX_GAP_BYTES: u64 = 4096;
        let start = value.start.saturating_sub(MAX_GAP_BYTES);
        let before = body.part(&(start..value.start))?.into_owned();
        let after = body
            .part(&(value.end..(value.end + MAX_GAP_BYTES).min(body.len())))?
            .into_owned();
        let unreadable =
            || ConversationError::Policy(format!("the member `{name}` cannot be left out"));
        let key = infold_wire::quote(name);
        let at = memchr::memmem::rfind(&before, key.as_bytes()).ok_or_else(unreadable)?;
        let key_start = start + at as u64;
        let space = before[..at].iter().rev();
        let space = space.take_while(|byte| byte.is_ascii_whitespace()).count();
        let comma = at.checked_sub(space + 1).filter(|at| before[*at] == b',');
        let comma = comma.map(|at| start + at as u64);
        let is_taken = |at: u64| self.0.iter().any(|edit| edit.range.contains(&at));
        let range = match comma.filter(|at| !is_taken(*at)) {
            Some(comma) => comma..value.end,
            None => {
                let space = after.iter().take_while(|byte| byte.is_ascii_whitespace());
                let space = space.count();
                let has_comma = after.get(space) == Some(&b',');
                let end = value.end + if has_comma { space as u64 + 1 } else { 0 };
                key_start..end
            }
        };
        self.0.push(MemberEdit {
            name: name.to_owned(),
            range,
            skipped: 0,
            value: None,
        });
        Ok(())
    }
}
