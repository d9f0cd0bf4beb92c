//! Bugs in the runtime of workers.

use super::{Mutant, edit};

const WORKER: &[&str] = &["orchestrix-worker"];

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "worker-leases-not-renewed",
        bug: "no lease is ever due to be renewed",
        edits: &[edit(
            "crates/worker/src/lease.rs",
            "if due <= horizon.min(now + lease.context.lease() / 8) && tokens.len() < MAX_TOKENS {",
            "if due <= horizon.min(now + lease.context.lease() / 8) && tokens.len() > MAX_TOKENS {",
        )],
        packages: WORKER,
    },
    Mutant {
        name: "worker-shares-the-applications-thread",
        bug: "all that a worker does is on the runtime that handlers may block",
        edits: &[edit(
            "crates/worker/src/keeper.rs",
            "let drained = runtime.block_on(keep(",
            "let drained = shop.application.clone().block_on(keep(",
        )],
        packages: WORKER,
    },
    Mutant {
        name: "worker-outcomes-forgotten",
        bug: "an outcome that cannot be told at once is forgotten",
        edits: &[edit(
            "crates/worker/src/complete.rs",
            "            pause.warn_once(&error, items.len());\n",
            "            pause.warn_once(&error, items.len());\n            return;\n",
        )],
        packages: WORKER,
    },
    Mutant {
        name: "worker-shutdown-keeps-jobs",
        bug: "jobs that are left at a shutdown are not handed back",
        edits: &[edit(
            "crates/worker/src/execute.rs",
            "        (Some(_) | None, _) => Outcome::Release,",
            "        (Some(_) | None, _) => return None,",
        )],
        packages: WORKER,
    },
    Mutant {
        name: "worker-takes-jobs-of-the-dead",
        bug: "a handler whose lease was lost tells its outcome all the same, and is not stopped",
        edits: &[edit(
            "crates/worker/src/lease.rs",
            "                    lease.context.stop().ask(StopReason::LeaseLost);\n",
            "",
        )],
        packages: WORKER,
    },
];
