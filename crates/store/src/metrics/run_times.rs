//! Run times of attempts.

use std::{collections::BTreeMap, time::Duration};

use metrics::{Histogram, histogram};
use orchestrix_core::{JobType, Queue};

use super::{JOB_RUN, lane};

/// Records run times of attempts that end together. Looks up each histogram once.
#[derive(Debug, Default)]
pub struct RunTimes(BTreeMap<(Queue, JobType), Histogram>);

impl RunTimes {
    /// Records the run time of one attempt.
    pub fn record(&mut self, queue: &Queue, job_type: &JobType, took: Duration) {
        let histogram = self
            .0
            .entry((queue.clone(), job_type.clone()))
            .or_insert_with(|| histogram!(JOB_RUN, Vec::from(lane(queue, job_type))));
        histogram.record(took);
    }
}
