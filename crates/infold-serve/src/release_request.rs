//! Asks another server on this machine to release a task.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use uuid::Uuid;

/// The bytes of an answer that are read.
const MAX_ANSWER_BYTES: u64 = 1 << 14;

/// Asks the server at an address on this machine to release a task; says whether it did.
///
/// `within` limits the time for the answer.
pub fn request_release(address: &str, task: Uuid, token: Option<&str>, within: Duration) -> bool {
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
    let status = places
        .iter()
        .find_map(|place| post(place, &request, within).ok());
    status.is_some_and(|status| status.starts_with("HTTP/1.1 2"))
}

/// Returns the host of an address such as `http://127.0.0.1:7333`, and its socket addresses on this machine.
///
/// A token is sent to no other machine, whatever a lock file contains.
fn near(address: &str) -> Option<(&str, Vec<SocketAddr>)> {
    let host = address.strip_prefix("http://")?.trim_end_matches('/');
    let places: Vec<SocketAddr> = host.to_socket_addrs().ok()?.collect();
    let near = places.iter().all(|place| is_here(place.ip()));
    (near && host.bytes().all(|byte| byte.is_ascii_graphic())).then_some((host, places))
}

/// Says whether an address is one of this machine's: only those can be bound.
fn is_here(ip: IpAddr) -> bool {
    ip.is_loopback() || !ip.is_unspecified() && TcpListener::bind((ip, 0)).is_ok()
}

/// Posts a request and returns the first line of the reply.
fn post(place: &SocketAddr, request: &str, within: Duration) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(place, within)?;
    stream.set_read_timeout(Some(within))?;
    stream.set_write_timeout(Some(within))?;
    stream.write_all(request.as_bytes())?;
    let mut lines = BufReader::new(stream.take(MAX_ANSWER_BYTES)).lines();
    let status = lines.next().unwrap_or(Ok(String::new()))?;
    // Read the rest of the answer: closing early would break the server's write.
    lines.find(|line| !line.as_ref().is_ok_and(|line| !line.is_empty()));
    Ok(status)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn only_this_machine_is_asked() {
        assert!(near("http://127.0.0.1:7333").is_some());
        assert!(near("http://[::1]:7333/").is_some());
        // This machine also accepts connections at its own outgoing address; nothing is sent.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        if socket.connect("192.0.2.1:9").is_ok() {
            let own = socket.local_addr().unwrap().ip();
            assert!(near(&format!("http://{own}:7333")).is_some(), "{own}");
        }
        for address in [
            "http://192.0.2.1:80",
            "http://0.0.0.0:80",
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
