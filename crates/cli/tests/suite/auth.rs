//! Servers that require API keys: which requests they accept, what the audit holds, and what no log may show.

mod audit;
mod bulk;
mod explain;
mod keys;
mod listen;
mod roles;
mod secrets_in_logs;
mod tls;

use crate::{
    harness::{CliOutput, TestEnv, orchestrix},
    server::process::{Response, ServerProcess},
};

/// Starts a server that requires keys, on a free port.
fn start_server_with_auth(env: &TestEnv) -> ServerProcess {
    ServerProcess::spawn(env.command(&["server", "--listen", "127.0.0.1:0"]))
}

/// The public part of a key: its id.
fn key_id(key: &str) -> &str {
    key.split('_').nth(1).unwrap()
}

/// The secret part of a key.
fn key_secret(key: &str) -> &str {
    key.split('_').nth(2).unwrap()
}

/// The id of `key` with another secret.
fn forged_key(key: &str) -> String {
    let secret: String = key_secret(key).chars().rev().collect();
    format!("ox_{}_{secret}", key_id(key))
}

/// Runs the command over a server, with the key in its environment.
fn run_with_key(server: &ServerProcess, key: &str, arguments: &[&str]) -> CliOutput {
    let mut command = orchestrix(arguments);
    command.env("ORCHESTRIX_SERVER_URL", format!("http://{}", server.address)).env("ORCHESTRIX_API_KEY", key);
    CliOutput::run(&mut command)
}

impl TestEnv {
    /// Creates a key directly on the database.
    fn create_key(&self, role: &str, flags: &[&str]) -> String {
        let ran = self.run(&[&["keys", "create", "--role", role], flags].concat()).success();
        ran.stdout.trim_end().to_owned()
    }
}

impl ServerProcess {
    /// Sends a request with a key.
    fn request_with_key(&self, key: &str, method: &str, path: &str, body: &str) -> Response {
        let key = format!("Bearer {key}");
        self.call(method, path, &[("authorization", &key), ("content-type", "application/json")], body)
    }
}
