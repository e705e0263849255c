use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use infold_store::{Holder, OpenError, TaskError};
use uuid::Uuid;

/// How long to wait for a server's answer.
const ANSWER: Duration = Duration::from_secs(5);

/// How much of an answer is read.
const LONGEST: u64 = 1 << 14;

/// How long a task that was let go of may take to be free.
const FREE: Duration = Duration::from_secs(2);

/// How often to look.
const LOOK: Duration = Duration::from_millis(20);

/// Opens a task; if a server holds it, asks it to let go first.
///
/// The server takes the task up again with the next request.
pub fn released<T>(mut open: impl FnMut() -> Result<T, TaskError>) -> Result<T, TaskError> {
    let opened = open();
    let Err(TaskError::Open {
        task,
        source:
            OpenError::Held {
                holder:
                    Some(Holder {
                        address: Some(address),
                        ..
                    }),
            },
    }) = &opened
    else {
        return opened;
    };
    let token = std::env::var("INFOLD_TOKEN").ok();
    if !asked(address, *task, token.as_deref()) {
        return opened;
    }
    let until = Instant::now() + FREE;
    loop {
        match open() {
            Err(TaskError::Open {
                source: OpenError::Held { .. },
                ..
            }) if Instant::now() < until => std::thread::sleep(LOOK),
            opened => return opened,
        }
    }
}

/// Asks the server at an address to let go of a task; says whether it did.
fn asked(address: &str, task: Uuid, token: Option<&str>) -> bool {
    let Some((host, places)) = near(address) else {
        return false;
    };
    let token = token.filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()));
    let token = token.map_or(String::new(), |token| {
        format!("x-infold-token: {token}\r\n")
    });
    let request = format!(
        "POST /infold/api/tasks/{task}/release HTTP/1.1\r\nhost: {host}\r\n{token}content-length: 0\r\nconnection: close\r\n\r\n"
    );
    let status = places.iter().find_map(|place| post(place, &request).ok());
    status.is_some_and(|status| status.starts_with("HTTP/1.1 2"))
}

/// The host of an address such as `http://127.0.0.1:7333`, and where it is on this machine.
///
/// A token goes nowhere else, whatever a lock file says.
fn near(address: &str) -> Option<(&str, Vec<SocketAddr>)> {
    let host = address.strip_prefix("http://")?.trim_end_matches('/');
    let places: Vec<SocketAddr> = host.to_socket_addrs().ok()?.collect();
    let near = places.iter().all(|place| place.ip().is_loopback());
    (near && host.bytes().all(|byte| byte.is_ascii_graphic())).then_some((host, places))
}

/// Posts a request and returns the first line of the reply.
fn post(place: &SocketAddr, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(place, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    stream.write_all(request.as_bytes())?;
    let mut lines = BufReader::new(stream.take(LONGEST)).lines();
    let status = lines.next().unwrap_or(Ok(String::new()))?;
    // Whoever hangs up in the middle of an answer cuts off the one who gives it.
    lines.find(|line| !line.as_ref().is_ok_and(|line| !line.is_empty()));
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_asked() {
        assert!(near("http://127.0.0.1:7333").is_some());
        assert!(near("http://[::1]:7333/").is_some());
        for address in [
            "http://192.0.2.1:80",
            "https://127.0.0.1:7333",
            "127.0.0.1:7333",
            "http://127.0.0.1",
            "http://127.0.0.1:7333/x",
            "http://127.0.0.1:7333\r\nx: y",
            "",
        ] {
            assert!(near(address).is_none(), "{address}");
        }
    }
}
