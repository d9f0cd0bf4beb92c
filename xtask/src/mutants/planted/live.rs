//! Bugs in what those are told who follow jobs.

use super::{Mutant, edit};

const SERVER: &[&str] = &["orchestrix-server"];

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "live-ends-not-looked-up",
        bug: "what is leased no more and shows nowhere else is never told",
        edits: &[edit(
            "crates/server/src/live/sight.rs",
            "let mut ids = self.leased.take_gone(MAX_CHANGES);",
            "let mut ids: Vec<JobId> = Vec::new();",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-lag-not-told",
        bug: "nobody hears that there was more than a look could show",
        edits: &[edit("crates/server/src/live/sight.rs", "        self.missed |= missed && !first;\n", "")],
        packages: SERVER,
    },
    Mutant {
        name: "live-everything-is-a-lag",
        bug: "ten thousand jobs that are recorded at once are said to be more than can be told",
        edits: &[edit(
            "crates/memory/src/recent.rs",
            "show(ENQUEUED_FACTOR * limit, ",
            "show(ENQUEUED_FACTOR * limit / 5, ",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-older-after-newer",
        bug: "whoever begins to follow hears of what came before, after he was told how things stand",
        edits: &[edit(
            "crates/server/src/live/listener.rs",
            "number.is_some_and(|number| batch.number > *number)",
            "number.is_some()",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-late-commits-not-found",
        bug: "a job that was recorded in a long transaction is told at its next change only",
        edits: &[edit(
            "crates/server/src/live/sight.rs",
            "        ids.extend(recent.ids.into_iter().filter(|id| self.memory.get(*id).is_none()));\n",
            "",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-second-chance-not-told",
        bug: "a job that was given another chance stays failed for those who follow all jobs",
        edits: &[edit(
            "crates/server/src/live/sight.rs",
            "redriven_since: Some(now - if reaches { REACH } else { SLACK }),",
            "redriven_since: None,",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-ends-forgotten-in-a-lag",
        bug: "whoever fell behind or comes back hears what runs, and nothing of what ended meanwhile",
        edits: &[edit(
            "crates/server/src/live/listener.rs",
            "(*runs || *noted >= since) && his(news)",
            "*runs && his(news)",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-all-is-said-to-be-all",
        bug: "whoever fell behind is not told that more had happened than is remembered",
        edits: &[edit(
            "crates/server/src/live/sight.rs",
            "self.now.and_then(|now| self.memory.lacks(since, now))",
            "self.now.and_then(|now| self.memory.lacks(since, now)).filter(|_| false)",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-foreign-jobs-are-told",
        bug: "one who is bound to a tenant hears of others' jobs",
        edits: &[edit(
            "crates/server/src/live/listener.rs",
            "self.tenant.as_ref().is_none_or(|tenant| *tenant == seen.job.tenant)",
            "self.tenant.as_ref().is_none_or(|tenant| *tenant == seen.job.tenant || !tenant.as_str().is_empty())",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-looks-for-nobody",
        bug: "the store is looked at while nobody follows anything",
        edits: &[edit(
            "crates/server/src/live/sight.rs",
            "self.watched.is_empty() && self.broad == 0",
            "self.watched.is_empty() && self.broad > 0",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-key-without-a-share",
        bug: "one key may take all the room for jobs that are followed by their ids",
        edits: &[edit(
            "crates/server/src/live/watched.rs",
            "const SHARE: usize = MOST / 2;",
            "const SHARE: usize = MOST;",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-messages-cost-nothing",
        bug: "one connection may ask for as much as it likes, as often as it likes",
        edits: &[edit(
            "crates/server/src/live/socket.rs",
            "self.costs.take_some(costly.cost(), ",
            "self.costs.take_some(0 * costly.cost(), ",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "live-slow-one-keeps-the-place",
        bug: "one who takes nothing of what is told is waited for",
        edits: &[
            edit(
                "crates/server/src/live/socket.rs",
                "timeout(self.patience, self.socket.feed(",
                "timeout(1_000 * self.patience, self.socket.feed(",
            ),
            edit(
                "crates/server/src/live/socket.rs",
                "let longest = SLOWEST * self.patience;",
                "let longest = 1_000 * SLOWEST * self.patience;",
            ),
        ],
        packages: SERVER,
    },
    Mutant {
        name: "live-silent-one-keeps-the-place",
        bug: "one who does not answer is waited for",
        edits: &[edit("crates/server/src/live/socket.rs", ">= 2 * every", ">= 2_000 * every")],
        packages: SERVER,
    },
    Mutant {
        name: "live-log-without-a-limit",
        bug: "what is read of a log at once has no limit in bytes",
        edits: &[edit("crates/server/src/reader.rs", "if self.bytes < BYTES {", "if self.bytes < usize::MAX {")],
        packages: SERVER,
    },
];
