//! How servers begin and end.

use serde_json::json;

use super::http::Server;
use crate::support::{Place, Ran, bare};

#[test]
fn dev_runs_everything_with_one_command_and_keeps_what_it_did() {
    let place = Place::sqlite();
    let command = || {
        let mut command = bare(&["dev", "--listen", "127.0.0.1:0"]);
        command.current_dir(place.folder());
        command
    };
    let mut server = Server::of(command());
    assert!(server.says("curl").contains("orchestrix.echo"));
    let id = server.post("/jobs", &json!({"jobType": "orchestrix.echo", "payload": {"hello": "world"}})).accepted();
    server.until(&id, "COMPLETED");
    assert_eq!(server.get(&format!("/jobs/{id}/result")).json(), json!({"result": {"hello": "world"}}));
    assert_eq!(server.get("/readyz").json()["status"], "ok");
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0));
    assert!(place.folder().join("orchestrix-data/orchestrix.db").exists());
    let server = Server::of(command());
    assert_eq!(server.get(&format!("/jobs/{id}")).json()["status"], "COMPLETED");
}

#[test]
fn a_server_listens_on_loopback_only_and_says_what_is_missing() {
    let place = Place::sqlite();
    let ran = place.run(&["server"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--no-auth"), "{}", ran.stderr);
    let ran = place.run(&["server", "--no-auth", "--listen", "0.0.0.0:0"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let server = Server::start(&place);
    let taken: Ran = place.run(&["server", "--no-auth", "--listen", &server.address]);
    assert_eq!(taken.code, Some(5), "{}", taken.stderr);
    assert!(taken.stderr.contains("cannot listen"), "{}", taken.stderr);
}

#[test]
fn a_signal_lets_what_is_asked_be_answered_and_long_polls_end() {
    let place = Place::sqlite();
    let mut server = Server::start(&place);
    let id = server.post("/jobs", &json!({"jobType": "t"})).accepted();
    let answer = std::thread::scope(|scope| {
        let waits = scope.spawn(|| server.get(&format!("/jobs/{id}?waitSeconds=50")));
        // Whether it is asked before the signal or refused after it, nobody waits for long.
        std::thread::sleep(std::time::Duration::from_millis(300));
        server.signal("TERM");
        waits.join().unwrap()
    });
    assert_eq!((answer.status, &answer.json()["status"]), (200, &"PENDING".into()));
    assert_eq!(server.ended().code(), Some(0));
}
