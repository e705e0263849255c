//! A request of any size is sent in constant memory. The only test of its process, so that no other one is measured.

mod server;

use std::time::{Duration, Instant};

use infold_provider::{Client, Endpoint, RequestBody, RetryPolicy};
use server::{Act, Server};

const SIZE: u64 = 200 << 20;

/// The most memory this process has had, in bytes; none where the system does not say.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_request_takes_no_more_memory_than_a_small_one() {
    let refusal = "HTTP/1.1 400 X\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno";
    let server = Server::new(vec![Act::Say(vec![refusal.to_owned()], Duration::ZERO)]).await;
    let to = Endpoint::new("test", "openai", Some(&server.url), None).unwrap();
    let client = Client::new(RetryPolicy::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut peaks = Vec::new();
    for size in [1 << 20, SIZE] {
        let path = folder.path().join("request.json");
        std::fs::File::create(&path).unwrap().set_len(size).unwrap();
        let start = Instant::now();
        let sent = client
            .send(&to, "m", RequestBody::File(&path), true, &mut |_| {})
            .await;
        let rate = size as f64 / start.elapsed().as_secs_f64() / 1e6;
        assert!(sent.unwrap_err().text.contains("answered 400: no"));
        eprintln!("{size} bytes: {rate:.0} MB/s, peak {:?}", peak());
        peaks.extend(peak());
    }
    let bytes: Vec<u64> = server.seen().iter().map(|seen| seen.bytes).collect();
    assert_eq!(bytes, [1 << 20, SIZE]);
    if let [small, large] = peaks[..] {
        assert!(large - small < 8 << 20, "{small} and {large} bytes");
    }
}
