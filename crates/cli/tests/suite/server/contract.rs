//! The server against its OpenAPI description. Schemathesis sends valid and invalid requests, follows the links, and
//! checks that every response is documented.
//!
//! All its checks are on, and so is authentication: each protected route is also called without a key and with an
//! invalid one.

use std::{path::Path, process::Command};

use orchestrix_testkit::schemathesis;

use super::process::ServerProcess;
use crate::harness::{CliOutput, TestEnv};

#[test]
fn the_server_conforms_to_its_openapi_description_on_sqlite() {
    keeps_to_its_description(&TestEnv::sqlite());
}

#[test]
fn the_server_conforms_to_its_openapi_description_on_postgres() {
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
    // The run got past enqueueing: it leased some of its jobs. Whether it also finished one depends on its random
    // walk.
    let jobs = env.json(&["jobs", "list", "--limit", "100000"]);
    let begun = jobs["items"].as_array().unwrap().iter().any(|job| job["startedAt"].is_string());
    assert!(begun, "{}", ran.stdout);
}
