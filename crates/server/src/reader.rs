//! Looks at single jobs that come at the same time share one look at the store.
//!
//! An id joins whatever look is gathering. While looks are under way the next one gathers, so that they grow with the load and a
//! lone reader waits for nobody. Each look begins after the ids that it is about were asked for: what it shows is never older
//! than the question.

use std::{collections::HashMap, sync::Arc};

use orchestrix_core::JobId;
use orchestrix_store::{JobSummary, Result, Store, StoreError};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// The most jobs of one look.
const MOST: usize = 500;
/// Looks under way at once.
const UNDER_WAY: usize = 2;

type Asked = (JobId, oneshot::Sender<Result<Option<JobSummary>>>);

/// Reads single jobs.
pub(crate) struct Reader(mpsc::Sender<Asked>);

impl Reader {
    /// Ends when it is dropped.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let (sender, asked) = mpsc::channel(4 * MOST);
        tokio::spawn(gather(store, asked));
        Self(sender)
    }

    /// One that nobody answers.
    #[cfg(test)]
    pub(crate) fn away() -> Self {
        Self(mpsc::channel(1).0)
    }

    /// The job as it stands.
    pub(crate) async fn find(&self, id: JobId) -> Result<JobSummary> {
        let ended = || StoreError::Unavailable("the server ends".into());
        let (answer, answered) = oneshot::channel();
        self.0.send((id, answer)).await.map_err(|_| ended())?;
        answered.await.map_err(|_| ended())??.ok_or(StoreError::JobNotFound(id))
    }
}

async fn gather(store: Arc<dyn Store>, mut asked: mpsc::Receiver<Asked>) {
    let places = Arc::new(Semaphore::new(UNDER_WAY));
    let mut some = Vec::with_capacity(MOST);
    // Whoever asks while all places are taken joins the next look.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        if asked.recv_many(&mut some, MOST).await == 0 {
            return;
        }
        let store = Arc::clone(&store);
        let some = std::mem::replace(&mut some, Vec::with_capacity(MOST));
        tokio::spawn(async move {
            look(&*store, some).await;
            drop(place);
        });
    }
}

async fn look(store: &dyn Store, asked: Vec<Asked>) {
    let mut ids: Vec<JobId> = asked.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    match store.summaries(&ids).await {
        Ok(found) => {
            let found: HashMap<JobId, JobSummary> = found.into_iter().map(|job| (job.id, job)).collect();
            for (id, answer) in asked {
                // Whoever is gone needs no answer.
                let _ = answer.send(Ok(found.get(&id).cloned()));
            }
        }
        Err(error) => {
            for (_, answer) in asked {
                let _ = answer.send(Err(error.alike()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::{JobType, NewJob, Timestamp};
    use orchestrix_store::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn each_is_answered_about_its_own_job_however_many_ask() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let reader = Arc::new(Reader::new(Arc::clone(&store)));
        let mut asking = Vec::new();
        for i in 0..3 * MOST {
            let kind = JobType::new(format!("t{i}")).unwrap();
            let id = store.enqueue(NewJob::new(kind.clone())).await.unwrap().id;
            // Every job by two, and between them one that nobody knows.
            for _ in 0..2 {
                let (reader, kind) = (Arc::clone(&reader), kind.clone());
                asking.push(tokio::spawn(async move {
                    let job = reader.find(id).await.unwrap();
                    assert_eq!((job.id, job.job_type), (id, kind));
                }));
            }
            let reader = Arc::clone(&reader);
            asking.push(tokio::spawn(async move {
                let unknown = JobId::new(Timestamp::UNIX_EPOCH, [i as u8; 10]);
                assert!(matches!(reader.find(unknown).await, Err(StoreError::JobNotFound(id)) if id == unknown));
            }));
        }
        for one in asking {
            one.await.unwrap();
        }
    }
}
