//! Test environments: a database, a directory, the command, and direct access to the store.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use orchestrix_core::{JobId, JobState, Timestamp, WorkerName};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::{ClaimRequest, ClaimedJob, ManualClock, Outcome, OutcomeReport, Store};
use orchestrix_testkit::{PostgresServer, TestDatabase, psql};
use serde_json::Value;

use crate::server::process::ServerProcess;

/// A database and a directory of one test, removed when dropped.
pub(crate) struct TestEnv {
    dir: PathBuf,
    url: String,
    /// The server that commands go through, if they do not use the database directly.
    server: Option<ServerProcess>,
    _database: Option<TestDatabase>,
}

/// One environment for each database that commands support. SQLite files are created on first use.
pub(crate) fn each_database() -> [TestEnv; 2] {
    [TestEnv::sqlite(), TestEnv::postgres()]
}

/// Runs a test on each database in parallel, for tests that mostly wait.
pub(crate) fn on_each_database(test: impl Fn(TestEnv) + Sync) {
    thread::scope(|scope| {
        for env in each_database() {
            let test = &test;
            scope.spawn(move || test(env));
        }
    });
}

/// The environments of [`each_database`] without any tables.
pub(crate) fn each_empty_database() -> [TestEnv; 2] {
    [TestEnv::sqlite(), TestEnv::empty_postgres()]
}

/// One environment for each database, and one behind a server.
pub(crate) fn each_database_and_server() -> [TestEnv; 3] {
    [TestEnv::sqlite(), TestEnv::postgres(), TestEnv::behind_server()]
}

impl TestEnv {
    pub(crate) fn sqlite() -> Self {
        let dir = create_temp_dir();
        Self { url: format!("sqlite:{}", dir.join("jobs.db").display()), dir, server: None, _database: None }
    }

    /// A server on an SQLite file, with the role `api` only. No node leads, so only the test changes anything.
    pub(crate) fn behind_server() -> Self {
        let mut env = Self::sqlite();
        let server = ["server", "--no-auth", "--roles", "api", "--listen", "127.0.0.1:0"];
        env.server = Some(ServerProcess::spawn(env.command(&server)));
        env
    }

    /// A migrated PostgreSQL database.
    pub(crate) fn postgres() -> Self {
        let migrate = |url: &str| drop(CliOutput::run(&mut orchestrix(&["migrate", "--database", url])).success());
        Self::in_database(TestDatabase::create_migrated("cli", migrate).unwrap())
    }

    /// A PostgreSQL database without tables.
    pub(crate) fn empty_postgres() -> Self {
        Self::in_database(TestDatabase::create("cli").unwrap())
    }

    fn in_database(database: TestDatabase) -> Self {
        Self { dir: create_temp_dir(), url: database.url().into(), server: None, _database: Some(database) }
    }

    /// The database `postgres` on this server.
    pub(crate) fn on_postgres(server: &PostgresServer) -> Self {
        Self::at_url(server.url("postgres"))
    }

    /// The address that its server listens on.
    pub(crate) fn address(&self) -> String {
        self.server.as_ref().expect("a env that is served").address.clone()
    }

    /// An existing database.
    pub(crate) fn at_url(url: impl Into<String>) -> Self {
        Self { dir: create_temp_dir(), url: url.into(), server: None, _database: None }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn is_postgres(&self) -> bool {
        !self.url.starts_with("sqlite:")
    }

    /// Runs SQL on the database, bypassing Orchestrix. Returns the first column.
    pub(crate) fn sql(&self, sql: &str) -> Vec<String> {
        match self.url.strip_prefix("sqlite:") {
            Some(path) => {
                let file = rusqlite::Connection::open(path).unwrap();
                let mut statement = file.prepare(sql).unwrap();
                statement.query_map((), |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
            }
            None => psql(&self.url, sql).unwrap().lines().map(str::to_owned).collect(),
        }
    }

    /// The command on this database or through its server, in this directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = orchestrix(arguments);
        match &self.server {
            Some(server) => command.env("ORCHESTRIX_SERVER_URL", format!("http://{}", server.address)),
            None => command.env("ORCHESTRIX_DATABASE_URL", &self.url),
        };
        command.current_dir(&self.dir);
        command
    }

    /// Applies the migrations; behind a server they are applied already.
    pub(crate) fn migrate(&self) {
        if self.server.is_none() {
            self.run(&["migrate"]).success();
        }
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> CliOutput {
        CliOutput::run(&mut self.command(arguments))
    }

    /// Runs the command, which must succeed, and parses the JSON that it prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--output", "json"]].concat()).success().json()
    }

    /// Enqueues a job; returns its id.
    pub(crate) fn enqueue(&self, arguments: &[&str]) -> JobId {
        let ran = self.run(&[&["jobs", "enqueue"], arguments].concat()).success();
        ran.stdout.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Opens the database as a store, for tests that act as a worker.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        match self.url.strip_prefix("sqlite:") {
            Some(path) => Arc::new(SqliteStore::open(SqliteOptions::new(path)).await.unwrap()),
            None => Arc::new(PostgresStore::open(PostgresOptions::new(&self.url)).await.unwrap()),
        }
    }

    /// Opens the SQLite file with a clock that stands at `time`.
    pub(crate) async fn store_at(&self, time: Timestamp) -> SqliteStore {
        let options = SqliteOptions::from_url(&self.url).unwrap();
        SqliteStore::open(SqliteOptions { clock: Arc::new(ManualClock::new(time)), ..options }).await.unwrap()
    }

    /// Claims the one pending job and finishes it.
    pub(crate) async fn finish_next_job(&self, outcome: Outcome) -> JobState {
        let store = self.store().await;
        let claimed = claim_one(&*store).await;
        finish(&*store, &claimed, outcome).await
    }

    /// Enqueues a job and fails it for good with `error`.
    pub(crate) async fn enqueue_dead_job(&self, arguments: &[&str], error: &str) -> JobId {
        let id = self.enqueue(arguments);
        let outcome = Outcome::Fail { error: error.into(), retryable: false, retry_after: None };
        assert_eq!(self.finish_next_job(outcome).await, JobState::Dead);
        id
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        self.server = None;
        // Best effort: it is below the system's temporary directory.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn create_temp_dir() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("orchestrix-cli-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = env::temp_dir().join(name);
    fs::create_dir(&path).unwrap();
    path
}

/// The command without a database, and without the `ORCHESTRIX_…` variables of the test run.
pub(crate) fn orchestrix(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orchestrix"));
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ORCHESTRIX_")) {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

pub(crate) async fn claim_one(store: &dyn Store) -> ClaimedJob {
    let worker = WorkerName::new("hand").unwrap();
    store.claim_jobs(&ClaimRequest::any(worker, 1)).await.unwrap().pop().expect("a job waits")
}

pub(crate) async fn finish(store: &dyn Store, claimed: &ClaimedJob, outcome: Outcome) -> JobState {
    let ends = store.finish_attempts(vec![OutcomeReport { token: claimed.token, outcome }]).await.unwrap();
    *ends[0].as_ref().unwrap()
}

/// Exit code and output of a command that has ended.
#[derive(Debug)]
pub(crate) struct CliOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CliOutput {
    pub(crate) fn run(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    /// Asserts exit code 0.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        self.exits_with(0, "")
    }

    /// Asserts the exit code, and that standard error contains `text`.
    #[track_caller]
    pub(crate) fn exits_with(self, code: i32, text: &str) -> Self {
        assert!(self.code == Some(code) && self.stderr.contains(text), "not {code} with {text:?}: {self:#?}");
        self
    }

    /// Parses standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

impl From<Output> for CliOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
