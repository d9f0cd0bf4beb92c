//! What a store answered, in a form that can be compared with what another one did.
//!
//! An answer becomes its debug text. Ids become the order in which jobs appeared; nothing else is changed but what a
//! function here says, and why.

use std::{collections::HashMap, fmt::Debug, time::Duration};

use orchestrix_core::{Job, JobId, Json};
use orchestrix_store::{ClaimedJob, Leadership, LogEntry, QueueDepth, StoreError, SweepResult, SweepTimes};
use uuid::Uuid;

/// The greatest id that steps make up: of the year 1970, which no clock here has shown.
pub(crate) const MADE_UP: u128 = u64::MAX as u128;

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The answer, with ids as ordinals.
    pub text: String,
    /// Whether the store did not answer at all, which is a fault however many stores agree on it.
    pub failed: bool,
}

/// Jobs in the order in which they appeared.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    pub(crate) ids: Vec<JobId>,
    ordinals: HashMap<Uuid, usize>,
}

impl Jobs {
    /// Takes note of a job, if it is new.
    pub(crate) fn meet(&mut self, id: JobId) {
        self.ordinals.entry(id.as_uuid()).or_insert_with(|| {
            self.ids.push(id);
            self.ids.len() - 1
        });
    }

    /// The answer in comparable form.
    pub(crate) fn observe<T: Debug>(&self, answer: &Result<T, StoreError>) -> Observation {
        let failed = matches!(answer, Err(StoreError::Unavailable(_) | StoreError::Backend(_) | StoreError::Schema(_)));
        let text = match answer {
            Ok(answer) => format!("{answer:?}"),
            Err(error) => format!("refused: {error:?}"),
        };
        Observation { text: self.with_ordinals(&text), failed }
    }

    /// Ids stand in the middle of messages too, so they are looked for in the text. Those that a step made up are small
    /// and stay. Any other is that of a job which was not recorded after all, as when two requests of one call share a key.
    fn with_ordinals(&self, text: &str) -> String {
        const LENGTH: usize = 36;
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let id = rest.get(..LENGTH).filter(|_| c.is_ascii_hexdigit()).and_then(|id| Uuid::try_parse(id).ok());
            match id.filter(|id| id.as_u128() > MADE_UP) {
                Some(id) => {
                    out.push_str(&self.ordinals.get(&id).map_or("#unrecorded".into(), |ordinal| format!("#{ordinal}")));
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

/// A job with its JSON, of which its own debug text shows only the length.
pub(crate) fn job(job: Job) -> impl Debug {
    let texts = [Some(&job.payload), job.result.as_ref(), job.checkpoint.as_ref()].map(text);
    (job, texts)
}

/// A claimed job with its JSON, and without its secret, which is the store's own.
pub(crate) fn claimed(mut job: ClaimedJob) -> impl Debug {
    job.token.secret = Uuid::nil();
    let texts = [Some(&job.payload), job.checkpoint.as_ref()].map(text);
    let results: Vec<String> = job.dependency_results.iter().map(|(_, result)| result.as_str().into()).collect();
    (job, texts, results)
}

fn text(json: Option<&Json>) -> Option<String> {
    json.map(|json| json.as_str().into())
}

/// With the numbers of lines replaced by their order: stores count over all jobs, or with gaps.
pub(crate) fn renumbered(mut lines: Vec<LogEntry>) -> Vec<LogEntry> {
    assert!(lines.is_sorted_by_key(|line| line.seq), "log lines out of order");
    for (i, line) in (0..).zip(&mut lines) {
        line.seq = i;
    }
    lines
}

/// To the millisecond, which is what durations count in.
/// What expired. When the next one is due is not compared after a step that cancelled something: stores that tell its dependents in
/// another transaction still count those that are about to be cancelled too.
pub(crate) fn expired(expired: SweepResult) -> SweepResult {
    let expired = swept(expired);
    SweepResult { next_in: expired.next_in.filter(|_| expired.count == 0), ..expired }
}

pub(crate) fn swept(swept: SweepResult) -> SweepResult {
    SweepResult { next_in: swept.next_in.map(to_millis), ..swept }
}

/// To the millisecond, too.
pub(crate) fn leadership(leadership: Leadership) -> Leadership {
    match leadership {
        Leadership::Following { leader, epoch, ends_in } => {
            Leadership::Following { leader, epoch, ends_in: to_millis(ends_in) }
        }
        leading => leading,
    }
}

/// To the millisecond, too. Whether anything waits to be unblocked is as open as what `unblock` answers, and only a server
/// can say how long it has been up.
pub(crate) fn agenda(agenda: SweepTimes) -> SweepTimes {
    let SweepTimes { promote, expire, reap, time_out, fire, .. } = agenda;
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

/// To the millisecond, too.
pub(crate) fn depth(depth: QueueDepth) -> QueueDepth {
    QueueDepth { oldest: depth.oldest.map(to_millis), ..depth }
}

fn to_millis(duration: Duration) -> Duration {
    // Rounded, since a store may have computed it in floating point.
    let rounded = duration + Duration::from_micros(500);
    Duration::new(rounded.as_secs(), rounded.subsec_millis() * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_ordinals_wherever_they_stand() {
        let ids: Vec<JobId> = (1..3).map(|n| JobId::from_uuid(Uuid::from_u128(n << 100))).collect();
        let mut jobs = Jobs::default();
        ids.iter().for_each(|id| jobs.meet(*id));
        jobs.meet(ids[0]);
        let answer: Result<_, StoreError> =
            Ok((ids[1], format!("é there is no job {}.", ids[0]), Uuid::nil(), Uuid::max()));
        let text = r##"(JobId(#1), "é there is no job #0.", 00000000-0000-0000-0000-000000000000, #unrecorded)"##;
        assert_eq!(jobs.observe(&answer), Observation { text: text.into(), failed: false });
    }
}
