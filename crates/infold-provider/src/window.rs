//! Asks an Ollama server for the window of a model. Only Ollama's API has these methods; other servers report a window, if at
//! all, in their list of models.

use std::time::Duration;

use infold_wire::{Wire, quote, read_model_list, read_ollama_window};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Url};
use tokio::time::timeout;

use crate::{Client, Endpoint};

const MAX_ANSWER_BYTES: usize = 4 << 20;

/// A short limit, because a server answers these requests without running a model.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

impl Client {
    /// Returns the window that a model runs with, or would run with if it were loaded. `None` if the server does not report
    /// it, or is not an Ollama server.
    ///
    /// This is not the window that the model was trained with: a server usually runs it with a smaller one.
    pub async fn window(&self, to: &Endpoint, model: &str) -> Option<u64> {
        if to.wire != Wire::Ollama {
            return None;
        }
        let running = self.query(to, Method::GET, "ps", String::new()).await;
        let running = running
            .and_then(|body| read_model_list(&body))
            .unwrap_or_default();
        let running = running.iter().find(|listed| listed.is(model));
        if let Some(window) = running.and_then(|listed| listed.window) {
            return Some(window);
        }
        let body = format!(r#"{{"model":{}}}"#, quote(model));
        read_ollama_window(&self.query(to, Method::POST, "show", body).await?)
    }

    /// Sends a request to Ollama's API and returns the body of the answer; `None` on any error: without an answer the
    /// window is unknown, which is no failure.
    async fn query(
        &self,
        to: &Endpoint,
        method: Method,
        name: &str,
        body: String,
    ) -> Option<Vec<u8>> {
        let request = self
            .http(to)
            .ok()?
            .request(method, api_url(to, name))
            .headers(to.headers())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let answer = async {
            let mut response = request.send().await.ok()?.error_for_status().ok()?;
            let mut body = Vec::new();
            while let Some(bytes) = response.chunk().await.ok()? {
                body.extend_from_slice(&bytes);
                if body.len() > MAX_ANSWER_BYTES {
                    return None;
                }
            }
            Some(body)
        };
        timeout(self.policy.idle.min(ANSWER_TIMEOUT), answer)
            .await
            .ok()?
    }
}

/// Returns the address of a method of Ollama's API other than `chat`, such as `ps`: they have the same base.
fn api_url(to: &Endpoint, name: &str) -> Url {
    let mut url = to.target("", false);
    let path = url.path().trim_end_matches("chat").to_owned();
    url.set_path(&format!("{path}{name}"));
    url
}
