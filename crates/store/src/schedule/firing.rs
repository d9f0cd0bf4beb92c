//! The effects of firing a schedule: jobs, cancellations and occurrences.

use orchestrix_core::{
    DependsOn, JobId, NewJob, OnDependencyFailure, Timestamp,
    schedule::{Admission, NewSchedule, OccurrenceOutcome, Overlap, Reason, ScheduleName},
};

use super::{Occurrence, Schedule};

/// What a store writes in one transaction when a schedule fires.
#[derive(Debug, Clone, PartialEq)]
pub struct Firing {
    /// Occurrences for the ledger, in order. Those that fired have a job in `jobs`, in the same order.
    pub lines: Vec<Occurrence>,
    /// The jobs of occurrences that fired, in order. They wait for each other by [`NewJob::reference`].
    pub jobs: Vec<NewJob>,
    /// Earlier jobs to cancel.
    pub cancel: Vec<JobId>,
    /// The schedule afterwards. `None` only while the firing is being built.
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

    /// Whether it enqueues a job.
    pub fn fires(&self) -> bool {
        !self.jobs.is_empty()
    }

    // With cancel_running, only the `last` of several due occurrences fires: the next would cancel the others at once.
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
