//! Jobs that are created again and again, by the leader, whoever that is.

use std::time::Duration;

use orchestrix_core::{
    FieldError, Invalid, JobType, NewJob, Start, Timestamp,
    schedule::{Cadence, Misfire, NewSchedule, Overlap, ScheduleName},
};
use orchestrix_store::PutResult;

use crate::{Client, Job, Request, Result};

/// When a schedule is due: a cron expression in a time zone, or an interval.
///
/// ```
/// use orchestrix_client::{cron, every};
/// use std::time::Duration;
///
/// let daily = cron("0 9 * * *").in_tz("Europe/Berlin");
/// let often = every(Duration::from_secs(30));
/// ```
#[derive(Debug, Clone)]
pub struct When(Timing);

#[derive(Debug, Clone)]
enum Timing {
    Cron { expression: String, zone: String },
    Every { interval: Duration, zone: Option<String> },
}

/// By a cron expression of five fields, or six with seconds first, or a name such as `@daily`. In UTC unless told otherwise.
pub fn cron(expression: impl Into<String>) -> When {
    When(Timing::Cron { expression: expression.into(), zone: "UTC".into() })
}

/// At equal intervals, counted from the beginning of 1970: restarts and failovers do not shift them.
pub fn every(interval: Duration) -> When {
    When(Timing::Every { interval, zone: None })
}

impl When {
    /// In this time zone, by its IANA name. Intervals have none, and are refused with one.
    #[must_use]
    pub fn in_tz(mut self, name: impl Into<String>) -> Self {
        match &mut self.0 {
            Timing::Cron { zone, .. } => *zone = name.into(),
            Timing::Every { zone, .. } => *zone = Some(name.into()),
        }
        self
    }

    // What it says, and all that is wrong with it.
    fn cadence(&self) -> (Option<Cadence>, Vec<FieldError>) {
        match &self.0 {
            Timing::Cron { expression, zone } => match Cadence::cron(expression, zone) {
                Ok(cadence) => (Some(cadence), Vec::new()),
                Err(invalid) => (None, invalid.errors),
            },
            Timing::Every { interval, zone } => {
                let message = "must be absent: an interval is the same in every zone";
                let errors = zone.iter().map(|_| FieldError::new("timezone", message)).collect();
                (Some(Cadence::Every { interval: *interval }), errors)
            }
        }
    }
}

/// A schedule that is being described. Nothing is recorded before [`put`](Recurring::put).
#[derive(Debug)]
#[must_use]
pub struct Recurring<'a> {
    client: &'a Client,
    name: String,
    when: When,
    job: Result<NewJob, Invalid>,
    overlap: Overlap,
    misfire: Misfire,
    catch_up_limit: u32,
    jitter: Duration,
    start_at: Option<Timestamp>,
    end_at: Option<Timestamp>,
}

impl Client {
    /// A job that is created again and again. Declaring the same at every start of a program is fine: it changes nothing, and its
    /// history stays.
    ///
    /// ```
    /// # use orchestrix_client::{Client, Job, cron};
    /// # use orchestrix_memory::MemoryStore;
    /// # use orchestrix_store::{Put};
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct DailyReport {}
    /// # impl Job for DailyReport { type Output = (); const TYPE: &'static str = "daily-report"; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = Client::new(MemoryStore::new());
    /// let put = client.recurring("daily-report", cron("0 9 * * *").in_tz("Europe/Berlin"), DailyReport {}).put().await?;
    /// assert_eq!(put, Put::Created);
    /// # Ok(())
    /// # }
    /// ```
    pub fn recurring<J: Job>(
        &self,
        name: impl Into<String>,
        when: When,
        request: impl Into<Request<J>>,
    ) -> Recurring<'_> {
        Recurring {
            client: self,
            name: name.into(),
            when,
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
    /// What to do while earlier jobs of it are unfinished; by default the new one is skipped.
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// What to do about times that nobody was there for; by default the latest fires, once.
    pub fn misfire(mut self, misfire: Misfire) -> Self {
        self.misfire = misfire;
        self
    }

    /// Fires late times in order, the latest `limit` of them.
    pub fn catch_up(mut self, limit: u32) -> Self {
        (self.misfire, self.catch_up_limit) = (Misfire::CatchUp, limit);
        self
    }

    /// Spreads firings over so long after their time, the same on every node.
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// Each job starts so long after it was created.
    pub fn delay(mut self, delay: Duration) -> Self {
        if let Ok(job) = &mut self.job {
            job.start = Start::After(delay);
        }
        self
    }

    /// Nothing before this time.
    pub fn start_at(mut self, time: Timestamp) -> Self {
        self.start_at = Some(time);
        self
    }

    /// Nothing at or after this time.
    pub fn end_at(mut self, time: Timestamp) -> Self {
        self.end_at = Some(time);
        self
    }

    /// The schedule, or everything that is wrong with it.
    pub fn build(self) -> Result<NewSchedule, Invalid> {
        let (cadence, mut errors) = self.when.cadence();
        let name = ScheduleName::new(&self.name).map_err(|error| errors.insert(0, error)).ok();
        let job = self.job.map_err(|invalid| errors.extend(invalid.within("job").errors)).ok();
        let whole = errors.is_empty();
        // What cannot be read is stood in for by something that is right, so that the rest is looked at all the same.
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
                job.unwrap_or_else(|| NewJob::new(JobType::trusted("unreadable"))),
            )
        };
        if let Err(invalid) = schedule.validate() {
            errors.extend(invalid.errors);
        } else if whole {
            return Ok(schedule);
        }
        Err(Invalid { errors })
    }

    /// Records it, or changes the one of that name.
    pub async fn put(self) -> Result<PutResult> {
        let client = self.client;
        Ok(client.store().put_schedule(None, self.build()?).await?)
    }
}
