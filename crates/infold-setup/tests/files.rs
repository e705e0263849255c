//! Changes of files by setup, and their undo.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use infold_setup::{
    Agent, AgentTarget, ApplyError, FileError, Plan, ServerEntry, SetupLock, SetupRecord,
    Surroundings, UndoneLines, read_file, undo_agent, undo_before_write, write_agent,
};
use std::time::Duration;

use tempfile::TempDir;

const BASE: &str = "http://127.0.0.1:7333";

struct Home(TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0
            .path()
            .canonicalize()
            .expect("it is there")
            .join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, text).expect("a file");
        path
    }

    fn plan(&self, agent: Agent) -> Result<Plan, infold_setup::PlanError> {
        let home = self.path("");
        let read = |file: &Path| match read_file(file) {
            Ok(read) => Ok(read.map(|read| read.text)),
            Err(error) => Err(error.to_string()),
        };
        let at = Surroundings {
            home: &home,
            current: &home,
            env: &|_| None,
            read: &read,
        };
        let mut plan = agent.plan(
            &at,
            &AgentTarget {
                base: BASE,
                former: &[],
                mcp: None,
            },
        )?;
        plan.forward(&at, self.path(".config/infold/config.yaml"), &[])?;
        Ok(plan)
    }

    fn write(&self, agent: Agent) -> Result<usize, ApplyError> {
        let mut state = self.state();
        let files = write_agent(
            agent,
            BASE,
            &|| self.plan(agent),
            &mut state,
            &self.path("state/setup.json"),
        )?;
        Ok(files.len())
    }

    fn state(&self) -> SetupRecord {
        SetupRecord::load(&self.path("state/setup.json")).expect("a record")
    }

    fn undo(&self, agent: Agent) -> Vec<UndoneLines> {
        let mut state = self.state();
        let done = undo_agent(agent.name(), &mut state, &self.path("state/setup.json"));
        done.expect("it is taken back")
            .into_iter()
            .map(|(_, restored)| restored)
            .collect()
    }

    /// All files and directories, with modes and contents.
    fn all(&self) -> Vec<(PathBuf, u32, String)> {
        fn walk(dir: &Path, out: &mut Vec<(PathBuf, u32, String)>) {
            let mut entries: Vec<PathBuf> = fs::read_dir(dir)
                .expect("a directory")
                .flatten()
                .map(|entry| entry.path())
                .collect();
            entries.sort();
            for path in entries {
                let metadata = fs::symlink_metadata(&path).expect("it is there");
                let text = if metadata.is_symlink() {
                    format!("-> {}", fs::read_link(&path).expect("a link").display())
                } else {
                    fs::read_to_string(&path).unwrap_or_default()
                };
                out.push((path.clone(), metadata.permissions().mode(), text));
                if metadata.is_dir() {
                    walk(&path, out);
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.path(""), &mut out);
        out
    }
}

#[test]
fn what_was_there_is_there_again_and_what_was_made_is_gone() {
    let home = Home::new();
    let settings = home.file(".claude/settings.json", "{\"model\": \"opus\"}");
    fs::set_permissions(&settings, Permissions::from_mode(0o640)).expect("ours");
    home.file(".codex/config.toml", "# mine\r\nmodel = \"o3\"");
    let before = home.all();
    for agent in [Agent::Claude, Agent::Codex, Agent::Gemini, Agent::Aider] {
        assert!(home.write(agent).expect("written") > 0);
        assert_eq!(home.write(agent).expect("written twice"), 0);
    }
    assert_eq!(
        fs::metadata(&settings)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777,
        0o640
    );
    assert_eq!(
        fs::read_to_string(home.path(".claude/settings.json.before-infold")).expect("a copy"),
        "{\"model\": \"opus\"}"
    );
    assert_eq!(home.undo(Agent::Claude), [UndoneLines::Whole]);
    assert_eq!(home.undo(Agent::Aider), [UndoneLines::Removed]);
    home.undo(Agent::Gemini);
    home.undo(Agent::Codex);
    assert_eq!(home.all(), before);
    assert_eq!(home.undo(Agent::Codex), []);
}

#[test]
fn only_our_lines_go_when_others_changed_the_file() {
    let home = Home::new();
    let file = home.file(".codex/config.toml", "model = \"o3\"\n");
    home.write(Agent::Codex).expect("written");
    let text = fs::read_to_string(&file).expect("text");
    fs::write(&file, text.replace("o3", "o4") + "\n[tui]\nx = 1\n").expect("edited");
    assert_eq!(home.undo(Agent::Codex), [UndoneLines::LinesRemoved]);
    assert_eq!(
        fs::read_to_string(&file).expect("text"),
        "model = \"o4\"\n\n[tui]\nx = 1\n"
    );
}

#[test]
fn lines_that_others_changed_are_left() {
    let home = Home::new();
    let file = home.file(".codex/config.toml", "model = \"o3\"\n");
    home.write(Agent::Codex).expect("written");
    let text = fs::read_to_string(&file)
        .expect("text")
        .replace(BASE, "https://other");
    fs::write(&file, &text).expect("edited");
    assert_eq!(
        home.undo(Agent::Codex),
        [UndoneLines::Left(vec!["openai_base_url".to_owned()])]
    );
    assert_eq!(fs::read_to_string(&file).expect("text"), text);
    assert!(home.path(".codex/config.toml.before-infold").exists());
}

#[test]
fn a_kill_between_record_and_file_leaves_nothing_unknown() {
    let home = Home::new();
    let file = home.file(".codex/config.toml", "model = \"o3\"\n");
    home.write(Agent::Codex).expect("written");
    // As if the file had not been replaced yet.
    fs::write(&file, "model = \"o3\"\n").expect("as it was");
    assert_eq!(home.undo(Agent::Codex), [UndoneLines::Nothing]);
    assert_eq!(fs::read_to_string(&file).expect("text"), "model = \"o3\"\n");
    assert!(!home.path(".codex/config.toml.before-infold").exists());
}

#[test]
fn a_link_stays_and_its_target_is_changed() {
    let home = Home::new();
    let target = home.file("dotfiles/codex.toml", "model = \"o3\"\n");
    fs::create_dir_all(home.path(".codex")).expect("a directory");
    symlink(&target, home.path(".codex/config.toml")).expect("a link");
    let before = home.all();
    home.write(Agent::Codex).expect("written");
    assert!(
        fs::symlink_metadata(home.path(".codex/config.toml"))
            .expect("it is there")
            .is_symlink()
    );
    assert!(fs::read_to_string(&target).expect("text").contains(BASE));
    assert_eq!(home.undo(Agent::Codex), [UndoneLines::Whole]);
    assert_eq!(home.all(), before);
}

#[test]
fn what_must_not_be_changed_is_refused_and_nothing_is_left_behind() {
    let home = Home::new();
    let file = home.file(".codex/config.toml", "model = \"o3\"\n");
    fs::set_permissions(&file, Permissions::from_mode(0o444)).expect("ours");
    let before = home.all();
    let error = home.write(Agent::Codex).expect_err("read-only").to_string();
    assert!(
        error.contains("read-only") && error.contains(".codex/config.toml"),
        "{error}"
    );
    assert_eq!(home.all(), before);
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("ours");
    // Only root may give files away, and so only root sees this.
    if std::os::unix::fs::chown(&file, Some(4711), None).is_ok() {
        let error = home.write(Agent::Codex).expect_err("another's").to_string();
        assert!(
            error.contains("belongs to another user (id 4711)"),
            "{error}"
        );
    }
    fs::remove_file(&file).expect("removed");
    symlink("/nowhere/at/all", &file).expect("a link");
    let error = home.write(Agent::Codex).expect_err("dangling").to_string();
    assert!(
        error.contains("a link to /nowhere/at/all, which is not there"),
        "{error}"
    );
    fs::remove_file(&file).expect("removed");
    fs::create_dir(&file).expect("a directory");
    let error = home
        .write(Agent::Codex)
        .expect_err("a directory")
        .to_string();
    assert!(error.contains("not a regular file"), "{error}");
    fs::remove_dir(&file).expect("removed");
    fs::write(&file, b"model = \"\xff\"\n").expect("a file");
    let error = home.write(Agent::Codex).expect_err("no text").to_string();
    assert!(error.contains("not UTF-8"), "{error}");
    assert!(!home.path("state/setup.json").exists());
}

#[test]
fn a_file_that_changed_since_it_was_read_is_not_replaced() {
    let home = Home::new();
    let file = home.file("a.toml", "a = 1\n");
    let read = read_file(&file).expect("readable").expect("there");
    fs::write(&file, "a = 2\n").expect("written");
    let error = infold_setup::replace_file(&read, "a = 3\n").expect_err("it changed");
    assert!(matches!(error, FileError::Busy { .. }), "{error}");
    assert_eq!(fs::read_to_string(&file).expect("text"), "a = 2\n");
    assert_eq!(fs::read_dir(home.path("")).expect("a directory").count(), 1);
}

#[test]
fn an_upstream_that_another_agent_needs_stays_until_it_needs_it_no_more() {
    let home = Home::new();
    let gateway = "{\"env\": {\"ANTHROPIC_BASE_URL\": \"https://gw/v1\"}}";
    home.file(".claude/settings.json", gateway);
    home.file(
        ".continue/config.yaml",
        "models:\n  - name: a\n    provider: anthropic\n    apiBase: https://gw/v1\n",
    );
    let before = home.all();
    home.write(Agent::Claude).expect("written");
    home.write(Agent::Continue).expect("written");
    let config = home.path(".config/infold/config.yaml");
    assert_eq!(
        fs::read_to_string(&config).expect("text"),
        "serve:\n  upstreams:\n    anthropic: https://gw/v1\n"
    );
    home.undo(Agent::Claude);
    assert!(config.exists());
    home.undo(Agent::Continue);
    assert_eq!(home.all(), before);
}

#[test]
fn a_file_that_cannot_be_written_does_not_keep_the_others_from_being_taken_back() {
    let home = Home::new();
    let config = home.file(
        ".continue/config.yaml",
        "models:\n- name: a\n  provider: openai\n  model: x\n  apiBase: https://gw/v1\n",
    );
    home.write(Agent::Continue).expect("written");
    let own = home.path(".config/infold/config.yaml");
    // Two files, one of which is no text any more.
    fs::write(&own, b"serve: \xff\n").expect("ours");
    let done = home.undo(Agent::Continue);
    assert!(
        done.iter()
            .any(|restored| matches!(restored, UndoneLines::Failed(why) if why.contains("UTF-8"))),
        "{done:?}"
    );
    assert!(done.contains(&UndoneLines::Whole), "{done:?}");
    assert!(
        fs::read_to_string(&config)
            .expect("text")
            .contains("https://gw/v1")
    );
    // The record still names the file that failed.
    assert_eq!(home.state().agents[0].files.len(), 1);
    fs::remove_file(&own).expect("ours");
    assert_eq!(home.undo(Agent::Continue), [UndoneLines::Nothing]);
    assert!(home.state().agents.is_empty());
}

#[test]
fn what_a_kill_left_of_a_file_goes_with_the_next_write_or_undo() {
    let home = Home::new();
    home.file(".codex/config.toml", "model = \"o3\"\n");
    let before = home.all();
    home.write(Agent::Codex).expect("written");
    let names = [
        ".codex/.config.toml.infold-new",
        ".codex/.config.toml.before-infold.infold-new",
        "state/.setup.json.infold-new",
    ];
    names.iter().for_each(|name| drop(home.file(name, "key")));
    let file = home.path("state/setup.json");
    let lock = SetupLock::take(&home.path(""), Duration::ZERO).expect("free");
    let mut state = SetupRecord::load_locked(&file, &lock).expect("a record");
    undo_agent("codex", &mut state, &file).expect("taken back");
    drop(lock);
    let left: Vec<_> = home.all().into_iter().map(|(path, ..)| path).collect();
    let was: Vec<_> = before.into_iter().map(|(path, ..)| path).collect();
    assert_eq!(left, was);
    // One that is in the way of the next write.
    home.file(names[0], "key");
    home.write(Agent::Codex).expect("written");
    assert!(!home.path(names[0]).exists());
}

#[test]
fn a_home_is_locked_by_one_at_a_time() {
    let home = Home::new();
    let lock = SetupLock::take(&home.path(""), Duration::ZERO).expect("free");
    let error = SetupLock::take(&home.path(""), Duration::ZERO).expect_err("taken");
    assert!(
        error.to_string().contains("another `infold setup`"),
        "{error}"
    );
    // A lock that is held is no leftover.
    SetupLock::remove_leftover(&home.path(""));
    assert_eq!(home.all().len(), 1);
    drop(lock);
    assert_eq!(home.all(), []);
    // A killed setup leaves its file without the lock.
    home.file(".infold-setup.lock", "");
    SetupLock::remove_leftover(&home.path(""));
    assert_eq!(home.all(), []);
}

#[test]
fn a_record_without_its_directories_is_found_again() {
    let home = Home::new();
    home.file(".codex/config.toml", "model = \"o3\"\n");
    let before = home.all();
    home.write(Agent::Codex).expect("written");
    let file = home.path("state/setup.json");
    let staged = home.path(".infold-setup.json");
    let lock = SetupLock::take(&home.path(""), Duration::ZERO).expect("free");
    // Killed before the directories were made, and before the record was moved into them.
    for has_directory in [false, true] {
        fs::rename(&file, &staged).expect("ours");
        if !has_directory {
            fs::remove_dir(home.path("state")).expect("empty");
        }
        let state = SetupRecord::load_locked(&file, &lock).expect("a record");
        assert_eq!(state.agents.len(), 1);
        assert!(file.exists() && !staged.exists());
    }
    let mut state = SetupRecord::load_locked(&file, &lock).expect("a record");
    undo_agent("codex", &mut state, &file).expect("taken back");
    drop(lock);
    assert_eq!(home.all(), before);
}

#[test]
fn directories_go_with_a_file_that_a_killed_setup_did_not_make() {
    let home = Home::new();
    home.write(Agent::Codex).expect("written");
    fs::remove_file(home.path(".codex/config.toml")).expect("ours");
    assert_eq!(home.undo(Agent::Codex), [UndoneLines::Nothing]);
    assert!(!home.path(".codex").exists());
}

impl Home {
    /// Sets an agent up again at another address, as a second command with another port does.
    fn write_at(&self, agent: Agent, base: &str, mcp: &ServerEntry) -> Result<usize, ApplyError> {
        let file = self.path("state/setup.json");
        let mut state = self.state();
        undo_before_write(agent.name(), &mut state, &file)?;
        let home = self.path("");
        let read = |file: &Path| match read_file(file) {
            Ok(read) => Ok(read.map(|read| read.text)),
            Err(error) => Err(error.to_string()),
        };
        let plan = || {
            let at = Surroundings {
                home: &home,
                current: &home,
                env: &|_| None,
                read: &read,
            };
            let to = AgentTarget {
                base,
                former: &[BASE],
                mcp: Some(mcp),
            };
            let mut plan = agent.plan(&at, &to)?;
            plan.forward(&at, self.path(".config/infold/config.yaml"), &[])?;
            Ok(plan)
        };
        Ok(write_agent(agent, base, &plan, &mut state, &file)?.len())
    }

    fn edit(&self, name: &str, from: &str, to: &str) {
        let file = self.path(name);
        let text = fs::read_to_string(&file).expect("text");
        assert!(text.contains(from), "{text}");
        fs::write(&file, text.replace(from, to)).expect("edited");
    }
}

const CONTINUE: &str = "name: x\nversion: 1.0.0\nmodels:\n  - name: fast\n    provider: openai\n    model: gpt\n    \
                        apiBase: https://gw.example/v1\n";

#[test]
fn an_address_whose_element_was_renamed_is_taken_back() {
    let opencode = r#"{"provider":{"mine":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"https://gw.example/v1"},"models":{"x":{}}}}}"#;
    let codex =
        "model_provider = \"corp\"\n[model_providers.corp]\nbase_url = \"https://gw.example/v1\"\n";
    let llm = "- model_id: a\n  model_name: gpt\n  api_base: https://gw.example/v1\n";
    let models = ".config/io.datasette.llm/extra-openai-models.yaml";
    for (agent, name, before, from, to) in [
        (
            Agent::Continue,
            ".continue/config.yaml",
            CONTINUE,
            "name: fast",
            "name: slow",
        ),
        (
            Agent::Opencode,
            ".config/opencode/opencode.json",
            opencode,
            "mine",
            "ours",
        ),
        (Agent::Codex, ".codex/config.toml", codex, "corp", "acme"),
        (Agent::Llm, models, llm, "model_id: a", "model_id: b"),
    ] {
        let home = Home::new();
        let file = home.file(name, before);
        home.write(agent).expect("written");
        home.edit(name, from, to);
        assert!(home.undo(agent).contains(&UndoneLines::LinesRemoved));
        let text = fs::read_to_string(&file).expect("text");
        assert_eq!(text, before.replace(from, to));
    }
}

#[test]
fn an_address_that_was_added_goes_from_a_renamed_element() {
    let home = Home::new();
    let before = CONTINUE.replace("    apiBase: https://gw.example/v1\n", "");
    let file = home.file(".continue/config.yaml", &before);
    home.write(Agent::Continue).expect("written");
    home.edit(".continue/config.yaml", "name: fast", "name: slow");
    assert_eq!(home.undo(Agent::Continue), [UndoneLines::LinesRemoved]);
    let text = fs::read_to_string(&file).expect("text");
    assert_eq!(text, before.replace("fast", "slow"));
}

#[test]
fn an_address_of_ours_at_another_place_is_left_and_named() {
    let home = Home::new();
    home.file(".continue/config.yaml", CONTINUE);
    home.write(Agent::Continue).expect("written");
    // Its element has no name any more.
    home.edit(".continue/config.yaml", "- name: fast", "- title: fast");
    let left = UndoneLines::Left(vec!["models.0.apiBase".to_owned()]);
    assert!(home.undo(Agent::Continue).contains(&left));
    let copy = home.path(".continue/config.yaml.before-infold");
    assert_eq!(fs::read_to_string(copy).expect("a copy"), CONTINUE);
    // Two elements, of which one is a copy of ours.
    let home = Home::new();
    home.file(".continue/config.yaml", CONTINUE);
    home.write(Agent::Continue).expect("written");
    let entry = "  - name: fast\n    provider: openai\n    model: gpt\n    apiBase: http://127.0.0.1:7333/v1\n";
    let two = ["slow", "other"].map(|name| entry.replace("fast", name));
    home.edit(".continue/config.yaml", entry, &two.concat());
    let names = ["models.slow.apiBase", "models.other.apiBase"];
    let left = UndoneLines::Left(names.map(str::to_owned).to_vec());
    assert!(home.undo(Agent::Continue).contains(&left));
}

#[test]
fn what_was_deleted_is_not_looked_for_elsewhere() {
    let home = Home::new();
    let own = "  - name: own\n    provider: openai\n    model: x\n    apiBase: http://127.0.0.1:7333/v1\n";
    let before = CONTINUE.replace("    apiBase: https://gw.example/v1\n", "") + own;
    let file = home.file(".continue/config.yaml", &before);
    home.write(Agent::Continue).expect("written");
    let ours = "  - name: fast\n    provider: openai\n    model: gpt\n    apiBase: http://127.0.0.1:7333/v1\n";
    home.edit(".continue/config.yaml", ours, "");
    assert_eq!(home.undo(Agent::Continue), [UndoneLines::Nothing]);
    assert!(fs::read_to_string(&file).expect("text").ends_with(own));
}

#[test]
fn a_second_write_does_not_forget_what_the_first_left() {
    let server = ServerEntry::Command("infold".to_owned(), vec!["mcp".to_owned()]);
    let other = "http://127.0.0.1:7444";
    for (agent, name, before, from, to, left) in [
        (
            Agent::Codex,
            ".codex/config.toml",
            "a = 1\n",
            "args = [\"mcp\"]\n",
            "args = [\"mcp\"]\nstartup_timeout_sec = 20\n",
            "mcp_servers.infold",
        ),
        (
            Agent::Claude,
            ".claude.json",
            "{\"a\":1}",
            "[\"mcp\"]",
            "[\"mcp\",\"-v\"]",
            "mcpServers.infold",
        ),
    ] {
        let home = Home::new();
        let file = home.file(name, before);
        home.write_at(agent, BASE, &server).expect("written");
        home.edit(name, from, to);
        let text = fs::read_to_string(&file).expect("text");
        home.write_at(agent, other, &server).expect("written");
        let left = UndoneLines::Left(vec![left.to_owned()]);
        let done = home.undo(agent);
        assert_eq!(
            done.iter().filter(|lines| **lines == left).count(),
            1,
            "{done:?}"
        );
        assert!(!done.contains(&UndoneLines::Whole), "{done:?}");
        let copy = home.path(&format!("{name}.before-infold"));
        assert_eq!(fs::read_to_string(copy).expect("a copy"), before);
        assert_eq!(home.undo(agent), []);
        // Once the user has taken their own change back, ours goes with the next undo.
        let home = Home::new();
        let file = home.file(name, before);
        home.write_at(agent, BASE, &server).expect("written");
        home.edit(name, from, to);
        assert_eq!(fs::read_to_string(&file).expect("text"), text);
        home.write_at(agent, other, &server).expect("written");
        home.edit(name, to, from);
        assert!(home.undo(agent).contains(&UndoneLines::Whole));
        assert_eq!(fs::read_to_string(&file).expect("text"), before);
    }
}

#[test]
fn a_refused_write_leaves_no_record() {
    let home = Home::new();
    home.file(".codex", "");
    let before = home.all();
    home.write(Agent::Codex).expect_err("not a directory");
    assert_eq!(home.all(), before);
    // A directory that became a file later.
    let home = Home::new();
    home.write(Agent::Codex).expect("written");
    fs::remove_dir_all(home.path(".codex")).expect("ours");
    home.file(".codex", "");
    assert_eq!(home.undo(Agent::Codex), [UndoneLines::Nothing]);
    assert!(home.state().agents.is_empty());
}

#[test]
fn the_copy_of_a_deleted_file_stays() {
    let home = Home::new();
    let file = home.file(".codex/config.toml", "model = \"o3\"\n");
    home.write(Agent::Codex).expect("written");
    fs::remove_file(&file).expect("ours");
    let copy = home.path(".codex/config.toml.before-infold");
    assert_eq!(
        home.undo(Agent::Codex),
        [UndoneLines::Deleted(copy.clone())]
    );
    assert_eq!(
        fs::read_to_string(copy).expect("a copy"),
        "model = \"o3\"\n"
    );
    assert!(home.state().agents.is_empty());
}

#[test]
fn an_address_of_ours_in_a_copy_of_an_element_is_named() {
    let home = Home::new();
    let file = home.file(".continue/config.yaml", CONTINUE);
    home.write(Agent::Continue).expect("written");
    let copied = "\n  - name: other\n    provider: openai\n    apiBase: http://127.0.0.1:7333/v1\n";
    let text = fs::read_to_string(&file).expect("text");
    fs::write(&file, text.trim_end().to_owned() + copied).expect("ours");
    let left = UndoneLines::Left(vec!["models.other.apiBase".to_owned()]);
    assert!(home.undo(Agent::Continue).contains(&left));
    let text = fs::read_to_string(&file).expect("text");
    assert_eq!(text, CONTINUE.trim_end().to_owned() + copied);
}
