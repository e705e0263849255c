//! Asks an Ollama server for the window of a model.

use std::time::Duration;

use infold_wire::{Wire, quote, read_model_list, read_ollama_window};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Url};
use tokio::time::timeout;

use crate::{Client, Endpoint};

const MAX_ANSWER_BYTES: usize = 4 << 20;

/// These requests are cheap for the server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

impl Client {
    /// Asks an Ollama server for the window that a model runs with, or would; `None` if the server does not report it.
    ///
    /// The window of the model's training is another number, and not the one in use.
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

/// Returns the address of another call of Ollama's API.
fn api_url(to: &Endpoint, name: &str) -> Url {
    let mut url = to.target("", false);
    let path = url.path().trim_end_matches("chat").to_owned();
    url.set_path(&format!("{path}{name}"));
    url
}
