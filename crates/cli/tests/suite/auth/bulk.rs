//! One action on many jobs by a key that is bound to a tenant.

use serde_json::json;

use super::{guarded, over};
use crate::{server::http::Server, support::places, worker::eventually};

#[test]
fn an_operator_who_is_bound_to_a_tenant_acts_on_its_jobs_alone() {
    for place in places() {
        let [client, operator] = ["client", "operator"].map(|role| place.key(role, &[]));
        let bound = place.key("operator", &["--tenant", "acme"]);
        let waits = Server::of(place.command(&["server", "--roles", "api", "--listen", "127.0.0.1:0"]));
        let cancel = ["jobs", "bulk", "cancel", "--state", "pending", "--yes"];
        over(&waits, &bound, &cancel).ended(1, "nobody leads, so nobody would work it off");
        drop(waits);
        let server = guarded(&place);
        let job = |tenant: &str| {
            let body = json!({"jobType": "t", "tenant": tenant}).to_string();
            server.with(&client, "POST", "/jobs", &body).accepted()
        };
        let (own, foreign) = ([job("acme"), job("acme")], job("other"));
        eventually("it leads", || {
            let ready = server.get("/readyz").json();
            (ready["components"]["coordinator"]["status"] == "ok").then_some(())
        });
        let done = over(&server, &bound, &[&cancel[..], &["--output", "json"]].concat()).done().json();
        assert_eq!((&done["state"], &done["matched"], &done["changed"]), (&json!("done"), &json!(2), &json!(2)));
        let state = |id: &str| server.with(&operator, "GET", &format!("/admin/jobs/{id}"), "").json()["state"].clone();
        assert!(own.iter().all(|id| state(id) == "cancelled"));
        assert_eq!(state(&foreign), "pending");
    }
}
