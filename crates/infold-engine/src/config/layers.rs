//! Merges the files of a configuration into one tree, and reads it.

use super::problem::ConfigError;
use super::reader::{ConfigReader, EnvLookup};
use super::restricted::{RestrictedKey, restrict};
use super::yaml::{self, LineProblem, YamlKind, YamlNode};
use super::{Config, environment, sections};
use crate::profile::Origin;

/// One file of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct ConfigSource<'a> {
    /// The name that messages show.
    pub file: &'a str,
    /// The text of the file.
    pub text: &'a str,
    /// Whether all keys apply. Without trust only keys apply that run no command, choose no provider and no directory,
    /// and variables are not expanded.
    pub trusted: bool,
}

/// A configuration, and the remarks on its files.
#[derive(Clone, Debug)]
pub struct ParsedConfig {
    /// The values in effect.
    pub config: Config,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Keys that were ignored because their file is not trusted.
    pub ignored: Vec<RestrictedKey>,
}

impl Config {
    /// Reads a configuration of several files, later ones over earlier ones, and the environment
    /// over all of them.
    ///
    /// Mappings are merged key by key. Returns all errors there are, in the order of their lines.
    pub fn parse_layers(
        layers: &[ConfigSource<'_>],
        env: EnvLookup<'_>,
    ) -> Result<ParsedConfig, Vec<ConfigError>> {
        let mut reader = ConfigReader {
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
            Err((line, problem)) => reader.report(line, problem),
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
        Ok(ParsedConfig {
            config,
            warnings: reader.warnings,
            ignored,
        })
    }

    /// Returns the keys that untrusted files set and may not set.
    pub fn restricted_keys(
        layers: &[ConfigSource<'_>],
    ) -> Result<Vec<RestrictedKey>, Vec<ConfigError>> {
        match merge(layers) {
            Ok((_, restricted)) => Ok(restricted),
            Err((at, problem)) => {
                let file = layers[at.file].file.to_owned();
                let origin = Origin::Line {
                    file,
                    line: at.line,
                };
                Err(vec![ConfigError { origin, problem }])
            }
        }
    }
}

/// Merges all files into one tree, without the keys that a file may not set.
fn merge(
    layers: &[ConfigSource<'_>],
) -> Result<(Option<YamlNode>, Vec<RestrictedKey>), LineProblem> {
    let mut merged: Option<YamlNode> = None;
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

/// Drops the key of a provider to which the upper file gives another address: a key belongs to one
/// address and is not sent to another.
fn drop_keys_of_moved_providers(below: &mut YamlNode, top: &mut YamlNode) {
    let (Some(below), Some(top)) = (below.get_mut("llm"), top.get_mut("llm")) else {
        return;
    };
    for provider in top.members() {
        let moved = |key: &str| ["base_url", "provider"].contains(&key);
        if provider.value.members().iter().any(|it| moved(&it.key))
            && let Some(node) = below.get_mut(&provider.key)
            && let YamlKind::Map(members) = &mut node.kind
        {
            members.retain(|member| member.key != "api_key");
        }
    }
}

/// Keeps redaction on: a project's file, trusted or not, cannot switch off the user's redaction.
fn keep_redacting(below: &mut YamlNode, top: &mut YamlNode) {
    let is = |node: &YamlNode, word: &str| matches!(&node.kind, YamlKind::Scalar { text, .. } if text == word);
    let redact = below.get_mut("redact");
    let is_on = redact.is_some_and(|node| is(node, "true"));
    if let YamlKind::Map(members) = &mut top.kind
        && is_on
    {
        members.retain(|member| member.key != "redact" || !is(&member.value, "false"));
    }
}

/// Makes `summarizer: model` and `summarizer: {timeout: 60}` both mappings, so that they merge.
fn align_summarizers(below: &mut YamlNode, top: &mut YamlNode) {
    let (Some(below), Some(top)) = (below.get_mut("summarizer"), top.get_mut("summarizer")) else {
        return;
    };
    let is_map = |node: &YamlNode| matches!(node.kind, YamlKind::Map(_));
    if is_map(below) == is_map(top) {
        return;
    }
    for node in [below, top] {
        if matches!(node.kind, YamlKind::Scalar { .. }) && !node.is_null() {
            *node = node.clone().with_key("use");
        }
    }
}
