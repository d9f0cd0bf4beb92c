//! Metrics of real processes: their names and their values.

mod exposition;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use self::exposition::{ALL, MetricsPage};
use crate::{
    harness::{CliOutput, TestEnv, each_database, on_each_database, orchestrix},
    server::process::ServerProcess,
};

/// A server with short intervals: it leads soon, and reaps leases soon after its start.
fn server(env: &TestEnv, node: &str) -> ServerProcess {
    let times = ["--heartbeat-interval", "200ms", "--leader-term", "2s", "--node-id", node];
    ServerProcess::spawn(env.command(&[&["server", "--no-auth", "--listen", "127.0.0.1:0"], &times[..]].concat()))
}

/// A worker that serves its metrics.
fn worker(env: &TestEnv, flags: &[&str]) -> ServerProcess {
    let flags = [&["worker", "--metrics-listen", "127.0.0.1:0", "--poll-interval", "20ms"], flags].concat();
    ServerProcess::spawn(env.command(&flags))
}

fn job(server: &ServerProcess, body: &Value) -> String {
    server.post("/jobs", body).accepted_job_id()
}

fn lease(server: &ServerProcess, queue: &str) -> String {
    let ask = json!({"workerId": "w", "queues": [queue], "max": 1, "waitSeconds": 20});
    let answer = server.post("/worker/leases", &ask);
    answer.json()["leases"][0]["leaseToken"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

fn report(server: &ServerProcess, token: &str, what: &str, body: &Value) -> u16 {
    server.post(&format!("/worker/leases/{token}/{what}"), body).status
}

#[test]
fn a_server_counts_what_it_commits() {
    for env in each_database() {
        let server = server(&env, "here");
        // Five jobs: three complete, one dies, one is cancelled. Some requests are repeated.
        let ids: Vec<String> = (0..5)
            .map(|n| job(&server, &json!({"jobType": "t", "queue": "five", "idempotencyKey": format!("k{n}")})))
            .collect();
        assert_eq!(job(&server, &json!({"jobType": "t", "queue": "five", "idempotencyKey": "k0"})), ids[0]);
        assert_eq!(server.send("POST", &format!("/jobs/{}/cancel", ids[4]), "").status, 202);
        let tokens: Vec<String> = (0..4).map(|_| lease(&server, "five")).collect();
        for token in &tokens[..2] {
            for _ in 0..2 {
                assert_eq!(report(&server, token, "complete", &json!({"result": 1})), 200);
            }
        }
        let items = json!({"items": [{"leaseToken": tokens[2]}, {"leaseToken": "nonsense"}]});
        assert_eq!(server.post("/worker/leases/complete-batch", &items).status, 200);
        assert_eq!(report(&server, &tokens[3], "fail", &json!({"error": "no use", "retryable": false})), 200);
        // Three writes with a lost lease.
        assert_eq!(report(&server, &tokens[3], "complete", &json!({})), 409);
        assert_eq!(report(&server, &tokens[3], "progress", &json!({"percent": 1})), 409);
        assert_eq!(report(&server, &tokens[3], "logs", &json!({"lines": [{"message": "x"}]})), 409);

        let page = MetricsPage::of(&server);
        let five = |outcome| [("queue", "five"), ("type", "t"), ("outcome", outcome)];
        let name = "orchestrix_jobs_finished_total";
        assert_eq!(page.value("orchestrix_jobs_enqueued_total", &five("")[..2]), Some(5.0));
        assert_eq!(page.value(name, &five("completed")), Some(3.0));
        assert_eq!(page.value(name, &five("dead")), Some(1.0));
        assert_eq!(page.value(name, &five("cancelled")), Some(1.0));
        assert_eq!(page.value("orchestrix_stale_writes_rejected_total", &[]), Some(4.0));
        assert_eq!(page.value("orchestrix_job_wait_seconds_count", &[("queue", "five")]), Some(4.0));
        assert_eq!(page.value("orchestrix_job_run_seconds_count", &five("")[..2]), None, "no job ran in this process");
        assert!(page.value("orchestrix_claim_seconds_count", &[]) >= Some(4.0));
    }
}

#[test]
fn a_worker_counts_its_commits_and_a_remote_worker_leaves_them_to_the_server() {
    for env in each_database() {
        let server = server(&env, "here");
        let of = |kind: &str, n: usize| {
            (0..n)
                .map(|_| {
                    job(
                        &server,
                        &json!({"jobType": kind, "queue": "q", "maxAttempts": 2, "retry": {"baseSeconds": 0.01}}),
                    )
                })
                .collect::<Vec<String>>()
        };
        let jobs = [of("orchestrix.noop", 3), of("orchestrix.fail", 1)].concat();
        let lane = |kind| [("queue", "q"), ("type", kind)];
        let ended = |kind, outcome| [("queue", "q"), ("type", kind), ("outcome", outcome)];
        let name = "orchestrix_jobs_finished_total";
        {
            let worker = worker(&env, &["--no-coordinator"]);
            for id in &jobs[..3] {
                server.wait_for_status(id, "COMPLETED");
            }
            server.wait_for_status(&jobs[3], "FAILED");
            let page = MetricsPage::wait_until(&worker, |page| {
                page.value(name, &ended("orchestrix.noop", "completed")) == Some(3.0)
                    && page.value(name, &ended("orchestrix.fail", "dead")) == Some(1.0)
            });
            assert_eq!(page.value("orchestrix_job_run_seconds_count", &lane("orchestrix.noop")), Some(3.0));
            assert_eq!(
                page.value("orchestrix_job_run_seconds_count", &lane("orchestrix.fail")),
                Some(2.0),
                "two attempts"
            );
            assert_eq!(page.value("orchestrix_job_wait_seconds_count", &[("queue", "q")]), Some(5.0));
            assert_eq!(worker.get("/healthz").json()["status"], "ok");
            assert_eq!(worker.get("/jobs").status, 404);
            let page = MetricsPage::of(&server);
            assert_eq!(page.value("orchestrix_jobs_enqueued_total", &lane("orchestrix.noop")), Some(3.0));
            assert_eq!(page.value(name, &ended("orchestrix.noop", "completed")), None, "the worker committed it");
        }
        let over = format!("http://{}", server.address);
        let flags = ["worker", "--metrics-listen", "127.0.0.1:0", "--server", &over];
        let worker = ServerProcess::spawn(orchestrix(&flags));
        let [id] = &of("orchestrix.noop", 1)[..] else { panic!("expected one job") };
        server.wait_for_status(id, "COMPLETED");
        let page = MetricsPage::wait_until(&worker, |page| {
            page.value("orchestrix_job_run_seconds_count", &lane("orchestrix.noop")) == Some(1.0)
        });
        assert_eq!(page.value(name, &ended("orchestrix.noop", "completed")), None);
        assert_eq!(MetricsPage::of(&server).value(name, &ended("orchestrix.noop", "completed")), Some(1.0));
    }
}

#[test]
fn the_leader_reports_queues_workers_schedules_and_lost_leases() {
    on_each_database(|env| {
        let server = server(&env, "here");
        job(&server, &json!({"jobType": "t", "queue": "lost", "leaseSeconds": 1}));
        lease(&server, "lost");
        let later = job(&server, &json!({"jobType": "t", "queue": "full", "delaySeconds": 3600}));
        job(&server, &json!({"jobType": "t", "queue": "full"}));
        let schedule = json!({"everySeconds": 3600, "job": {"jobType": "tick", "queue": "ticks"}});
        assert_eq!(server.send("PUT", "/schedules/hourly", &schedule.to_string()).status, 201);
        server.send("POST", "/schedules/hourly/trigger", "").accepted_job_id();
        let schedule = json!({"everySeconds": 1, "job": {"jobType": "tick", "queue": "tocks"}});
        assert_eq!(server.send("PUT", "/schedules/often", &schedule.to_string()).status, 201);

        let fired = |name| [("schedule", name), ("outcome", "fired")];
        let full = |state| [("queue", "full"), ("state", state)];
        let page = MetricsPage::wait_until(&server, |page| {
            page.value("orchestrix_leases_lost_total", &[]) == Some(1.0)
                && page.value("orchestrix_schedule_fires_total", &fired("often")) == Some(1.0)
                && page.value("orchestrix_queue_depth", &full("pending")) == Some(1.0)
        });
        assert_eq!(page.value("orchestrix_schedule_fires_total", &fired("hourly")), Some(1.0));
        assert_eq!(page.value("orchestrix_jobs_enqueued_total", &[("queue", "ticks"), ("type", "tick")]), Some(1.0));
        assert_eq!(page.value("orchestrix_jobs_enqueued_total", &[("queue", "tocks"), ("type", "tick")]), Some(1.0));
        assert_eq!(page.value("orchestrix_queue_depth", &full("scheduled")), Some(1.0));
        assert!(page.value("orchestrix_queue_oldest_seconds", &[("queue", "full")]) > Some(0.0));
        assert_eq!(page.value("orchestrix_leader", &[("node", "here")]), Some(1.0));
        assert_eq!(page.value("orchestrix_leader_changes_total", &[]), Some(1.0));
        MetricsPage::wait_until(&server, |page| page.value("orchestrix_workers", &[("state", "live")]) == Some(1.0));
        // A count that falls to zero is reported as zero.
        assert_eq!(server.send("POST", &format!("/jobs/{later}/cancel"), "").status, 202);
        MetricsPage::wait_until(&server, |page| page.value("orchestrix_queue_depth", &full("scheduled")) == Some(0.0));

        // Together the two processes show every documented metric and no other.
        let worker = worker(&env, &["--no-coordinator", "--queues", "run"]);
        let id = job(&server, &json!({"jobType": "orchestrix.noop", "queue": "run"}));
        server.wait_for_status(&id, "COMPLETED");
        let run = [("queue", "run"), ("type", "orchestrix.noop")];
        let theirs =
            MetricsPage::wait_until(&worker, |page| page.value("orchestrix_job_run_seconds_count", &run) == Some(1.0));
        let shown: BTreeSet<String> = MetricsPage::of(&server).names().chain(theirs.names()).collect();
        assert_eq!(shown, ALL.iter().map(|(name, ..)| (*name).to_owned()).collect());
    });
}

#[test]
fn a_former_leader_reports_no_queues() {
    let env = TestEnv::postgres();
    let first = server(&env, "first");
    job(&first, &json!({"jobType": "t", "queue": "full"}));
    let pending = |page: &MetricsPage| page.value("orchestrix_queue_depth", &[("queue", "full"), ("state", "pending")]);
    let leads = |page: &MetricsPage, node| page.value("orchestrix_leader", &[("node", node)]);
    MetricsPage::wait_until(&first, |page| pending(page) == Some(1.0));
    let second = server(&env, "second");
    MetricsPage::wait_until(&second, |page| leads(page, "second") == Some(0.0));
    // Stopped for longer than its term.
    first.signal("STOP");
    let page =
        MetricsPage::wait_until(&second, |page| leads(page, "second") == Some(1.0) && pending(page) == Some(1.0));
    assert_eq!(page.value("orchestrix_leader_changes_total", &[]), Some(2.0), "the first node, then itself");
    first.signal("CONT");
    MetricsPage::wait_until(&first, |page| leads(page, "first") == Some(0.0) && pending(page) == Some(0.0));
}

#[test]
fn requests_are_counted_by_route_and_never_by_path() {
    let env = TestEnv::sqlite();
    let server = server(&env, "here");
    for path in ["/jobs/0197", "/jobs/nothing", "/secret/path", "/jobs/a/b/c?d=e"] {
        assert_eq!(server.get(path).status, 404);
    }
    assert_eq!(server.call("INVENTED", "/jobs", &[], "").status, 405);
    let page = MetricsPage::of(&server);
    let of = |route, method, status| [("route", route), ("method", method), ("status", status)];
    let name = "orchestrix_http_requests_total";
    assert_eq!(page.value(name, &of("/jobs/{jobId}", "GET", "404")), Some(2.0));
    assert_eq!(page.value(name, &of("none", "GET", "404")), Some(2.0));
    assert_eq!(page.value(name, &of("/jobs", "other", "405")), Some(1.0));
    assert_eq!(page.value("orchestrix_http_request_seconds_count", &[]), Some(5.0));
    let again = MetricsPage::of(&server);
    assert_eq!(again.value(name, &of("/metrics", "GET", "200")), Some(1.0), "the first scrape");
    for secret in ["0197", "secret", "INVENTED"] {
        assert!(!again.text.contains(secret), "{}", again.text);
    }
}

#[test]
fn a_worker_with_public_metrics_prints_a_warning() {
    let env = TestEnv::sqlite();
    let shown = ServerProcess::spawn(env.command(&["worker", "--metrics-listen", "0.0.0.0:0"]));
    shown.wait_for_line("warning");
    let hidden = worker(&env, &[]);
    hidden.wait_for_line("concurrency");
    let lines = hidden.shut_down();
    assert!(lines.iter().all(|line| !line.contains("warning")), "{lines:?}");
}

#[test]
fn a_worker_that_cannot_serve_its_metrics_exits() {
    let env = TestEnv::sqlite();
    let server = ServerProcess::start(&env);
    let ran: CliOutput = env.run(&["worker", "--metrics-listen", &server.address]);
    ran.exits_with(5, &server.address);
}
