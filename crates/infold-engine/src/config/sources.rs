//! Reads the section `sources`: the servers whose issues and merge requests become tasks.

use super::reader::{ConfigReader, Scalar, value_problem};
use super::sections::is_http;
use super::yaml::{YamlKind, YamlNode};
use crate::profile::Setting;

/// The servers that tasks are fetched from. Tokens are in the environment alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourcesConfig {
    /// GitHub, or a GitHub Enterprise Server.
    pub github: SourceConfig,
    /// GitLab, at gitlab.com or elsewhere.
    pub gitlab: SourceConfig,
}

/// A server that tasks are fetched from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceConfig {
    /// The address, if it is not the public service.
    pub base_url: Option<Setting<String>>,
    /// The repositories, as `owner/name`.
    pub repos: Vec<Setting<String>>,
    /// Issues with this label are fetched.
    pub label: Option<Setting<String>>,
    /// The label of issues that are in the queue.
    pub taken_label: Option<Setting<String>>,
    /// The label of a completed task.
    pub done_label: Option<Setting<String>>,
    /// The label of a failed task.
    pub failed_label: Option<Setting<String>>,
}

const KEYS: &str = "base_url repos label taken_label done_label failed_label";

pub(super) fn read(reader: &mut ConfigReader<'_>, node: &YamlNode) -> SourcesConfig {
    let section = reader.section("sources", node, "github gitlab");
    let mut sources = SourcesConfig::default();
    for member in section.members() {
        match member.key.as_str() {
            "github" => {
                sources.github = read_source(section.reader, "sources.github", &member.value)
            }
            "gitlab" => {
                sources.gitlab = read_source(section.reader, "sources.gitlab", &member.value)
            }
            _ => {}
        }
    }
    sources
}

fn read_source(reader: &mut ConfigReader<'_>, path: &str, node: &YamlNode) -> SourceConfig {
    let mut section = reader.section(path, node, KEYS);
    let url = |scalar: &Scalar| is_http(&scalar.text).then(|| scalar.text.clone());
    let expected = "an address that starts with http:// or https://";
    // GitHub separates labels by commas, and has no other way to name one.
    let label = |scalar: &Scalar| {
        let text = scalar.text.trim();
        let is_label = !text.is_empty() && !text.contains([',', '\n']);
        is_label.then(|| text.to_owned())
    };
    let mut read_label = |key: &str| section.value(key, "a label without a comma", label);
    let mut source = SourceConfig {
        label: read_label("label"),
        taken_label: read_label("taken_label"),
        done_label: read_label("done_label"),
        failed_label: read_label("failed_label"),
        base_url: section.value("base_url", expected, url),
        repos: Vec::new(),
    };
    if let Some(member) = section.get("repos") {
        let nodes = match &member.value.kind {
            YamlKind::List(nodes) => nodes,
            _ => std::slice::from_ref(&member.value),
        };
        let key = section.path("repos");
        for node in nodes {
            let expected = "a repository as owner/name, or a list of them";
            let Some(scalar) = section.reader.scalar(&key, node, expected) else {
                continue;
            };
            if !scalar.text.contains('/') || scalar.text.contains("://") {
                let found = format!("`{}`", scalar.text.chars().take(60).collect::<String>());
                section
                    .reader
                    .report(node.line, value_problem(&key, expected, found));
                continue;
            }
            let origin = section.reader.origin(node.line);
            source.repos.push(Setting::new(scalar.text, origin));
        }
    }
    source
}

#[cfg(test)]
mod tests {
    use crate::Config;
    use crate::config::ConfigSource;

    fn parse(text: &str) -> Result<Config, Vec<String>> {
        let parsed = Config::parse("config.yaml", text, &|_| None);
        let parsed = parsed.map(|(config, _)| config);
        parsed.map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn servers_are_read_with_their_labels() {
        let text = "sources:
  github: {repos: o/r, label: bot, base_url: 'https://ghe.example/api/v3'}
  gitlab:
    repos: [a/b/c, d/e]
    done_label: ok
";
        let sources = parse(text).expect("valid").sources;
        assert_eq!(sources.github.repos[0].value, "o/r");
        assert_eq!(
            sources.github.label.map(|set| set.value).as_deref(),
            Some("bot")
        );
        assert_eq!(sources.gitlab.repos.len(), 2);
        assert_eq!(sources.gitlab.base_url, None);
        let entries = parse(text).expect("valid").entries();
        let keys = entries.iter().map(|entry| entry.key.as_str());
        let keys: Vec<&str> = keys.filter(|key| key.starts_with("sources.")).collect();
        assert_eq!(
            keys,
            [
                "sources.github.base_url",
                "sources.github.repos",
                "sources.github.label",
                "sources.gitlab.repos",
                "sources.gitlab.repos",
                "sources.gitlab.done_label"
            ]
        );
    }

    #[test]
    fn a_token_in_a_file_and_other_nonsense_are_errors() {
        for bad in [
            "github: {token: x}",
            "gitlb: {}",
            "github: {label: 'a,b'}",
            "github: {taken_label: ''}",
            "github: {repos: [r]}",
            "github: {repos: ['https://github.com/o/r']}",
            "github: {base_url: ghe.example}",
            "github: 7",
        ] {
            let errors = parse(&format!("sources: {{{bad}}}\n")).expect_err(bad);
            assert_eq!(errors.len(), 1, "{bad}: {errors:?}");
        }
    }

    #[test]
    fn an_untrusted_file_names_no_server() {
        let user = ConfigSource {
            file: "user.yaml",
            text: "sources: {github: {repos: [o/r]}}",
            trusted: true,
        };
        let project = ConfigSource {
            file: "config.yaml",
            text: "sources: {github: {base_url: 'https://evil.example', repos: [e/vil], label: x}}",
            trusted: false,
        };
        let parsed = Config::parse_layers(&[user, project], &|_| None).expect("valid");
        let github = parsed.config.sources.github;
        assert_eq!((github.base_url, github.label), (None, None));
        assert_eq!(github.repos.len(), 1);
        let ignored: Vec<&str> = parsed.ignored.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(
            ignored,
            [
                "sources.github.base_url",
                "sources.github.repos",
                "sources.github.label"
            ]
        );
    }
}
