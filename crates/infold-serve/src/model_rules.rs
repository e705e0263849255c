//! The fold rules of each model: profile, settings and quirks, computed once and renewed as they age.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use infold::config::Provider;
use infold::models::LONG_CONTEXT_WINDOW;
use infold::summarizer::Extractive;
use infold::{Aim, Config, Connector, Profile, Summarizer, usage};
use infold_store::{Contexts, Quirks, Usage};

use crate::{ConversationError, locked};

/// The rules of the models that were used.
pub(crate) struct ModelRules {
    contexts: Contexts,
    config: Arc<Config>,
    connector: Connector,
    cached: Mutex<HashMap<RuleKey, CachedRule>>,
    /// When a report of a model was last learned from.
    learned: Mutex<HashMap<(String, String), Instant>>,
}

/// A provider, its model, and whether a long context is requested.
type RuleKey = (String, String, bool);

/// The rule for folding for a model.
#[derive(Clone, Debug)]
pub(crate) struct ModelRule {
    pub profile: Profile,
    pub aim: Aim,
    /// The provider's demands on messages that go beyond its API.
    pub quirks: Quirks,
}

struct CachedRule {
    rule: Arc<ModelRule>,
    since: Instant,
    window: WindowOrigin,
    /// A thread is computing the rule again.
    is_renewing: bool,
}

/// The origin of a rule's window.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WindowOrigin {
    Configured,
    /// From the model's server, or the table of models.
    Known,
    /// The server's answer had no window: it may load the model with the first request.
    Guessed,
}

impl CachedRule {
    fn new((rule, window): (ModelRule, WindowOrigin)) -> CachedRule {
        CachedRule {
            rule: Arc::new(rule),
            since: Instant::now(),
            window,
            is_renewing: false,
        }
    }

    /// Says whether to work it out again: a server may load a model with another window.
    fn is_old(&self) -> bool {
        let max_age = match self.window {
            WindowOrigin::Configured => return false,
            WindowOrigin::Known => Duration::from_secs(60),
            WindowOrigin::Guessed => Duration::from_secs(3),
        };
        !self.is_renewing && self.since.elapsed() > max_age
    }

    /// Replaces the rule. Learned values stay, and so does a known window: a server that stopped or unloaded the model
    /// does not know it any more.
    fn renew(&mut self, again: Result<(ModelRule, WindowOrigin), ConversationError>) {
        (self.since, self.is_renewing) = (Instant::now(), false);
        let Ok((mut rule, window)) = again else {
            return;
        };
        if window == WindowOrigin::Guessed && self.window == WindowOrigin::Known {
            return;
        }
        rule.aim.factor = self.rule.aim.factor;
        rule.quirks = self.rule.quirks;
        (self.rule, self.window) = (Arc::new(rule), window);
    }
}

/// Returns the name under which the window of a model with a long context is recorded.
pub(crate) fn long_context_name(model: &str) -> String {
    format!("{model}[1m]")
}

/// A client may name any model: this many are cached.
const MAX_CACHED_RULES: usize = 256;

/// Of many reports at once, one teaches as much as all.
const LEARN_INTERVAL: Duration = Duration::from_millis(500);

impl ModelRules {
    pub fn new(contexts: Contexts, config: Arc<Config>, connector: Connector) -> ModelRules {
        ModelRules {
            contexts,
            config,
            connector,
            cached: Mutex::default(),
            learned: Mutex::default(),
        }
    }

    /// Returns the rule of a model if it is cached.
    pub fn cached(
        self: &Arc<Self>,
        provider: &Arc<Provider>,
        model: &str,
        long_context: bool,
    ) -> Option<Arc<ModelRule>> {
        let key = (provider.name.clone(), model.to_owned(), long_context);
        let mut all = locked(&self.cached);
        let cached = all.get_mut(&key)?;
        if cached.is_old() {
            cached.is_renewing = self.renew_in_thread(provider, key);
        }
        Some(Arc::clone(&cached.rule))
    }

    /// Returns the rule of a model; asks its server for the window if need be.
    pub fn rule(
        self: &Arc<Self>,
        provider: &Arc<Provider>,
        model: &str,
        long_context: bool,
    ) -> Result<Arc<ModelRule>, ConversationError> {
        if let Some(rule) = self.cached(provider, model, long_context) {
            return Ok(rule);
        }
        let key = (provider.name.clone(), model.to_owned(), long_context);
        let cached = CachedRule::new(self.work_out(provider, &key)?);
        let rule = Arc::clone(&cached.rule);
        let mut all = locked(&self.cached);
        if all.len() >= MAX_CACHED_RULES {
            all.clear();
        }
        all.insert(key, cached);
        Ok(rule)
    }

    /// Works a rule out again while the old one is used, so that no request waits for a server that may be gone. Says whether
    /// a thread was started.
    fn renew_in_thread(self: &Arc<Self>, provider: &Arc<Provider>, key: RuleKey) -> bool {
        let (rules, provider) = (Arc::clone(self), Arc::clone(provider));
        let work = move || {
            let again = rules.work_out(&provider, &key);
            if let Some(cached) = locked(&rules.cached).get_mut(&key) {
                cached.renew(again);
            }
        };
        let thread = std::thread::Builder::new().name("model rule".to_owned());
        thread.spawn(work).is_ok()
    }

    /// Returns the summarizer to use for a model.
    pub fn summarizer(
        &self,
        provider: &Provider,
        profile: &Profile,
    ) -> Result<Box<dyn Summarizer + Send>, ConversationError> {
        let setup = self.set_up(provider, &profile.model, Some(profile.window))?;
        // If folds are not wanted (`auto: false`), unavoidable ones use no paid summarizer.
        Ok(if !profile.auto && setup.summarizer.is_paid() {
            Box::new(Extractive)
        } else {
            setup.summarizer
        })
    }

    /// Says whether a report of a model is to be learned from now.
    pub fn is_learning_due(&self, provider: &str, model: &str) -> bool {
        let key = (provider.to_owned(), model.to_owned());
        let mut learned = locked(&self.learned);
        if learned.len() >= MAX_CACHED_RULES {
            learned.clear();
        }
        let now = Instant::now();
        let is_due = learned
            .get(&key)
            .is_none_or(|last| now - *last >= LEARN_INTERVAL);
        if is_due {
            learned.insert(key, now);
        }
        is_due
    }

    /// Learns from a report how a model counts tokens.
    pub fn learn(&self, report: &Usage, counted: (u64, f64)) -> Result<(), ConversationError> {
        if usage::forget_smaller_windows(&self.contexts, report)? {
            self.forget(&report.provider, &report.model);
        }
        let factor = usage::learn(&self.contexts, report, counted)?;
        self.change(&report.provider, &report.model, |rule| {
            rule.aim.factor = factor
        });
        Ok(())
    }

    /// Records a provider's quirks for messages.
    pub fn learn_quirks(&self, provider: &str, model: &str, quirks: Quirks) {
        // If this fails, the quirks are detected again after a restart.
        if let Err(error) = usage::remember_quirks(&self.contexts, provider, model, quirks) {
            tracing::warn!(%error, provider, model, "what was learned of a model is not kept");
        }
        self.change(provider, model, |rule| rule.quirks = quirks);
    }

    /// Remembers a window that a provider named.
    pub fn learn_window(
        &self,
        provider: &str,
        model: &str,
        long_context: bool,
        window: u64,
    ) -> Result<(), ConversationError> {
        let long = long_context.then(|| long_context_name(model));
        let name = long.as_deref().unwrap_or(model);
        usage::remember_window(&self.contexts, provider, name, window)?;
        self.forget(provider, model);
        Ok(())
    }

    /// Changes the rules of a model, with a long context and without.
    fn change(&self, provider: &str, model: &str, change: impl Fn(&mut ModelRule)) {
        let mut all = locked(&self.cached);
        for long_context in [false, true] {
            let key = (provider.to_owned(), model.to_owned(), long_context);
            if let Some(cached) = all.get_mut(&key) {
                change(Arc::make_mut(&mut cached.rule));
            }
        }
    }

    /// Drops the rules of a model, so that they are computed again.
    fn forget(&self, provider: &str, model: &str) {
        let mut all = locked(&self.cached);
        for long_context in [false, true] {
            all.remove(&(provider.to_owned(), model.to_owned(), long_context));
        }
    }

    fn set_up(
        &self,
        provider: &Provider,
        model: &str,
        window: Option<u64>,
    ) -> Result<infold::Setup, ConversationError> {
        let setup = infold::setup(
            &self.config,
            &self.contexts,
            Some(&self.connector),
            provider,
            model,
            window,
        );
        setup.map_err(|error| ConversationError::Internal(error.to_string()))
    }

    fn work_out(
        &self,
        provider: &Provider,
        (_, model, long_context): &RuleKey,
    ) -> Result<(ModelRule, WindowOrigin), ConversationError> {
        let window = provider.context_length.as_ref().map(|set| set.value);
        let mut setup = self.set_up(provider, model, window)?;
        if *long_context && !setup.has_set_window {
            let name = long_context_name(model);
            let named = usage::named_window(&self.contexts, &provider.name, &name)?;
            let long = named.unwrap_or(LONG_CONTEXT_WINDOW.max(setup.profile.window));
            let longer = self.set_up(provider, model, Some(long))?;
            (setup.profile, setup.aim) = (longer.profile, longer.aim);
        }
        for warning in setup.warnings {
            tracing::warn!(model, "{warning}");
        }
        let window = if setup.has_set_window {
            WindowOrigin::Configured
        } else if setup.guessed {
            WindowOrigin::Guessed
        } else {
            WindowOrigin::Known
        };
        let rule = ModelRule {
            profile: setup.profile,
            aim: setup.aim,
            quirks: usage::quirks(&self.contexts, &provider.name, model).unwrap_or_default(),
        };
        Ok((rule, window))
    }
}
