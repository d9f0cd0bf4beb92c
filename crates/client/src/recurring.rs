//! Schedules: jobs that the leader enqueues at recurring times.

use std::time::Duration;

use orchestrix_core::{
    FieldError, Invalid, JobType, NewJob, Start, Timestamp,
    schedule::{Cadence, Misfire, NewSchedule, Overlap, ScheduleName},
};
use orchestrix_store::PutResult;

use crate::{Client, Job, Request, Result};

/// When a schedule fires: a cron expression in a time zone, or an interval.
///
/// ```
/// use orchestrix_client::{cron, every};
/// use std::time::Duration;
///
/// let daily = cron("0 9 * * *").in_tz("Europe/Berlin");
/// let often = every(Duration::from_secs(30));
/// ```
#[derive(Debug, Clone)]
pub struct ScheduleTiming(TimingKind);

#[derive(Debug, Clone)]
enum TimingKind {
    Cron { expression: String, zone: String },
    Every { interval: Duration, zone: Option<String> },
}

/// Fires by a cron expression: five fields, six with seconds first, or a name such as `@daily`. The time zone defaults
/// to UTC.
pub fn cron(expression: impl Into<String>) -> ScheduleTiming {
    ScheduleTiming(TimingKind::Cron { expression: expression.into(), zone: "UTC".into() })
}

/// Fires at equal intervals, counted from the Unix epoch, so that restarts and failovers do not shift them.
pub fn every(interval: Duration) -> ScheduleTiming {
    ScheduleTiming(TimingKind::Every { interval, zone: None })
}

impl ScheduleTiming {
    /// Sets the time zone by its IANA name. Only for cron expressions: an interval with a time zone is invalid.
    #[must_use]
    pub fn in_tz(mut self, name: impl Into<String>) -> Self {
        match &mut self.0 {
            TimingKind::Cron { zone, .. } => *zone = name.into(),
            TimingKind::Every { zone, .. } => *zone = Some(name.into()),
        }
        self
    }

    /// The cadence, and every error in it.
    fn cadence(&self) -> (Option<Cadence>, Vec<FieldError>) {
        match &self.0 {
            TimingKind::Cron { expression, zone } => match Cadence::cron(expression, zone) {
                Ok(cadence) => (Some(cadence), Vec::new()),
                Err(invalid) => (None, invalid.errors),
            },
            TimingKind::Every { interval, zone } => {
                let message = "must be absent: an interval is the same in every zone";
                let errors = zone.iter().map(|_| FieldError::new("timezone", message)).collect();
                (Some(Cadence::Every { interval: *interval }), errors)
            }
        }
    }
}

/// Configures a schedule. Nothing is stored before [`put`](Recurring::put).
#[derive(Debug)]
#[must_use]
pub struct Recurring<'a> {
    client: &'a Client,
    name: String,
    timing: ScheduleTiming,
    job: Result<NewJob, Invalid>,
    overlap: Overlap,
    misfire: Misfire,
    catch_up_limit: u32,
    jitter: Duration,
    start_at: Option<Timestamp>,
    end_at: Option<Timestamp>,
}

impl Client {
    /// Configures a schedule that enqueues a job at recurring times. Putting the same schedule at every start of a
    /// program changes nothing and keeps its history.
    ///
    /// ```
    /// # use orchestrix_client::{Client, Job, cron};
    /// # use orchestrix_memory::MemoryStore;
    /// # use orchestrix_store::PutResult;
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct DailyReport {}
    /// # impl Job for DailyReport { type Output = (); const TYPE: &'static str = "daily-report"; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = Client::new(MemoryStore::new());
    /// let put = client.recurring("daily-report", cron("0 9 * * *").in_tz("Europe/Berlin"), DailyReport {}).put().await?;
    /// assert_eq!(put, PutResult::Created);
    /// # Ok(())
    /// # }
    /// ```
    pub fn recurring<J: Job>(
        &self,
        name: impl Into<String>,
        timing: ScheduleTiming,
        request: impl Into<Request<J>>,
    ) -> Recurring<'_> {
        Recurring {
            client: self,
            name: name.into(),
            timing,
            job: request.into().build(),
            overlap: Overlap::default(),
            misfire: Misfire::default(),
            catch_up_limit: NewSchedule::DEFAULT_CATCH_UP,
            jitter: Duration::ZERO,
            start_at: None,
            end_at: None,
        }
    }
}

impl Recurring<'_> {
    /// Sets what happens if an earlier job of the schedule is unfinished. By default the new occurrence is skipped.
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// Sets what happens to occurrences that were missed because no leader was running. By default only the latest
    /// fires.
    pub fn misfire(mut self, misfire: Misfire) -> Self {
        self.misfire = misfire;
        self
    }

    /// Fires missed occurrences in order, at most the latest `limit`.
    pub fn catch_up(mut self, limit: u32) -> Self {
        (self.misfire, self.catch_up_limit) = (Misfire::CatchUp, limit);
        self
    }

    /// Delays each occurrence by up to `jitter`, the same on every node.
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// Delays the start of each job after it is enqueued.
    pub fn delay(mut self, delay: Duration) -> Self {
        if let Ok(job) = &mut self.job {
            job.start = Start::After(delay);
        }
        self
    }

    /// Fires nothing before this time.
    pub fn start_at(mut self, time: Timestamp) -> Self {
        self.start_at = Some(time);
        self
    }

    /// Fires nothing at or after this time.
    pub fn end_at(mut self, time: Timestamp) -> Self {
        self.end_at = Some(time);
        self
    }

    /// Builds the schedule.
    ///
    /// # Errors
    /// Lists every invalid setting.
    pub fn build(self) -> Result<NewSchedule, Invalid> {
        let (cadence, mut errors) = self.timing.cadence();
        let name = ScheduleName::new(&self.name).map_err(|error| errors.insert(0, error)).ok();
        let job = self.job.map_err(|invalid| errors.extend(invalid.within("job").errors)).ok();
        let parts_are_valid = errors.is_empty();
        // Valid placeholders replace the invalid parts, so that the rest is validated too.
        let schedule = NewSchedule {
            overlap: self.overlap,
            misfire: self.misfire,
            catch_up_limit: self.catch_up_limit,
            jitter: self.jitter,
            start_at: self.start_at,
            end_at: self.end_at,
            ..NewSchedule::new(
                name.unwrap_or_else(|| ScheduleName::trusted("unnamed")),
                cadence.unwrap_or(Cadence::Every { interval: Cadence::MAX_INTERVAL }),
                job.unwrap_or_else(|| NewJob::new(JobType::trusted("invalid"))),
            )
        };
        if let Err(invalid) = schedule.validate() {
            errors.extend(invalid.errors);
        } else if parts_are_valid {
            return Ok(schedule);
        }
        Err(Invalid { errors })
    }

    /// Creates the schedule, or updates the one with its name.
    pub async fn put(self) -> Result<PutResult> {
        let client = self.client;
        Ok(client.store().put_schedule(None, self.build()?).await?)
    }
}
