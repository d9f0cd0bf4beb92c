//! Reads: single jobs, lists, and queue depths.

use std::{collections::BTreeMap, time::Duration};

use orchestrix_core::{JobId, JobState, Json, NewJob, Progress, Start, Tag, Tenant, Timestamp};

use super::{Harness, fixture::*};
use orchestrix_store::{JobFilter, Outcome, PageRequest, ProgressUpdate, QueueDepth, inspect::MAX_SKEW};

pub(super) async fn an_unknown_job_is_none(h: &Harness) {
    assert_eq!(h.store.job(unknown_id()).await.expect("a store that answers"), None);
    assert_eq!(h.store.job_summary(unknown_id()).await.expect("a store that answers"), None);
}

pub(super) async fn states_and_summaries_of_several_jobs_are_read_in_one_call(h: &Harness) {
    let done = h.start(job("t")).await;
    h.end(&done, Outcome::DONE).await;
    let dead = h.start(NewJob { max_attempts: 1, ..job("t") }).await;
    h.end(&dead, Outcome::fail("x")).await;
    let running = h.start(job("t")).await;
    let waiting = h.enqueue(NewJob { start: Start::After(secs(60)), ..job("t") }).await;
    let expected = BTreeMap::from([
        (done.id(), JobState::Completed),
        (dead.id(), JobState::Dead),
        (running.id(), JobState::Running),
        (waiting, JobState::Scheduled),
    ]);
    let ids: Vec<JobId> = expected.keys().copied().chain([unknown_id()]).collect();
    let states = h.store.job_states(&ids).await.expect("a store that answers");
    assert_eq!(states.len(), expected.len());
    assert_eq!(states.into_iter().collect::<BTreeMap<_, _>>(), expected);
    assert_eq!(h.store.job_states(&[]).await.expect("a store that answers"), []);
    let short = h.store.job_summaries(&ids).await.expect("a store that answers");
    assert_eq!(short.iter().map(|job| (job.id, job.state)).collect::<BTreeMap<_, _>>(), expected);
    for job in short {
        assert_eq!(
            h.store.job_summary(job.id).await.expect("a store that answers"),
            Some(job),
            "the same summary alone and among others"
        );
    }
    assert_eq!(h.store.job_summaries(&[]).await.expect("a store that answers"), []);
}

pub(super) async fn a_summary_agrees_with_its_job(h: &Harness) {
    let request = NewJob {
        queue: queue("mail"),
        priority: priority(4),
        tenant: Tenant::trusted("acme"),
        idempotency_key: key("k"),
        correlation_id: Some("order 7".into()),
        tags: vec![Tag::trusted("billing")],
        max_attempts: 1,
        ..job("t")
    };
    let claimed = h.start(request).await;
    let progress = Some(Progress { percent: Some(5.0), message: Some("begun".into()) });
    let update = ProgressUpdate { progress, checkpoint: Some(Json::null()) };
    h.store.record_progress(claimed.token, update).await.expect("a current token");
    h.store.cancel_job(claimed.id()).await.expect("a running job");
    for end in [false, true] {
        if end {
            h.end(&claimed, Outcome::fail("x")).await;
        }
        let job = h.job(claimed.id()).await;
        let summary = h.store.job_summary(job.id).await.expect("a store that answers").expect("a job that exists");
        assert_eq!(h.list(&JobFilter::default()).await, std::slice::from_ref(&summary));
        assert_eq!((summary.id, summary.state, summary.status()), (job.id, job.state, job.state.status()));
        assert_eq!((summary.job_type, summary.queue, summary.tenant), (job.job_type, job.queue, job.tenant));
        assert_eq!(
            (summary.priority, summary.attempts, summary.max_attempts),
            (job.priority, job.attempts, job.max_attempts)
        );
        assert_eq!((summary.created_at, summary.updated_at), (job.created_at, job.updated_at));
        assert_eq!((summary.eligible_at, summary.started_at), (job.eligible_at, job.started_at));
        assert_eq!((summary.finished_at, summary.worker), (job.finished_at, job.worker));
        assert_eq!((summary.cancel_requested, summary.progress), (job.cancel_requested, job.progress));
        assert_eq!((summary.reason, summary.correlation_id), (job.reason, job.correlation_id));
        assert_eq!((summary.idempotency_key, summary.tags), (job.idempotency_key, job.tags));
    }
}

pub(super) async fn jobs_are_listed_newest_first_page_by_page(h: &Harness) {
    let mut ids = Vec::new();
    for _ in 0..7 {
        ids.push(h.enqueue(job("t")).await);
    }
    let ids = newest_first(ids);
    let mut listed = Vec::new();
    let mut page = PageRequest::first(3);
    loop {
        let part = h.store.list_jobs(&JobFilter::default(), &page).await.expect("a valid page");
        assert!(part.items.len() <= 3);
        listed.extend(part.items.into_iter().map(|job| job.id));
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 3);
    }
    assert_eq!(listed, ids);
    let whole = h.store.list_jobs(&JobFilter::default(), &PageRequest::first(100)).await.expect("a valid page");
    assert_eq!((whole.items.len(), whole.next), (7, None));
}

pub(super) async fn page_sizes_out_of_range_are_refused(h: &Harness) {
    for limit in [0, 1_001] {
        let page = PageRequest::first(limit);
        assert_eq!(bad_fields(h.store.list_jobs(&JobFilter::default(), &page).await), ["limit"]);
    }
}

pub(super) async fn every_field_of_a_filter_must_match(h: &Harness) {
    let tagged = |tags: &[&str]| tags.iter().map(|tag| Tag::trusted(tag)).collect::<Vec<_>>();
    let a = h.enqueue(NewJob { queue: queue("a"), tags: tagged(&["x", "y"]), ..job("t") }).await;
    let b = h.enqueue(NewJob { queue: queue("b"), tags: tagged(&["y"]), hold: true, ..job("t") }).await;
    let c = h.enqueue(NewJob { queue: queue("b"), tenant: Tenant::trusted("acme"), ..job("u") }).await;
    let all = JobFilter::default();
    for (filter, expected) in [
        (JobFilter { queue: Some(queue("b")), ..all.clone() }, vec![c, b]),
        (JobFilter { job_type: Some(job_type("t")), ..all.clone() }, vec![b, a]),
        (JobFilter { tenant: Some(Tenant::trusted("acme")), ..all.clone() }, vec![c]),
        (JobFilter { tag: Some(Tag::trusted("y")), ..all.clone() }, vec![b, a]),
        (JobFilter { tag: Some(Tag::trusted("x")), ..all.clone() }, vec![a]),
        (JobFilter { states: vec![JobState::Created], ..all.clone() }, vec![b]),
        (JobFilter { states: vec![JobState::Pending, JobState::Created], ..all.clone() }, vec![c, b, a]),
        (JobFilter { queue: Some(queue("b")), job_type: Some(job_type("t")), ..all.clone() }, vec![b]),
        (JobFilter { queue: Some(queue("a")), job_type: Some(job_type("u")), ..all.clone() }, vec![]),
        (all, vec![c, b, a]),
    ] {
        assert_eq!(h.listed(&filter).await, newest_first(expected), "{filter:?}");
    }
}

pub(super) async fn a_filter_by_time_includes_its_start_and_excludes_its_end(h: &Harness) {
    let start = h.now().await;
    let mut ids: Vec<JobId> = Vec::new();
    for _ in 0..4 {
        ids.push(h.enqueue(job("t")).await);
        h.advance(secs(1)).await;
    }
    let filter = JobFilter { from: Some(start + secs(1)), to: Some(start + secs(3)), ..JobFilter::default() };
    assert_eq!(h.listed(&filter).await, newest_first([ids[1], ids[2]]));
    // For any precision and any distance of the times.
    let nano = Duration::from_nanos(1);
    let filter =
        JobFilter { from: Some(start + secs(1) + nano), to: Some(start + secs(3) + nano), ..JobFilter::default() };
    assert_eq!(h.listed(&filter).await, newest_first([ids[2], ids[3]]));
    let filter = JobFilter { from: Some(Timestamp::MIN), to: Some(Timestamp::MAX), ..JobFilter::default() };
    assert_eq!(h.listed(&filter).await, newest_first(ids));
}

pub(super) async fn a_list_by_time_scans_only_its_range(h: &Harness) {
    let long = 3 * MAX_SKEW;
    let old = h.now().await;
    let first = h.enqueue(NewJob { hold: true, ..job("t") }).await;
    h.advance(long).await;
    // Each half has more jobs than one page scans.
    let many = h.enqueue_many(vec![NewJob { hold: true, ..job("t") }; 10_000]).await;
    h.enqueue_many(vec![NewJob { hold: true, ..job("t") }; 10_000]).await;
    h.advance(long).await;
    let last = h.enqueue(NewJob { hold: true, ..job("t") }).await;
    let before = JobFilter { to: Some(old + secs(1)), ..JobFilter::default() };
    let after = JobFilter { from: Some(h.now().await), ..JobFilter::default() };
    for states in [vec![], vec![JobState::Created], vec![JobState::Created, JobState::Dead]] {
        for (filter, found) in [(&before, first), (&after, last)] {
            let filter = JobFilter { states: states.clone(), ..filter.clone() };
            let page = h.store.list_jobs(&filter, &PageRequest::first(10)).await.expect("a valid page");
            let ids: Vec<JobId> = page.items.iter().map(|job| job.id).collect();
            assert_eq!((ids, page.next), (vec![found], None), "the first page is the last: {filter:?}");
            // From any cursor.
            for cursor in [first, many[0], last] {
                let page = h.store.list_jobs(&filter, &PageRequest::after(cursor, 10)).await.expect("a valid page");
                assert_eq!(page.next, None, "{filter:?}");
                assert_eq!(page.items.len(), usize::from(found < cursor), "{filter:?}");
            }
        }
    }
    let between = JobFilter { from: Some(old + secs(1)), to: before.to, ..JobFilter::default() };
    let none = h.store.list_jobs(&between, &PageRequest::first(10)).await.expect("a valid page");
    assert_eq!((none.items.len(), none.next), (0, None));
}

pub(super) async fn a_text_filter_matches_literally(h: &Harness) {
    let by_reason = h.dead(job("t")).await;
    let by_type = h.enqueue(job("send.100_mails")).await;
    let by_correlation = h.enqueue(NewJob { correlation_id: Some("100% of 7".into()), ..job("t") }).await;
    let by_key = h.enqueue(NewJob { idempotency_key: key("k\\100"), ..job("t") }).await;
    for (text, expected) in [
        ("100", vec![by_key, by_correlation, by_type]),
        ("0_m", vec![by_type]),
        ("0%", vec![by_correlation]),
        ("\\1", vec![by_key]),
        ("fatal", vec![by_reason]),
        ("FATAL", vec![]),
        ("1_0", vec![]),
        ("1%0", vec![]),
        ("\0", vec![]),
    ] {
        let filter = JobFilter { text: Some(text.into()), ..JobFilter::default() };
        assert_eq!(h.listed(&filter).await, newest_first(expected), "{text}");
    }
}

pub(super) async fn a_rare_job_is_found_among_many_others(h: &Harness) {
    let rare = h.enqueue(job("rare")).await;
    h.advance(secs(1)).await;
    h.enqueue_many(vec![job("common"); NewJob::MAX_BATCH]).await;
    let filter = JobFilter { job_type: Some(job_type("rare")), ..JobFilter::default() };
    assert_eq!(h.listed(&filter).await, [rare]);
}

pub(super) async fn depths_count_unfinished_jobs_by_queue_and_state(h: &Harness) {
    let in_queue = |name: &str| NewJob { queue: queue(name), ..job("t") };
    let running = h.start(in_queue("b")).await;
    let failed = h.start(in_queue("b")).await;
    h.end(&failed, Outcome::fail("not yet")).await;
    h.enqueue(NewJob { queue: queue("b"), ..child_of([running.id()]) }).await;
    let done = h.start(in_queue("finished")).await;
    h.end(&done, Outcome::DONE).await;
    h.dead(in_queue("finished")).await;
    h.enqueue_many(vec![in_queue("a"); 3]).await;
    h.enqueue(NewJob { start: Start::After(secs(60)), ..in_queue("a") }).await;
    h.enqueue(NewJob { hold: true, ..in_queue("a") }).await;
    let cancelled = h.enqueue(in_queue("a")).await;
    h.store.cancel_job(cancelled).await.expect("a waiting job");
    let depth = |name: &str, counts: &[(JobState, u64)]| QueueDepth {
        queue: queue(name),
        paused: false,
        counts: counts.iter().copied().collect::<BTreeMap<_, _>>(),
        oldest: None,
    };
    let expected = [
        QueueDepth {
            oldest: Some(secs(0)),
            ..depth("a", &[(JobState::Created, 1), (JobState::Scheduled, 1), (JobState::Pending, 3)])
        },
        depth("b", &[(JobState::Blocked, 1), (JobState::Running, 1), (JobState::Retrying, 1)]),
    ];
    assert_eq!(h.depths().await, expected);
}

pub(super) async fn the_age_of_a_queue_is_that_of_its_oldest_claimable_job(h: &Harness) {
    h.enqueue(NewJob { start: Start::After(secs(60)), ..job("scheduled") }).await;
    h.advance(secs(10)).await;
    h.enqueue(NewJob { priority: priority(-1), ..job("old") }).await;
    h.advance(secs(10)).await;
    h.enqueue(job("young")).await;
    h.advance(secs(1)).await;
    assert_eq!(h.depths().await[0].oldest, Some(secs(11)));
    h.claim_all().await;
    assert_eq!(h.depths().await[0].oldest, None);
}

pub(super) async fn a_paused_queue_is_listed_even_if_it_is_empty(h: &Harness) {
    h.store.pause_queue(&queue("empty")).await.expect("a store that answers");
    h.store.pause_queue(&queue("full")).await.expect("a store that answers");
    h.enqueue(NewJob { queue: queue("full"), ..job("t") }).await;
    let shown: Vec<(String, bool, usize)> =
        h.depths().await.into_iter().map(|depth| (depth.queue.to_string(), depth.paused, depth.counts.len())).collect();
    assert_eq!(shown, [("empty".into(), true, 0), ("full".into(), true, 1)]);
}

pub(super) async fn queue_depths_are_listed_by_name_page_by_page(h: &Harness) {
    let gone = h.start(NewJob { queue: queue("bb"), ..job("t") }).await;
    h.end(&gone, Outcome::DONE).await;
    let names = ["b", "D", "a", "e.1", "c_2"];
    for name in names {
        h.enqueue_many(vec![NewJob { queue: queue(name), ..job("t") }; 2]).await;
    }
    for name in ["a", "aa", "z"] {
        h.store.pause_queue(&queue(name)).await.expect("a store that answers");
    }
    h.advance(secs(3)).await;
    let mut expected: Vec<(String, bool, Option<u64>)> = names.map(|name| (name.into(), name == "a", Some(2))).into();
    expected.extend([("aa".into(), true, None), ("z".into(), true, None)]);
    expected.sort_unstable();
    for limit in [1, 2, 3, 7, 1_000] {
        let mut counted = Vec::new();
        let mut page = PageRequest::first(limit);
        loop {
            let part = h.store.queue_depths(&page).await.expect("a valid page");
            assert!(part.items.len() <= limit);
            for depth in part.items {
                let waits = depth.counts.contains_key(&JobState::Pending).then_some(secs(3));
                assert_eq!(depth.oldest, waits, "{}", depth.queue);
                counted.push((depth.queue.to_string(), depth.paused, depth.counts.get(&JobState::Pending).copied()));
            }
            let Some(next) = part.next else { break };
            assert!(page.cursor.as_ref() < Some(&next), "the cursor advances");
            page = PageRequest::after(next, limit);
        }
        assert_eq!(counted, expected, "{limit} per page");
    }
    for limit in [0, 1_001] {
        assert_eq!(bad_fields(h.store.queue_depths(&PageRequest::first(limit)).await), ["limit"]);
    }
}

pub(super) async fn the_depth_of_one_queue_equals_its_entry_in_the_list(h: &Harness) {
    for name in ["a", "b", "c"] {
        h.enqueue(NewJob { queue: queue(name), ..job("t") }).await;
        h.enqueue(NewJob { queue: queue(name), hold: true, ..job("t") }).await;
        h.advance(secs(1)).await;
    }
    h.store.pause_queue(&queue("b")).await.expect("a store that answers");
    h.store.pause_queue(&queue("empty")).await.expect("a store that answers");
    for depth in h.depths().await {
        let alone = h.store.queue_depth(&depth.queue).await.expect("a store that answers");
        assert_eq!(alone, Some(depth));
    }
    assert_eq!(h.store.queue_depth(&queue("unknown")).await.expect("a store that answers"), None);
}
