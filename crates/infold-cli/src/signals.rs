//! The system's influence on this process: signals that end it, the limit of file sizes, and protection from being
//! traced.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{CliError, CliResult, Exit};

/// Makes a write beyond the limit of file sizes (`ulimit -f`) fail instead of ending the process.
///
/// A handler is enough. Unlike an ignored signal it is not inherited by child processes.
pub fn handle_file_size_limit() {
    let signal = rustix::process::Signal::XFSZ.as_raw();
    // Without a handler the process ends during a write, which loses nothing that was acknowledged.
    let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
}

/// Protects the memory of this process, keys included, from other processes of the same user: they can neither read its
/// environment in `/proc` nor trace it. The processes of an administrator can.
pub fn hide_memory() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // If a system forbids the call, the process simply stays unprotected.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Requests to end the process: SIGINT and SIGTERM.
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Starts to listen on a runtime.
    pub fn listen(runtime: &Runtime) -> io::Result<StopSignals> {
        let _guard = runtime.enter();
        Ok(StopSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for a signal.
    pub async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for a signal and ends the process without waiting for unfinished work.
    ///
    /// Everything recorded stays, as it does when the process is killed.
    pub async fn exit_on_next(mut self) -> ! {
        self.recv().await;
        std::process::exit(Exit::Interrupted as i32)
    }
}

/// Records that a signal asked the command to end.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts to listen; a second signal ends the process at once.
    pub fn listen() -> Interrupt {
        let flag = Arc::new(AtomicBool::new(false));
        let seen = flag.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        // Without a runtime the signals end the process, which is their default.
        if let Ok(runtime) = runtime
            && let Ok(mut signals) = StopSignals::listen(&runtime)
        {
            std::thread::spawn(move || {
                runtime.block_on(async {
                    signals.recv().await;
                    seen.store(true, Ordering::Relaxed);
                    signals.exit_on_next().await
                })
            });
        }
        Interrupt(flag)
    }

    /// Returns whether a signal has come.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails once a signal has come.
    pub fn check(&self) -> CliResult {
        if self.is_set() {
            return Err(CliError::interrupted("interrupted").hint("nothing was stored"));
        }
        Ok(())
    }
}
