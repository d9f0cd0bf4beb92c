//! Schedules, from the declaration to the handler.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use orchestrix::{
    Client, Context, Job, JobResult, MemoryStore, Overlap, PageRequest, PutResult, Run, Worker, cron, every,
    model::schedule::OccurrenceOutcome,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, Job)]
struct Tick;

#[derive(Clone, Default)]
struct Ticks(Arc<AtomicUsize>);

impl Run for Tick {
    async fn run(self, ctx: Context) -> JobResult {
        assert!(
            ctx.correlation_id().is_some_and(|id| id.starts_with("ticks@")),
            "the correlation id names the occurrence"
        );
        ctx.state::<Ticks>()?.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test]
async fn a_schedule_fires_and_putting_it_again_changes_nothing() {
    let client = Client::new(MemoryStore::new());
    let ticks = Ticks::default();
    let worker = Worker::builder(&client).state(ticks.clone()).job::<Tick>().start().unwrap();
    let declare = || client.recurring("ticks", every(Duration::from_secs(1)), Tick).overlap(Overlap::Allow).put();
    assert_eq!(declare().await.unwrap(), PutResult::Created);
    let three = async {
        while ticks.0.load(Ordering::SeqCst) < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), three).await.expect("the schedule fires three times");
    assert_eq!(declare().await.unwrap(), PutResult::Unchanged);
    let name = "ticks".parse().unwrap();
    let ledger = client.store().list_occurrences(None, &name, &PageRequest::first(100)).await.unwrap().items;
    assert!(ledger.len() >= 3 && ledger.iter().all(|line| line.outcome == OccurrenceOutcome::Fired), "{ledger:?}");
    assert!(
        ledger.windows(2).all(|pair| pair[0].nominal > pair[1].nominal),
        "each nominal time appears once: {ledger:?}"
    );
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn all_errors_of_a_schedule_are_reported_together() {
    let client = Client::new(MemoryStore::new());
    let bad = client
        .recurring("no good", cron("61 9 * * *").in_tz("Europe/Berln"), Tick.request().queue("a b"))
        .catch_up(0)
        .jitter(Duration::from_secs(100_000));
    let text = bad.put().await.unwrap_err().to_string();
    for part in ["name:", "cron: minute (character 1)", "timezone", "job.queue", "catchUpLimit", "jitterSeconds"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[tokio::test]
async fn an_interval_with_a_time_zone_is_invalid() {
    let client = Client::new(MemoryStore::new());
    let bad = client.recurring("ticks", every(Duration::from_millis(1)).in_tz("Europe/Berlin"), Tick);
    let text = bad.put().await.unwrap_err().to_string();
    for part in ["timezone: must be absent", "everySeconds"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[tokio::test]
async fn a_schedule_cannot_change_its_tenant() {
    let client = Client::new(MemoryStore::new());
    let declare =
        |tenant| client.recurring("ticks", every(Duration::from_secs(3600)), Tick.request().tenant(tenant)).put();
    assert_eq!(declare("acme").await.unwrap(), PutResult::Created);
    let text = declare("other").await.unwrap_err().to_string();
    assert!(text.contains("job.tenant: must stay `acme`: delete the schedule to change its tenant"), "{text}");
    assert_eq!(declare("acme").await.unwrap(), PutResult::Unchanged);
}
