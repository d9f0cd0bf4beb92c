//! Live updates: clients subscribe to jobs and receive every change of their status.
//!
//! | module | responsibility |
//! |---|---|
//! | `job_events` | `GET /jobs/{jobId}/events`: one job, as server-sent events |
//! | `websocket` | `GET /ws`: many jobs, whole queues or all jobs, over a WebSocket |
//! | `message` | the JSON messages of the WebSocket |
//! | `subprotocol` | API keys of web pages, which can send them only as a WebSocket subprotocol |
//! | `subscription_quota` | how many subscriptions may be open, in total and per key |
//! | `feed` | polls the store and publishes change batches to all subscribers |
//! | `subscriber` | one WebSocket's subscriptions: filters batches, resyncs after a lag |
//! | `tracker` | decides what to poll for, and which results are changes |
//! | `replay_buffer` | the last known status of each job, for change detection and resyncs |
//! | `watched_jobs` | the jobs that are subscribed to by id |
//! | `lease_scan` | the leased jobs, scanned page by page |
//!
//! # Polling
//!
//! A change of a job writes nothing extra and notifies no server. Instead one task per server polls the store every
//! 0.2 s on behalf of all WebSockets together; with no subscriber it does not poll. Each poll is a consistent read,
//! and polls run one after another, so the updates of a job arrive in order. Several changes between two polls appear
//! as one. The task publishes each poll's changes as numbered **change batches** on a broadcast channel, and each
//! subscriber picks its own updates out of them.
//!
//! # What a poll reads
//!
//! Jobs that are subscribed to by id are read by id, so no change is missed. A subscription to a queue or to all jobs
//! (a *broad* subscription) has no ids. For those [`JobStore::recent_changes`] returns what is leased, was enqueued,
//! ended, or was redriven lately. No change is missed, because:
//!
//! - **Leased jobs** are read completely, one page per poll. A scan over all pages covers up to 100,000 jobs. A job
//!   that was leased and is missing from a complete scan is read by id: it ended, was released, or will be retried.
//! - **Ended jobs**: a job whose end began before the last scan did was leased during that scan, so the scan covers
//!   it. Later ends are read directly, from half a second before the scan began. A change that is read twice is
//!   published once.
//! - **Cancelled jobs**: only a cancel ends a job that is not leased. Its timestamp is the start of its transaction,
//!   which may have waited for a lock. So every five seconds a poll reads cancels of the last minute, which is longer
//!   than any statement of a store may take.
//! - **Redriven jobs** leave a note in the store, because a redrive is the only change of a finished job. Notes are
//!   read like cancels.
//! - **Enqueued jobs** are found by the timestamp in their id. The commit may be late, or the clock that made the id
//!   may be behind. So every second a scan begins over the ids of all unfinished jobs of the last minute, one page per
//!   poll, and unknown ids are read.
//!
//! A subscriber to a queue or all jobs does not see such a job until its next change: one that was committed more than
//! a minute after its id was made, one that is older than 50,000 other waiting jobs, or one that was being committed
//! when the first broad subscription began.
//!
//! # Lag, resync and resume
//!
//! A subscriber that reads too slowly loses batches when the channel's buffer overflows. A poll can also find more
//! changes than it may return. In both cases the subscriber receives `lagged`, and then a **resync**: all running
//! jobs, all jobs that changed since its last event, and its watched ids, ending with `synced`. A client that
//! reconnects gets the same by naming the time of its last event (`since`).
//!
//! The resync is served from the **replay buffer**, which holds the changes of the last 90 s, at most 100,000 finished
//! and 50,000 waiting jobs. It knows what it has dropped: if a resync cannot be complete, `synced` says from which
//! time on it is.
//!
//! [`JobStore::recent_changes`]: orchestrix_store::JobStore::recent_changes

mod feed;
pub(crate) mod job_events;
mod lease_scan;
mod message;
mod replay_buffer;
mod subprotocol;
mod subscriber;
mod subscription_quota;
#[cfg(test)]
mod tests;
mod tracker;
mod watched_jobs;
pub(crate) mod websocket;

pub(crate) use self::{feed::ChangeFeed, subprotocol::extract_key, subscription_quota::SubscriptionQuota};
