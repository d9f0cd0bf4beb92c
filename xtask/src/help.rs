//! `cargo xtask help`: what there is.

use anyhow::Result;

use crate::test;

const TEXT: &str = "\
Developer commands of Orchestrix.

cargo xtask test [--only NAME] [-- NEXTEST ARGUMENTS]
    Runs every check, in this order, and stops at the first that fails: fmt, clippy, docs, tests (cargo nextest),
    doctests, examples. The tests get a private PostgreSQL, which is gone afterwards, however the run ends.

    What is missing is installed first: PostgreSQL with apt-get (as root; no system server is created or started),
    cargo-nextest with cargo install, rustfmt and clippy with rustup. What cannot be installed is named, with the
    command that would do it. Set PG_BIN to use a PostgreSQL that lives in an unusual place.

    --only NAME     one part only; NAME is one of:
                    {names}
                    A crate's name runs that crate's tests and doctests.
    -- ARGUMENTS    go to `cargo nextest run`, to choose tests among other things: cargo xtask test --only store -- claim

cargo xtask bench store postgres [ARGUMENTS]
    Measures the PostgreSQL store, built for release, on a private server with PostgreSQL's own durable defaults.
    ARGUMENTS go to the benchmark.

cargo xtask help
    Prints this.
";

/// Prints the help.
pub(crate) fn run() -> Result<()> {
    print!("{}", TEXT.replace("{names}", &test::names()?.join(", ")));
    Ok(())
}
