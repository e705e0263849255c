//! GitLab's API (version 4): its addresses, and the format of issues, merge requests and notes.

use http::Method;
use infold_provider::RestUrl;
use infold_wire::{Json, quote};

use crate::api::{ForgeApi, ForgeCall, Repeat};
use crate::fields::{label_names, text};
use crate::source::{Repository, TaskPages};
use crate::{SourceError, SourceKind, SourceTask, TaskComment, TaskRef, TaskType};

/// How many items a page has, which is the most that GitLab gives.
const PAGE_SIZE: &str = "100";

/// Finds a project. Its id is used from here on: a moved project takes writes at its id alone.
pub async fn repository(
    api: &mut ForgeApi,
    owner: &str,
    name: &str,
) -> Result<Repository, SourceError> {
    let path = format!("{owner}/{name}");
    let what = format!("project {path} that this token can see");
    let url = api.server.at(&["projects", &path], &[]);
    let response = api.get(&what, url, true).await?;
    let json = api.parse(&what, &response.body)?;
    let full_name = text(json, "path_with_namespace");
    let (owner, name) = full_name.rsplit_once('/').unwrap_or((owner, name));
    let id = json.get("id").and_then(Json::number);
    Ok(Repository {
        id: id
            .ok_or_else(|| api.unreadable(&what, "no id"))?
            .to_string(),
        owner: owner.to_owned(),
        name: name.to_owned(),
        is_archived: json.get("archived").is_some_and(Json::is_true),
    })
}

/// Lists open issues, then merge requests, with a label, the oldest first.
pub async fn list(
    api: &mut ForgeApi,
    repo: &Repository,
    listing: &mut TaskPages<'_>,
) -> Result<(), SourceError> {
    let kinds = [
        (TaskType::Issue, "issues"),
        (TaskType::MergeRequest, "merge_requests"),
    ];
    let mut refusals = Vec::new();
    for (task_type, name) in kinds {
        let query = [
            ("state", "opened"),
            ("scope", "all"),
            ("labels", listing.label),
            ("order_by", "created_at"),
            ("sort", "asc"),
            ("per_page", PAGE_SIZE),
        ];
        let url = api.server.at(&["projects", &repo.id, name], &query);
        let host = api.server.host();
        let what = format!("{} of {repo}", name.replace('_', " "));
        let mut take = |page: Json<'_>| {
            page.elements()
                .for_each(|item| listing.take(read_task(item, task_type, &host, repo)));
        };
        match api.list(&what, url, true, &mut take).await {
            // A project may have either of them switched off.
            Err(error @ (SourceError::Forbidden { .. } | SourceError::Missing { .. })) => {
                refusals.push(error);
            }
            other => other?,
        }
    }
    match refusals.pop() {
        Some(error) if !refusals.is_empty() => Err(error),
        _ => Ok(()),
    }
}

/// Gets one issue or merge request.
pub async fn task(
    api: &mut ForgeApi,
    repo: &Repository,
    task: &TaskRef,
) -> Result<SourceTask, SourceError> {
    let what = task.to_string();
    let url = item_url(api, repo, task, &[], &[]);
    let response = api.get(&what, url, false).await?;
    let json = api.parse(&what, &response.body)?;
    let read = read_task(json, task.task_type, &api.server.host(), repo);
    read.ok_or_else(|| api.unreadable(&what, "it is no issue or merge request"))
}

/// Lists the notes of an issue or merge request, the oldest first.
pub async fn comments(
    api: &mut ForgeApi,
    repo: &Repository,
    task: &TaskRef,
    take: &mut (dyn FnMut(TaskComment) + Send),
) -> Result<(), SourceError> {
    let query = [
        ("order_by", "created_at"),
        ("sort", "asc"),
        ("per_page", PAGE_SIZE),
    ];
    let url = item_url(api, repo, task, &["notes"], &query);
    let what = format!("notes of {task}");
    let mut take = |page: Json<'_>| {
        page.elements().map(read_comment).for_each(&mut *take);
    };
    api.list(&what, url, false, &mut take).await
}

/// Posts a note, once.
pub async fn post_comment(
    api: &mut ForgeApi,
    repo: &Repository,
    task: &TaskRef,
    body: &str,
) -> Result<(), SourceError> {
    let request = ForgeCall {
        what: &format!("a note on {task}"),
        method: Method::POST,
        url: item_url(api, repo, task, &["notes"], &[]),
        body: Some(format!("{{\"body\":{}}}", quote(body))),
        repeat: Repeat::NotIdempotent,
    };
    api.send(request).await.map(drop)
}

/// Adds a label and takes others away, in one request.
pub async fn relabel(
    api: &mut ForgeApi,
    repo: &Repository,
    task: &TaskRef,
    add: Option<&str>,
    remove: &[&str],
) -> Result<(), SourceError> {
    let mut members = Vec::new();
    members.extend(add.map(|label| format!("\"add_labels\":{}", quote(label))));
    if !remove.is_empty() {
        members.push(format!("\"remove_labels\":{}", quote(&remove.join(","))));
    }
    let request = ForgeCall {
        what: &format!("labels of {task}"),
        method: Method::PUT,
        url: item_url(api, repo, task, &[], &[]),
        body: Some(format!("{{{}}}", members.join(","))),
        repeat: Repeat::Idempotent,
    };
    api.send(request).await.map(drop)
}

fn item_url(
    api: &ForgeApi,
    repo: &Repository,
    task: &TaskRef,
    below: &[&str],
    query: &[(&str, &str)],
) -> RestUrl {
    let kind = match task.task_type {
        TaskType::MergeRequest | TaskType::PullRequest => "merge_requests",
        TaskType::Issue => "issues",
    };
    let mut segments = vec!["projects", &repo.id, kind, &task.task_id];
    segments.extend(below);
    api.server.at(&segments, query)
}

/// Reads an issue or merge request; none if it has no number.
fn read_task(
    json: Json<'_>,
    task_type: TaskType,
    host: &str,
    repo: &Repository,
) -> Option<SourceTask> {
    let number = json.get("iid")?.number().filter(|number| *number >= 1.0)?;
    Some(SourceTask {
        source: SourceKind::Gitlab,
        host: host.to_owned(),
        repo_id: repo.id.clone(),
        owner: repo.owner.clone(),
        repo: repo.name.clone(),
        task_type,
        task_id: number.to_string(),
        title: text(json, "title"),
        body: text(json, "description"),
        author: author(json),
        url: text(json, "web_url"),
        labels: label_names(json),
        updated_at: text(json, "updated_at"),
        comment_count: json
            .get("user_notes_count")
            .and_then(Json::number)
            .unwrap_or_default() as u64,
    })
}

fn read_comment(json: Json<'_>) -> TaskComment {
    let is_true = |key| json.get(key).is_some_and(Json::is_true);
    TaskComment {
        author: author(json),
        body: text(json, "body"),
        created_at: text(json, "created_at"),
        is_bot: false,
        is_internal: is_true("system") || is_true("internal") || is_true("confidential"),
    }
}

fn author(json: Json<'_>) -> String {
    let user = json.get("author").filter(|user| !user.is_null());
    user.map_or_else(|| "ghost".to_owned(), |user| text(user, "username"))
}
