use std::sync::Arc;

use tokio::sync::broadcast;
use uuid::Uuid;

/// Something that happened to a task, for whoever watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The task.
    pub task: Uuid,
    /// What it is about: one of [`News::NAMES`].
    pub what: &'static str,
    /// More of it, as JSON in one line; short, as many of them may wait for a slow reader.
    pub json: String,
}

/// Tells of changes as they happen.
///
/// Nobody waits for a reader: one that is slow misses some, and is told so.
#[derive(Clone, Debug)]
pub struct News {
    sender: broadcast::Sender<Option<Arc<Change>>>,
}

/// How many changes wait for a slow reader.
const WAITING: usize = 1024;
/// How many may read at a time.
const READERS: usize = 256;

impl News {
    /// What a change may be about.
    pub const NAMES: [&'static str; 7] = [
        "task", "message", "folding", "fold", "step", "usage", "failure",
    ];

    /// Tells of a change.
    pub fn tell(&self, change: Change) {
        // Nobody may be listening.
        let _ = self.sender.send(Some(Arc::new(change)));
    }

    /// Ends what all readers read: the server stops.
    pub fn end(&self) {
        let _ = self.sender.send(None);
    }

    /// Listens from now on; none if too many do.
    pub fn listen(&self) -> Option<Listener> {
        let room = self.sender.receiver_count() < READERS;
        room.then(|| Listener(self.sender.subscribe()))
    }
}

impl Default for News {
    fn default() -> News {
        let (sender, _) = broadcast::channel(WAITING);
        News { sender }
    }
}

/// Somebody who listens.
#[derive(Debug)]
pub struct Listener(broadcast::Receiver<Option<Arc<Change>>>);

/// What a listener hears.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// A change.
    Change(Arc<Change>),
    /// So many changes were missed.
    Missed(u64),
}

impl Listener {
    /// Waits for the next change; none if there are no more. May be dropped while it waits.
    pub async fn next(&mut self) -> Option<Heard> {
        match self.0.recv().await {
            Ok(change) => change.map(Heard::Change),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(Heard::Missed(count)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(number: usize) -> Change {
        let json = format!("{{\"number\":{number}}}");
        Change {
            task: Uuid::nil(),
            what: "step",
            json,
        }
    }

    #[tokio::test]
    async fn a_slow_reader_is_told_what_it_missed_and_goes_on() {
        let news = News::default();
        news.tell(change(0));
        let mut listener = news.listen().unwrap();
        for number in 1..=WAITING + 10 {
            news.tell(change(number));
        }
        assert_eq!(listener.next().await, Some(Heard::Missed(10)));
        assert_eq!(
            listener.next().await,
            Some(Heard::Change(Arc::new(change(11))))
        );
        news.end();
        while let Some(heard) = listener.next().await {
            assert!(matches!(heard, Heard::Change(_) | Heard::Missed(1)));
        }
    }

    #[test]
    fn only_so_many_listen() {
        let news = News::default();
        let all: Vec<Listener> = std::iter::from_fn(|| news.listen()).collect();
        assert_eq!(all.len(), READERS);
        drop(all);
        assert!(news.listen().is_some());
    }
}
