//! A server and a coordinator on a database of the test.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use orchestrix_client::{Client, Job, Request};
use orchestrix_coordinator::{Coordinator, CoordinatorOptions};
use orchestrix_core::{Job as Record, JobId, JobState, NodeName, RetryPolicy};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_server::{App, ServerOptions, serve};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::{NodeInfo, Store};
use orchestrix_testkit::TestDatabase;
use orchestrix_worker::{HttpOptions, HttpSource, Worker, WorkerBuilder};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

/// The longest wait of any test.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(40);
/// Retries almost at once.
pub(crate) const FAST_RETRY: RetryPolicy =
    RetryPolicy { base: Duration::from_millis(10), multiplier: 1.0, max: Duration::from_secs(1), jitter: 0.0 };

pub(crate) struct TestCluster {
    pub(crate) client: Client,
    pub(crate) address: SocketAddr,
    server: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    coordinator: Option<Coordinator>,
    folder: Option<PathBuf>,
    _database: Option<TestDatabase>,
}

impl TestCluster {
    pub(crate) async fn sqlite() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("orchestrix-server-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let store = SqliteStore::open(SqliteOptions::new(folder.join("jobs.db"))).await.unwrap();
        Self::with_store(Arc::new(store), Some(folder), None).await
    }

    pub(crate) async fn postgres() -> Self {
        let database = TestDatabase::create("server").unwrap();
        let store = PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap();
        Self::with_store(Arc::new(store), None, Some(database)).await
    }

    async fn with_store(store: Arc<dyn Store>, folder: Option<PathBuf>, database: Option<TestDatabase>) -> Self {
        let name = NodeName::new("leader").unwrap();
        let node = NodeInfo { name, address: None, roles: vec!["coordinator".into()] };
        let coordinator = Coordinator::start(Arc::clone(&store), CoordinatorOptions::new(node)).unwrap();
        let mut cluster = Self {
            client: Client::shared(store),
            address: ([127, 0, 0, 1], 0).into(),
            server: None,
            coordinator: Some(coordinator),
            folder,
            _database: database,
        };
        cluster.start_server().await;
        cluster
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.client.store()
    }

    /// Starts the server, on its previous address after a restart.
    pub(crate) async fn start_server(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let app = App::new(Arc::clone(self.store()), ServerOptions::default());
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn(async move {
            serve(app, listener, async { drop(stopped.await) }).await.unwrap();
        });
        self.server = Some((stop, server));
    }

    /// Stops the server.
    pub(crate) async fn stop_server(&mut self) {
        let (stop, server) = self.server.take().expect("the server is running");
        stop.send(()).unwrap();
        tokio::time::timeout(TIMEOUT, server).await.expect("the server stops").unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A remote worker with a short heartbeat interval.
    pub(crate) fn worker(&self) -> WorkerBuilder {
        worker(self.url())
    }

    pub(crate) async fn enqueue<J: Job>(&self, request: impl Into<Request<J>>) -> JobId {
        self.client.enqueue(request).await.unwrap().id()
    }

    pub(crate) async fn job(&self, id: JobId) -> Record {
        self.store().job(id).await.unwrap().unwrap()
    }

    /// Waits until the job is in this state.
    pub(crate) async fn wait_for_state(&self, id: JobId, state: JobState) -> Record {
        let reached = tokio::time::timeout(TIMEOUT, async {
            loop {
                let job = self.job(id).await;
                if job.state == state {
                    return job;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        match reached.await {
            Ok(job) => job,
            Err(_) => panic!("the job is not {state}: {:?}", self.job(id).await),
        }
    }

    pub(crate) async fn shutdown(mut self) {
        if let Some(coordinator) = self.coordinator.take() {
            coordinator.shutdown().await;
        }
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // A leftover is in the system's directory for temporary files.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

pub(crate) fn worker(server: String) -> WorkerBuilder {
    let source = HttpSource::new(HttpOptions::new(server)).unwrap();
    Worker::with_source(Arc::new(source))
        .name("remote")
        .heartbeat_interval(Duration::from_millis(50))
        .poll_interval(Duration::from_secs(1))
        .cancel_grace(Duration::from_millis(200))
}

/// Waits until `condition` holds.
pub(crate) async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let reached = tokio::time::timeout(TIMEOUT, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(reached.await.is_ok(), "timed out: {what}");
}

/// Runs each test on SQLite and on PostgreSQL.
macro_rules! on_both_databases {
    ($($test:ident)+) => {
        $(mod $test {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$test($crate::remote_worker::test_cluster::TestCluster::sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$test($crate::remote_worker::test_cluster::TestCluster::postgres().await).await;
            }
        })+
    };
}
pub(crate) use on_both_databases;
