//! Progress on standard error.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar with one step per measurement, and a line per result.
#[derive(Debug, Clone)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(steps: usize) -> Self {
        let bar = ProgressBar::new(steps as u64);
        let style = ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {pos}/{len} {spinner} {msg}");
        bar.set_style(style.expect("the template is fixed and right"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Shows the current measurement.
    pub(crate) fn step(&self, what: impl Into<String>) {
        self.0.set_message(what.into());
    }

    /// Counts a measurement.
    pub(crate) fn done(&self) {
        self.0.inc(1);
    }

    /// Prints a line, also without a terminal.
    pub(crate) fn note(&self, line: &str) {
        self.0.suspend(|| eprintln!("{line}"));
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
