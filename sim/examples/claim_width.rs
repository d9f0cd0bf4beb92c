//! Measures claims over many lanes: `cargo run --release -p orchestrix-sim --example claim_width [STORE …]`.
//!
//! A row is one kind of request, a column a number of lanes that hold jobs. A cell is the median time of a claim of 100
//! jobs in milliseconds. Stores are `memory` and `sqlite` unless named.

use std::{env, time::Instant};

use orchestrix_conformance::Harness;
use orchestrix_core::{JobType, NewJob, Priority, Queue, WorkerName};
use orchestrix_sim::{
    StoreFactory,
    stores::{Memory, Postgres, Sqlite, start},
};
use orchestrix_store::{ClaimRequest, Queues};

const LANES: [usize; 5] = [1, 100, 1_000, 10_000, 100_000];
const BATCH: usize = 100;
const CLAIMS: usize = 21;

/// What a worker asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    Any,
    Types(usize),
    Queues(usize),
    Both(usize, usize),
}

/// What else the store holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Crowd {
    Nothing,
    /// 100,000 jobs of higher priority, in lanes that the request does not name.
    Foreign,
    /// 1,000 paused queues with ten jobs of higher priority each.
    Paused,
}

const ROWS: [(&str, Shape, Crowd); 9] = [
    ("any", Shape::Any, Crowd::Nothing),
    ("1 type", Shape::Types(1), Crowd::Nothing),
    ("100 types", Shape::Types(100), Crowd::Nothing),
    ("10 queues", Shape::Queues(10), Crowd::Nothing),
    ("10 queues x 10 types", Shape::Both(10, 10), Crowd::Nothing),
    ("1 type, foreign jobs", Shape::Types(1), Crowd::Foreign),
    ("10 x 10, foreign jobs", Shape::Both(10, 10), Crowd::Foreign),
    ("any, paused queues", Shape::Any, Crowd::Paused),
    ("1 type, paused queues", Shape::Types(1), Crowd::Paused),
];

fn job(queue: String, job_type: String, priority: i64) -> NewJob {
    NewJob {
        queue: Queue::new(queue).expect("a valid queue"),
        priority: Priority::new(priority).expect("a valid priority"),
        ..NewJob::new(JobType::new(job_type).expect("a valid type"))
    }
}

/// A tenth of the lanes, at least one, differ by type; the others by queue.
fn sides(lanes: usize) -> (usize, usize) {
    let types = [1, 10, 10, 100, 100][LANES.iter().position(|n| *n == lanes).expect("a listed number")];
    (lanes / types, types)
}

fn request(shape: Shape) -> ClaimRequest {
    let queues = |n| Queues::Named((0..n).map(|i| Queue::new(format!("q{i}")).expect("a valid queue")).collect());
    let types = |n| Some((0..n).map(|i| JobType::new(format!("t{i}")).expect("a valid type")).collect());
    let any = ClaimRequest::any(WorkerName::new("w").expect("a valid name"), BATCH);
    match shape {
        Shape::Any => any,
        Shape::Types(n) => ClaimRequest { job_types: types(n), ..any },
        Shape::Queues(n) => ClaimRequest { queues: queues(n), ..any },
        Shape::Both(q, t) => ClaimRequest { queues: queues(q), job_types: types(t), ..any },
    }
}

async fn enqueue(harness: &Harness, jobs: impl Iterator<Item = NewJob>) {
    let mut jobs = jobs.peekable();
    while jobs.peek().is_some() {
        let batch = jobs.by_ref().take(NewJob::MAX_BATCH).collect();
        harness.store.enqueue_jobs(batch).await.expect("valid jobs");
    }
}

async fn measure(store: &dyn StoreFactory, lanes: usize, shape: Shape, crowd: Crowd) -> f64 {
    let harness = store.create(start()).await;
    let (queues, types) = sides(lanes);
    match crowd {
        Crowd::Nothing => {}
        Crowd::Foreign => {
            enqueue(&harness, (0..100_000).map(|i| job(format!("q{}", i % 1_000), format!("a{}", i / 1_000), 9))).await;
        }
        Crowd::Paused => {
            enqueue(&harness, (0..10_000).map(|i| job(format!("paused{}", i % 1_000), "t0".into(), 9))).await;
            for i in 0..1_000 {
                let queue = Queue::new(format!("paused{i}")).expect("a valid queue");
                harness.store.pause_queue(&queue).await.expect("a store that answers");
            }
        }
    }
    // One job in every lane, and enough for all claims in the lanes of the request.
    enqueue(&harness, (0..lanes).map(|i| job(format!("q{}", i / types), format!("t{}", i % types), 0))).await;
    let (most_queues, most_types) = match shape {
        Shape::Any => (queues, types),
        Shape::Types(n) => (queues, n),
        Shape::Queues(n) => (n, types),
        Shape::Both(q, t) => (q, t),
    };
    let (queues, types) = (queues.min(most_queues), types.min(most_types));
    let more = (0..BATCH * CLAIMS).map(|i| job(format!("q{}", i % queues), format!("t{}", i / queues % types), 0));
    enqueue(&harness, more).await;

    let request = request(shape);
    let mut times = Vec::with_capacity(CLAIMS);
    for _ in 0..CLAIMS {
        let begun = Instant::now();
        let claimed = harness.store.claim_jobs(&request).await.expect("a valid request");
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        assert_eq!(claimed.len(), BATCH);
    }
    times.sort_by(f64::total_cmp);
    times[CLAIMS / 2]
}

#[tokio::main]
async fn main() {
    let names: Vec<String> = env::args().skip(1).collect();
    let names = if names.is_empty() { vec!["memory".into(), "sqlite".into()] } else { names };
    for name in names {
        let store: Box<dyn StoreFactory> = match name.as_str() {
            "memory" => Box::new(Memory),
            "sqlite" => Box::new(Sqlite),
            "postgres" => Box::new(Postgres::prepare().await),
            other => panic!("{other} is not a store: name memory, sqlite or postgres"),
        };
        println!("{name:<24}{}", LANES.map(|n| format!("{n:>10}")).concat());
        for (row, shape, crowd) in ROWS {
            let mut line = format!("{row:<24}");
            for lanes in LANES {
                line += &format!("{:>10.2}", measure(&*store, lanes, shape, crowd).await);
            }
            println!("{line}");
        }
    }
}
