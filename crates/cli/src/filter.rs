//! The flags that select jobs, and the list of the jobs that match.

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
    api::{ApiClient, Request},
    output::Page,
    times,
};

const FILTERS: &str = "Filters";

/// The filter flags. A job must match all that are set.
#[derive(Debug, Clone, Args)]
#[group(id = "filter", multiple = true)]
pub(crate) struct Filter {
    /// Only jobs of this queue
    #[arg(long, env = "ORCHESTRIX_FILTER_QUEUE", hide_env = true, help_heading = FILTERS)]
    queue: Option<Queue>,

    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE", env = "ORCHESTRIX_FILTER_TYPE", hide_env = true, help_heading = FILTERS)]
    job_type: Option<JobType>,

    /// Only jobs of this tenant
    #[arg(long, env = "ORCHESTRIX_FILTER_TENANT", hide_env = true, help_heading = FILTERS)]
    tenant: Option<Tenant>,

    /// Only jobs with this tag
    #[arg(long, env = "ORCHESTRIX_FILTER_TAG", hide_env = true, help_heading = FILTERS)]
    tag: Option<Tag>,

    /// Only jobs whose type, correlation id, idempotency key or reason contains this text
    #[arg(long, env = "ORCHESTRIX_FILTER_TEXT", hide_env = true, help_heading = FILTERS)]
    text: Option<String>,

    /// Only jobs created at or after this time, or within this duration: 2h
    #[arg(long, value_name = "TIME", value_parser = times::past_time)]
    #[arg(env = "ORCHESTRIX_FILTER_FROM", hide_env = true, help_heading = FILTERS)]
    from: Option<Timestamp>,

    /// Only jobs created before this time, or older than this duration: 2h
    #[arg(long, value_name = "TIME", value_parser = times::past_time)]
    #[arg(env = "ORCHESTRIX_FILTER_TO", hide_env = true, help_heading = FILTERS)]
    to: Option<Timestamp>,
}

/// A line about the filters' environment variables, for help texts.
pub(crate) const ENV_HELP: &str =
    "Environment variables of filters begin with ORCHESTRIX_FILTER_: --queue is ORCHESTRIX_FILTER_QUEUE.";

impl Filter {
    /// The filter of an API request.
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

    /// The filter of an API request, restricted to `states` unless they are empty.
    pub(crate) fn in_states(&self, states: &[JobState]) -> JobFilterRequest {
        let state = states.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(",");
        JobFilterRequest { state: (!state.is_empty()).then_some(state), ..self.request() }
    }

    /// Whether any filter flag is set.
    pub(crate) fn is_set(&self) -> bool {
        self.request() != JobFilterRequest::default()
    }
}

/// Parses a job state.
pub(crate) fn state_parser() -> impl TypedValueParser<Value = JobState> {
    PossibleValuesParser::new(JobState::ALL.map(JobState::as_str)).try_map(|name| name.parse::<JobState>())
}

/// Up to `limit` jobs of the list at `path` that match, and the cursor of the rest.
pub(crate) async fn find_jobs(
    api: &ApiClient,
    path: &str,
    filter: &JobFilterRequest,
    cursor: Option<JobId>,
    limit: usize,
) -> Result<Page<JobSummaryView>> {
    let list = Request::get(path).query_params(filter)?;
    Ok(api.collect_pages(&list, cursor.map(|id| id.to_string()), limit).await?)
}
