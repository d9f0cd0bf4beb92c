//! Which jobs: the flags that narrow a list, and lists read to their end.

use anyhow::Result;
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use orchestrix_core::{JobId, JobState, JobType, Queue, Tag, Tenant, Timestamp};
use orchestrix_store::{JobFilter, JobSummary, Page, PageRequest, Store};

use crate::times;

const FILTERS: &str = "Filters";

/// The flags that narrow a list. All that are given must match.
#[derive(Debug, Clone, Args)]
#[group(id = "filter", multiple = true)]
pub(crate) struct Filter {
    /// Jobs of this queue
    #[arg(long, env = "ORCHESTRIX_FILTER_QUEUE", hide_env = true, help_heading = FILTERS)]
    queue: Option<Queue>,

    /// Jobs of this type
    #[arg(long = "type", value_name = "TYPE", env = "ORCHESTRIX_FILTER_TYPE", hide_env = true, help_heading = FILTERS)]
    job_type: Option<JobType>,

    /// Jobs of this tenant
    #[arg(long, env = "ORCHESTRIX_FILTER_TENANT", hide_env = true, help_heading = FILTERS)]
    tenant: Option<Tenant>,

    /// Jobs with this tag
    #[arg(long, env = "ORCHESTRIX_FILTER_TAG", hide_env = true, help_heading = FILTERS)]
    tag: Option<Tag>,

    /// Jobs whose type, correlation id, idempotency key or reason holds this text
    #[arg(long, env = "ORCHESTRIX_FILTER_TEXT", hide_env = true, help_heading = FILTERS)]
    text: Option<String>,

    /// Jobs recorded at or after this time, or as long ago as this: 2h
    #[arg(long, value_name = "TIME", value_parser = times::past_time)]
    #[arg(env = "ORCHESTRIX_FILTER_FROM", hide_env = true, help_heading = FILTERS)]
    from: Option<Timestamp>,

    /// Jobs recorded before this time, or longer ago than this: 2h
    #[arg(long, value_name = "TIME", value_parser = times::past_time)]
    #[arg(env = "ORCHESTRIX_FILTER_TO", hide_env = true, help_heading = FILTERS)]
    to: Option<Timestamp>,
}

/// What an action on whatever matches says in its help.
pub(crate) const VARIABLES: &str =
    "The variables of filters begin with ORCHESTRIX_FILTER_: --queue is ORCHESTRIX_FILTER_QUEUE.";

impl Filter {
    /// Jobs in one of `states`, narrowed by the flags.
    pub(crate) fn in_states(self, states: Vec<JobState>) -> JobFilter {
        let Self { queue, job_type, tenant, tag, text, from, to } = self;
        JobFilter { states, queue, job_type, tenant, tag, text, from, to }
    }

    /// Whether any flag was given.
    pub(crate) fn narrows(&self) -> bool {
        self.clone().in_states(Vec::new()) != JobFilter::default()
    }
}

/// Reads a state by its name.
pub(crate) fn states() -> impl TypedValueParser<Value = JobState> {
    PossibleValuesParser::new(JobState::ALL.map(JobState::as_str)).try_map(|name| name.parse::<JobState>())
}

/// Up to `limit` jobs, through as many pages as that takes, and where the rest begins.
pub(crate) async fn find(
    store: &dyn Store,
    filter: &JobFilter,
    cursor: Option<JobId>,
    limit: usize,
) -> Result<Page<JobSummary, JobId>> {
    let mut found = Page { items: Vec::new(), next: cursor };
    loop {
        let limit_now = (limit - found.items.len()).min(PageRequest::<JobId>::MAX_LIMIT);
        let page = store.list(filter, &PageRequest { cursor: found.next, limit: limit_now }).await?;
        found.items.extend(page.items);
        found.next = page.next;
        if found.next.is_none() || found.items.len() >= limit {
            return Ok(found);
        }
    }
}
