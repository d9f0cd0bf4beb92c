//! Dependencies within one call: references become positions, cycles are refused.

use std::collections::HashMap;

use crate::{DependsOn, FieldError, Invalid, JobId, NewJob};

/// The parents of one job of a call: the jobs that it waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parents {
    /// Positions of parents that the same call enqueues, sorted, without repeats.
    pub in_call: Vec<usize>,
    /// Ids of parents that were enqueued earlier, sorted, without repeats.
    pub existing: Vec<JobId>,
}

/// Validates every job of a call and resolves its parents. Reports every bad field of every job.
///
/// A job may only refer to jobs of its own tenant, and references must not form a cycle.
pub(super) fn resolve(jobs: &[NewJob]) -> Result<Vec<Parents>, Invalid> {
    if jobs.len() > NewJob::MAX_BATCH {
        return Err(
            FieldError::new("jobs", format!("may hold at most {}, holds {}", NewJob::MAX_BATCH, jobs.len())).into()
        );
    }
    let mut errors = Vec::new();
    let mut positions = HashMap::new();
    for (i, job) in jobs.iter().enumerate() {
        if let Err(invalid) = job.validate() {
            errors.extend(invalid.within(&format!("jobs[{i}]")).errors);
        }
        if let Some(name) = &job.reference
            && positions.insert(name.as_str(), i).is_some()
        {
            errors.push(FieldError::new(format!("jobs[{i}].ref"), format!("{name:?} is used twice")));
        }
    }
    let mut graph = vec![Parents::default(); jobs.len()];
    for (i, job) in jobs.iter().enumerate() {
        for (n, parent) in job.depends_on.iter().enumerate() {
            match parent {
                DependsOn::Job(id) => graph[i].existing.push(*id),
                DependsOn::Reference(name) => match positions.get(name.as_str()) {
                    // Naming the tenant reveals nothing: only a caller bound to no tenant can enqueue for several.
                    Some(position) if jobs[*position].tenant != job.tenant => errors.push(FieldError::new(
                        format!("jobs[{i}].dependsOn[{n}]"),
                        format!("the job with the ref {name:?} belongs to another tenant, {}", jobs[*position].tenant),
                    )),
                    Some(position) => graph[i].in_call.push(*position),
                    None => errors.push(FieldError::new(
                        format!("jobs[{i}].dependsOn[{n}]"),
                        format!("no job of this call has the ref {name:?}"),
                    )),
                },
            }
        }
        graph[i].in_call.sort_unstable();
        graph[i].in_call.dedup();
        graph[i].existing.sort_unstable();
        graph[i].existing.dedup();
    }
    if errors.is_empty() {
        errors.extend(cycle(&graph).map(|i| FieldError::new(format!("jobs[{i}].dependsOn"), "is part of a cycle")));
    }
    Invalid::check(errors)?;
    Ok(graph)
}

// Topological sort: removes jobs without unmet parents until none is left. Any job that remains is behind a cycle.
fn cycle(graph: &[Parents]) -> Option<usize> {
    let mut unmet: Vec<usize> = graph.iter().map(|parents| parents.in_call.len()).collect();
    let mut children = vec![Vec::new(); graph.len()];
    for (child, parents) in graph.iter().enumerate() {
        for parent in &parents.in_call {
            children[*parent].push(child);
        }
    }
    let mut ready: Vec<usize> = (0..graph.len()).filter(|i| unmet[*i] == 0).collect();
    while let Some(parent) = ready.pop() {
        for child in &children[parent] {
            unmet[*child] -= 1;
            if unmet[*child] == 0 {
                ready.push(*child);
            }
        }
    }
    unmet.iter().position(|unmet| *unmet > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobType, Tenant};

    fn job(reference: &str, depends_on: &[&str]) -> NewJob {
        NewJob {
            reference: Some(reference.into()),
            depends_on: depends_on.iter().map(|name| DependsOn::Reference((*name).into())).collect(),
            ..NewJob::new(JobType::trusted("t"))
        }
    }

    #[test]
    fn references_become_positions() {
        let graph = resolve(&[job("c", &["a", "b", "a"]), job("a", &[]), job("b", &["a"])]).expect("a graph");
        assert_eq!(graph.iter().map(|p| p.in_call.clone()).collect::<Vec<_>>(), [vec![1, 2], vec![], vec![1]]);
    }

    #[test]
    fn a_reference_to_a_job_of_another_tenant_is_refused() {
        let of = |tenant, job| NewJob { tenant: Tenant::trusted(tenant), ..job };
        let jobs = [of("acme", job("a", &[])), of("acme", job("b", &["a"])), of("other", job("c", &["b", "a"]))];
        let refused = resolve(&jobs).expect_err("refused").errors;
        let fields: Vec<&str> = refused.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["jobs[2].dependsOn[0]", "jobs[2].dependsOn[1]"]);
        assert_eq!(refused[0].message, "the job with the ref \"b\" belongs to another tenant, acme");
    }

    #[test]
    fn cycles_and_unknown_or_repeated_references_are_refused() {
        let message = |jobs: &[NewJob]| resolve(jobs).expect_err("refused").errors[0].to_string();
        assert_eq!(message(&[job("a", &["b"]), job("b", &["a"])]), "jobs[0].dependsOn: is part of a cycle");
        assert_eq!(message(&[job("a", &["a"])]), "jobs[0].dependsOn: is part of a cycle");
        assert_eq!(message(&[job("a", &["x"])]), "jobs[0].dependsOn[0]: no job of this call has the ref \"x\"");
        assert_eq!(message(&[job("a", &[]), job("a", &[])]), "jobs[1].ref: \"a\" is used twice");
    }
}
