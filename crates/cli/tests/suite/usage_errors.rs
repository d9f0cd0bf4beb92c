//! Usage errors and their messages.

use std::io;

use orchestrix_testkit::PostgresServer;

use crate::harness::{CliOutput, TestEnv, each_database_and_server, orchestrix};

const UNKNOWN_ID: &str = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";

#[test]
fn a_command_without_a_database_says_how_to_name_one() {
    CliOutput::run(&mut orchestrix(&["jobs", "list"])).exits_with(2, "ORCHESTRIX_DATABASE_URL");
    CliOutput::run(&mut orchestrix(&["jobs", "list", "--database", "sqlite:"])).exits_with(2, "sqlite:jobs.db");
    CliOutput::run(&mut orchestrix(&["jobs", "list"])).exits_with(2, "--server http://");
    // A command that needs a database does not suggest `--server`.
    for command in [&["server", "--listen", "127.0.0.1:0"][..], &["migrate"]] {
        let ran = CliOutput::run(&mut orchestrix(command)).exits_with(2, "ORCHESTRIX_DATABASE_URL");
        assert!(!ran.stderr.contains("--server"), "{ran:?}");
    }
}

#[test]
fn the_memory_store_is_refused_where_it_could_not_be_shared() {
    CliOutput::run(&mut orchestrix(&["jobs", "list", "--database", "memory:"])).exits_with(2, "memory:");
    CliOutput::run(&mut orchestrix(&["migrate", "--database", "memory:"])).success();
}

#[test]
fn no_error_shows_a_password() {
    for (url, code) in [
        ("postgres://me:hunter2@127.0.0.1:1/db", 5),
        ("postgresql://me:hunter2@127.0.0.1:1/db", 5),
        ("postgres://me:hunter2@127.0.0.1:port/db", 2),
        ("postgres://me:hunter2@host/db?no_such_option=1", 2),
        ("mysql://me:hunter2@host/db", 2),
        ("me:hunter2@host", 2),
    ] {
        let arguments = ["--connect-timeout", "10ms", "--log", "trace", "jobs", "list", "--database", url];
        let ran = CliOutput::run(&mut orchestrix(&arguments)).exits_with(code, "error: ");
        assert!(!ran.stderr.contains("hunter2"), "{ran:#?}");
        let ran =
            CliOutput::run(orchestrix(&arguments[..6]).env("ORCHESTRIX_DATABASE_URL", url)).exits_with(code, "error: ");
        assert!(!ran.stderr.contains("hunter2"), "{ran:#?}");
    }
}

#[test]
fn an_unreachable_database_is_named_with_its_address() {
    let mut server = PostgresServer::builder().start().unwrap();
    let url = server.url("postgres");
    server.stop().unwrap();
    let address = format!("127.0.0.1:{}/postgres", server.port());
    for command in [&["jobs", "list"][..], &["migrate"], &["migrate", "--check"]] {
        let arguments = [command, &["--database", &url, "--connect-timeout", "100ms"]].concat();
        let ran = CliOutput::run(&mut orchestrix(&arguments)).exits_with(5, "postgres");
        assert!(ran.stderr.contains(&address), "{ran:#?}");
    }
}

#[test]
fn reading_commands_create_no_file() {
    let env = TestEnv::sqlite();
    for command in
        [&["jobs", "list"][..], &["queues", "list"], &["dlq", "purge", "--all"], &["jobs", "get", UNKNOWN_ID]]
    {
        env.run(command).exits_with(5, "jobs.db");
    }
    assert!(std::fs::read_dir(env.dir()).unwrap().next().is_none());
    env.enqueue(&["t"]);
    env.run(&["jobs", "list"]).success();
}

#[test]
fn a_file_of_another_program_is_left_unchanged() {
    let env = TestEnv::sqlite();
    std::fs::write(env.dir().join("jobs.db"), "not a database, and long enough to have a header").unwrap();
    env.run(&["jobs", "list"]).exits_with(1, "jobs.db");
    env.run(&["jobs", "list", "--database", "sqlite:no/such/dir/jobs.db"]).exits_with(5, "jobs.db");
    env.run(&["jobs", "enqueue", "t", "--database", "sqlite:no/such/dir/jobs.db"]).exits_with(1, "no/such/dir");
}

#[test]
fn invalid_values_are_usage_errors_that_name_valid_ones() {
    let env = TestEnv::sqlite();
    env.run(&["migrate"]).success();
    for (arguments, text) in [
        (&["jobs", "get", "nonsense"][..], "UUID"),
        (&["jobs", "list", "--state", "asleep"], "possible values: created, blocked"),
        (&["jobs", "list", "--from", "yesterday"], "--from"),
        (&["jobs", "list", "--limit", "0"], "0 is not in 1..=1000000"),
        (&["jobs", "enqueue"], "--from-file"),
        (&["jobs", "enqueue", "a b"], "A-Z a-z 0-9"),
        (&["jobs", "enqueue", "t", "--payload", "{"], "--payload: "),
        (&["jobs", "enqueue", "t", "--payload", "@missing.json"], "missing.json"),
        (&["jobs", "enqueue", "--from-file", "missing.jsonl"], "missing.jsonl"),
        (&["jobs", "enqueue", "t", "--delay", "5"], "30s, 5m, 24h or 500ms"),
        (&["jobs", "enqueue", "t", "--delay", "5s", "--run-at", "2030-01-01T00:00:00Z"], "cannot be used with"),
        (&["jobs", "enqueue", "t", "--priority", "1001"], "-1000"),
        (&["jobs", "enqueue", "t", "--max-attempts", "0"], "maxAttempts: "),
        (&["jobs", "enqueue", "t", "--resources", "cpu"], "NAME=AMOUNT"),
        (&["jobs", "enqueue", "t", "--depends-on", UNKNOWN_ID], "dependsOn"),
        (&["jobs", "cancel"], "--all"),
        (&["jobs", "cancel", "--state", "completed", "--yes"], "completed"),
        (&["jobs", "cancel", UNKNOWN_ID, "--queue", "q"], "cannot be used with"),
        (&["dlq", "redrive"], "--all"),
        (&["dlq", "purge"], "--older-than"),
        (&["queues", "pause", "a b"], "A-Z a-z 0-9"),
        (&["server", "--listen", "jobs.example.com:80"], "127.0.0.1:8080"),
        (&["dev", "--listen", "8080"], "127.0.0.1:8080"),
        (&["worker", "--metrics-listen", "here"], "127.0.0.1:8080"),
        (&["frobnicate"], "unrecognized subcommand"),
    ] {
        env.run(arguments).exits_with(2, text);
    }
}

#[test]
fn an_unknown_job_is_not_found() {
    for env in each_database_and_server() {
        env.migrate();
        for command in [
            &["jobs", "get", UNKNOWN_ID][..],
            &["jobs", "cancel", UNKNOWN_ID],
            &["jobs", "cancel", UNKNOWN_ID, "--dry-run"],
            &["jobs", "retry", UNKNOWN_ID],
            &["jobs", "release", UNKNOWN_ID],
            &["jobs", "logs", UNKNOWN_ID],
            &["jobs", "wait", UNKNOWN_ID],
            &["dlq", "redrive", UNKNOWN_ID],
        ] {
            let ran = env.run(command).exits_with(3, UNKNOWN_ID);
            assert_eq!(ran.stdout, "");
        }
    }
}

#[test]
fn every_flag_has_an_environment_variable() {
    let env = TestEnv::sqlite();
    let mut command = env.command(&["jobs", "enqueue", "t"]);
    command.envs([
        ("ORCHESTRIX_OUTPUT", "json"),
        ("ORCHESTRIX_QUEUE", "email"),
        ("ORCHESTRIX_PRIORITY", "-3"),
        ("ORCHESTRIX_TAGS", "a,b"),
        ("ORCHESTRIX_HOLD", "1"),
    ]);
    let id = CliOutput::run(&mut command).success().json()["jobId"].as_str().unwrap().to_owned();
    let job = env.json(&["jobs", "get", &id]);
    assert_eq!((&job["queue"], &job["priority"], &job["state"]), (&"email".into(), &(-3).into(), &"created".into()));
    assert_eq!(job["tags"], serde_json::json!(["a", "b"]));

    let mut list = env.command(&["jobs", "list", "--output", "jsonl"]);
    assert_eq!(CliOutput::run(list.env("ORCHESTRIX_FILTER_QUEUE", "other")).success().stdout, "");
    let mut list = env.command(&["jobs", "list", "--output", "jsonl"]);
    // The queue of new jobs is not a filter for lists.
    assert!(CliOutput::run(list.env("ORCHESTRIX_QUEUE", "other")).success().stdout.contains(&id));
    let mut cancel = env.command(&["jobs", "cancel", "--queue", "email"]);
    CliOutput::run(cancel.env("ORCHESTRIX_YES", "0")).exits_with(2, "--yes");
}

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let env = TestEnv::sqlite();
    env.enqueue(&["t"]);
    for command in [&["jobs", "list"][..], &["jobs", "list", "--output", "json"], &["completions", "bash"]] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let ran = CliOutput::run(env.command(command).stdout(writer));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{command:?}");
    }
}
