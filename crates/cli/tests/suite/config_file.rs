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
    let mut command = env.command(&["jobs", "enqueue", "t", "--queue", "word"]);
    assert_eq!(enqueued_job(&env, command.env("ORCHESTRIX_QUEUE", "variable"))["queue"], "word");
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
    env.run(&["jobs", "enqueue", "t", "--config", "missing.toml"]).exits_with(2, "missing.toml cannot be read");
    write_config(&env, "queue = \"usual\"\n");
    fs::write(env.dir().join("other.toml"), "tenant = \"acme\"\n").unwrap();
    for (words, variable) in [(&["--config", "other.toml"][..], None), (&[], Some("other.toml"))] {
        let mut command = env.command(&[&["jobs", "enqueue", "t"], words].concat());
        command.envs(variable.map(|file| ("ORCHESTRIX_CONFIG", file)));
        let job = enqueued_job(&env, &mut command);
        assert_eq!((&job["queue"], &job["tenant"]), (&"default".into(), &"acme".into()));
    }
    fs::write(env.dir().join("wide.toml"), "#".repeat(1024 * 1024 + 1)).unwrap();
    env.run(&["migrate", "--config", "wide.toml"]).exits_with(2, "wide.toml is larger than 1 MiB");
    fs::write(env.dir().join("bytes.toml"), [b'#', 0xff]).unwrap();
    env.run(&["migrate", "--config", "bytes.toml"]).exits_with(2, "bytes.toml cannot be read");
    env.run(&["migrate", "--config", "."]).exits_with(2, ". cannot be read");
}

#[test]
fn mistakes_are_reported_with_their_line_and_a_correction() {
    let env = TestEnv::sqlite();
    for (text, said) in [
        ("databse = \"x\"", "line 1: `databse` is no flag outside of any table; did you mean `database`?"),
        (
            "\n\n[jobs.enqueue]\nmax_attempts = 3",
            "line 4: `max_attempts` is no flag in [jobs.enqueue]; did you mean `max-attempts`?",
        ),
        ("roles = [\"api\"]\n[worker]\nroles = [\"api\"]", "line 3: `roles` is no flag in [worker]"),
        ("frobnicate = 1", "line 1: `frobnicate` is no flag outside of any table; `orchestrix config` prints"),
        ("type = \"t\"", "line 1: `type` is no flag outside of any table; it may stand in [jobs.list]"),
        ("[workr]\nconcurrency = 1", "line 1: `workr` is no command; did you mean [worker]?"),
        ("[jobs.enqeue]\nqueue = \"q\"", "line 1: `enqeue` is no command; did you mean [jobs.enqueue]?"),
        ("config = \"x\"", "line 1: `config` cannot stand in the file"),
        ("drain-timeout = 30", "line 1: `drain-timeout` must be a duration such as 30s"),
        ("[worker]\nconcurrency = \"10\"", "line 2: `concurrency` must be a number, without quotes"),
        ("concurrency = -1", "line 1: `concurrency` is refused: invalid digit found in string; by default it is 10"),
        ("database = 5", "line 1: `database` must be a string, in quotes"),
        ("listen = \"here\"", "line 1: `listen` must be an IP address and a port, such as 127.0.0.1:8080"),
        ("listen = \"\"", "line 1: `listen` must be "),
        ("log = \"loud\"", "line 1: `log` must be one of off, error, warn, info, debug, trace"),
        ("no-migrate = \"yes\"", "line 1: `no-migrate` must be true or false"),
        ("queues = \"a,b\"", "line 1: `queues` must be a list"),
        ("queues = [\"a,b\"]", "line 1: `queues` must be a list of single items"),
        ("queues = []", "line 1: `queues` is an empty list"),
        ("queues = [\"a b\"]", "line 1: `queues` is refused"),
        ("connect-timeout = [\"1s\"]", "line 1: `connect-timeout` must be a single value; by default it is 10s"),
        ("database = {url = \"x\"}", "line 1: `database` must be a single value"),
        ("[jobs.list]\nlimit = 0", "line 2: `limit` is refused"),
        ("log = \"info\"\nlog = \"warn\"", "line 2: is not TOML: duplicate key"),
        ("log = info", "line 1: is not TOML: "),
    ] {
        write_config(&env, text);
        // The file is checked by every command.
        for command in [&["jobs", "list"][..], &["completions", "bash"]] {
            let ran = env.run(command).exits_with(2, &format!("error: in orchestrix.toml\n  {said}"));
            assert_eq!(ran.stdout, "");
        }
    }
    write_config(&env, "one = 1\ntwo = 2\n[dev]\nthree = 3\n");
    let ran = env.run(&["jobs", "list"]).exits_with(2, "line 1: `one`");
    assert!(
        ran.stderr.contains("line 2: `two`") && ran.stderr.contains("line 4: `three` is no flag in [dev]"),
        "{ran:#?}"
    );
    // `--help` does not read the file.
    env.run(&["--help"]).success();
}

#[test]
fn conflicting_flags_are_detected_across_file_and_command_line() {
    let env = TestEnv::sqlite();
    write_config(&env, "[jobs.enqueue]\ndelay = \"5m\"\n[dlq.purge]\nolder-than = \"30d\"\ndry-run = true\n");
    let ran =
        env.run(&["jobs", "enqueue", "t", "--run-at", "2030-01-01T00:00:00Z"]).exits_with(2, "cannot be used with");
    assert!(ran.stderr.contains("--delay stands in orchestrix.toml, line 2"), "{ran:#?}");
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
        let ran = env.run(&["jobs", "list", "--log", "trace"]).exits_with(2, "error: in orchestrix.toml\n  line ");
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
