//! Keys from their making to their end.

use std::fs;

use super::{forged, guarded, id_of, over, secret_of};
use crate::{
    support::{Place, places},
    worker::eventually,
};

/// Everything that the database keeps, as bytes.
fn kept(place: &Place) -> Vec<u8> {
    if place.is_postgres() {
        let tables = place.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'orchestrix'");
        let rows = tables.iter().flat_map(|table| place.sql(&format!("SELECT t::text FROM orchestrix.{table} t")));
        return rows.collect::<Vec<_>>().join("\n").into_bytes();
    }
    let files = fs::read_dir(place.folder()).unwrap();
    files.flat_map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
}

fn holds(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

#[test]
fn the_first_key_is_made_on_the_database_and_its_secret_is_kept_nowhere() {
    for place in places() {
        let server = guarded(&place);
        server.says("there is no key yet: orchestrix keys create --role admin --database URL");
        for authorization in [None, Some("Bearer"), Some("Bearer x"), Some("Basic eDp5"), Some("")] {
            let headers: Vec<_> = authorization.map(|text| ("authorization", text)).into_iter().collect();
            let refused = server.call("GET", "/admin/jobs", &headers, "");
            refused.problem(401, "unauthenticated");
            assert_eq!(refused.header("www-authenticate"), Some("Bearer"), "{authorization:?}");
        }
        assert_eq!((server.get("/healthz").status, server.get("/readyz").status), (200, 200));

        let made = place.run(&["keys", "create", "--role", "admin"]).done();
        assert!(made.stderr.contains("it is not shown again"), "{made:?}");
        let key = made.stdout.strip_suffix('\n').unwrap();
        let parts: Vec<&str> = key.split('_').collect();
        assert!(parts.len() == 3 && parts[0] == "ox" && parts[2].len() == 64, "alone, to be taken as it is: {made:?}");
        // The server looks for it when it is shown.
        assert_eq!(server.with(key, "GET", "/admin/keys", "").json()["items"][0]["keyId"], id_of(key));
        server.with(&forged(key), "GET", "/admin/keys", "").problem(401, "unauthenticated");
        let both = format!("Bearer {key}");
        let twice = [("authorization", both.as_str()), ("authorization", "Bearer x")];
        server.call("GET", "/admin/keys", &twice, "").problem(401, "unauthenticated");

        // A key that is made with a key is shown as little.
        let second = over(&server, key, &["keys", "create", "--role", "client", "--name", "web"]).done();
        let second = second.stdout.trim_end();
        for format in ["table", "json", "jsonl"] {
            let list = ["keys", "list", "--output", format];
            for listed in [place.run(&list).done(), over(&server, key, &list).done()] {
                for known in [key, second] {
                    let said = [listed.stdout.as_str(), &listed.stderr].concat();
                    assert!(said.contains(id_of(known)) && !said.contains(secret_of(known)), "{listed:?}");
                }
            }
        }
        let all = kept(&place);
        for known in [key, second] {
            let bytes: Vec<u8> = secret_of(known)
                .as_bytes()
                .chunks(2)
                .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
                .collect();
            assert!(holds(&all, id_of(known).as_bytes()));
            assert!(!holds(&all, secret_of(known).as_bytes()) && !holds(&all, &bytes), "{}", place.url());
        }
        let said = guarded(&place).last_words();
        assert!(!said.iter().any(|line| line.contains("no key")), "{said:?}");
    }
}

#[test]
fn a_key_that_is_taken_back_or_over_is_refused_by_a_server_that_knew_it() {
    for place in places() {
        let admin = place.key("admin", &[]);
        let [first, second] = [place.key("client", &[]), place.key("client", &[])];
        let short = place.key("client", &["--expires", "1s"]);
        let server = guarded(&place);
        let status = |key: &str| server.with(key, "GET", "/schedules", "").status;
        let refused = |what: &str, key: &str| {
            eventually(what, || {
                let answer = server.with(key, "GET", "/schedules", "");
                (answer.status != 200).then(|| answer.problem(401, "unauthenticated"))
            });
        };
        assert_eq!((status(&first), status(&second)), (200, 200));
        // By whoever has the database, and by whoever has a key for it.
        let dry = place.run(&["keys", "revoke", id_of(&first), "abcdefghijkl", "--dry-run"]);
        let dry = dry.ended(3, "dry run: 1 key would be revoked");
        assert!(
            dry.stdout.contains(id_of(&first)) && dry.stderr.contains("key abcdefghijkl: there is no such key"),
            "{dry:?}"
        );
        assert_eq!(status(&first), 200);
        let ran = place
            .run(&["keys", "revoke", "abcdefghijkl", id_of(&first)])
            .ended(3, "key abcdefghijkl: there is no such key");
        assert!(ran.stdout.contains(id_of(&first)), "it says what it did: {ran:?}");
        refused("the server hears of it", &first);
        over(&server, &admin, &["keys", "revoke", id_of(&second), "--yes"]).done();
        refused("the server hears of it", &second);
        refused("its time is over", &short);
        let list = place.json(&["keys", "list"]);
        let of = |key: &str| list["items"].as_array().unwrap().iter().find(|item| item["keyId"] == id_of(key)).unwrap();
        assert!(of(&first)["revokedAt"].is_string() && of(&second)["revokedAt"].is_string(), "{list}");
        assert!(of(&short)["expiresAt"].is_string() && of(&admin)["revokedAt"].is_null(), "{list}");
        let table = place.run(&["keys", "list"]).done().stdout;
        let line = |key: &str| table.lines().find(|line| line.contains(id_of(key))).unwrap();
        assert!(line(&first).contains("revoked") && line(&short).contains("expired"), "{table}");
        over(&server, &admin, &["keys", "revoke", "abcdefghijkl"]).ended(3, "there is no such key");
        over(&server, &first, &["keys", "list"]).ended(1, "ORCHESTRIX_API_KEY");
    }
}

#[test]
fn a_key_is_used_as_often_as_it_may_be() {
    let place = Place::sqlite();
    let slow = place.key("client", &["--rate", "1"]);
    let other = place.key("client", &[]);
    let server = guarded(&place);
    let refused = eventually("it is too often", || {
        Some(server.with(&slow, "GET", "/schedules", "")).filter(|answer| answer.status != 200)
    });
    refused.problem(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(server.with(&other, "GET", "/schedules", "").status, 200);
    eventually("a second later it may again", || {
        (server.with(&slow, "GET", "/schedules", "").status == 200).then_some(())
    });
    // A command waits as long as it is told to.
    over(&server, &slow, &["jobs", "enqueue", "t"]).done();
    over(&server, &slow, &["jobs", "enqueue", "t"]).done();
    let told = eventually("one that does not wait is turned away", || {
        let ran = over(&server, &slow, &["schedules", "list", "--connect-timeout", "1ms"]);
        (ran.code != Some(0)).then_some(ran)
    });
    told.ended(5, "the key is used more often than it may be\n  come again in 1 s, or let --connect-timeout");
    let table = place.run(&["keys", "list"]).done().stdout;
    assert!(table.lines().any(|line| line.contains(id_of(&slow)) && line.contains(" 1/s ")), "{table}");
}

#[test]
fn a_lifetime_that_is_none_is_refused_by_its_flag() {
    let place = Place::sqlite();
    for lifetime in ["0s", "4000d"] {
        let ran = place.run(&["keys", "create", "--role", "client", "--expires", lifetime]);
        ran.ended(2, "for '--expires <DURATION>': must be from 1ms to ten years");
    }
}

#[test]
fn whoever_shows_wrong_keys_is_slowed_down_and_nobody_else() {
    let place = Place::sqlite();
    let [known, fresh] = [place.key("client", &[]), place.key("client", &[])];
    let server = guarded(&place);
    assert_eq!(server.with(&known, "GET", "/schedules", "").status, 200);
    let guess = || server.with(&forged(&known), "GET", "/schedules", "");
    guess().problem(401, "unauthenticated");
    let refused = eventually("guesses are held up", || Some(guess()).filter(|answer| answer.status != 401));
    refused.problem(429, "rate_limited");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(server.with(&known, "GET", "/schedules", "").status, 200);
    // Without a key nothing is guessed.
    server.get("/schedules").problem(401, "unauthenticated");
    // One that is good is not held up, though nobody has seen it here before.
    assert_eq!(server.with(&fresh, "GET", "/schedules", "").status, 200);
}
