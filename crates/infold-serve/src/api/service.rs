use std::io::Write as _;
use std::path::Path;

use super::Api;
use super::asked::Asked;
use super::refusal::Refusal;
use super::reply::Reply;

/// `GET /healthz`
pub fn health(api: &Api, _: &Asked) -> Result<Reply, Refusal> {
    let root = api.desk.contexts().root();
    match writable(root) {
        Ok(()) => Ok(Reply::Text("ok\n".to_owned())),
        Err(error) => {
            let root = root.display();
            Err(Refusal::busy(&format!("{root} cannot be written: {error}")))
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
pub fn metrics(api: &Api, _: &Asked) -> Result<Reply, Refusal> {
    Ok(Reply::Text(api.metrics.render()))
}

/// `GET /infold/api/events`
pub fn events(api: &Api, asked: &Asked) -> Result<Reply, Refusal> {
    let task = asked.query("task");
    let task = task.map(|task| api.desk.contexts().resolve(task));
    let task = task.transpose()?;
    let listener = api.news.listen();
    let listener = listener.ok_or_else(|| Refusal::busy("too many are watching"))?;
    Ok(Reply::Live(listener, task))
}
