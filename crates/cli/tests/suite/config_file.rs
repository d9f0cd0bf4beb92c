//! Flags in `orchestrix.toml`.

use std::{fs, process::Command};

use serde_json::Value;

use crate::harness::{CliOutput, TestEnv, orchestrix};

fn write_config(env: &TestEnv, text: &str) {
    fs::write(env.dir().join("orchestrix.toml"), text).unwrap();
}

/// Enqueues a job with `command` and returns it, read without the file.
fn enqueued_job(env: &TestEnv, command: &mut Command) -> Value {
    let ran = CliOutput::run(command).success();
    let id = ran.stdout.split_whitespace().next().unwrap();
    env.json(&["jobs", "get", id, "--config", "/dev/null"])
}

#[test]
fn precedence_is_command_line_environment_file_default() {
    let env = TestEnv::sqlite();
    let enqueue = || env.command(&["jobs", "enqueue", "t"]);
    assert_eq!(enqueued_job(&env, &mut enqueue())["queue"], "default");
    write_config(
        &env,
        "queue = \"outer\"\ntenant = \"acme\"\n[jobs]\nqueue = \"group\"\n[jobs.enqueue]\nqueue = \"file\"\n",
    );
    let job = enqueued_job(&env, &mut enqueue());
    assert_eq!((&job["queue"], &job["tenant"]), (&"file".into(), &"acme".into()));
    assert_eq!(enqueued_job(&env, enqueue().env("ORCHESTRIX_QUEUE", "variable"))["queue"], "variable");
    let mut command = env.command(&["jobs", "enqueue", "t", "--queue", "flag"]);
    assert_eq!(enqueued_job(&env, command.env("ORCHESTRIX_QUEUE", "variable"))["queue"], "flag");
    // The innermost table with the key wins.
    write_config(&env, "queue = \"outer\"\n[jobs]\nqueue = \"group\"\n[jobs.list]\nqueue = \"nothing-of-this-name\"\n");
    assert_eq!(enqueued_job(&env, &mut enqueue())["queue"], "group");
    assert_eq!(env.json(&["jobs", "list"])["items"].as_array().unwrap().len(), 0);
    // The queue of new jobs is not a filter for lists.
    write_config(&env, "queue = \"outer\"\n");
    assert_eq!(env.json(&["jobs", "list"])["items"].as_array().unwrap().len(), 5);
}

#[test]
fn values_of_every_type_reach_their_flags() {
    let env = TestEnv::sqlite();
    write_config(
        &env,
        "output = \"json\"\n\
         [jobs.enqueue]\n\
         priority = -3\n\
         tags = [\"a\", \"b\"]\n\
         hold = true\n\
         timeout = \"90s\"\n\
         retry-multiplier = 1.5\n\
         run-at = 2030-01-31T09:00:00Z\n",
    );
    let id = env.run(&["jobs", "enqueue", "t"]).success().json()["jobId"].as_str().unwrap().to_owned();
    let job = env.json(&["jobs", "get", &id]);
    assert_eq!((&job["priority"], &job["state"]), (&(-3).into(), &"created".into()));
    assert_eq!((&job["tags"], &job["timeoutSeconds"]), (&serde_json::json!(["a", "b"]), &90.0.into()), "{job}");
    assert_eq!(
        (&job["retry"]["multiplier"], &job["eligibleAt"]),
        (&1.5.into(), &"2030-01-31T09:00:00Z".into()),
        "{job}"
    );
    // A list is replaced, not extended; a switch that is on can be turned off.
    let mut command = env.command(&["jobs", "enqueue", "t", "--tags", "c"]);
    let id = CliOutput::run(command.env("ORCHESTRIX_HOLD", "0")).success().json()["jobId"].as_str().unwrap().to_owned();
    let job = env.json(&["jobs", "get", &id]);
    assert_eq!((&job["tags"], &job["state"]), (&serde_json::json!(["c"]), &"scheduled".into()));
    // Arguments after `--` are not flags.
    let ran = env.run(&["jobs", "enqueue", "--", "t"]).success();
    assert_eq!(env.json(&["jobs", "get", ran.json()["jobId"].as_str().unwrap()])["priority"], -3);
}

#[test]
fn a_named_file_must_exist_and_replaces_the_default_file() {
    let env = TestEnv::sqlite();
    env.run(&["jobs", "enqueue", "t", "--config", "missing.toml"]).exits_with(2, "missing.toml");
    write_config(&env, "queue = \"usual\"\n");
    fs::write(env.dir().join("other.toml"), "tenant = \"acme\"\n").unwrap();
    for (flags, variable) in [(&["--config", "other.toml"][..], None), (&[], Some("other.toml"))] {
        let mut command = env.command(&[&["jobs", "enqueue", "t"], flags].concat());
        command.envs(variable.map(|file| ("ORCHESTRIX_CONFIG", file)));
        let job = enqueued_job(&env, &mut command);
        assert_eq!((&job["queue"], &job["tenant"]), (&"default".into(), &"acme".into()));
    }
    fs::write(env.dir().join("wide.toml"), "#".repeat(1024 * 1024 + 1)).unwrap();
    env.run(&["migrate", "--config", "wide.toml"]).exits_with(2, "1 MiB");
    fs::write(env.dir().join("bytes.toml"), [b'#', 0xff]).unwrap();
    env.run(&["migrate", "--config", "bytes.toml"]).exits_with(2, "bytes.toml");
    env.run(&["migrate", "--config", "."]).exits_with(2, "error: ");
}

#[test]
fn mistakes_are_reported_with_their_line_and_a_correction() {
    let env = TestEnv::sqlite();
    for (text, line, key, parts) in [
        ("databse = \"x\"", 1, "databse", &["`database`"][..]),
        ("\n\n[jobs.enqueue]\nmax_attempts = 3", 4, "max_attempts", &["[jobs.enqueue]", "`max-attempts`"]),
        ("roles = [\"api\"]\n[worker]\nroles = [\"api\"]", 3, "roles", &["[worker]"]),
        ("frobnicate = 1", 1, "frobnicate", &["`orchestrix config`"]),
        ("type = \"t\"", 1, "type", &["[jobs.list]"]),
        ("[workr]\nconcurrency = 1", 1, "workr", &["[worker]"]),
        ("[jobs.enqeue]\nqueue = \"q\"", 1, "enqeue", &["[jobs.enqueue]"]),
        ("config = \"x\"", 1, "config", &[]),
        ("drain-timeout = 30", 1, "drain-timeout", &["30s"]),
        ("[worker]\nconcurrency = \"10\"", 2, "concurrency", &["number"]),
        ("concurrency = -1", 1, "concurrency", &["10"]),
        ("database = 5", 1, "database", &["string"]),
        ("listen = \"here\"", 1, "listen", &["127.0.0.1:8080"]),
        ("listen = \"\"", 1, "listen", &[]),
        ("log = \"loud\"", 1, "log", &["off, error, warn, info, debug, trace"]),
        ("no-migrate = \"yes\"", 1, "no-migrate", &["true or false"]),
        ("queues = \"a,b\"", 1, "queues", &["list"]),
        ("queues = [\"a,b\"]", 1, "queues", &["list"]),
        ("queues = []", 1, "queues", &["empty"]),
        ("queues = [\"a b\"]", 1, "queues", &[]),
        ("connect-timeout = [\"1s\"]", 1, "connect-timeout", &["single value", "10s"]),
        ("database = {url = \"x\"}", 1, "database", &["single value"]),
        ("[jobs.list]\nlimit = 0", 2, "limit", &[]),
        ("log = \"info\"\nlog = \"warn\"", 2, "", &["TOML", "duplicate key"]),
        ("log = info", 1, "", &["TOML"]),
    ] {
        write_config(&env, text);
        // The file is checked by every command.
        for command in [&["jobs", "list"][..], &["completions", "bash"]] {
            let ran = env.run(command).exits_with(2, "orchestrix.toml");
            let start = if key.is_empty() { format!("line {line}: ") } else { format!("line {line}: `{key}`") };
            let message = ran.stderr.lines().find(|message| message.trim_start().starts_with(&start));
            let message = message.unwrap_or_else(|| panic!("no {start:?}: {ran:#?}"));
            assert!(parts.iter().all(|part| message.contains(part)), "{parts:?} in {message:?}");
            assert_eq!(ran.stdout, "");
        }
    }
    write_config(&env, "one = 1\ntwo = 2\n[dev]\nthree = 3\n");
    let ran = env.run(&["jobs", "list"]).exits_with(2, "line 1: `one`");
    assert!(ran.stderr.contains("line 2: `two`") && ran.stderr.contains("line 4: `three`"), "{ran:#?}");
    // `--help` does not read the file.
    env.run(&["--help"]).success();
}

#[test]
fn conflicting_flags_are_detected_across_file_and_command_line() {
    let env = TestEnv::sqlite();
    write_config(&env, "[jobs.enqueue]\ndelay = \"5m\"\n[dlq.purge]\nolder-than = \"30d\"\ndry-run = true\n");
    let ran =
        env.run(&["jobs", "enqueue", "t", "--run-at", "2030-01-01T00:00:00Z"]).exits_with(2, "cannot be used with");
    assert!(ran.stderr.contains("--delay") && ran.stderr.contains("orchestrix.toml, line 2"), "{ran:#?}");
    env.enqueue(&["t"]);
    // A required flag may come from the file.
    env.run(&["dlq", "purge"]).success();
}

#[test]
fn no_error_about_the_file_shows_a_value() {
    let env = TestEnv::sqlite();
    for text in [
        "database = hunter2",
        "database = \"hunter2",
        "database = [\"hunter2\"]",
        "log = \"hunter2\"",
        "listen = \"hunter2\"",
        "drain-timeout = \"hunter2\"",
        "cron = \"hunter2\"",
        "tz = \"hunter2\"",
        "depends-on = [\"hunter2\"]",
        "resources = [\"hunter2\"]",
        "no-migrate = \"hunter2\"",
        "databas = \"hunter2\"",
        "[worker]\nqueues = [\"hunter2 hunter2\"]",
        "database = \"hunter2\"\ndatabase = \"hunter2\"",
    ] {
        write_config(&env, text);
        let ran = env.run(&["jobs", "list", "--log", "trace"]).exits_with(2, "orchestrix.toml");
        assert!(!ran.stderr.contains("hunter2"), "{text}: {ran:#?}");
    }
}

#[test]
fn the_database_may_come_from_the_file() {
    let env = TestEnv::sqlite();
    env.enqueue(&["t"]);
    write_config(&env, "database = \"sqlite:jobs.db\"\n");
    let mut command = orchestrix(&["jobs", "list", "--output", "json"]);
    let list = CliOutput::run(command.current_dir(env.dir())).success().json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}

#[test]
fn the_output_of_config_is_a_valid_file() {
    let env = TestEnv::sqlite();
    let template = env.run(&["config"]).success().stdout;
    for part in [
        "# listen = \"127.0.0.1:8080\"",
        "[jobs.enqueue]",
        "# concurrency = 10",
        "# roles = [\"api\", \"coordinator\"]",
    ] {
        assert!(template.contains(part), "{part}");
    }
    write_config(&env, &template);
    env.run(&["jobs", "enqueue", "t"]).success();
}
