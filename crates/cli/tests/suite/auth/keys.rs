//! The life of API keys: creation, use, rate limit, expiry and revocation.

use std::fs;

use super::{forged_key, key_id, key_secret, run_with_key, start_server_with_auth};
use crate::{
    harness::{TestEnv, each_database},
    worker::eventually,
};

/// Everything that the database stores, as bytes.
fn stored_bytes(env: &TestEnv) -> Vec<u8> {
    if env.is_postgres() {
        let tables = env.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'orchestrix'");
        let rows = tables.iter().flat_map(|table| env.sql(&format!("SELECT t::text FROM orchestrix.{table} t")));
        return rows.collect::<Vec<_>>().join("\n").into_bytes();
    }
    let files = fs::read_dir(env.dir()).unwrap();
    files.flat_map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
}

fn holds(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

#[test]
fn the_first_key_is_created_on_the_database_and_its_secret_is_not_stored() {
    for env in each_database() {
        let server = start_server_with_auth(&env);
        server.wait_for_line("orchestrix keys create --role admin");
        for authorization in [None, Some("Bearer"), Some("Bearer x"), Some("Basic eDp5"), Some("")] {
            let headers: Vec<_> = authorization.map(|text| ("authorization", text)).into_iter().collect();
            let refused = server.call("GET", "/admin/jobs", &headers, "");
            refused.problem(401, "unauthenticated");
            assert_eq!(refused.header("www-authenticate"), Some("Bearer"), "{authorization:?}");
        }
        assert_eq!((server.get("/healthz").status, server.get("/readyz").status), (200, 200));

        let made = env.run(&["keys", "create", "--role", "admin"]).success();
        assert!(!made.stderr.contains(made.stdout.trim_end()) && !made.stderr.is_empty(), "{made:?}");
        let key = made.stdout.strip_suffix('\n').unwrap();
        let parts: Vec<&str> = key.split('_').collect();
        assert!(
            parts.len() == 3 && parts[0] == "ox" && parts[2].len() == 64,
            "the key alone, ready to be piped: {made:?}"
        );
        // The server looks up a new key on its first use.
        assert_eq!(server.request_with_key(key, "GET", "/admin/keys", "").json()["items"][0]["keyId"], key_id(key));
        server.request_with_key(&forged_key(key), "GET", "/admin/keys", "").problem(401, "unauthenticated");
        let both = format!("Bearer {key}");
        let twice = [("authorization", both.as_str()), ("authorization", "Bearer x")];
        server.call("GET", "/admin/keys", &twice, "").problem(401, "unauthenticated");

        // A key created over the API is equally hidden.
        let second = run_with_key(&server, key, &["keys", "create", "--role", "client", "--name", "web"]).success();
        let second = second.stdout.trim_end();
        for format in ["table", "json", "jsonl"] {
            let list = ["keys", "list", "--output", format];
            for listed in [env.run(&list).success(), run_with_key(&server, key, &list).success()] {
                for known in [key, second] {
                    let output = [listed.stdout.as_str(), &listed.stderr].concat();
                    assert!(output.contains(key_id(known)) && !output.contains(key_secret(known)), "{listed:?}");
                }
            }
        }
        let all = stored_bytes(&env);
        for known in [key, second] {
            let bytes: Vec<u8> = key_secret(known)
                .as_bytes()
                .chunks(2)
                .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
                .collect();
            assert!(holds(&all, key_id(known).as_bytes()));
            assert!(!holds(&all, key_secret(known).as_bytes()) && !holds(&all, &bytes), "{}", env.url());
        }
        let output = start_server_with_auth(&env).shut_down();
        assert!(!output.iter().any(|line| line.contains("no key")), "{output:?}");
    }
}

#[test]
fn a_revoked_or_expired_key_is_refused_by_a_server_that_cached_it() {
    for env in each_database() {
        let admin = env.create_key("admin", &[]);
        let [first, second] = [env.create_key("client", &[]), env.create_key("client", &[])];
        let short = env.create_key("client", &["--expires", "1s"]);
        let server = start_server_with_auth(&env);
        let status = |key: &str| server.request_with_key(key, "GET", "/schedules", "").status;
        let refused = |what: &str, key: &str| {
            eventually(what, || {
                let answer = server.request_with_key(key, "GET", "/schedules", "");
                (answer.status != 200).then(|| answer.problem(401, "unauthenticated"))
            });
        };
        assert_eq!((status(&first), status(&second)), (200, 200));
        // One key is revoked on the database, the other over the API.
        let dry = env.run(&["keys", "revoke", key_id(&first), "abcdefghijkl", "--dry-run"]);
        let dry = dry.exits_with(3, "dry run: 1 key");
        assert!(dry.stdout.contains(key_id(&first)) && dry.stderr.contains("key abcdefghijkl: "), "{dry:?}");
        assert_eq!(status(&first), 200);
        let ran = env.run(&["keys", "revoke", "abcdefghijkl", key_id(&first)]).exits_with(3, "key abcdefghijkl: ");
        assert!(ran.stdout.contains(key_id(&first)), "the revoked key is listed: {ran:?}");
        refused("the revocation takes effect", &first);
        run_with_key(&server, &admin, &["keys", "revoke", key_id(&second), "--yes"]).success();
        refused("the revocation takes effect", &second);
        refused("the key expires", &short);
        let list = env.json(&["keys", "list"]);
        let of =
            |key: &str| list["items"].as_array().unwrap().iter().find(|item| item["keyId"] == key_id(key)).unwrap();
        assert!(of(&first)["revokedAt"].is_string() && of(&second)["revokedAt"].is_string(), "{list}");
        assert!(of(&short)["expiresAt"].is_string() && of(&admin)["revokedAt"].is_null(), "{list}");
        let table = env.run(&["keys", "list"]).success().stdout;
        let line = |key: &str| table.lines().find(|line| line.contains(key_id(key))).unwrap();
        assert!(line(&first).contains("revoked") && line(&short).contains("expired"), "{table}");
        run_with_key(&server, &admin, &["keys", "revoke", "abcdefghijkl"]).exits_with(3, "abcdefghijkl");
        run_with_key(&server, &first, &["keys", "list"]).exits_with(1, "ORCHESTRIX_API_KEY");
    }
}

#[test]
fn a_key_over_its_rate_limit_gets_429() {
    let env = TestEnv::sqlite();
    let slow = env.create_key("client", &["--rate", "1"]);
    let other = env.create_key("client", &[]);
    let server = start_server_with_auth(&env);
    let refused = eventually("the rate limit is reached", || {
        Some(server.request_with_key(&slow, "GET", "/schedules", "")).filter(|answer| answer.status != 200)
    });
    refused.problem(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(server.request_with_key(&other, "GET", "/schedules", "").status, 200);
    eventually("the rate limiter admits again", || {
        (server.request_with_key(&slow, "GET", "/schedules", "").status == 200).then_some(())
    });
    // The command retries for as long as `--connect-timeout` allows.
    run_with_key(&server, &slow, &["jobs", "enqueue", "t"]).success();
    run_with_key(&server, &slow, &["jobs", "enqueue", "t"]).success();
    let rejected = eventually("a command that does not retry is rejected", || {
        let ran = run_with_key(&server, &slow, &["schedules", "list", "--connect-timeout", "1ms"]);
        (ran.code != Some(0)).then_some(ran)
    });
    rejected.exits_with(5, "--connect-timeout");
    let table = env.run(&["keys", "list"]).success().stdout;
    assert!(table.lines().any(|line| line.contains(key_id(&slow)) && line.contains(" 1/s ")), "{table}");
}

#[test]
fn an_invalid_key_lifetime_is_refused() {
    let env = TestEnv::sqlite();
    for lifetime in ["0s", "4000d"] {
        let ran = env.run(&["keys", "create", "--role", "client", "--expires", lifetime]);
        ran.exits_with(2, "--expires <DURATION>");
    }
}

#[test]
fn wrong_keys_are_throttled_without_affecting_valid_ones() {
    let env = TestEnv::sqlite();
    let [known, fresh] = [env.create_key("client", &[]), env.create_key("client", &[])];
    let server = start_server_with_auth(&env);
    assert_eq!(server.request_with_key(&known, "GET", "/schedules", "").status, 200);
    let attempt = || server.request_with_key(&forged_key(&known), "GET", "/schedules", "");
    attempt().problem(401, "unauthenticated");
    let refused = eventually("failed attempts are throttled", || Some(attempt()).filter(|answer| answer.status != 401));
    refused.problem(429, "rate_limited");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(server.request_with_key(&known, "GET", "/schedules", "").status, 200);
    // A request without a key does not count as a failed attempt.
    server.get("/schedules").problem(401, "unauthenticated");
    // A valid key that this server has not seen before is accepted at once.
    assert_eq!(server.request_with_key(&fresh, "GET", "/schedules", "").status, 200);
}
