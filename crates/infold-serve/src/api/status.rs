//! Routes on the server itself: health, metrics, live events.

use std::io::Write as _;
use std::path::Path;

use super::Api;
use super::error::ApiError;
use super::reply::ApiReply;
use super::request::ApiRequest;

/// `GET /healthz`
pub fn health(api: &Api, _: &ApiRequest) -> Result<ApiReply, ApiError> {
    let root = api.conversations.contexts().root();
    match writable(root) {
        Ok(()) => Ok(ApiReply::Text("ok\n".to_owned())),
        Err(error) => {
            let root = root.display();
            Err(ApiError::busy(&format!(
                "{root} cannot be written: {error}"
            )))
        }
    }
}

/// Tries it out: a file there, or where the directory would be made.
fn writable(root: &Path) -> std::io::Result<()> {
    let there = root.ancestors().find(|path| path.exists());
    let there = there.unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".healthz-")
        .tempfile_in(there)?;
    // A full disk takes a name, but no byte.
    file.write_all(b"ok")
}

/// `GET /metrics`
pub fn metrics(api: &Api, _: &ApiRequest) -> Result<ApiReply, ApiError> {
    Ok(ApiReply::Text(api.metrics.render()))
}

/// `GET /infold/api/events`
pub fn events(api: &Api, request: &ApiRequest) -> Result<ApiReply, ApiError> {
    let task = request.query("task");
    let task = task.map(|task| api.conversations.contexts().resolve(task));
    let task = task.transpose()?;
    let listener = api.events.listen();
    let listener = listener.ok_or_else(|| ApiError::busy("too many are watching"))?;
    Ok(ApiReply::Live(listener, task))
}
