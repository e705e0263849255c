//! Replies as GitHub's REST API (version 2022-11-28) documents them.

use axum::http::Method;
use serde_json::{Value, json};

use super::reply::{ForgeReply, ForgeRequest};
use super::state::{ForgeComment, ForgeItem, ForgeRepo, ForgeState, instant};

/// Answers a request.
pub(super) fn respond(state: &mut ForgeState, request: &ForgeRequest) -> ForgeReply {
    let reply = match refuse(state, request) {
        Some(refusal) => refusal,
        None => route(state, request).with_etag(request),
    };
    // Responses with status 304 do not count against the rate limit.
    if reply.status != 304 {
        state.rate.remaining = state.rate.remaining.saturating_sub(1);
    }
    let rate = state.rate;
    reply
        .header("x-ratelimit-limit", rate.limit.to_string())
        .header("x-ratelimit-remaining", rate.remaining.to_string())
        .header(
            "x-ratelimit-used",
            (rate.limit - rate.remaining).to_string(),
        )
        .header("x-ratelimit-reset", rate.reset.to_string())
        .header("x-ratelimit-resource", "core")
        .header("x-github-media-type", "github.v3; format=json")
}

fn error(status: u16, message: &str) -> ForgeReply {
    let body = json!({
        "message": message, "documentation_url": "https://docs.github.com/rest", "status": status.to_string(),
    });
    ForgeReply::json(status, &body)
}

/// Refuses requests with a wrong or missing token, and those over the rate limit.
fn refuse(state: &ForgeState, request: &ForgeRequest) -> Option<ForgeReply> {
    let sent = request
        .headers
        .get("authorization")
        .and_then(|sent| sent.to_str().ok());
    let token = sent
        .and_then(|sent| sent.split_once(' '))
        .map(|(_, token)| token);
    match token {
        Some(token) if token != state.token => return Some(error(401, "Bad credentials")),
        None if request.method != Method::GET || request.path == ["user"] => {
            return Some(error(401, "Requires authentication"));
        }
        _ => {}
    }
    let message = "API rate limit exceeded for user ID 1.";
    (state.rate.remaining == 0).then(|| error(403, message))
}

fn route(state: &mut ForgeState, request: &ForgeRequest) -> ForgeReply {
    let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["user"] => match &state.login {
            Some(login) => ForgeReply::json(200, &user(request, login)),
            None => error(403, "Resource not accessible by integration"),
        },
        ["rate_limit"] => {
            let rate = json!({
                "limit": state.rate.limit, "remaining": state.rate.remaining, "reset": state.rate.reset, "used": 0,
            });
            ForgeReply::json(
                200,
                &json!({ "resources": { "core": rate, "search": rate }, "rate": rate }),
            )
        }
        ["repos", owner, name, rest @ ..] => {
            let name = format!("{owner}/{name}");
            let is_called = |repo: &ForgeRepo| repo.full_name().eq_ignore_ascii_case(&name);
            if let Some(at) = state.repos.iter().position(is_called) {
                return in_repo(state, at, rest, request);
            }
            let mut repos = state.repos.iter();
            match repos.find(|repo| repo.old_names.contains(&name)) {
                Some(repo) => moved(repo.id, rest, request),
                None => error(404, "Not Found"),
            }
        }
        ["repositories", id, rest @ ..] => {
            let position = state
                .repos
                .iter()
                .position(|repo| repo.id.to_string() == *id);
            match position {
                Some(at) => in_repo(state, at, rest, request),
                None => error(404, "Not Found"),
            }
        }
        _ => error(404, "Not Found"),
    }
}

/// Redirects to the address that a renamed repository keeps.
fn moved(id: u64, rest: &[&str], request: &ForgeRequest) -> ForgeReply {
    let below: String = rest.iter().map(|part| format!("/{part}")).collect();
    let query = request
        .target
        .split_once('?')
        .map(|(_, query)| format!("?{query}"));
    let url = format!(
        "{}/repositories/{id}{below}{}",
        request.base,
        query.unwrap_or_default()
    );
    let status = if request.method == Method::GET {
        301
    } else {
        307
    };
    let body = json!({ "message": "Moved Permanently", "url": url });
    ForgeReply::json(status, &body).header("location", url)
}

fn in_repo(state: &mut ForgeState, at: usize, rest: &[&str], request: &ForgeRequest) -> ForgeReply {
    let is_write = request.method != Method::GET;
    if is_write && state.repos[at].is_archived {
        return error(403, "Repository was archived so is read-only.");
    }
    let login = state
        .login
        .clone()
        .unwrap_or_else(|| "infold[bot]".to_owned());
    let now = if is_write { state.tick() } else { state.clock };
    let repo = &mut state.repos[at];
    let (id, address) = (
        repo.id,
        format!("{}/repos/{}", request.base, repo.full_name()),
    );
    match rest {
        [] => ForgeReply::json(200, &repository(repo, &address)),
        ["labels"] => {
            let mut labels: Vec<&String> =
                repo.items.iter().flat_map(|item| &item.labels).collect();
            labels.sort();
            labels.dedup();
            let labels: Vec<Value> = labels.iter().map(|name| label(&address, name)).collect();
            page(labels, &format!("/repositories/{id}/labels"), request)
        }
        ["issues"] => {
            let items = listed(repo, request);
            let issue = |item: &&ForgeItem| issue(item, repo, &address, request);
            let items: Vec<Value> = items.iter().map(issue).collect();
            page(items, &format!("/repositories/{id}/issues"), request)
        }
        ["issues" | "pulls", number, rest @ ..] => {
            let name = repo.full_name();
            let number = number.parse().unwrap_or_default();
            let shown = repo.clone_head();
            let Some(item) = repo.item_mut(number) else {
                return error(404, "Not Found");
            };
            let place = IssuePlace {
                repo: &shown,
                name: &name,
                address: &address,
                login: &login,
                now,
            };
            in_issue(item, &place, rest, request)
        }
        _ => error(404, "Not Found"),
    }
}

/// Where an issue is, and who writes there when.
struct IssuePlace<'a> {
    repo: &'a ForgeRepo,
    name: &'a str,
    address: &'a str,
    login: &'a str,
    now: u64,
}

fn in_issue(
    item: &mut ForgeItem,
    place: &IssuePlace<'_>,
    rest: &[&str],
    request: &ForgeRequest,
) -> ForgeReply {
    let number = item.number;
    let labels = |item: &ForgeItem| {
        let names = item.labels.iter();
        Value::Array(names.map(|name| label(place.address, name)).collect())
    };
    match (request.method.as_str(), rest) {
        ("GET", []) => ForgeReply::json(200, &issue(item, place.repo, place.address, request)),
        ("PATCH", []) => {
            item.title = request.text("title").unwrap_or_else(|| item.title.clone());
            item.body = request.text("body").unwrap_or_else(|| item.body.clone());
            if let Some(state) = request.text("state") {
                item.is_closed = state == "closed";
            }
            if let Some(labels) = request.body.get("labels").and_then(Value::as_array) {
                item.labels = labels
                    .iter()
                    .filter_map(|name| name.as_str().map(str::to_owned))
                    .collect();
            }
            item.updated = place.now;
            ForgeReply::json(200, &issue(item, place.repo, place.address, request))
        }
        ("GET", ["comments"]) => {
            let comments = item.comments.iter();
            let comments =
                comments.map(|it| comment(it, number, place.name, place.address, request));
            let path = format!("/repositories/{}/issues/{number}/comments", place.repo.id);
            page(comments.collect(), &path, request)
        }
        ("POST", ["comments"]) => match request
            .text("body")
            .filter(|body| body.chars().count() <= 65_536)
        {
            Some(body) if !body.trim().is_empty() => {
                let made = item.add_comment(place.login, &body, place.now);
                ForgeReply::json(
                    201,
                    &comment(made, number, place.name, place.address, request),
                )
            }
            _ => error(422, "Validation Failed"),
        },
        ("GET", ["labels"]) => ForgeReply::json(200, &labels(item)),
        ("POST" | "PUT", ["labels"]) => {
            // The body may be the list itself, as older clients send it.
            let names = request
                .body
                .get("labels")
                .unwrap_or(&request.body)
                .as_array()
                .cloned();
            if request.method == Method::PUT {
                item.labels.clear();
            }
            for name in names.unwrap_or_default() {
                item.add_label(name.as_str().unwrap_or_default());
            }
            item.updated = place.now;
            ForgeReply::json(200, &labels(item))
        }
        ("DELETE", ["labels", name]) => {
            item.updated = place.now;
            if item.remove_label(name) {
                ForgeReply::json(200, &labels(item))
            } else {
                error(404, "Label does not exist")
            }
        }
        _ => error(404, "Not Found"),
    }
}

/// Returns the items of a list, in its order.
fn listed<'r>(repo: &'r ForgeRepo, request: &ForgeRequest) -> Vec<&'r ForgeItem> {
    let state = request.parameter("state").unwrap_or("open");
    let labels: Vec<&str> = request
        .parameter("labels")
        .map(|it| it.split(',').collect())
        .unwrap_or_default();
    let matches = |item: &&ForgeItem| {
        let has = |label: &&str| {
            label.is_empty()
                || item
                    .labels
                    .iter()
                    .any(|own| own.eq_ignore_ascii_case(label))
        };
        (state == "all" || item.is_closed == (state == "closed")) && labels.iter().all(has)
    };
    let mut items: Vec<&ForgeItem> = repo.items.iter().filter(matches).collect();
    match request.parameter("sort") {
        Some("updated") => items.sort_by_key(|item| item.updated),
        _ => items.sort_by_key(|item| (item.created, item.number)),
    }
    if request.parameter("direction") != Some("asc") {
        items.reverse();
    }
    items
}

/// Returns one page of a list, with links to the others.
fn page(items: Vec<Value>, path: &str, request: &ForgeRequest) -> ForgeReply {
    let (size, number) = (request.per_page(30), request.page());
    let last = items.len().div_ceil(size).max(1);
    let link = |number: usize, relation: &str| {
        let url = request.link(path, &[("page", number.to_string())]);
        format!("<{url}>; rel=\"{relation}\"")
    };
    let mut links = Vec::new();
    if number > 1 {
        links.extend([link(number - 1, "prev"), link(1, "first")]);
    }
    if number < last {
        links.extend([link(number + 1, "next"), link(last, "last")]);
    }
    let shown: Vec<Value> = items
        .into_iter()
        .skip((number - 1) * size)
        .take(size)
        .collect();
    let reply = ForgeReply::json(200, &Value::Array(shown));
    if links.is_empty() {
        return reply;
    }
    reply.header("link", links.join(", "))
}

fn user(request: &ForgeRequest, login: &str) -> Value {
    let kind = if login.ends_with("[bot]") {
        "Bot"
    } else {
        "User"
    };
    json!({
        "login": login, "id": 1, "type": kind, "site_admin": false,
        "url": format!("{}/users/{login}", request.base), "html_url": format!("https://github.example/{login}"),
    })
}

fn label(address: &str, name: &str) -> Value {
    json!({ "id": 1, "name": name, "color": "ededed", "default": false, "url": format!("{address}/labels/{name}") })
}

fn repository(repo: &ForgeRepo, address: &str) -> Value {
    json!({
        "id": repo.id, "name": repo.name, "full_name": repo.full_name(), "private": false, "archived": repo.is_archived,
        "disabled": false, "has_issues": true, "url": address, "owner": { "login": repo.owner, "id": 2, "type": "User" },
        "html_url": format!("https://github.example/{}", repo.full_name()), "default_branch": "main",
        "issues_url": format!("{address}/issues{{/number}}"), "open_issues_count": repo.items.len(),
    })
}

fn issue(item: &ForgeItem, repo: &ForgeRepo, address: &str, request: &ForgeRequest) -> Value {
    let kind = if item.is_request { "pull" } else { "issues" };
    let page = format!(
        "https://github.example/{}/{kind}/{}",
        repo.full_name(),
        item.number
    );
    let url = format!("{address}/issues/{}", item.number);
    let mut issue = json!({
        "id": repo.id * 1_000_000 + item.number, "number": item.number, "title": item.title, "body": item.body,
        "state": if item.is_closed { "closed" } else { "open" }, "user": user(request, &item.author),
        "labels": item.labels.iter().map(|name| label(address, name)).collect::<Vec<_>>(),
        "comments": item.comments.len(), "created_at": instant(item.created), "updated_at": instant(item.updated),
        "html_url": page, "url": url, "comments_url": format!("{url}/comments"), "labels_url": format!("{url}/labels{{/name}}"),
        "repository_url": address, "author_association": "NONE", "locked": false, "assignees": [],
    });
    if item.is_request {
        issue["pull_request"] =
            json!({ "url": format!("{address}/pulls/{}", item.number), "html_url": page });
    }
    issue
}

fn comment(
    comment: &ForgeComment,
    number: u64,
    name: &str,
    address: &str,
    request: &ForgeRequest,
) -> Value {
    json!({
        "id": comment.id, "body": comment.body, "user": user(request, &comment.author),
        "created_at": instant(comment.created), "updated_at": instant(comment.created),
        "url": format!("{address}/issues/comments/{}", comment.id), "issue_url": format!("{address}/issues/{number}"),
        "html_url": format!("https://github.example/{name}/issues/{number}#issuecomment-{}", comment.id),
        "author_association": "NONE",
    })
}
