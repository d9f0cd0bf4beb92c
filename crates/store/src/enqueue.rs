//! What a producer may ask for by itself, and what it gets back.

use orchestrix_core::{DependsOn, FieldError, Invalid, JobId, JobState, NewJob, graph::Parents};

/// A job that is durably recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enqueued {
    /// Its id; under an idempotency key, the id of the first.
    pub id: JobId,
    /// Where it stands now.
    pub state: JobState,
    /// Whether the key was known and nothing new was recorded.
    pub duplicate: bool,
}

/// Checks a job that comes by itself and resolves whom it waits for, as [`orchestrix_core::graph::resolve`] does for
/// many: fields are named without a position, and there is nobody to refer to.
pub fn check_alone(job: &NewJob) -> Result<Parents, Invalid> {
    let mut errors = job.validate().err().map_or_else(Vec::new, |invalid| invalid.errors);
    let mut outside = Vec::new();
    for parent in &job.depends_on {
        match parent {
            DependsOn::Job(id) => outside.push(*id),
            DependsOn::Reference(name) => {
                errors.push(FieldError::new("dependsOn", format!("{name:?} can only name a job of the same call")));
            }
        }
    }
    Invalid::check(errors)?;
    outside.sort_unstable();
    outside.dedup();
    Ok(Parents { inside: Vec::new(), outside })
}
