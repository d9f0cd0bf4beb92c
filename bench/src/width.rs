//! `width`: drains of many queues, types or tenants, each compared with a drain of one lane.
//!
//! The cost of a claim must not depend on the number of lanes, nor on pending jobs that the worker cannot have.

use anyhow::Result;
use orchestrix_core::JobType;
use orchestrix_store::Queues;

use crate::{
    arguments::Request,
    drain_scenarios::{DrainScenario, JobsAhead, one_lane},
    jobs::JOB_TYPE,
    layout::Layout,
    measure::{Comparison, DatabaseHost},
    report::Row,
};

/// Pending jobs that no claim may return.
const AHEAD: usize = 100_000;

/// The layout of the jobs of a drain, and the queues and types that its claims name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Lanes100,
    Lanes1000,
    Lanes10000,
    Lanes100000,
    Queues10000,
    Types10000,
    Tenants10000,
    NamedTypes,
    NamedQueues,
    Foreign,
    Paused,
}

impl Width {
    pub(crate) const ALL: [Self; 11] = [
        Self::Lanes100,
        Self::Lanes1000,
        Self::Lanes10000,
        Self::Lanes100000,
        Self::Queues10000,
        Self::Types10000,
        Self::Tenants10000,
        Self::NamedTypes,
        Self::NamedQueues,
        Self::Foreign,
        Self::Paused,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Lanes100 => "lanes-100",
            Self::Lanes1000 => "lanes-1000",
            Self::Lanes10000 => "lanes-10000",
            Self::Lanes100000 => "lanes-100000",
            Self::Queues10000 => "queues-10000",
            Self::Types10000 => "types-10000",
            Self::Tenants10000 => "tenants-10000",
            Self::NamedTypes => "named-types",
            Self::NamedQueues => "named-queues",
            Self::Foreign => "foreign",
            Self::Paused => "paused",
        }
    }

    /// The lowest ratio to a drain of one lane. With as many lanes as jobs, each job also creates its lane.
    pub(crate) const fn target(self) -> f64 {
        match self {
            Self::Lanes100000 => 0.6,
            _ => 0.8,
        }
    }

    const fn layout(self) -> Layout {
        match self {
            Self::Lanes100 => Layout::lanes(10, 10),
            Self::Lanes1000 | Self::NamedQueues => Layout::lanes(32, 32),
            Self::Lanes10000 => Layout::lanes(100, 100),
            Self::Lanes100000 => Layout::lanes(316, 317),
            Self::Queues10000 => Layout::lanes(10_000, 1),
            Self::Types10000 => Layout::lanes(1, 10_000),
            Self::Tenants10000 => Layout { tenants: 10_000, ..Layout::ONE_LANE },
            Self::NamedTypes => Layout::lanes(10, 100),
            Self::Foreign | Self::Paused => Layout::ONE_LANE,
        }
    }

    /// The drain. A quick one has fewer jobs but as many lanes.
    fn drain(self, request: &Request) -> DrainScenario {
        let (layout, jobs) = (self.layout(), request.scale.of(AHEAD));
        let drain = DrainScenario { layout, ..baseline(request) };
        match self {
            Self::NamedTypes => DrainScenario { job_types: Some(layout.job_type_names()), ..drain },
            Self::NamedQueues => DrainScenario {
                queues: Queues::Named(layout.queue_names()),
                job_types: Some(layout.job_type_names()),
                ..drain
            },
            Self::Foreign => DrainScenario {
                job_types: Some(vec![JobType::trusted(JOB_TYPE)]),
                ahead: Some(JobsAhead { jobs, layout: Layout::lanes(1, 10_000), paused: false }),
                ..drain
            },
            Self::Paused => DrainScenario {
                ahead: Some(JobsAhead { jobs, layout: Layout::lanes(1_000, 1), paused: true }),
                ..drain
            },
            _ => drain,
        }
    }
}

/// As many jobs in one lane, claimed in batches of the same size.
fn baseline(request: &Request) -> DrainScenario {
    let drain = one_lane(request.batch, request.scale);
    // A quick run may have fewer claims than a final plan takes.
    DrainScenario { warm: request.scale.of(drain.warm), ..drain }
}

/// Compares a drain with a drain of one lane.
pub(crate) async fn compare<P: DatabaseHost>(
    width: Width,
    comparison: &Comparison<'_, P>,
    request: &Request,
) -> Result<Row> {
    comparison.compare(&width.drain(request), &baseline(request)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_have_the_width_of_their_names() {
        for (width, lanes) in [
            (Width::Lanes100, 100),
            (Width::Lanes1000, 1_024),
            (Width::Lanes10000, 10_000),
            (Width::Lanes100000, 100_172),
            (Width::Queues10000, 10_000),
            (Width::Types10000, 10_000),
            (Width::Tenants10000, 1),
            (Width::NamedTypes, 1_000),
            (Width::NamedQueues, 1_024),
            (Width::Foreign, 1),
        ] {
            let layout = width.layout();
            assert_eq!(layout.queues * layout.job_types, lanes, "{}", width.name());
        }
    }
}
