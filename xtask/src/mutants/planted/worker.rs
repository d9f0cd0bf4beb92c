//! Bugs in the worker runtime.

use super::{Mutant, edit};

const WORKER: &[&str] = &["orchestrix-worker"];

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "worker-leases-not-renewed",
        bug: "the worker never extends a lease",
        edits: &[edit(
            "crates/worker/src/lease.rs",
            "if due <= horizon.min(now + lease.context.lease() / 8) && tokens.len() < MAX_TOKENS {",
            "if due <= horizon.min(now + lease.context.lease() / 8) && tokens.len() > MAX_TOKENS {",
        )],
        packages: WORKER,
    },
    Mutant {
        name: "worker-shares-the-applications-thread",
        bug: "the control thread uses the application's runtime, which handlers may block",
        edits: &[edit(
            "crates/worker/src/control_thread.rs",
            "let drained = runtime.block_on(control(",
            "let drained = shared.application.clone().block_on(control(",
        )],
        packages: WORKER,
    },
    Mutant {
        name: "worker-outcomes-forgotten",
        bug: "an outcome that cannot be reported at once is dropped",
        edits: &[edit(
            "crates/worker/src/outcome_reporter.rs",
            "            backoff.warn_once(&error, reports.len());\n",
            "            backoff.warn_once(&error, reports.len());\n            return;\n",
        )],
        packages: WORKER,
    },
    Mutant {
        name: "worker-shutdown-keeps-jobs",
        bug: "a shutdown does not release the jobs that still run",
        edits: &[edit(
            "crates/worker/src/execute.rs",
            "        (Some(_) | None, _) => Outcome::Release,",
            "        (Some(_) | None, _) => return None,",
        )],
        packages: WORKER,
    },
    Mutant {
        name: "worker-takes-jobs-of-the-dead",
        bug: "a handler whose lease is lost is not stopped and still reports its outcome",
        edits: &[edit(
            "crates/worker/src/lease.rs",
            "                    lease.context.stop().request(StopReason::LeaseLost);\n",
            "",
        )],
        packages: WORKER,
    },
];
