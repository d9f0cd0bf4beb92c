//! Validation of a call before any I/O.

use super::graph::{self, Parents};
use crate::{DependsOn, FieldError, Invalid, NewJob};

/// The most bytes of payload that one call may enqueue, so that one statement stays far below a database's limits.
pub const MAX_CALL_BYTES: usize = 256 * 1024 * 1024;

/// How a call names the fields of its jobs in errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallShape {
    /// One job: `dependsOn`.
    Single,
    /// A list of jobs: `jobs[3].dependsOn`.
    Batch,
}

impl CallShape {
    /// The field that names the parents of the job at `index`.
    pub fn depends_on(self, index: usize) -> String {
        match self {
            Self::Single => "dependsOn".into(),
            Self::Batch => format!("jobs[{index}].dependsOn"),
        }
    }
}

/// Checks a call that enqueues one job and resolves its parents. Such a call has no references to resolve.
pub fn check_job(job: &NewJob) -> Result<Parents, Invalid> {
    let mut errors = job.validate().err().map_or_else(Vec::new, |invalid| invalid.errors);
    let mut existing = Vec::new();
    for parent in &job.depends_on {
        match parent {
            DependsOn::Job(id) => existing.push(*id),
            DependsOn::Reference(name) => {
                let message = format!("{name:?} is a ref, which only a call with several jobs can resolve");
                errors.push(FieldError::new(CallShape::Single.depends_on(0), message));
            }
        }
    }
    Invalid::check(errors)?;
    existing.sort_unstable();
    existing.dedup();
    Ok(Parents { in_call: Vec::new(), existing })
}

/// Checks a call that enqueues several jobs and resolves the parents of each. Reports every bad field of every job.
pub fn check_jobs(jobs: &[NewJob]) -> Result<Vec<Parents>, Invalid> {
    let parents = graph::resolve(jobs)?;
    if jobs.iter().map(|job| job.payload.as_str().len()).sum::<usize>() > MAX_CALL_BYTES {
        return Err(FieldError::new("jobs", format!("hold more than {MAX_CALL_BYTES} bytes of payload")).into());
    }
    Ok(parents)
}

/// Whether no job of the call has an idempotency key or parents.
pub fn is_plain(jobs: &[NewJob]) -> bool {
    jobs.iter().all(|job| job.idempotency_key.is_none() && job.depends_on.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobId, JobType, Json, Timestamp};

    fn job() -> NewJob {
        NewJob::new(JobType::trusted("t"))
    }

    fn fields(invalid: Invalid) -> Vec<String> {
        invalid.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn a_single_job_may_not_depend_on_a_reference() {
        let depends_on = vec![DependsOn::Reference("a".into())];
        let refused = check_job(&NewJob { depends_on, ..job() }).expect_err("a reference");
        assert_eq!(refused.to_string(), "dependsOn: \"a\" is a ref, which only a call with several jobs can resolve");
    }

    #[test]
    fn a_single_job_names_its_bad_fields_without_a_position() {
        let depends_on = vec![DependsOn::Reference("a".into())];
        let refused = check_job(&NewJob { max_attempts: 0, depends_on, ..job() }).expect_err("invalid");
        assert_eq!(fields(refused), ["maxAttempts", "dependsOn"]);
    }

    #[test]
    fn the_parents_of_a_single_job_are_listed_once_and_in_order() {
        let [a, b] = [1, 2].map(|n| JobId::new(Timestamp::UNIX_EPOCH, [n; 10]));
        let depends_on = [b, a, b].map(DependsOn::Job).into();
        let parents = check_job(&NewJob { depends_on, ..job() }).expect("valid");
        assert_eq!(parents, Parents { in_call: vec![], existing: vec![a, b] });
    }

    #[test]
    fn a_call_with_too_many_jobs_is_refused() {
        let refused = check_jobs(&vec![job(); NewJob::MAX_BATCH + 1]).expect_err("too many");
        assert_eq!(refused.to_string(), "jobs: may hold at most 10000, holds 10001");
    }

    #[test]
    fn a_call_with_too_many_bytes_of_payload_is_refused() {
        let payload = Json::trusted(&"1".repeat(Json::MAX_BYTES));
        let mut jobs = vec![NewJob { payload, ..job() }; MAX_CALL_BYTES / Json::MAX_BYTES];
        assert!(check_jobs(&jobs).is_ok());
        jobs.push(job());
        assert_eq!(
            check_jobs(&jobs).expect_err("too large").to_string(),
            "jobs: hold more than 268435456 bytes of payload"
        );
    }
}
