//! Records how an exchange ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use infold_wire::Reply;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::headers::ClientKeys;
use crate::metrics::Metrics;
use crate::{ConversationError, Exchange};

/// Records how an exchange ends: as failed if it is dropped before a reply is recorded.
pub(crate) struct ExchangeRecorder {
    exchange: Option<Box<Exchange>>,
    metrics: Arc<Metrics>,
    keys: Arc<ClientKeys>,
}

/// Why there is no reply when nobody waits for it.
const CLIENT_LEFT: &str = "the client went away";

impl ExchangeRecorder {
    pub fn new(
        exchange: Box<Exchange>,
        metrics: Arc<Metrics>,
        keys: Arc<ClientKeys>,
    ) -> ExchangeRecorder {
        ExchangeRecorder {
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
        work: impl FnOnce(&mut Exchange) -> Result<T, ConversationError> + Send + 'static,
    ) -> (ExchangeRecorder, Option<T>) {
        let (metrics, keys) = (Arc::clone(&self.metrics), Arc::clone(&self.keys));
        let worked = spawn_blocking(move || {
            let done = self.exchange.as_deref_mut().map(work);
            (self, done)
        });
        match worked.await {
            Ok((recorder, Some(Ok(done)))) => (recorder, Some(done)),
            Ok((recorder, Some(Err(error)))) => {
                recorder.tell(what, &error);
                (recorder, None)
            }
            Ok((recorder, None)) => (recorder, None),
            // It panicked, and took the exchange with it.
            Err(_) => {
                metrics.failed(what);
                let gone = ExchangeRecorder {
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
        let quick = exchange.can_record_inline(&reply);
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
        catch_panic(record);
        None
    }

    /// Nobody is left to hear the reply that had begun.
    pub fn left(mut self) {
        self.metrics.disconnected();
        self.failed(CLIENT_LEFT);
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
            if let Err(error) = exchange.fail(&why) {
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

    fn tell(&self, what: &'static str, error: &ConversationError) {
        self.metrics.failed(what);
        tracing::error!(error = %error, what, "an exchange could not be recorder, or not folded");
    }
}

/// What comes of work that is done on the spot; nothing if it panicked. The client must not notice.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    // What it had in its hands is gone, or behind locks whose content is checked when it is used.
    catch_unwind(AssertUnwindSafe(work)).ok()
}

impl Drop for ExchangeRecorder {
    fn drop(&mut self) {
        // Where nobody was answered, that is counted with the request itself.
        self.failed(CLIENT_LEFT);
    }
}
