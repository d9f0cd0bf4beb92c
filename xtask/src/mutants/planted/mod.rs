//! The bugs that are planted, each a few words changed in a copy of the tree. Each breaks a promise that the product is
//! built on, and every test suite of the crates it names runs until one test fails.

mod live;
mod postgres;
mod server;
mod sqlite;
mod worker;

/// A bug to plant.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// What it is called.
    pub(crate) name: &'static str,
    /// What is wrong with it.
    pub(crate) bug: &'static str,
    /// What is changed.
    pub(crate) edits: &'static [Edit],
    /// The packages whose tests must notice.
    pub(crate) packages: &'static [&'static str],
}

/// A change of one file: every occurrence of `from`, of which there must be one at least.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) file: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

const fn edit(file: &'static str, from: &'static str, to: &'static str) -> Edit {
    Edit { file, from, to }
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Mutant> {
    [postgres::MUTANTS, sqlite::MUTANTS, worker::MUTANTS, server::MUTANTS, live::MUTANTS].into_iter().flatten()
}
