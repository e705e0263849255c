//! Ctrl-C and requests to end, for commands that clean up before they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::{Failure, Kind};

/// Remembers that somebody asked the command to end.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts to listen; a second request ends the process at once.
    pub fn listen() -> Interrupt {
        let told = Arc::new(AtomicBool::new(false));
        let tell = told.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        // Without a runtime the signals end the process, as they do by themselves.
        if let Ok(runtime) = runtime {
            let both = {
                let _inside = runtime.enter();
                (
                    signal(SignalKind::interrupt()),
                    signal(SignalKind::terminate()),
                )
            };
            if let (Ok(mut interrupt), Ok(mut terminate)) = both {
                std::thread::spawn(move || {
                    runtime.block_on(async {
                        loop {
                            tokio::select! {
                                _ = interrupt.recv() => {}
                                _ = terminate.recv() => {}
                            }
                            if tell.swap(true, Ordering::Relaxed) {
                                std::process::exit(Kind::Interrupted as i32);
                            }
                        }
                    });
                });
            }
        }
        Interrupt(told)
    }

    /// Fails once somebody asked the command to end.
    pub fn check(&self) -> Result<(), Failure> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Failure::new(Kind::Interrupted, "interrupted").hint("nothing was kept"));
        }
        Ok(())
    }
}
