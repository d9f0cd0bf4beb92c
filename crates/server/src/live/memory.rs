//! What is remembered of jobs that were seen: how each stood last, and since when it was known. From this those are told how things stand who
//! fell behind or come back, and this is what tells news from what was told before.
//!
//! There is a limit to it, by time and by number, and it is known what is beyond: whoever asks for more is told that it is not all.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use orchestrix_core::{JobId, Timestamp};
use orchestrix_store::JobChange;

use super::sight::News;

/// How long a job is remembered that no look shows any more; longer than any look reaches back.
const KEPT: Duration = Duration::from_secs(90);
/// The most that are remembered of those that are over, and of those that wait.
const MOST_OVER: usize = 100_000;
const MOST_WAITING: usize = 50_000;

#[derive(Debug)]
struct Seen {
    job: Arc<JobChange>,
    /// The look that showed it first as it stands, by the store's clock, and the last that showed it.
    noted: Timestamp,
    shown: Timestamp,
}

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct Memory {
    jobs: HashMap<JobId, Seen>,
    /// Something that was noted until then may not be known, or no more.
    lost: Option<Timestamp>,
    /// Of those that wait some up to this id were forgotten.
    forgotten: Option<JobId>,
}

/// How things stand, for all who ask at the same moment: what is known of each job, since when, and whether it runs. The oldest first.
pub(super) type Picture = Vec<(Timestamp, bool, News)>;

impl Memory {
    pub(super) fn get(&self, id: JobId) -> Option<&Arc<JobChange>> {
        self.jobs.get(&id).map(|seen| &seen.job)
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = &Arc<JobChange>> {
        self.jobs.values().map(|seen| &seen.job)
    }

    /// Takes in how a job stands; it, if that is news.
    pub(super) fn note(&mut self, job: JobChange, now: Timestamp) -> Option<Arc<JobChange>> {
        let entry = self.jobs.entry(job.id);
        if let Entry::Occupied(mut there) = entry {
            let seen = there.get_mut();
            seen.shown = now;
            if seen.job.status() == job.status() {
                return None;
            }
            (seen.job, seen.noted) = (Arc::new(job), now);
            return Some(Arc::clone(&seen.job));
        }
        let job = Arc::new(job);
        entry.or_insert(Seen { job: Arc::clone(&job), noted: now, shown: now });
        Some(job)
    }

    pub(super) fn remove(&mut self, id: JobId) {
        self.jobs.remove(&id);
    }

    /// Whatever happened until then may not be known.
    pub(super) fn lose(&mut self, until: Timestamp) {
        self.lost = self.lost.max(Some(until));
    }

    /// Of those that wait no more is known up to this id.
    pub(super) fn forget_until(&mut self, id: JobId) {
        self.forgotten = self.forgotten.max(Some(id));
    }

    /// Behind this id nothing was forgotten of those that wait.
    pub(super) fn forgotten(&self) -> Option<JobId> {
        self.forgotten
    }

    /// Up to when something is not known that whoever was told all before `since` would have to be told.
    pub(super) fn lacks(&self, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
        self.lost.max(Some(now - KEPT)).filter(|lost| *lost >= since)
    }

    /// Forgets all but these.
    pub(super) fn keep_only(&mut self, kept: impl Fn(&JobId) -> bool) {
        self.jobs.retain(|id, _| kept(id));
        (self.lost, self.forgotten) = (None, None);
    }

    pub(super) fn picture(&self, runs: impl Fn(&JobChange) -> bool) -> Picture {
        let all = self.jobs.values().map(|seen| (seen.noted, runs(&seen.job), News::of(&seen.job)));
        let mut picture: Picture = all.collect();
        picture.sort_unstable_by_key(|(noted, ..)| *noted);
        picture
    }

    /// Forgets what no look will show again, and what is too much, but for what is held.
    pub(super) fn tidy(&mut self, now: Timestamp, held: impl Fn(&JobId) -> bool) {
        let oldest = now - KEPT;
        self.jobs.retain(|id, seen| seen.shown >= oldest || held(id));
        for (over, most) in [(true, MOST_OVER), (false, MOST_WAITING)] {
            let those = |(id, seen): &(&JobId, &Seen)| seen.job.state.is_terminal() == over && !held(id);
            let count = self.jobs.iter().filter(those).count();
            if count <= most {
                continue;
            }
            // Some more than that, so that it is not sorted at every look.
            let surplus = count - most + most / 10;
            let mut oldest: Vec<(Timestamp, JobId, Timestamp)> =
                self.jobs.iter().filter(those).map(|(id, seen)| (seen.shown, *id, seen.noted)).collect();
            oldest.select_nth_unstable(surplus - 1);
            for (_, id, noted) in &oldest[..surplus] {
                self.jobs.remove(id);
                self.lose(*noted);
                if !over {
                    self.forget_until(*id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::{JobState, JobType, Queue, Tenant};
    use uuid::Uuid;

    use super::*;

    fn job(n: usize, state: JobState) -> JobChange {
        JobChange {
            id: JobId::from_uuid(Uuid::from_u128(n as u128)),
            job_type: JobType::new("t").unwrap(),
            queue: Queue::new("q").unwrap(),
            tenant: Tenant::default(),
            state,
            at: Timestamp::UNIX_EPOCH,
        }
    }

    fn at(millis: usize) -> Timestamp {
        Timestamp::from_millisecond(1_000_000_000 + millis as i64).unwrap()
    }

    #[test]
    fn what_is_the_same_is_no_news_and_is_known_since_it_was_noted_first() {
        let mut memory = Memory::default();
        assert!(memory.note(job(1, JobState::Pending), at(0)).is_some());
        assert!(memory.note(job(1, JobState::Scheduled), at(5)).is_none(), "to whoever asks that is the same");
        assert!(memory.note(job(1, JobState::Running), at(10)).is_some());
        assert!(memory.note(job(1, JobState::Running), at(20)).is_none());
        let picture = memory.picture(|job| job.state.is_leased());
        assert!(matches!(picture[..], [(noted, true, _)] if noted == at(10)));
    }

    #[test]
    fn what_was_forgotten_is_known_to_be() {
        let (mut memory, nobody) = (Memory::default(), |_: &JobId| false);
        assert_eq!(memory.lacks(at(0), at(1)), None);
        for n in 0..MOST_OVER + MOST_WAITING / 2 {
            memory.note(job(n, JobState::Completed), at(n / 10));
        }
        memory.tidy(at(20_000), nobody);
        let lost = memory.lacks(at(0), at(20_000)).expect("more ended than is remembered");
        assert_eq!(memory.lacks(lost + Duration::from_millis(1), at(20_000)), None);
        assert_eq!(memory.forgotten(), None, "of those that wait nothing was");
        let left = memory.picture(|_| false);
        assert!(left.len() <= MOST_OVER && left.iter().all(|(noted, ..)| *noted >= lost), "the latest are");
        // In time all of it goes.
        memory.tidy(at(200_000), nobody);
        assert_eq!(memory.jobs().count(), 0);
        assert_eq!(memory.lacks(at(150_000), at(200_000)), None);
        assert!(memory.lacks(at(100_000), at(200_000)).is_some());
    }

    #[test]
    fn those_that_wait_are_forgotten_up_to_an_id_and_what_is_held_never() {
        let mut memory = Memory::default();
        for n in 0..MOST_WAITING + 2 {
            memory.note(job(n, JobState::Pending), at(n));
        }
        let held = job(3, JobState::Pending).id;
        memory.tidy(at(MOST_WAITING), |id| *id == held);
        let forgotten = memory.forgotten().expect("there were too many");
        assert!(memory.get(held).is_some());
        assert!(memory.jobs().all(|job| job.id > forgotten || job.id == held));
        memory.keep_only(|id| *id == held);
        assert_eq!((memory.jobs().count(), memory.forgotten()), (1, None));
    }
}
