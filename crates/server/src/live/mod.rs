//! Live updates: whoever follows jobs is told when their status changes.
//!
//! | module | what it owns |
//! |---|---|
//! | `events` | `GET /jobs/{jobId}/events`: one job, as server-sent events |
//! | `socket` | `GET /ws`: many jobs, queues or all, over a WebSocket |
//! | `message` | what is said over it |
//! | `protocol` | keys of pages, which can send them in no other way |
//! | `place` | who may follow, and for how long |
//! | `feed` | the looks at the store, and who hears what they show |
//! | `listener` | one who follows: what he wants and what he was told |
//! | `sight` | what was seen of jobs, and what of that is news |
//! | `watched` | which are followed by their ids, and who brought them |
//! | `leased` | which were seen leased, however many, and which no longer are |
//!
//! Nothing is written when jobs change, and nobody is notified. One task for each server looks at the store every so often (0.2 s) for
//! all WebSockets together, and not at all while there are none. Every look is of one moment and looks follow each other, so what is told
//! of a job comes in order; steps between two looks merge.
//!
//! Jobs that are followed by their ids are asked for by them, all at once: nothing of them can be missed. For queues and all jobs there are
//! no ids, and the store shows what is leased, what was recorded and what ended lately ([`Store::recent`]). Why that misses no end:
//!
//! - Whatever is leased is shown: a page at each look, and all of it in a round of looks, as long as it is at most 100,000 jobs. What a whole
//!   round did not show is looked up by its id: jobs that ended, were handed back or will be tried again. An end that began before the
//!   last round did is of a job that this round showed; any later one is among what ended since half a second before that round. What is shown
//!   twice is told once.
//! - Only a cancel ends a job that is not leased. It counts from the beginning of its transaction, which may have waited for a lock: what was
//!   cancelled is looked for a minute back, every five seconds, which is longer than any statement of a store may take.
//!
//! What leaves no such trace, and is told at the next change only, to those who follow queues or all jobs: a job that was recorded in a
//! transaction which took over two seconds, or under an id made by a clock that is as much behind the database's; and a job that was
//! dead or cancelled for more than a minute and is given another chance through another process. (Through this one it is told at once, and
//! within that minute it is found by looking again.) When more changes between two looks than one look may show, everybody concerned is
//! told that he lags.
//!
//! [`Store::recent`]: orchestrix_store::Store::recent

pub(crate) mod events;
mod feed;
mod leased;
mod listener;
mod message;
mod place;
mod protocol;
mod sight;
pub(crate) mod socket;
#[cfg(test)]
mod tests;
mod watched;

pub(crate) use self::{feed::Feed, place::Places, protocol::take_key};
