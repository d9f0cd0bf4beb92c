//! Commands and workers over a server, by what their keys allow.

use serde_json::json;

use super::{guarded, over};
use crate::{
    support::{Place, bare},
    worker::Running,
};

#[test]
fn commands_do_what_their_key_allows_and_say_when_it_does_not() {
    let place = Place::sqlite();
    let [client, operator, admin] = ["client", "operator", "admin"].map(|role| place.key(role, &[]));
    let bound = place.key("client", &["--tenant", "acme"]);
    let server = guarded(&place);
    over(&server, &client, &["jobs", "enqueue", "t"]).done();
    over(&server, &bound, &["jobs", "enqueue", "t", "--tenant", "acme"]).done();
    over(&server, &bound, &["jobs", "enqueue", "t", "--tenant", "other"]).ended(1, "bound to another tenant");
    for key in [&operator, &admin] {
        over(&server, key, &["jobs", "list"]).done();
        over(&server, key, &["queues", "pause", "q"]).done();
    }
    over(&server, &admin, &["keys", "list"]).done();
    let no = "the key's role, client, does not allow this\n  this key may not do that";
    over(&server, &client, &["jobs", "list"]).ended(1, no);
    over(&server, &client, &["queues", "pause", "q"]).ended(1, no);
    over(&server, &operator, &["keys", "create", "--role", "admin"]).ended(1, "the key's role, operator,");
    for key in ["", "nonsense"] {
        over(&server, key, &["jobs", "list"]).ended(1, "give --api-key, or set ORCHESTRIX_API_KEY");
    }
}

#[test]
fn a_worker_over_a_server_shows_its_key_and_ends_where_it_does_not_do() {
    let place = Place::sqlite();
    let [client, worker] = ["client", "worker"].map(|role| place.key(role, &[]));
    let server = guarded(&place);
    let url = format!("http://{}", server.address);
    let ask = ["worker", "--server", &url];
    let ran = over(&server, &client, &ask).ended(1, "the key's role, client, does not allow this");
    assert!(ran.stderr.contains("is the API key right?"), "{ran:?}");
    over(&server, "", &ask).ended(1, "is the API key right?");
    let mut command = bare(&ask);
    command.env("ORCHESTRIX_API_KEY", &worker);
    let running = Running::of(command);
    let id = place.builtin("echo", &json!([1]), &[]);
    assert_eq!(place.reaches(&id, "completed")["result"], json!([1]));
    over(&server, &worker, &["jobs", "enqueue", "t"]).ended(1, "the key's role, worker,");
    running.last_words();
}
