//! `cargo xtask help`.

use anyhow::Result;

use crate::test;

const TEXT: &str = "\
Developer commands of Orchestrix.

cargo xtask test [--only NAME] [--seeds N] [-- NEXTEST ARGUMENTS]
    Runs all checks in this order and stops at the first failure: fmt, clippy, docs, tests (cargo nextest), doctests,
    examples. The tests use a private PostgreSQL, which is stopped and removed however the run ends. It is in memory,
    as are the temporary files of the tests, if /dev/shm and the machine have 6 GiB left.

    Missing tools are installed first: PostgreSQL, PgBouncer and Chromium with apt-get (as root; no system service is
    created or started), cargo-nextest with cargo install, rustfmt and clippy with rustup, schemathesis from PyPI under
    target. If a tool cannot be installed, the error names the command to run. Set PG_BIN to use a PostgreSQL outside
    the usual directories.

    --only NAME     run one part; NAME is one of:
                    {names}
                    The name of a crate runs its tests and doctests.
    --seeds N       compare the stores with N random sequences; alone, run nothing else.
                    ORCHESTRIX_SEED=S in the environment replays sequence S.
    -- ARGUMENTS    are passed to `cargo nextest run`, for example a filter: cargo xtask test --only store -- claim

cargo xtask bench store postgres [ARGUMENTS]
cargo xtask bench store sqlite [ARGUMENTS]
    Measures a store in a release build: PostgreSQL on a private server with PostgreSQL's durable defaults, SQLite in
    files under the target directory. ARGUMENTS are passed to the benchmark.

cargo xtask bench width postgres [ARGUMENTS]
cargo xtask bench width sqlite [ARGUMENTS]
    Measures drains of many queues, types and tenants, and past many jobs that the worker cannot claim, each compared
    with a drain of one lane.

cargo xtask bench dependencies postgres [ARGUMENTS]
cargo xtask bench dependencies sqlite [ARGUMENTS]
    Measures how fast a cancelled job cancels a chain of dependents, and how soon a parent unblocks many children.

cargo xtask bench bloat postgres [ARGUMENTS]
    Measures the size of the tables that hold unfinished work, under a steady flow of jobs for minutes. With --snapshot
    a transaction stays open meanwhile, so that vacuum can remove nothing.

cargo xtask bench worker postgres [ARGUMENTS]
cargo xtask bench worker sqlite [ARGUMENTS]
    Measures the worker runtime on a store: jobs per second compared with the store alone, the latency from enqueue to
    the start of a handler, and memory.

cargo xtask bench coordinator [ARGUMENTS]
    Measures coordinators on a private, durable PostgreSQL: throughput and punctuality of promotion and its cost for
    claims, the speed of reaping lost leases, and the queries of three idle nodes.

cargo xtask bench schedules [ARGUMENTS]
    Measures schedules on such a server: the cost of very many for the leader, and how soon very many fire at once.

cargo xtask bench http [ARGUMENTS]
    Measures `orchestrix server` on such a server, with wrk as the load generator (installed if missing): enqueues
    compared with the library, reads, enqueues under overload, and the memory of a million requests and of 5,000 long
    polls.

cargo xtask bench live [ARGUMENTS]
    Measures live updates: a server and a worker, on a private PostgreSQL and on SQLite, with jobs at a steady rate and
    many subscribers.

cargo xtask bench admin [ARGUMENTS]
    Measures every list of the admin and client API with every filter, over ten million finished and a million pending
    jobs on such a server. With --plans DIR it writes the query plans there.

cargo xtask mutants [NAME …]
    Applies known bugs to a copy of the tree, one at a time, and runs the tests, which must fail; prints which did.
    NAME selects the mutants whose names contain it. Each takes a minute or two.

cargo xtask chaos leader [--minutes N]
    Kills, stops, cuts off and drains the leader of three nodes, and kills their database, a private and durable
    PostgreSQL, at random for 5 or N minutes, while jobs become due and leases expire. Prints how soon another node led
    each time. Fails if two nodes wrote in one epoch, or if a job was not promoted or reaped exactly once.

cargo xtask chaos workers [--minutes N]
    Kills, stops and drains any of eight workers, closes their connections and kills their database, a private and
    durable PostgreSQL, at random for 2 or N minutes, under a load of short, long and failing jobs. Prints how soon jobs
    ran again each time. Fails if an acknowledged job was lost, ran twice without cause, or was changed by a worker that
    had lost its lease.

cargo xtask chaos schedules [--minutes N]
    Injects the faults of `chaos leader` for 5 or N minutes while 150 schedules are due every second and 36 every twelve
    seconds, with each misfire policy. Prints how soon schedules fired again each time and the outcomes of their nominal
    times. Fails if a nominal time is not in the ledger exactly once, or does not have the jobs that its policy demands.

cargo xtask help
    Prints this text.
";

/// Prints the help.
pub(crate) fn run() -> Result<()> {
    print!("{}", TEXT.replace("{names}", &test::names()?.join(", ")));
    Ok(())
}
