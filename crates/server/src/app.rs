//! The state that all requests share.

use std::sync::{Arc, OnceLock};

use orchestrix_store::Store;
use tokio::sync::{Semaphore, watch};

use crate::{
    Auth, ServerOptions,
    admission::AdmissionControl,
    auth::{authenticator::Authenticator, principal::Principal},
    body::BodyReader,
    lease_hub::LongPollHub,
    live::{ChangeFeed, SubscriptionQuota},
    openapi::Document,
    reader::JobReader,
    readiness::Readiness,
    watcher::StatusWatcher,
    workers::RegistrationCache,
};

/// The server without its socket. Its background tasks end when it is dropped.
pub struct App {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: ServerOptions,
    pub(crate) body_reader: BodyReader,
    pub(crate) admission: AdmissionControl,
    pub(crate) authenticator: Arc<Authenticator>,
    /// The caller of requests that need no key.
    pub(crate) keyless_principal: Principal,
    pub(crate) reader: JobReader,
    pub(crate) readiness: Readiness,
    pub(crate) watcher: StatusWatcher,
    pub(crate) change_feed: ChangeFeed,
    pub(crate) lease_hub: LongPollHub,
    pub(crate) registrations: RegistrationCache,
    /// The body of `GET /openapi.json`. Set when the router is built.
    pub(crate) document: OnceLock<Document>,
    /// One permit per long poll that may still begin.
    pub(crate) long_polls: Semaphore,
    pub(crate) subscription_quota: Arc<SubscriptionQuota>,
    shutdown: watch::Sender<bool>,
}

impl App {
    /// Creates the state of a server on this store, and starts its background tasks.
    pub fn new(store: Arc<dyn Store>, options: ServerOptions) -> Arc<Self> {
        let authenticator = Arc::new(Authenticator::new(Arc::clone(&store)));
        Arc::new(Self {
            body_reader: BodyReader::new(&options),
            admission: AdmissionControl::new(&options),
            keyless_principal: Principal::unrestricted(match &options.auth {
                Auth::InProcess(name) => name.clone(),
                Auth::Disabled | Auth::Keys => "anybody".into(),
            }),
            reader: JobReader::new(Arc::clone(&store)),
            readiness: Readiness::new(Arc::clone(&store)),
            watcher: StatusWatcher::new(Arc::clone(&store), options.watch_interval),
            change_feed: ChangeFeed::new(Arc::clone(&store), options.watch_interval, options.subscription_buffer),
            lease_hub: LongPollHub::new(Arc::clone(&store), options.poll_interval),
            registrations: RegistrationCache::default(),
            document: OnceLock::new(),
            long_polls: Semaphore::new(options.max_long_polls),
            subscription_quota: SubscriptionQuota::new(Arc::clone(&authenticator), &options),
            authenticator,
            shutdown: watch::Sender::new(false),
            store,
            options,
        })
    }

    /// Begins the shutdown: answers all long polls at once, and ends all subscriptions, from now on.
    pub fn shut_down(&self) {
        self.shutdown.send_replace(true);
    }

    /// Waits until the shutdown begins.
    pub(crate) async fn shutdown_requested(&self) {
        let _ = self.shutdown.subscribe().wait_for(|shutdown| *shutdown).await;
    }
}
