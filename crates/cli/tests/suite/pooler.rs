//! Servers and workers behind PgBouncer in transaction mode.

use orchestrix_testkit::{PgBouncer, TestDatabase};
use serde_json::json;

use crate::{
    harness::{TestEnv, orchestrix},
    server::process::ServerProcess,
    worker::{WorkerProcess, eventually},
};

#[test]
fn server_and_worker_run_through_a_pooler_given_pgbouncer_true() {
    let database = TestDatabase::create("pooler").unwrap();
    let bouncer = PgBouncer::start(orchestrix_testkit::test_postgres().unwrap(), 4).unwrap();
    let url = bouncer.url(database.name());
    // Without the option the error differs from that of an unreachable database.
    let plain = TestEnv::at_url(&url);
    plain.run(&["migrate"]).exits_with(1, "pgbouncer=true");
    plain.run(&["jobs", "list"]).exits_with(1, "pgbouncer=true");

    let env = TestEnv::at_url(format!("{url}?pgbouncer=true"));
    env.run(&["migrate"]).success();
    let server = ServerProcess::start(&env);
    let worker = WorkerProcess::start(&env, &["--concurrency", "4"]);
    let ids: Vec<String> = (0..20)
        .map(|n| server.post("/jobs", &json!({"jobType": "orchestrix.echo", "payload": n})).accepted_job_id())
        .collect();
    let again = json!({"message": "not yet", "untilAttempt": 2});
    let again = json!({"jobType": "orchestrix.fail", "payload": again, "retry": {"baseSeconds": 0.01}});
    let again = server.post("/jobs", &again).accepted_job_id();
    let parents = json!({"jobType": "orchestrix.noop", "dependsOn": [again, ids[0]]});
    let last = server.post("/jobs", &parents).accepted_job_id();
    for (n, id) in ids.iter().enumerate() {
        server.wait_for_status(id, "COMPLETED");
        assert_eq!(server.get(&format!("/jobs/{id}/result")).json(), json!({"result": n}));
    }
    server.wait_for_status(&last, "COMPLETED");
    // The leader fires schedules, and operator commands work.
    env.run(&["schedules", "put", "often", "orchestrix.noop", "--every", "1s"]).success();
    eventually("the schedule fires", || {
        let lines = env.json(&["schedules", "occurrences", "often"]);
        lines["items"].as_array().unwrap().iter().any(|line| line["outcome"] == "fired").then_some(())
    });
    let doctor = env.run(&["doctor"]);
    assert!(doctor.stdout.contains("pooler"), "{doctor:?}");
    // A direct connection sees what was written through the pooler.
    let direct = orchestrix(&["jobs", "get", &last, "--database", database.url()]).output().unwrap();
    assert!(direct.status.success(), "{direct:?}");
    worker.shut_down();
    server.shut_down();
}
