//! The state of a code hosting server: repositories, issues, merge requests, labels and comments.

/// The state of a server. Tests create one, and inspect it afterwards.
#[derive(Clone, Debug)]
pub struct ForgeState {
    /// The repositories.
    pub repos: Vec<ForgeRepo>,
    /// The token that is asked for.
    pub token: String,
    /// The account of the token; without one the token is that of an app.
    pub login: Option<String>,
    /// How many requests are left, and when that number is renewed (seconds since 1970).
    pub rate: ForgeRate,
    /// Counts changes; each has a second of its own.
    pub clock: u64,
}

/// The rate limit of a server.
#[derive(Clone, Copy, Debug)]
pub struct ForgeRate {
    /// How many requests a window allows.
    pub limit: u64,
    /// How many are left.
    pub remaining: u64,
    /// When the window ends, in seconds since 1970.
    pub reset: u64,
}

/// A repository.
#[derive(Clone, Debug, Default)]
pub struct ForgeRepo {
    /// The server's own id.
    pub id: u64,
    /// The owner; a group at GitLab may be in others.
    pub owner: String,
    /// The name.
    pub name: String,
    /// Names that it had before, as `owner/name`.
    pub old_names: Vec<String>,
    /// Whether it is read-only.
    pub is_archived: bool,
    /// Issues and pull or merge requests.
    pub items: Vec<ForgeItem>,
}

/// An issue, pull request or merge request.
#[derive(Clone, Debug, Default)]
pub struct ForgeItem {
    /// The number.
    pub number: u64,
    /// Whether it is a pull or merge request.
    pub is_request: bool,
    /// The title.
    pub title: String,
    /// The description.
    pub body: String,
    /// The account that wrote it.
    pub author: String,
    /// The labels.
    pub labels: Vec<String>,
    /// Whether it is closed.
    pub is_closed: bool,
    /// The comments.
    pub comments: Vec<ForgeComment>,
    /// When it was made, and changed.
    pub created: u64,
    /// When it was last changed.
    pub updated: u64,
}

/// A comment.
#[derive(Clone, Debug, Default)]
pub struct ForgeComment {
    /// The id.
    pub id: u64,
    /// The account that wrote it.
    pub author: String,
    /// The text.
    pub body: String,
    /// When it was written.
    pub created: u64,
    /// Whether only members may read it (GitLab).
    pub is_internal: bool,
}

impl Default for ForgeState {
    fn default() -> ForgeState {
        ForgeState {
            repos: Vec::new(),
            token: "forge-token".to_owned(),
            login: Some("infold-bot".to_owned()),
            rate: ForgeRate {
                limit: 5_000_000,
                remaining: 5_000_000,
                reset: 4_102_444_800,
            },
            clock: 1_000_000,
        }
    }
}

impl ForgeState {
    /// Returns a server with one repository.
    pub fn with_repo(owner: &str, name: &str) -> ForgeState {
        let mut state = ForgeState::default();
        state.add_repo(owner, name);
        state
    }

    /// Adds a repository.
    pub fn add_repo(&mut self, owner: &str, name: &str) -> &mut ForgeRepo {
        let id = 1000 + self.repos.len() as u64;
        self.repos.push(ForgeRepo {
            id,
            owner: owner.to_owned(),
            name: name.to_owned(),
            ..ForgeRepo::default()
        });
        let last = self.repos.len() - 1;
        &mut self.repos[last]
    }

    /// Returns the second of the next change.
    pub fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl ForgeRepo {
    /// Returns `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// Returns it without its items.
    pub(super) fn clone_head(&self) -> ForgeRepo {
        ForgeRepo {
            id: self.id,
            owner: self.owner.clone(),
            name: self.name.clone(),
            is_archived: self.is_archived,
            ..ForgeRepo::default()
        }
    }

    /// Adds an open issue with one label.
    pub fn add_issue(&mut self, title: &str, body: &str, label: &str) -> &mut ForgeItem {
        self.add(title, body, label, false)
    }

    /// Adds an open pull or merge request with one label.
    pub fn add_request(&mut self, title: &str, body: &str, label: &str) -> &mut ForgeItem {
        self.add(title, body, label, true)
    }

    fn add(&mut self, title: &str, body: &str, label: &str, is_request: bool) -> &mut ForgeItem {
        let number = self.items.len() as u64 + 1;
        self.items.push(ForgeItem {
            number,
            is_request,
            title: title.to_owned(),
            body: body.to_owned(),
            author: "alice".to_owned(),
            labels: vec![label.to_owned()],
            created: number,
            updated: number,
            ..ForgeItem::default()
        });
        let last = self.items.len() - 1;
        &mut self.items[last]
    }

    /// Returns the item of a number.
    pub fn item(&self, number: u64) -> Option<&ForgeItem> {
        self.items.iter().find(|item| item.number == number)
    }

    /// Returns the item of a number, to change it.
    pub fn item_mut(&mut self, number: u64) -> Option<&mut ForgeItem> {
        self.items.iter_mut().find(|item| item.number == number)
    }
}

impl ForgeItem {
    /// Adds a label, if it is not there.
    pub fn add_label(&mut self, label: &str) {
        if !self.labels.iter().any(|own| own == label) {
            self.labels.push(label.to_owned());
        }
    }

    /// Takes a label away; returns whether it was there.
    pub fn remove_label(&mut self, label: &str) -> bool {
        let before = self.labels.len();
        self.labels.retain(|own| own != label);
        self.labels.len() < before
    }

    /// Adds a comment.
    pub fn add_comment(&mut self, author: &str, body: &str, now: u64) -> &ForgeComment {
        self.updated = now;
        self.comments.push(ForgeComment {
            id: now,
            author: author.to_owned(),
            body: body.to_owned(),
            created: now,
            is_internal: false,
        });
        &self.comments[self.comments.len() - 1]
    }
}

/// Returns a time as APIs write it, counted from the beginning of 2026.
pub(super) fn instant(seconds: u64) -> String {
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "2026-01-{:02}T{hour:02}:{minute:02}:{:02}Z",
        1 + day % 28,
        second % 60
    )
}
