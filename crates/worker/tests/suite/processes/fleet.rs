//! A fleet of worker processes on one database, and the faults that can be injected.

use std::{collections::BTreeMap, env, fs, path::PathBuf, sync::Mutex, time::Duration};

use orchestrix_core::NewJob;
use orchestrix_testkit::FaultProxy;

use super::{
    TIMEOUT,
    checker::{CheckReport, Fault, FaultKind, History},
    journal::{JournalContents, Run, Time, now},
    process::{Process, Setup, open},
    test_store::{Row, TestStore},
    wait_for,
    workload::{ExpectedStates, Rate, Workload, enqueue},
};

pub(crate) struct Fleet {
    pub(crate) workers: Vec<Process>,
    pub(crate) store: TestStore,
    faults: Vec<Fault>,
    expected: Mutex<ExpectedStates>,
    workload: Option<Workload>,
    started: usize,
    violations: Vec<String>,
    directory: JournalDirectory,
}

/// The directory of the journals. Removed with the fleet.
struct JournalDirectory(PathBuf);

impl Drop for JournalDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Fleet {
    pub(crate) async fn on(store: TestStore) -> Self {
        Self::create(|_| store).await
    }

    pub(crate) async fn on_a_file() -> Self {
        Self::create(|directory| TestStore::File(directory.join("jobs.db"))).await
    }

    async fn create(store: impl FnOnce(&PathBuf) -> TestStore) -> Self {
        let name = format!("orchestrix-workers-{}-{:08x}", std::process::id(), rand::random::<u32>());
        let directory = JournalDirectory(env::temp_dir().join(name));
        fs::create_dir_all(&directory.0).unwrap();
        let store = store(&directory.0);
        // Creates the schema.
        drop(open(&store.url()).await);
        Self {
            workers: Vec::new(),
            store,
            faults: Vec::new(),
            expected: Mutex::default(),
            workload: None,
            started: 0,
            violations: Vec::new(),
            directory,
        }
    }

    /// Starts one more worker with a unique name.
    pub(crate) fn add(&mut self, setup: Setup) -> &Process {
        let url = self.store.url();
        self.add_with_url(&url, setup)
    }

    /// Starts one more worker that connects through its own proxy.
    pub(crate) fn add_behind_proxy(&mut self, setup: Setup) -> FaultProxy {
        let (address, database) = self.store.address();
        let proxy = FaultProxy::start(address).unwrap();
        self.add_with_url(&format!("postgres://postgres@{}/{database}", proxy.address()), setup);
        proxy
    }

    fn add_with_url(&mut self, url: &str, setup: Setup) -> &Process {
        self.started += 1;
        let name = format!("worker{}", self.started);
        let journal = self.directory.0.join(&name);
        // SQLite URLs have no application name.
        let url = if url.starts_with("sqlite:") { url.to_owned() } else { format!("{url}?application_name={name}") };
        self.workers.push(Process::start(&name, &url, journal, setup));
        self.workers.last().expect("a worker was just pushed")
    }

    /// Enqueues jobs with their expected final states.
    pub(crate) async fn enqueue(&self, jobs: Vec<(NewJob, &'static str)>) {
        enqueue(&*open(&self.store.url()).await, jobs, &self.expected).await.unwrap();
    }

    /// Enqueues jobs at this rate until the fleet finishes.
    pub(crate) async fn start_workload(&mut self, rate: Rate) {
        self.workload = Some(Workload::start(open(&self.store.url()).await, rate));
    }

    fn record_fault(&mut self, kind: FaultKind, worker: Option<&str>, from: Time) {
        self.faults.push(Fault { kind, worker: worker.map(str::to_owned), from, until: now() });
    }

    pub(crate) fn record_violation(&mut self, what: String) {
        eprintln!("violation: {what}");
        self.violations.push(what);
    }

    // ---- faults ----

    /// Kills a worker and removes it from the fleet.
    pub(crate) fn kill(&mut self, worker: usize) {
        let mut worker = self.workers.remove(worker);
        let from = now();
        worker.kill();
        self.record_fault(FaultKind::Killed, Some(&worker.name), from);
    }

    /// Suspends a worker. Returns the time, for `resume`.
    pub(crate) fn suspend(&self, worker: usize) -> Time {
        let since = now();
        self.workers[worker].signal("STOP");
        since
    }

    /// Resumes a suspended worker.
    pub(crate) fn resume(&mut self, worker: usize, since: Time) {
        self.workers[worker].signal("CONT");
        let name = self.workers[worker].name.clone();
        self.record_fault(FaultKind::Suspended, Some(&name), since);
    }

    /// Terminates a worker, waits until it has exited, and removes it from the fleet.
    pub(crate) async fn terminate(&mut self, worker: usize) {
        let mut worker = self.workers.remove(worker);
        let from = now();
        worker.signal("TERM");
        let violation = worker.wait_for_exit().await;
        self.record_fault(FaultKind::Terminated, Some(&worker.name), from);
        self.violations.extend(violation);
    }

    /// Restores a worker's frozen network.
    pub(crate) fn restore_network(&mut self, worker: usize, proxy: &FaultProxy, since: Time) {
        proxy.restore();
        let name = self.workers[worker].name.clone();
        self.record_fault(FaultKind::NetworkFrozen, Some(&name), since);
    }

    /// Makes the server close random connections of the workers. Returns how many.
    pub(crate) async fn disconnect(&mut self, connections: i64) -> i64 {
        let from = now();
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM (
                       SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'worker%' AND datname = current_database()
                       ORDER BY random() TIMEOUT $1) AS chosen";
        let ended = self.store.connect().await.query_one(sql, &[&connections]).await.unwrap().get(0);
        self.record_fault(FaultKind::Disconnected, None, from);
        ended
    }

    /// Kills the database and restarts it after `downtime`.
    pub(crate) fn kill_database(&mut self, downtime: Duration) {
        let from = now();
        let TestStore::Own(server) = &mut self.store else {
            panic!("only a fleet on its own server can kill the database")
        };
        tokio::task::block_in_place(|| {
            server.kill().unwrap();
            std::thread::sleep(downtime);
            server.restart().unwrap();
        });
        self.record_fault(FaultKind::DatabaseDown, None, from);
    }

    // ---- results ----

    /// Waits until the jobs of these runs have finished. Returns how many were finished by the given run.
    pub(crate) async fn wait_for_runs(&self, runs: &[Run]) -> usize {
        let finished = async || {
            let rows = self.store.rows().await;
            let of_runs = |row: &Row| runs.iter().any(|run| run.job == row.job);
            let rows: Vec<Row> = rows.into_iter().filter(|row| row.finished.is_some() && of_runs(row)).collect();
            (rows.len() == runs.len()).then_some(rows)
        };
        let rows = wait_for("the running jobs finish", finished).await;
        let by_same_run = |run: &&Run| rows.iter().any(|row| row.job == run.job && row.done_by == Some(run.lease));
        runs.iter().filter(by_same_run).count()
    }

    /// Waits until every job has finished.
    pub(crate) async fn wait_until_all_finished(&self) {
        wait_for("every job finishes", async || (self.store.unfinished().await == 0).then_some(())).await;
    }

    /// Waits until all jobs have finished, ends the workers and checks the history.
    pub(crate) async fn finish(mut self) -> CheckReport {
        if let Some(workload) = self.workload.take() {
            let more = workload.finish().await;
            self.expected.lock().unwrap().extend(more);
        }
        let closed = now();
        let all_finished = async {
            while self.store.unfinished().await > 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(TIMEOUT, all_finished).await.is_err() {
            self.record_violation("not every job finished".into());
        }
        while !self.workers.is_empty() {
            self.terminate(0).await;
        }
        let rows = self.store.rows().await;
        let journal = |n| {
            let name = format!("worker{n}");
            let contents = JournalContents::read(&self.directory.0.join(&name));
            (name, contents)
        };
        let journals: BTreeMap<String, JournalContents> = (1..=self.started).map(journal).collect();
        let expected = std::mem::take(&mut *self.expected.lock().unwrap());
        let history = History { expected: &expected, rows: &rows, journals: &journals, faults: &self.faults, closed };
        let mut report = history.check();
        report.violations.append(&mut self.violations);
        report
    }
}
