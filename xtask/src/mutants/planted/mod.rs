//! The mutants: each changes a few tokens in a copy of the tree and breaks one guarantee of the product. The test
//! suites of the named packages run until one test fails.

mod live;
mod postgres;
mod server;
mod sqlite;
mod worker;

/// A known bug, as edits of the source.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// Its name, for selection on the command line.
    pub(crate) name: &'static str,
    /// What the mutated code does wrong.
    pub(crate) bug: &'static str,
    /// The edits that introduce it.
    pub(crate) edits: &'static [Edit],
    /// The packages whose tests must fail.
    pub(crate) packages: &'static [&'static str],
}

/// Replaces every occurrence of `from` in one file; there must be at least one.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) file: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

const fn edit(file: &'static str, from: &'static str, to: &'static str) -> Edit {
    Edit { file, from, to }
}

/// All mutants.
pub(crate) fn all() -> impl Iterator<Item = &'static Mutant> {
    [postgres::MUTANTS, sqlite::MUTANTS, worker::MUTANTS, server::MUTANTS, live::MUTANTS].into_iter().flatten()
}
