//! The schedules: put into the store as anybody would, and told to the judge in numbers of its own.

use std::time::Duration;

use orchestrix_core::{Cadence, JobType, Misfire, NewJob, NewSchedule, Overlap, Queue, ScheduleName};
use orchestrix_store::{PutResult, prelude::*};
use tokio_postgres::Client;

use super::super::traffic::{open, patient};

/// How many of them are due every second, by each rule.
pub(crate) const FIFTY: i32 = 50;
/// Longer than twice the shortest grace: what was due last may be late, as it never is for one that is due every second.
const SLOW: i32 = 12;
/// A queue that nobody works on.
const UNSERVED: &str = "unserved";

/// One schedule. Its nominal times are the seconds since 1970 that are `phase` past a multiple of `period`.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    name: String,
    period: i32,
    phase: i32,
    misfire: Misfire,
}

/// Fifty that are due every second.
pub(crate) fn brisk(misfire: Misfire) -> Vec<Planned> {
    (0..FIFTY).map(|n| Planned { name: format!("{misfire}.every-1s.{n}"), period: 1, phase: 0, misfire }).collect()
}

/// Those that are due every twelve seconds, one for each second of the twelve: whenever nobody leads for a while, some are late
/// and have nothing that is on time.
pub(crate) fn slow(misfire: Misfire) -> Vec<Planned> {
    let planned = |phase| Planned { name: format!("{misfire}.every-12s.{phase}"), period: SLOW, phase, misfire };
    (0..SLOW).map(planned).collect()
}

impl Planned {
    fn definition(&self, odd: bool, queue: Queue) -> NewSchedule {
        let cadence = match self.period {
            1 if odd => Cadence::every(Duration::from_secs(1)).unwrap(),
            1 => Cadence::cron("* * * * * *", "UTC").unwrap(),
            period => Cadence::cron(&format!("{}/{period} * * * * *", self.phase), "UTC").unwrap(),
        };
        // Their type tells whose they are.
        let job = NewJob { job_type: JobType::trusted(&self.name), queue, ..patient() };
        NewSchedule {
            misfire: self.misfire,
            // More than there can be: nothing may be let go.
            catch_up_limit: NewSchedule::MAX_CATCH_UP,
            overlap: Overlap::Allow,
            ..NewSchedule::new(ScheduleName::trusted(&self.name), cadence, job)
        }
    }
}

/// Forgets them, and their jobs that nobody takes.
pub(crate) async fn forget(client: &Client) {
    let sql = format!("DELETE FROM orchestrix.schedule; DELETE FROM orchestrix.job WHERE queue = '{UNSERVED}'");
    client.batch_execute(&sql).await.unwrap();
}

/// Sets them all up.
pub(crate) async fn put(client: &Client, url: &str, planned: &[Planned]) {
    let store = open(url).await;
    let plan = "INSERT INTO audit.plan (schedule, period, phase, misfire) VALUES ($1, $2, $3, $4)";
    for (n, one) in planned.iter().enumerate() {
        client.execute(plan, &[&one.name, &one.period, &one.phase, &one.misfire.as_str()]).await.unwrap();
        // The traffic's worker takes some, and would not keep up with all.
        let queue = if n % 5 == 0 { Queue::default() } else { Queue::trusted(UNSERVED) };
        assert_eq!(store.put_schedule(None, one.definition(n % 2 == 1, queue)).await.unwrap(), PutResult::Created);
    }
    client.execute("UPDATE audit.plan SET put_at = clock_timestamp()", &[]).await.unwrap();
}
