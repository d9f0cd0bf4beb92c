//! Which jobs: the flags that narrow a list, and lists read to their end.

use anyhow::Result;
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use orchestrix_api::admin::{
    filter::{JobCriteria, JobFilterRequest},
    job::JobSummaryView,
};
use orchestrix_core::{JobId, JobState, JobType, Queue, Tag, Tenant, Timestamp};

use crate::{
    api::{Api, Request},
    output::Page,
    times,
};

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
    /// The same as the API asks for it.
    pub(crate) fn request(&self) -> JobFilterRequest {
        let criteria = JobCriteria {
            queue: self.queue.as_ref().map(ToString::to_string),
            job_type: self.job_type.as_ref().map(ToString::to_string),
            tenant: self.tenant.as_ref().map(ToString::to_string),
            tag: self.tag.as_ref().map(ToString::to_string),
            q: self.text.clone(),
            from: self.from,
            to: self.to,
        };
        JobFilterRequest { state: None, criteria }
    }

    /// Jobs in one of `states`, all if there are none, narrowed by the flags.
    pub(crate) fn in_states(&self, states: &[JobState]) -> JobFilterRequest {
        let state = states.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(",");
        JobFilterRequest { state: (!state.is_empty()).then_some(state), ..self.request() }
    }

    /// Whether any flag was given.
    pub(crate) fn narrows(&self) -> bool {
        self.request() != JobFilterRequest::default()
    }
}

/// Reads a state by its name.
pub(crate) fn states() -> impl TypedValueParser<Value = JobState> {
    PossibleValuesParser::new(JobState::ALL.map(JobState::as_str)).try_map(|name| name.parse::<JobState>())
}

/// Up to `limit` jobs of the list at `path`, and where the rest begins.
pub(crate) async fn find(
    api: &Api,
    path: &str,
    filter: &JobFilterRequest,
    cursor: Option<JobId>,
    limit: usize,
) -> Result<Page<JobSummaryView>> {
    let list = Request::get(path).asking(filter)?;
    Ok(api.gather(&list, cursor.map(|id| id.to_string()), limit).await?)
}
