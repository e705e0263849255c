//! A source of tasks: a GitHub or GitLab server, reached with a token, and the labels of its tasks.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use infold_provider::{RestClient, RestLimits, RestServer, RestServerError, RetryPolicy, Secret};
use infold_wire::Json;

use crate::api::ForgeApi;
use crate::etag_cache::EtagCache;
use crate::{SourceError, SourceKind, SourceTask, TaskComment, TaskRef, github, gitlab};

/// A server of issues and pull or merge requests.
pub struct Source {
    pub(crate) api: ForgeApi,
    pub(crate) labels: Labels,
    repositories: HashMap<(String, String), Repository>,
    /// The account of the token once it was requested; `Some(None)` if the server does not name it.
    login: Option<Option<String>>,
}

/// The labels that select tasks and show their status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// The label of tasks to fetch.
    pub wanted: String,
    /// The label of tasks in the queue.
    pub taken: String,
    /// The label of completed tasks.
    pub done: String,
    /// The label of failed tasks.
    pub failed: String,
}

impl Default for Labels {
    fn default() -> Labels {
        Labels {
            wanted: "infold".to_owned(),
            taken: "infold:queued".to_owned(),
            done: "infold:done".to_owned(),
            failed: "infold:failed".to_owned(),
        }
    }
}

/// How a source is reached.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// The address, if it is not the public service.
    pub base_url: Option<String>,
    /// The token. It is sent to this address alone.
    pub token: Option<Secret>,
    /// The labels.
    pub labels: Labels,
    /// The file of cached pages; without one no pages are cached.
    pub cache_file: Option<PathBuf>,
    /// How often and how long a request is tried.
    pub retry: RetryPolicy,
    /// A rate limit that lasts longer is an error.
    pub longest_rate_wait: Duration,
    /// How long to wait between two requests that write. GitHub asks for a second.
    pub write_interval: Duration,
    /// How long a response may take, and how large it may be.
    pub limits: RestLimits,
}

impl Default for SourceOptions {
    fn default() -> SourceOptions {
        SourceOptions {
            base_url: None,
            token: None,
            labels: Labels::default(),
            cache_file: None,
            retry: RetryPolicy {
                attempts: 5,
                longest_wait: Duration::from_secs(30),
                ..RetryPolicy::default()
            },
            longest_rate_wait: Duration::from_secs(120),
            write_interval: Duration::from_secs(1),
            limits: RestLimits::default(),
        }
    }
}

/// A repository, as its server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    /// The server's own id, which stays when it is renamed.
    pub id: String,
    pub owner: String,
    pub name: String,
    pub is_archived: bool,
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// The tasks of a list whose pages are being read. A task that comes twice, because the list changed meanwhile, counts
/// once.
#[derive(Debug, Default)]
pub(crate) struct TaskPages<'a> {
    pub label: &'a str,
    pub tasks: Vec<SourceTask>,
    /// Items that could not be read.
    pub unreadable: usize,
    known: HashSet<String>,
}

impl<'a> TaskPages<'a> {
    pub fn new(label: &'a str) -> TaskPages<'a> {
        TaskPages {
            label,
            ..TaskPages::default()
        }
    }

    /// Adds an item; `None` counts as an item that could not be read.
    pub fn take(&mut self, task: Option<SourceTask>) {
        match task {
            Some(task) if self.known.insert(task.key()) => self.tasks.push(task),
            Some(_) => {}
            None => self.unreadable += 1,
        }
    }
}

impl Source {
    /// Creates a source. Nothing is sent yet.
    pub fn new(kind: SourceKind, options: SourceOptions) -> Result<Source, RestServerError> {
        let base = options.base_url.as_deref().unwrap_or(kind.home());
        let base = api_base(kind, base);
        let header = |token: &str| match kind {
            SourceKind::Github => (http::header::AUTHORIZATION, format!("Bearer {token}")),
            SourceKind::Gitlab => (HeaderName::from_static("private-token"), token.to_owned()),
        };
        Ok(Source {
            api: ForgeApi {
                kind,
                server: RestServer::new(&base, options.token, header)?,
                client: RestClient::new(options.limits),
                cache: EtagCache::open(options.cache_file),
                retry: options.retry,
                longest_rate_wait: options.longest_rate_wait,
                write_interval: options.write_interval,
                on_wait: Box::new(|_, _| {}),
                blocked_until: None,
                last_write: None,
            },
            labels: options.labels,
            repositories: HashMap::new(),
            login: None,
        })
    }

    /// Sets the function that is called before each wait, with its reason and its duration.
    pub fn on_wait(&mut self, callback: impl FnMut(&str, Duration) + Send + 'static) {
        self.api.on_wait = Box::new(callback);
    }

    /// Returns the kind of server.
    pub fn kind(&self) -> SourceKind {
        self.api.kind
    }

    /// Returns the labels.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Says whether there is a token.
    pub fn has_token(&self) -> bool {
        self.api.server.has_token()
    }

    /// Says whether the token would travel unencrypted over a network.
    pub fn is_exposed(&self) -> bool {
        self.has_token() && self.api.server.is_exposed()
    }

    /// Writes the cache of pages. If this fails nothing is lost: the pages are requested again.
    pub fn save_cache(&mut self) -> std::io::Result<()> {
        self.api.cache.save()
    }

    /// Finds a repository.
    pub(crate) async fn repository(
        &mut self,
        owner: &str,
        name: &str,
    ) -> Result<Repository, SourceError> {
        let key = (owner.to_owned(), name.to_owned());
        if let Some(known) = self.repositories.get(&key) {
            return Ok(known.clone());
        }
        let found = match self.kind() {
            SourceKind::Github => github::repository(&mut self.api, owner, name).await?,
            SourceKind::Gitlab => gitlab::repository(&mut self.api, owner, name).await?,
        };
        self.repositories.insert(key, found.clone());
        Ok(found)
    }

    /// Lists the open items that have the label of a listing.
    pub(crate) async fn list(
        &mut self,
        repo: &Repository,
        listing: &mut TaskPages<'_>,
    ) -> Result<(), SourceError> {
        match self.kind() {
            SourceKind::Github => github::list(&mut self.api, repo, listing).await,
            SourceKind::Gitlab => gitlab::list(&mut self.api, repo, listing).await,
        }
    }

    /// Gets one task as it is now.
    pub async fn task(&mut self, task: &TaskRef) -> Result<SourceTask, SourceError> {
        let repo = self.repository(&task.owner, &task.repo).await?;
        match self.kind() {
            SourceKind::Github => github::task(&mut self.api, &repo, task).await,
            SourceKind::Gitlab => gitlab::task(&mut self.api, &repo, task).await,
        }
    }

    /// Lists all comments of a task.
    pub(crate) async fn comments(
        &mut self,
        task: &TaskRef,
    ) -> Result<Vec<TaskComment>, SourceError> {
        let repo = self.repository(&task.owner, &task.repo).await?;
        let mut comments = Vec::new();
        let mut take = |comment| comments.push(comment);
        match self.kind() {
            SourceKind::Github => github::comments(&mut self.api, &repo, task, &mut take).await?,
            SourceKind::Gitlab => gitlab::comments(&mut self.api, &repo, task, &mut take).await?,
        }
        Ok(comments)
    }

    /// Posts a comment, whether or not it is there already.
    pub(crate) async fn post_comment(
        &mut self,
        task: &TaskRef,
        body: &str,
    ) -> Result<(), SourceError> {
        let repo = self.repository(&task.owner, &task.repo).await?;
        match self.kind() {
            SourceKind::Github => github::post_comment(&mut self.api, &repo, task, body).await,
            SourceKind::Gitlab => gitlab::post_comment(&mut self.api, &repo, task, body).await,
        }
    }

    /// Gives a task one of our labels instead of the others; `current` are those that it has. Does nothing
    /// if they are right.
    pub(crate) async fn relabel(
        &mut self,
        task: &TaskRef,
        current: &[String],
        label: &str,
    ) -> Result<(), SourceError> {
        let labels = self.labels.clone();
        let has = |label: &str| current.iter().any(|own| own.eq_ignore_ascii_case(label));
        let add = Some(label).filter(|label| !has(label));
        let ours = [&labels.wanted, &labels.taken, &labels.done, &labels.failed];
        let ours = ours.into_iter().map(String::as_str);
        let remove: Vec<&str> = ours.filter(|own| *own != label && has(own)).collect();
        if add.is_none() && remove.is_empty() {
            return Ok(());
        }
        let repo = self.repository(&task.owner, &task.repo).await?;
        match self.kind() {
            SourceKind::Github => github::relabel(&mut self.api, &repo, task, add, &remove).await,
            SourceKind::Gitlab => gitlab::relabel(&mut self.api, &repo, task, add, &remove).await,
        }
    }

    /// Returns the account of the token; none if the server does not say, as for tokens of apps.
    pub(crate) async fn login(&mut self) -> Result<Option<String>, SourceError> {
        if let Some(login) = &self.login {
            return Ok(login.clone());
        }
        let url = self.api.server.at(&["user"], &[]);
        let member = match self.kind() {
            SourceKind::Github => "login",
            SourceKind::Gitlab => "username",
        };
        let login = match self.api.get("account of this token", url, false).await {
            Ok(response) => {
                let json = self.api.parse("account of this token", &response.body)?;
                let login = json.get(member).and_then(Json::text);
                login.map(|login| login.into_owned())
            }
            Err(SourceError::Forbidden { .. } | SourceError::Missing { .. }) => None,
            Err(error) => return Err(error),
        };
        self.login = Some(login.clone());
        Ok(login)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Source");
        shown
            .field("kind", &self.api.kind)
            .field("server", &self.api.server);
        shown.field("labels", &self.labels).finish_non_exhaustive()
    }
}

/// Returns the address that paths of the API are appended to.
fn api_base(kind: SourceKind, given: &str) -> String {
    let base = given.trim().trim_end_matches('/');
    match kind {
        SourceKind::Github if base == "https://github.com" => kind.home().to_owned(),
        SourceKind::Github => base.to_owned(),
        SourceKind::Gitlab if base.ends_with("/api/v4") => base.to_owned(),
        SourceKind::Gitlab => format!("{base}/api/v4"),
    }
}
