//! Live events about tasks for watchers.

use std::sync::Arc;

use tokio::sync::broadcast;
use uuid::Uuid;

/// Something that happened to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveEvent {
    /// The task.
    pub task: Uuid,
    /// Its name: one of [`LiveEvents::NAMES`].
    pub name: &'static str,
    /// More of it, as JSON in one line; short, as many of them may wait for a slow reader.
    pub json: String,
}

/// Publishes live events.
///
/// Publishing never waits for a reader: a slow one misses events, and is notified of that.
#[derive(Clone, Debug)]
pub struct LiveEvents {
    sender: broadcast::Sender<Option<Arc<LiveEvent>>>,
}

/// The number of changes that are queued for a slow reader.
const WAITING: usize = 1024;
/// The number of concurrent readers.
const READERS: usize = 256;

impl LiveEvents {
    /// The names of live events.
    pub const NAMES: [&'static str; 7] = [
        "task", "message", "folding", "fold", "step", "usage", "failure",
    ];

    /// Publishes a change.
    pub fn publish(&self, change: LiveEvent) {
        // There may be no listener.
        let _ = self.sender.send(Some(Arc::new(change)));
    }

    /// Ends the streams of all readers: the server stops.
    pub fn end(&self) {
        let _ = self.sender.send(None);
    }

    /// Listens from now on; none if too many do.
    pub fn listen(&self) -> Option<EventListener> {
        let room = self.sender.receiver_count() < READERS;
        room.then(|| EventListener(self.sender.subscribe()))
    }
}

impl Default for LiveEvents {
    fn default() -> LiveEvents {
        let (sender, _) = broadcast::channel(WAITING);
        LiveEvents { sender }
    }
}

/// Receives live events.
#[derive(Debug)]
pub struct EventListener(broadcast::Receiver<Option<Arc<LiveEvent>>>);

/// An item that a listener gets.
#[derive(Debug, PartialEq, Eq)]
pub enum LiveItem {
    /// A change.
    Event(Arc<LiveEvent>),
    /// The number of changes that were missed.
    Missed(u64),
}

impl EventListener {
    /// Waits for the next change; none if there are no more. May be dropped while it waits.
    pub async fn next(&mut self) -> Option<LiveItem> {
        match self.0.recv().await {
            Ok(change) => change.map(LiveItem::Event),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(LiveItem::Missed(count)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(number: usize) -> LiveEvent {
        let json = format!("{{\"number\":{number}}}");
        LiveEvent {
            task: Uuid::nil(),
            name: "step",
            json,
        }
    }

    #[tokio::test]
    async fn a_slow_reader_is_told_what_it_missed_and_goes_on() {
        let events = LiveEvents::default();
        events.publish(change(0));
        let mut listener = events.listen().unwrap();
        for number in 1..=WAITING + 10 {
            events.publish(change(number));
        }
        assert_eq!(listener.next().await, Some(LiveItem::Missed(10)));
        assert_eq!(
            listener.next().await,
            Some(LiveItem::Event(Arc::new(change(11))))
        );
        events.end();
        while let Some(heard) = listener.next().await {
            assert!(matches!(heard, LiveItem::Event(_) | LiveItem::Missed(1)));
        }
    }

    #[test]
    fn only_so_many_listen() {
        let events = LiveEvents::default();
        let all: Vec<EventListener> = std::iter::from_fn(|| events.listen()).collect();
        assert_eq!(all.len(), READERS);
        drop(all);
        assert!(events.listen().is_some());
    }
}
