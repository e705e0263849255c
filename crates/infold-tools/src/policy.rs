//! A policy: the categories that phases show, the permissions that tools require, and the values that
//! production allows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::category::{
    CATEGORIES, CONTROL, PHASES, built_in_category, canonical, default_permission,
    default_priority, reads_web,
};
use crate::name::NameParts;
use crate::validators::compile;
use crate::{Environment, OfferedTool, Permission, Situation, SituationChange, UnknownName};

/// The treatment of tools that neither the policy nor the built-in table knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownTools {
    /// They are shown.
    Allow,
    /// They are hidden.
    Deny,
}

impl FromStr for UnknownTools {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<UnknownTools, UnknownName> {
        match text {
            "allow" => Ok(UnknownTools::Allow),
            "deny" => Ok(UnknownTools::Deny),
            other => Err(UnknownName::new("choice", other, ["allow", "deny"])),
        }
    }
}

/// A policy's rule for a tool, or for all tools whose names have the same prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRule {
    /// Its category.
    pub category: Option<String>,
    /// Its priority: tools with a higher one come first.
    pub priority: Option<u32>,
    /// All permissions that it requires.
    pub permissions: Option<Vec<String>>,
    /// Its description, if the policy defines it.
    pub description: Option<String>,
    /// The JSON Schema of its arguments, if the policy defines it.
    pub schema: Option<String>,
}

/// A policy as configured, unchecked. Missing settings have built-in defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyDraft {
    /// The phase, unless a task has its own.
    pub phase: Option<String>,
    /// The granted permissions, unless a task has its own.
    pub permissions: Vec<String>,
    /// The environment, unless a task has its own.
    pub environment: Option<String>,
    /// Whether tasks are urgent.
    pub is_urgent: bool,
    /// Phases and the categories that each shows; they replace or add to those built in.
    pub phases: Vec<(String, Vec<String>)>,
    /// Categories in addition to those built in.
    pub categories: Vec<String>,
    /// Rules by the name of a tool, or by the start of names: `mcp__github__*`.
    pub tools: Vec<(String, ToolRule)>,
    /// The commands that production allows; `None` stands for `npm test`, `npm run build` and `npm run lint`.
    pub commands: Option<Vec<String>>,
    /// The paths that may be deleted in production.
    pub paths: Vec<String>,
    /// The treatment of unknown tools; without one, the environment decides.
    pub unknown: Option<UnknownTools>,
    /// The tokens that definitions may have, instead of 2,000.
    pub budget: Option<u64>,
    /// Whether the budget also holds for the tools of a client.
    pub budget_client_tools: bool,
}

/// A problem of a policy, and its place in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", .path.join("."))]
pub struct PolicyProblem {
    /// The keys that lead to it.
    pub path: Vec<String>,
    /// The problem.
    pub what: String,
    /// The known name that was probably meant.
    pub nearest: Option<String>,
}

/// All problems of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProblems(pub Vec<PolicyProblem>);

impl fmt::Display for PolicyProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join("; "))
    }
}

impl std::error::Error for PolicyProblems {}

/// A policy whose names are known and whose schemas are JSON Schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The categories that each phase shows.
    phases: BTreeMap<String, BTreeSet<String>>,
    /// The rules by the name of a tool, or by a prefix of names and `*`.
    rules: BTreeMap<String, ToolRule>,
    /// The situation of tasks that have none of their own.
    situation: Situation,
    pub(crate) commands: Vec<String>,
    pub(crate) paths: Vec<String>,
    unknown: Option<UnknownTools>,
    pub(crate) budget: u64,
    pub(crate) budget_client_tools: bool,
}

/// The properties of a tool under a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolFacts {
    /// None if neither the policy nor the built-in table knows the tool.
    pub category: Option<String>,
    pub priority: u32,
    pub required: Vec<Permission>,
}

/// The tokens that definitions may have together.
const DEFAULT_BUDGET_TOKENS: u64 = 2000;
/// The commands that production allows.
const DEFAULT_COMMANDS: [&str; 3] = ["npm test", "npm run build", "npm run lint"];
const DEFAULT_PHASE: &str = "executing";

impl Policy {
    /// Checks a policy; returns all problems there are.
    pub fn new(draft: PolicyDraft) -> Result<Policy, PolicyProblems> {
        let mut problems = Vec::new();
        check_tools(&draft, &mut problems);
        let phases = read_phases(&draft, &mut problems);
        for command in draft.commands.iter().flatten().chain(&draft.paths) {
            if command.trim().is_empty() {
                let path = vec!["production".to_owned()];
                problems.push(PolicyProblem::plain(path, "an empty text allows nothing"));
            }
        }
        let mut policy = Policy {
            phases,
            rules: draft.tools.into_iter().collect(),
            situation: Situation {
                phase: DEFAULT_PHASE.to_owned(),
                permissions: BTreeSet::new(),
                environment: Environment::Dev,
                is_urgent: draft.is_urgent,
            },
            commands: draft
                .commands
                .unwrap_or_else(|| DEFAULT_COMMANDS.map(str::to_owned).to_vec()),
            paths: draft.paths,
            unknown: draft.unknown,
            budget: draft.budget.unwrap_or(DEFAULT_BUDGET_TOKENS),
            budget_client_tools: draft.budget_client_tools,
        };
        // Each part of the situation is applied on its own, so that the problem of each is reported with its key.
        let mut parts = [
            ("phase", SituationChange::default()),
            ("permissions", SituationChange::default()),
            ("environment", SituationChange::default()),
        ];
        parts[0].1.phase = draft.phase;
        parts[1].1.permissions = Some(draft.permissions);
        parts[2].1.environment = draft.environment;
        for (key, change) in parts {
            match policy.situation_with(&change) {
                Ok(situation) => policy.situation = situation,
                Err(unknown) => {
                    problems.push(PolicyProblem::unknown(vec![key.to_owned()], unknown));
                }
            }
        }
        if problems.is_empty() {
            Ok(policy)
        } else {
            Err(PolicyProblems(problems))
        }
    }

    /// Returns the situation of tasks that have none of their own.
    pub fn situation(&self) -> &Situation {
        &self.situation
    }

    /// Returns the situation of a task. An unknown name is an error: it must never make all tools visible.
    pub fn situation_with(&self, change: &SituationChange) -> Result<Situation, UnknownName> {
        let mut situation = self.situation.clone();
        if let Some(phase) = &change.phase {
            if !self.phases.contains_key(phase) {
                let known = self.phases.keys().map(String::as_str);
                return Err(UnknownName::new("phase", phase, known));
            }
            situation.phase = phase.clone();
        }
        if let Some(permissions) = &change.permissions {
            let granted = permissions.iter().map(|text| self.known_permission(text));
            situation.permissions = granted.collect::<Result<_, _>>()?;
        }
        if let Some(environment) = &change.environment {
            situation.environment = environment.parse()?;
        }
        situation.is_urgent = change.is_urgent.unwrap_or(situation.is_urgent);
        Ok(situation)
    }

    /// Returns the names of the phases.
    pub fn phases(&self) -> impl Iterator<Item = &str> {
        self.phases.keys().map(String::as_str)
    }

    /// Returns the tools that the policy names one by one.
    pub fn defined_tools(&self) -> Vec<OfferedTool> {
        let named = self.rules.iter().filter(|(name, _)| !name.ends_with('*'));
        named
            .map(|(name, rule)| OfferedTool::defined(name, rule))
            .collect()
    }

    /// Returns the treatment of unknown tools.
    pub fn unknown_tools(&self, environment: Environment) -> UnknownTools {
        self.unknown.unwrap_or(match environment {
            Environment::Dev | Environment::Staging => UnknownTools::Allow,
            Environment::Production => UnknownTools::Deny,
        })
    }

    /// Returns whether a phase shows the tools of a category.
    pub(crate) fn shows(&self, phase: &str, category: &str) -> bool {
        let shown = self.phases.get(phase);
        category == CONTROL || shown.is_some_and(|shown| shown.contains(category))
    }

    /// Returns the properties of a tool. Each comes from its own rule, else from the rule of a prefix of its name, else
    /// from the built-in table.
    pub(crate) fn facts(&self, name: &str) -> ToolFacts {
        let (own, of_prefix) = (self.own_rule(name), self.prefix_rule(name));
        let first_rule = |pick: &dyn Fn(&ToolRule) -> bool| {
            let mut rules = own.into_iter().chain(of_prefix);
            rules.find(|rule| pick(rule))
        };
        let category = first_rule(&|rule| rule.category.is_some());
        let category = category.and_then(|rule| rule.category.as_deref());
        let category = category.map(canonical).or_else(|| built_in_category(name));
        let permissions = first_rule(&|rule| rule.permissions.is_some());
        let required = match permissions.and_then(|rule| rule.permissions.as_ref()) {
            Some(permissions) => permissions
                .iter()
                .filter_map(|it| Permission::new(it))
                .collect(),
            None => default_permissions(name, category),
        };
        let priority = first_rule(&|rule| rule.priority.is_some()).and_then(|rule| rule.priority);
        ToolFacts {
            priority: priority.unwrap_or_else(|| default_priority(category)),
            category: category.map(str::to_owned),
            required,
        }
    }

    /// Returns the rule of a tool: that of its exact name, else that of the longest name with which its name ends. Case
    /// and the separators of words do not matter: `mcp__files__read_file` has the rule of `readFile`.
    fn own_rule(&self, name: &str) -> Option<&ToolRule> {
        self.rules.get(name).or_else(|| {
            let parts = NameParts::of(name);
            let named = self.rules.iter().filter(|(rule, _)| !rule.ends_with('*'));
            let named = named.filter(|(rule, _)| parts.ends_with(&NameParts::of(rule)));
            let longest = named.max_by_key(|(rule, _)| rule.len());
            longest.map(|(_, rule)| rule)
        })
    }

    /// Returns the rule whose name is a prefix of this one and `*`; of several the longest. Case and the separators of
    /// words do not matter.
    fn prefix_rule(&self, name: &str) -> Option<&ToolRule> {
        let parts = NameParts::of(name);
        let prefixes = self.rules.iter().filter_map(|(pattern, rule)| {
            let prefix = pattern.strip_suffix('*')?;
            parts.begins_with(prefix).then_some((prefix.len(), rule))
        });
        let longest = prefixes.max_by_key(|(length, _)| *length);
        longest.map(|(_, rule)| rule)
    }

    /// Parses a permission to be granted. It is an error if it would grant no permission that any tool requires.
    fn known_permission(&self, text: &str) -> Result<Permission, UnknownName> {
        let required = self
            .rules
            .values()
            .flat_map(|rule| rule.permissions.iter().flatten())
            .filter_map(|it| Permission::new(it));
        let built_in = CATEGORIES.into_iter().filter_map(default_permission);
        let built_in = built_in.chain([WEB_PERMISSION]);
        let all = required.chain(built_in.filter_map(Permission::new));
        let all: Vec<Permission> = all.collect();
        let known: BTreeSet<&str> = all.iter().flat_map(Permission::granted_by).collect();
        let permission = Permission::new(text).filter(|_| known.contains(text));
        permission.ok_or_else(|| UnknownName::new("permission", text, known))
    }
}

/// The permission that tools for reading the web require; `search` grants it.
const WEB_PERMISSION: &str = "search:web";

/// Returns the permissions that a tool requires unless a rule says otherwise.
fn default_permissions(name: &str, category: Option<&str>) -> Vec<Permission> {
    let required = match category {
        Some("search") if reads_web(name) => Some(WEB_PERMISSION),
        category => category.and_then(default_permission),
    };
    required.and_then(Permission::new).into_iter().collect()
}

impl PolicyProblem {
    fn plain(path: Vec<String>, what: &str) -> PolicyProblem {
        PolicyProblem {
            path,
            what: what.to_owned(),
            nearest: None,
        }
    }

    fn unknown(path: Vec<String>, unknown: UnknownName) -> PolicyProblem {
        PolicyProblem {
            path,
            what: unknown.to_string(),
            nearest: unknown.nearest,
        }
    }
}

/// Checks that a category is built in, or one of the draft's own.
fn check_category(draft: &PolicyDraft, category: &str) -> Result<(), UnknownName> {
    let own = draft.categories.iter().map(String::as_str);
    let mut all = CATEGORIES.into_iter().chain([CONTROL]).chain(own.clone());
    let category = canonical(category);
    if all.any(|known| known == category) {
        return Ok(());
    }
    let all = CATEGORIES.into_iter().chain([CONTROL]).chain(own);
    Err(UnknownName::new("category", category, all))
}

/// Returns the phases of a draft and the built-in ones that it does not replace; adds problems of their categories.
fn read_phases(
    draft: &PolicyDraft,
    problems: &mut Vec<PolicyProblem>,
) -> BTreeMap<String, BTreeSet<String>> {
    let built_in = PHASES.map(|(name, shown)| {
        let shown = shown.iter().map(|category| (*category).to_owned());
        (name.to_owned(), shown.collect())
    });
    let mut phases = BTreeMap::from(built_in);
    for (phase, categories) in &draft.phases {
        for category in categories {
            if let Err(unknown) = check_category(draft, category) {
                let path = vec!["phases".to_owned(), phase.clone()];
                problems.push(PolicyProblem::unknown(path, unknown));
            }
        }
        let categories = categories.iter().map(|it| canonical(it).to_owned());
        phases.insert(phase.clone(), categories.collect());
    }
    phases
}

/// Adds the problems of the rules for tools.
fn check_tools(draft: &PolicyDraft, problems: &mut Vec<PolicyProblem>) {
    let mut seen = BTreeSet::new();
    for (name, rule) in &draft.tools {
        let path = |key: &str| vec!["tools".to_owned(), name.clone(), key.to_owned()];
        let tool_path = || vec!["tools".to_owned(), name.clone()];
        if !seen.insert(name) {
            problems.push(PolicyProblem::plain(
                tool_path(),
                "this tool is there twice",
            ));
        }
        let is_name = |name: &str| !name.is_empty() && !name.contains('*');
        if !is_name(name.strip_suffix('*').unwrap_or(name)) {
            let what = "a tool has a name, or the start of one and a `*`";
            problems.push(PolicyProblem::plain(tool_path(), what));
        }
        if let Some(Err(unknown)) = rule.category.as_ref().map(|it| check_category(draft, it)) {
            problems.push(PolicyProblem::unknown(path("category"), unknown));
        }
        let mut permissions = rule.permissions.iter().flatten();
        if let Some(bad) = permissions.find(|it| Permission::new(it).is_none()) {
            let what = format!("`{bad}` is no permission: words with `:` between them are");
            problems.push(PolicyProblem::plain(path("permissions"), &what));
        }
        if let Some(Err(error)) = rule.schema.as_ref().map(|schema| compile(schema)) {
            problems.push(PolicyProblem::plain(path("schema"), &error.to_string()));
        }
    }
}
