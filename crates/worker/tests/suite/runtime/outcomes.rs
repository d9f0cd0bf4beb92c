//! How handlers end, and the state of their jobs afterwards.

use std::time::Duration;

use orchestrix_client::{ClientError, Job};
use orchestrix_core::{AttemptOutcome, JobState, Json, NewJob};
use orchestrix_worker::{Context, JobError, JobResult, ResultExt, RunBlocking};
use serde::{Deserialize, Serialize};

use super::{Task, enqueue, fast_worker, job_record, memory_client, wait_for_state};

/// Runs one job with `handler` and waits until it reaches `state`.
async fn run_to(handler: fn(u64, &Context) -> JobResult<u64>, n: u64, state: JobState) -> orchestrix_core::Job {
    let client = memory_client();
    let worker = fast_worker(&client).handler(move |task: Task, ctx: Context| async move { handler(task.n, &ctx) });
    let worker = worker.start().unwrap();
    let job = enqueue(&client, n).await;
    let ended = wait_for_state(&client, job.id(), state).await;
    let _ = worker.shutdown().await;
    ended
}

#[tokio::test]
async fn a_result_is_stored_and_returned_typed() {
    let client = memory_client();
    let worker = fast_worker(&client).handler(|task: Task, _| async move { Ok(task.n * 2) }).start().unwrap();
    let job = enqueue(&client, 21).await;
    assert_eq!(job.wait().await.unwrap(), 42);
    assert_eq!(job_record(&client, job.id()).await.attempts, 1);
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn any_error_makes_the_job_retry_after_its_back_off() {
    let job = run_to(|_, _| Ok("x".parse::<u64>()?), 1, JobState::Retrying).await;
    assert_eq!(job.attempts, 1);
    assert_eq!(job.attempt_log[0].outcome, AttemptOutcome::Failed);
    assert_eq!(job.attempt_log[0].error.as_deref(), Some("invalid digit found in string"));
}

#[tokio::test]
async fn a_failed_job_is_retried_until_it_succeeds() {
    let handler = |n, ctx: &Context| match ctx.attempt() {
        1 => Err(JobError::retry_after(Duration::from_millis(20), "not yet")),
        2 => Err(JobError::retry_after(Duration::ZERO, "nor now")),
        _ => Ok(n),
    };
    let job = run_to(handler, 7, JobState::Completed).await;
    assert_eq!(job.attempts, 3);
    assert_eq!(job.result.unwrap().as_str(), "7");
}

#[tokio::test]
async fn a_fatal_error_makes_the_job_dead_at_once() {
    let job = run_to(|_, _| "x".parse::<u64>().fatal(), 1, JobState::Dead).await;
    assert_eq!((job.attempts, job.reason.as_deref()), (1, Some("fatal")));
}

#[tokio::test]
async fn snoozing_costs_no_attempt() {
    let job = run_to(|_, _| Err(JobError::snooze(Duration::from_secs(60))), 1, JobState::Scheduled).await;
    assert_eq!(job.attempts, 0);
}

#[tokio::test]
async fn a_handler_can_cancel_its_job() {
    let job = run_to(|_, _| Err(JobError::cancel()), 1, JobState::Cancelled).await;
    assert_eq!(job.reason.as_deref(), Some("requested"));
}

#[tokio::test]
async fn a_panic_fails_the_attempt_and_the_slot_keeps_working() {
    let client = memory_client();
    let worker = fast_worker(&client).concurrency(1).handler(|task: Task, _| async move {
        assert_ne!(task.n, 13, "unlucky");
        Ok(task.n)
    });
    let worker = worker.start().unwrap();
    let unlucky = enqueue(&client, 13).await;
    let lucky = enqueue(&client, 7).await;
    assert_eq!(lucky.wait().await.unwrap(), 7);
    let job = wait_for_state(&client, unlucky.id(), JobState::Retrying).await;
    let error = job.attempt_log[0].error.clone().unwrap();
    assert!(error.contains("panicked") && error.contains("unlucky"), "{error}");
    assert_eq!(worker.stats().panicked, 1);
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn an_invalid_payload_is_fatal_and_the_error_names_the_field() {
    let client = memory_client();
    let worker = fast_worker(&client).handler(|task: Task, _| async move { Ok(task.n) }).start().unwrap();
    let payload = Json::parse("payload", r#"{"n": "seven"}"#).unwrap();
    let job = NewJob { payload, ..NewJob::new(Task::TYPE.parse().unwrap()) };
    let id = client.store().enqueue_job(job).await.unwrap().id;
    let job = wait_for_state(&client, id, JobState::Dead).await;
    let error = job.attempt_log[0].error.clone().unwrap();
    assert!(error.contains("`n`") && error.contains("invalid type: string \"seven\", expected u64"), "{error}");
    assert_eq!((job.attempts, job.reason.as_deref()), (1, Some("fatal")));
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_result_that_is_too_large_fails_the_job() {
    #[derive(Serialize, Deserialize)]
    struct Large;
    impl Job for Large {
        type Output = String;
        const TYPE: &'static str = "large";
    }
    let client = memory_client();
    let worker =
        fast_worker(&client).handler(|_: Large, _| async { Ok("x".repeat(2 * Json::MAX_BYTES)) }).start().unwrap();
    let job = client.enqueue(Large).await.unwrap();
    let Err(ClientError::Failed { error, .. }) = job.wait().await else { panic!("the oversized result was stored") };
    assert!(error.contains("result: is 2097154 bytes, over the limit"), "{error}");
    let _ = worker.shutdown().await;
}

#[derive(Serialize, Deserialize)]
struct Compute {
    n: u64,
}

impl Job for Compute {
    type Output = String;
    const TYPE: &'static str = "compute";
}

impl RunBlocking for Compute {
    fn run(self, ctx: Context) -> JobResult<String> {
        assert_ne!(self.n, 13, "unlucky");
        ctx.info("computing");
        Ok(std::thread::current().name().unwrap_or_default().to_owned())
    }
}

#[tokio::test]
async fn blocking_handlers_run_on_separate_threads_and_may_panic() {
    let client = memory_client();
    let worker = fast_worker(&client).blocking_job::<Compute>().start().unwrap();
    let job = client.enqueue(Compute { n: 1 }).await.unwrap();
    assert_eq!(job.wait().await.unwrap(), "orchestrix-blocking");
    let unlucky = client.enqueue(Compute { n: 13 }).await.unwrap();
    let job = wait_for_state(&client, unlucky.id(), JobState::Retrying).await;
    assert!(job.attempt_log[0].error.clone().unwrap().contains("unlucky"));
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_worker_with_invalid_settings_does_not_start() {
    let client = memory_client();
    let text = |builder: orchestrix_worker::WorkerBuilder| builder.start().unwrap_err().to_string();
    assert!(text(fast_worker(&client)).contains("needs at least one handler"));
    let twice = fast_worker(&client)
        .handler(|task: Task, _| async move { Ok(task.n) })
        .handler(|task: Task, _| async move { Ok(task.n) })
        .concurrency(0)
        .queue("no good");
    let text = text(twice);
    for part in ["task has two handlers", "concurrency", "queue"] {
        assert!(text.contains(part), "{text}");
    }
}
