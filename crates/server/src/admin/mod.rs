//! `/admin`: the API for operators, one file per resource.

pub(crate) mod audit;
pub(crate) mod dlq;
mod explain;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod nodes;
pub(crate) mod operations;
pub(crate) mod queues;
pub(crate) mod stats;
pub(crate) mod tenants;
pub(crate) mod workers;
