//! Commands and workers over a server, by what their keys allow.

use orchestrix_core::Json;
use orchestrix_store::Outcome;
use serde_json::json;

use super::{forged, guarded, over};
use crate::{
    support::{Place, bare},
    worker::Running,
};

#[test]
fn commands_do_what_their_key_allows_and_say_when_it_does_not() {
    let place = Place::sqlite();
    let [client, operator, admin] = ["client", "operator", "admin"].map(|role| place.key(role, &[]));
    let bound = place.key("client", &["--tenant", "acme"]);
    let server = guarded(&place);
    over(&server, &client, &["jobs", "enqueue", "t"]).done();
    over(&server, &bound, &["jobs", "enqueue", "t", "--tenant", "acme"]).done();
    over(&server, &bound, &["jobs", "enqueue", "t", "--tenant", "other"]).ended(1, "bound to another tenant");
    for key in [&operator, &admin] {
        over(&server, key, &["jobs", "list"]).done();
        over(&server, key, &["queues", "pause", "q"]).done();
    }
    over(&server, &admin, &["keys", "list"]).done();
    let takes =
        |role: &str| format!("does not allow this\n  this key may not do that: it takes one whose role is {role}\n");
    over(&server, &client, &["jobs", "list"]).ended(1, &takes("operator"));
    over(&server, &client, &["queues", "pause", "q"]).ended(1, &takes("operator"));
    over(&server, &operator, &["keys", "create", "--role", "admin"]).ended(1, &takes("admin"));
    over(&server, &operator, &["keys", "list"]).ended(1, "the key's role, operator,");
    let bound = place.key("operator", &["--tenant", "acme"]);
    over(&server, &bound, &["jobs", "list"]).done();
    over(&server, &bound, &["queues", "list"]).ended(1, "\n  use a key that is not bound to a tenant\n");
    over(&server, "", &["jobs", "list"]).ended(1, "give --api-key, or set ORCHESTRIX_API_KEY");
    over(&server, "nonsense", &["jobs", "list"]).ended(1, "or it has expired or was revoked: give another");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_looks_at_its_jobs_and_cancels_them() {
    let place = Place::sqlite();
    let [client, worker, operator] = ["client", "worker", "operator"].map(|role| place.key(role, &[]));
    let bound = place.key("client", &["--tenant", "acme"]);
    let server = guarded(&place);
    let done = place.enqueue(&["t", "--correlation-id", "order-9"]).to_string();
    let result = Json::parse("result", r#"{"sent":  true}"#).unwrap();
    place.work(Outcome::Complete { result: Some(result) }).await;
    let [first, second] = [&[][..], &["--delay", "1h"]].map(|more| {
        let id = over(&server, &client, &[&["jobs", "enqueue", "t"], more].concat()).done().stdout;
        id.split_whitespace().next().unwrap().to_owned()
    });

    let get = |key: &str, id: &str, more: &[&str]| over(&server, key, &[&["jobs", "get", id], more].concat());
    let shown = get(&client, &done, &[]).ended(0, "shown to a key whose role is operator");
    for part in [&done, "status", "COMPLETED", "order-9", r#"{"sent":  true}"#] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let told = get(&client, &done, &["--output", "json"]).done().json();
    assert_eq!((&told["status"], &told["result"]), (&json!("COMPLETED"), &json!({"sent": true})));
    assert!(told.get("state").is_none() && told.get("attempts").is_none(), "{told}");
    let pending = get(&client, &first, &["--output", "json"]).done().json();
    assert!(pending["status"] == "PENDING" && pending.get("result").is_none(), "{pending}");
    let all = get(&operator, &first, &["--output", "json"]).done().json();
    assert!(all["state"] == "pending" && all["attempts"].is_array(), "{all}");

    let cancel = |key: &str, more: &[&str]| over(&server, key, &[&["jobs", "cancel"], more].concat());
    let dry = cancel(&client, &[&first, &done, "--dry-run"]).ended(4, "it is completed and can no longer be cancelled");
    assert!(dry.stdout.contains("STATUS") && dry.stderr.contains("dry run: 1 job would be changed"), "{dry:?}");
    let ran = cancel(&client, &[&first, &done]).ended(4, "can no longer be cancelled");
    assert_eq!(ran.stdout.split_whitespace().collect::<Vec<_>>(), ["ID", "STATUS", &first, "CANCELLED"]);
    let ran = cancel(&operator, &[&second, "--output", "json"]).done();
    let item = json!({"jobId": second, "status": "CANCELLED", "state": "cancelled"});
    assert_eq!(ran.json(), json!({"items": [item]}));
    assert!(cancel(&operator, &[&second]).done().stdout.contains("STATE"));

    // Another's is not there, and a worker has no business with any.
    get(&bound, &first, &[]).ended(3, "there is no job");
    cancel(&bound, &[&first]).ended(3, "there is no job");
    get(&worker, &first, &[]).ended(1, "it takes one whose role is client or operator");
    over(&server, &client, &["jobs", "wait", &done]).done();
}

#[test]
fn a_worker_over_a_server_shows_its_key_and_ends_where_it_does_not_do() {
    let place = Place::sqlite();
    let [client, worker] = ["client", "worker"].map(|role| place.key(role, &[]));
    let server = guarded(&place);
    let url = format!("http://{}", server.address);
    let ask = ["worker", "--server", &url];
    let refused = |key: &str, text: &str| {
        let ran = over(&server, key, &ask).ended(1, text);
        assert!(!ran.stderr.contains("store"), "{ran:?}");
    };
    refused(
        &client,
        "the key's role, client, does not allow this\n  this key may not do that: it takes one whose role is worker",
    );
    refused("", "the server asks for a key");
    refused(&forged(&worker), "the server does not know this key, or it has expired or was revoked");
    let mut command = bare(&ask);
    command.env("ORCHESTRIX_API_KEY", &worker);
    let running = Running::of(command);
    let id = place.builtin("echo", &json!([1]), &[]);
    assert_eq!(place.reaches(&id, "completed")["result"], json!([1]));
    over(&server, &worker, &["jobs", "enqueue", "t"]).ended(1, "the key's role, worker,");
    running.last_words();
}
