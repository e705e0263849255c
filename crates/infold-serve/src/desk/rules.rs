use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use infold::config::Provider;
use infold::models::LONG_CONTEXT_WINDOW;
use infold::{Aim, Profile, usage};
use infold_store::Quirks;

use super::{DeskError, Inner, Pace, locked};

/// How to fold for models, as far as they were asked for.
#[derive(Default)]
pub(super) struct Rules {
    known: HashMap<Key, Known>,
    /// When it was last learned how a model counts.
    learned: HashMap<(String, String), Instant>,
}

/// A provider, its model, and whether a long context is asked for.
type Key = (String, String, bool);

/// How to fold for a model.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub profile: Profile,
    pub aim: Aim,
    /// What it wants of messages.
    pub quirks: Quirks,
}

/// A rule, and whether it may have become another since.
struct Known {
    rule: Arc<Rule>,
    /// When it was worked out.
    since: Instant,
    window: Window,
    /// Somebody is working it out again.
    asking: bool,
}

/// Who says what the window is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Window {
    /// Somebody chose it.
    Chosen,
    /// The model's server, or a table.
    Found,
    /// Nobody: its server was asked, and did not say. The model may be loaded with the first request.
    Guessed,
}

impl Known {
    fn new((rule, window): (Rule, Window)) -> Known {
        Known {
            rule: Arc::new(rule),
            since: Instant::now(),
            window,
            asking: false,
        }
    }

    /// Says whether it should be worked out again: a server may load a model with another window.
    fn is_old(&self) -> bool {
        let lasts = match self.window {
            Window::Chosen => return false,
            Window::Found => Duration::from_secs(60),
            Window::Guessed => Duration::from_secs(3),
        };
        !self.asking && self.since.elapsed() > lasts
    }

    /// Puts another rule in its place. What was learned stays, and so does a window that was
    /// found: a server that is gone, or has put the model away, knows no better.
    fn renew(&mut self, again: Result<(Rule, Window), DeskError>) {
        (self.since, self.asking) = (Instant::now(), false);
        let Ok((mut rule, window)) = again else {
            return;
        };
        if window == Window::Guessed && self.window == Window::Found {
            return;
        }
        rule.aim.factor = self.rule.aim.factor;
        rule.quirks = self.rule.quirks;
        (self.rule, self.window) = (Arc::new(rule), window);
    }
}

/// What the window of a model is remembered under when a long context was asked for.
pub(crate) fn long_context_name(model: &str) -> String {
    format!("{model}[1m]")
}

/// A client may name any model it likes: so many are kept in mind.
const MOST: usize = 256;

impl Inner {
    /// How to fold for a model of a provider; nothing if its server has to be asked, and there is no time for that.
    pub fn rule(
        self: &Arc<Inner>,
        provider: &Arc<Provider>,
        model: &str,
        long_context: bool,
        pace: Pace,
    ) -> Result<Option<Arc<Rule>>, DeskError> {
        let name = (provider.name.clone(), model.to_owned(), long_context);
        if let Some(known) = locked(&self.rules).known.get_mut(&name) {
            if known.is_old() {
                known.asking = self.ask_again(provider, &name);
            }
            return Ok(Some(known.rule.clone()));
        }
        if pace == Pace::Hasty {
            return Ok(None);
        }
        let known = Known::new(self.worked_out(provider, &name)?);
        let rule = known.rule.clone();
        let mut rules = locked(&self.rules);
        if rules.known.len() >= MOST {
            rules.known.clear();
        }
        rules.known.insert(name, known);
        Ok(Some(rule))
    }

    /// Works a rule out again, while the old one is used: no request waits for a server that may
    /// be gone. Says whether somebody does.
    fn ask_again(self: &Arc<Inner>, provider: &Arc<Provider>, name: &Key) -> bool {
        let (desk, provider) = (Arc::clone(self), Arc::clone(provider));
        let name = name.clone();
        let ask = move || {
            let again = desk.worked_out(&provider, &name);
            if let Some(known) = locked(&desk.rules).known.get_mut(&name) {
                known.renew(again);
            }
        };
        let thread = std::thread::Builder::new().name("rule".to_owned());
        thread.spawn(ask).is_ok()
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
        self.change_rules(provider, model, |rule| rule.aim.factor = factor);
    }

    /// It was found what a model wants of messages.
    pub fn learned_quirks(&self, provider: &str, model: &str, quirks: Quirks) {
        // Without it, that is found out again after a restart.
        if let Err(error) = usage::remember_quirks(&self.contexts, provider, model, quirks) {
            tracing::warn!(%error, provider, model, "what was learned of a model is not kept");
        }
        self.change_rules(provider, model, |rule| rule.quirks = quirks);
    }

    /// Changes what is known of a model, with a long context and without.
    fn change_rules(&self, provider: &str, model: &str, change: impl Fn(&mut Rule)) {
        let mut rules = locked(&self.rules);
        for long_context in [false, true] {
            let name = (provider.to_owned(), model.to_owned(), long_context);
            if let Some(known) = rules.known.get_mut(&name) {
                change(Arc::make_mut(&mut known.rule));
            }
        }
    }

    /// Something else was learned of a model.
    pub fn forget_rule(&self, provider: &str, model: &str) {
        let mut rules = locked(&self.rules);
        for long_context in [false, true] {
            let name = (provider.to_owned(), model.to_owned(), long_context);
            rules.known.remove(&name);
        }
    }

    fn worked_out(
        &self,
        provider: &Provider,
        (_, model, long_context): &Key,
    ) -> Result<(Rule, Window), DeskError> {
        let (config, contexts) = (&self.config, &self.contexts);
        let set_up = |window| {
            let board = Some(&self.switchboard);
            let setup = infold::setup(config, contexts, board, provider, model, window);
            setup.map_err(|error| DeskError::Own(error.to_string()))
        };
        let window = provider.context_length.as_ref().map(|set| set.value);
        let mut setup = set_up(window)?;
        if *long_context && !setup.told {
            let named = usage::named_window(contexts, &provider.name, &long_context_name(model))?;
            let long = named.unwrap_or(LONG_CONTEXT_WINDOW.max(setup.profile.window));
            let longer = set_up(Some(long))?;
            (setup.profile, setup.aim) = (longer.profile, longer.aim);
        }
        for warning in setup.warnings {
            tracing::warn!(model, "{warning}");
        }
        let window = match (setup.told, setup.guessed) {
            (true, _) => Window::Chosen,
            (false, false) => Window::Found,
            (false, true) => Window::Guessed,
        };
        let rule = Rule {
            profile: setup.profile,
            aim: setup.aim,
            quirks: usage::quirks(contexts, &provider.name, model).unwrap_or_default(),
        };
        Ok((rule, window))
    }
}
