use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use infold::config::Provider;
use infold::{Aim, Profile};

use super::{DeskError, Inner, locked};

/// How to fold for models, as far as they were asked for.
#[derive(Default)]
pub(super) struct Rules {
    known: HashMap<(String, String), Arc<Rule>>,
    /// When it was last learned how a model counts.
    learned: HashMap<(String, String), Instant>,
}

/// How to fold for a model.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub profile: Profile,
    pub aim: Aim,
    /// It wants roles to alternate.
    pub alternate: bool,
}

/// A client may name any model it likes: so many are kept in mind.
const MOST: usize = 256;

impl Inner {
    /// How to fold for a model of a provider.
    pub fn rule(&self, provider: &Provider, model: &str) -> Result<Arc<Rule>, DeskError> {
        let name = (provider.name.clone(), model.to_owned());
        if let Some(rule) = locked(&self.rules).known.get(&name) {
            return Ok(rule.clone());
        }
        let rule = Arc::new(self.worked_out(provider, model)?);
        let mut rules = locked(&self.rules);
        if rules.known.len() >= MOST {
            rules.known.clear();
        }
        rules.known.insert(name, rule.clone());
        Ok(rule)
    }

    /// Says whether a report is to be learned from: of very many at once, one tells as much as all.
    pub fn learns(&self, provider: &str, model: &str) -> bool {
        const PAUSE: Duration = Duration::from_millis(500);
        let name = (provider.to_owned(), model.to_owned());
        let mut rules = locked(&self.rules);
        if rules.learned.len() >= MOST {
            rules.learned.clear();
        }
        let now = Instant::now();
        match rules.learned.get(&name) {
            Some(last) if now - *last < PAUSE => false,
            _ => {
                rules.learned.insert(name, now);
                true
            }
        }
    }

    /// It was learned how a model counts.
    pub fn learned(&self, provider: &str, model: &str, factor: f64) {
        let name = (provider.to_owned(), model.to_owned());
        if let Some(rule) = locked(&self.rules).known.get_mut(&name) {
            Arc::make_mut(rule).aim.factor = factor;
        }
    }

    /// A model was found to want roles to alternate.
    pub fn alternates(&self, provider: &str, model: &str) {
        let name = (provider.to_owned(), model.to_owned());
        if let Some(rule) = locked(&self.rules).known.get_mut(&name) {
            Arc::make_mut(rule).alternate = true;
        }
    }

    /// Something else was learned of a model.
    pub fn forget_rule(&self, provider: &str, model: &str) {
        let name = (provider.to_owned(), model.to_owned());
        locked(&self.rules).known.remove(&name);
    }

    fn worked_out(&self, provider: &Provider, model: &str) -> Result<Rule, DeskError> {
        let (config, contexts) = (&self.config, &self.contexts);
        let window = provider.context_length.as_ref().map(|set| set.value);
        let board = Some(&self.switchboard);
        let setup = infold::setup(config, contexts, board, provider, model, window);
        let setup = setup.map_err(|error| DeskError::Own(error.to_string()))?;
        for warning in setup.warnings {
            tracing::warn!(model, "{warning}");
        }
        Ok(Rule {
            profile: setup.profile,
            aim: setup.aim,
            alternate: false,
        })
    }
}
