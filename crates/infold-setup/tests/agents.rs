//! The changes for each agent, and the configurations that are refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use infold_setup::{
    Agent, AgentTarget, PathStep, Plan, PlanError, ServerEntry, Surroundings, diff, empty,
    is_loopback, set,
};

/// A home directory in memory.
#[derive(Default)]
struct Home {
    files: BTreeMap<PathBuf, String>,
    env: BTreeMap<&'static str, &'static str>,
}

impl Home {
    fn file(mut self, name: &str, text: &str) -> Home {
        self.files
            .insert(Path::new("/home/ada").join(name), text.to_owned());
        self
    }

    fn env(mut self, name: &'static str, value: &'static str) -> Home {
        self.env.insert(name, value);
        self
    }

    fn at<T>(&self, work: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        work(&Surroundings {
            home: Path::new("/home/ada"),
            current: Path::new("/home/ada/src/app"),
            env: &|name| self.env.get(name).map(|value| (*value).to_owned()),
            read: &|file| Ok(self.files.get(file).cloned()),
        })
    }

    fn plan(&self, agent: Agent) -> Result<Plan, PlanError> {
        self.plan_beside(agent, &[])
    }

    fn plan_beside(&self, agent: Agent, others: &[(String, String)]) -> Result<Plan, PlanError> {
        let entry = ServerEntry::Command("infold".to_owned(), vec!["mcp".to_owned()]);
        let to = AgentTarget {
            base: "http://127.0.0.1:7333",
            former: &[],
            mcp: Some(&entry),
        };
        self.at(|at| {
            let mut plan = agent.plan(at, &to)?;
            plan.forward(at, "/home/ada/.config/infold/config.yaml".into(), others)?;
            Ok(plan)
        })
    }

    /// The lines that go and come, file by file.
    fn diff(&self, agent: Agent) -> String {
        let plan = self
            .plan(agent)
            .unwrap_or_else(|error| panic!("{agent:?}: {error}"));
        let mut after: BTreeMap<PathBuf, String> = BTreeMap::new();
        for change in &plan.changes {
            let before = self.files.get(&change.file).cloned();
            let before = before.unwrap_or_else(|| empty(change.syntax).to_owned());
            let text = after.entry(change.file.clone()).or_insert(before);
            if let Some((new, _)) =
                set(change.syntax, text, &change.path, &change.value).expect("it can be edited")
            {
                *text = new;
            }
        }
        let mut out = String::new();
        for (file, text) in after {
            let before = self.files.get(&file).cloned().unwrap_or_default();
            let lines = diff(&before, &text);
            if !lines.is_empty() {
                let name = file.strip_prefix("/home/ada").unwrap_or(&file);
                out += &format!("{}\n", name.display());
                lines.iter().for_each(|line| out += &format!("{line}\n"));
            }
        }
        out
    }

    fn refusal(&self, agent: Agent) -> String {
        match self.plan(agent) {
            Err(error) => error.to_string(),
            Ok(plan) => panic!("{agent:?} was not refused: {plan:?}"),
        }
    }
}

#[test]
fn claude_code_in_an_empty_home() {
    assert_eq!(
        Home::default().diff(Agent::Claude),
        r#".claude/settings.json
+ {
+   "env": {
+     "ANTHROPIC_BASE_URL": "http://127.0.0.1:7333"
+   }
+ }
.claude.json
+ {
+   "mcpServers": {
+     "infold": {
+       "args": ["mcp"],
+       "command": "infold"
+     }
+   }
+ }
"#
    );
}

#[test]
fn a_gateway_becomes_the_upstream() {
    let settings =
        r#"{"env": {"ANTHROPIC_BASE_URL": "https://gateway.corp/anthropic/", "X": "1"}}"#;
    let home = Home::default().file(".claude/settings.json", settings);
    assert_eq!(
        home.diff(Agent::Claude)
            .split_once(".claude/settings.json")
            .expect("settings")
            .1,
        r#"
- {"env": {"ANTHROPIC_BASE_URL": "https://gateway.corp/anthropic/", "X": "1"}}
+ {"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:7333", "X": "1"}}
.claude.json
+ {
+   "mcpServers": {
+     "infold": {
+       "args": ["mcp"],
+       "command": "infold"
+     }
+   }
+ }
.config/infold/config.yaml
+ serve:
+   upstreams:
+     anthropic: https://gateway.corp/anthropic
"#
    );
    // One in the shell, which its settings will hide, does so too.
    let shell = Home::default().env("ANTHROPIC_BASE_URL", "https://gateway.corp");
    assert!(
        shell
            .diff(Agent::Claude)
            .contains("anthropic: https://gateway.corp")
    );
}

#[test]
fn codex_with_its_own_provider_another_one_and_a_subscription() {
    assert_eq!(
        Home::default()
            .file(
                ".codex/config.toml",
                "# mine\nmodel = \"o3\"\n\n[tui]\ntheme = 1\n"
            )
            .diff(Agent::Codex),
        r#".codex/config.toml
+ openai_base_url = "http://127.0.0.1:7333/v1"
+ 
+ [mcp_servers.infold]
+ args = ["mcp"]
+ command = "infold"
"#
    );
    let corp =
        "model_provider = \"corp\"\n[model_providers.corp]\nbase_url = \"https://gw/v1\" # ours\n";
    assert_eq!(
        Home::default()
            .file(".codex/config.toml", corp)
            .diff(Agent::Codex),
        r#".codex/config.toml
- base_url = "https://gw/v1" # ours
+ base_url = "http://127.0.0.1:7333/v1" # ours
+ 
+ [mcp_servers.infold]
+ args = ["mcp"]
+ command = "infold"
.config/infold/config.yaml
+ serve:
+   upstreams:
+     responses: https://gw/v1
"#
    );
    let login =
        r#"{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"access_token":"SECRET"}}"#;
    let home = Home::default().file(".codex/auth.json", login);
    let refused = home.refusal(Agent::Codex);
    assert!(refused.contains("signed in with ChatGPT"), "{refused}");
    assert!(!refused.contains("SECRET"));
    // A later sign-in is reported by --check.
    let later = home.file(
        ".codex/config.toml",
        "openai_base_url = \"http://127.0.0.1:7333/v1\"\n",
    );
    assert!(
        later
            .refusal(Agent::Codex)
            .contains("signed in with ChatGPT")
    );
}

#[test]
fn gemini_cli_signs_in_with_a_key() {
    assert_eq!(
        Home::default()
            .file(".gemini/.env", "GEMINI_API_KEY=x\n")
            .diff(Agent::Gemini),
        r#".gemini/.env
+ GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:7333
.gemini/settings.json
+ {
+   "security": {
+     "auth": {
+       "selectedType": "gemini-api-key"
+     }
+   },
+   "mcpServers": {
+     "infold": {
+       "args": ["mcp"],
+       "command": "infold"
+     }
+   }
+ }
"#
    );
    let signed_in = r#"{"security":{"auth":{"selectedType":"oauth-personal"}}}"#;
    let refused = Home::default()
        .file(".gemini/settings.json", signed_in)
        .refusal(Agent::Gemini);
    assert!(
        refused.contains("oauth-personal") && refused.contains("/auth"),
        "{refused}"
    );
    // A file of its own would hide the one that is read now.
    let shared = Home::default()
        .file(".env", "GEMINI_API_KEY=x\n")
        .diff(Agent::Gemini);
    assert!(
        shared.starts_with(".env\n+ GOOGLE_GEMINI_BASE_URL="),
        "{shared}"
    );
}

#[test]
fn opencode_with_the_providers_that_it_has() {
    let home = Home::default().env("ANTHROPIC_API_KEY", "x").file(
        ".config/opencode/opencode.jsonc",
        "{\n  // mine\n  \"provider\": {\n    \"corp\": { \"npm\": \"@ai-sdk/openai-compatible\", \"options\": { \"baseURL\": \"https://gw/v1\" } }\n  }\n}\n",
    );
    assert_eq!(
        home.diff(Agent::Opencode),
        r#".config/infold/config.yaml
+ serve:
+   upstreams:
+     openai: https://gw/v1
.config/opencode/opencode.jsonc
-     "corp": { "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": "https://gw/v1" } }
+     "corp": { "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": "http://127.0.0.1:7333/v1" } },
+     "anthropic": {
+       "options": {
+         "baseURL": "http://127.0.0.1:7333/v1"
+       }
+     }
+   },
+   "mcp": {
+     "infold": {
+       "command": ["infold", "mcp"],
+       "enabled": true,
+       "type": "local"
+     }
"#
    );
    assert!(
        Home::default()
            .refusal(Agent::Opencode)
            .contains("no provider yet")
    );
}

#[test]
fn goose_aider_continue_llm_and_cline() {
    let goose = Home::default().file(
        ".config/goose/config.yaml",
        "GOOSE_PROVIDER: anthropic\nextensions:\n  developer:\n    enabled: true\n",
    );
    assert_eq!(
        goose.diff(Agent::Goose),
        r#".config/goose/config.yaml
+   infold:
+     args: ["mcp"]
+     cmd: infold
+     description: "Searches and reads the whole conversation, hidden messages too"
+     enabled: true
+     name: infold
+     timeout: 60
+     type: stdio
+ ANTHROPIC_HOST: http://127.0.0.1:7333
"#
    );
    let other = Home::default().file(".config/goose/config.yaml", "GOOSE_PROVIDER: databricks\n");
    assert!(other.refusal(Agent::Goose).contains("databricks"));
    assert_eq!(
        Home::default().diff(Agent::Aider),
        r#".aider.conf.yml
+ openai-api-base: http://127.0.0.1:7333/t/aider/v1
+ set-env: ["ANTHROPIC_API_BASE=http://127.0.0.1:7333/t/aider"]
"#
    );
    let models =
        "models:\n  - name: a\n    provider: anthropic\n    model: claude\n  - uses: hub/b\n";
    let home = Home::default().file(".continue/config.yaml", models);
    assert_eq!(
        home.diff(Agent::Continue),
        r#".continue/config.yaml
+     apiBase: http://127.0.0.1:7333/v1
+ mcpServers:
+   - args: ["mcp"]
+     command: infold
+     name: infold
"#
    );
    assert_eq!(home.plan(Agent::Continue).expect("a plan").notes.len(), 1);
    assert!(
        Home::default()
            .refusal(Agent::Continue)
            .contains("no model")
    );
    let models = "- model_id: a\n  model_name: a\n  api_base: \"https://gw/v1\"\n";
    let home = Home::default().file(".config/io.datasette.llm/extra-openai-models.yaml", models);
    assert!(
        home.diff(Agent::Llm)
            .contains("+   api_base: http://127.0.0.1:7333/v1\n")
    );
    assert!(
        home.diff(Agent::Llm)
            .contains("+     openai: https://gw/v1\n")
    );
    assert!(
        Home::default()
            .diff(Agent::Llm)
            .contains("model_id: \"infold/gpt-4o-mini\"")
            || Home::default()
                .diff(Agent::Llm)
                .contains("model_id: infold/gpt-4o-mini")
    );
    let providers = r#"{"providers": {"anthropic": {"settings": {"apiKey": "k", "baseUrl": ""}}}}"#;
    let home = Home::default().file(".cline/data/settings/providers.json", providers);
    assert!(
        home.diff(Agent::Cline)
            .contains(r#""baseUrl": "http://127.0.0.1:7333""#)
    );
    assert!(Home::default().refusal(Agent::Cline).contains("cline auth"));
    assert!(
        Home::default()
            .refusal(Agent::Cursor)
            .contains("Override OpenAI Base URL")
    );
}

#[test]
fn what_the_proxy_cannot_take_over_is_refused() {
    let claude = |url: &str| {
        let settings = serde_json::json!({"env": {"ANTHROPIC_BASE_URL": url}}).to_string();
        Home::default()
            .file(".claude/settings.json", &settings)
            .refusal(Agent::Claude)
    };
    assert!(claude("https://me:secret@gw/v1").contains("may hold a secret"));
    assert!(!claude("https://me:hunter2@gw/v1").contains("hunter2"));
    assert!(!claude("https://gw/v1?key=hunter2").contains("hunter2"));
    assert!(claude("${GATEWAY}").contains("no http:// or https:// address"));
    // Two places for one API.
    let two = Home::default()
        .env("ANTHROPIC_BASE_URL", "https://one")
        .file(
            ".config/infold/config.yaml",
            "serve:\n  upstreams:\n    anthropic: https://two\n",
        );
    assert!(
        two.refusal(Agent::Claude)
            .contains("https://two and to https://one"),
        "{}",
        two.refusal(Agent::Claude)
    );
    // Another agent's requests would be sent elsewhere.
    let one = Home::default().env("ANTHROPIC_BASE_URL", "https://one");
    let others = [("anthropic".to_owned(), String::new())];
    let error = one
        .plan_beside(Agent::Claude, &others)
        .expect_err("another uses it")
        .to_string();
    assert!(
        error.contains("the API's own address and to https://one"),
        "{error}"
    );
    // Bedrock takes no base URL.
    let bedrock = Home::default().file(
        ".claude/settings.json",
        r#"{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}"#,
    );
    assert!(
        bedrock
            .refusal(Agent::Claude)
            .contains("CLAUDE_CODE_USE_BEDROCK")
    );
    let broken = Home::default().file(".codex/config.toml", "model = \"a\"\nmodel = \n");
    let refused = broken.refusal(Agent::Codex);
    assert!(
        refused.starts_with("/home/ada/.codex/config.toml, line 2, column 9:"),
        "{refused}"
    );
}

#[test]
fn another_server_of_that_name_is_left() {
    let own = r#"{"mcpServers": {"infold": {"command": "mine"}}}"#;
    let home = Home::default().file(".claude.json", own);
    let plan = home.plan(Agent::Claude).expect("a plan");
    assert!(
        plan.changes
            .iter()
            .all(|change| change.path != PathStep::keys(&["mcpServers", "infold"]))
    );
    assert!(plan.notes[0].contains("left as it is"), "{:?}", plan.notes);
}

#[test]
fn the_proxy_by_another_name_is_no_upstream() {
    for host in ["localhost", "LOCALHOST", "[::1]", "0.0.0.0", "127.8.8.8"] {
        let settings = format!(r#"{{"env": {{"ANTHROPIC_BASE_URL": "http://{host}:7333/"}}}}"#);
        let home = Home::default().file(".claude/settings.json", &settings);
        let plan = home.plan(Agent::Claude).expect("a plan");
        assert!(plan.upstreams.is_empty(), "{host}: {:?}", plan.upstreams);
        assert!(!home.diff(Agent::Claude).contains("upstreams"), "{host}");
    }
    assert!(!is_loopback("http://localhost:7334", 7333));
    assert!(!is_loopback("http://localhost.corp:7333", 7333));
}

#[test]
fn keys_for_the_own_address_of_an_api_do_not_go_to_a_gateway() {
    let private = "- name: private\n  provider: openai\n  model: a\n";
    let work = "- name: work\n  provider: openai\n  model: b\n  apiBase: https://gw.corp/v1\n";
    for models in [[private, work], [work, private]] {
        let text = format!("models:\n{}", models.concat());
        let home = Home::default().file(".continue/config.yaml", &text);
        let refused = home.refusal(Agent::Continue);
        assert!(
            refused
                .contains("openai requests go to the API's own address and to https://gw.corp/v1"),
            "{refused}"
        );
    }
    let goose = Home::default().file(".config/goose/config.yaml", "GOOSE_PROVIDER: anthropic\n");
    let others = [("anthropic".to_owned(), "https://gw.corp".to_owned())];
    let refused = goose.plan_beside(Agent::Goose, &others);
    let refused = refused.expect_err("another's gateway").to_string();
    assert!(
        refused.contains("https://gw.corp and to the API's own address"),
        "{refused}"
    );
}

#[test]
fn a_gateway_with_and_without_its_version_is_one_place() {
    let goose = "GOOSE_PROVIDER: openai\nOPENAI_HOST: https://gw.corp\n";
    let goose = Home::default().file(".config/goose/config.yaml", goose);
    let others = [("openai".to_owned(), "https://gw.corp/v1".to_owned())];
    goose
        .plan_beside(Agent::Goose, &others)
        .expect("the same place");
}

#[test]
fn a_gateway_whose_path_would_change_is_refused() {
    let model = |url: &str| {
        let text =
            format!("models:\n- name: a\n  provider: openai\n  model: x\n  apiBase: {url}\n");
        Home::default().file(".continue/config.yaml", &text)
    };
    for url in ["https://models.corp/inference", "https://models.corp"] {
        let refused = model(url).refusal(Agent::Continue);
        assert!(refused.contains("no version such as /v1"), "{refused}");
    }
    for url in ["https://gw/api/paas/v4", "https://gw/v1beta/openai"] {
        let plan = model(url).plan(Agent::Continue).expect("a plan");
        assert_eq!(plan.upstreams[0].url, url);
    }
    // The agent puts /v1 behind a path that has a version further to the front.
    let claude = Home::default().env("ANTHROPIC_BASE_URL", "https://gw/v1/team/anthropic");
    let plan = claude.plan(Agent::Claude).expect("a plan");
    assert_eq!(plan.upstreams[0].url, "https://gw/v1/team/anthropic/v1");
}

#[test]
fn models_of_one_name_are_refused() {
    let two = "models:\n  - name: a\n    provider: openai\n  - name: a\n    provider: anthropic\n";
    let refusal = Home::default()
        .file(".continue/config.yaml", two)
        .refusal(Agent::Continue);
    assert!(
        refusal.contains("several models with the name `a`"),
        "{refusal}"
    );
    let two =
        "- model_id: a\n  api_base: https://gw/v1\n- model_id: a\n  api_base: https://gw/v1\n";
    let file = ".config/io.datasette.llm/extra-openai-models.yaml";
    let refusal = Home::default().file(file, two).refusal(Agent::Llm);
    assert!(
        refusal.contains("several models with the model_id `a`"),
        "{refusal}"
    );
}
