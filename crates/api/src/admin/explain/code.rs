//! What stands in a job's way, or became of it, in words for programs.

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal,)+) => {
        /// What stands in a job's way, or became of it, in a word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum ReasonCode {
            $($(#[doc = $doc])+ $name,)+
        }

        impl ReasonCode {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The code as APIs spell it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

codes! {
    /// Recorded, and not released yet.
    Held = "held",
    /// Waits for other jobs.
    Blocked = "blocked",
    /// Waits for a time.
    Scheduled = "scheduled",
    /// Waits out its back-off.
    Retrying = "retrying",
    /// Claims from its queue are stopped.
    QueuePaused = "queue_paused",
    /// No worker lives.
    NoWorker = "no_worker",
    /// No living worker takes jobs from its queue.
    NoWorkerForQueue = "no_worker_for_queue",
    /// No living worker of its queue knows its type.
    NoWorkerForType = "no_worker_for_type",
    /// Those that would take it take nothing new.
    WorkersDraining = "workers_draining",
    /// Those that take it are busy.
    NoFreeSlot = "no_free_slot",
    /// Nobody leads, and it takes a leader to move it on.
    NoLeader = "no_leader",
    /// Nothing stands in its way.
    WaitingTurn = "waiting_turn",
    /// On its way to a worker.
    Dispatched = "dispatched",
    /// A worker has it.
    Running = "running",
    /// Its worker was asked to stop.
    CancelRequested = "cancel_requested",
    /// Its worker fell silent for too long.
    LeaseExpired = "lease_expired",
    /// It did its work.
    Completed = "completed",
    /// Dead: it has no attempt left.
    AttemptsExhausted = "attempts_exhausted",
    /// Dead: its worker said that no other attempt would help.
    Failed = "failed",
    /// Dead: it took too many workers down.
    CrashLoop = "crash_loop",
    /// Somebody cancelled it.
    Cancelled = "cancelled",
    /// It did not start in time.
    Expired = "expired",
    /// A job that it depends on did not do its work.
    DependencyFailed = "dependency_failed",
}
