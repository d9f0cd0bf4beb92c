//! Some workers on one database, and all that can be done to them.

use std::{collections::BTreeMap, env, fs, path::PathBuf, sync::Mutex, time::Duration};

use orchestrix_core::NewJob;
use orchestrix_testkit::FaultProxy;

use super::{
    LIMIT,
    ground::{Ground, Row},
    journal::{Run, Time, Written, now},
    judge::{Blow, Evidence, Fault, Judgement},
    process::{Process, Setup, open},
    stream::{Ledger, Rate, Stream, record},
    until,
};

pub(crate) struct Fleet {
    pub(crate) workers: Vec<Process>,
    pub(crate) ground: Ground,
    faults: Vec<Fault>,
    ledger: Mutex<Ledger>,
    stream: Option<Stream>,
    started: usize,
    violations: Vec<String>,
    directory: Directory,
}

/// Where the journals are; goes with the fleet.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Fleet {
    pub(crate) async fn on(ground: Ground) -> Self {
        Self::within(|_| ground).await
    }

    pub(crate) async fn on_a_file() -> Self {
        Self::within(|directory| Ground::File(directory.join("jobs.db"))).await
    }

    async fn within(ground: impl FnOnce(&PathBuf) -> Ground) -> Self {
        let name = format!("orchestrix-workers-{}-{:08x}", std::process::id(), rand::random::<u32>());
        let directory = Directory(env::temp_dir().join(name));
        fs::create_dir_all(&directory.0).unwrap();
        let ground = ground(&directory.0);
        // Makes the schema.
        drop(open(&ground.url()).await);
        Self {
            workers: Vec::new(),
            ground,
            faults: Vec::new(),
            ledger: Mutex::default(),
            stream: None,
            started: 0,
            violations: Vec::new(),
            directory,
        }
    }

    /// Starts one more worker, under a name of its own.
    pub(crate) fn add(&mut self, setup: Setup) -> &Process {
        let url = self.ground.url();
        self.add_by(&url, setup)
    }

    /// The same on a line of its own.
    pub(crate) fn add_behind(&mut self, setup: Setup) -> FaultProxy {
        let (address, database) = self.ground.place();
        let line = FaultProxy::start(address).unwrap();
        self.add_by(&format!("postgres://postgres@{}/{database}", line.address()), setup);
        line
    }

    fn add_by(&mut self, url: &str, setup: Setup) -> &Process {
        self.started += 1;
        let name = format!("worker{}", self.started);
        let journal = self.directory.0.join(&name);
        // SQLite has no use for one.
        let url = if url.starts_with("sqlite:") { url.to_owned() } else { format!("{url}?application_name={name}") };
        self.workers.push(Process::start(&name, &url, journal, setup));
        self.workers.last().expect("just put there")
    }

    /// Records jobs.
    pub(crate) async fn record(&self, jobs: Vec<(NewJob, &'static str)>) {
        record(&*open(&self.ground.url()).await, jobs, &self.ledger).await.unwrap();
    }

    /// Lets jobs come until the end.
    pub(crate) async fn stream(&mut self, rate: Rate) {
        self.stream = Some(Stream::start(open(&self.ground.url()).await, rate));
    }

    fn note(&mut self, blow: Blow, worker: Option<&str>, from: Time) {
        self.faults.push(Fault { blow, worker: worker.map(str::to_owned), from, until: now() });
    }

    /// Takes note of a broken promise.
    pub(crate) fn violated(&mut self, what: String) {
        eprintln!("violated: {what}");
        self.violations.push(what);
    }

    // ---- what can be done to them ----

    /// Kills a worker; it is gone from the list.
    pub(crate) fn kill(&mut self, worker: usize) {
        let mut worker = self.workers.remove(worker);
        let from = now();
        worker.kill();
        self.note(Blow::Killed, Some(&worker.name), from);
    }

    /// Stops a worker; says since when it is.
    pub(crate) fn stop(&self, worker: usize) -> Time {
        let since = now();
        self.workers[worker].signal("STOP");
        since
    }

    /// Lets a worker go on that was stopped.
    pub(crate) fn go_on(&mut self, worker: usize, since: Time) {
        self.workers[worker].signal("CONT");
        let name = self.workers[worker].name.clone();
        self.note(Blow::Stopped, Some(&name), since);
    }

    /// Asks a worker to end, and waits until it did; it is gone from the list.
    pub(crate) async fn terminate(&mut self, worker: usize) {
        let mut worker = self.workers.remove(worker);
        let from = now();
        worker.signal("TERM");
        let wrong = worker.ended().await;
        self.note(Blow::Terminated, Some(&worker.name), from);
        self.violations.extend(wrong);
    }

    /// Lets a worker's line pass on again that was frozen.
    pub(crate) fn thaw(&mut self, worker: usize, line: &FaultProxy, since: Time) {
        line.restore();
        let name = self.workers[worker].name.clone();
        self.note(Blow::Frozen, Some(&name), since);
    }

    /// Has the server end some connections of the workers, of some at random; answers how many.
    pub(crate) async fn disconnect(&mut self, connections: i64) -> i64 {
        let from = now();
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM (
                       SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'worker%' AND datname = current_database()
                       ORDER BY random() LIMIT $1) AS chosen";
        let ended = self.ground.connect().await.query_one(sql, &[&connections]).await.unwrap().get(0);
        self.note(Blow::Disconnected, None, from);
        ended
    }

    /// Kills the database, and starts it again after a while.
    pub(crate) fn kill_database(&mut self, away: Duration) {
        let from = now();
        let Ground::Own(server) = &mut self.ground else { panic!("a server of its own is needed") };
        tokio::task::block_in_place(|| {
            server.kill().unwrap();
            std::thread::sleep(away);
            server.restart().unwrap();
        });
        self.note(Blow::Away, None, from);
    }

    // ---- what comes of it ----

    /// Waits until these have come to their end; answers how many of them did so by the very same run.
    pub(crate) async fn ended(&self, runs: &[Run]) -> usize {
        let look = async || {
            let rows = self.ground.rows().await;
            let of_runs = |row: &Row| runs.iter().any(|run| run.job == row.job);
            let rows: Vec<Row> = rows.into_iter().filter(|row| row.finished.is_some() && of_runs(row)).collect();
            (rows.len() == runs.len()).then_some(rows)
        };
        let rows = until("what was begun ends", look).await;
        let by_it = |run: &&Run| rows.iter().any(|row| row.job == run.job && row.done_by == Some(run.lease));
        runs.iter().filter(by_it).count()
    }

    /// Waits until every job has come to its end.
    pub(crate) async fn all_finished(&self) {
        until("every job comes to its end", async || (self.ground.unfinished().await == 0).then_some(())).await;
    }

    /// Lets everything come to its end, and judges.
    pub(crate) async fn finish(mut self) -> Judgement {
        if let Some(stream) = self.stream.take() {
            let more = stream.finish().await;
            self.ledger.lock().unwrap().extend(more);
        }
        let closed = now();
        let all_finished = async {
            while self.ground.unfinished().await > 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(LIMIT, all_finished).await.is_err() {
            self.violated("not every job came to its end".into());
        }
        while !self.workers.is_empty() {
            self.terminate(0).await;
        }
        let rows = self.ground.rows().await;
        let journal = |n| {
            let name = format!("worker{n}");
            let written = Written::read(&self.directory.0.join(&name));
            (name, written)
        };
        let written: BTreeMap<String, Written> = (1..=self.started).map(journal).collect();
        let ledger = std::mem::take(&mut *self.ledger.lock().unwrap());
        let evidence = Evidence { ledger: &ledger, rows: &rows, written: &written, faults: &self.faults, closed };
        let mut judgement = evidence.judge();
        judgement.violations.append(&mut self.violations);
        judgement
    }
}
