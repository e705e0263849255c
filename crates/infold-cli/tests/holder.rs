//! A task that a server holds: the command asks it to let go.

mod common;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Stdio;
use std::thread::JoinHandle;

use common::{Home, Ran, talk};

fn home() -> Home {
    let home = Home::new();
    home.tell("task new");
    home.fed(
        "task push T1",
        talk(&["what is this?", "a parser", "is it fast?", "it is"]),
    );
    home
}

/// Takes the lock of the task as a server would that can be reached at an address.
fn held(home: &Home, address: &str) -> File {
    let mut lock = File::options()
        .read(true)
        .write(true)
        .open(home.running("T1").join("lock"))
        .expect("a lock file");
    lock.try_lock().expect("nobody has it");
    let name = format!(
        "{{\"pid\":12,\"host\":\"elsewhere\",\"since\":\"2026-01-01T00:00:00.000Z\",\"address\":\"{address}\"}}\n"
    );
    lock.write_all(name.as_bytes()).expect("signed");
    lock
}

/// A server that holds the task and answers one request with a status; returns its request.
fn server(home: &Home, status: &'static str) -> JoinHandle<(String, File)> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let lock = held(home, &format!("http://127.0.0.1:{port}"));
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a call");
        let mut lines = BufReader::new(&stream).lines();
        let mut request = String::new();
        while let Some(Ok(line)) = lines
            .next()
            .filter(|line| !matches!(line, Ok(line) if line.is_empty()))
        {
            request += &format!("{line}\n");
        }
        if status.starts_with("204") {
            // Closing may take a moment.
            std::thread::sleep(std::time::Duration::from_millis(50));
            lock.set_len(0).expect("closed in good order");
            lock.unlock().expect("let go");
        }
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").expect("answered");
        (request, lock)
    })
}

fn with_token(home: &Home, line: &str) -> Ran {
    let mut command = home.command(line);
    command.env("INFOLD_TOKEN", "secret-7").stdin(Stdio::null());
    Ran::from(command.output().expect("it runs"))
}

#[test]
fn a_server_lets_go_of_the_task_and_the_step_is_taken() {
    let home = home();
    let server = server(&home, "204 No Content");
    let ran = with_token(&home, "pin T1 2");
    let (request, _) = server.join().expect("a request");
    let task = home.task("T1");
    assert!(
        request.starts_with(&format!("POST /infold/api/tasks/{task}/release HTTP/1.1\n")),
        "{request}"
    );
    assert!(
        request.contains("\nx-infold-token: secret-7\n"),
        "{request}"
    );
    insta::assert_snapshot!(home.transcript(&ran), @"pinned message 2 and its round; view 28 → 28 tokens (undo: infold undo t1······)");
}

#[test]
fn every_command_that_writes_asks() {
    for line in [
        "task push T1",
        "task tool T1",
        "task complete T1",
        "undo T1",
    ] {
        let home = home();
        home.tell("pin T1 2");
        let server = server(&home, "204 No Content");
        let ran = home.run(line, br#"{"role":"user","content":"go on","tool":"ls","args":{},"result":"","status":"success","duration_ms":3}"#);
        assert_eq!(ran.code, 0, "{line}: {}", home.transcript(&ran));
        let (request, _) = server.join().expect("a request");
        assert!(!request.contains("x-infold-token"), "{request}");
    }
}

#[test]
fn a_server_that_does_not_let_go_is_named() {
    let home = home();
    let server = server(&home, "401 Unauthorized");
    let ran = home.run("pin T1 2", b"");
    let lock = server.join().expect("a request");
    let text = home.transcript(&ran);
    let port = text
        .split("127.0.0.1:")
        .nth(1)
        .and_then(|rest| rest.split(')').next());
    let text = text.replace(port.expect("a port"), "PORT");
    insta::assert_snapshot!(text, @r"
    ! error: task T1: process N on elsewhere (infold serve at http://127.0.0.1:PORT) is writing to this task
    ! hint: it did not release the task: wait for its request to end, or set INFOLD_TOKEN if it requires a token
    [3]
    ");
    // Closing it is not enough: a process that another test starts has a copy for a moment.
    lock.1.unlock().expect("let go");
    // The holder's server is gone, but the lock is held.
    let _lock = held(&home, "http://127.0.0.1:1");
    assert_eq!(home.run("pin T1 2", b"").code, 3);
}
