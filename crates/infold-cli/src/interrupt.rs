//! Signals: Ctrl-C and requests to end, for commands that clean up before they end, and the limit of file sizes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::{Failure, Kind};

/// Lets a write beyond the limit of file sizes (`ulimit -f`) fail like one on a full disk, instead of ending the process.
///
/// Any handler does that. Unlike an ignored signal it does not pass on to the commands that are started.
pub fn outlive_file_size_limit() {
    let signal = rustix::process::Signal::XFSZ.as_raw();
    // Without it the process ends in the middle of a write, which loses nothing that was acknowledged.
    let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
}

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
