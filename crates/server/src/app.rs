//! What all requests share.

use std::sync::{Arc, OnceLock};

use orchestrix_store::Store;
use tokio::sync::{Semaphore, watch};

use crate::{
    Auth, ServerOptions,
    auth::{caller::Caller, keys::Keys},
    body::Inlet,
    desk::Desk,
    gate::Gate,
    live::{Feed, Places},
    openapi::Document,
    reader::Reader,
    readiness::Readiness,
    watcher::Watcher,
    workers::RegistrationCache,
};

/// A server without its socket. Tasks that it has in the background end with it.
pub struct App {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: ServerOptions,
    pub(crate) inlet: Inlet,
    pub(crate) gate: Gate,
    pub(crate) keys: Arc<Keys>,
    /// Who asks where nobody shows a key.
    pub(crate) host: Caller,
    pub(crate) reader: Reader,
    pub(crate) readiness: Readiness,
    pub(crate) watcher: Watcher,
    pub(crate) feed: Feed,
    pub(crate) desk: Desk,
    pub(crate) registrations: RegistrationCache,
    /// What `GET /openapi.json` answers, once there are routes.
    pub(crate) document: OnceLock<Document>,
    /// Long polls that may still begin.
    pub(crate) waits: Semaphore,
    /// Who may follow jobs.
    pub(crate) live: Arc<Places>,
    /// Whether long polls should come to an end.
    closing: watch::Sender<bool>,
}

impl App {
    /// A server of this store.
    pub fn new(store: Arc<dyn Store>, options: ServerOptions) -> Arc<Self> {
        let keys = Arc::new(Keys::new(Arc::clone(&store)));
        Arc::new(Self {
            inlet: Inlet::new(&options),
            gate: Gate::new(&options),
            host: Caller::anything(match &options.auth {
                Auth::Own(name) => name.clone(),
                Auth::Anybody | Auth::Keys => "anybody".into(),
            }),
            reader: Reader::new(Arc::clone(&store)),
            readiness: Readiness::new(Arc::clone(&store)),
            watcher: Watcher::new(Arc::clone(&store), options.watch_interval),
            feed: Feed::new(Arc::clone(&store), options.watch_interval, options.live_buffer),
            desk: Desk::new(Arc::clone(&store), options.poll_interval),
            registrations: RegistrationCache::default(),
            document: OnceLock::new(),
            waits: Semaphore::new(options.waits),
            live: Places::new(Arc::clone(&keys), &options),
            keys,
            closing: watch::Sender::new(false),
            store,
            options,
        })
    }

    /// Answers every long poll at once, and ends what follows jobs, from now on.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Waits until the server is told to stop.
    pub(crate) async fn closed(&self) {
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }
}
