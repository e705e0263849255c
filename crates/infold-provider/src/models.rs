//! Lists the models of a provider.

use std::time::Duration;

use infold_wire::provider_error::{RefusalCause, error_message};
use infold_wire::{Delivery, ListedModel, ProviderError, read_model_list};
use reqwest::Url;
use tokio::time::timeout;

use crate::attempt::Attempt;
use crate::error::redact_keys;
use crate::{CallError, Client, Endpoint};

const MAX_LIST_BYTES: usize = 32 << 20;

/// The caller waits for a list, and no model has to think.
const LIST_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

impl Client {
    /// Asks a provider which models it has, without retries.
    pub async fn models(&self, to: &Endpoint) -> Result<Vec<ListedModel>, CallError> {
        let mut models = Ok(Vec::new());
        for url in to.lists() {
            models = self.list(to, url).await;
            // Another address is tried only if there is no list at this one.
            let is_absent = |error: &CallError| {
                let is_address = error.trouble == ProviderError::Refused(RefusalCause::Address);
                is_address || matches!(error.status, Some(404 | 405))
            };
            if !models.as_ref().is_err_and(is_absent) {
                break;
            }
        }
        models
    }

    async fn list(&self, to: &Endpoint, url: Url) -> Result<Vec<ListedModel>, CallError> {
        let attempt = Attempt {
            http: self.http(to)?,
            to,
            target: url.clone(),
            delivery: Delivery::Whole,
            idle: self.policy.idle.min(LIST_IDLE_TIMEOUT),
            until: self.until(),
        };
        let request = attempt.http.get(url).headers(to.headers()).send();
        let silent = || attempt.broken("did not answer in time");
        let answer = timeout(attempt.idle, request).await.map_err(|_| silent())?;
        let mut response = answer.map_err(|error| attempt.unreached(&error))?;
        if !response.status().is_success() {
            return Err(attempt.error(response).await);
        }
        let mut body = Vec::new();
        while let Some(bytes) = timeout(attempt.idle, response.chunk())
            .await
            .map_err(|_| silent())?
            .map_err(|error| attempt.unreached(&error))?
        {
            body.extend_from_slice(&bytes);
            if body.len() > MAX_LIST_BYTES {
                break;
            }
        }
        read_model_list(&body).ok_or_else(|| {
            let text = error_message(&body).unwrap_or_default();
            // Keys are taken out before the text is cut: part of a key would not be recognised.
            let text: String = redact_keys(to, &text).chars().take(200).collect();
            attempt.unexpected(&format!("has no list of models there: {text}"))
        })
    }
}
