//! Translates the parameters of a request (sampling, metadata and so on) to another wire, and reports those that are
//! lost.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use infold_wire::request::strings;
use infold_wire::{Json, JsonKind, Wire};

use super::reply_format::{ReplyFormat, RequestSettings};

/// A parameter that several wires have under different names: one row of `parameters.txt`.
struct Parameter {
    rule: CarryRule,
    /// The path of the parameter within the request for each wire, in the order of [`Wire::ALL`]; empty for a wire that
    /// does not have it.
    paths: [&'static str; 5],
}

/// How the value of a parameter is translated to another wire that has the parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CarryRule {
    /// The value is copied.
    Copied,
    /// The value is copied, but only to OpenAI itself: compatible servers need not know it, and some refuse a request
    /// for an unknown member.
    OpenAi,
    /// The value is a text or a list of texts, and becomes a list.
    Listed,
}

/// The parameters that two wires or more have. A member that is neither here nor in [`TRANSLATED`], and is no
/// [`ReplyFormat`], is lost.
///
/// Effort is carried between OpenAI's wires alone. The others have such settings too, but each model accepts different
/// ones, and a refused request is worse than one that is answered with the default effort. Log probabilities, and more
/// replies than one, are not requested because replies are not translated with them. Anthropic has
/// `parallel_tool_calls` within the choice of a tool.
static PARAMETERS: LazyLock<Vec<Parameter>> = LazyLock::new(|| {
    let rows = include_str!("parameters.txt").lines();
    let rows = rows.filter(|row| !row.is_empty() && !row.starts_with('#'));
    let parameters = rows.map(|row| {
        let mut cells = row.split_whitespace();
        let rule = match cells.next() {
            Some("listed") => CarryRule::Listed,
            Some("openai") => CarryRule::OpenAi,
            _ => CarryRule::Copied,
        };
        let path = |()| cells.next().filter(|path| *path != "-").unwrap_or_default();
        let paths = [(); 5].map(path);
        Parameter { rule, paths }
    });
    parameters.collect()
});

/// The paths of members whose forms differ too much for the table: `translate.rs` translates them.
const TRANSLATED: &str = "model stream stream_options.include_usage system instructions \
    systemInstruction tools tool_choice toolConfig.functionCallingConfig max_tokens \
    max_completion_tokens max_output_tokens generationConfig.maxOutputTokens options.num_predict \
    temperature generationConfig.temperature options.temperature";

/// The objects whose members are parameters of their own, instead of being one parameter.
const GROUPS: &str =
    "generationConfig options text reasoning output_config stream_options toolConfig";

/// Members whose default is `true`: for these, `false` is a setting and not the same as a missing member.
const TRUE_BY_DEFAULT: [&str; 4] = ["parallel_tool_calls", "think", "truncate", "shift"];

/// The parameters of a request, translated to another wire.
#[derive(Debug, Default)]
pub(super) struct CarriedParameters {
    /// The paths and values for the other wire.
    pub settings: RequestSettings,
    /// The names of the members that are lost: the other wire does not have them, or a server that is compatible with
    /// OpenAI might refuse them.
    pub lost: BTreeSet<String>,
}

impl CarriedParameters {
    /// Translates the members of a request. `official` says that the request goes to OpenAI itself, not to a compatible
    /// server.
    pub fn new<'a>(
        [from, to]: [Wire; 2],
        official: bool,
        members: impl Iterator<Item = (&'a str, Json<'a>)>,
    ) -> CarriedParameters {
        let mut all = Vec::new();
        for (name, value) in members {
            flatten_member(from, name, value, &mut all);
        }
        let mut carried = CarriedParameters::default();
        for Parameter { rule, paths } in &*PARAMETERS {
            let target = paths[to as usize];
            let given = all.iter().find(|it| it.path == paths[from as usize]);
            if let Some(given) = given.filter(|it| it.is_set())
                && is_copied(*rule, target, official)
            {
                let value = match rule {
                    CarryRule::Listed => format!("[{}]", strings(given.value).join(",")),
                    _ => String::from_utf8_lossy(given.value.bytes()).into_owned(),
                };
                carried.settings.push((target, value));
            }
        }
        let find = |path: &str| all.iter().find(|it| it.path == path).map(|it| it.value);
        let format = ReplyFormat::read(from, &find);
        carried
            .settings
            .extend(format.write(to).into_iter().flatten());
        for given in all.iter().filter(|it| it.is_set()) {
            let is_carried = if ReplyFormat::is_part(from, &given.path) {
                format.can_carry(to)
            } else {
                can_carry(from, to, official, &given.path)
            };
            if !is_carried {
                carried.lost.insert(given.name.clone());
            }
        }
        carried
    }
}

/// A member of a request, or of an object of settings in it.
struct GivenParameter<'a> {
    /// The parameter's name for people.
    name: String,
    /// The parameter's path, spelled as in the tables.
    path: String,
    value: Json<'a>,
}

impl GivenParameter<'_> {
    /// Returns whether the parameter differs from its default, so that leaving it out is a loss.
    fn is_set(&self) -> bool {
        let defaults: &[&[u8]] = match self.path.as_str() {
            "n" | "generationConfig.candidateCount" => &[b"1"],
            "truncation" => &[b"\"disabled\""],
            "frequency_penalty" | "presence_penalty" => &[b"0", b"0.0"],
            name if TRUE_BY_DEFAULT.contains(&name) => return !self.value.is_null(),
            _ => &[],
        };
        let value = self.value.bytes();
        let is_empty = match self.value.kind() {
            JsonKind::Array => self.value.elements().next().is_none(),
            JsonKind::Object => self.value.members().next().is_none(),
            _ => matches!(value, b"null" | b"false"),
        };
        !is_empty && !defaults.contains(&value)
    }
}

/// Adds a member of a request to `all`; of an object in [`GROUPS`], each of its members instead.
fn flatten_member<'a>(from: Wire, name: &str, value: Json<'a>, all: &mut Vec<GivenParameter<'a>>) {
    let path = spell(from, name);
    if !GROUPS.split(' ').any(|group| group == path) || value.kind() != JsonKind::Object {
        let name = name.to_owned();
        return all.push(GivenParameter { name, path, value });
    }
    for (inner, value) in value.members() {
        let inner = inner.text().unwrap_or_default();
        let name = match path.as_str() {
            // Users know these parameters by their own names, without the object.
            "generationConfig" | "options" => inner.clone().into_owned(),
            _ => format!("{name}.{inner}"),
        };
        let path = format!("{path}.{}", spell(from, &inner));
        all.push(GivenParameter { name, path, value });
    }
}

/// Returns a name in the spelling of the tables: Gemini accepts `top_k` for `topK`.
fn spell(from: Wire, name: &str) -> String {
    if from != Wire::Gemini {
        return name.to_owned();
    }
    let mut words = name.split('_');
    let mut spelled = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        spelled.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        spelled.push_str(letters.as_str());
    }
    spelled
}

/// Returns whether this module writes the value of a parameter to the path `target`.
fn is_copied(rule: CarryRule, target: &str, official: bool) -> bool {
    // Members of `tool_choice` are written by `translate.rs`, together with the choice itself.
    !target.is_empty()
        && !target.starts_with("tool_choice.")
        && (official || rule != CarryRule::OpenAi)
}

/// Returns whether the parameter at `path` has a counterpart on the other wire, whichever module writes it.
fn can_carry(from: Wire, to: Wire, official: bool, path: &str) -> bool {
    let mut parameters = PARAMETERS.iter();
    TRANSLATED.split_whitespace().any(|it| it == path)
        || parameters.any(|Parameter { rule, paths }| {
            paths[from as usize] == path
                && !paths[to as usize].is_empty()
                && (official || *rule != CarryRule::OpenAi)
        })
}
