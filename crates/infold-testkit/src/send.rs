//! A response on its way: paced, broken and cut as its step says.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;

use crate::server_connection::Cutter;
use crate::step::{Cut, Gate, Pace};

/// An outgoing response.
pub(crate) struct Outgoing {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Sent,
}

/// A body.
pub(crate) enum Sent {
    Whole(Vec<u8>),
    Events(Vec<Vec<u8>>),
}

/// The time for sent bytes to leave before the connection is dropped.
const LEAVE: Duration = Duration::from_millis(5);

/// Makes the response.
pub(crate) async fn send(outgoing: Outgoing, pace: &Pace, cutter: Cutter) -> Response {
    if !pace.after.is_zero() {
        tokio::time::sleep(pace.after).await;
    }
    let (events, length) = match outgoing.body {
        Sent::Whole(body) => {
            let body = broken(vec![body], pace.malformed.map(|_| 0));
            let length = body[0].len();
            (body, Some(length))
        }
        Sent::Events(events) => (broken(events, pace.malformed), None),
    };
    let plan = plan(events, pace);
    if plan.cut && plan.parts.iter().all(|(_, bytes)| bytes.is_empty()) {
        // There is not even a status: the connection fails as soon as one is written.
        cutter.cut(pace.reset);
    }
    let mut response = Response::new(body(plan, pace.reset, cutter));
    *response.status_mut() =
        StatusCode::from_u16(outgoing.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    for (name, value) in &outgoing.headers {
        let name = HeaderName::try_from(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    }
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// Cuts the JSON of one event in half.
fn broken(mut events: Vec<Vec<u8>>, which: Option<usize>) -> Vec<Vec<u8>> {
    let last = events.len().saturating_sub(1);
    if let Some(event) = which.and_then(|at| events.get_mut(at.min(last))) {
        let end = if event.ends_with(b"\n\n") {
            &b"\n\n"[..]
        } else {
            &b"\n"[..]
        };
        let end = if event.ends_with(b"\n") { end } else { b"" };
        event.truncate(event.len() / 2);
        event.extend_from_slice(end);
    }
    events
}

/// The parts to send, each after a pause, and whether the connection is then dropped.
struct SendPlan {
    parts: VecDeque<(Duration, Bytes)>,
    /// The gate that the last parts wait for, and how many these are.
    gate: Option<(usize, Gate)>,
    cut: bool,
}

fn plan(events: Vec<Vec<u8>>, pace: &Pace) -> SendPlan {
    let mut parts = VecDeque::new();
    let most = match pace.cut {
        Some(Cut::Bytes(most)) => most,
        _ => usize::MAX,
    };
    let count = match pace.cut {
        Some(Cut::Events(count)) => count,
        _ => usize::MAX,
    };
    let mut sent = 0;
    let (free, gate) = pace.gate.clone().unzip();
    let mut before_gate = 0;
    for (at, event) in events.into_iter().take(count).enumerate() {
        let mut event = Bytes::from(event);
        event.truncate(most - sent);
        sent += event.len();
        let mut pause = if at == 0 {
            Duration::ZERO
        } else {
            pace.between
        };
        let (size, each) = pace.slow.unwrap_or((usize::MAX, Duration::ZERO));
        while !event.is_empty() {
            parts.push_back((pause, event.split_to(size.min(event.len()))));
            pause = each;
            before_gate += usize::from(free.is_some_and(|free| at < free));
        }
    }
    SendPlan {
        gate: gate.map(|gate| (parts.len() - before_gate, gate)),
        parts,
        cut: pace.cut.is_some(),
    }
}

fn body(plan: SendPlan, reset: bool, cutter: Cutter) -> Body {
    if plan.gate.is_none()
        && !plan.cut
        && plan.parts.iter().all(|(pause, _)| pause.is_zero())
        && plan.parts.len() < 2
    {
        let only = plan.parts.into_iter().next();
        return only.map_or_else(Body::empty, |(_, bytes)| Body::from(bytes));
    }
    Body::from_stream(stream::unfold(
        (plan, cutter),
        move |(mut plan, cutter)| async move {
            if let Some((left, gate)) = &plan.gate
                && plan.parts.len() <= *left
            {
                gate.wait().await;
            }
            if let Some((pause, bytes)) = plan.parts.pop_front() {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                return Some((Ok(bytes), (plan, cutter)));
            }
            if !plan.cut {
                return None;
            }
            tokio::time::sleep(LEAVE).await;
            cutter.cut(reset);
            Some((
                Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe)),
                (plan, cutter),
            ))
        },
    ))
}
