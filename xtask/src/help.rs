//! `cargo xtask help`: what there is.

use anyhow::Result;

use crate::test;

const TEXT: &str = "\
Developer commands of Orchestrix.

cargo xtask test [--only NAME] [--seeds N] [-- NEXTEST ARGUMENTS]
    Runs every check, in this order, and stops at the first that fails: fmt, clippy, docs, tests (cargo nextest),
    doctests, examples. The tests get a private PostgreSQL, which is gone afterwards, however the run ends.

    What is missing is installed first: PostgreSQL with apt-get (as root; no system server is created or started),
    cargo-nextest with cargo install, rustfmt and clippy with rustup, schemathesis from PyPI under target. What cannot
    be installed is named, with the command that would do it. Set PG_BIN to use a PostgreSQL that lives in an unusual place.

    --only NAME     one part only; NAME is one of:
                    {names}
                    A crate's name runs that crate's tests and doctests.
    --seeds N       compare the stores by N random sequences; with nothing else beside it, do only that.
                    ORCHESTRIX_SEED=S in the environment plays sequence S again.
    -- ARGUMENTS    go to `cargo nextest run`, to choose tests among other things: cargo xtask test --only store -- claim

cargo xtask bench store postgres [ARGUMENTS]
cargo xtask bench store sqlite [ARGUMENTS]
    Measures a store, built for release: that of PostgreSQL on a private server with PostgreSQL's own durable defaults,
    that of SQLite in files under the target directory. ARGUMENTS go to the benchmark.

cargo xtask bench worker postgres [ARGUMENTS]
cargo xtask bench worker sqlite [ARGUMENTS]
    Measures the worker runtime on a store: jobs run and finished beside what the store does alone, the time from enqueue
    to the start of a handler, and the memory it takes.

cargo xtask bench coordinator [ARGUMENTS]
    Measures coordinators on a private, durable PostgreSQL: how fast and how punctually due jobs are promoted and what
    that costs claims meanwhile, how fast lost leases are taken back, and what three idle nodes ask of the database.

cargo xtask bench schedules [ARGUMENTS]
    Measures schedules on such a server: what very many cost the node that leads, and how soon very many at once are fired.

cargo xtask bench http [ARGUMENTS]
    Measures `orchestrix server` on such a server, asked by wrk, which is installed when it is missing: jobs accepted beside
    what the library records, jobs looked at, jobs accepted when far too many clients come, and the memory of a million
    requests and of 5,000 long polls.

cargo xtask bench live [ARGUMENTS]
    Measures live updates: a server and a worker on a private PostgreSQL and on SQLite, jobs at a steady rate, and those who follow them.

cargo xtask bench admin [ARGUMENTS]
    Asks for every page that operators and clients look at, with every filter, over ten million finished and a million pending
    jobs on such a server, and prints how long each takes. With --plans DIR it leaves the plans of the statements there.

cargo xtask mutants [NAME …]
    Plants known bugs in a copy of the tree, one at a time, and runs the tests, which must notice; prints which did.
    NAME chooses those whose names hold it. Takes a minute or two for each.

cargo xtask chaos leader [--minutes N]
    Kills, stops, cuts off and asks to end whoever leads of three nodes, and kills their database, a private and durable
    PostgreSQL, at random, for 5 minutes or N, while jobs become due and leases run out. Prints how soon another led each
    time, and fails if two ever wrote in one epoch, or if a job was promoted or taken back other than once.

cargo xtask chaos workers [--minutes N]
    Kills, stops and asks to end any of eight workers, ends their connections and kills their database, a private and
    durable PostgreSQL, at random, for 2 minutes or N, while short, long and failing jobs keep coming. Prints how soon jobs
    went on each time, and fails if an acknowledged job was lost, ran twice without a reason, or was changed by a worker
    that had lost it.

cargo xtask chaos schedules [--minutes N]
    Does to whoever leads of three nodes, and to their database, what `chaos leader` does, for 5 minutes or N, while 150
    schedules are due every second and 36 every twelve, with each rule for what is late. Prints how soon schedules fired again
    each time and what became of their times, and fails if a nominal time was not in the ledger once, or did not have the one
    job, or none, that its rule says.

cargo xtask help
    Prints this.
";

/// Prints the help.
pub(crate) fn run() -> Result<()> {
    print!("{}", TEXT.replace("{names}", &test::names()?.join(", ")));
    Ok(())
}
