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
//! | `sight` | what is looked for, and what of what is seen is news |
//! | `memory` | what is remembered of it |
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
//! - Whoever gives a job another chance leaves a note of it in the store, which is looked for as cancels are: it is the only change of a job that
//!   is over.
//! - A job that was recorded lately is found by the time in its id. One whose transaction took long, or whose id was made by a clock that is behind, is
//!   found by a round through the ids of all that is unfinished and not older than a minute, which begins every second, a page at each look.
//!
//! What happened within the last minute and a half is remembered, up to 100,000 ends: whoever fell behind, or comes back and says since when, is told
//! all that has changed since, and whether that is all (`memory`). When more changes between two looks than one look may show, everybody concerned
//! is told that he lags.
//!
//! What is told at its next change only, to those who follow queues or all jobs: a job that was recorded more than a minute after its id was made, or
//! while more than 50,000 others that are younger wait; and one whose recording was under way at the very moment when the first of them began to follow.
//!
//! [`Store::recent`]: orchestrix_store::Store::recent

pub(crate) mod events;
mod feed;
mod leased;
mod listener;
mod memory;
mod message;
mod place;
mod protocol;
mod sight;
pub(crate) mod socket;
#[cfg(test)]
mod tests;
mod watched;

pub(crate) use self::{feed::Feed, place::Places, protocol::take_key};
