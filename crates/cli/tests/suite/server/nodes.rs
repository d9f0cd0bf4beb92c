//! Every server is listed as a node, whatever its roles.

use serde_json::{Value, json};

use super::process::ServerProcess;
use crate::{
    harness::{TestEnv, each_database},
    worker::eventually,
};

/// Waits for `count` nodes; returns them sorted by role.
fn nodes(env: &TestEnv, count: usize) -> Vec<Value> {
    eventually("all nodes are listed", || {
        let mut nodes = env.json(&["nodes", "list"])["items"].as_array().unwrap().clone();
        nodes.sort_by_key(|node| node["roles"].to_string());
        Some(nodes).filter(|nodes| nodes.len() == count)
    })
}

fn led(server: &ServerProcess) -> bool {
    server.get("/readyz").json()["components"]["coordinator"]["status"] == "ok"
}

#[test]
fn an_api_only_server_is_listed_never_leads_and_is_removed_on_shutdown() {
    for env in each_database() {
        let mut api_only = ServerProcess::start_with(&env, &["--roles", "api", "--node-id", "front"]);
        let alone = nodes(&env, 1);
        let expected = (&json!("front"), &json!(false), &json!(api_only.address), &json!(["api"]));
        let node = &alone[0];
        assert_eq!((&node["nodeId"], &node["leader"], &node["address"], &node["roles"]), expected);
        // A node without the role coordinator does not lead.
        assert!(!led(&api_only), "{:?}", api_only.get("/readyz"));
        let stats = api_only.get("/admin/stats").json();
        assert_eq!((&stats["nodes"], &stats["leader"]), (&json!(1), &Value::Null), "{stats}");

        let leads = ServerProcess::start_with(&env, &["--roles", "coordinator,api", "--node-id", "back"]);
        eventually("a node leads", || led(&api_only).then_some(()));
        let both: Vec<_> = nodes(&env, 2).iter().map(|node| (node["nodeId"].clone(), node["leader"].clone())).collect();
        assert_eq!(both, [(json!("front"), json!(false)), (json!("back"), json!(true))]);

        api_only.signal("TERM");
        assert!(api_only.wait_for_exit().success());
        assert_eq!(nodes(&env, 1)[0]["nodeId"], "back");
        // A cursor must be a valid node name.
        for list in ["nodes", "workers"] {
            assert_eq!(leads.get(&format!("/admin/{list}?cursor=a%20b")).invalid_fields(), ["cursor"]);
        }
    }
}
