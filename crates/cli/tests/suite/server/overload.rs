//! Ten times as many clients as a server takes: most are turned away, at once and in words, and nobody is lied to.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use serde_json::json;

use super::{
    http::{Answer, LIMIT, Server},
    line::{Line, request},
    quiet::{Held, Quiet, at_once},
};
use crate::support::Place;

/// Requests that are worked on, and that wait.
const WORKED_ON: usize = 4;
const WAITING: usize = 8;
const LIMITS: [&str; 4] = ["--max-requests", "4", "--max-waiting", "8"];
const CLIENTS: usize = 10 * (WORKED_ON + WAITING);

fn job(n: usize) -> String {
    json!({"jobType": "t", "payload": n}).to_string()
}

// The jobs in the database, by their payloads.
fn recorded(place: &Place) -> BTreeSet<usize> {
    let payloads = place.sql("SELECT payload FROM orchestrix.job WHERE job_type = 't'");
    let numbers: BTreeSet<usize> = payloads.iter().map(|payload| payload.parse().unwrap()).collect();
    assert_eq!(numbers.len(), payloads.len(), "a job was recorded twice");
    numbers
}

fn is_turned_away(answer: &Answer) -> bool {
    if answer.status != 429 {
        return false;
    }
    answer.problem(429, "rate_limited");
    assert!(answer.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok()), "{answer:?}");
    true
}

#[test]
fn while_the_database_stands_still_the_rest_is_turned_away_and_health_is_told() {
    let place = Place::postgres();
    let server = Server::start_with(&place, &[&["--roles", "api"], &LIMITS[..]].concat());
    let held = Held::table(&place, "job");
    let answers: Vec<(usize, Answer)> = thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        for n in 0..CLIENTS {
            let (tell, server) = (tell.clone(), &server);
            scope.spawn(move || tell.send((n, server.send("POST", "/jobs", &job(n)))));
        }
        drop(tell);
        let next = || told.recv_timeout(LIMIT).expect("an answer");
        let mut answers: Vec<_> = (0..CLIENTS - WORKED_ON).map(|_| next()).collect();
        assert!(answers.iter().all(|(_, answer)| is_turned_away(answer)), "{answers:?}");
        for path in ["/healthz", "/readyz"] {
            assert_eq!(server.get(path).status, 200, "{path}");
        }
        drop(held);
        answers.extend((0..WORKED_ON).map(|_| next()));
        answers
    });
    // At once, as many as it takes are taken again.
    assert_eq!(at_once(&server, WORKED_ON + WAITING), [202; WORKED_ON + WAITING]);
    for (_, answer) in &answers[CLIENTS - WORKED_ON..] {
        // On a slow machine the lock may have been held for longer than the database waits.
        assert!([202, 503].contains(&answer.status), "{answer:?}");
    }
    let accepted = answers.iter().filter(|(_, answer)| answer.status == 202).map(|(n, _)| *n);
    assert_eq!(recorded(&place), accepted.collect());
}

/// What became of requests, by number.
#[derive(Default)]
struct Told {
    accepted: BTreeSet<usize>,
    turned_away: BTreeSet<usize>,
    /// Sent by clients that went without waiting for an answer.
    unknown: BTreeSet<usize>,
}

const REQUESTS: usize = 5_000;

fn client(server: &Server, next: &AtomicUsize, told: &Mutex<Told>) {
    let mut line = None;
    loop {
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= REQUESTS {
            return;
        }
        let mut open = line.take().unwrap_or_else(|| Line::open(&server.address).unwrap());
        if n.is_multiple_of(10) {
            open.send(&request("POST", "/jobs", &job(n))).unwrap();
            told.lock().unwrap().unknown.insert(n);
            continue;
        }
        let answer = open.ask("POST", "/jobs", &job(n)).unwrap();
        let turned_away = is_turned_away(&answer);
        assert!(turned_away || answer.status == 202, "{answer:?}");
        let mut told = told.lock().unwrap();
        if turned_away { &mut told.turned_away } else { &mut told.accepted }.insert(n);
        line = Some(open);
    }
}

#[test]
fn ten_times_too_many_clients_are_told_the_truth_and_leave_no_trace() {
    let place = Place::postgres();
    let server = Server::start_with(&place, &LIMITS);
    let quiet = Quiet::before(&server, &place);
    let (next, told, over) = (AtomicUsize::new(0), Mutex::new(Told::default()), AtomicBool::new(false));
    let looks = thread::scope(|scope| {
        let health = scope.spawn(|| {
            let mut looks = 0;
            while !over.load(Ordering::Relaxed) {
                for path in ["/healthz", "/readyz"] {
                    assert_eq!(server.get(path).status, 200, "{path}");
                    looks += 1;
                }
            }
            looks
        });
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| client(&server, &next, &told))).collect();
        let ended: Vec<_> = clients.into_iter().map(thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap());
        health.join().unwrap()
    });
    assert!(looks > 0, "nobody looked");
    quiet.until("as many as it takes are taken again", || {
        at_once(&server, WORKED_ON + WAITING) == [202; WORKED_ON + WAITING]
    });
    quiet.returns();

    let (told, recorded) = (told.into_inner().unwrap(), recorded(&place));
    let (accepted, turned_away) = (told.accepted.len(), told.turned_away.len());
    assert!(accepted > 0 && turned_away > 0, "{accepted} accepted, {turned_away} turned away: nothing was shown");
    assert_eq!(told.accepted.difference(&recorded).count(), 0, "accepted, and not there");
    assert_eq!(told.turned_away.intersection(&recorded).count(), 0, "turned away, and there all the same");
    let besides = recorded.difference(&told.accepted).filter(|n| !told.unknown.contains(n)).count();
    assert_eq!(besides, 0, "there, and nobody was told");
}
