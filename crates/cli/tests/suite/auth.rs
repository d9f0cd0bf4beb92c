//! Servers that ask for keys: who is let in, what is written down, and what is never said.

mod audit;
mod bulk;
mod canary;
mod explain;
mod keys;
mod listen;
mod roles;
mod tls;

use crate::{
    server::http::{Answer, Server},
    support::{Place, Ran, bare},
};

/// A server that asks for keys, on a port of its own.
fn guarded(place: &Place) -> Server {
    Server::of(place.command(&["server", "--listen", "127.0.0.1:0"]))
}

/// What everybody may see of a key.
fn id_of(key: &str) -> &str {
    key.split('_').nth(1).unwrap()
}

/// What nobody may.
fn secret_of(key: &str) -> &str {
    key.split('_').nth(2).unwrap()
}

/// The same key with another secret.
fn forged(key: &str) -> String {
    let secret: String = secret_of(key).chars().rev().collect();
    format!("ox_{}_{secret}", id_of(key))
}

/// The command over a server, with a key in its environment.
fn over(server: &Server, key: &str, arguments: &[&str]) -> Ran {
    let mut command = bare(arguments);
    command.env("ORCHESTRIX_SERVER_URL", format!("http://{}", server.address)).env("ORCHESTRIX_API_KEY", key);
    Ran::of(&mut command)
}

impl Place {
    /// Makes a key straight on the database.
    fn key(&self, role: &str, flags: &[&str]) -> String {
        let ran = self.run(&[&["keys", "create", "--role", role], flags].concat()).done();
        ran.stdout.trim_end().to_owned()
    }
}

impl Server {
    /// Asks with a key.
    fn with(&self, key: &str, method: &str, path: &str, body: &str) -> Answer {
        let key = format!("Bearer {key}");
        self.call(method, path, &[("authorization", &key), ("content-type", "application/json")], body)
    }
}
