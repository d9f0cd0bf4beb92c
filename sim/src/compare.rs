//! Plays one sequence on every store and finds the first answer in which they differ.

use std::fmt;

use futures_util::future::join_all;

use crate::{
    observe::Observation,
    player::Player,
    step::Step,
    stores::{Source, start},
};

/// Steps between two looks at all that the stores hold.
const STATE_EVERY: usize = 50;
/// Characters shown around the place where answers part.
const SHOWN: usize = 300;

/// Where stores part ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Steps taken, the telling one included.
    pub steps: usize,
    /// What they were asked.
    pub what: String,
    /// What each said.
    pub said: Vec<(&'static str, String)>,
}

/// Plays `steps` on a fresh store of every kind.
pub async fn compare(sources: &[Box<dyn Source>], steps: &[Step]) -> Option<Difference> {
    let start = start();
    let mut players = Vec::new();
    for source in sources {
        players.push(Player::new(source.name(), source.fresh(start).await, start));
    }
    for (i, step) in steps.iter().enumerate() {
        let answers = join_all(players.iter_mut().map(async |player| (player.name, player.play(step).await))).await;
        if !alike(answers.iter().map(|(_, answer)| answer)) {
            return Some(Difference::of(i + 1, format!("{step:?}"), answers));
        }
        if ((i + 1) % STATE_EVERY == 0 || i + 1 == steps.len())
            && let Some(difference) = compare_state(&players, i + 1).await
        {
            return Some(difference);
        }
    }
    None
}

async fn compare_state(players: &[Player], steps: usize) -> Option<Difference> {
    let states = join_all(players.iter().map(async |player| (player.name, player.state().await))).await;
    // Every store was asked the same: all have seen the same jobs, or an answer would have differed before.
    let parts = states.first()?.1.len();
    let part = (0..parts).find(|part| !alike(states.iter().map(|(_, state)| &state[*part].1)))?;
    let what = states[0].1[part].0.clone();
    Some(Difference::of(steps, what, states.into_iter().map(|(name, mut state)| (name, state.swap_remove(part).1))))
}

fn alike<'a>(mut answers: impl Iterator<Item = &'a Observation>) -> bool {
    let Some(first) = answers.next() else { return true };
    !first.failed && answers.all(|answer| answer == first)
}

impl Difference {
    fn of(steps: usize, what: String, answers: impl IntoIterator<Item = (&'static str, Observation)>) -> Self {
        Self { steps, what, said: answers.into_iter().map(|(name, answer)| (name, answer.text)).collect() }
    }

    /// How many characters every answer begins with alike.
    fn parting(&self) -> usize {
        let Some(((_, first), others)) = self.said.split_first() else { return 0 };
        let common = |text: &str| first.chars().zip(text.chars()).take_while(|(a, b)| a == b).count();
        others.iter().map(|(_, text)| common(text)).min().unwrap_or(0)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "after {} steps, asked for {}", self.steps, self.what)?;
        // Answers may be as long as a list of every job; what matters is around the place where they part.
        let from = self.parting().saturating_sub(SHOWN);
        let cut = if from > 0 { "…" } else { "" };
        for (name, text) in &self.said {
            let shown: String = text.chars().skip(from).take(2 * SHOWN).collect();
            writeln!(f, "  {name} said: {cut}{shown}")?;
        }
        Ok(())
    }
}
