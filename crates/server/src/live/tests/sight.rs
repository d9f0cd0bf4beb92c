//! What is made of looks, without a store.

use orchestrix_core::{JobId, JobState, JobStatus, JobType, Queue, Tenant, Timestamp};
use orchestrix_memory::MemoryStore;
use orchestrix_store::{ChangesPage, ChangesQuery, JobChange, changes::LeaseCursor, prelude::*};

use super::{enqueue, lines};
use crate::live::sight::Sight;

fn glimpse(id: JobId, state: JobState) -> JobChange {
    JobChange {
        id,
        job_type: JobType::new("t").unwrap(),
        queue: Queue::new("q").unwrap(),
        tenant: Tenant::new("default").unwrap(),
        state,
        at: Timestamp::UNIX_EPOCH,
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn look(jobs: Vec<JobChange>, second: i64) -> ChangesPage {
    ChangesPage { jobs, ..ChangesPage::none(at(second)) }
}

/// What the first look of one who follows all jobs shows.
fn sight_at_start(sight: &mut Sight) -> ChangesQuery {
    sight.widen();
    assert_eq!(sight.begin(), None);
    assert!(sight.lacks_time());
    sight.set_time(at(0));
    sight.begin().unwrap()
}

#[test]
fn an_end_that_was_long_in_its_transaction_is_looked_up_when_the_job_is_leased_no_more() {
    let mut sight = Sight::default();
    sight.widen();
    let id = JobId::new(Timestamp::UNIX_EPOCH, [1; 10]);
    let lately = sight_at_start(&mut sight);
    let (news, gone) = sight.take_recent(&lately, look(vec![glimpse(id, JobState::Running)], 0));
    assert_eq!((lines(news), gone), (vec![(id, Some(JobStatus::Running))], vec![]));
    // It stays leased while its end is not committed, however long that takes.
    for second in 1..20 {
        let lately = sight.begin().unwrap();
        assert!(lately.finished_since < Some(at(second - 1)), "it reaches back");
        let (news, gone) = sight.take_recent(&lately, look(vec![glimpse(id, JobState::Running)], second));
        assert_eq!((lines(news), gone), (vec![], vec![]));
        sight.tidy();
    }
    let lately = sight.begin().unwrap();
    let (news, gone) = sight.take_recent(&lately, look(Vec::new(), 20));
    assert_eq!((lines(news), gone), (vec![], vec![id]));
}

#[test]
fn leased_jobs_are_gone_when_a_whole_round_did_not_show_them_and_none_is_before() {
    let mut sight = Sight::default();
    let [first, second] = [1, 2].map(|n| JobId::new(Timestamp::UNIX_EPOCH, [n; 10]));
    let running = |id| vec![glimpse(id, JobState::Running)];
    let page = |jobs, n, next: Option<JobId>| ChangesPage {
        leased_next: next.map(|id| LeaseCursor { expires_at: at(n), id }),
        ..look(jobs, n)
    };
    let lately = sight_at_start(&mut sight);
    sight.take_recent(&lately, page(running(first), 0, Some(first)));
    for round in 1..4 {
        // The second page of one round and the first of the next.
        let lately = sight.begin().unwrap();
        assert_eq!(lately.leased_after.unwrap().id, first);
        assert!(lately.finished_since < Some(at(2 * round - 2)), "what the round has not shown yet may end meanwhile");
        let (_, gone) = sight.take_recent(&lately, page(running(second), 2 * round - 1, None));
        assert_eq!(gone, []);
        let lately = sight.begin().unwrap();
        assert!(lately.leased_after.unwrap().expires_at < at(0), "from the beginning");
        let (_, gone) = sight.take_recent(&lately, page(running(first), 2 * round, Some(first)));
        assert_eq!(gone, []);
    }
    let lately = sight.begin().unwrap();
    let (_, gone) = sight.take_recent(&lately, page(Vec::new(), 8, None));
    assert_eq!(gone, [second]);
}

#[test]
fn what_was_cancelled_long_before_its_commit_is_told_and_what_was_before_all_is_not() {
    let mut sight = Sight::default();
    let [before, late] = [1, 2].map(|n| JobId::new(Timestamp::UNIX_EPOCH, [n; 10]));
    let cancelled = |id| glimpse(id, JobState::Cancelled);
    let lately = sight_at_start(&mut sight);
    assert!(lately.cancelled_since.is_some(), "{lately:?}");
    let (news, _) = sight.take_recent(&lately, look(vec![cancelled(before)], 0));
    assert_eq!(lines(news), []);
    let mut told = Vec::new();
    // Looks come faster than that; it must be found within a few seconds of them all the same.
    for n in 0..30 {
        let lately = sight.begin().unwrap();
        let shown = match lately.cancelled_since {
            Some(since) => {
                assert!(since <= at(-59), "it reaches back a minute: {since}");
                vec![cancelled(before), cancelled(late)]
            }
            None => Vec::new(),
        };
        told.extend(lines(sight.take_recent(&lately, look(shown, n / 15)).0));
        sight.tidy();
    }
    assert_eq!(told, [(late, Some(JobStatus::Cancelled))]);
}

#[test]
fn who_follows_a_job_by_its_id_hears_that_it_was_cancelled_though_others_begin_to_follow_all() {
    let mut sight = Sight::default();
    let [told, fresh, nobodys] = [1, 2, 3].map(|n| JobId::new(Timestamp::UNIX_EPOCH, [n; 10]));
    sight.watch(told, None);
    assert_eq!(sight.take_recent(&ChangesQuery::leased(1), look(Vec::new(), 0)).0.len(), 0);
    let lately = sight_at_start(&mut sight);
    sight.watch(fresh, None);
    let cancelled = [told, fresh, nobodys].map(|id| glimpse(id, JobState::Cancelled)).to_vec();
    let (news, _) = sight.take_recent(&lately, look(cancelled, 0));
    assert_eq!(lines(news), [told, fresh].map(|id| (id, Some(JobStatus::Cancelled))));
}

#[test]
fn a_round_begins_behind_leases_that_are_over_and_before_any_that_may_come() {
    let mut sight = Sight::default();
    let id = JobId::new(Timestamp::UNIX_EPOCH, [1; 10]);
    let round = |sight: &mut Sight, from: Option<Timestamp>, now: i64| {
        let lately = sight.begin().unwrap();
        let jobs = from.map(|_| glimpse(id, JobState::Running)).into_iter().collect();
        sight.take_recent(&lately, ChangesPage { leased_from: from, ..look(jobs, now) });
        sight.begin().unwrap().leased_after.unwrap().expires_at
    };
    assert_eq!(sight_at_start(&mut sight).leased_after, None);
    // One whose lease ran out long ago and that nobody has taken back is shown at every round.
    assert_eq!(round(&mut sight, Some(at(-500)), 0), at(-560));
    assert_eq!(round(&mut sight, Some(at(-500)), 100), at(-560));
    assert_eq!(round(&mut sight, Some(at(700)), 200), at(140), "a lease of a second may yet be committed");
    assert_eq!(round(&mut sight, None, 300), at(240));
}

#[test]
fn the_picture_is_of_what_runs_and_of_all_that_changed_and_what_it_lacks_is_known() {
    let mut sight = Sight::default();
    let id = |n: u8| JobId::new(Timestamp::UNIX_EPOCH, [n; 10]);
    let lately = sight_at_start(&mut sight);
    let began = [glimpse(id(1), JobState::Pending), glimpse(id(2), JobState::Running)];
    sight.take_recent(&lately, look(began.to_vec(), 0));
    sight.tidy();
    assert_eq!(sight.lacks(at(-59)), None, "the first look reaches back a minute");
    assert_eq!(sight.lacks(at(-61)), Some(at(-60)));
    let lately = sight.begin().unwrap();
    let runs = glimpse(id(2), JobState::Running);
    sight.take_recent(&lately, look(vec![runs.clone(), glimpse(id(3), JobState::Completed)], 10));
    let picture = || {
        let told = sight.picture().into_iter();
        told.map(|(noted, runs, news)| (noted, runs, lines(vec![news])[0])).collect::<Vec<_>>()
    };
    let mut told = picture();
    told.sort_by_key(|(.., (id, _))| *id);
    let expected = [
        (at(0), false, (id(1), Some(JobStatus::Pending))),
        (at(0), true, (id(2), Some(JobStatus::Running))),
        (at(10), false, (id(3), Some(JobStatus::Completed))),
    ];
    assert_eq!(told, expected);
    let lately = sight.begin().unwrap();
    sight.take_recent(&lately, ChangesPage { more: true, ..look(vec![runs], 11) });
    assert_eq!((sight.lacks(at(11)), sight.lacks(at(12))), (Some(at(11)), None), "a look did not show all there was");
}

#[test]
fn what_happened_before_anybody_followed_is_remembered_and_told_to_nobody() {
    let mut sight = Sight::default();
    let [before, just_now, ended] = [1, 2, 3].map(|n| JobId::new(Timestamp::UNIX_EPOCH, [n; 10]));
    let lately = sight_at_start(&mut sight);
    let since = [lately.enqueued_since, lately.finished_since, lately.cancelled_since, lately.redriven_since];
    assert!(since.iter().all(|since| *since <= Some(at(-59))), "{lately:?}");
    let jobs = [(before, JobState::Pending, -30), (just_now, JobState::Pending, 0), (ended, JobState::Completed, -30)];
    let jobs = jobs.map(|(id, state, second)| JobChange { at: at(second), ..glimpse(id, state) }).to_vec();
    let (news, _) = sight.take_recent(&lately, look(jobs.clone(), 0));
    assert_eq!(lines(news), [(just_now, Some(JobStatus::Pending))], "it may have come after he began to follow");
    let lately = sight.begin().unwrap();
    let (news, _) = sight.take_recent(&lately, look(jobs, 1));
    assert_eq!(lines(news), []);
}

/// The next look that begins a round through what is unfinished: one of five.
fn a_round_begins(sight: &mut Sight) -> ChangesQuery {
    let looks: Vec<ChangesQuery> = (0..5).map(|_| sight.begin().unwrap()).collect();
    let begins: Vec<&ChangesQuery> = looks.iter().filter(|lately| lately.ids_after.is_some()).collect();
    assert_eq!(begins.len(), 1, "{looks:?}");
    *begins[0]
}

#[test]
fn what_a_look_could_not_show_is_lost_to_those_who_heard_later_ones() {
    let mut sight = Sight::default();
    let lately = sight_at_start(&mut sight);
    sight.take_recent(&lately, look(Vec::new(), 0));
    let mut missed = Vec::new();
    for second in 1..=10 {
        let lately = sight.begin().unwrap();
        sight.take_recent(&lately, ChangesPage { more: second == 1, ..look(Vec::new(), second) });
        if sight.take_missed() {
            missed.push(sight.lacks(at(second)));
        }
    }
    assert!(matches!(missed[..], [Some(_)]), "told once, and that it is not all: {missed:?}");
}

#[test]
fn what_is_unfinished_and_was_never_seen_is_looked_up_a_page_at_a_time() {
    let mut sight = Sight::default();
    let ids = [1, 2, 3, 4].map(|n| JobId::new(at(-30), [n; 10]));
    let lately = sight_at_start(&mut sight);
    assert_eq!(lately.ids_after, None, "the first look shows what was recorded");
    sight.take_recent(&lately, look(vec![glimpse(ids[0], JobState::Pending)], 0));
    let page = |ids: &[JobId], next| ChangesPage { ids: ids.to_vec(), ids_next: next, ..look(Vec::new(), 1) };
    let lately = a_round_begins(&mut sight);
    assert_eq!(lately.ids_after, Some(JobId::floor(at(-60))), "from a minute back");
    let (news, looked_up) = sight.take_recent(&lately, page(&ids[..2], Some(ids[1])));
    assert_eq!((lines(news), looked_up), (vec![], vec![ids[1]]));
    let lately = sight.begin().unwrap();
    assert_eq!(lately.ids_after, Some(ids[1]));
    let (_, looked_up) = sight.take_recent(&lately, page(&ids[2..], None));
    assert_eq!(looked_up, ids[2..]);
    assert_eq!(a_round_begins(&mut sight).ids_after, Some(JobId::floor(at(-59))), "and again");
    // Where not all that wait are known, those that are not cannot be told from new ones.
    let mut sight = Sight::default();
    let lately = sight_at_start(&mut sight);
    let many = ids[1..].iter().map(|id| glimpse(*id, JobState::Pending)).collect();
    sight.take_recent(&lately, ChangesPage { more: true, ..look(many, 0) });
    assert_eq!(a_round_begins(&mut sight).ids_after, Some(ids[1]));
}

#[test]
fn who_follows_and_leaves_again_and_again_leaves_nothing_behind() {
    let mut sight = Sight::default();
    sight.widen();
    for n in 0..100 {
        let id = JobId::new(Timestamp::UNIX_EPOCH, [n; 10]);
        sight.watch(id, None);
        sight.unwatch(id);
    }
    assert_eq!(sight.take_fresh(), []);
    let id = JobId::new(Timestamp::UNIX_EPOCH, [1; 10]);
    sight.stir(&[id]);
    sight.watch(id, None);
    sight.unwatch(id);
    assert_eq!(sight.take_fresh(), [id], "others want to hear of it");
    sight.narrow();
    assert!(sight.is_idle());
}

#[test]
fn nothing_is_kept_of_a_job_that_nobody_follows_when_it_was_looked_up() {
    let store = MemoryStore::new();
    let mut sight = Sight::default();
    let found = futures_util::FutureExt::now_or_never(async {
        let id = enqueue(&store).await;
        sight.watch(id, None);
        assert_eq!(sight.take_fresh(), [id]);
        let found = store.job_summaries(&[id]).await.unwrap();
        sight.unwatch(id);
        (id, found)
    });
    let (id, found) = found.unwrap();
    assert_eq!(lines(sight.take_found(&[id], found)), []);
    assert!(sight.is_idle() && sight.known(id).is_none());
    sight.put_back(&[id]);
    assert_eq!(sight.take_fresh(), [], "nor is it looked up again");
}
