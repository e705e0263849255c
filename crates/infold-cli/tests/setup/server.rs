//! The server that setup starts in the background where there is no systemd.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine::{CLAUDE, Machine, eventually, free_port, servers};

/// A machine with two agents that are configured already.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.program("bin/claude", CLAUDE);
    machine.program("bin/codex", "#!/bin/sh\n");
    machine.file(
        "home/.claude/settings.json",
        "{\n  \"model\": \"opus\"\n}\n",
    );
    machine.file("home/.codex/config.toml", "model = \"o3\"\n");
    machine
}

/// A process that ends with its test.
struct Background(Child);

impl Background {
    fn spawn(command: &mut Command) -> Background {
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        Background(quiet.spawn().expect("it runs"))
    }

    fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("it is ours").is_none()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    let request = format!("GET / HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n");
    let mut answer = String::new();
    let sent = stream.write_all(request.as_bytes());
    sent.is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.contains("infold is running")
}

/// The process of the only server of the record.
fn recorded_pid(machine: &Machine) -> i32 {
    let record = machine.record();
    assert_eq!(record["servers"].as_array().map(Vec::len), Some(1));
    let pid = record["servers"][0]["process"]["pid"].as_i64();
    i32::try_from(pid.expect("a process")).expect("a process id")
}

fn kill(pid: i32) {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.expect("kill").success());
}

#[test]
fn one_command_starts_the_server_and_the_last_undo_stops_it() {
    let machine = machine();
    let before = machine.home();
    let port = free_port();
    let said = machine.done(&format!("--write claude codex --no-prove --port {port}"));
    let pid = recorded_pid(&machine);
    assert!(
        said.contains(&format!(
            "the server was started at http://127.0.0.1:{port}, process {pid}, log {}",
            "~/.local/state/infold/serve.log\n"
        )),
        "{said}"
    );
    assert!(
        said.contains("does not survive a reboot: `infold setup --write claude codex`"),
        "{said}"
    );
    assert!(answers(port));
    assert_eq!(servers(port), [pid]);
    let log = machine.path("home/.local/state/infold/serve.log");
    let log = fs::read_to_string(log).expect("a log");
    let line = format!("listening on http://127.0.0.1:{port}\n");
    assert!(log.starts_with(&line), "{log}");
    let session = Command::new("ps")
        .args(["-o", "sess=", "-p", &pid.to_string()])
        .output()
        .expect("ps");
    let session = String::from_utf8_lossy(&session.stdout).trim().to_owned();
    if cfg!(target_os = "linux") {
        assert_eq!(session, pid.to_string(), "a session of its own");
    }
    // A second write changes nothing.
    let written = machine.home();
    let said = machine.done(&format!("--write claude codex --no-prove --port {port}"));
    assert!(said.contains("the server is running at"), "{said}");
    assert_eq!(machine.home(), written);
    assert_eq!(servers(port), [pid]);
    let said = machine.done(&format!("--check --port {port}"));
    let running = format!("server: running at http://127.0.0.1:{port}, process {pid}, log ~/");
    assert!(said.contains(&running), "{said}");
    // The first undo leaves the server to the other agent.
    machine.done("--undo claude");
    assert!(answers(port));
    let said = machine.done("--undo codex");
    assert!(
        said.contains(&format!("the server is stopped, process {pid}")),
        "{said}"
    );
    assert!(!answers(port));
    assert!(servers(port).is_empty());
    assert_eq!(machine.home(), before);
}

#[test]
fn a_server_that_has_ended_is_started_again_by_the_same_command() {
    let machine = machine();
    let before = machine.home();
    let port = free_port();
    let write = format!("--write claude --no-prove --port {port}");
    machine.done(&write);
    let first = recorded_pid(&machine);
    kill(first);
    eventually("it ends", || servers(port).is_empty());
    let (code, said) = machine.setup(&format!("--check --port {port}"));
    assert_eq!(code, 1, "{said}");
    let again = format!(
        "server: not running at http://127.0.0.1:{port}; `infold setup --write claude` starts it\n"
    );
    assert!(said.contains(&again), "{said}");
    assert!(
        said.contains(&format!(
            "no server is running at http://127.0.0.1:{port}: infold setup --write claude"
        )),
        "{said}"
    );
    let said = machine.done(&write);
    assert!(said.contains("the server was started at"), "{said}");
    assert!(answers(port));
    assert_ne!(recorded_pid(&machine), first);
    machine.done("--undo");
    assert!(servers(port).is_empty());
    assert_eq!(machine.home(), before);
}

#[test]
fn another_process_that_got_the_id_of_the_server_is_not_stopped() {
    let machine = machine();
    let before = machine.home();
    let port = free_port();
    machine.done(&format!("--write claude --no-prove --port {port}"));
    let pid = recorded_pid(&machine);
    kill(pid);
    let mut other = Background::spawn(Command::new("sleep").arg("600"));
    let file = machine.path("home/.local/state/infold/setup.json");
    let record = fs::read_to_string(&file).expect("a record");
    let reused = record.replace(
        &format!("\"pid\": {pid},"),
        &format!("\"pid\": {},", other.0.id()),
    );
    assert_ne!(reused, record);
    fs::write(&file, reused).expect("ours");
    let (_, said) = machine.setup(&format!("--check --port {port}"));
    assert!(said.contains("server: not running"), "{said}");
    machine.done("--undo");
    assert_eq!(machine.home(), before);
    assert!(other.is_running(), "another process was stopped");
}

#[test]
fn a_server_that_was_running_is_used_and_left_running() {
    let machine = machine();
    let before = machine.home();
    let port = free_port();
    let mut own = Background::spawn(
        Command::new(env!("CARGO_BIN_EXE_infold"))
            .args(["serve", "--port", &port.to_string()])
            .env_clear()
            .envs(&machine.env)
            .env("INFOLD_CONTEXTS", machine.path("tasks")),
    );
    eventually("it answers", || answers(port));
    let said = machine.done(&format!("--write claude --no-prove --port {port}"));
    assert!(said.contains("the server is running at"), "{said}");
    assert_eq!(
        machine.record()["servers"].as_array().map(Vec::len),
        Some(0)
    );
    machine.done("--undo");
    assert!(own.is_running() && answers(port));
    assert_eq!(machine.home(), before);
}

#[test]
fn without_service_the_command_is_printed_alone() {
    let machine = machine();
    let port = free_port();
    let said = machine.done(&format!(
        "--write claude --no-prove --no-service --port {port}"
    ));
    assert!(
        said.contains(&format!("keep it running: infold serve --port {port}\n")),
        "{said}"
    );
    assert!(!answers(port));
    assert!(!machine.path("home/.local/state/infold/serve.log").exists());
    let (code, said) = machine.setup(&format!("--check --port {port}"));
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains(&format!(
            "running at http://127.0.0.1:{port}: infold serve\n"
        )),
        "{said}"
    );
}

#[test]
fn a_server_that_does_not_start_leaves_nothing_changed_and_says_why() {
    let mut machine = machine();
    let before = machine.home();
    let port = free_port();
    let config = machine.file("infold.yaml", "serve:\n  host: 203.0.113.9\n");
    machine
        .env
        .insert("INFOLD_CONFIG".into(), config.display().to_string());
    let (code, said) = machine.setup(&format!("--write claude codex --no-prove --port {port}"));
    assert_eq!(code, 1, "{said}");
    for part in [
        "error: the server did not start: it ended with exit status: 2\n",
        "  error: 203.0.113.9 can be reached from other machines",
        "hint: what was written for claude, codex was taken back",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(servers(port).is_empty());
    assert_eq!(machine.home(), before);
}

#[test]
fn an_agent_that_is_moved_to_another_port_takes_the_server_with_it() {
    let machine = machine();
    let before = machine.home();
    let (first, second) = (free_port(), free_port());
    machine.done(&format!("--write claude codex --no-prove --port {first}"));
    // The old address is the proxy's: it is no upstream of the new one.
    let (_, said) = machine.setup(&format!("--port {second}"));
    assert!(!said.contains("upstreams"), "{said}");
    assert!(
        said.contains(&format!(
            "+     \"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:{second}\""
        )),
        "{said}"
    );
    let (code, said) = machine.setup(&format!("--check --port {second}"));
    assert_eq!(code, 1, "{said}");
    assert!(!said.contains("config.yaml"), "{said}");
    machine.done(&format!("--write claude --no-prove --port {second}"));
    assert!(answers(first) && answers(second));
    let said = machine.done(&format!("--write codex --no-prove --port {second}"));
    assert!(
        said.contains(&format!("http://127.0.0.1:{first}: the server is stopped")),
        "{said}"
    );
    assert!(!answers(first) && answers(second));
    machine.done("--undo");
    assert!(servers(second).is_empty());
    assert_eq!(machine.home(), before);
}

#[test]
fn a_gateway_that_becomes_an_upstream_starts_the_server_again() {
    let machine = machine();
    let before = machine.home();
    let port = free_port();
    machine.done(&format!("--write claude --no-prove --port {port}"));
    let first = recorded_pid(&machine);
    let codex = "openai_base_url = \"http://127.0.0.1:9/v1\"\n";
    machine.file("home/.codex/config.toml", codex);
    machine.done(&format!("--write codex --no-prove --port {port}"));
    assert_ne!(recorded_pid(&machine), first);
    let log = machine.path("home/.local/state/infold/serve.log");
    let log = fs::read_to_string(log).expect("a log");
    assert!(log.contains("responses to http://127.0.0.1:9/v1"), "{log}");
    machine.done("--undo");
    assert!(servers(port).is_empty());
    machine.file("home/.codex/config.toml", "model = \"o3\"\n");
    assert_eq!(machine.home(), before);
}

#[test]
fn recorded_tasks_stay() {
    let machine = machine();
    let port = free_port();
    machine.done(&format!("--write claude --no-prove --port {port}"));
    let task = machine.file("home/.local/share/infold/contexts/running/one/task", "{}");
    machine.done("--undo");
    assert!(task.exists());
    assert!(
        machine
            .path("home/.local/share/infold/contexts/tasks.db")
            .exists()
    );
    assert!(!machine.path("home/.local/state").exists());
}

#[test]
fn a_setup_that_was_killed_is_taken_back_whenever_it_was() {
    let machine = machine();
    let before = machine.home();
    let port = free_port();
    let write = format!("--write claude codex --no-prove --port {port}");
    let began = Instant::now();
    machine.done(&write);
    let write_time = began.elapsed();
    let began = Instant::now();
    machine.done("--undo");
    let undo_time = began.elapsed();
    assert_eq!(machine.home(), before);
    let random = RandomState::new();
    for round in 0..40 {
        // In every fourth round it is the undo that is killed.
        let is_undo = round % 4 == 3;
        let (words, span) = if is_undo {
            machine.done(&write);
            ("--undo", undo_time)
        } else {
            (write.as_str(), write_time)
        };
        let span = u64::try_from(span.as_micros()).expect("less than years");
        let pause = Duration::from_micros(random.hash_one(round) % (span + span / 8));
        let mut setup = machine
            .command(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        std::thread::sleep(pause);
        setup.kill().expect("it is ours");
        setup.wait().expect("it ended");
        let (code, said) = machine.setup("--undo");
        let is_nothing = code == 1 && said.contains("nothing was set up");
        let context = format!("{words} after {pause:?}: {said}");
        assert!(code == 0 || is_nothing, "{context}");
        assert_eq!(machine.home(), before, "{context}");
        eventually(&context, || servers(port).is_empty());
    }
}

#[test]
fn the_link_that_starts_the_unit_goes_with_it() {
    let machine = machine();
    let before = machine.home();
    let port = free_port();
    let units = machine.path("home/.config/systemd/user");
    let wants = units.join("default.target.wants");
    // Systemd enables the unit, and cannot be reached when it is to be disabled.
    let id = machine.path("id");
    let script = format!(
        "#!/bin/sh\ncase $2 in\nenable) mkdir -p {wants} && ln -s {units}/infold.service {wants}/ && {} serve --port {port} & echo $! > {};;\ndisable) exit 1;;\nesac\n",
        env!("CARGO_BIN_EXE_infold"),
        id.display(),
        units = units.display(),
        wants = wants.display(),
    );
    machine.program("bin/systemctl", &script);
    machine.done(&format!("--write claude --no-prove --port {port}"));
    assert!(fs::symlink_metadata(wants.join("infold.service")).is_ok());
    // The link to another unit is not of setup.
    let foreign = wants.join("other.service");
    symlink("/nowhere", &foreign).expect("ours");
    let said = machine.done("--undo");
    for pid in servers(port) {
        kill(pid);
    }
    assert!(said.contains("systemd did not stop the server"), "{said}");
    assert!(fs::symlink_metadata(wants.join("infold.service")).is_err());
    assert!(fs::symlink_metadata(&foreign).is_ok());
    fs::remove_file(foreign).expect("ours");
    fs::remove_dir_all(machine.path("home/.config")).expect("ours");
    assert_eq!(machine.home(), before);
}
