//! Counts that are gathered before the recorder is asked.

use std::{collections::BTreeMap, time::Duration};

use metrics::{Histogram, Label, counter, histogram};
use orchestrix_core::{JobState, JobType, Queue, ScheduleName, schedule::Outcome};

use super::{JOB_RUN, JOBS_ENQUEUED, JOBS_FINISHED, SCHEDULE_FIRES, lane, series};

/// What a transaction did to jobs and schedules, to be [counted](Tally::count) once it is committed.
#[derive(Debug, Default)]
pub struct Tally {
    enqueued: BTreeMap<(Queue, JobType), u64>,
    finished: BTreeMap<(Queue, JobType, JobState), u64>,
    fires: BTreeMap<(ScheduleName, &'static str), u64>,
}

impl Tally {
    /// A job was recorded.
    pub fn enqueued(&mut self, queue: &Queue, job_type: &JobType) {
        *self.enqueued.entry((queue.clone(), job_type.clone())).or_default() += 1;
    }

    /// So many jobs moved on to `state`. Only those count that are over.
    pub fn finished(&mut self, queue: &Queue, job_type: &JobType, state: JobState, n: u64) {
        if state.is_terminal() && n > 0 {
            *self.finished.entry((queue.clone(), job_type.clone(), state)).or_default() += n;
        }
    }

    /// So many nominal times of a schedule came to this.
    pub fn fired(&mut self, schedule: &ScheduleName, outcome: Outcome, n: u64) {
        *self.fires.entry((schedule.clone(), outcome.as_str())).or_default() += n;
    }

    /// Takes in what was done besides.
    pub fn add(&mut self, other: Self) {
        fn add<K: Ord>(all: &mut BTreeMap<K, u64>, more: BTreeMap<K, u64>) {
            for (key, n) in more {
                *all.entry(key).or_default() += n;
            }
        }
        add(&mut self.enqueued, other.enqueued);
        add(&mut self.finished, other.finished);
        add(&mut self.fires, other.fires);
    }

    /// Tells the recorder.
    pub fn count(self) {
        for ((queue, job_type), n) in self.enqueued {
            counter!(JOBS_ENQUEUED, Vec::from(lane(&queue, &job_type))).increment(n);
        }
        for ((queue, job_type, state), n) in self.finished {
            let [queue, job_type] = lane(&queue, &job_type);
            let outcome = Label::from_static_parts("outcome", state.as_str());
            counter!(JOBS_FINISHED, vec![queue, job_type, outcome]).increment(n);
        }
        for ((schedule, outcome), n) in self.fires {
            counter!(SCHEDULE_FIRES, "schedule" => series::schedule(&schedule), "outcome" => outcome).increment(n);
        }
    }
}

/// How long attempts took that ended together.
#[derive(Debug, Default)]
pub struct Runs(BTreeMap<(Queue, JobType), Histogram>);

impl Runs {
    /// One took this long.
    pub fn took(&mut self, queue: &Queue, job_type: &JobType, took: Duration) {
        let histogram = self
            .0
            .entry((queue.clone(), job_type.clone()))
            .or_insert_with(|| histogram!(JOB_RUN, Vec::from(lane(queue, job_type))));
        histogram.record(took);
    }
}
