//! Servers and workers behind PgBouncer in transaction mode.

use orchestrix_testkit::{PgBouncer, TestDatabase};
use serde_json::json;

use crate::{
    server::http::Server,
    support::{Place, bare},
    worker::{Running, eventually},
};

#[test]
fn a_server_and_a_worker_do_their_work_through_a_pooler_that_is_named() {
    let database = TestDatabase::create("pooler").unwrap();
    let bouncer = PgBouncer::start(orchestrix_testkit::test_postgres().unwrap(), 4).unwrap();
    let url = bouncer.url(database.name());
    // One that is not named is told from one that is away.
    let plain = Place::at(&url);
    plain.run(&["migrate"]).ended(1, "end --database with ?pgbouncer=true");
    plain.run(&["jobs", "list"]).ended(1, "end --database with ?pgbouncer=true");

    let place = Place::at(format!("{url}?pgbouncer=true"));
    place.run(&["migrate"]).done();
    let server = Server::start(&place);
    let worker = Running::start(&place, &["--concurrency", "4"]);
    let ids: Vec<String> = (0..20)
        .map(|n| server.post("/jobs", &json!({"jobType": "orchestrix.echo", "payload": n})).accepted())
        .collect();
    let again = json!({"message": "not yet", "untilAttempt": 2});
    let again = json!({"jobType": "orchestrix.fail", "payload": again, "retry": {"baseSeconds": 0.01}});
    let again = server.post("/jobs", &again).accepted();
    let parents = json!({"jobType": "orchestrix.noop", "dependsOn": [again, ids[0]]});
    let last = server.post("/jobs", &parents).accepted();
    for (n, id) in ids.iter().enumerate() {
        server.until(id, "COMPLETED");
        assert_eq!(server.get(&format!("/jobs/{id}/result")).json(), json!({"result": n}));
    }
    server.until(&last, "COMPLETED");
    // The leader fires, and operators look.
    place.run(&["schedules", "put", "often", "orchestrix.noop", "--every", "1s"]).done();
    eventually("the schedule fires", || {
        let lines = place.json(&["schedules", "occurrences", "often"]);
        lines["items"].as_array().unwrap().iter().any(|line| line["outcome"] == "fired").then_some(())
    });
    let doctor = place.run(&["doctor"]);
    assert!(doctor.stdout.contains("a pooler in transaction mode is in between"), "{doctor:?}");
    // What goes through it is seen by whoever goes past it.
    let direct = bare(&["jobs", "get", &last, "--database", database.url()]).output().unwrap();
    assert!(direct.status.success(), "{direct:?}");
    worker.last_words();
    server.last_words();
}
