//! Replies as GitLab's REST API (version 4) documents them.

use axum::http::Method;
use serde_json::{Value, json};

use super::reply::{ForgeReply, ForgeRequest};
use super::state::{ForgeComment, ForgeItem, ForgeRepo, ForgeState, instant};

/// Answers a request; its path has no `api/v4`.
pub(super) fn respond(state: &mut ForgeState, request: &ForgeRequest) -> ForgeReply {
    let reply = match refuse(state, request) {
        Some(refusal) => refusal,
        None => route(state, request).with_etag(request),
    };
    state.rate.remaining = state.rate.remaining.saturating_sub(1);
    let rate = state.rate;
    reply
        .header("ratelimit-limit", rate.limit.to_string())
        .header("ratelimit-remaining", rate.remaining.to_string())
        .header(
            "ratelimit-observed",
            (rate.limit - rate.remaining).to_string(),
        )
        .header("ratelimit-reset", rate.reset.to_string())
}

fn error(status: u16, message: &str) -> ForgeReply {
    ForgeReply::json(status, &json!({ "message": message }))
}

fn refuse(state: &ForgeState, request: &ForgeRequest) -> Option<ForgeReply> {
    let header = |name: &str| {
        request
            .headers
            .get(name)
            .and_then(|sent| sent.to_str().ok())
    };
    let bearer = header("authorization").and_then(|sent| sent.strip_prefix("Bearer "));
    match header("private-token").or(bearer) {
        Some(token) if token != state.token => return Some(error(401, "401 Unauthorized")),
        None if request.method != Method::GET || request.path == ["user"] => {
            return Some(error(401, "401 Unauthorized"));
        }
        _ => {}
    }
    (state.rate.remaining == 0).then(|| ForgeReply {
        status: 429,
        headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
        body: b"Retry later\n".to_vec(),
    })
}

fn route(state: &mut ForgeState, request: &ForgeRequest) -> ForgeReply {
    let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["version"] => {
            ForgeReply::json(200, &json!({ "version": "18.5.0", "revision": "0000000" }))
        }
        ["user"] => match &state.login {
            Some(login) => ForgeReply::json(200, &user(login)),
            None => error(403, "403 Forbidden"),
        },
        ["projects", name, rest @ ..] => {
            let is_named =
                |repo: &ForgeRepo| repo.id.to_string() == *name || repo.full_name() == *name;
            if let Some(at) = state.repos.iter().position(is_named) {
                return in_project(state, at, rest, request);
            }
            let mut repos = state.repos.iter();
            match repos.find(|repo| repo.old_names.iter().any(|old| old == name)) {
                Some(_) if request.method != Method::GET => {
                    error(405, "Non GET methods are not allowed for moved projects")
                }
                Some(repo) => {
                    let below: String = rest.iter().map(|part| format!("/{part}")).collect();
                    let query = request
                        .target
                        .split_once('?')
                        .map(|(_, query)| format!("?{query}"));
                    let name = repo.full_name().replace('/', "%2F");
                    let url = format!(
                        "{}/api/v4/projects/{name}{below}{}",
                        request.base,
                        query.unwrap_or_default()
                    );
                    let body = json!({ "message": format!("This resource has been moved permanently to {url}") });
                    ForgeReply::json(301, &body).header("location", url)
                }
                None => error(404, "404 Project Not Found"),
            }
        }
        _ => ForgeReply::json(404, &json!({ "error": "404 Not Found" })),
    }
}

fn in_project(
    state: &mut ForgeState,
    at: usize,
    rest: &[&str],
    request: &ForgeRequest,
) -> ForgeReply {
    let is_write = request.method != Method::GET;
    if is_write && state.repos[at].is_archived {
        return error(403, "403 Forbidden");
    }
    let login = state
        .login
        .clone()
        .unwrap_or_else(|| "project_bot".to_owned());
    let now = if is_write { state.tick() } else { state.clock };
    let repo = &mut state.repos[at];
    match rest {
        [] => ForgeReply::json(200, &project(repo, request)),
        [kind @ ("issues" | "merge_requests")] => {
            let is_request = *kind == "merge_requests";
            let items = listed(repo, is_request, request);
            page(
                &items,
                |item| read_item(item, repo),
                &format!("/api/v4/projects/{}/{kind}", repo.id),
                request,
            )
        }
        [kind @ ("issues" | "merge_requests"), number, rest @ ..] => {
            let number: u64 = number.parse().unwrap_or_default();
            let is_request = *kind == "merge_requests";
            let head = repo.clone_head();
            let item = repo
                .item_mut(number)
                .filter(|item| item.is_request == is_request);
            let Some(item) = item else {
                return error(404, "404 Not found");
            };
            match (request.method.as_str(), rest) {
                ("GET", []) => ForgeReply::json(200, &read_item(item, &head)),
                ("PUT", []) => {
                    change(item, request, now);
                    ForgeReply::json(200, &read_item(item, &head))
                }
                ("GET", ["notes"]) => {
                    let mut notes: Vec<&ForgeComment> = item.comments.iter().collect();
                    if request.parameter("sort") != Some("asc") {
                        notes.reverse();
                    }
                    let path = format!("/api/v4/projects/{}/{kind}/{number}/notes", head.id);
                    page(&notes, |it| note(it, number, is_request), &path, request)
                }
                ("POST", ["notes"]) => post_note(item, request, &login, now),
                _ => ForgeReply::json(404, &json!({ "error": "404 Not Found" })),
            }
        }
        _ => ForgeReply::json(404, &json!({ "error": "404 Not Found" })),
    }
}

/// Applies the changes of a request.
fn change(item: &mut ForgeItem, request: &ForgeRequest, now: u64) {
    // Labels are a text with commas, or a list.
    let names = |key: &str| -> Option<Vec<String>> {
        let list = request.body.get(key).and_then(Value::as_array);
        let list = list.map(|list| {
            list.iter()
                .filter_map(|it| it.as_str().map(str::to_owned))
                .collect()
        });
        let text = || {
            request
                .text(key)
                .map(|text| text.split(',').map(|it| it.trim().to_owned()).collect())
        };
        list.or_else(text)
    };
    item.title = request.text("title").unwrap_or_else(|| item.title.clone());
    item.body = request
        .text("description")
        .unwrap_or_else(|| item.body.clone());
    if let Some(labels) = names("labels") {
        item.labels = labels
            .into_iter()
            .filter(|label| !label.is_empty())
            .collect();
    }
    names("add_labels")
        .unwrap_or_default()
        .iter()
        .for_each(|label| item.add_label(label));
    for label in names("remove_labels").unwrap_or_default() {
        item.remove_label(&label);
    }
    match request.text("state_event").as_deref() {
        Some("close") => item.is_closed = true,
        Some("reopen") => item.is_closed = false,
        _ => {}
    }
    item.updated = now;
}

/// Posts a note. A line that is a command is carried out, and is no part of the note.
fn post_note(item: &mut ForgeItem, request: &ForgeRequest, login: &str, now: u64) -> ForgeReply {
    let Some(body) = request
        .text("body")
        .filter(|body| body.chars().count() <= 1_000_000)
    else {
        return error(400, "400 Bad request - Note {:note=>[\"can't be blank\"]}");
    };
    let is_command = |line: &&str| {
        ["/close", "/label", "/merge", "/approve"]
            .iter()
            .any(|it| line.starts_with(it))
    };
    if body.lines().any(|line| line.starts_with("/close")) {
        item.is_closed = true;
    }
    let kept: Vec<&str> = body.lines().filter(|line| !is_command(line)).collect();
    let (number, is_request) = (item.number, item.is_request);
    let made = item.add_comment(login, &kept.join("\n"), now);
    ForgeReply::json(201, &note(made, number, is_request))
}

fn listed<'r>(repo: &'r ForgeRepo, is_request: bool, request: &ForgeRequest) -> Vec<&'r ForgeItem> {
    let state = request.parameter("state").unwrap_or("all");
    let labels: Vec<&str> = request
        .parameter("labels")
        .map(|it| it.split(',').collect())
        .unwrap_or_default();
    let matches = |item: &&ForgeItem| {
        let has = |label: &&str| label.is_empty() || item.labels.iter().any(|own| own == label);
        item.is_request == is_request
            && (state == "all" || item.is_closed == (state == "closed"))
            && labels.iter().all(has)
    };
    let mut items: Vec<&ForgeItem> = repo.items.iter().filter(matches).collect();
    items.sort_by_key(|item| (item.created, item.number));
    if request.parameter("sort") != Some("asc") {
        items.reverse();
    }
    items
}

/// Returns one page of a list: by number with all headers, or by key with a link alone.
fn page<T>(
    items: &[T],
    show: impl Fn(&T) -> Value,
    path: &str,
    request: &ForgeRequest,
) -> ForgeReply {
    let size = request.per_page(20);
    let is_keyset = request.parameter("pagination") == Some("keyset");
    let start = match request.parameter("cursor").filter(|_| is_keyset) {
        Some(cursor) => cursor.parse().unwrap_or_default(),
        None => (request.page() - 1) * size,
    };
    let shown: Vec<Value> = items.iter().skip(start).take(size).map(show).collect();
    let reply = ForgeReply::json(200, &Value::Array(shown));
    let link = |changes: &[(&str, String)], relation: &str| {
        format!("<{}>; rel=\"{relation}\"", request.link(path, changes))
    };
    let has_more = start + size < items.len();
    if is_keyset {
        if !has_more {
            return reply;
        }
        return reply.header(
            "link",
            link(&[("cursor", (start + size).to_string())], "next"),
        );
    }
    let (number, pages) = (request.page(), items.len().div_ceil(size).max(1));
    let mut links = vec![
        link(&[("page", "1".to_owned())], "first"),
        link(&[("page", pages.to_string())], "last"),
    ];
    let next = if has_more {
        (number + 1).to_string()
    } else {
        String::new()
    };
    if has_more {
        links.insert(0, link(&[("page", next.clone())], "next"));
    }
    let prev = if number > 1 {
        (number - 1).to_string()
    } else {
        String::new()
    };
    let reply = reply
        .header("x-page", number.to_string())
        .header("x-per-page", size.to_string())
        .header("x-next-page", next)
        .header("x-prev-page", prev)
        .header("link", links.join(", "));
    // Long lists are not counted.
    if items.len() > 10_000 {
        return reply;
    }
    reply
        .header("x-total", items.len().to_string())
        .header("x-total-pages", pages.to_string())
}

fn user(login: &str) -> Value {
    json!({ "id": 1, "username": login, "name": login, "state": "active", "web_url": format!("https://gitlab.example/{login}") })
}

fn project(repo: &ForgeRepo, request: &ForgeRequest) -> Value {
    json!({
        "id": repo.id, "name": repo.name, "path": repo.name, "path_with_namespace": repo.full_name(),
        "archived": repo.is_archived, "web_url": format!("https://gitlab.example/{}", repo.full_name()),
        "default_branch": "main", "issues_enabled": true, "merge_requests_enabled": true,
        "_links": { "self": format!("{}/api/v4/projects/{}", request.base, repo.id) },
    })
}

fn read_item(item: &ForgeItem, repo: &ForgeRepo) -> Value {
    let kind = if item.is_request {
        "merge_requests"
    } else {
        "issues"
    };
    json!({
        "id": repo.id * 1_000_000 + item.number, "iid": item.number, "project_id": repo.id, "title": item.title,
        "description": item.body, "state": if item.is_closed { "closed" } else { "opened" }, "labels": item.labels,
        "author": user(&item.author), "created_at": instant(item.created), "updated_at": instant(item.updated),
        "user_notes_count": item.comments.len(), "confidential": false,
        "web_url": format!("https://gitlab.example/{}/-/{kind}/{}", repo.full_name(), item.number),
    })
}

fn note(comment: &ForgeComment, number: u64, is_request: bool) -> Value {
    json!({
        "id": comment.id, "body": comment.body, "author": user(&comment.author), "system": false,
        "internal": comment.is_internal, "confidential": comment.is_internal, "created_at": instant(comment.created),
        "updated_at": instant(comment.created), "noteable_iid": number,
        "noteable_type": if is_request { "MergeRequest" } else { "Issue" },
    })
}
