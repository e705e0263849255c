//! Answers other requests than model calls, such as lists of models, for a provider of another wire.

use bytes::Bytes;
use http::{Method, StatusCode};
use infold_provider::{ForwardRequest, ForwardResponse};
use infold_translate::count_tokens;
use infold_wire::provider_error::ClientError;
use infold_wire::{ListedModel, Wire, read_model_list, write_model_list};
use tokio::task::spawn_blocking;

use crate::client_body::{Response, read_up_to};
use crate::proxy::ProxiedRequest;
use crate::translate::{JSON, answered};

/// The version that Ollama's clients get: it supports tools and thinking.
const OLLAMA_VERSION: &str = r#"{"version":"0.12.0"}"#;

/// The longest list of models that is read.
const MAX_LIST_BYTES: usize = 16 << 20;

impl ProxiedRequest<'_> {
    /// Counts tokens, lists models, or says that there is nothing of the kind.
    pub async fn answer_auxiliary(&self, body: Vec<u8>) -> Result<ForwardResponse, Box<Response>> {
        let path = self.route.path.trim_end_matches('/');
        let get = self.parts.method == Method::GET;
        let made = |text: Vec<u8>| answered(StatusCode::OK, JSON, Bytes::from(text).into());
        let counts = path.ends_with("/count_tokens")
            || path.ends_with(":countTokens")
            || path.ends_with("/responses/input_tokens");
        if counts && self.parts.method == Method::POST {
            return Ok(self.count(body).await);
        }
        let lists = path.ends_with("/models") || path == "/api/tags";
        match path {
            _ if lists && get => {
                let listed = self.models().await?;
                Ok(listed.map_or_else(
                    |answer| *answer,
                    |models| {
                        made(write_model_list(
                            self.wire,
                            &self.upstream.provider.name,
                            &models,
                        ))
                    },
                ))
            }
            "/api/version" if get => Ok(made(OLLAMA_VERSION.as_bytes().to_vec())),
            _ => {
                let name = &self.upstream.provider.name;
                let (speaks, api) = (self.upstream.endpoint.wire, self.wire);
                let what = format!(
                    "`{path}` is not there: `{name}` speaks {speaks}, and only models and calls of them are translated to {api}"
                );
                Ok(self.complains(&ClientError::NotFound(what)))
            }
        }
    }

    /// Returns the number of tokens of a request, counted locally.
    async fn count(&self, body: Vec<u8>) -> ForwardResponse {
        let wire = self.wire;
        let counted = spawn_blocking(move || count_tokens(wire, &body)).await;
        let count = match counted {
            Ok(Ok(count)) => count,
            Ok(Err(error)) => return self.complains(&ClientError::Request(error.to_string())),
            Err(error) => return self.complains(&ClientError::Failed(error.to_string())),
        };
        let body = match wire {
            Wire::Gemini => format!(r#"{{"totalTokens":{count}}}"#),
            Wire::Responses => {
                format!(r#"{{"object":"response.input_tokens","input_tokens":{count}}}"#)
            }
            _ => format!(r#"{{"input_tokens":{count}}}"#),
        };
        answered(StatusCode::OK, JSON, Bytes::from(body).into())
    }

    /// Returns the provider's models, or its error.
    async fn models(
        &self,
    ) -> Result<Result<Vec<ListedModel>, Box<ForwardResponse>>, Box<Response>> {
        let (path, query) = self.upstream.endpoint.list_path();
        let passing = ForwardRequest {
            method: Method::GET,
            path: path.to_owned(),
            query: query.map(str::to_owned),
            headers: self.translated_headers(),
            parts: Vec::new(),
        };
        let answer = self.forwarded(passing).await?;
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = read_up_to(answer.body, MAX_LIST_BYTES).await.0;
        if !status.is_success() {
            return Ok(Err(Box::new(self.refused(status, &headers, &body))));
        }
        Ok(read_model_list(&body).ok_or_else(|| {
            let what = "the provider has no list of models".to_owned();
            Box::new(self.complains(&ClientError::NotFound(what)))
        }))
    }
}
