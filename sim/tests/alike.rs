//! All stores give the same answers to random sequences. See the crate documentation for how to run and read it.

use std::{env, time::Instant};

use orchestrix_sim::{STEPS, check, stores};

/// The number of seeds unless `ORCHESTRIX_SEEDS` or `ORCHESTRIX_SEED` is set.
const DEFAULT_SEEDS: usize = 15;

fn number_from_env<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_stores_give_the_same_answers() {
    let seeds: Vec<u64> = match number_from_env("ORCHESTRIX_SEED") {
        Some(seed) => vec![seed],
        None => (0..number_from_env("ORCHESTRIX_SEEDS").unwrap_or(DEFAULT_SEEDS)).map(|_| rand::random()).collect(),
    };
    let stores = stores::all().await;
    let begun = Instant::now();
    for seed in &seeds {
        if let Err(failure) = check(&stores, *seed).await {
            panic!("{}", failure.report(*seed));
        }
    }
    println!("{} seeds, {} steps, {:?}", seeds.len(), seeds.len() * STEPS, begun.elapsed());
}
