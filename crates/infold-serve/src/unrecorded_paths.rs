//! Requests that look like model calls, at unknown paths.

use std::collections::HashSet;
use std::io::Read as _;
use std::sync::{Arc, Mutex};

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, Method};
use infold_wire::Json;
use infold_wire::envelope::has_messages;
use tokio::task::spawn_blocking;

use crate::IncomingBody;
use crate::client_body::Response;
use crate::content_coding::ContentCoding;
use crate::locked;
use crate::proxy::ProxiedRequest;

/// The paths that were warned of.
#[derive(Debug, Default)]
pub(crate) struct UnrecordedPaths(Mutex<HashSet<String>>);

/// The number of remembered paths. Clients choose them, so there has to be a limit.
const MAX_PATHS: usize = 256;

/// The longest body that is looked into.
const MAX_BODY_BYTES: u64 = 16 << 20;

/// Path segments of requests that take `input` or `messages` and call no model.
const OTHER_USES: [&str; 10] = [
    "embed",
    "moderations",
    "speech",
    "rerank",
    "classify",
    "score",
    "tokens",
    "countTokens",
    "tokenize",
    "template",
];

impl UnrecordedPaths {
    /// Says whether it has to be found out if a request is a model call.
    pub fn needs_check(
        &self,
        path: &str,
        parts: &Parts,
        body: &IncomingBody,
        has_policy: bool,
    ) -> bool {
        let kind = parts.headers.get(CONTENT_TYPE);
        let json = kind.is_none_or(|kind| kind.to_str().is_ok_and(|kind| kind.contains("json")));
        let name = path.trim_end_matches('/').rsplit('/').next();
        let name = name.unwrap_or_default();
        parts.method == Method::POST
            && json
            && (has_policy || body.len() <= MAX_BODY_BYTES)
            && !OTHER_USES.iter().any(|other| name.contains(other))
            && (has_policy || !locked(&self.0).contains(path))
    }

    /// Warns if the body looks like a model call, and says whether it does. Reads the body, and may block.
    pub fn check(&self, path: &str, headers: &HeaderMap, body: &IncomingBody) -> bool {
        if !is_call(headers, body) {
            return false;
        }
        let mut warned = locked(&self.0);
        if warned.len() < MAX_PATHS && warned.insert(path.to_owned()) {
            tracing::warn!(
                path,
                "this looks like a model call at a path that is not known: passed through unrecorded"
            );
        }
        true
    }
}

impl ProxiedRequest<'_> {
    /// Warns if an unrecorded request looks like a model call; under a policy for tools it is refused.
    pub async fn look_for_call(&self) -> Option<Response> {
        let (path, body) = (self.route.path.clone(), self.body.clone());
        let has_policy = self.state.conversations.core.tool_policy.is_some();
        let unrecorded = &self.state.unrecorded;
        if !unrecorded.needs_check(&path, self.parts, &body, has_policy) {
            return None;
        }
        let (state, headers) = (Arc::clone(self.state), self.parts.headers.clone());
        let looked = spawn_blocking(move || state.unrecorded.check(&path, &headers, &body));
        // Without a policy it only warns: the request is forwarded in any case.
        match looked.await {
            Ok(false) => None,
            Ok(true) | Err(_) => {
                self.refused_by_policy("it looks like a model call at a path that is not known")
            }
        }
    }
}

fn is_call(headers: &HeaderMap, body: &IncomingBody) -> bool {
    let Some(coding) = ContentCoding::of(headers) else {
        return false;
    };
    let mut plain = Vec::new();
    let mut reader = coding.decode(body.reader()).take(MAX_BODY_BYTES);
    if reader.read_to_end(&mut plain).is_err() {
        return false;
    }
    Json::parse(&plain).is_ok_and(has_messages)
}
