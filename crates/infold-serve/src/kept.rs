use std::sync::Arc;

use infold_wire::Reply;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::metrics::Metrics;
use crate::{DeskError, Exchange};

/// An exchange that ends in one way or another: what is forgotten has failed.
pub(crate) struct Kept {
    exchange: Option<Exchange>,
    metrics: Arc<Metrics>,
}

/// Why there is no reply when nobody waits for it.
const LEFT: &str = "the client went away";

impl Kept {
    pub fn new(exchange: Exchange, metrics: Arc<Metrics>) -> Kept {
        Kept {
            exchange: Some(exchange),
            metrics,
        }
    }

    /// Looks at the exchange.
    pub fn look<T>(&self, look: impl FnOnce(&Exchange) -> T) -> Option<T> {
        self.exchange.as_ref().map(look)
    }

    /// Does something with the exchange where it may take its time.
    pub async fn work<T: Send + 'static>(
        mut self,
        what: &'static str,
        work: impl FnOnce(&mut Exchange) -> Result<T, DeskError> + Send + 'static,
    ) -> (Kept, Option<T>) {
        let metrics = Arc::clone(&self.metrics);
        let worked = spawn_blocking(move || {
            let done = self.exchange.as_mut().map(work);
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
                let exchange = None;
                (Kept { exchange, metrics }, None)
            }
        }
    }

    /// Records a whole reply.
    pub fn record(mut self, reply: Reply) -> JoinHandle<()> {
        let exchange = self.exchange.take();
        spawn_blocking(move || {
            let recorded = exchange.map(|mut exchange| exchange.record(reply));
            self.metrics.replied(matches!(recorded, Some(Ok(()))));
            if let Some(Err(error)) = recorded {
                self.tell("record", &error);
            }
        })
    }

    /// Nobody is left to hear the reply.
    pub fn left(mut self) {
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
        if why == LEFT {
            self.metrics.disconnected();
        }
        let (metrics, why) = (Arc::clone(&self.metrics), why.to_owned());
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
        tracing::error!(error = %error, what, "passed through unrecorded");
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.failed(LEFT);
    }
}
