//! No process outlives the toolbox.

use std::time::Duration;

use infold_toolbox::CallStatus;

use crate::{Fixture, assert_ends, is_running};

#[tokio::test]
async fn shutting_down_ends_servers_and_what_they_started() {
    let fixture = Fixture::new(&["stays"]);
    let pid = fixture.works("pid", "").await;
    let child = fixture.works("spawn", "").await;
    assert!(is_running(&pid) && is_running(&child));
    fixture.toolbox.shutdown().await;
    assert_ends(&pid);
    assert_ends(&child);
    let after = fixture.fails("echo", "x").await;
    assert!(after.contains("shut down"), "{after}");
    assert_eq!(fixture.starts("scripted").len(), 1);
}

#[tokio::test]
async fn dropping_the_toolbox_kills_them_too() {
    let fixture = Fixture::new(&["stays"]);
    let pid = fixture.works("pid", "").await;
    let child = fixture.works("spawn", "").await;
    drop(fixture);
    assert_ends(&pid);
    assert_ends(&child);
}

#[test]
fn dropping_the_runtime_first_leaves_nothing_either() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fixture = Fixture::new(&["stays"]);
    let (pid, child) = runtime.block_on(async {
        (
            fixture.works("pid", "").await,
            fixture.works("spawn", "").await,
        )
    });
    drop(runtime);
    drop(fixture);
    assert_ends(&pid);
    assert_ends(&child);
}

#[tokio::test]
async fn shutting_down_ends_a_call_and_a_start_that_wait() {
    let fixture = Fixture::new(&[]);
    fixture.works("echo", "x").await;
    let (result, ()) = tokio::join!(fixture.call("sleep", "600"), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        fixture.toolbox.shutdown().await;
    });
    assert_eq!(result.status, CallStatus::Error, "{}", result.text);
    let fixture = Fixture::new(&["hang"]);
    let (result, ()) = tokio::join!(fixture.call("echo", "x"), async {
        while fixture.starts("scripted").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        fixture.toolbox.shutdown().await;
    });
    assert_eq!(result.status, CallStatus::Error, "{}", result.text);
    assert_ends(&fixture.starts("scripted")[0]);
}
