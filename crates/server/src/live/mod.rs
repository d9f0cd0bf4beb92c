//! Live updates: whoever follows jobs is told when their status changes.
//!
//! | module | what it owns |
//! |---|---|
//! | `events` | `GET /jobs/{jobId}/events`: one job, as server-sent events |
//! | `socket` | `GET /ws`: many jobs, queues or all, over a WebSocket |
//! | `message` | what is said over it |
//! | `feed` | the looks at the store, and who hears what they show |
//! | `listener` | one who follows: what he wants and what he was told |
//! | `sight` | what was seen of jobs, and what of that is news |
//!
//! Nothing is written when jobs change, and nobody is notified. One task for each server looks at the store every so often (0.2 s) for
//! all WebSockets together, and not at all while there are none. Every look is of one moment and looks follow each other, so what is told
//! of a job comes in order; steps between two looks merge.
//!
//! Jobs that are followed by their ids are asked for by them, all at once: nothing of them can be missed. For queues and all jobs there are
//! no ids, and the store shows what is leased, what was recorded and what ended lately ([`Store::recent`]). Why that misses no end:
//!
//! - An end whose transaction is short is among what ended since half a second before the last look, or, once a second, since two
//!   seconds before. What is shown twice is told once.
//! - An end whose transaction is longer shows the job as leased until it commits. Then the job is shown no more, and whatever was seen
//!   leased and is not shown is looked up by its id. So are jobs that were handed back or will be tried again.
//!
//! What leaves no such trace, and is told at the next change only, to those who follow queues or all jobs: a job that was recorded in a
//! caller's transaction which took over two seconds, or under an id made by a clock that is as much behind the database's; and a job that was
//! dead or cancelled for more than a minute and is given another chance through another process. (Through this one it is told at once, and
//! within that minute it is found by looking again.) When more changes between two looks than one look may show, everybody concerned is
//! told that he lags.
//!
//! [`Store::recent`]: orchestrix_store::Store::recent

pub(crate) mod events;
mod feed;
mod listener;
mod message;
mod sight;
pub(crate) mod socket;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use orchestrix_api::Code;
use tokio::sync::OwnedSemaphorePermit;

pub(crate) use feed::Feed;

use crate::{App, refusal::Refusal};

// The right to follow jobs; held for as long as one does.
fn place(app: &App) -> Result<OwnedSemaphorePermit, Refusal> {
    let too_many = |_| Refusal::new(Code::RateLimited, "more follow jobs than this server allows; try again later");
    Arc::clone(&app.live).try_acquire_owned().map_err(too_many)
}
