//! The fields of a layered state: their names, layers, forms and XML elements, and who may change them.

use crate::{Attribute, DocumentPart};

/// A layer of the state. The higher its number, the more often it changes: so the beginning of the document seldom
/// changes, and stays in a provider's prompt cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// L0: permanent rules.
    System,
    /// L1: the request.
    Task,
    /// L2: the current run.
    Runtime,
    /// L3: learned facts.
    Memory,
    /// L4: observations.
    Evidence,
    /// L5: the current work.
    Work,
}

/// The form of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldForm {
    /// One text.
    Text,
    /// Items in order.
    List,
    /// Items with names, each name once.
    Map,
    /// One of the fixed names of phases.
    Phase,
    /// One of the fixed names of environments.
    Environment,
    /// A point in time.
    Time,
    /// A JSON Schema.
    Schema,
}

/// Who may change a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// Only a person.
    People,
    /// A person, and a model through its tools.
    PeopleAndModels,
}

/// A field of a layered state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // The names say what the fields contain; §8 of docs/DESIGN.md lists them by layer.
pub enum Field {
    Role,
    Policies,
    Constraints,
    AuditRequirements,
    Goal,
    SuccessCriteria,
    OutputFormat,
    Deadline,
    Phase,
    Environment,
    Permissions,
    Failures,
    RecentTurns,
    WorkingVariables,
    Summaries,
    Decisions,
    Milestones,
    Facts,
    Definitions,
    Preferences,
    ProjectKnowledge,
    Skills,
    Templates,
    Checklists,
    Procedures,
    Observations,
    Measurements,
    Retrieved,
    Citations,
    Plan,
    Diff,
    Hypotheses,
    Draft,
}

/// The properties of one field: a row of the table of fields.
struct Row {
    field: Field,
    /// The full name, which begins with the layer.
    path: &'static str,
    form: FieldForm,
    /// The part of the document whose share of the budget it uses.
    part: DocumentPart,
    /// The XML elements around its items, outermost first, below the element of its layer.
    wrappers: &'static [&'static str],
    /// The XML element of each item.
    element: &'static str,
    /// The attributes that items may have.
    attributes: &'static [Attribute],
}

const SOURCE: &[Attribute] = &[Attribute::Source];
const NAME: &[Attribute] = &[Attribute::Name];

// A field is the index of its row; a test checks the order.
#[rustfmt::skip]
const ROWS: [Row; Field::COUNT] = [
    row(Field::Role, "system.role", FieldForm::Text, DocumentPart::System, &[], "role", &[]),
    row(Field::Policies, "system.policies", FieldForm::List, DocumentPart::System, &["policies"], "policy", &[]),
    row(Field::Constraints, "system.constraints", FieldForm::List, DocumentPart::System, &["constraints"], "constraint", &[]),
    row(Field::AuditRequirements, "system.audit_requirements", FieldForm::List, DocumentPart::System, &["audit_requirements"], "requirement", &[]),
    row(Field::Goal, "task.goal", FieldForm::Text, DocumentPart::Task, &[], "goal", &[]),
    row(Field::SuccessCriteria, "task.success_criteria", FieldForm::List, DocumentPart::Task, &["success_criteria"], "criterion", &[]),
    row(Field::OutputFormat, "task.output_format", FieldForm::Schema, DocumentPart::Task, &[], "output_format", &[]),
    row(Field::Deadline, "task.deadline", FieldForm::Time, DocumentPart::Task, &[], "deadline", &[]),
    row(Field::Phase, "runtime.phase", FieldForm::Phase, DocumentPart::Runtime, &[], "phase", &[]),
    row(Field::Environment, "runtime.environment", FieldForm::Environment, DocumentPart::Runtime, &[], "environment", &[]),
    row(Field::Permissions, "runtime.permissions", FieldForm::List, DocumentPart::Runtime, &["permissions"], "permission", &[]),
    row(Field::Failures, "runtime.failures", FieldForm::List, DocumentPart::Runtime, &["failures"], "failure", &[Attribute::Tool, Attribute::Timestamp]),
    row(Field::RecentTurns, "memory.short_term.recent_turns", FieldForm::List, DocumentPart::ShortTerm, &["short_term", "recent_turns"], "turn", &[Attribute::Role]),
    row(Field::WorkingVariables, "memory.short_term.working_variables", FieldForm::Map, DocumentPart::ShortTerm, &["short_term", "working_variables"], "variable", NAME),
    row(Field::Summaries, "memory.episodic.summaries", FieldForm::List, DocumentPart::Episodic, &["episodic"], "summary", SOURCE),
    row(Field::Decisions, "memory.episodic.decisions", FieldForm::List, DocumentPart::Episodic, &["episodic"], "decision", SOURCE),
    row(Field::Milestones, "memory.episodic.milestones", FieldForm::List, DocumentPart::Episodic, &["episodic"], "milestone", SOURCE),
    row(Field::Facts, "memory.semantic.facts", FieldForm::List, DocumentPart::Semantic, &["semantic"], "fact", SOURCE),
    row(Field::Definitions, "memory.semantic.definitions", FieldForm::List, DocumentPart::Semantic, &["semantic"], "definition", NAME),
    row(Field::Preferences, "memory.semantic.preferences", FieldForm::List, DocumentPart::Semantic, &["semantic"], "preference", SOURCE),
    row(Field::ProjectKnowledge, "memory.semantic.project_knowledge", FieldForm::List, DocumentPart::Semantic, &["semantic"], "knowledge", SOURCE),
    row(Field::Skills, "memory.procedural.skills", FieldForm::List, DocumentPart::Procedural, &["procedural"], "skill", NAME),
    row(Field::Templates, "memory.procedural.templates", FieldForm::List, DocumentPart::Procedural, &["procedural"], "template", NAME),
    row(Field::Checklists, "memory.procedural.checklists", FieldForm::List, DocumentPart::Procedural, &["procedural"], "checklist", NAME),
    row(Field::Procedures, "memory.procedural.procedures", FieldForm::List, DocumentPart::Procedural, &["procedural"], "procedure", NAME),
    row(Field::Observations, "evidence.observations", FieldForm::List, DocumentPart::Observations, &["recent_observations"], "observation", &[Attribute::Tool, Attribute::Timestamp]),
    row(Field::Measurements, "evidence.measurements", FieldForm::List, DocumentPart::Observations, &["measurements"], "measurement", &[Attribute::Name, Attribute::Timestamp]),
    row(Field::Retrieved, "evidence.retrieved", FieldForm::List, DocumentPart::Retrieved, &["rag_results"], "result", &[Attribute::Relevance, Attribute::Source]),
    row(Field::Citations, "evidence.citations", FieldForm::List, DocumentPart::Retrieved, &["citations"], "citation", SOURCE),
    row(Field::Plan, "work.plan", FieldForm::List, DocumentPart::Work, &["plan"], "step", &[Attribute::Status]),
    row(Field::Diff, "work.diff", FieldForm::List, DocumentPart::Work, &["diff"], "change", SOURCE),
    row(Field::Hypotheses, "work.hypotheses", FieldForm::List, DocumentPart::Work, &["hypotheses"], "hypothesis", &[Attribute::Status]),
    row(Field::Draft, "work.draft", FieldForm::Text, DocumentPart::Work, &[], "draft", &[]),
];

/// Makes a row without the names of its members, so that a row of the table fits on a line.
const fn row(
    field: Field,
    path: &'static str,
    form: FieldForm,
    part: DocumentPart,
    wrappers: &'static [&'static str],
    element: &'static str,
    attributes: &'static [Attribute],
) -> Row {
    Row {
        field,
        path,
        form,
        part,
        wrappers,
        element,
        attributes,
    }
}

impl Field {
    const COUNT: usize = Field::Draft as usize + 1;

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Returns all fields, in the order of the document.
    pub fn all() -> impl Iterator<Item = Field> {
        ROWS.iter().map(|row| row.field)
    }

    /// Returns its full name, such as `memory.semantic.facts`.
    pub fn path(self) -> &'static str {
        self.row().path
    }

    /// Returns the last part of its name, such as `facts`. No two fields share it.
    pub fn name(self) -> &'static str {
        let path = self.path();
        path.rsplit('.').next().unwrap_or(path)
    }

    /// Finds a field by its full name or by the last part of it; none if there is no such field.
    pub fn find(name: &str) -> Option<Field> {
        Field::all().find(|field| field.path() == name || field.name() == name)
    }

    /// Returns the form of its value.
    pub fn form(self) -> FieldForm {
        self.row().form
    }

    /// Says whether it holds several items.
    pub fn is_list(self) -> bool {
        matches!(self.form(), FieldForm::List | FieldForm::Map)
    }

    /// Returns the part of the document whose share of the budget it uses.
    pub fn part(self) -> DocumentPart {
        self.row().part
    }

    /// Returns the layer that it belongs to.
    pub fn layer(self) -> Layer {
        match self.part() {
            DocumentPart::System => Layer::System,
            DocumentPart::Task => Layer::Task,
            DocumentPart::Runtime => Layer::Runtime,
            DocumentPart::ShortTerm
            | DocumentPart::Episodic
            | DocumentPart::Semantic
            | DocumentPart::Procedural => Layer::Memory,
            DocumentPart::Observations | DocumentPart::Retrieved => Layer::Evidence,
            DocumentPart::Work => Layer::Work,
        }
    }

    /// Returns the attributes that its items may have.
    pub fn attributes(self) -> &'static [Attribute] {
        self.row().attributes
    }

    /// Returns the XML elements around its items below the element of the layer, outermost first.
    pub(crate) fn wrappers(self) -> &'static [&'static str] {
        self.row().wrappers
    }

    /// Returns the XML element of each of its items.
    pub(crate) fn element(self) -> &'static str {
        self.row().element
    }

    /// Returns who may change it. A model may change the phase, the memory and the work, but none of the rules, requests and
    /// permissions that bind it, and none of the evidence.
    pub fn writers(self) -> Writers {
        match self.layer() {
            Layer::Memory | Layer::Work => Writers::PeopleAndModels,
            Layer::Runtime if self == Field::Phase => Writers::PeopleAndModels,
            Layer::System | Layer::Task | Layer::Runtime | Layer::Evidence => Writers::People,
        }
    }

    /// Says whether it seldom changes. The stable fields stand right after the system prompt, where a change would break a
    /// provider's prompt cache for everything after it.
    pub fn is_stable(self) -> bool {
        matches!(
            self.part(),
            DocumentPart::System
                | DocumentPart::Task
                | DocumentPart::Semantic
                | DocumentPart::Procedural
        )
    }
}

impl Layer {
    /// Returns its XML element in the document.
    pub(crate) fn element(self) -> &'static str {
        match self {
            Layer::System => "system",
            Layer::Task => "task",
            Layer::Runtime => "runtime_state",
            Layer::Memory => "memory",
            Layer::Evidence => "evidence",
            Layer::Work => "work_buffer",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_fields_and_names_are_unique() {
        let mut names = std::collections::HashSet::new();
        for (at, row) in ROWS.iter().enumerate() {
            assert_eq!(row.field as usize, at, "{}", row.path);
            assert!(names.insert(row.field.name()), "{}", row.path);
            assert_eq!(Field::find(row.path), Some(row.field));
        }
    }

    #[test]
    fn fields_of_one_layer_stand_together() {
        let layers: Vec<Layer> = Field::all().map(Field::layer).collect();
        assert!(layers.is_sorted());
    }
}
