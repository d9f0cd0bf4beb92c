//! Databases, the command, and a worker's hand for tests.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use orchestrix_core::{JobId, JobState, Timestamp, WorkerName};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::{ClaimRequest, ClaimedJob, ManualClock, Outcome, OutcomeReport, Store};
use orchestrix_testkit::{PostgresServer, TestDatabase, psql};
use serde_json::Value;

use crate::server::http::Server;

/// A database and a folder of a test's own, gone with it.
pub(crate) struct Place {
    folder: PathBuf,
    url: String,
    /// Through which commands work, where they do not work on the database.
    server: Option<Server>,
    _database: Option<TestDatabase>,
}

/// One of every kind of database that commands work on.
pub(crate) fn places() -> [Place; 2] {
    [Place::sqlite(), Place::postgres()]
}

/// The same, and a server in between.
pub(crate) fn everywhere() -> [Place; 3] {
    [Place::sqlite(), Place::postgres(), Place::served()]
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        let folder = folder();
        Self { url: format!("sqlite:{}", folder.join("jobs.db").display()), folder, server: None, _database: None }
    }

    /// A server over a file. It only answers: nobody leads, so that nothing happens but what a test does.
    pub(crate) fn served() -> Self {
        let mut place = Self::sqlite();
        let server = ["server", "--no-auth", "--roles", "api", "--listen", "127.0.0.1:0"];
        place.server = Some(Server::of(place.command(&server)));
        place
    }

    pub(crate) fn postgres() -> Self {
        let database = TestDatabase::create("cli").unwrap();
        Self { folder: folder(), url: database.url().into(), server: None, _database: Some(database) }
    }

    /// A database on this server.
    pub(crate) fn on(server: &PostgresServer) -> Self {
        Self::at(server.url("postgres"))
    }

    /// Where its server listens.
    pub(crate) fn address(&self) -> String {
        self.server.as_ref().expect("a place that is served").address.clone()
    }

    /// A database that is reached by this URL.
    pub(crate) fn at(url: impl Into<String>) -> Self {
        Self { folder: folder(), url: url.into(), server: None, _database: None }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn is_postgres(&self) -> bool {
        !self.url.starts_with("sqlite:")
    }

    /// The first column of what SQL in this database answers, asked without any of our own code.
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

    /// The command on this database or through its server, in this folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = bare(arguments);
        match &self.server {
            Some(server) => command.env("ORCHESTRIX_SERVER_URL", format!("http://{}", server.address)),
            None => command.env("ORCHESTRIX_DATABASE_URL", &self.url),
        };
        command.current_dir(&self.folder);
        command
    }

    /// Sees to it that there is something to look into; a server has done so already.
    pub(crate) fn prepare(&self) {
        if self.server.is_none() {
            self.run(&["migrate"]).done();
        }
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&mut self.command(arguments))
    }

    /// The JSON that the command prints; it must succeed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--output", "json"]].concat()).done().json()
    }

    /// Records a job; its id.
    pub(crate) fn enqueue(&self, arguments: &[&str]) -> JobId {
        let ran = self.run(&[&["jobs", "enqueue"], arguments].concat()).done();
        ran.stdout.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// The same database for whoever plays the worker.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        match self.url.strip_prefix("sqlite:") {
            Some(path) => Arc::new(SqliteStore::open(SqliteOptions::new(path)).await.unwrap()),
            None => Arc::new(PostgresStore::open(PostgresOptions::new(&self.url)).await.unwrap()),
        }
    }

    /// The same file, at another time.
    pub(crate) async fn store_at(&self, time: Timestamp) -> SqliteStore {
        let options = SqliteOptions::from_url(&self.url).unwrap();
        SqliteStore::open(SqliteOptions { clock: Arc::new(ManualClock::new(time)), ..options }).await.unwrap()
    }

    /// Takes the one job that waits, and ends it.
    pub(crate) async fn work(&self, outcome: Outcome) -> JobState {
        let store = self.store().await;
        let claimed = claim(&*store).await;
        finish(&*store, &claimed, outcome).await
    }

    /// A job that died of `error`.
    pub(crate) async fn dead(&self, arguments: &[&str], error: &str) -> JobId {
        let id = self.enqueue(arguments);
        let outcome = Outcome::Fail { error: error.into(), retryable: false, retry_after: None };
        assert_eq!(self.work(outcome).await, JobState::Dead);
        id
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.server = None;
        // What is left behind is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn folder() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("orchestrix-cli-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = env::temp_dir().join(name);
    fs::create_dir(&path).unwrap();
    path
}

/// The command without a database, and without what the environment of the tests says to it.
pub(crate) fn bare(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orchestrix"));
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ORCHESTRIX_")) {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

pub(crate) async fn claim(store: &dyn Store) -> ClaimedJob {
    let worker = WorkerName::new("hand").unwrap();
    store.claim_jobs(&ClaimRequest::any(worker, 1)).await.unwrap().pop().expect("a job waits")
}

pub(crate) async fn finish(store: &dyn Store, claimed: &ClaimedJob, outcome: Outcome) -> JobState {
    let ends = store.finish_attempts(vec![OutcomeReport { token: claimed.token, outcome }]).await.unwrap();
    *ends[0].as_ref().unwrap()
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    /// The same, which must have succeeded.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        self.ended(0, "")
    }

    /// The same, which must have exited with `code` and said `text` on standard error.
    #[track_caller]
    pub(crate) fn ended(self, code: i32, text: &str) -> Self {
        assert!(self.code == Some(code) && self.stderr.contains(text), "not {code} with {text:?}: {self:#?}");
        self
    }

    /// What it printed.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
