//! Ctrl-C: the running step receives it, too, and shuts down; this process waits for that.
//!
//! An immediate exit would stop the server of tests that are still shutting down.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result, bail};
use signal_hook::consts::SIGINT;
use signal_hook::flag;

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Makes Ctrl-C wait for the running step.
pub(crate) fn watch() -> Result<()> {
    flag::register(SIGINT, Arc::clone(&INTERRUPTED)).context("cannot handle Ctrl-C")?;
    Ok(())
}

/// Fails if Ctrl-C was pressed, so that no further step starts.
pub(crate) fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}
