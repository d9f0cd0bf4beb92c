//! Bugs in live updates.

use super::{Mutant, edit};

const SERVER: &[&str] = &["orchestrix-server"];

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "live-ended-leases-not-read",
        bug: "a job whose only trace is that its lease ended is never published",
        edits: &[edit(
            "crates/server/src/live/tracker.rs",
            "let mut lookups = self.leases.take_ended(MAX_CHANGES);",
            "let mut lookups: Vec<JobId> = Vec::new();",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-overflow-not-reported",
        bug: "subscribers do not learn that a poll found more changes than it could return",
        edits: &[edit("crates/server/src/live/tracker.rs", "        self.overflowed |= overflowed && !first;\n", "")],
        packages: SERVER,
    },
    Mutant {
        name: "live-every-batch-is-a-lag",
        bug: "ten thousand jobs that are enqueued at once are reported as a lag",
        edits: &[edit(
            "crates/memory/src/changes.rs",
            "add(ENQUEUED_FACTOR * limit, ",
            "add(ENQUEUED_FACTOR * limit / 5, ",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-older-update-after-newer",
        bug: "a new subscription receives older updates after its initial state",
        edits: &[edit(
            "crates/server/src/live/subscriber.rs",
            "number.is_some_and(|number| batch.number > *number)",
            "number.is_some()",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-late-commits-not-found",
        bug: "a job that was enqueued in a long transaction is not published before its next change",
        edits: &[edit(
            "crates/server/src/live/tracker.rs",
            "        lookups.extend(recent.ids.into_iter().filter(|id| self.replay.get(*id).is_none()));\n",
            "",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-redrive-not-published",
        bug: "a redriven job stays failed for subscribers to all jobs",
        edits: &[edit(
            "crates/server/src/live/tracker.rs",
            "redriven_since: Some(now - if long { LONG_LOOKBACK } else { LOOKBACK }),",
            "redriven_since: None,",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-resync-without-finished-jobs",
        bug: "a resync contains the running jobs, but not the ones that finished meanwhile",
        edits: &[edit(
            "crates/server/src/live/subscriber.rs",
            "(entry.running || entry.changed_at >= since) && covers(&entry.update)",
            "entry.running && covers(&entry.update)",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-incomplete-resync-said-to-be-complete",
        bug: "a resync claims to be complete though the replay buffer has dropped changes",
        edits: &[edit(
            "crates/server/src/live/tracker.rs",
            "self.now.and_then(|now| self.replay.incomplete_until(since, now))",
            "self.now.and_then(|now| self.replay.incomplete_until(since, now)).filter(|_| false)",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-other-tenants-jobs-published",
        bug: "a subscriber that is bound to a tenant receives updates of other tenants' jobs",
        edits: &[edit(
            "crates/server/src/live/subscriber.rs",
            "self.tenant.as_ref().is_none_or(|tenant| *tenant == status.job.tenant)",
            "self.tenant.as_ref().is_none_or(|tenant| *tenant == status.job.tenant || !tenant.as_str().is_empty())",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-polls-without-subscribers",
        bug: "the store is polled while there is no subscription",
        edits: &[
            edit(
                "crates/server/src/live/tracker.rs",
                "self.watched.is_empty() && self.broad_subscribers == 0",
                "self.watched.is_empty() && self.broad_subscribers == usize::MAX",
            ),
            edit("crates/server/src/live/tracker.rs", "self.is_broad() && self.now.is_none()", "self.now.is_none()"),
            edit("crates/server/src/live/tracker.rs", "self.now.filter(|_| self.is_broad())?", "self.now?"),
        ],
        packages: SERVER,
    },
    Mutant {
        name: "live-key-without-a-share",
        bug: "one key may use the whole capacity for watched jobs",
        edits: &[edit(
            "crates/server/src/live/watched_jobs.rs",
            "const CAPACITY_PER_KEY: usize = CAPACITY / 2;",
            "const CAPACITY_PER_KEY: usize = CAPACITY;",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-messages-cost-nothing",
        bug: "the messages of a connection are not rate limited",
        edits: &[edit(
            "crates/server/src/live/websocket.rs",
            "self.rate_limiter.take_many(received.cost(), ",
            "self.rate_limiter.take_many(0 * received.cost(), ",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-slow-client-stays-connected",
        bug: "a client that accepts no data is not disconnected",
        edits: &[edit(
            "crates/server/src/live/websocket.rs",
            "let write_timeout = app.options.subscription_write_timeout;",
            "let write_timeout = 1_000 * app.options.subscription_write_timeout;",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-silent-client-stays-connected",
        bug: "a client that answers no pings is not disconnected",
        edits: &[edit("crates/server/src/live/websocket.rs", ">= 2 * ping_interval", ">= 2_000 * ping_interval")],
        packages: SERVER,
    },
    Mutant {
        name: "live-log-without-a-limit",
        bug: "a page of a log has no limit in bytes",
        edits: &[edit("crates/server/src/reader.rs", "if self.bytes < MAX_BYTES {", "if self.bytes < usize::MAX {")],
        packages: SERVER,
    },
];
