//! Every store answers every sequence alike.

use std::{env, time::Instant};

use orchestrix_sim::{STEPS, check, stores};

/// Seeds of a usual run.
const SEEDS: usize = 15;

fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stores_answer_alike() {
    let seeds: Vec<u64> = match number("ORCHESTRIX_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("ORCHESTRIX_SEEDS").unwrap_or(SEEDS)).map(|_| rand::random()).collect(),
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
