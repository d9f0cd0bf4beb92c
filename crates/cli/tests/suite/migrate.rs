//! Migrations on demand, at the start of a command, and not at all.

use serde_json::json;

use crate::support::{Place, places};

#[test]
fn pending_migrations_are_counted_applied_and_then_gone() {
    for place in places() {
        let before = place.run(&["migrate", "--check", "--output", "json"]).ended(1, "").json();
        assert!(before["pending"].as_u64().unwrap() > 0, "{before}");
        let again = place.run(&["migrate", "--check"]).ended(1, "").stdout;
        assert!(again.contains("run `orchestrix migrate`"), "{again}");
        assert_eq!(place.json(&["migrate"]), json!({"pending": 0, "applied": before["pending"]}));
        assert_eq!(place.json(&["migrate", "--check"]), json!({"pending": 0, "applied": 0}));
        assert!(place.run(&["migrate"]).done().stdout.contains("is up to date"));
    }
}

#[test]
fn without_migrating_a_database_that_lacks_some_is_refused_and_left_alone() {
    for place in places() {
        place.run(&["jobs", "enqueue", "t", "--no-migrate"]).ended(1, "run `orchestrix migrate`");
        place.run(&["migrate", "--no-migrate"]).ended(2, "--check only looks");
        place.run(&["migrate", "--check"]).ended(1, "");
        place.run(&["migrate"]).done();
        place.run(&["jobs", "enqueue", "t", "--no-migrate"]).done();
    }
}

#[test]
fn a_command_leaves_one_file_behind() {
    let place = Place::sqlite();
    place.enqueue(&["t"]);
    place.run(&["migrate", "--check"]).done();
    let files: Vec<_> = std::fs::read_dir(place.folder()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["jobs.db"]);
}
