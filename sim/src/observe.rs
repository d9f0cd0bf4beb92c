//! Turns answers of stores into a comparable form.
//!
//! An answer becomes its debug text, with ids replaced by the order in which the jobs appeared. The functions of this
//! module remove further differences that the store traits permit. Each says which, and why.

use std::{collections::HashMap, fmt::Debug, time::Duration};

use orchestrix_core::{Job, JobId, Json};
use orchestrix_store::{ClaimedJob, Leadership, LogEntry, QueueDepth, StoreError, SweepResult, SweepTimes};
use uuid::Uuid;

/// The greatest id that steps invent. It belongs to the year 1970, so no store generates it.
pub(crate) const MAX_FAKE_ID: u128 = u64::MAX as u128;

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The answer, with ids as ordinals.
    pub text: String,
    /// Whether the store failed. That is a bug even if all stores agree.
    pub failed: bool,
}

/// Jobs, numbered in the order in which they appeared.
#[derive(Debug, Default)]
pub(crate) struct JobOrdinals {
    pub(crate) ids: Vec<JobId>,
    ordinals: HashMap<Uuid, usize>,
}

impl JobOrdinals {
    /// Numbers a job, if it is new.
    pub(crate) fn register(&mut self, id: JobId) {
        self.ordinals.entry(id.as_uuid()).or_insert_with(|| {
            self.ids.push(id);
            self.ids.len() - 1
        });
    }

    /// Converts an answer to its comparable form.
    pub(crate) fn observe<T: Debug>(&self, answer: &Result<T, StoreError>) -> Observation {
        let failed = matches!(answer, Err(StoreError::Unavailable(_) | StoreError::Backend(_) | StoreError::Schema(_)));
        let text = match answer {
            Ok(answer) => format!("{answer:?}"),
            Err(error) => format!("refused: {error:?}"),
        };
        Observation { text: self.with_ordinals(&text), failed }
    }

    /// Replaces ids in the text, because messages contain them too. Invented ids are small and stay. Any other unknown
    /// id belongs to a job that was not enqueued after all, as when two jobs of one call share a key.
    fn with_ordinals(&self, text: &str) -> String {
        const LENGTH: usize = 36;
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let id = rest.get(..LENGTH).filter(|_| c.is_ascii_hexdigit()).and_then(|id| Uuid::try_parse(id).ok());
            match id.filter(|id| id.as_u128() > MAX_FAKE_ID) {
                Some(id) => {
                    out.push_str(&self.ordinals.get(&id).map_or("#unknown".into(), |ordinal| format!("#{ordinal}")));
                    rest = &rest[LENGTH..];
                }
                None => {
                    out.push(c);
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        out
    }
}

/// A job with its JSON values. Its debug text shows only their length.
pub(crate) fn job(job: Job) -> impl Debug {
    let texts = [Some(&job.payload), job.result.as_ref(), job.checkpoint.as_ref()].map(text);
    (job, texts)
}

/// A claimed job with its JSON values, and without its secret, which is random.
pub(crate) fn claimed(mut job: ClaimedJob) -> impl Debug {
    job.token.secret = Uuid::nil();
    let texts = [Some(&job.payload), job.checkpoint.as_ref()].map(text);
    let results: Vec<String> = job.dependency_results.iter().map(|(_, result)| result.as_str().into()).collect();
    (job, texts, results)
}

fn text(json: Option<&Json>) -> Option<String> {
    json.map(|json| json.as_str().into())
}

/// Renumbers log lines: stores number them across jobs and with gaps.
pub(crate) fn renumbered(mut lines: Vec<LogEntry>) -> Vec<LogEntry> {
    assert!(lines.is_sorted_by_key(|line| line.seq), "log lines out of order");
    for (i, line) in (0..).zip(&mut lines) {
        line.seq = i;
    }
    lines
}

/// The result of an expiry sweep. `next_in` is not compared after a sweep that cancelled jobs: a store that resolves
/// dependents in another transaction still counts dependents that are about to be cancelled.
pub(crate) fn expired(expired: SweepResult) -> SweepResult {
    let expired = swept(expired);
    SweepResult { next_in: expired.next_in.filter(|_| expired.count == 0), ..expired }
}

/// The result of a sweep, rounded to milliseconds.
pub(crate) fn swept(swept: SweepResult) -> SweepResult {
    SweepResult { next_in: swept.next_in.map(to_millis), ..swept }
}

/// Leadership, rounded to milliseconds.
pub(crate) fn leadership(leadership: Leadership) -> Leadership {
    match leadership {
        Leadership::Following { leader, epoch, ends_in } => {
            Leadership::Following { leader, epoch, ends_in: to_millis(ends_in) }
        }
        leading => leading,
    }
}

/// Sweep times, rounded to milliseconds. Two parts are not compared: `unblock`, because stores may resolve dependents
/// earlier, and `up`, because only a server has an uptime.
pub(crate) fn sweep_times(times: SweepTimes) -> SweepTimes {
    let SweepTimes { promote, expire, reap, time_out, fire, .. } = times;
    let next = |wait: Option<Duration>| wait.map(to_millis);
    SweepTimes {
        promote: next(promote),
        expire: next(expire),
        reap: next(reap),
        time_out: next(time_out),
        fire: next(fire),
        ..SweepTimes::default()
    }
}

/// A queue depth, its age rounded to milliseconds.
pub(crate) fn depth(depth: QueueDepth) -> QueueDepth {
    QueueDepth { oldest: depth.oldest.map(to_millis), ..depth }
}

fn to_millis(duration: Duration) -> Duration {
    // Rounded, because a store may compute it in floating point.
    let rounded = duration + Duration::from_micros(500);
    Duration::new(rounded.as_secs(), rounded.subsec_millis() * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_ordinals_anywhere_in_the_text() {
        let ids: Vec<JobId> = (1..3).map(|n| JobId::from_uuid(Uuid::from_u128(n << 100))).collect();
        let mut jobs = JobOrdinals::default();
        ids.iter().for_each(|id| jobs.register(*id));
        jobs.register(ids[0]);
        let answer: Result<_, StoreError> =
            Ok((ids[1], format!("é there is no job {}.", ids[0]), Uuid::nil(), Uuid::max()));
        let text = r##"(JobId(#1), "é there is no job #0.", 00000000-0000-0000-0000-000000000000, #unknown)"##;
        assert_eq!(jobs.observe(&answer), Observation { text: text.into(), failed: false });
    }
}
