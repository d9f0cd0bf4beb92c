//! The same random life on every store, answer by answer.
//!
//! The stores promise the same things, and the conformance suite holds each of them to every promise that somebody
//! thought of. This crate is for the others: it makes a sequence of [steps](Step) from a seed, plays it on a fresh store of
//! every kind on virtual time, and compares every answer and, now and then, all that can be read. Whatever differs is a bug
//! in one of them, unless `player` or `observe` names it as a freedom that the trait leaves.
//!
//! A sequence that fails is cut down to the few steps that matter before it is shown.
//!
//! | module | what it owns |
//! |---|---|
//! | `step` | what can be done, as data |
//! | `generate` | sequences from seeds |
//! | `stores` | the stores that are compared |
//! | `player`, `request`, `schedule` | steps as calls of a store |
//! | `observe` | answers in comparable form |
//! | `compare` | the first difference |
//! | `shrink` | the few steps that matter |
//!
//! What is deliberately absent: concurrency. One call at a time has one right answer.

pub mod compare;
pub mod generate;
pub mod observe;
pub mod player;
mod request;
mod schedule;
pub mod shrink;
pub mod step;
pub mod stores;

pub use compare::{Difference, compare};
pub use generate::generate;
pub use shrink::shrink;
pub use step::Step;
pub use stores::Source;

/// The steps that one seed stands for.
pub const STEPS: usize = 200;
/// The runs that cutting down a failed sequence may take.
const SHRINK_RUNS: usize = 400;

/// A seed whose sequence the stores do not answer alike.
#[derive(Debug)]
pub struct Failure {
    /// The few steps that matter.
    pub steps: Vec<Step>,
    /// What they lead to.
    pub difference: Difference,
}

/// Plays the sequence of `seed`; on a difference, cuts it down.
pub async fn check(sources: &[Box<dyn Source>], seed: u64) -> Result<(), Failure> {
    let mut steps = generate(seed, STEPS);
    let Some(mut difference) = compare(sources, &steps).await else { return Ok(()) };
    eprintln!("seed {seed} differs {difference}cutting it down…");
    steps.truncate(difference.steps);
    let steps = shrink(steps, SHRINK_RUNS, Step::plainer, async |steps: &[Step]| {
        let found = compare(sources, steps).await;
        found.map(|found| difference = found).is_some()
    })
    .await;
    Err(Failure { steps, difference })
}

impl Failure {
    /// All that somebody needs to look into it.
    pub fn report(&self, seed: u64) -> String {
        let steps = self.steps.iter().enumerate();
        let steps: String = steps.map(|(i, step)| format!("  {}: {step:?}\n", i + 1)).collect();
        let Self { difference, .. } = self;
        format!(
            "seed {seed}: the stores do not answer alike\n{steps}{difference}run it again: ORCHESTRIX_SEED={seed} cargo test -p orchestrix-sim --test alike"
        )
    }
}
