use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use infold_wire::Reply;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::headers::Keys;
use crate::metrics::Metrics;
use crate::{DeskError, Exchange};

/// An exchange that ends in one way or another: what is forgotten has failed.
pub(crate) struct Kept {
    exchange: Option<Box<Exchange>>,
    metrics: Arc<Metrics>,
    keys: Arc<Keys>,
}

/// Why there is no reply when nobody waits for it.
const LEFT: &str = "the client went away";

impl Kept {
    pub fn new(exchange: Box<Exchange>, metrics: Arc<Metrics>, keys: Arc<Keys>) -> Kept {
        Kept {
            exchange: Some(exchange),
            metrics,
            keys,
        }
    }

    /// Looks at the exchange.
    pub fn look<T>(&self, look: impl FnOnce(&Exchange) -> T) -> Option<T> {
        self.exchange.as_deref().map(look)
    }

    /// What a provider says, shortened and without keys.
    pub fn shortened(&self, text: &str) -> String {
        const MAX_REFUSAL_CHARS: usize = 300;
        infold_wire::shorten(&self.keys.taken_out_of(text), MAX_REFUSAL_CHARS)
    }

    /// The provider answers.
    pub fn accepted(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            exchange.accepted();
        }
    }

    /// Does something with the exchange where it may take its time.
    pub async fn work<T: Send + 'static>(
        mut self,
        what: &'static str,
        work: impl FnOnce(&mut Exchange) -> Result<T, DeskError> + Send + 'static,
    ) -> (Kept, Option<T>) {
        let (metrics, keys) = (Arc::clone(&self.metrics), Arc::clone(&self.keys));
        let worked = spawn_blocking(move || {
            let done = self.exchange.as_deref_mut().map(work);
            (self, done)
        });
        match worked.await {
            Ok((kept, Some(Ok(done)))) => (kept, Some(done)),
            Ok((kept, Some(Err(error)))) => {
                kept.tell(what, &error);
                (kept, None)
            }
            Ok((kept, None)) => (kept, None),
            // It panicked, and took the exchange with it.
            Err(_) => {
                metrics.failed(what);
                let gone = Kept {
                    exchange: None,
                    metrics,
                    keys,
                };
                (gone, None)
            }
        }
    }

    /// Records a whole reply, at once unless that takes its time.
    pub fn record(mut self, reply: Reply) -> Option<JoinHandle<()>> {
        let exchange = self.exchange.take()?;
        let quick = exchange.is_at_hand(&reply);
        let record = move || {
            let mut exchange = exchange;
            let recorded = exchange.record(reply);
            self.metrics.replied(recorded.is_ok());
            if let Err(error) = recorded {
                self.tell("record", &error);
            }
        };
        if !quick {
            return Some(spawn_blocking(record));
        }
        caught(record);
        None
    }

    /// Nobody is left to hear the reply that had begun.
    pub fn left(mut self) {
        self.metrics.disconnected();
        self.failed(LEFT);
    }

    /// Records that no whole reply came.
    pub fn fail(mut self, why: &str) {
        self.failed(why);
    }

    fn failed(&mut self, why: &str) {
        let Some(mut exchange) = self.exchange.take() else {
            return;
        };
        self.metrics.replied(false);
        tracing::info!(task = %exchange.task(), "no reply was recorded");
        // Whoever says why may repeat a key.
        let why = self.keys.taken_out_of(why);
        let metrics = Arc::clone(&self.metrics);
        let mut fail = move || {
            if let Err(error) = exchange.failed(&why) {
                metrics.failed("record");
                tracing::error!(error = %error, "a failure was not recorded");
            }
        };
        match Handle::try_current() {
            Ok(handle) => drop(handle.spawn_blocking(fail)),
            // The runtime is gone, and nobody waits.
            Err(_) => fail(),
        }
    }

    fn tell(&self, what: &'static str, error: &DeskError) {
        self.metrics.failed(what);
        tracing::error!(error = %error, what, "an exchange could not be kept, or not folded");
    }
}

/// What comes of work that is done on the spot; nothing if it panicked. The client must not notice.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    // What it had in its hands is gone, or behind locks whose content is checked when it is used.
    catch_unwind(AssertUnwindSafe(work)).ok()
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Where nobody was answered, that is counted with the request itself.
        self.failed(LEFT);
    }
}
