use infold::config::Provider;
use infold::summarizer::SummarizerFactory;
use infold::{Summarizer, connect};
use infold_provider::RetryPolicy;
use infold_store::Contexts;

use crate::connect::Calls;
use crate::failure::Failure;

/// What a model that writes summaries is called with.
#[derive(Clone, Copy, Default)]
pub struct Reach<'a> {
    /// The calls of a talk, and whom it is with.
    pub talk: Option<(&'a Calls, &'a Provider)>,
    /// Where it is kept how models count.
    pub contexts: Option<&'a Contexts>,
    /// A model writes if nobody says otherwise and one can be asked.
    pub usual: bool,
}

/// A summarizer, and the calls it makes if they are its own.
pub type Made = (Box<dyn Summarizer + Send>, Option<Calls>);

impl Reach<'_> {
    /// The model of the talk, or of the configuration if it can be asked.
    pub fn if_any(&self, pen: &SummarizerFactory<'_>, of_task: Option<&str>) -> Option<Made> {
        let configured = || pen.config.provider().is_some_and(connect::is_ready);
        let elsewhere = || {
            let other = pen.other_provider(None);
            other.is_some_and(|(other, _)| connect::is_ready(&other))
        };
        let ready = self.talk.is_some() || configured() || elsewhere();
        ready.then(|| self.model(pen, of_task, None).ok()).flatten()
    }

    /// A model by its name, or else the one that condenses.
    pub fn model(
        &self,
        pen: &SummarizerFactory<'_>,
        of_task: Option<&str>,
        named: Option<&str>,
    ) -> Result<Made, Failure> {
        if let Some((calls, provider)) = self.talk {
            return Ok((pen.model(calls.board(), provider, named)?, None));
        }
        let provider = match pen.other_provider(named) {
            Some((other, _)) => other,
            None => connect::provider(pen.config, None, of_task, pen.main())?,
        };
        let calls = Calls::new(RetryPolicy {
            deadline: pen.timeout,
            attempts: 3,
            ..RetryPolicy::default()
        })?;
        let made = pen.model(calls.board(), &provider, named)?;
        Ok((made, Some(calls)))
    }
}
