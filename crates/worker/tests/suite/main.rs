//! The worker: in one process, and as many.

mod processes;
mod runtime;
