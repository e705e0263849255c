use std::time::Duration;

use infold_wire::{Wire, listed, quote, set_window};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Url};
use tokio::time::timeout;

use crate::{Client, Endpoint};

/// The longest answer that is read.
const MOST: usize = 4 << 20;

/// Such a question costs the server nothing.
const LONGEST: Duration = Duration::from_secs(10);

impl Client {
    /// Asks an Ollama server with what window it runs a model, or would; none if it does not say.
    ///
    /// What the model was trained with is another number, and not the one in use.
    pub async fn window(&self, to: &Endpoint, model: &str) -> Option<u64> {
        if to.wire != Wire::Ollama {
            return None;
        }
        let running = self.told(to, Method::GET, "ps", String::new()).await;
        let running = running.and_then(|body| listed(&body)).unwrap_or_default();
        let running = running.iter().find(|listed| listed.is(model));
        if let Some(window) = running.and_then(|listed| listed.window) {
            return Some(window);
        }
        let asked = format!(r#"{{"model":{}}}"#, quote(model));
        set_window(&self.told(to, Method::POST, "show", asked).await?)
    }

    async fn told(&self, to: &Endpoint, how: Method, what: &str, body: String) -> Option<Vec<u8>> {
        let request = self
            .http(to)
            .ok()?
            .request(how, beside(to, what))
            .headers(to.headers())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let answer = async {
            let mut response = request.send().await.ok()?.error_for_status().ok()?;
            let mut body = Vec::new();
            while let Some(bytes) = response.chunk().await.ok()? {
                body.extend_from_slice(&bytes);
                if body.len() > MOST {
                    return None;
                }
            }
            Some(body)
        };
        timeout(self.idle().min(LONGEST), answer).await.ok()?
    }
}

/// What stands beside the address of replies.
fn beside(to: &Endpoint, what: &str) -> Url {
    let mut url = to.target("", false);
    let path = url.path().trim_end_matches("chat").to_owned();
    url.set_path(&format!("{path}{what}"));
    url
}
