//! Commands and workers over a server, by the role of their key.

use orchestrix_core::Json;
use orchestrix_store::Outcome;
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
    run_with_key(&server, &bound, &["jobs", "enqueue", "t", "--tenant", "other"]).exits_with(1, "tenant");
    for key in [&operator, &admin] {
        run_with_key(&server, key, &["jobs", "list"]).success();
        run_with_key(&server, key, &["queues", "pause", "q"]).success();
    }
    run_with_key(&server, &admin, &["keys", "list"]).success();
    run_with_key(&server, &client, &["jobs", "list"]).exits_with(1, "operator");
    run_with_key(&server, &client, &["queues", "pause", "q"]).exits_with(1, "operator");
    run_with_key(&server, &operator, &["keys", "create", "--role", "admin"]).exits_with(1, "admin");
    run_with_key(&server, &operator, &["keys", "list"]).exits_with(1, "operator");
    let bound = env.create_key("operator", &["--tenant", "acme"]);
    run_with_key(&server, &bound, &["jobs", "list"]).success();
    run_with_key(&server, &bound, &["queues", "list"]).exits_with(1, "tenant");
    run_with_key(&server, &operator, &["tenants", "set", "acme", "--weight", "3"]).success();
    run_with_key(&server, &operator, &["tenants", "set", "other", "--weight", "2"]).success();
    run_with_key(&server, &bound, &["tenants", "set", "acme", "--weight", "9"]).exits_with(1, "tenant");
    let own = json!({"items": [{"name": "acme", "weight": 3}]});
    assert_eq!(run_with_key(&server, &bound, &["tenants", "list", "--output", "json"]).success().json(), own);
    run_with_key(&server, &client, &["tenants", "list"]).exits_with(1, "operator");
    run_with_key(&server, "", &["jobs", "list"]).exits_with(1, "ORCHESTRIX_API_KEY");
    run_with_key(&server, "nonsense", &["jobs", "list"]).exits_with(1, "revoked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_key_shows_and_cancels_its_own_jobs() {
    let env = TestEnv::sqlite();
    let [client, worker, operator] = ["client", "worker", "operator"].map(|role| env.create_key(role, &[]));
    let bound = env.create_key("client", &["--tenant", "acme"]);
    let server = start_server_with_auth(&env);
    let done = env.enqueue(&["t", "--correlation-id", "order-9"]).to_string();
    let result = Json::parse("result", r#"{"sent":  true}"#).unwrap();
    env.finish_next_job(Outcome::Complete { result: Some(result) }).await;
    let [first, second] = [&[][..], &["--delay", "1h"]].map(|more| {
        let id = run_with_key(&server, &client, &[&["jobs", "enqueue", "t"], more].concat()).success().stdout;
        id.split_whitespace().next().unwrap().to_owned()
    });

    let get = |key: &str, id: &str, more: &[&str]| run_with_key(&server, key, &[&["jobs", "get", id], more].concat());
    let shown = get(&client, &done, &[]).exits_with(0, "operator");
    for part in [&done, "status", "COMPLETED", "order-9", r#"{"sent":  true}"#] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let public = get(&client, &done, &["--output", "json"]).success().json();
    assert_eq!((&public["status"], &public["result"]), (&json!("COMPLETED"), &json!({"sent": true})));
    assert!(public.get("state").is_none() && public.get("attempts").is_none(), "{public}");
    let pending = get(&client, &first, &["--output", "json"]).success().json();
    assert!(pending["status"] == "PENDING" && pending.get("result").is_none(), "{pending}");
    let all = get(&operator, &first, &["--output", "json"]).success().json();
    assert!(all["state"] == "pending" && all["attempts"].is_array(), "{all}");

    let cancel = |key: &str, more: &[&str]| run_with_key(&server, key, &[&["jobs", "cancel"], more].concat());
    let dry = cancel(&client, &[&first, &done, "--dry-run"]).exits_with(4, "completed");
    assert!(dry.stdout.contains("STATUS") && dry.stderr.contains("dry run: 1 job"), "{dry:?}");
    let ran = cancel(&client, &[&first, &done]).exits_with(4, &done);
    assert_eq!(ran.stdout.split_whitespace().collect::<Vec<_>>(), ["ID", "STATUS", &first, "CANCELLED"]);
    let ran = cancel(&operator, &[&second, "--output", "json"]).success();
    let item = json!({"jobId": second, "status": "CANCELLED", "state": "cancelled"});
    assert_eq!(ran.json(), json!({"items": [item]}));
    assert!(cancel(&operator, &[&second]).success().stdout.contains("STATE"));

    // Jobs of another tenant are not found, and the role worker may not read jobs.
    get(&bound, &first, &[]).exits_with(3, &first);
    cancel(&bound, &[&first]).exits_with(3, &first);
    get(&worker, &first, &[]).exits_with(1, "operator");
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
    refused(&client, "worker");
    refused("", "ORCHESTRIX_API_KEY");
    refused(&forged_key(&worker), "revoked");
    let mut command = orchestrix(&ask);
    command.env("ORCHESTRIX_API_KEY", &worker);
    let running = WorkerProcess::spawn(command);
    let id = env.enqueue_builtin("echo", &json!([1]), &[]);
    assert_eq!(env.wait_for_state(&id, "completed")["result"], json!([1]));
    run_with_key(&server, &worker, &["jobs", "enqueue", "t"]).exits_with(1, "worker");
    running.shut_down();
}
