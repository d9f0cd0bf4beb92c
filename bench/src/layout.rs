//! How jobs spread over queues, types and tenants.

use orchestrix_core::{JobType, NewJob, Queue, Tenant};

use crate::jobs::job;

/// The number of queues, types and tenants of a set of jobs. Consecutive jobs differ in their type first, then in
/// their queue, then in their tenant, so that lanes are interleaved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) queues: usize,
    pub(crate) job_types: usize,
    pub(crate) tenants: usize,
}

impl Layout {
    /// All jobs in the default queue, of one type and of the default tenant.
    pub(crate) const ONE_LANE: Self = Self { queues: 1, job_types: 1, tenants: 1 };

    /// Lanes of every queue with every type.
    pub(crate) const fn lanes(queues: usize, job_types: usize) -> Self {
        Self { queues, job_types, ..Self::ONE_LANE }
    }

    /// The n-th job.
    pub(crate) fn job(self, n: usize) -> NewJob {
        let mut job = job(n);
        if self.job_types > 1 {
            job.job_type = job_type(n % self.job_types);
        }
        let n = n / self.job_types;
        if self.queues > 1 {
            job.queue = queue(n % self.queues);
        }
        let n = n / self.queues;
        if self.tenants > 1 {
            job.tenant = Tenant::trusted(&format!("tenant-{}", n % self.tenants));
        }
        job
    }

    /// The queues by name, if there are several.
    pub(crate) fn queue_names(self) -> Vec<Queue> {
        (0..self.queues).map(queue).collect()
    }

    /// The types by name, if there are several.
    pub(crate) fn job_type_names(self) -> Vec<JobType> {
        (0..self.job_types).map(job_type).collect()
    }
}

fn queue(n: usize) -> Queue {
    Queue::trusted(&format!("queue-{n}"))
}

fn job_type(n: usize) -> JobType {
    JobType::trusted(&format!("type-{n}"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn jobs_per_lane(layout: Layout, count: usize) -> HashMap<(Queue, JobType), usize> {
        let mut lanes = HashMap::new();
        for job in (0..count).map(|n| layout.job(n)) {
            *lanes.entry((job.queue, job.job_type)).or_default() += 1;
        }
        lanes
    }

    #[test]
    fn lanes_are_even_and_interleaved() {
        let lanes = jobs_per_lane(Layout::lanes(3, 4), 24);
        assert_eq!(lanes.len(), 12);
        assert!(lanes.values().all(|jobs| *jobs == 2));
        assert_eq!(jobs_per_lane(Layout::lanes(3, 4), 12).len(), 12);
    }

    #[test]
    fn claims_can_name_every_lane() {
        let layout = Layout::lanes(3, 4);
        let (queues, job_types) = (layout.queue_names(), layout.job_type_names());
        assert_eq!((queues.len(), job_types.len()), (3, 4));
        for (queue, job_type) in jobs_per_lane(layout, 12).keys() {
            assert!(queues.contains(queue) && job_types.contains(job_type));
        }
    }

    #[test]
    fn one_lane_has_the_defaults() {
        assert_eq!(Layout::ONE_LANE.job(7), job(7));
        let tenants = Layout { tenants: 5, ..Layout::ONE_LANE };
        assert_eq!(jobs_per_lane(tenants, 10).len(), 1);
        assert_ne!(tenants.job(1).tenant, tenants.job(2).tenant);
    }
}
