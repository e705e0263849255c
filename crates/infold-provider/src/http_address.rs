//! Sends requests to one HTTP address that is no model's, and returns responses as they come.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use reqwest::Url;

use crate::http::{HttpClients, NO_CERTIFICATES};
use crate::{Endpoint, EndpointError, ForwardError, ForwardResponse, ResponseBody};

/// One HTTP address, and the client for it. Clones share connections.
#[derive(Clone, Debug)]
pub struct HttpAddress {
    url: Url,
    /// Says how the address is reached.
    endpoint: Endpoint,
    clients: Arc<HttpClients>,
}

impl HttpAddress {
    /// Describes an address; `name` is for errors.
    pub fn new(name: &str, url: &str) -> Result<HttpAddress, EndpointError> {
        let endpoint = Endpoint::new(name, "openai", Some(url), None)?;
        let url = Url::parse(url.trim()).map_err(|error| EndpointError::Address {
            name: name.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(HttpAddress {
            url,
            endpoint,
            clients: Arc::default(),
        })
    }

    /// Sends a request once, without following redirects, and waits for the response to begin.
    ///
    /// Dropping the future ends the request.
    pub async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<ForwardResponse, ForwardError> {
        let client = self.clients.get(&self.endpoint, |builder| builder);
        let client = client.map_err(|_| ForwardError::unreadable(NO_CERTIFICATES))?;
        let mut request = client.request(method, self.url.clone()).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await?;
        let (parts, body) = http::Response::from(response).into_parts();
        Ok(ForwardResponse {
            status: parts.status,
            headers: parts.headers,
            body: ResponseBody::from(body),
        })
    }
}
