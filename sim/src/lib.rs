//! Compares all stores by random sequences: the same steps, the same answers.
//!
//! The stores promise the same behaviour. The conformance suite checks the promises that were written down. This crate
//! looks for the others: from a seed it generates a sequence of [steps](Step), executes it on an empty store of every
//! kind (memory, SQLite, PostgreSQL) in virtual time, and compares every answer and, every 50 steps, everything that
//! can be read. A difference is a bug in one of the stores, unless `executor` or `observe` documents it as a freedom
//! that the traits permit.
//!
//! # Running it
//!
//! | command | what it does |
//! |---|---|
//! | `cargo xtask test --only sim` | 15 random seeds of 200 steps each, on a private PostgreSQL server |
//! | `cargo xtask test --seeds 50` | 50 random seeds, and no other test |
//! | `ORCHESTRIX_SEED=7 cargo test -p orchestrix-sim --test alike` | one seed; needs `ORCHESTRIX_TEST_POSTGRES` |
//!
//! # Reading a failure
//!
//! A failed sequence is first shrunk to the few steps that still show the difference. The report then contains:
//!
//! 1. the seed;
//! 2. the remaining steps, numbered. A job is `Recent(n)`, the n-th newest at that moment. A lease token is named by
//!    its `age`, because ids differ between stores;
//! 3. the last step or the part of the state in which the answers differ, and the answer of each store around the first
//!    difference. Ids are shown as `#n`, the n-th job of the sequence;
//! 4. the command that repeats the run.
//!
//! Compare the answers with the documentation of the store trait to find the store that is wrong. Then write the
//! shrunk steps down as a test of the conformance suite.
//!
//! # Modules
//!
//! | module | what it does |
//! |---|---|
//! | `step` | steps as data |
//! | `generate` | sequences from seeds |
//! | `wide` | jobs over very many lanes, with which some sequences begin |
//! | `stores` | the stores that are compared |
//! | `executor`, `convert`, `schedule_spec` | executes steps as calls of a store |
//! | `observe` | answers in a comparable form |
//! | `compare` | the first difference |
//! | `shrink` | the few steps that show it |
//!
//! Concurrency is deliberately absent: only sequential calls have one right answer.

pub mod compare;
mod convert;
pub mod executor;
pub mod generate;
pub mod observe;
mod schedule_spec;
pub mod shrink;
pub mod step;
pub mod stores;
mod wide;

pub use compare::{Difference, compare};
pub use generate::generate;
pub use shrink::shrink;
pub use step::Step;
pub use stores::StoreFactory;

/// The number of steps per seed.
pub const STEPS: usize = 200;
/// The maximum number of runs for shrinking a failed sequence.
const MAX_SHRINK_RUNS: usize = 400;

/// A sequence to which the stores give different answers.
#[derive(Debug)]
pub struct Failure {
    /// The steps that remain after shrinking.
    pub steps: Vec<Step>,
    /// The difference that they show.
    pub difference: Difference,
}

/// Executes the sequence of `seed` on all stores. On a difference, shrinks it.
pub async fn check(factories: &[Box<dyn StoreFactory>], seed: u64) -> Result<(), Failure> {
    let mut steps = generate(seed, STEPS);
    let Some(mut difference) = compare(factories, &steps).await else { return Ok(()) };
    eprintln!("seed {seed}: the stores differ {difference}shrinking the sequence…");
    steps.truncate(difference.steps);
    let steps = shrink(steps, MAX_SHRINK_RUNS, Step::simpler, async |steps: &[Step]| {
        let found = compare(factories, steps).await;
        found.map(|found| difference = found).is_some()
    })
    .await;
    Err(Failure { steps, difference })
}

impl Failure {
    /// The report: seed, steps, difference, and the command that repeats the run.
    pub fn report(&self, seed: u64) -> String {
        let steps = self.steps.iter().enumerate();
        let steps: String = steps.map(|(i, step)| format!("  {}: {step:?}\n", i + 1)).collect();
        let Self { difference, .. } = self;
        format!(
            "seed {seed}: the stores give different answers\n{steps}{difference}\
             repeat it with: ORCHESTRIX_SEED={seed} cargo test -p orchestrix-sim --test alike"
        )
    }
}
