//! Which parameter of one wire is which of another.

use std::collections::BTreeSet;

use super::format::Format;
use crate::{Json, Kind, Wire};

/// A parameter that some wires have, and where: a path within the request for each wire, in the
/// order of [`Wire::ALL`], empty where there is none.
struct Parameter(Carrying, [&'static str; 5]);

/// How a parameter gets to another wire that has it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carrying {
    /// Its value is copied.
    Copied,
    /// Its value is copied, but only to OpenAI itself: compatible servers need not know it, and
    /// some refuse a request for a member that they do not know.
    OpenAi,
    /// It is a text or a list of texts, and becomes a list.
    Listed,
}

use Carrying::{Copied, Listed, OpenAi};

/// The parameters that two wires or more have. What is neither here nor in [`EVERYWHERE`], and is
/// no [`Format`], is lost.
///
/// Effort is carried between OpenAI's wires alone. The others have such settings too, but which
/// of them a model accepts differs from model to model, and a refused request is worse than one
/// that is answered with the usual effort. Log probabilities, and more replies than one, are not
/// asked for because replies are not translated with them.
#[rustfmt::skip]
const PARAMETERS: [Parameter; 16] = [
    //                 chat                      responses                 anthropic         gemini                              ollama
    Parameter(Copied, ["top_p",                  "top_p",                  "top_p",          "generationConfig.topP",            "options.top_p"]),
    Parameter(Listed, ["stop",                   "",                       "stop_sequences", "generationConfig.stopSequences",   "options.stop"]),
    Parameter(Copied, ["",                       "",                       "top_k",          "generationConfig.topK",            "options.top_k"]),
    Parameter(Copied, ["seed",                   "",                       "",               "generationConfig.seed",            "options.seed"]),
    Parameter(Copied, ["frequency_penalty",      "",                       "",               "generationConfig.frequencyPenalty", "options.frequency_penalty"]),
    Parameter(Copied, ["presence_penalty",       "",                       "",               "generationConfig.presencePenalty", "options.presence_penalty"]),
    Parameter(Copied, ["reasoning_effort",       "reasoning.effort",       "",               "",                                 ""]),
    Parameter(OpenAi, ["verbosity",              "text.verbosity",         "",               "",                                 ""]),
    Parameter(OpenAi, ["metadata",               "metadata",               "",               "",                                 ""]),
    Parameter(OpenAi, ["user",                   "user",                   "",               "",                                 ""]),
    Parameter(OpenAi, ["safety_identifier",      "safety_identifier",      "",               "",                                 ""]),
    Parameter(OpenAi, ["prompt_cache_key",       "prompt_cache_key",       "",               "",                                 ""]),
    Parameter(OpenAi, ["prompt_cache_retention", "prompt_cache_retention", "",               "",                                 ""]),
    Parameter(OpenAi, ["service_tier",           "service_tier",           "",               "",                                 ""]),
    Parameter(OpenAi, ["store",                  "store",                  "",               "",                                 ""]),
    // Anthropic has it within the choice of a tool.
    Parameter(Copied, ["parallel_tool_calls",    "parallel_tool_calls",    "tool_choice.disable_parallel_tool_use", "",          ""]),
];

/// What every wire has, each in a way of its own: members that are translated by code.
const EVERYWHERE: [&str; 17] = [
    "model",
    "stream",
    "stream_options.include_usage",
    "system",
    "instructions",
    "systemInstruction",
    "tools",
    "tool_choice",
    "toolConfig.functionCallingConfig",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "generationConfig.maxOutputTokens",
    "options.num_predict",
    "temperature",
    "generationConfig.temperature",
    "options.temperature",
];

/// Objects that hold parameters.
const GROUPS: [&str; 7] = [
    "generationConfig",
    "options",
    "text",
    "reasoning",
    "output_config",
    "stream_options",
    "toolConfig",
];

/// Members whose `false` says something: `true` is usual.
const USUALLY_TRUE: [&str; 4] = ["parallel_tool_calls", "think", "truncate", "shift"];

/// Parameters as members of a request of another wire.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// Their paths and values.
    pub settings: Vec<(&'static str, String)>,
    /// The names of those that the wire does not have.
    pub lost: BTreeSet<String>,
}

impl Carried {
    /// Carries the members of a request over. `official` says that it goes to OpenAI itself.
    pub fn new<'a>(
        [from, to]: [Wire; 2],
        official: bool,
        members: impl Iterator<Item = (&'a str, Json<'a>)>,
    ) -> Carried {
        let mut all = Vec::new();
        for (name, value) in members {
            flatten(from, name, value, &mut all);
        }
        let mut carried = Carried::default();
        for Parameter(how, places) in &PARAMETERS {
            let target = places[to as usize];
            let given = all.iter().find(|it| it.path == places[from as usize]);
            if let Some(given) = given.filter(|it| it.is_set())
                && is_copied(*how, target, official)
            {
                let value = match how {
                    Listed => format!("[{}]", super::read::strings(given.value).join(",")),
                    Copied | OpenAi => String::from_utf8_lossy(given.value.bytes()).into_owned(),
                };
                carried.settings.push((target, value));
            }
        }
        let find = |path: &str| all.iter().find(|it| it.path == path).map(|it| it.value);
        let format = Format::read(from, &find);
        carried
            .settings
            .extend(format.write(to).into_iter().flatten());
        for given in all.iter().filter(|it| it.is_set()) {
            let known = match Format::is_part(from, &given.path) {
                true => format.is_carried(to),
                false => is_known(from, to, official, &given.path),
            };
            if !known {
                carried.lost.insert(given.name.clone());
            }
        }
        carried
    }
}

/// A member of a request, or of an object of settings in it.
struct Given<'a> {
    /// What people know it by.
    name: String,
    /// Where it is, spelled as the tables do.
    path: String,
    value: Json<'a>,
}

impl Given<'_> {
    /// It asks for something that would not be so otherwise.
    fn is_set(&self) -> bool {
        let usual: &[&[u8]] = match self.path.as_str() {
            "n" | "generationConfig.candidateCount" => &[b"1"],
            "truncation" => &[b"\"disabled\""],
            "frequency_penalty" | "presence_penalty" => &[b"0", b"0.0"],
            name if USUALLY_TRUE.contains(&name) => return !self.value.is_null(),
            _ => &[],
        };
        let value = self.value.bytes();
        let empty = match self.value.kind() {
            Kind::Array => self.value.elements().next().is_none(),
            Kind::Object => self.value.members().next().is_none(),
            _ => matches!(value, b"null" | b"false"),
        };
        !empty && !usual.contains(&value)
    }
}

fn flatten<'a>(from: Wire, name: &str, value: Json<'a>, all: &mut Vec<Given<'a>>) {
    let path = spelled(from, name);
    if !GROUPS.contains(&path.as_str()) || value.kind() != Kind::Object {
        let name = name.to_owned();
        return all.push(Given { name, path, value });
    }
    for (inner, value) in value.members() {
        let inner = inner.text().unwrap_or_default();
        let name = match path.as_str() {
            // There are so many of these that nobody would say where they are.
            "generationConfig" | "options" => inner.clone().into_owned(),
            _ => format!("{name}.{inner}"),
        };
        let path = format!("{path}.{}", spelled(from, &inner));
        all.push(Given { name, path, value });
    }
}

/// A name as the tables have it: Gemini takes `top_k` for `topK`.
fn spelled(from: Wire, name: &str) -> String {
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

/// Says whether the value of a parameter is copied to a place.
fn is_copied(how: Carrying, target: &str, official: bool) -> bool {
    // What is within the choice of a tool is written with that.
    !target.is_empty() && !target.starts_with("tool_choice.") && (official || how != OpenAi)
}

/// Says whether another wire has what is at a path.
fn is_known(from: Wire, to: Wire, official: bool, path: &str) -> bool {
    if EVERYWHERE.contains(&path) {
        return true;
    }
    let mut known = PARAMETERS.iter();
    known.any(|Parameter(how, places)| {
        places[from as usize] == path
            && !places[to as usize].is_empty()
            && (official || *how != OpenAi)
    })
}
