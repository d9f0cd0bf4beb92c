//! What one firing comes to: jobs, requests to cancel, and lines for the ledger.

use orchestrix_core::{
    DependsOn, JobId, NewJob, OnDependencyFailure, Timestamp,
    schedule::{Admission, NewSchedule, OccurrenceOutcome, Overlap, Reason, ScheduleName},
};

use super::{Occurrence, Schedule};

/// What is to be written down in one transaction: lines of the ledger, jobs, requests to cancel, and where the schedule stands then.
#[derive(Debug, Clone, PartialEq)]
pub struct Firing {
    /// For the ledger, in order. Lines that fired have a job in `jobs`, in the same order.
    pub lines: Vec<Occurrence>,
    /// The jobs of those lines that fired; in order, one after the other, by [`NewJob::reference`] where they wait for each other.
    pub jobs: Vec<NewJob>,
    /// Earlier jobs that are to be cancelled.
    pub cancel: Vec<JobId>,
    /// Where the schedule stands afterwards; `None` only while it is being put together.
    pub after: Option<Schedule>,
    template: NewJob,
    name: ScheduleName,
    overlap: Overlap,
    unfinished: Vec<DependsOn>,
    now: Timestamp,
}

impl Firing {
    pub(super) fn new(definition: &NewSchedule, overlap: Overlap, unfinished: &[JobId], now: Timestamp) -> Self {
        Self {
            lines: Vec::new(),
            jobs: Vec::new(),
            cancel: Vec::new(),
            after: None,
            template: definition.job.clone(),
            name: definition.name.clone(),
            overlap,
            unfinished: unfinished.iter().map(|id| DependsOn::Job(*id)).collect(),
            now,
        }
    }

    /// Whether a job is to be created.
    pub fn fires(&self) -> bool {
        !self.jobs.is_empty()
    }

    // `last` of those that are due at once: with cancel_running the ones before it would only be created to be cancelled.
    pub(super) fn admit(&mut self, nominal: Timestamp, reason: Option<Reason>, last: bool) {
        let admission = match self.overlap {
            Overlap::CancelRunning if !last => Admission::Skip,
            overlap => overlap.admit(self.unfinished.len() as u64),
        };
        let line = |outcome, reason| Occurrence {
            nominal,
            until: nominal,
            count: 1,
            outcome,
            reason,
            job: None,
            at: self.now,
        };
        if admission == Admission::Skip {
            return self.lines.push(line(OccurrenceOutcome::Skipped, Some(Reason::Overlap)));
        }
        let mut job = self.template.clone();
        job.correlation_id.get_or_insert_with(|| format!("{}@{nominal}", self.name));
        job.reference = Some(format!("fired-{}", self.jobs.len()));
        match admission {
            Admission::FireAfter => {
                job.depends_on = self.unfinished.last().cloned().into_iter().collect();
                job.on_dependency_failure = OnDependencyFailure::Run;
            }
            Admission::CancelAndFire => {
                let earlier = self.unfinished.drain(..).filter_map(|parent| match parent {
                    DependsOn::Job(id) => Some(id),
                    DependsOn::Reference(_) => None,
                });
                self.cancel.extend(earlier);
            }
            Admission::Fire | Admission::Skip => {}
        }
        self.unfinished.extend(job.reference.clone().map(DependsOn::Reference));
        self.lines.push(line(OccurrenceOutcome::Fired, reason));
        self.jobs.push(job);
    }
}
