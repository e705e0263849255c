//! Decides for each tool whether the model may see it now, with the reason.

use std::collections::HashSet;
use std::fmt;

use infold_wire::Json;
use infold_wire::tool_list::{EditedTools, ToolEdit, edit_tools};

use crate::category::runs_more_than_commands;
use crate::narrow::{NarrowedSchema, Narrows, has_free_command, narrow};
use crate::policy::ToolFacts;
use crate::{
    CONTROL, Environment, OfferedTool, Permission, Policy, Situation, ToolOrigin, UnknownTools,
    Validators,
};

/// The number of tools that an urgent task sees, not counting those that every phase shows.
const URGENT_TOOLS: usize = 5;

/// The decisions about all tools in a situation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    /// The situation.
    pub situation: Situation,
    /// The decisions, in the order of the tools.
    pub decisions: Vec<Decision>,
}

/// The decision about one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The tool.
    pub name: String,
    /// Its category; none if the tool is unknown.
    pub category: Option<String>,
    /// Its priority.
    pub priority: u32,
    /// All permissions that it requires.
    pub required: Vec<Permission>,
    /// Whether and how it is shown.
    pub verdict: ToolVerdict,
}

/// Whether a tool is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolVerdict {
    /// Shown unchanged.
    Shown,
    /// Shown with a narrower schema.
    Narrowed {
        /// The schema.
        schema: String,
        /// The arguments that are narrowed.
        arguments: Vec<String>,
    },
    /// Not shown.
    Hidden(HiddenReason),
}

/// Why a tool is hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HiddenReason {
    /// An earlier tool has the same name.
    Twice,
    /// The tool is unknown, and unknown tools are denied.
    Unknown,
    /// Its category does not belong to the phase.
    Phase {
        /// The category.
        category: String,
        /// The phase.
        phase: String,
    },
    /// Permissions that it requires and that are not granted.
    Permission(Vec<Permission>),
    /// Production allows no value for it.
    NothingAllowed {
        /// The kind of value that would have to be allowed.
        what: &'static str,
    },
    /// It cannot be narrowed, as production demands.
    NotNarrowed {
        /// The kind of argument that its schema lacks.
        what: &'static str,
    },
    /// Its schema cannot be checked, and unknown tools are denied.
    Schema(String),
    /// It does not fit the budget.
    Budget {
        /// Its tokens.
        tokens: u64,
        /// How many of them were left.
        left: u64,
    },
    /// The task is urgent, and others have a higher priority.
    Urgent,
}

impl fmt::Display for HiddenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HiddenReason::Twice => write!(f, "another tool before it has this name"),
            HiddenReason::Unknown => {
                write!(f, "its category is unknown, and such tools are denied")
            }
            HiddenReason::Phase { category, phase } => {
                write!(f, "{category} does not belong to the phase {phase}")
            }
            HiddenReason::Permission(missing) => {
                let missing: Vec<&str> = missing.iter().map(Permission::as_str).collect();
                write!(f, "the permission {} is not granted", missing.join(", "))
            }
            HiddenReason::NothingAllowed { what } => {
                write!(f, "no {what} is allowed in production")
            }
            HiddenReason::NotNarrowed { what } => write!(
                f,
                "its schema has no {what} that could be limited in production"
            ),
            HiddenReason::Schema(reason) => write!(f, "its arguments cannot be checked: {reason}"),
            HiddenReason::Budget { tokens, left } => {
                write!(f, "{tokens} tokens do not fit the {left} that are left")
            }
            HiddenReason::Urgent => write!(
                f,
                "the task is urgent, and {URGENT_TOOLS} tools come before it"
            ),
        }
    }
}

impl Decision {
    /// Whether the model sees the tool.
    pub fn is_shown(&self) -> bool {
        !matches!(self.verdict, ToolVerdict::Hidden(_))
    }
}

impl Projection {
    /// Returns the names of the tools that are shown, those with the highest priority first.
    pub fn shown_names(&self) -> Vec<&str> {
        let shown = self.by_priority().into_iter();
        let shown = shown.filter(|decision| decision.is_shown());
        shown.map(|decision| decision.name.as_str()).collect()
    }

    /// Returns the names of the tools whose schemas are narrowed.
    pub fn narrowed_names(&self) -> Vec<&str> {
        let narrowed =
            |decision: &&Decision| matches!(decision.verdict, ToolVerdict::Narrowed { .. });
        let decisions = self.decisions.iter().filter(narrowed);
        decisions.map(|decision| decision.name.as_str()).collect()
    }

    /// Returns all decisions, those with the highest priority first.
    pub fn by_priority(&self) -> Vec<&Decision> {
        let mut decisions: Vec<&Decision> = self.decisions.iter().collect();
        decisions.sort_by_key(|decision| std::cmp::Reverse(decision.priority));
        decisions
    }

    /// Applies the decisions to the value that the tools were read from; tools that do not change stay byte for byte.
    pub fn apply(&self, tools: Json<'_>) -> EditedTools {
        let mut decisions = self.decisions.iter();
        edit_tools(
            tools,
            &mut |_| match decisions.next().map(|it| &it.verdict) {
                Some(ToolVerdict::Shown) => ToolEdit::Keep,
                Some(ToolVerdict::Narrowed { schema, .. }) => ToolEdit::Schema(schema.clone()),
                Some(ToolVerdict::Hidden(_)) | None => ToolEdit::Remove,
            },
        )
    }
}

impl Policy {
    /// Decides which tools are shown: by phase, permissions, environment and budget, in this order.
    pub fn project(
        &self,
        tools: &[OfferedTool],
        situation: &Situation,
        validators: &Validators,
    ) -> Projection {
        let mut seen = HashSet::new();
        let mut decisions: Vec<Decision> = tools
            .iter()
            .map(|tool| {
                let mut decision = self.decide(tool, situation, validators);
                if !seen.insert(tool.name()) {
                    decision.verdict = ToolVerdict::Hidden(HiddenReason::Twice);
                }
                decision
            })
            .collect();
        self.apply_budget(tools, &mut decisions, situation.is_urgent());
        Projection {
            situation: situation.clone(),
            decisions,
        }
    }

    /// Decides about one tool, the budget aside.
    pub(crate) fn decide(
        &self,
        tool: &OfferedTool,
        situation: &Situation,
        validators: &Validators,
    ) -> Decision {
        let facts = self.facts(tool.name());
        let verdict = self.verdict(tool, &facts, situation, validators);
        Decision {
            name: tool.name().to_owned(),
            category: facts.category,
            priority: facts.priority,
            required: facts.required,
            verdict: verdict.unwrap_or_else(ToolVerdict::Hidden),
        }
    }

    fn verdict(
        &self,
        tool: &OfferedTool,
        facts: &ToolFacts,
        situation: &Situation,
        validators: &Validators,
    ) -> Result<ToolVerdict, HiddenReason> {
        let denies = self.unknown_tools(situation.environment()) == UnknownTools::Deny;
        match &facts.category {
            None if denies => return Err(HiddenReason::Unknown),
            Some(category) if !self.shows(situation.phase(), category) => {
                return Err(HiddenReason::Phase {
                    category: category.clone(),
                    phase: situation.phase().to_owned(),
                });
            }
            None | Some(_) => {}
        }
        let missing = situation.missing(&facts.required);
        if !missing.is_empty() {
            return Err(HiddenReason::Permission(missing));
        }
        if let (true, Some(schema)) = (denies, &tool.schema) {
            let compiled = validators.get(&crate::check::checked_schema(schema));
            compiled.map_err(|error| HiddenReason::Schema(error.to_string()))?;
        }
        match situation.environment() {
            Environment::Production => self.narrowed(tool, facts.category.as_deref()),
            Environment::Dev | Environment::Staging => Ok(ToolVerdict::Shown),
        }
    }

    /// Narrows a tool as production demands.
    fn narrowed(
        &self,
        tool: &OfferedTool,
        category: Option<&str>,
    ) -> Result<ToolVerdict, HiddenReason> {
        let (narrows, allowed, what) = match category {
            Some("execute") => (Narrows::Commands, &self.commands, "command"),
            Some("delete") => (Narrows::Paths, &self.paths, "path"),
            Some("test") if tool.schema.as_deref().is_some_and(has_free_command) => {
                (Narrows::Commands, &self.commands, "command")
            }
            _ => return Ok(ToolVerdict::Shown),
        };
        if allowed.is_empty() {
            return Err(HiddenReason::NothingAllowed { what });
        }
        let is_open = narrows == Narrows::Commands && runs_more_than_commands(tool.name());
        let schema = tool.schema.as_deref().filter(|_| !is_open);
        match schema.and_then(|schema| narrow(schema, narrows, allowed, tool.can_be_closed)) {
            Some(NarrowedSchema { schema, arguments }) => {
                Ok(ToolVerdict::Narrowed { schema, arguments })
            }
            None => Err(HiddenReason::NotNarrowed { what }),
        }
    }

    /// Hides tools over the budget: by tokens, or by number if the task is urgent.
    fn apply_budget(&self, tools: &[OfferedTool], decisions: &mut [Decision], is_urgent: bool) {
        let mut order: Vec<usize> = (0..tools.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(decisions[*at].priority));
        let (mut left, mut shown) = (self.budget, 0);
        for at in order {
            let (tool, decision) = (&tools[at], &mut decisions[at]);
            let is_limited = tool.origin == ToolOrigin::Policy || self.budget_client_tools;
            if !decision.is_shown() || !is_limited {
                continue;
            }
            if is_urgent {
                let is_control = decision.category.as_deref() == Some(CONTROL);
                shown += usize::from(!is_control);
                if !is_control && shown > URGENT_TOOLS {
                    decision.verdict = ToolVerdict::Hidden(HiddenReason::Urgent);
                }
                continue;
            }
            let tokens = tool.tokens(&decision.verdict);
            match left.checked_sub(tokens) {
                Some(rest) => left = rest,
                None => {
                    decision.verdict = ToolVerdict::Hidden(HiddenReason::Budget { tokens, left });
                }
            }
        }
    }
}
