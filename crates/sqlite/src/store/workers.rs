//! [`WorkerStore`] on SQLite.

use async_trait::async_trait;
use orchestrix_core::{Instance, WorkerName};
use orchestrix_store::{Directive, Page, PageRequest, Presence, Result, WorkerInfo, WorkerStatus, WorkerStore};

use super::SqliteStore;
use crate::worker;

#[async_trait]
impl WorkerStore for SqliteStore {
    async fn register_worker(&self, worker: &WorkerInfo) -> Result<Directive> {
        let worker = worker.clone();
        self.database().write(move |transaction| transaction.register_worker(&worker)).await
    }

    async fn heartbeat_worker(&self, name: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
        let name = name.clone();
        self.database().write(move |transaction| transaction.heartbeat_worker(&name, &presence)).await
    }

    async fn remove_worker(&self, name: &WorkerName, instance: Option<&Instance>) -> Result<bool> {
        let (name, instance) = (name.clone(), instance.cloned());
        self.database().write(move |transaction| transaction.remove_worker(&name, instance.as_ref())).await
    }

    async fn direct_worker(&self, name: &WorkerName, directive: Directive) -> Result<bool> {
        let name = name.clone();
        self.database().write(move |transaction| transaction.direct_worker(&name, directive)).await
    }

    async fn list_workers(&self, page: &PageRequest<WorkerName>) -> Result<Page<WorkerStatus, WorkerName>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| worker::list(&session, &page)).await
    }
}
