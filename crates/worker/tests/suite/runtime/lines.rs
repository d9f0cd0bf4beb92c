//! What a line of the log knows of its job when it is said outside of the job's span.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use orchestrix_client::{Client, Job};
use orchestrix_memory::MemoryStore;
use orchestrix_store::{Fence, ManualClock};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use super::{Task, gated, until};

/// The fields of one event.
#[derive(Debug, Clone, Default)]
struct Line(HashMap<&'static str, String>);

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// Keeps every event, and knows no spans.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().unwrap().push(line);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_lost_lease_is_told_with_the_ids_of_its_job() {
    let lines = Lines::default();
    tracing::subscriber::set_global_default(lines.clone()).unwrap();
    let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()));
    let client = Client::new(MemoryStore::with_clock(Arc::clone(&clock) as Arc<_>));
    let (worker, keeper) = gated(&client);
    let worker = worker.no_coordinator().concurrency(1).start().unwrap();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let request = Task { n: 1 }.request().correlation_id("order-7").traceparent(trace);
    let job = client.enqueue(request).await.unwrap();
    let (_, first) = keeper.next().await;
    until("the lease is reaped", async || {
        clock.advance(Duration::from_secs(120));
        client.store().reap_leases(Fence::NONE, 10, 9).await.unwrap().count > 0
    })
    .await;
    first.cancelled().await;
    let told = |lines: &[Line]| lines.iter().find(|line| line.0["message"] == "the lease is lost").cloned();
    let Line(line) = told(&lines.0.lock().unwrap()).expect("it was told before the handler was");
    assert_eq!((line["job_id"].as_str(), line["correlation_id"].as_str()), (job.id().to_string().as_str(), "order-7"));
    assert_eq!((line["job_type"].as_str(), line["attempt"].as_str()), ("task", "1"));
    assert_eq!(line["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    keeper.let_through(2);
    let _ = worker.shutdown().await;
}
