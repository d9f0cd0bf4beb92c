//! The schedules of a scenario: put into the store, and recorded for the checker.

use std::time::Duration;

use orchestrix_core::{Cadence, JobType, Misfire, NewJob, NewSchedule, Overlap, Queue, ScheduleName};
use orchestrix_store::{PutResult, prelude::*};
use tokio_postgres::Client;

use super::super::traffic::{open, retrying_job};

/// The number of schedules that fire every second, per misfire rule.
pub(crate) const SCHEDULES: i32 = 50;
/// A period longer than twice the shortest grace period, so that even the latest occurrence may be late.
const TWELVE: i32 = 12;
/// A queue without workers.
const UNSERVED: &str = "unserved";

/// One schedule. Its nominal times are the seconds since the Unix epoch that are `phase` past a multiple of `period`.
#[derive(Debug, Clone)]
pub(crate) struct PlannedSchedule {
    name: String,
    period: i32,
    phase: i32,
    misfire: Misfire,
}

/// Fifty schedules that fire every second.
pub(crate) fn every_second(misfire: Misfire) -> Vec<PlannedSchedule> {
    (0..SCHEDULES)
        .map(|n| PlannedSchedule { name: format!("{misfire}.every-1s.{n}"), period: 1, phase: 0, misfire })
        .collect()
}

/// Schedules that fire every twelve seconds, one for each second of the twelve. Whenever there is no leader for a
/// while, some of them are late.
pub(crate) fn every_twelve_seconds(misfire: Misfire) -> Vec<PlannedSchedule> {
    let planned =
        |phase| PlannedSchedule { name: format!("{misfire}.every-12s.{phase}"), period: TWELVE, phase, misfire };
    (0..TWELVE).map(planned).collect()
}

impl PlannedSchedule {
    fn definition(&self, odd: bool, queue: Queue) -> NewSchedule {
        let cadence = match self.period {
            1 if odd => Cadence::every(Duration::from_secs(1)).unwrap(),
            1 => Cadence::cron("* * * * * *", "UTC").unwrap(),
            period => Cadence::cron(&format!("{}/{period} * * * * *", self.phase), "UTC").unwrap(),
        };
        // The job type identifies the schedule.
        let job = NewJob { job_type: JobType::trusted(&self.name), queue, ..retrying_job() };
        NewSchedule {
            misfire: self.misfire,
            // More than can be missed, so that every occurrence must fire.
            catch_up_limit: NewSchedule::MAX_CATCH_UP,
            overlap: Overlap::Allow,
            ..NewSchedule::new(ScheduleName::trusted(&self.name), cadence, job)
        }
    }
}

/// Deletes the schedules and their jobs in the queue without workers.
pub(crate) async fn delete(client: &Client) {
    let sql = format!("DELETE FROM orchestrix.schedule; DELETE FROM orchestrix.job WHERE queue = '{UNSERVED}'");
    client.batch_execute(&sql).await.unwrap();
}

/// Creates the schedules.
pub(crate) async fn put(client: &Client, url: &str, planned: &[PlannedSchedule]) {
    let store = open(url).await;
    let plan = "INSERT INTO audit.plan (schedule, period, phase, misfire) VALUES ($1, $2, $3, $4)";
    for (n, schedule) in planned.iter().enumerate() {
        client
            .execute(plan, &[&schedule.name, &schedule.period, &schedule.phase, &schedule.misfire.as_str()])
            .await
            .unwrap();
        // The traffic's worker runs a fifth of the jobs; it could not keep up with all.
        let queue = if n % 5 == 0 { Queue::default() } else { Queue::trusted(UNSERVED) };
        assert_eq!(store.put_schedule(None, schedule.definition(n % 2 == 1, queue)).await.unwrap(), PutResult::Created);
    }
    client.execute("UPDATE audit.plan SET put_at = clock_timestamp()", &[]).await.unwrap();
}
