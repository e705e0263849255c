//! `infold setup` as a person runs it, with agents that are scripts.

mod machine;
mod server;

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use machine::{CLAUDE, Machine, free_port};

#[test]
fn an_agent_is_set_up_proven_checked_and_taken_back() {
    let machine = Machine::new();
    machine.program("bin/claude", CLAUDE);
    machine.file(
        "home/.claude/settings.json",
        "{\n  \"model\": \"opus\"\n}\n",
    );
    let before = machine.home();
    let port = free_port();
    let (code, said) = machine.setup(&format!("--port {port}"));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("next: infold setup --write claude"), "{said}");
    assert!(
        said.contains(&format!(
            "+     \"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:{port}\""
        )),
        "{said}"
    );
    assert_eq!(machine.home(), before);
    let (code, said) = machine.setup(&format!("--write claude --port {port}"));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Claude Code: proven in "), "{said}");
    let written = machine.home();
    let (code, said) = machine.setup(&format!("--write claude --port {port} --no-prove"));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("there is nothing to change"), "{said}");
    assert_eq!(machine.home(), written);
    let (code, said) = machine.setup(&format!("--check --port {port}"));
    assert_eq!(code, 0, "{said}");
    let (code, said) = machine.setup("--undo --json");
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains(r#""undone":"restored""#) && said.contains(r#""undone":"removed""#),
        "{said}"
    );
    assert_eq!(machine.home(), before);
    let (code, said) = machine.setup("--undo");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("nothing was set up"), "{said}");
}

#[test]
fn an_agent_that_does_not_arrive_is_said_to() {
    let machine = Machine::new();
    machine.program("bin/claude", "#!/bin/sh\necho I went elsewhere\n");
    let (code, said) = machine.setup(&format!("--write claude --port {}", free_port()));
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("no request arrived; exit status: 0: I went elsewhere"),
        "{said}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn what_an_agent_leaves_running_is_ended_with_its_proof() {
    let machine = Machine::new();
    let id = machine.path("id");
    // A daemon that holds the output open.
    let left = format!("setsid sleep 600 &\necho $! > {}\n", id.display());
    machine.program(
        "bin/claude",
        &CLAUDE.replace("cat <&3\n", &format!("cat <&3\n{left}")),
    );
    let (code, said) = machine.setup(&format!("--write claude --port {}", free_port()));
    assert_eq!(code, 0, "{said}");
    let id = fs::read_to_string(id).expect("an id");
    let state = fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    // A zombie has ended, too.
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
}

#[test]
fn the_server_is_a_unit_of_systemd() {
    let machine = Machine::new();
    machine.program("bin/claude", CLAUDE);
    let calls = machine.path("calls");
    let port = free_port();
    let (own, id) = (env!("CARGO_BIN_EXE_infold"), machine.path("id"));
    let id = id.display();
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {}\ncase $2 in\nenable) {own} serve --port {port} & echo $! > {id};;\ndisable) kill $(cat {id});;\nesac\n",
        calls.display()
    );
    machine.program("bin/systemctl", &script);
    let (code, said) = machine.setup(&format!("--write claude --no-prove --port {port}"));
    assert_eq!(code, 0, "{said}");
    let unit = fs::read_to_string(machine.path("home/.config/systemd/user/infold.service"))
        .expect("a unit");
    assert!(
        unit.contains(&format!(
            "ExecStart=\"{}\" serve --port {port}\n",
            env!("CARGO_BIN_EXE_infold")
        )),
        "{unit}"
    );
    let (code, said) = machine.setup("--undo");
    assert_eq!(code, 0, "{said}");
    let called = fs::read_to_string(calls).expect("calls");
    assert_eq!(
        called,
        "--user show-environment\n--user daemon-reload\n--user enable --now infold.service\n\
         --user disable --now infold.service\n--user daemon-reload\n"
    );
    assert!(!machine.path("home/.config").exists());
}

#[test]
fn what_is_in_the_way_is_said_and_nothing_is_changed() {
    let mut machine = Machine::new();
    machine.program("bin/claude", CLAUDE);
    machine.program("bin/codex", "#!/bin/sh\n");
    machine.file(
        "home/.codex/config.toml",
        "model = \"o3\"\nmodel = \"o4\"\n",
    );
    let before = machine.home();
    // Another program at the port.
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = other.local_addr().expect("an address").port();
    std::thread::spawn(move || other.incoming().for_each(drop));
    let (code, said) = machine.setup(&format!("--write claude --port {port}"));
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains(&format!("port {port} is used by another program")),
        "{said}"
    );
    let (code, said) = machine.setup(&format!("--write codex --port {}", free_port()));
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("config.toml, line 2, column 1: the key `model` is there twice"),
        "{said}"
    );
    let (code, said) = machine.setup("--write emacs");
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("no agent `emacs` is known") && said.contains("hint: known are claude"),
        "{said}"
    );
    let (code, said) = machine.setup("--undo claude");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("claude was not set up"), "{said}");
    assert_eq!(machine.home(), before);
    // A proxy of the network, and another version further on.
    machine.program("more/claude", "#!/bin/sh\n");
    let path = format!("{}:{}", machine.env["PATH"], machine.path("more").display());
    machine.env.insert("PATH".into(), path);
    machine
        .env
        .insert("HTTP_PROXY".into(), "http://proxy.corp:3128".into());
    machine
        .env
        .insert("CLAUDE_CODE_USE_BEDROCK".into(), "1".into());
    let (code, said) = machine.setup(&format!("--check --port {}", free_port()));
    assert_eq!(code, 1, "{said}");
    for reason in [
        "HTTP_PROXY is set, and NO_PROXY does not name 127.0.0.1",
        "CLAUDE_CODE_USE_BEDROCK is set in this shell",
        "several programs on the path",
        "~/.claude/settings.json does not say so",
    ] {
        assert!(said.contains(reason), "{reason}: {said}");
    }
    machine.env.insert("HOME".into(), "/nowhere".into());
    machine
        .env
        .insert("INFOLD_CONFIG".into(), "/dev/null".into());
    let (code, said) = machine.setup("");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("there is no home directory"), "{said}");
}

#[test]
fn a_machine_without_agents_is_told_which_are_known() {
    let machine = Machine::new();
    for words in ["", "--all", "--check"] {
        let (code, said) = machine.setup(words);
        assert_eq!(code, 1, "{words}: {said}");
        assert!(
            said.contains("no agent was found") && said.contains("infold wrap"),
            "{said}"
        );
    }
}

#[test]
fn two_setups_at_once_do_not_lose_records() {
    let machine = Machine::new();
    machine.program("bin/claude", CLAUDE);
    let before = machine.home();
    // As another setup that is at work holds it.
    let path = machine.file("home/.infold-setup.lock", "");
    let held = fs::File::create(&path).expect("ours");
    held.lock().expect("a lock");
    for words in ["--write claude --no-prove", "--undo"] {
        let (code, said) = machine.setup(&format!("{words} --port {}", free_port()));
        assert_eq!(code, 3, "{said}");
        assert!(said.contains("another `infold setup` is running"), "{said}");
    }
    assert!(!machine.path("home/.claude/settings.json").exists());
    drop(held);
    let port = free_port();
    std::thread::scope(|scope| {
        for agent in ["claude", "codex", "aider"] {
            let machine = &machine;
            scope.spawn(move || {
                let (code, said) =
                    machine.setup(&format!("--write {agent} --no-prove --port {port}"));
                assert_eq!(code, 0, "{said}");
            });
        }
    });
    let (code, said) = machine.setup("--undo");
    assert_eq!(code, 0, "{said}");
    assert_eq!(machine.home(), before);
}

#[test]
fn a_server_is_not_its_own_upstream() {
    let machine = Machine::new();
    let port = free_port();
    for host in ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"] {
        let ran = Command::new(env!("CARGO_BIN_EXE_infold"))
            .args(["serve", "--port", &port.to_string(), "--upstream"])
            .arg(format!("openai=http://{host}:{port}/v1"))
            .env_clear()
            .envs(&machine.env)
            .current_dir(machine.path("work"))
            .output()
            .expect("it ends");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{said}");
        assert!(
            said.contains("the upstream of chat is this server itself"),
            "{said}"
        );
    }
}

#[test]
fn a_unit_of_the_person_is_neither_started_nor_claimed() {
    let machine = Machine::new();
    let calls = machine.path("calls");
    let script = format!("#!/bin/sh\necho \"$@\" >> {}\n", calls.display());
    machine.program("bin/systemctl", &script);
    let unit = machine.file("home/.config/systemd/user/infold.service", "[Unit]\n");
    let (code, said) = machine.setup(&format!("--write claude --no-prove --port {}", free_port()));
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("is not of setup, and was left as it is"),
        "{said}"
    );
    let called = fs::read_to_string(calls).expect("calls");
    assert_eq!(called, "--user show-environment\n");
    machine.setup("--undo");
    assert!(unit.exists());
}

#[test]
fn the_directory_of_the_tasks_goes_with_the_server_and_the_tools() {
    let mut machine = Machine::new();
    let tasks = machine.path("tasks").display().to_string();
    machine.env.insert("INFOLD_CONTEXTS".into(), tasks.clone());
    let said = machine.done(&format!(
        "--write claude --no-prove --no-service --port {}",
        free_port()
    ));
    assert!(
        said.contains(&format!("--contexts {tasks} serve")),
        "{said}"
    );
    let servers = fs::read_to_string(machine.path("home/.claude.json")).expect("servers");
    assert!(servers.contains(&tasks), "{servers}");
}

#[test]
fn exit_codes_say_what_happened() {
    let machine = Machine::new();
    let (code, said) = machine.setup("--write claude --port 0");
    assert_eq!(code, 2, "{said}");
    let (code, said) = machine.setup("--prove claude");
    assert_eq!(code, 1, "{said}");
}

#[test]
fn an_error_in_the_configuration_does_not_keep_undo_from_its_work() {
    let machine = Machine::new();
    machine.program("bin/claude", CLAUDE);
    let before = machine.home();
    let (code, said) = machine.setup("--write claude --no-service --no-prove");
    assert_eq!(code, 0, "{said}");
    machine.file("home/.config/infold/config.yaml", "serve: [\n");
    let (code, said) = machine.setup("--undo");
    assert_eq!(code, 0, "{said}");
    fs::remove_dir_all(machine.path("home/.config")).expect("ours");
    assert_eq!(machine.home(), before);
}

#[test]
fn an_address_that_cannot_be_taken_back_is_named() {
    let machine = Machine::new();
    machine.program("bin/cn", "#!/bin/sh\n");
    let config =
        "models:\n  - name: a\n    provider: openai\n    model: x\n    apiBase: https://gw/v1\n";
    let file = machine.path("home/.continue/config.yaml");
    machine.file("home/.continue/config.yaml", config);
    let (code, said) = machine.setup("--write continue --no-service --no-prove");
    assert_eq!(code, 0, "{said}");
    let text = fs::read_to_string(&file).expect("text");
    fs::write(&file, text.replace("- name: a", "- title: a")).expect("ours");
    let (code, said) = machine.setup("--undo");
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("left, since others changed it: models.0.apiBase"),
        "{said}"
    );
    let copy = machine.path("home/.continue/config.yaml.before-infold");
    assert_eq!(fs::read_to_string(copy).expect("a copy"), config);
}

#[test]
fn what_others_changed_is_left_and_said() {
    let machine = Machine::new();
    machine.program("bin/codex", "#!/bin/sh\n");
    let config = machine.file("home/.codex/config.toml", "model = \"o3\"\n");
    let write = format!(
        "--write codex --no-prove --no-service --port {}",
        free_port()
    );
    machine.done(&write);
    let written = fs::read_to_string(&config).expect("text");
    let other = written.replace("http://127.0.0.1", "http://192.0.2.1");
    assert_ne!(other, written);
    fs::write(&config, other).expect("ours");
    let (code, said) = machine.setup("--undo");
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("left, since others changed it: openai_base_url"),
        "{said}"
    );
    let left = fs::read_to_string(&config).expect("text");
    assert!(
        left.contains("192.0.2.1") && !left.contains("mcp"),
        "{left}"
    );
    // A file that cannot be read any more is an error, and the record still names it.
    fs::remove_file(machine.path("home/.codex/config.toml.before-infold")).expect("a copy");
    fs::write(&config, "model = \"o3\"\n").expect("ours");
    let before = machine.home();
    machine.done(&write);
    let written = fs::read_to_string(&config).expect("text");
    fs::write(&config, format!("model = \"o4\"\n{written}")).expect("ours");
    let (code, said) = machine.setup("--undo");
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("not taken back: ") && said.contains("--undo` tries them again"),
        "{said}"
    );
    fs::write(&config, written).expect("ours");
    machine.done("--undo");
    assert_eq!(machine.home(), before);
}

#[test]
fn the_overview_fails_as_the_check_does_if_an_agent_is_refused() {
    let machine = Machine::new();
    machine.program("bin/claude", CLAUDE);
    machine.program("bin/cn", "#!/bin/sh\n");
    let config = machine.file(
        "home/.continue/config.yaml",
        "name: mine\nmodels: []\n---\nname: other\n",
    );
    let before = machine.home();
    let (code, said) = machine.setup("");
    assert_eq!(code, 1, "{said}");
    for part in [
        "line 3, column 1: a second document begins here, and only files of one are edited: merge the two, or move",
        "next: infold setup --write claude",
        "error: 1 of 2 agents would not be set up",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(machine.home(), before);
    fs::remove_file(config).expect("ours");
    fs::remove_dir(machine.path("home/.continue")).expect("ours");
    fs::remove_file(machine.path("bin/cn")).expect("ours");
    machine.done("");
}

#[test]
fn the_lock_of_a_killed_setup_goes_with_the_next_command() {
    let machine = Machine::new();
    machine.program("bin/claude", CLAUDE);
    let before = machine.home();
    for words in ["", "--check", "--undo"] {
        machine.file("home/.infold-setup.lock", "");
        machine.setup(words);
        assert_eq!(machine.home(), before, "{words}");
    }
}

#[test]
fn each_agent_is_shown_its_change() {
    let machine = Machine::new();
    for agent in [
        "claude", "codex", "gemini", "opencode", "goose", "aider", "cn", "llm", "cline", "cursor",
    ] {
        machine.program(&format!("bin/{agent}"), "#!/bin/sh\n");
    }
    machine.file("home/.codex/config.toml", "model = \"o3\"\n");
    machine.file("home/.gemini/.env", "GEMINI_API_KEY=secret\n");
    machine.file(
        "home/.config/goose/config.yaml",
        "GOOSE_PROVIDER: anthropic\n",
    );
    machine.file(
        "home/.continue/config.yaml",
        "name: mine\nmodels:\n  - name: sonnet\n    provider: anthropic\n    model: claude-sonnet-4-5\n    apiKey: secret\n",
    );
    let (code, said) = machine.setup("");
    // Cursor takes no address in a file.
    assert_eq!(code, 1, "{said}");
    let said = said.replace(env!("CARGO_BIN_EXE_infold"), "infold");
    let directory = machine.path("").display().to_string();
    insta::assert_snapshot!(said.replace(&directory, "/"));
}
