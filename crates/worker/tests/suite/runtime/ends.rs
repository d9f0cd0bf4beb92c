//! How handlers end, and what becomes of their jobs.

use std::time::Duration;

use orchestrix_client::{ClientError, Job};
use orchestrix_core::{AttemptOutcome, JobState, Json, NewJob};
use orchestrix_worker::{Context, JobError, JobResult, ResultExt, RunBlocking};
use serde::{Deserialize, Serialize};

use super::{Task, brisk, enqueue, memory, reaches, record};

async fn ended(answer: fn(u64, &Context) -> JobResult<u64>, n: u64, state: JobState) -> orchestrix_core::Job {
    let client = memory();
    let worker = brisk(&client).handler(move |task: Task, ctx: Context| async move { answer(task.n, &ctx) });
    let worker = worker.start().unwrap();
    let job = enqueue(&client, n).await;
    let ended = reaches(&client, job.id(), state).await;
    let _ = worker.shutdown().await;
    ended
}

#[tokio::test]
async fn a_result_is_kept_and_comes_back_typed() {
    let client = memory();
    let worker = brisk(&client).handler(|task: Task, _| async move { Ok(task.n * 2) }).start().unwrap();
    let job = enqueue(&client, 21).await;
    assert_eq!(job.wait().await.unwrap(), 42);
    assert_eq!(record(&client, job.id()).await.attempts, 1);
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn any_error_is_tried_again_after_the_back_off() {
    let job = ended(|_, _| Ok("x".parse::<u64>()?), 1, JobState::Retrying).await;
    assert_eq!(job.attempts, 1);
    assert_eq!(job.attempt_log[0].outcome, AttemptOutcome::Failed);
    assert_eq!(job.attempt_log[0].error.as_deref(), Some("invalid digit found in string"));
}

#[tokio::test]
async fn a_job_that_failed_succeeds_the_next_time() {
    let answer = |n, ctx: &Context| match ctx.attempt() {
        1 => Err(JobError::retry_after(Duration::from_millis(20), "not yet")),
        2 => Err(JobError::retry_after(Duration::ZERO, "nor now")),
        _ => Ok(n),
    };
    let job = ended(answer, 7, JobState::Completed).await;
    assert_eq!(job.attempts, 3);
    assert_eq!(job.result.unwrap().as_str(), "7");
}

#[tokio::test]
async fn a_fatal_error_kills_at_once() {
    let job = ended(|_, _| "x".parse::<u64>().fatal(), 1, JobState::Dead).await;
    assert_eq!((job.attempts, job.reason.as_deref()), (1, Some("fatal")));
}

#[tokio::test]
async fn a_snoozed_job_comes_back_and_no_attempt_is_spent() {
    let job = ended(|_, _| Err(JobError::snooze(Duration::from_secs(60))), 1, JobState::Scheduled).await;
    assert_eq!(job.attempts, 0);
}

#[tokio::test]
async fn a_handler_may_cancel_its_job() {
    let job = ended(|_, _| Err(JobError::cancel()), 1, JobState::Cancelled).await;
    assert_eq!(job.reason.as_deref(), Some("requested"));
}

#[tokio::test]
async fn a_panic_is_a_failed_attempt_and_the_slot_works_on() {
    let client = memory();
    let worker = brisk(&client).concurrency(1).handler(|task: Task, _| async move {
        assert_ne!(task.n, 13, "unlucky");
        Ok(task.n)
    });
    let worker = worker.start().unwrap();
    let unlucky = enqueue(&client, 13).await;
    let lucky = enqueue(&client, 7).await;
    assert_eq!(lucky.wait().await.unwrap(), 7);
    let job = reaches(&client, unlucky.id(), JobState::Retrying).await;
    let error = job.attempt_log[0].error.clone().unwrap();
    assert!(error.contains("panicked") && error.contains("unlucky"), "{error}");
    assert_eq!(worker.stats().panicked, 1);
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_payload_that_does_not_fit_is_fatal_and_the_error_names_the_field() {
    let client = memory();
    let worker = brisk(&client).handler(|task: Task, _| async move { Ok(task.n) }).start().unwrap();
    let payload = Json::parse("payload", r#"{"n": "seven"}"#).unwrap();
    let job = NewJob { payload, ..NewJob::new(Task::TYPE.parse().unwrap()) };
    let id = client.store().enqueue_job(job).await.unwrap().id;
    let job = reaches(&client, id, JobState::Dead).await;
    let error = job.attempt_log[0].error.clone().unwrap();
    assert!(error.contains("`n`") && error.contains("invalid type: string \"seven\", expected u64"), "{error}");
    assert_eq!((job.attempts, job.reason.as_deref()), (1, Some("fatal")));
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_result_that_is_too_large_is_a_failure_that_says_so() {
    #[derive(Serialize, Deserialize)]
    struct Large;
    impl Job for Large {
        type Output = String;
        const TYPE: &'static str = "large";
    }
    let client = memory();
    let worker = brisk(&client).handler(|_: Large, _| async { Ok("x".repeat(2 * Json::MAX_BYTES)) }).start().unwrap();
    let job = client.enqueue(Large).await.unwrap();
    let Err(ClientError::Failed { error, .. }) = job.wait().await else { panic!("it cannot be kept") };
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
async fn blocking_handlers_run_on_threads_of_their_own_and_may_panic_there() {
    let client = memory();
    let worker = brisk(&client).blocking_job::<Compute>().start().unwrap();
    let job = client.enqueue(Compute { n: 1 }).await.unwrap();
    assert_eq!(job.wait().await.unwrap(), "orchestrix-blocking");
    let unlucky = client.enqueue(Compute { n: 13 }).await.unwrap();
    let job = reaches(&client, unlucky.id(), JobState::Retrying).await;
    assert!(job.attempt_log[0].error.clone().unwrap().contains("unlucky"));
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_worker_that_cannot_work_does_not_start() {
    let client = memory();
    let text = |builder: orchestrix_worker::WorkerBuilder| builder.start().unwrap_err().to_string();
    assert!(text(brisk(&client)).contains("needs at least one handler"));
    let twice = brisk(&client)
        .handler(|task: Task, _| async move { Ok(task.n) })
        .handler(|task: Task, _| async move { Ok(task.n) })
        .concurrency(0)
        .queue("no good");
    let text = text(twice);
    for part in ["task has two handlers", "concurrency", "queue"] {
        assert!(text.contains(part), "{text}");
    }
}
