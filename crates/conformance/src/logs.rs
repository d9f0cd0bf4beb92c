//! Log lines of jobs.

use super::{Harness, fixture::*};
use orchestrix_store::{ClaimedJob, LogEntry, LogLevel, LogLine, Outcome, PageRequest};

fn line(message: &str) -> LogLine {
    LogLine { at: None, level: LogLevel::Info, message: message.into() }
}

async fn write(h: &Harness, claimed: &ClaimedJob, lines: Vec<LogLine>) {
    h.store.append_logs(claimed.token, lines).await.expect("a current token");
}

async fn read(h: &Harness, claimed: &ClaimedJob) -> Vec<LogEntry> {
    let page = h.store.job_logs(claimed.id(), &PageRequest::first(1_000)).await.expect("a valid page");
    assert_eq!(page.next, None);
    page.items
}

pub(super) async fn log_lines_are_in_the_order_they_were_written(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let earlier = h.now().await - secs(60);
    let odd = LogLine { at: Some(earlier), level: LogLevel::Error, message: "é\n\u{1f980}".into() };
    write(h, &claimed, vec![line("a"), odd]).await;
    h.advance(secs(1)).await;
    write(h, &claimed, vec![line("")]).await;
    let now = h.now().await;
    let entries = read(h, &claimed).await;
    let shown: Vec<_> = entries.iter().map(|entry| (entry.at, entry.level, entry.message.as_str())).collect();
    let expected =
        [(now - secs(1), LogLevel::Info, "a"), (earlier, LogLevel::Error, "é\n\u{1f980}"), (now, LogLevel::Info, "")];
    assert_eq!(shown, expected);
    assert!(entries.is_sorted_by(|a, b| a.seq < b.seq), "sequence numbers should increase along the log");
}

pub(super) async fn a_log_line_has_the_number_of_its_attempt(h: &Harness) {
    let claimed = h.start(job("t")).await;
    write(h, &claimed, vec![line("one")]).await;
    h.end(&claimed, Outcome::fail("not yet")).await;
    let claimed = h.start_again(claimed.id()).await;
    write(h, &claimed, vec![line("two")]).await;
    let attempts: Vec<u16> = read(h, &claimed).await.iter().map(|entry| entry.attempt).collect();
    assert_eq!(attempts, [1, 2]);
}

pub(super) async fn log_pages_hold_the_lines_of_one_job(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let other = h.start(job("other")).await;
    for i in 0..5 {
        write(h, &claimed, vec![line(&i.to_string())]).await;
        write(h, &other, vec![line("other")]).await;
    }
    let mut messages = Vec::new();
    let mut page = PageRequest::first(2);
    loop {
        let part = h.store.job_logs(claimed.id(), &page).await.expect("a valid page");
        assert!(part.items.len() <= 2);
        messages.extend(part.items.into_iter().map(|entry| entry.message));
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 2);
    }
    assert_eq!(messages, ["0", "1", "2", "3", "4"]);
}

pub(super) async fn several_logs_are_read_from_cursors_in_one_call(h: &Harness) {
    let (first, second) = (h.start(job("first")).await, h.start(job("second")).await);
    write(h, &first, ["a", "b", "c", "d"].map(line).to_vec()).await;
    write(h, &second, ["e"].map(line).to_vec()).await;
    let after = read(h, &first).await[1].seq;
    // One log from two cursors, one without further lines, and an unknown job.
    let end = read(h, &second).await[0].seq;
    let cursors = [(first.id(), 0), (first.id(), after), (second.id(), 0), (second.id(), end), (unknown_id(), 0)];
    let mut lines = h.store.logs_after(&cursors, 3).await.expect("valid cursors");
    lines.sort_by_key(|(cursor, line)| (*cursor, line.seq));
    let mut expected = Vec::new();
    for (cursor, messages) in [(cursors[0], "abc"), (cursors[1], "cd"), (cursors[2], "e")] {
        expected.extend(messages.chars().map(|message| (cursor, message.to_string())));
    }
    expected.sort_by_key(|(cursor, _)| *cursor);
    assert_eq!(lines.into_iter().map(|(cursor, line)| (cursor, line.message)).collect::<Vec<_>>(), expected);
    assert_eq!(bad_fields(h.store.logs_after(&cursors, 1_001).await), ["limit"]);
}

pub(super) async fn only_the_owner_can_append_log_lines(h: &Harness) {
    let first = h.start(job("t")).await;
    h.lose(&first).await;
    assert!(lease_lost(&h.store.append_logs(first.token, vec![line("late")]).await));
    let second = h.claim_one().await;
    assert!(lease_lost(&h.store.append_logs(first.token, vec![line("late")]).await));
    write(h, &second, vec![line("mine")]).await;
    h.end(&second, Outcome::DONE).await;
    assert!(lease_lost(&h.store.append_logs(second.token, vec![]).await));
    let messages: Vec<String> = read(h, &second).await.into_iter().map(|entry| entry.message).collect();
    assert_eq!(messages, ["mine"]);
}

pub(super) async fn a_call_with_too_many_or_too_long_lines_is_refused(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let many = vec![line("x"); LogLine::MAX_LINES + 1];
    assert_eq!(bad_fields(h.store.append_logs(claimed.token, many).await), ["lines"]);
    for bad in ["x".repeat(LogLine::MAX_MESSAGE + 1), "a\0b".into()] {
        let lines = vec![line("good"), line(&bad)];
        assert_eq!(bad_fields(h.store.append_logs(claimed.token, lines).await), ["lines[1].message"]);
    }
    assert_eq!(read(h, &claimed).await, []);
    write(h, &claimed, vec![line("x"); LogLine::MAX_LINES]).await;
    assert_eq!(read(h, &claimed).await.len(), LogLine::MAX_LINES);
}

pub(super) async fn unknown_jobs_and_pages_out_of_range_are_refused(h: &Harness) {
    let id = unknown_id();
    assert!(not_found(&h.store.job_logs(id, &PageRequest::first(10)).await, id));
    assert!(not_found(&h.store.job_logs(id, &PageRequest::after(7, 10)).await, id), "nor is there a next page");
    let id = h.enqueue(job("t")).await;
    for limit in [0, 1_001] {
        assert_eq!(bad_fields(h.store.job_logs(id, &PageRequest::first(limit)).await), ["limit"]);
    }
    assert_eq!(h.store.job_logs(id, &PageRequest::first(10)).await.expect("a valid page").items, []);
}
