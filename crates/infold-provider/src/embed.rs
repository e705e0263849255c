//! Asks a provider for the embeddings of texts.

use infold_wire::provider_error::{RefusalCause, error_message};
use infold_wire::{Delivery, embedding_request, read_embeddings};
use reqwest::header::CONTENT_TYPE;
use tokio::time::timeout;

use crate::attempt::Attempt;
use crate::error::redact_keys;
use crate::{CallError, Client, Endpoint};

/// The most bytes of a reply that are read. 128 vectors of 4,096 numbers, written with all their digits, are 12 MB.
const MAX_REPLY_BYTES: usize = 64 << 20;

impl Client {
    /// Returns the vector of each text, in the order of the texts. A failed request is not repeated.
    pub async fn embed(
        &self,
        to: &Endpoint,
        model: &str,
        texts: &[&str],
    ) -> Result<Vec<Vec<f32>>, CallError> {
        let (Some(url), Some(body)) = (
            to.embeddings(model),
            embedding_request(to.wire, model, texts),
        ) else {
            let error =
                CallError::refused(RefusalCause::Address, to, &to.base(), "has no embeddings");
            return Err(CallError {
                requests: 0,
                ..error
            });
        };
        let attempt = Attempt {
            http: self.http(to)?,
            to,
            target: url.clone(),
            delivery: Delivery::Whole,
            idle: self.policy.idle,
            until: self.until(),
        };
        let request = attempt
            .http
            .post(url)
            .headers(to.headers())
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .send();
        let timed_out = || attempt.broken("did not answer in time");
        let result = timeout(attempt.idle, request)
            .await
            .map_err(|_| timed_out())?;
        let mut response = result.map_err(|error| attempt.unreached(&error))?;
        if !response.status().is_success() {
            return Err(attempt.error(response).await);
        }
        let mut body = Vec::new();
        while let Some(bytes) = timeout(attempt.idle, response.chunk())
            .await
            .map_err(|_| timed_out())?
            .map_err(|error| attempt.unreached(&error))?
        {
            body.extend_from_slice(&bytes);
            // The rest is not read. A truncated reply is not valid JSON, and so becomes an error below.
            if body.len() > MAX_REPLY_BYTES {
                break;
            }
        }
        read_embeddings(&body, texts.len()).ok_or_else(|| {
            let text = error_message(&body).unwrap_or_default();
            // Keys are removed before the text is cut, because part of a key would not be recognised as one.
            let text: String = redact_keys(to, &text).chars().take(200).collect();
            let what = format!("did not give a vector for each text {text}");
            attempt.unexpected(what.trim_end())
        })
    }
}
