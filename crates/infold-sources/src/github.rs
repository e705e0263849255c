//! GitHub's API (version 3): its addresses, and the format of issues and comments.

use http::Method;
use infold_provider::RestUrl;
use infold_wire::{Json, quote};

use crate::api::{ForgeApi, ForgeCall, Repeat};
use crate::fields::{label_names, text};
use crate::source::{Repository, TaskPages};
use crate::{SourceError, SourceKind, SourceTask, TaskComment, TaskRef, TaskType};

/// The number of items on a page, the most that GitHub allows.
const PAGE_SIZE: &str = "100";

/// Finds a repository. A renamed one is found by its old name too.
pub async fn repository(
    api: &mut ForgeApi,
    owner: &str,
    name: &str,
) -> Result<Repository, SourceError> {
    let what = format!("repository {owner}/{name} that this token can see");
    let url = api.server.at(&["repos", owner, name], &[]);
    let response = api.get(&what, url, true).await?;
    let json = api.parse(&what, &response.body)?;
    let full_name = text(json, "full_name");
    let (owner, name) = full_name.rsplit_once('/').unwrap_or((owner, name));
    let is_true = |key| json.get(key).is_some_and(Json::is_true);
    let id = json.get("id").and_then(Json::number);
    Ok(Repository {
        id: id
            .ok_or_else(|| api.unreadable(&what, "no id"))?
            .to_string(),
        owner: owner.to_owned(),
        name: name.to_owned(),
        is_archived: is_true("archived") || is_true("disabled"),
    })
}

/// Lists open issues and pull requests with a label, the oldest first.
pub async fn list(
    api: &mut ForgeApi,
    repo: &Repository,
    listing: &mut TaskPages<'_>,
) -> Result<(), SourceError> {
    let query = [
        ("state", "open"),
        ("labels", listing.label),
        ("sort", "created"),
        ("direction", "asc"),
        ("per_page", PAGE_SIZE),
    ];
    let url = api
        .server
        .at(&["repos", &repo.owner, &repo.name, "issues"], &query);
    let host = api.server.host();
    let what = format!("issues of {repo}");
    let mut take = |page: Json<'_>| {
        page.elements()
            .for_each(|item| listing.take(read_task(item, &host, repo)));
    };
    api.list(&what, url, true, &mut take).await
}

/// Gets one issue or pull request.
pub async fn task(
    api: &mut ForgeApi,
    repo: &Repository,
    task: &TaskRef,
) -> Result<SourceTask, SourceError> {
    let what = task.to_string();
    let url = issue_url(api, repo, task, &[], &[]);
    let response = api.get(&what, url, false).await?;
    let json = api.parse(&what, &response.body)?;
    let read = read_task(json, &api.server.host(), repo);
    read.ok_or_else(|| api.unreadable(&what, "it is no issue"))
}

/// Lists the comments of an issue or pull request, the oldest first.
pub async fn comments(
    api: &mut ForgeApi,
    repo: &Repository,
    task: &TaskRef,
    take: &mut (dyn FnMut(TaskComment) + Send),
) -> Result<(), SourceError> {
    let url = issue_url(api, repo, task, &["comments"], &[("per_page", PAGE_SIZE)]);
    let what = format!("comments of {task}");
    let mut take = |page: Json<'_>| {
        page.elements().map(read_comment).for_each(&mut *take);
    };
    api.list(&what, url, false, &mut take).await
}

/// Posts a comment. A request without an answer is not repeated: it could post the comment twice.
pub async fn post_comment(
    api: &mut ForgeApi,
    repo: &Repository,
    task: &TaskRef,
    body: &str,
) -> Result<(), SourceError> {
    let request = ForgeCall {
        what: &format!("a comment on {task}"),
        method: Method::POST,
        url: issue_url(api, repo, task, &["comments"], &[]),
        body: Some(format!("{{\"body\":{}}}", quote(body))),
        repeat: Repeat::NotIdempotent,
    };
    api.send(request).await.map(drop)
}

/// Adds a label, and removes others.
pub async fn relabel(
    api: &mut ForgeApi,
    repo: &Repository,
    task: &TaskRef,
    add: Option<&str>,
    remove: &[&str],
) -> Result<(), SourceError> {
    let what = format!("labels of {task}");
    if let Some(add) = add {
        let request = ForgeCall {
            what: &what,
            method: Method::POST,
            url: issue_url(api, repo, task, &["labels"], &[]),
            body: Some(format!("{{\"labels\":[{}]}}", quote(add))),
            repeat: Repeat::Idempotent,
        };
        api.send(request).await?;
    }
    for label in remove {
        let request = ForgeCall {
            what: &what,
            method: Method::DELETE,
            url: issue_url(api, repo, task, &["labels", label], &[]),
            body: None,
            repeat: Repeat::Idempotent,
        };
        match api.send(request).await {
            // The task has the label no longer: another process removed it.
            Ok(_) | Err(SourceError::Missing { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the URL of an issue, or of `subpath` below it. Pull requests are issues, too.
fn issue_url(
    api: &ForgeApi,
    repo: &Repository,
    task: &TaskRef,
    subpath: &[&str],
    query: &[(&str, &str)],
) -> RestUrl {
    let mut segments = vec!["repos", &repo.owner, &repo.name, "issues", &task.task_id];
    segments.extend(subpath);
    api.server.at(&segments, query)
}

/// Reads an issue, or a pull request, which is an issue with the member `pull_request`. None if it has no number.
fn read_task(json: Json<'_>, host: &str, repo: &Repository) -> Option<SourceTask> {
    let number = json
        .get("number")?
        .number()
        .filter(|number| *number >= 1.0)?;
    let is_pull_request = json
        .get("pull_request")
        .is_some_and(|member| !member.is_null());
    Some(SourceTask {
        source: SourceKind::Github,
        host: host.to_owned(),
        repo_id: repo.id.clone(),
        owner: repo.owner.clone(),
        repo: repo.name.clone(),
        task_type: if is_pull_request {
            TaskType::PullRequest
        } else {
            TaskType::Issue
        },
        task_id: number.to_string(),
        title: text(json, "title"),
        body: text(json, "body"),
        author: author(json),
        url: text(json, "html_url"),
        labels: label_names(json),
        updated_at: text(json, "updated_at"),
        comment_count: json
            .get("comments")
            .and_then(Json::number)
            .unwrap_or_default() as u64,
    })
}

fn read_comment(json: Json<'_>) -> TaskComment {
    let kind = json.get("user").and_then(|user| user.get("type"));
    TaskComment {
        author: author(json),
        body: text(json, "body"),
        created_at: text(json, "created_at"),
        is_bot: kind.is_some_and(|kind| kind.is("Bot")),
        is_internal: false,
    }
}

/// Returns the login of the author. The author is null if the account was deleted; GitHub shows `ghost` then.
fn author(json: Json<'_>) -> String {
    let user = json.get("user").filter(|user| !user.is_null());
    user.map_or_else(|| "ghost".to_owned(), |user| text(user, "login"))
}
