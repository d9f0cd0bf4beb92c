//! What was seen of jobs, and what of that is news. It only computes: who looks and who is told is `feed`'s.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
    time::Duration,
};

use orchestrix_core::{JobId, JobState, KeyId, Queue, Timestamp};
use orchestrix_store::{ChangesPage, ChangesQuery, JobChange, JobSummary, changes::MAX_CHANGES};

use uuid::Uuid;

use super::{
    leased::Leased,
    memory::{Memory, Picture},
    message,
    watched::Watched,
};

/// How far a look reaches back before the last one.
const SLACK: Duration = Duration::from_millis(500);
/// How far, and every so many looks, for what no other trace is left of, and how far whoever begins to look is told of: longer than any statement
/// may take, in any store, and than clocks should differ.
const REACH: Duration = Duration::from_secs(60);
const REACH_EVERY: u64 = 25;
/// How often, in looks, it is told that there was more than could be shown, and a round through what is unfinished begins: about once a second.
const ROUND_EVERY: u64 = 5;
/// How often, in looks, it is told up to when there was nothing to tell.
const QUIET_EVERY: u64 = 50;

/// A job as it was seen, and what is said of it.
#[derive(Debug)]
pub(super) struct Sighting {
    pub(super) job: Arc<JobChange>,
    text: OnceLock<String>,
}

impl Sighting {
    /// The message, but for its number and its end: made when the first is told, and the same for all.
    pub(super) fn text(&self) -> &str {
        self.text.get_or_init(|| message::status(&self.job))
    }
}

/// What whoever follows a job is told.
#[derive(Debug, Clone)]
pub(super) enum News {
    Job(Arc<Sighting>),
    /// There is no such job.
    Unknown(JobId),
}

impl News {
    pub(super) fn of(job: &Arc<JobChange>) -> Self {
        Self::Job(Arc::new(Sighting { text: OnceLock::new(), job: Arc::clone(job) }))
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
    memory: Memory,
    leased: Leased,
    /// Where the round through what is unfinished goes on.
    ids_after: Option<JobId>,
    /// The last moment that was looked at.
    now: Option<Timestamp>,
    /// Whether nothing was looked at yet but the time, and whether something was for the first time.
    first: bool,
    begun: bool,
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
        let known = self.known(id);
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
                self.memory.remove(id);
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
            self.memory.keep_only(|id| watched.contains(id));
            self.stirred.clear();
            self.leased = Leased::default();
            (self.now, self.missed, self.begun, self.ids_after) = (None, false, false, None);
        }
    }

    /// These are to be looked up for those who follow queues or all jobs.
    pub(super) fn stir(&mut self, ids: &[JobId]) {
        if self.is_broad() {
            let room = MAX_CHANGES.saturating_sub(self.stirred.len());
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

    fn runs(&self, job: &JobChange) -> bool {
        job.state.is_leased() || self.leased.contains(job.id)
    }

    /// What runs now, in the queues that are wanted.
    pub(super) fn running(&self, wanted: impl Fn(&Queue) -> bool) -> Vec<News> {
        // One that is followed by its id may not have been seen by a look at all.
        self.memory.jobs().filter(|job| wanted(&job.queue) && self.runs(job)).map(News::of).collect()
    }

    /// How things stand, for whoever fell behind or comes back.
    pub(super) fn picture(&self) -> Picture {
        self.memory.picture(|job| self.runs(job))
    }

    /// Up to when something is not in the picture that whoever was told all before `since` would have to be told.
    pub(super) fn lacks(&self, since: Timestamp) -> Option<Timestamp> {
        self.now.and_then(|now| self.memory.lacks(since, now))
    }

    /// A job that somebody follows, as it was last seen.
    pub(super) fn known(&self, id: JobId) -> Option<News> {
        self.memory.get(id).map(News::of)
    }

    /// The last moment that was looked at, once one was, for those who follow queues or all jobs.
    pub(super) fn looked_at(&self) -> Option<Timestamp> {
        self.now.filter(|_| !self.first)
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

    /// Begins a look: what of what happened lately is to be shown. The first shows all that any later one might reach back to: it is
    /// remembered, and nobody is told of it later but those who follow such a job by its id or come back.
    pub(super) fn begin(&mut self) -> Option<ChangesQuery> {
        self.looks += 1;
        let now = self.now.filter(|_| self.is_broad())?;
        let slack = if self.first { REACH } else { SLACK };
        let shown = self.leased.all_shown_since().unwrap_or(now).min(now);
        let reaches = self.first || self.looks.is_multiple_of(REACH_EVERY);
        // The first look shows what was recorded. What is left of jobs that are over is not gone through at every look.
        let begins = !self.first && self.looks.is_multiple_of(ROUND_EVERY);
        let floor = JobId::floor(now - REACH).max(self.memory.forgotten().unwrap_or(JobId::from_uuid(Uuid::nil())));
        Some(ChangesQuery {
            enqueued_since: Some(now - slack),
            finished_since: Some(shown - slack),
            cancelled_since: reaches.then(|| now - REACH),
            redriven_since: Some(now - if reaches { REACH } else { SLACK }),
            ids_after: self.ids_after.or(begins.then_some(floor)).map(|after| after.max(floor)),
            leased_after: self.leased.next(),
            limit: MAX_CHANGES,
        })
    }

    /// Jobs to be asked for by their ids: those that somebody follows and that may still change (one that was not seen yet is fresh).
    pub(super) fn asked(&self) -> Vec<JobId> {
        let may_change = |id: &&JobId| self.memory.get(**id).is_some_and(|job| job.state != JobState::Completed);
        self.watched.ids().filter(may_change).copied().collect()
    }

    /// Takes in what happened lately, as it was asked for; what of it is news, and which jobs are to be looked up.
    pub(super) fn take_recent(&mut self, lately: &ChangesQuery, recent: ChangesPage) -> (Vec<News>, Vec<JobId>) {
        // The last who followed queues or all jobs has left meanwhile: whoever comes next begins anew.
        if self.now.is_none() || !self.is_broad() || lately.leased_after != self.leased.next() {
            return (Vec::new(), Vec::new());
        }
        let now = recent.now;
        let begun = self.now.take();
        let first = std::mem::take(&mut self.first);
        self.begun |= first;
        self.leased.begin(now, recent.leased_from);
        let mut news = Vec::new();
        for job in recent.jobs {
            // To whoever begins to follow what happened before is no news.
            let fresh = Some(job.at) >= begun.map(|begun| begun - SLACK);
            let tells = !first || fresh || job.state.is_leased() || self.watched.contains(&job.id);
            news.extend(self.note(job, now).filter(|_| tells));
        }
        if first {
            self.memory.lose(now - REACH);
        }
        if first && recent.more {
            // There may be more that wait than were shown: all that is older.
            let floor = JobId::floor(now - REACH);
            let waits = |job: &&Arc<JobChange>| !job.state.is_leased() && !job.state.is_terminal();
            let shown = self.memory.jobs().filter(waits).map(|job| job.id);
            if let Some(oldest) = shown.filter(|id| *id >= floor && !self.watched.contains(id)).min() {
                self.memory.forget_until(oldest);
            }
        }
        let missed = self.leased.turn(recent.leased_next) || recent.more;
        if missed {
            self.memory.lose(now);
        }
        self.missed |= missed && !first;
        self.now = Some(now);
        let mut ids = self.leased.take_gone(MAX_CHANGES);
        ids.extend(recent.ids.into_iter().filter(|id| self.memory.get(*id).is_none()));
        self.ids_after = recent.ids_next;
        (news, ids)
    }

    /// Of these states, whose jobs are to be looked up: they are not as they were last seen. Those that were asked for and are not
    /// there are unknown.
    pub(super) fn take_states(&mut self, asked: &[JobId], states: &[(JobId, JobState)]) -> (Vec<News>, Vec<JobId>) {
        let status = |id: &JobId| self.memory.get(*id).map(|job| job.status());
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
            self.memory.remove(*id);
            self.leased.remove(*id);
            self.watched.contains(id).then_some(News::Unknown(*id))
        })
        .collect()
    }

    fn note(&mut self, job: JobChange, now: Timestamp) -> Option<News> {
        // Whoever wanted to know has left while it was looked up.
        if !self.concerns(job.id) {
            return None;
        }
        if self.is_broad() && job.state.is_leased() {
            self.leased.insert(job.id);
        } else {
            self.leased.remove(job.id);
        }
        self.memory.note(job, now).as_ref().map(News::of)
    }

    /// Forgets what no look will show again; at the end of each.
    pub(super) fn tidy(&mut self) {
        let Self { watched, leased, memory, now: Some(now), .. } = self else { return };
        memory.tidy(*now, |id| watched.contains(id) || leased.contains(*id));
    }

    /// Whether those who follow queues or all jobs are to be told that there was more than a look could show; about once a second.
    pub(super) fn take_missed(&mut self) -> bool {
        let missed = self.looks.is_multiple_of(ROUND_EVERY) && std::mem::take(&mut self.missed);
        if let Some(now) = self.now.filter(|_| missed) {
            // Those who hear it have heard of looks since then.
            self.memory.lose(now);
        }
        missed
    }

    /// Whether all should hear up to when was looked, though there is nothing to tell: those who come back wait for the first look, and what
    /// was not told long ago is not known to be nothing.
    pub(super) fn takes_note(&mut self) -> bool {
        std::mem::take(&mut self.begun) || (self.is_broad() && self.looks.is_multiple_of(QUIET_EVERY))
    }
}
