//! The server against its own description: schemathesis sends what the description allows and what it forbids, follows its links, and
//! checks that every answer is one that is described.
//!
//! All its checks are on, and so are keys: what needs one is also asked for without, and with one that is none.

use std::{path::Path, process::Command};

use orchestrix_testkit::schemathesis;

use super::process::ServerProcess;
use crate::harness::{CliOutput, TestEnv};

#[test]
fn the_server_keeps_to_its_description_on_sqlite() {
    keeps_to_its_description(&TestEnv::sqlite());
}

#[test]
fn the_server_keeps_to_its_description_on_postgres() {
    keeps_to_its_description(&TestEnv::postgres());
}

fn keeps_to_its_description(env: &TestEnv) {
    let made = env.json(&["keys", "create", "--role", "admin"]);
    let key = made["key"].as_str().unwrap();
    let server = ServerProcess::start_with_auth(env, &[]);
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/server/contract");
    let ran = CliOutput::run(
        Command::new(schemathesis().unwrap())
            .arg("--config-file")
            .arg(settings.join("schemathesis.toml"))
            .args(["run", &format!("http://{}/openapi.json", server.address), "--checks", "all", "--no-color"])
            .args(["--header", &format!("Authorization: Bearer {key}")])
            .env("SCHEMATHESIS_HOOKS", "hooks")
            .env("PYTHONPATH", &settings)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(env.dir()),
    );
    assert!(ran.code == Some(0), "{}\n{}", ran.stdout, ran.stderr);
    // It came beyond recording: jobs that it recorded it was leased. Whether it also ended one is left to its random walk.
    let jobs = env.json(&["jobs", "list", "--limit", "100000"]);
    let begun = jobs["items"].as_array().unwrap().iter().any(|job| job["startedAt"].is_string());
    assert!(begun, "{}", ran.stdout);
}
