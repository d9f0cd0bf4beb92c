//! `migrate`, `migrate --check` and `--no-migrate`.

use serde_json::json;

use crate::harness::{TestEnv, each_empty_database};

#[test]
fn pending_migrations_are_counted_and_applied() {
    for env in each_empty_database() {
        let before = env.run(&["migrate", "--check", "--output", "json"]).exits_with(1, "").json();
        assert!(before["pending"].as_u64().unwrap() > 0, "{before}");
        let again = env.run(&["migrate", "--check"]).exits_with(1, "").stdout;
        assert!(again.contains("orchestrix migrate"), "{again}");
        assert_eq!(env.json(&["migrate"]), json!({"pending": 0, "applied": before["pending"]}));
        assert_eq!(env.json(&["migrate", "--check"]), json!({"pending": 0, "applied": 0}));
        assert!(env.run(&["migrate"]).success().stdout.contains("is up to date"));
    }
}

#[test]
fn no_migrate_refuses_an_outdated_database_and_leaves_it_unchanged() {
    for env in each_empty_database() {
        env.run(&["jobs", "enqueue", "t", "--no-migrate"]).exits_with(1, "orchestrix migrate");
        env.run(&["migrate", "--no-migrate"]).exits_with(2, "--check");
        env.run(&["migrate", "--check"]).exits_with(1, "");
        env.run(&["migrate"]).success();
        env.run(&["jobs", "enqueue", "t", "--no-migrate"]).success();
    }
}

#[test]
fn a_command_leaves_one_file_behind() {
    let env = TestEnv::sqlite();
    env.enqueue(&["t"]);
    env.run(&["migrate", "--check"]).success();
    let files: Vec<_> = std::fs::read_dir(env.dir()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["jobs.db"]);
}
