//! Bulk actions with a key that is bound to a tenant.

use serde_json::json;

use super::{run_with_key, start_server_with_auth};
use crate::{harness::each_database, server::process::ServerProcess, worker::eventually};

#[test]
fn an_operator_bound_to_a_tenant_acts_only_on_its_jobs() {
    for env in each_database() {
        let [client, operator] = ["client", "operator"].map(|role| env.create_key(role, &[]));
        let bound = env.create_key("operator", &["--tenant", "acme"]);
        let api_only = ServerProcess::spawn(env.command(&["server", "--roles", "api", "--listen", "127.0.0.1:0"]));
        let cancel = ["jobs", "bulk", "cancel", "--state", "pending", "--yes"];
        run_with_key(&api_only, &bound, &cancel).exits_with(1, "lead");
        drop(api_only);
        let server = start_server_with_auth(&env);
        let job = |tenant: &str| {
            let body = json!({"jobType": "t", "tenant": tenant}).to_string();
            server.request_with_key(&client, "POST", "/jobs", &body).accepted_job_id()
        };
        let (own, foreign) = ([job("acme"), job("acme")], job("other"));
        eventually("the server leads", || {
            let ready = server.get("/readyz").json();
            (ready["components"]["coordinator"]["status"] == "ok").then_some(())
        });
        let done = run_with_key(&server, &bound, &[&cancel[..], &["--output", "json"]].concat()).success().json();
        assert_eq!((&done["state"], &done["matched"], &done["changed"]), (&json!("done"), &json!(2), &json!(2)));
        let state = |id: &str| {
            server.request_with_key(&operator, "GET", &format!("/admin/jobs/{id}"), "").json()["state"].clone()
        };
        assert!(own.iter().all(|id| state(id) == "cancelled"));
        assert_eq!(state(&foreign), "pending");
    }
}
