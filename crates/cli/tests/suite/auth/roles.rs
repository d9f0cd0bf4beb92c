//! Commands and workers over a server, by the role of their key.

use orchestrix_core::Json;
use orchestrix_store::Verdict;
use serde_json::json;

use super::{forged_key, run_with_key, start_server_with_auth};
use crate::{
    harness::{TestEnv, orchestrix},
    worker::WorkerProcess,
};

#[test]
fn commands_are_limited_to_the_role_of_their_key() {
    let env = TestEnv::sqlite();
    let [client, operator, admin] = ["client", "operator", "admin"].map(|role| env.create_key(role, &[]));
    let bound = env.create_key("client", &["--tenant", "acme"]);
    let server = start_server_with_auth(&env);
    run_with_key(&server, &client, &["jobs", "enqueue", "t"]).success();
    run_with_key(&server, &bound, &["jobs", "enqueue", "t", "--tenant", "acme"]).success();
    run_with_key(&server, &bound, &["jobs", "enqueue", "t", "--tenant", "other"])
        .exits_with(1, "bound to another tenant");
    for key in [&operator, &admin] {
        run_with_key(&server, key, &["jobs", "list"]).success();
        run_with_key(&server, key, &["queues", "pause", "q"]).success();
    }
    run_with_key(&server, &admin, &["keys", "list"]).success();
    let takes =
        |role: &str| format!("does not allow this\n  this key may not do that: it takes one whose role is {role}\n");
    run_with_key(&server, &client, &["jobs", "list"]).exits_with(1, &takes("operator"));
    run_with_key(&server, &client, &["queues", "pause", "q"]).exits_with(1, &takes("operator"));
    run_with_key(&server, &operator, &["keys", "create", "--role", "admin"]).exits_with(1, &takes("admin"));
    run_with_key(&server, &operator, &["keys", "list"]).exits_with(1, "the key's role, operator,");
    let bound = env.create_key("operator", &["--tenant", "acme"]);
    run_with_key(&server, &bound, &["jobs", "list"]).success();
    run_with_key(&server, &bound, &["queues", "list"]).exits_with(1, "\n  use a key that is not bound to a tenant\n");
    run_with_key(&server, "", &["jobs", "list"]).exits_with(1, "give --api-key, or set ORCHESTRIX_API_KEY");
    run_with_key(&server, "nonsense", &["jobs", "list"])
        .exits_with(1, "or it has expired or was revoked: give another");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_key_shows_and_cancels_its_own_jobs() {
    let env = TestEnv::sqlite();
    let [client, worker, operator] = ["client", "worker", "operator"].map(|role| env.create_key(role, &[]));
    let bound = env.create_key("client", &["--tenant", "acme"]);
    let server = start_server_with_auth(&env);
    let done = env.enqueue(&["t", "--correlation-id", "order-9"]).to_string();
    let result = Json::parse("result", r#"{"sent":  true}"#).unwrap();
    env.finish_next_job(Verdict::Complete { result: Some(result) }).await;
    let [first, second] = [&[][..], &["--delay", "1h"]].map(|more| {
        let id = run_with_key(&server, &client, &[&["jobs", "enqueue", "t"], more].concat()).success().stdout;
        id.split_whitespace().next().unwrap().to_owned()
    });

    let get = |key: &str, id: &str, more: &[&str]| run_with_key(&server, key, &[&["jobs", "get", id], more].concat());
    let shown = get(&client, &done, &[]).exits_with(0, "shown to a key whose role is operator");
    for part in [&done, "status", "COMPLETED", "order-9", r#"{"sent":  true}"#] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let told = get(&client, &done, &["--output", "json"]).success().json();
    assert_eq!((&told["status"], &told["result"]), (&json!("COMPLETED"), &json!({"sent": true})));
    assert!(told.get("state").is_none() && told.get("attempts").is_none(), "{told}");
    let pending = get(&client, &first, &["--output", "json"]).success().json();
    assert!(pending["status"] == "PENDING" && pending.get("result").is_none(), "{pending}");
    let all = get(&operator, &first, &["--output", "json"]).success().json();
    assert!(all["state"] == "pending" && all["attempts"].is_array(), "{all}");

    let cancel = |key: &str, more: &[&str]| run_with_key(&server, key, &[&["jobs", "cancel"], more].concat());
    let dry =
        cancel(&client, &[&first, &done, "--dry-run"]).exits_with(4, "it is completed and can no longer be cancelled");
    assert!(dry.stdout.contains("STATUS") && dry.stderr.contains("dry run: 1 job would be changed"), "{dry:?}");
    let ran = cancel(&client, &[&first, &done]).exits_with(4, "can no longer be cancelled");
    assert_eq!(ran.stdout.split_whitespace().collect::<Vec<_>>(), ["ID", "STATUS", &first, "CANCELLED"]);
    let ran = cancel(&operator, &[&second, "--output", "json"]).success();
    let item = json!({"jobId": second, "status": "CANCELLED", "state": "cancelled"});
    assert_eq!(ran.json(), json!({"items": [item]}));
    assert!(cancel(&operator, &[&second]).success().stdout.contains("STATE"));

    // Jobs of another tenant are not found, and the role worker may not read jobs.
    get(&bound, &first, &[]).exits_with(3, "there is no job");
    cancel(&bound, &[&first]).exits_with(3, "there is no job");
    get(&worker, &first, &[]).exits_with(1, "it takes one whose role is client or operator");
    run_with_key(&server, &client, &["jobs", "wait", &done]).success();
}

#[test]
fn a_remote_worker_sends_its_key_and_exits_if_the_key_is_refused() {
    let env = TestEnv::sqlite();
    let [client, worker] = ["client", "worker"].map(|role| env.create_key(role, &[]));
    let server = start_server_with_auth(&env);
    let url = format!("http://{}", server.address);
    let ask = ["worker", "--server", &url];
    let refused = |key: &str, text: &str| {
        let ran = run_with_key(&server, key, &ask).exits_with(1, text);
        assert!(!ran.stderr.contains("store"), "{ran:?}");
    };
    refused(
        &client,
        "the key's role, client, does not allow this\n  this key may not do that: it takes one whose role is worker",
    );
    refused("", "the server asks for a key");
    refused(&forged_key(&worker), "the server does not know this key, or it has expired or was revoked");
    let mut command = orchestrix(&ask);
    command.env("ORCHESTRIX_API_KEY", &worker);
    let running = WorkerProcess::spawn(command);
    let id = env.enqueue_builtin("echo", &json!([1]), &[]);
    assert_eq!(env.wait_for_state(&id, "completed")["result"], json!([1]));
    run_with_key(&server, &worker, &["jobs", "enqueue", "t"]).exits_with(1, "the key's role, worker,");
    running.shut_down();
}
