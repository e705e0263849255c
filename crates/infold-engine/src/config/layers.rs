use super::problem::ConfigError;
use super::reader::{Lookup, Reader};
use super::restricted::{RestrictedKey, restrict};
use super::yaml::{self, Kind, Node, Wrong};
use super::{Config, environment, sections};
use crate::profile::Origin;

/// One file of a configuration, as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// The name that messages show.
    pub file: &'a str,
    /// What it holds.
    pub text: &'a str,
    /// Whether all keys count. Without trust only those do that run no command, choose no
    /// provider and no place, and no variables are filled in.
    pub trusted: bool,
}

/// A configuration, and what there is to say of its files.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The values in effect.
    pub config: Config,
    /// What the person should know.
    pub warnings: Vec<String>,
    /// Keys that were ignored because their file is not trusted.
    pub ignored: Vec<RestrictedKey>,
}

impl Config {
    /// Reads a configuration of several files, later ones over earlier ones, and what the
    /// environment sets instead of them.
    ///
    /// Mappings are merged key by key. Returns all errors there are, in the order of their lines.
    pub fn parse_layers(layers: &[Layer<'_>], env: Lookup<'_>) -> Result<Parsed, Vec<ConfigError>> {
        let mut reader = Reader {
            layers,
            env,
            errors: Vec::new(),
            warnings: Vec::new(),
        };
        let mut config = Config::default();
        let mut ignored = Vec::new();
        match merge(layers) {
            Ok((root, restricted)) => {
                if let Some(root) = &root {
                    sections::read(&mut config, &mut reader, root);
                }
                ignored = restricted;
            }
            Err((place, problem)) => reader.wrong(place, problem),
        }
        let index = |name: &str| layers.iter().position(|layer| layer.file == name);
        reader.errors.sort_by_key(|error| match &error.origin {
            Origin::Line { file, line } => (index(file), *line),
            _ => (None, 0),
        });
        environment::apply(&mut config, &mut reader);
        if !reader.errors.is_empty() {
            return Err(reader.errors);
        }
        Ok(Parsed {
            config,
            warnings: reader.warnings,
            ignored,
        })
    }

    /// Returns what the files without trust set beyond what they may.
    pub fn restricted_keys(layers: &[Layer<'_>]) -> Result<Vec<RestrictedKey>, Vec<ConfigError>> {
        let merged = merge(layers).map_err(|(place, problem)| {
            let origin = Origin::Line {
                file: layers[place.file].file.to_owned(),
                line: place.line,
            };
            vec![ConfigError { origin, problem }]
        });
        merged.map(|(_, restricted)| restricted)
    }
}

/// Puts all files into one tree, and takes out of each what it may not set.
fn merge(layers: &[Layer<'_>]) -> Result<(Option<Node>, Vec<RestrictedKey>), Wrong> {
    let mut merged: Option<Node> = None;
    let mut ignored = Vec::new();
    for (file, layer) in layers.iter().enumerate() {
        let Some(mut root) = yaml::parse(layer.text, file)? else {
            continue;
        };
        if !layer.trusted {
            ignored.extend(restrict(&mut root, merged.as_ref()));
        }
        match &mut merged {
            Some(below) => {
                drop_keys_of_moved_providers(below, &mut root);
                align_summarizers(below, &mut root);
                keep_redacting(below, &mut root);
                below.overlay(root);
            }
            None => merged = Some(root),
        }
    }
    Ok((merged, ignored))
}

/// A key belongs to one address: where the upper file gives a provider another one, the key of
/// the lower file is not sent there.
fn drop_keys_of_moved_providers(below: &mut Node, top: &mut Node) {
    let (Some(below), Some(top)) = (below.get_mut("llm"), top.get_mut("llm")) else {
        return;
    };
    for provider in top.members() {
        let moved = |key: &str| ["base_url", "provider"].contains(&key);
        if provider.value.members().iter().any(|it| moved(&it.key))
            && let Some(node) = below.get_mut(&provider.key)
            && let Kind::Map(members) = &mut node.kind
        {
            members.retain(|member| member.key != "api_key");
        }
    }
}

/// A project's file, trusted or not, does not switch off what the user switched on.
fn keep_redacting(below: &mut Node, top: &mut Node) {
    let says =
        |node: &Node, word: &str| matches!(&node.kind, Kind::Scalar { text, .. } if text == word);
    let is_on = below
        .get_mut("redact")
        .is_some_and(|node| says(node, "true"));
    if let Kind::Map(members) = &mut top.kind
        && is_on
    {
        members.retain(|member| member.key != "redact" || !says(&member.value, "false"));
    }
}

/// `summarizer: model` and `summarizer: {timeout: 60}` are merged as if both were mappings.
fn align_summarizers(below: &mut Node, top: &mut Node) {
    let (Some(below), Some(top)) = (below.get_mut("summarizer"), top.get_mut("summarizer")) else {
        return;
    };
    let is_map = |node: &Node| matches!(node.kind, Kind::Map(_));
    if is_map(below) == is_map(top) {
        return;
    }
    for node in [below, top] {
        if matches!(node.kind, Kind::Scalar { .. }) && !node.is_null() {
            *node = node.clone().with_key("use");
        }
    }
}
