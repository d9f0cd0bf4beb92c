//! The server against its own description: schemathesis sends what the description allows and what it forbids, follows its links, and
//! checks that every answer is one that is described.
//!
//! All its checks are on. It has a key that allows everything, and also asks without it and with others that are none.

use std::{path::Path, process::Command};

use orchestrix_testkit::schemathesis;

use super::http::Server;
use crate::support::{Place, Ran};

#[test]
fn the_server_keeps_to_its_description_on_sqlite() {
    keeps_to_its_description(&Place::sqlite());
}

#[test]
fn the_server_keeps_to_its_description_on_postgres() {
    keeps_to_its_description(&Place::postgres());
}

fn keeps_to_its_description(place: &Place) {
    let key = place.run(&["keys", "create", "--role", "admin"]).done().stdout;
    let server = Server::of(place.command(&["server", "--listen", "127.0.0.1:0"]));
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/server/contract");
    let ran = Ran::of(
        Command::new(schemathesis().unwrap())
            .arg("--config-file")
            .arg(settings.join("schemathesis.toml"))
            .args(["run", &format!("http://{}/openapi.json", server.address), "--checks", "all", "--no-color"])
            .args(["--header", &format!("Authorization: Bearer {}", key.trim_end())])
            .env("SCHEMATHESIS_HOOKS", "hooks")
            .env("PYTHONPATH", &settings)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(place.folder()),
    );
    assert!(ran.code == Some(0), "{}\n{}", ran.stdout, ran.stderr);
    // It came beyond recording: jobs that it recorded it was leased. Whether it also ended one is left to its random walk.
    let jobs = place.json(&["jobs", "list", "--limit", "100000"]);
    let begun = jobs["items"].as_array().unwrap().iter().any(|job| job["startedAt"].is_string());
    assert!(begun, "{}", ran.stdout);
}
