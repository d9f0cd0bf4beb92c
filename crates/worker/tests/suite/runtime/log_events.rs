//! Log events about a job outside its span carry the job's ids.

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

use super::{Task, gated_worker, wait_until};

/// The fields of one event.
#[derive(Debug, Clone, Default)]
struct LogEvent(HashMap<&'static str, String>);

impl Visit for LogEvent {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// Collects every event. Ignores spans.
#[derive(Clone, Default)]
struct LogEvents(Arc<Mutex<Vec<LogEvent>>>);

impl Subscriber for LogEvents {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = LogEvent::default();
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn the_event_of_a_lost_lease_carries_the_ids_of_the_job() {
    let events = LogEvents::default();
    tracing::subscriber::set_global_default(events.clone()).unwrap();
    let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()));
    let client = Client::new(MemoryStore::with_clock(Arc::clone(&clock) as Arc<_>));
    let (worker, gate) = gated_worker(&client);
    let worker = worker.no_coordinator().concurrency(1).start().unwrap();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let request = Task { n: 1 }.request().correlation_id("order-7").traceparent(trace);
    let job = client.enqueue(request).await.unwrap();
    let (_, first) = gate.next_started().await;
    wait_until("the lease is reaped", async || {
        clock.advance(Duration::from_secs(120));
        client.store().reap_leases(Fence::NONE, 10, 9).await.unwrap().count > 0
    })
    .await;
    first.cancelled().await;
    let lost = |events: &[LogEvent]| events.iter().find(|event| event.0["message"] == "lease is lost").cloned();
    let LogEvent(fields) = lost(&events.0.lock().unwrap()).expect("the event is logged before the handler is stopped");
    assert_eq!(
        (fields["job_id"].as_str(), fields["correlation_id"].as_str()),
        (job.id().to_string().as_str(), "order-7")
    );
    assert_eq!((fields["job_type"].as_str(), fields["attempt"].as_str()), ("task", "1"));
    assert_eq!(fields["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    gate.let_pass(2);
    let _ = worker.shutdown().await;
}
