//! The loopback rule, and cross-origin requests.

use super::start_server_with_auth;
use crate::{
    harness::{CliOutput, TestEnv, orchestrix},
    server::process::ServerProcess,
};

#[test]
fn a_server_without_auth_listens_on_loopback_only() {
    let env = TestEnv::sqlite();
    let text = "127.0.0.1";
    for address in ["0.0.0.0:0", "[::]:0"] {
        env.run(&["server", "--no-auth", "--listen", address]).exits_with(2, text);
        let mut dev = orchestrix(&["dev", "--listen", address]);
        CliOutput::run(dev.current_dir(env.dir())).exits_with(2, text);
    }
    assert!(!env.dir().join("orchestrix-data").exists(), "no database was created");
    let server = ServerProcess::spawn(env.command(&["server", "--listen", "0.0.0.0:0"]));
    server.wait_for_line("--tls-cert");
    server.get("/jobs/x").problem(401, "unauthenticated");
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn cross_origin_requests_get_no_cors_headers() {
    let env = TestEnv::sqlite();
    let key = format!("Bearer {}", env.create_key("admin", &[]));
    let origin = [("origin", "https://elsewhere.example")];
    let preflight =
        [("access-control-request-method", "POST"), ("access-control-request-headers", "authorization, content-type")];
    let known = [("authorization", key.as_str())];
    for server in [start_server_with_auth(&env), ServerProcess::start(&env)] {
        for path in ["/jobs", "/admin/keys", "/schedules", "/healthz", "/openapi.json", "/nowhere"] {
            for answer in [
                server.call("OPTIONS", path, &[&origin[..], &preflight].concat(), ""),
                server.call("OPTIONS", path, &[&origin[..], &preflight, &known].concat(), ""),
                server.call("GET", path, &[&origin[..], &known].concat(), ""),
            ] {
                let allows = answer.headers.iter().any(|(name, _)| name.starts_with("access-control-"));
                assert!(!allows, "{path}: {answer:?}");
            }
        }
    }
}
