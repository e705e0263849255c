//! The access to a model that writes summaries.

use infold::config::Provider;
use infold::summarizer::SummarizerFactory;
use infold::{Summarizer, connect};
use infold_provider::RetryPolicy;
use infold_store::Contexts;

use crate::call_runtime::CallRuntime;
use crate::error::CliResult;

/// The access to a summarizing model: the connection of a conversation, or a separate one.
#[derive(Clone, Copy, Default)]
pub struct ModelAccess<'a> {
    /// The runtime and the provider of the conversation.
    pub conversation: Option<(&'a CallRuntime, &'a Provider)>,
    /// The store of the learned token factors of models.
    pub contexts: Option<&'a Contexts>,
    /// By default a model writes summaries, if one is available.
    pub prefer_model: bool,
}

/// A summarizer, and the runtime of its calls unless that is the conversation's.
pub type SummarizerAndRuntime = (Box<dyn Summarizer + Send>, Option<CallRuntime>);

impl ModelAccess<'_> {
    /// Returns the model of the conversation or of the configuration, if it is available.
    pub fn available_model(
        &self,
        factory: &SummarizerFactory<'_>,
        task_provider: Option<&str>,
    ) -> Option<SummarizerAndRuntime> {
        let is_ready = self.conversation.is_some()
            || factory.config.provider().is_some_and(connect::is_ready)
            || factory
                .other_provider(None)
                .is_some_and(|(other, _)| connect::is_ready(&other));
        is_ready
            .then(|| self.model(factory, task_provider, None).ok())
            .flatten()
    }

    /// Returns the model with this name, or else the one configured for summaries.
    pub fn model(
        &self,
        factory: &SummarizerFactory<'_>,
        task_provider: Option<&str>,
        name: Option<&str>,
    ) -> CliResult<SummarizerAndRuntime> {
        if let Some((runtime, provider)) = self.conversation {
            return Ok((factory.model(runtime.connector(), provider, name)?, None));
        }
        let provider = match factory.other_provider(name) {
            Some((other, _)) => other,
            None => connect::provider(factory.config, None, task_provider, factory.main())?,
        };
        let runtime = CallRuntime::new(RetryPolicy {
            deadline: factory.timeout,
            attempts: 3,
            ..RetryPolicy::default()
        })?;
        let summarizer = factory.model(runtime.connector(), &provider, name)?;
        Ok((summarizer, Some(runtime)))
    }
}
