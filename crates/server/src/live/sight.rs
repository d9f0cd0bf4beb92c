//! What was seen of jobs, and what of that is news. It only computes: who looks and who is told is `feed`'s.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use orchestrix_core::{JobId, JobState, KeyId, Queue, Timestamp};
use orchestrix_store::{Glimpse, JobSummary, Lately, Recent, recent::MAX_RECENT};

use super::{leased::Leased, message, watched::Watched};

/// How far a look reaches back before the last one, and how far, every so many looks, for what was recorded.
const SLACK: Duration = Duration::from_millis(500);
const LONG_SLACK: Duration = Duration::from_secs(2);
pub(super) const LONG_EVERY: u64 = 5;
/// How far, and how often, for what was cancelled: longer than any statement may take, in any store.
const CANCELLED_SLACK: Duration = Duration::from_secs(60);
const CANCELLED_EVERY: u64 = 25;
/// How long a job is remembered that no look shows any more, one that only waited and one that ran or ended; longer than any look reaches back.
const WAITING_KEPT: Duration = Duration::from_secs(5);
const OVER_KEPT: Duration = Duration::from_secs(90);
/// The most that are remembered of what ran or ended, and the latest of them that somebody is told of who fell behind.
const MOST_OVER: usize = 20_000;
const TOLD_ANEW: usize = 1_000;
/// How often, in looks, and how many of the jobs are looked at again that somebody could give another chance.
const AGAIN_EVERY: u64 = 10;
const MOST_AGAIN: usize = 1_000;

/// A job as it was seen, and what is said of it.
#[derive(Debug)]
pub(super) struct Sighting {
    pub(super) job: Glimpse,
    /// The message, but for its number and its end.
    pub(super) text: String,
}

/// What whoever follows a job is told.
#[derive(Debug, Clone)]
pub(super) enum News {
    Job(Arc<Sighting>),
    /// There is no such job.
    Unknown(JobId),
}

#[derive(Debug)]
struct Seen {
    sighting: Arc<Sighting>,
    /// The last look that showed it, by the store's clock.
    shown: Timestamp,
    /// Whether it was seen leased before, though it is no longer.
    ran: bool,
}

impl Seen {
    /// Whether whoever knew it as running, or as waiting, would wonder what became of it.
    fn is_over(&self) -> bool {
        self.ran || self.sighting.job.status().is_terminal()
    }
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// Jobs that are followed by their ids.
    watched: Watched,
    /// Jobs to be looked at before the next look at all: those that somebody follows, and others.
    fresh: HashSet<JobId>,
    stirred: HashSet<JobId>,
    /// How many follow queues or all jobs.
    broad: usize,
    seen: HashMap<JobId, Seen>,
    leased: Leased,
    /// The last moment that was looked at.
    now: Option<Timestamp>,
    /// Whether nothing was looked at yet but the time.
    first: bool,
    looks: u64,
    /// Whether there was more than a look could show, and nobody was told yet.
    missed: bool,
}

impl Sight {
    pub(super) fn is_idle(&self) -> bool {
        self.watched.is_empty() && self.broad == 0
    }

    pub(super) fn is_broad(&self) -> bool {
        self.broad > 0
    }

    /// Whether the holder of a key may follow these by their ids. What others follow too costs nothing more.
    pub(super) fn has_room(&self, ids: &[&JobId], key: Option<&KeyId>) -> bool {
        ids.iter().filter(|id| !self.watched.contains(id)).count() <= self.watched.room(key)
    }

    /// Somebody follows a job; what is known of it.
    pub(super) fn watch(&mut self, id: JobId, key: Option<&KeyId>) -> Option<News> {
        self.watched.add(id, key);
        let known = self.seen.get(&id).map(|seen| News::Job(Arc::clone(&seen.sighting)));
        if known.is_none() {
            self.fresh.insert(id);
        }
        known
    }

    /// Somebody follows a job no longer. Only whoever followed it says so, once: nobody else takes anything off the count.
    pub(super) fn unwatch(&mut self, id: JobId) {
        if self.watched.remove(id) {
            self.fresh.remove(&id);
            // With others it is forgotten in its time.
            if !self.is_broad() {
                self.seen.remove(&id);
            }
        }
    }

    /// Whether anybody could want to hear of a job.
    fn concerns(&self, id: JobId) -> bool {
        self.is_broad() || self.watched.contains(&id)
    }

    /// Somebody follows queues or all jobs.
    pub(super) fn widen(&mut self) {
        self.broad += 1;
    }

    pub(super) fn narrow(&mut self) {
        self.broad -= 1;
        if self.broad == 0 {
            // Whoever comes next begins anew: what is remembered would be of long ago by then.
            let watched = &self.watched;
            self.seen.retain(|id, _| watched.contains(id));
            self.stirred.clear();
            self.leased = Leased::default();
            (self.now, self.missed) = (None, false);
        }
    }

    /// Jobs may have changed in a way that those who follow queues or all jobs would not hear of.
    pub(super) fn stir(&mut self, ids: &[JobId]) {
        if self.is_broad() {
            let room = MAX_RECENT.saturating_sub(self.stirred.len());
            self.stirred.extend(ids.iter().take(room));
        }
    }

    /// These could not be looked at, or nothing is known of them.
    pub(super) fn put_back(&mut self, ids: &[JobId]) {
        let (watched, others): (Vec<JobId>, Vec<JobId>) = ids.iter().partition(|id| self.watched.contains(id));
        self.fresh.extend(watched);
        self.stir(&others);
    }

    pub(super) fn take_fresh(&mut self) -> Vec<JobId> {
        let fresh = std::mem::take(&mut self.fresh).into_iter();
        fresh.chain(std::mem::take(&mut self.stirred)).collect()
    }

    fn runs(&self, job: &Glimpse) -> bool {
        job.state.is_leased() || self.leased.contains(job.id)
    }

    /// What runs now, in the queues that are wanted.
    pub(super) fn running(&self, wanted: impl Fn(&Queue) -> bool) -> Vec<News> {
        // One that is followed by its id may not have been seen by a look at all.
        let runs = |seen: &&Seen| wanted(&seen.sighting.job.queue) && self.runs(&seen.sighting.job);
        self.seen.values().filter(runs).map(|seen| News::Job(Arc::clone(&seen.sighting))).collect()
    }

    /// What runs now, and the latest of what ran or ended: how things stand, for whoever fell behind.
    pub(super) fn picture(&self) -> Vec<News> {
        let mut over: Vec<&Arc<Sighting>> = self
            .seen
            .values()
            .filter(|seen| seen.is_over() && !self.runs(&seen.sighting.job))
            .map(|seen| &seen.sighting)
            .collect();
        if over.len() > TOLD_ANEW {
            over.select_nth_unstable_by_key(TOLD_ANEW, |sighting| Reverse(sighting.job.at));
            over.truncate(TOLD_ANEW);
        }
        let mut picture = self.running(|_| true);
        picture.extend(over.into_iter().map(|sighting| News::Job(Arc::clone(sighting))));
        picture
    }

    /// A job that somebody follows, as it was last seen.
    pub(super) fn known(&self, id: JobId) -> Option<News> {
        self.seen.get(&id).map(|seen| News::Job(Arc::clone(&seen.sighting)))
    }

    /// Whether the store's time is to be asked for before the first look at what happened lately.
    pub(super) fn lacks_time(&self) -> bool {
        self.is_broad() && self.now.is_none()
    }

    pub(super) fn set_time(&mut self, now: Timestamp) {
        if self.lacks_time() {
            (self.now, self.first) = (Some(now), true);
        }
    }

    /// Begins a look: what of what happened lately is to be shown. The first shows what is leased, and what was cancelled before, so that
    /// nobody is told of that later but those who follow such a job by its id.
    pub(super) fn begin(&mut self) -> Option<Lately> {
        self.looks += 1;
        let now = self.now.filter(|_| self.is_broad())?;
        let mut lately = Lately { leased_after: self.leased.next(), ..Lately::leased(MAX_RECENT) };
        if !self.first {
            let slack = if self.looks.is_multiple_of(LONG_EVERY) { LONG_SLACK } else { SLACK };
            lately.recorded_since = Some(now - slack);
            lately.ended_since = Some(self.leased.all_shown_since().unwrap_or(now).min(now) - SLACK);
        }
        if self.first || self.looks.is_multiple_of(CANCELLED_EVERY) {
            lately.cancelled_since = Some(now - CANCELLED_SLACK);
        }
        Some(lately)
    }

    /// Jobs to be asked for by their ids: those that somebody follows and that may still change (one that was not seen yet is fresh), and
    /// now and then those that ended lately and could be given another chance.
    pub(super) fn asked(&self) -> Vec<JobId> {
        let state = |id: &JobId| self.seen.get(id).map(|seen| seen.sighting.job.state);
        let may_change = |id: &&JobId| state(id).is_some_and(|state| state != JobState::Completed);
        let mut ids: Vec<JobId> = self.watched.ids().filter(may_change).copied().collect();
        if self.is_broad() && self.looks.is_multiple_of(AGAIN_EVERY) {
            let retriable = |seen: &&Seen| matches!(seen.sighting.job.state, JobState::Dead | JobState::Cancelled);
            let again = self.seen.values().filter(retriable).map(|seen| seen.sighting.job.id);
            ids.extend(again.filter(|id| !self.watched.contains(id)).take(MOST_AGAIN));
        }
        ids
    }

    /// Takes in what happened lately, as it was asked for; what of it is news, and which jobs are to be looked up.
    pub(super) fn take_recent(&mut self, lately: &Lately, recent: Recent) -> (Vec<News>, Vec<JobId>) {
        // The last who followed queues or all jobs has left meanwhile: whoever comes next begins anew.
        if self.now.is_none() || !self.is_broad() || lately.leased_after != self.leased.next() {
            return (Vec::new(), Vec::new());
        }
        let now = recent.now;
        let first = std::mem::take(&mut self.first);
        self.missed |= recent.more && !first;
        self.leased.begin(now, recent.leased_from);
        let mut news = Vec::new();
        for job in recent.jobs {
            let tells = !first || job.state.is_leased() || self.watched.contains(&job.id);
            news.extend(self.note(job, now).filter(|_| tells));
        }
        self.missed |= self.leased.turn(recent.leased_next);
        self.now = Some(now);
        (news, self.leased.take_gone(MAX_RECENT))
    }

    /// Of these states, whose jobs are to be looked up: they are not as they were last seen. Those that were asked for and are not
    /// there are unknown.
    pub(super) fn take_states(&mut self, asked: &[JobId], states: &[(JobId, JobState)]) -> (Vec<News>, Vec<JobId>) {
        let status = |id: &JobId| self.seen.get(id).map(|seen| seen.sighting.job.status());
        let changed =
            states.iter().filter(|(id, state)| status(id) != Some(state.status())).map(|(id, _)| *id).collect();
        let there: HashSet<JobId> = states.iter().map(|(id, _)| *id).collect();
        (self.forget(asked, &there), changed)
    }

    /// Takes in jobs that were looked up.
    pub(super) fn take_found(&mut self, asked: &[JobId], found: Vec<JobSummary>) -> Vec<News> {
        let there: HashSet<JobId> = found.iter().map(|job| job.id).collect();
        let mut news = self.forget(asked, &there);
        for job in found {
            // Only what was shown lately is forgotten by its time, and there is none before the first look.
            let now = self.now.unwrap_or(job.updated_at);
            news.extend(self.note(job.into(), now));
        }
        news
    }

    // Whoever follows one of them hears so and then follows it no longer: see `Listener`. Until then it is not asked for again.
    fn forget(&mut self, asked: &[JobId], there: &HashSet<JobId>) -> Vec<News> {
        let gone = asked.iter().filter(|id| !there.contains(id));
        gone.filter_map(|id| {
            self.seen.remove(id);
            self.leased.remove(*id);
            self.watched.contains(id).then_some(News::Unknown(*id))
        })
        .collect()
    }

    fn note(&mut self, job: Glimpse, now: Timestamp) -> Option<News> {
        // Whoever wanted to know has left while it was looked up.
        if !self.concerns(job.id) {
            return None;
        }
        if self.is_broad() && job.state.is_leased() {
            self.leased.insert(job.id);
        } else {
            self.leased.remove(job.id);
        }
        if let Some(seen) = self.seen.get_mut(&job.id)
            && seen.sighting.job.status() == job.status()
        {
            seen.shown = now;
            return None;
        }
        let ran = self.seen.get(&job.id).is_some_and(|seen| seen.ran || seen.sighting.job.state.is_leased());
        let sighting = Arc::new(Sighting { text: message::status(&job), job });
        self.seen.insert(sighting.job.id, Seen { sighting: Arc::clone(&sighting), shown: now, ran });
        Some(News::Job(sighting))
    }

    /// Forgets what no look will show again; at the end of each.
    pub(super) fn tidy(&mut self) {
        let Self { watched, leased, seen, now: Some(now), .. } = self else { return };
        let held = |id: &JobId| watched.contains(id) || leased.contains(*id);
        seen.retain(|id, seen| {
            let kept = if seen.is_over() { OVER_KEPT } else { WAITING_KEPT };
            held(id) || seen.shown >= *now - kept
        });
        let over = seen.iter().filter(|(id, seen)| seen.is_over() && !held(id));
        let mut over: Vec<(Timestamp, JobId)> = over.map(|(id, seen)| (seen.shown, *id)).collect();
        if over.len() > MOST_OVER {
            over.sort_unstable();
            for (_, id) in &over[..over.len() - MOST_OVER] {
                seen.remove(id);
            }
        }
    }

    /// Whether those who follow queues or all jobs are to be told that there was more than a look could show; about once a second.
    pub(super) fn take_missed(&mut self) -> bool {
        self.looks.is_multiple_of(LONG_EVERY) && std::mem::take(&mut self.missed)
    }
}
