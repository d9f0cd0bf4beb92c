//! Middleware around handlers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context as Poller, Poll},
};

use orchestrix_core::{JobState, Json};
use orchestrix_worker::{HandlerService, JobCall, JobError};
use tower::{Layer, Service};

use super::{Task, enqueue, fast_worker, memory_client, wait_for_state};

#[derive(Clone)]
struct Count(Arc<AtomicUsize>);

#[derive(Clone)]
struct Counted<S>(S, Arc<AtomicUsize>);

impl<S> Layer<S> for Count {
    type Service = Counted<S>;
    fn layer(&self, inner: S) -> Counted<S> {
        Counted(inner, Arc::clone(&self.0))
    }
}

impl<S: Service<JobCall, Response = Option<Json>, Error = JobError>> Service<JobCall> for Counted<S> {
    type Response = Option<Json>;
    type Error = JobError;
    type Future = S::Future;
    fn poll_ready(&mut self, poller: &mut Poller<'_>) -> Poll<Result<(), JobError>> {
        self.0.poll_ready(poller)
    }
    fn call(&mut self, call: JobCall) -> S::Future {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.call(call)
    }
}

#[tokio::test]
async fn layers_see_every_call_and_can_respond_instead_of_the_handler() {
    let client = memory_client();
    let (inner, outer) = (Count(Arc::default()), Count(Arc::default()));
    let refuse_seven = tower::layer::layer_fn(|inner| {
        tower::service_fn(move |call: JobCall| {
            let inner: HandlerService = Clone::clone(&inner);
            async move {
                if call.payload.as_str().contains('7') {
                    return Err(JobError::fatal("not seven"));
                }
                tower::ServiceExt::oneshot(inner, call).await
            }
        })
    });
    let worker = fast_worker(&client)
        .handler(|task: Task, _| async move {
            assert_ne!(task.n, 13, "unlucky");
            Ok(task.n)
        })
        .layer(inner.clone())
        .layer(refuse_seven)
        .layer(outer.clone())
        .start()
        .unwrap();
    assert_eq!(enqueue(&client, 1).await.wait().await.unwrap(), 1);
    let seven = enqueue(&client, 7).await;
    wait_for_state(&client, seven.id(), JobState::Dead).await;
    // A panic unwinds through the layers and is caught outside them.
    let unlucky = enqueue(&client, 13).await;
    wait_for_state(&client, unlucky.id(), JobState::Retrying).await;
    assert_eq!((inner.0.load(Ordering::SeqCst), outer.0.load(Ordering::SeqCst)), (2, 3));
    let _ = worker.shutdown().await;
}
