//! Builds a plan: the values to set, the addresses that were there before, the MCP server.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::upstream::{HOME, SettingPlace, is_same};
use super::{
    AgentTarget, NeededUpstream, Plan, PlanError, Surroundings, UpstreamProblem, ValueChange, empty,
};
use crate::edit::{Syntax, get, read};
use crate::mcp::McpForm;
use crate::tree::PathStep;

/// A configuration file that was read.
pub(super) struct ConfigDocument {
    pub file: PathBuf,
    pub syntax: Syntax,
    pub text: String,
    pub value: Value,
    pub is_missing: bool,
}

impl ConfigDocument {
    /// Returns a text at a path of keys, if there is one that is not empty.
    pub(super) fn get(&self, path: &[PathStep]) -> Option<String> {
        let found = get(self.syntax, &self.text, path).ok()??;
        let text = match found {
            Value::String(text) => text,
            other => other.to_string(),
        };
        Some(text).filter(|text| !text.is_empty())
    }

    pub(super) fn key(&self, path: &[&str]) -> Option<String> {
        self.get(&PathStep::keys(path))
    }

    /// Returns an error if several elements of a list have this name: only the first of them would be changed.
    pub(super) fn check_name(&self, list: &Value, key: &str, name: &str) -> Result<(), PlanError> {
        let items = list.as_array().into_iter().flatten();
        if items.filter(|item| item[key] == name).count() < 2 {
            return Ok(());
        }
        Err(PlanError::Impossible(format!(
            "{} has several models with the {key} `{name}`, by which they are told apart: give each its own",
            self.file.display()
        )))
    }

    pub(super) fn change(&self, path: Vec<PathStep>, value: Value) -> ValueChange {
        ValueChange {
            file: self.file.clone(),
            syntax: self.syntax,
            path,
            value,
        }
    }
}

impl Plan {
    /// Sets an address; one that is there already becomes the upstream of an API.
    pub(super) fn address(
        &mut self,
        document: &ConfigDocument,
        path: Vec<PathStep>,
        to: &AgentTarget<'_>,
        suffix: &str,
        api: &'static str,
    ) -> Result<(), PlanError> {
        self.address_over(document, path, to, suffix, api, None)
    }

    /// Sets an address. If the file has none so far, the agent used `fallback`.
    pub(super) fn address_over(
        &mut self,
        document: &ConfigDocument,
        path: Vec<PathStep>,
        to: &AgentTarget<'_>,
        suffix: &str,
        api: &'static str,
        fallback: Option<String>,
    ) -> Result<(), PlanError> {
        let value = format!("{}{suffix}", to.base);
        let fallback = fallback.filter(|url| !url.is_empty());
        let place = match document.get(&path).or(fallback) {
            Some(before) => NeededUpstream::place(api, &before, to, suffix),
            None => Ok(SettingPlace::Home),
        };
        let failed = |problem| PlanError::Upstream {
            file: document.file.clone(),
            problem,
        };
        self.record_place(api, place.map_err(failed)?)
            .map_err(failed)?;
        self.changes.push(document.change(path, value.into()));
        Ok(())
    }

    /// Records the place to which requests of an API went before; it is an error if they went to two places.
    pub(super) fn record_place(
        &mut self,
        api: &'static str,
        place: SettingPlace,
    ) -> Result<(), UpstreamProblem> {
        let note = |apis: &mut Vec<&'static str>| {
            if !apis.contains(&api) {
                apis.push(api);
            }
        };
        note(&mut self.apis);
        match place {
            SettingPlace::Proxy => note(&mut self.through),
            SettingPlace::Home => note(&mut self.at_home),
            SettingPlace::At(upstream) => upstream.add_to(&mut self.upstreams)?,
        }
        let upstream = self.upstreams.iter().find(|upstream| upstream.api == api);
        match upstream.filter(|_| self.at_home.contains(&api)) {
            Some(upstream) => Err(UpstreamProblem::Two {
                api,
                first: HOME.to_owned(),
                second: upstream.url.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Adds the needed upstreams to the configuration of the proxy, unless that would change where it sends the
    /// requests of other agents. `others` has the APIs that these use, each with its upstream, or an empty text for the
    /// API's own address.
    pub fn forward(
        &mut self,
        at: &Surroundings<'_>,
        config: PathBuf,
        others: &[(String, String)],
    ) -> Result<(), PlanError> {
        let failed = |file: &Path, problem| PlanError::Upstream {
            file: file.to_owned(),
            problem,
        };
        let config = at.document(config, Syntax::Yaml)?;
        for api in self.apis.clone() {
            let upstream = self.upstreams.iter().find(|upstream| upstream.api == api);
            let wanted = upstream.map(|upstream| upstream.url.clone());
            let path = PathStep::keys(&["serve", "upstreams", api]);
            let found = config.get(&path);
            let of_others = others.iter().filter(|(of, _)| of == api);
            let mut of_others = of_others.map(|(_, url)| url.clone());
            let clash = match &wanted {
                Some(wanted) => {
                    let other = found.clone().or_else(|| of_others.next());
                    other
                        .filter(|other| !is_same(other, wanted))
                        .map(|other| (other, wanted.clone()))
                }
                // The key of this agent must not be sent to the gateway of another.
                None if self.at_home.contains(&api) => of_others
                    .find(|url| !url.is_empty())
                    .map(|url| (url, String::new())),
                // An agent that had no address before can use any upstream that is configured.
                None => None,
            };
            if let Some((first, second)) = clash {
                let home = |url: String| if url.is_empty() { HOME.to_owned() } else { url };
                let problem = UpstreamProblem::Two {
                    api,
                    first: home(first),
                    second: home(second),
                };
                return Err(failed(&config.file, problem));
            }
            match (wanted, found) {
                (Some(wanted), None) => self.changes.push(config.change(path, wanted.into())),
                (None, Some(found)) => self.notes.push(format!(
                    "the proxy sends {api} requests to {found}, as {} says",
                    config.file.display()
                )),
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds the MCP server `infold mcp`, unless there is a server of that name.
    pub(super) fn server(
        &mut self,
        document: &ConfigDocument,
        form: McpForm,
        to: &AgentTarget<'_>,
    ) {
        let Some(entry) = to.mcp else { return };
        let (path, value) = (form.path(), form.value(entry));
        match get(form.syntax(), &document.text, &path) {
            Ok(Some(found)) if crate::tree::normal(&found) != crate::tree::normal(&value) => {
                let name = document.file.display();
                self.notes.push(format!(
                    "{name} has another MCP server named infold, which is left as it is"
                ));
            }
            _ => self.changes.push(document.change(path, value)),
        }
    }
}

impl Surroundings<'_> {
    pub(super) fn text(&self, file: &Path) -> Result<Option<String>, PlanError> {
        (self.read)(file).map_err(|reason| PlanError::Unreadable {
            file: file.to_owned(),
            reason,
        })
    }

    /// Reads a configuration file; one that does not exist is empty.
    pub(super) fn document(
        &self,
        file: PathBuf,
        syntax: Syntax,
    ) -> Result<ConfigDocument, PlanError> {
        let text = self.text(&file)?;
        let is_missing = text.is_none();
        let text = text.unwrap_or_else(|| empty(syntax).to_owned());
        let value = read(syntax, &text).map_err(|problem| PlanError::Invalid {
            file: file.clone(),
            problem,
        })?;
        Ok(ConfigDocument {
            file,
            syntax,
            text,
            value,
            is_missing,
        })
    }
}
