//! The command `tenants`.

use serde_json::json;

use crate::harness::{TestEnv, each_database_and_server};

#[test]
fn weights_are_set_and_listed() {
    for env in each_database_and_server() {
        env.enqueue(&["t", "--tenant", "busy"]);
        assert_eq!(env.json(&["tenants", "list"]), json!({"items": []}));
        let acme = |weight: u16| json!({"name": "acme", "weight": weight});
        assert_eq!(env.json(&["tenants", "set", "acme", "--weight", "2"]), acme(2));
        assert_eq!(env.json(&["tenants", "set", "acme", "--weight", "3"]), acme(3));
        let table = env.run(&["tenants", "set", "zeta", "--weight", "1000"]).success().stdout;
        assert_eq!(table, "TENANT  WEIGHT\nzeta    1000\n");
        assert_eq!(env.json(&["tenants", "list"]), json!({"items": [acme(3), {"name": "zeta", "weight": 1000}]}));
        let table = env.run(&["tenants", "list"]).success().stdout;
        assert_eq!(table, "TENANT  WEIGHT\nacme    3\nzeta    1000\n");
        let lines = env.run(&["tenants", "list", "--output", "jsonl"]).success().stdout;
        assert_eq!(lines.lines().next(), Some(r#"{"name":"acme","weight":3}"#));
    }
}

#[test]
fn a_bad_weight_or_name_is_a_usage_error() {
    let env = TestEnv::sqlite();
    env.migrate();
    for weight in ["0", "1001", "-1", "1.5", "many"] {
        env.run(&["tenants", "set", "acme", &format!("--weight={weight}")]).exits_with(2, "--weight");
    }
    env.run(&["tenants", "set", "acme"]).exits_with(2, "--weight");
    env.run(&["tenants", "set", "not good", "--weight", "1"]).exits_with(2, "not good");
    assert_eq!(env.json(&["tenants", "list"]), json!({"items": []}));
}
