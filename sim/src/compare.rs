//! Executes one sequence on every store and finds the first answer in which they differ.

use std::fmt;

use futures_util::future::join_all;

use crate::{
    executor::Executor,
    observe::Observation,
    step::Step,
    stores::{StoreFactory, start},
};

/// The number of steps between two comparisons of the whole state.
const STATE_INTERVAL: usize = 50;
/// The number of characters to show before and after the first difference.
const CONTEXT: usize = 300;

/// The first difference between stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The number of executed steps, including the one that showed the difference.
    pub steps: usize,
    /// The step, or the part of the state, that showed it.
    pub question: String,
    /// The answer of each store.
    pub answers: Vec<(&'static str, String)>,
}

/// Executes `steps` on an empty store of every kind.
pub async fn compare(factories: &[Box<dyn StoreFactory>], steps: &[Step]) -> Option<Difference> {
    let start = start();
    let mut executors = Vec::new();
    for factory in factories {
        executors.push(Executor::new(factory.name(), factory.create(start).await, start));
    }
    for (i, step) in steps.iter().enumerate() {
        let answers =
            join_all(executors.iter_mut().map(async |executor| (executor.name, executor.execute(step).await))).await;
        if !all_equal(answers.iter().map(|(_, answer)| answer)) {
            return Some(Difference::new(i + 1, format!("{step:?}"), answers));
        }
        if ((i + 1) % STATE_INTERVAL == 0 || i + 1 == steps.len())
            && let Some(difference) = compare_state(&executors, i + 1).await
        {
            return Some(difference);
        }
    }
    None
}

async fn compare_state(executors: &[Executor], steps: usize) -> Option<Difference> {
    let states = join_all(executors.iter().map(async |executor| (executor.name, executor.state().await))).await;
    // All stores have the same jobs and schedules here: otherwise an earlier answer would have differed.
    let parts = states.first()?.1.len();
    let part = (0..parts).find(|part| !all_equal(states.iter().map(|(_, state)| &state[*part].1)))?;
    let question = states[0].1[part].0.clone();
    Some(Difference::new(
        steps,
        question,
        states.into_iter().map(|(name, mut state)| (name, state.swap_remove(part).1)),
    ))
}

fn all_equal<'a>(mut answers: impl Iterator<Item = &'a Observation>) -> bool {
    let Some(first) = answers.next() else { return true };
    !first.failed && answers.all(|answer| answer == first)
}

impl Difference {
    fn new(steps: usize, question: String, answers: impl IntoIterator<Item = (&'static str, Observation)>) -> Self {
        Self { steps, question, answers: answers.into_iter().map(|(name, answer)| (name, answer.text)).collect() }
    }

    /// The length of the common prefix of all answers, in characters.
    fn common_prefix(&self) -> usize {
        let Some(((_, first), others)) = self.answers.split_first() else { return 0 };
        let common = |text: &str| first.chars().zip(text.chars()).take_while(|(a, b)| a == b).count();
        others.iter().map(|(_, text)| common(text)).min().unwrap_or(0)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "after {} steps, at {}", self.steps, self.question)?;
        // An answer may be a list of all jobs. Shows only the text around the first difference.
        let from = self.common_prefix().saturating_sub(CONTEXT);
        let cut = if from > 0 { "…" } else { "" };
        for (name, text) in &self.answers {
            let shown: String = text.chars().skip(from).take(2 * CONTEXT).collect();
            writeln!(f, "  {name}: {cut}{shown}")?;
        }
        Ok(())
    }
}
