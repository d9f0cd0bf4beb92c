//! Dependencies among the jobs of one call: references become positions, cycles are refused.

use std::collections::HashMap;

use crate::{DependsOn, FieldError, Invalid, JobId, NewJob};

/// What one job of a call waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parents {
    /// Positions of other jobs in the same call, without repeats.
    pub inside: Vec<usize>,
    /// Jobs recorded earlier, without repeats.
    pub outside: Vec<JobId>,
}

/// Checks every job of a call and resolves whom each waits for: only for jobs of its own tenant. Reports the fields of every job that is
/// wrong.
pub fn resolve(jobs: &[NewJob]) -> Result<Vec<Parents>, Invalid> {
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
                DependsOn::Job(id) => graph[i].outside.push(*id),
                DependsOn::Reference(name) => match positions.get(name.as_str()) {
                    // Only whoever is bound to no tenant can name jobs of several, so there is nothing to hide.
                    Some(position) if jobs[*position].tenant != job.tenant => errors.push(FieldError::new(
                        format!("jobs[{i}].dependsOn[{n}]"),
                        format!("the job with the ref {name:?} is another tenant's, {}", jobs[*position].tenant),
                    )),
                    Some(position) => graph[i].inside.push(*position),
                    None => errors.push(FieldError::new(
                        format!("jobs[{i}].dependsOn[{n}]"),
                        format!("no job of this call has the ref {name:?}"),
                    )),
                },
            }
        }
        graph[i].inside.sort_unstable();
        graph[i].inside.dedup();
        graph[i].outside.sort_unstable();
        graph[i].outside.dedup();
    }
    if errors.is_empty() {
        errors.extend(cycle(&graph).map(|i| FieldError::new(format!("jobs[{i}].dependsOn"), "is part of a cycle")));
    }
    Invalid::check(errors)?;
    Ok(graph)
}

// Takes away jobs that wait for nobody left, round after round; whoever remains waits for itself in the end.
fn cycle(graph: &[Parents]) -> Option<usize> {
    let mut unmet: Vec<usize> = graph.iter().map(|parents| parents.inside.len()).collect();
    let mut children = vec![Vec::new(); graph.len()];
    for (child, parents) in graph.iter().enumerate() {
        for parent in &parents.inside {
            children[*parent].push(child);
        }
    }
    let mut free: Vec<usize> = (0..graph.len()).filter(|i| unmet[*i] == 0).collect();
    while let Some(parent) = free.pop() {
        for child in &children[parent] {
            unmet[*child] -= 1;
            if unmet[*child] == 0 {
                free.push(*child);
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
        assert_eq!(graph.iter().map(|p| p.inside.clone()).collect::<Vec<_>>(), [vec![1, 2], vec![], vec![1]]);
    }

    #[test]
    fn jobs_of_different_tenants_do_not_wait_for_each_other() {
        let of = |tenant, job| NewJob { tenant: Tenant::trusted(tenant), ..job };
        let jobs = [of("acme", job("a", &[])), of("acme", job("b", &["a"])), of("other", job("c", &["b", "a"]))];
        let refused = resolve(&jobs).expect_err("refused").errors;
        let fields: Vec<&str> = refused.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["jobs[2].dependsOn[0]", "jobs[2].dependsOn[1]"]);
        assert_eq!(refused[0].message, "the job with the ref \"b\" is another tenant's, acme");
    }

    #[test]
    fn cycles_self_references_and_unknown_names_are_refused() {
        let message = |jobs: &[NewJob]| resolve(jobs).expect_err("refused").errors[0].to_string();
        assert_eq!(message(&[job("a", &["b"]), job("b", &["a"])]), "jobs[0].dependsOn: is part of a cycle");
        assert_eq!(message(&[job("a", &["a"])]), "jobs[0].dependsOn: is part of a cycle");
        assert_eq!(message(&[job("a", &["x"])]), "jobs[0].dependsOn[0]: no job of this call has the ref \"x\"");
        assert_eq!(message(&[job("a", &[]), job("a", &[])]), "jobs[1].ref: \"a\" is used twice");
    }
}
