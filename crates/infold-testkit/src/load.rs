//! `infold-testkit load`: many requests as fast as they are answered, each answer checked.
//!
//! It shares the machine with the server that it measures, so it is cheap: one thread, bodies that are created
//! once and grown at the end, HTTP/1.1 by hand.

mod upstream;
mod connection;
mod reply;
mod conversation;
mod figures;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use clap::ValueEnum;
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::time::timeout;

use connection::LoadConnection;
use conversation::{LoadConversation, TextPool};
use figures::Figures;
use reply::FixedReply;
pub use upstream::LoadUpstream;

/// No answer takes longer, slow streams included.
const PATIENCE: Duration = Duration::from_secs(60);
/// A conversation that grows begins with so many messages and ends with so many.
const GROWS: (usize, usize) = (20, 100);

#[derive(clap::Args)]
pub struct Load {
    /// Where to send, such as http://127.0.0.1:4010
    #[arg(value_parser = read_url)]
    url: SocketAddr,
    /// The requests of each connection
    #[arg(long, value_enum, default_value = "same")]
    kind: LoadKind,
    /// How many connections, each with one request at a time
    #[arg(long, default_value_t = 1)]
    connections: u64,
    /// How long, after one request on each connection that does not count
    #[arg(long, default_value_t = 2.0, conflicts_with = "requests")]
    seconds: f64,
    /// How many requests in all, the first ones included
    #[arg(long)]
    requests: Option<u64>,
    /// Asks for streams
    #[arg(long)]
    stream: bool,
    /// How many messages a body has, if it does not grow
    #[arg(long, default_value_t = 80)]
    messages: usize,
    /// How many pieces the reply must have
    #[arg(long, default_value_t = reply::PIECES)]
    pieces: usize,
    /// The model that is asked for
    #[arg(long, default_value = "gpt-4.1")]
    model: String,
    /// The key that is shown
    #[arg(long, default_value = "sk-load")]
    key: String,
}

/// The requests of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LoadKind {
    /// One conversation of its own, again and again
    Same,
    /// A conversation that goes on: the request before, its reply, a new message
    Growing,
    /// A new conversation each time
    Opening,
}

/// Sends, waits for the answers and returns the figures as one line of JSON.
pub fn run(load: Load) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    Ok(runtime.block_on(all(load)).line())
}

/// The plan that the connections share.
struct LoadPlan {
    load: Load,
    reply: FixedReply,
    texts: TextPool,
    /// Numbers for conversations that no other run has used.
    openings: AtomicU64,
    left: AtomicU64,
    ready: Barrier,
}

async fn all(load: Load) -> Figures {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let plan = Arc::new(LoadPlan {
        reply: FixedReply::of(load.pieces),
        texts: TextPool::new(),
        openings: AtomicU64::new(now.map_or(0, |now| now.as_nanos() as u64)),
        left: AtomicU64::new(load.requests.unwrap_or(u64::MAX)),
        ready: Barrier::new(load.connections as usize),
        load,
    });
    let started: Vec<_> = (0..plan.load.connections)
        .map(|number| tokio::spawn(Caller::new(&plan, number).run()))
        .collect();
    let mut figures = Figures::default();
    for task in started {
        figures.add(task.await.expect("a connection does not panic"));
    }
    figures
}

/// One connection, and its conversation.
struct Caller {
    plan: Arc<LoadPlan>,
    line: Option<LoadConnection>,
    talk: LoadConversation,
    figures: Figures,
}

impl Caller {
    fn new(plan: &Arc<LoadPlan>, number: u64) -> Caller {
        let (from, to) = GROWS;
        // Each starts with another size in the range, so that a short run too has bodies of all sizes.
        let step = (to - from) / 2 * number as usize / plan.load.connections as usize;
        let messages = match plan.load.kind {
            LoadKind::Growing => from + 2 * step,
            LoadKind::Same | LoadKind::Opening => plan.load.messages,
        };
        Caller {
            plan: Arc::clone(plan),
            line: None,
            talk: plan.open(messages),
            figures: Figures::default(),
        }
    }

    async fn run(mut self) -> Figures {
        if self.plan.load.requests.is_none() {
            self.ask().await;
            self.figures.forget_times();
        }
        self.plan.ready.wait().await;
        self.figures.begin();
        let end = Duration::from_secs_f64(self.plan.load.seconds);
        while self.plan.takes_one() && self.figures.goes_on(end, self.plan.load.requests) {
            self.ask().await;
        }
        self.figures.end();
        self.figures
    }

    /// Sends a request and checks the answer; a failed request is sent again.
    async fn ask(&mut self) {
        let start = Instant::now();
        let answer = timeout(PATIENCE, self.exchange()).await;
        match answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok((first, identical)) => {
                self.figures.answered(start, first, identical);
                self.next();
            }
            Err(error) => {
                self.line = None;
                self.figures.failed(&error);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    /// Returns when the first byte of the answer came and whether all are the upstream's own.
    async fn exchange(&mut self) -> io::Result<(Instant, bool)> {
        let (plan, load) = (&self.plan, &self.plan.load);
        let line = match &mut self.line {
            Some(line) => line,
            none => none.insert(LoadConnection::new(TcpStream::connect(load.url).await?)?),
        };
        line.write(self.talk.request()).await?;
        let message = line.read().await?.ok_or(io::ErrorKind::ConnectionAborted)?;
        let body = message.body();
        if message.start.get(9..12) != Some("200") {
            let text: String = String::from_utf8_lossy(body).chars().take(300).collect();
            return Err(io::Error::other(format!("{}: {text}", message.start)));
        }
        let identical = plan.reply.check(body, load.stream)?;
        let (first, close) = (message.first, message.close);
        if close {
            self.line = None;
        }
        Ok((first, identical))
    }

    fn next(&mut self) {
        let plan = &self.plan;
        match plan.load.kind {
            LoadKind::Same => {}
            LoadKind::Opening => self.talk = plan.open(plan.load.messages),
            LoadKind::Growing if self.talk.messages() >= GROWS.1 => self.talk = plan.open(GROWS.0),
            LoadKind::Growing => self.talk.go_on(&plan.texts, plan.reply.text()),
        }
    }
}

impl LoadPlan {
    fn open(&self, messages: usize) -> LoadConversation {
        let number = self.openings.fetch_add(1, Ordering::Relaxed);
        let load = &self.load;
        let frame = conversation::RequestShell {
            host: load.url,
            key: &load.key,
            model: &load.model,
            stream: load.stream,
        };
        LoadConversation::open(&self.texts, &frame, number, messages)
    }

    fn takes_one(&self) -> bool {
        let take = |left: u64| left.checked_sub(1);
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.is_ok()
    }
}

fn read_url(text: &str) -> Result<SocketAddr, String> {
    let address = text
        .strip_prefix("http://")
        .map(|it| it.trim_end_matches('/'));
    address
        .and_then(|it| it.parse().ok())
        .ok_or_else(|| "must be http://ADDRESS:PORT".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(upstream: LoadUpstream, kind: LoadKind, stream: bool) -> Figures {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let (listener, url) = upstream.listen().expect("a free port");
            tokio::spawn(upstream.serve(listener));
            all(Load {
                url,
                kind,
                connections: 3,
                seconds: 0.0,
                requests: Some(60),
                stream,
                messages: 6,
                pieces: reply::PIECES,
                model: "gpt-4.1".to_owned(),
                key: "k".to_owned(),
            })
            .await
        })
    }

    #[test]
    fn every_request_is_answered_with_the_upstreams_bytes() {
        for kind in [LoadKind::Same, LoadKind::Growing, LoadKind::Opening] {
            for stream in [false, true] {
                let figures = sent(LoadUpstream::new(0, reply::PIECES, 0), kind, stream);
                assert_eq!(
                    (figures.requests(), figures.errors(), figures.identical()),
                    (60, 0, 60),
                    "{kind:?}, stream {stream}"
                );
            }
        }
    }

    #[test]
    fn an_answer_with_a_piece_too_few_is_an_error() {
        for stream in [false, true] {
            let figures = sent(
                LoadUpstream::new(0, reply::PIECES - 1, 0),
                LoadKind::Growing,
                stream,
            );
            assert_eq!((figures.requests(), figures.errors()), (0, 60));
        }
    }
}
