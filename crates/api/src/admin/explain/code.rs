//! Stable codes of the reasons.

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal,)+) => {
        /// The stable code of a reason.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum ReasonCode {
            $($(#[doc = $doc])+ $name,)+
        }

        impl ReasonCode {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The code as the API spells it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

codes! {
    /// The job is held until it is released.
    Held = "held",
    /// The job waits for dependencies.
    Blocked = "blocked",
    /// The job waits for its start time.
    Scheduled = "scheduled",
    /// The job waits for its backoff to pass.
    Retrying = "retrying",
    /// The queue is paused.
    QueuePaused = "queue_paused",
    /// No worker is live.
    NoWorker = "no_worker",
    /// No live worker serves the queue.
    NoWorkerForQueue = "no_worker_for_queue",
    /// No live worker of the queue handles the job type.
    NoWorkerForType = "no_worker_for_type",
    /// All workers that serve the job are draining.
    WorkersDraining = "workers_draining",
    /// All workers that serve the job are busy.
    NoFreeSlot = "no_free_slot",
    /// The job needs a leader to proceed, and there is none.
    NoLeader = "no_leader",
    /// The job is claimable and waits for a free slot.
    WaitingTurn = "waiting_turn",
    /// The job is leased and has not started.
    Dispatched = "dispatched",
    /// A worker runs the job.
    Running = "running",
    /// A cancellation was requested.
    CancelRequested = "cancel_requested",
    /// The lease expired and was not extended.
    LeaseExpired = "lease_expired",
    /// The job completed.
    Completed = "completed",
    /// The job died: no attempts are left.
    AttemptsExhausted = "attempts_exhausted",
    /// The job died: its error is not retryable.
    Failed = "failed",
    /// The job died: too many workers were lost while running it.
    CrashLoop = "crash_loop",
    /// The job was cancelled on request.
    Cancelled = "cancelled",
    /// The job did not start before its expiry time.
    Expired = "expired",
    /// A dependency did not complete.
    DependencyFailed = "dependency_failed",
}
