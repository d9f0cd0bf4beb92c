//! Run times of attempts, gathered before the recorder is asked.

use std::{collections::BTreeMap, time::Duration};

use metrics::{Histogram, histogram};
use orchestrix_core::{JobType, Queue};

use super::{JOB_RUN, lane};

/// Run times of attempts that end together. Looks up each histogram once.
#[derive(Debug, Default)]
pub struct RunTimes(BTreeMap<(Queue, JobType), Histogram>);

impl RunTimes {
    /// Records how long one attempt ran.
    pub fn record(&mut self, queue: &Queue, job_type: &JobType, took: Duration) {
        let histogram = self
            .0
            .entry((queue.clone(), job_type.clone()))
            .or_insert_with(|| histogram!(JOB_RUN, Vec::from(lane(queue, job_type))));
        histogram.record(took);
    }
}
