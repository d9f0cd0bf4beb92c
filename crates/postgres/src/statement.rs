//! Every statement that the store sends, named after its file.
//!
//! The text is fixed at compile time, and a test prepares each statement against the migrated schema. Parameter types
//! are listed so that a statement can also be sent unnamed, in one round trip, behind a pooler that keeps no prepared
//! statements. Result columns are listed for statements that return many rows: [`column!`] resolves their positions at
//! compile time. All other rows are read by column name, which costs a search for each value.

use tokio_postgres::types::Type;

/// The text of a statement, the types of its parameters, and the names of its columns where they are listed.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
    pub(crate) types: &'static [Type],
    pub(crate) columns: &'static [&'static str],
}

impl Statement {
    /// The position of a listed column. Use [`column!`], which fails to compile if the column is not listed.
    pub(crate) const fn column(&self, name: &str) -> usize {
        let mut position = 0;
        while position < self.columns.len() {
            if is_same(self.columns[position].as_bytes(), name.as_bytes()) {
                return position;
            }
            position += 1;
        }
        panic!("the statement lists no column of this name")
    }
}

const fn is_same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut i = 0;
    while i < left.len() {
        if left[i] != right[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// The position of a column in the rows of a statement, resolved at compile time.
macro_rules! column {
    ($statement:ident, $column:ident) => {
        const { $crate::statement::$statement.column(stringify!($column)) }
    };
}
pub(crate) use column;

macro_rules! statements {
    ($($constant:ident = $file:literal ( $($type:ident),* ) $(-> [ $($column:ident),* ])?;)*) => {
        $(pub(crate) const $constant: Statement = Statement {
            name: $file,
            sql: include_str!(concat!("../queries/", $file, ".sql")),
            types: &[$(Type::$type),*],
            columns: &[$($(stringify!($column)),*)?],
        };)*

        /// All statements, for the test that prepares each.
        #[cfg(test)]
        pub(crate) const ALL: &[&Statement] = &[$(&$constant),*];
    };
}

/// The statements of a claim: the files that read ready batches and that pick jobs of them differ.
macro_rules! claim_statements {
    ($($constant:ident = $name:literal ($batches:literal, $pick:literal);)*) => {
        $(pub(crate) const $constant: Statement = Statement {
            name: $name,
            sql: concat!(
                include_str!(concat!("../queries/", $batches, ".sql")),
                include_str!("../queries/claim_jobs.sql"),
                include_str!(concat!("../queries/", $pick, ".sql")),
                include_str!("../queries/claim_leases.sql"),
            ),
            types: &[
                Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::INT2_ARRAY, Type::INT8_ARRAY, Type::TIMESTAMPTZ_ARRAY,
                Type::UUID_ARRAY, Type::INT4_ARRAY, Type::INT8_ARRAY, Type::INT8, Type::INT8, Type::INT8, Type::TEXT,
                Type::UUID, Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::INT4, Type::INT2,
            ],
            columns: &[
                "id", "lease_counter", "lease_ms", "timeout_ms", "lease_expires_at", "eligible_at", "rank", "attempts",
                "max_attempts", "has_parents", "queue", "job_type", "tenant", "correlation_id", "traceparent",
                "checkpoint", "payload", "payload_apart", "visit", "turn", "round", "allowance", "more", "batches",
                "listed", "locked", "skipped", "paused", "ended", "passed", "passed_at", "passed_id",
            ],
        };)*

        /// All statements of a claim, for the test that prepares each.
        #[cfg(test)]
        pub(crate) const CLAIMS: &[&Statement] = &[$(&$constant),*];

        /// Their files.
        #[cfg(test)]
        const CLAIM_FILES: &[&str] = &["claim_jobs", "claim_leases", $($batches, $pick),*];
    };
}

claim_statements! {
    CLAIM_JOBS_OF_ANY = "claim_jobs_of_any" ("claim_jobs_of_any", "claim_in_turns");
    CLAIM_JOBS_BY_TYPE = "claim_jobs_by_type" ("claim_jobs_by_type", "claim_in_turns");
    CLAIM_JOBS_BY_QUEUE = "claim_jobs_by_queue" ("claim_jobs_by_queue", "claim_in_turns");
    CLAIM_JOBS_BY_LANE = "claim_jobs_by_lane" ("claim_jobs_by_lane", "claim_in_turns");
    CLAIM_JOBS_SHARED = "claim_jobs_shared" ("claim_jobs_shared", "claim_in_turns");
    CLAIM_TURN_OF_ANY = "claim_turn_of_any" ("claim_jobs_of_any", "claim_in_one_turn");
    CLAIM_TURN_BY_TYPE = "claim_turn_by_type" ("claim_jobs_by_type", "claim_in_one_turn");
    CLAIM_TURN_BY_QUEUE = "claim_turn_by_queue" ("claim_jobs_by_queue", "claim_in_one_turn");
    CLAIM_TURN_BY_LANE = "claim_turn_by_lane" ("claim_jobs_by_lane", "claim_in_one_turn");
}

statements! {
    ABORT_OPERATION = "abort_operation" (UUID);
    ADVANCE_OPERATION = "advance_operation" (UUID, UUID, UUID, INT8, INT8, INT8, TEXT, TEXT);
    ADVANCE_SCHEDULES = "advance_schedules" (
        TEXT_ARRAY, TIMESTAMPTZ_ARRAY, TIMESTAMPTZ_ARRAY, TIMESTAMPTZ_ARRAY, TIMESTAMPTZ_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY
    );
    APPEND_LOGS = "append_logs" (UUID, INT4, UUID, TIMESTAMPTZ_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    AUDIT_ENTRY_TIME = "audit_entry_time" (INT8);
    BEGIN_AUDIT_ENTRY = "begin_audit_entry" (TEXT, TEXT, TEXT, TEXT, TEXT, TEXT);
    BEGIN_OPERATION = "begin_operation" (UUID, TEXT, INT2, TEXT, BOOL, TIMESTAMPTZ, TEXT, TEXT);
    CHURNING_TABLES = "churning_tables" (TEXT_ARRAY);
    CLAIMABLE_LANES = "claimable_lanes" (INT8);
    COMPLETE_JOBS = "complete_jobs" (UUID_ARRAY, INT4_ARRAY, UUID_ARRAY, TEXT_ARRAY);
    COUNT_RUNNING_OPERATIONS = "count_running_operations" (TEXT);
    CREATE_KEY = "create_key" (TEXT, BYTEA, TEXT, TEXT, TEXT, INT8, INT8, INT8, TIMESTAMPTZ);
    CREATE_SCHEDULE = "create_schedule" (TEXT, TEXT, BOOL, TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, TEXT);
    CURRENT_TIME = "current_time" ();
    DELETE_OCCURRENCES = "delete_occurrences" (TEXT, INT8);
    DELETE_OCCURRENCES_AT = "delete_occurrences_at" (TEXT, TIMESTAMPTZ_ARRAY);
    DELETE_SCHEDULE = "delete_schedule" (TEXT);
    DEPENDENCY_RESULTS = "dependency_results" (UUID_ARRAY);
    DIAGNOSE_CONNECTIONS = "diagnose_connections" ();
    DIAGNOSE_DEAD_JOBS = "diagnose_dead_jobs" (INT8);
    DIAGNOSE_PARTITIONS = "diagnose_partitions" ();
    DIAGNOSE_PRIVILEGES = "diagnose_privileges" (INT8);
    DIAGNOSE_SERVER = "diagnose_server" ();
    DIAGNOSE_SETTINGS = "diagnose_settings" (TEXT_ARRAY);
    DIAGNOSE_TABLES = "diagnose_tables" (INT8);
    DIAGNOSE_VACUUM_BLOCKERS = "diagnose_vacuum_blockers" (INT8);
    DIRECT_WORKER = "direct_worker" (TEXT, TEXT);
    ENQUEUE_JOBS = "enqueue_jobs" (
        UUID_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, INT2_ARRAY, TEXT_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY
    );
    ENQUEUE_PLAIN_JOBS = "enqueue_plain_jobs" (
        UUID_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, INT2_ARRAY, TEXT_ARRAY, UUID_ARRAY, INT4_ARRAY,
        INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, TEXT_ARRAY, INT8_ARRAY
    );
    EXPIRED_JOBS = "expired_jobs" (INT8);
    EXPIRED_LEASES = "expired_leases" (INT8);
    EXPIRED_PARTITIONS = "expired_partitions" (TEXT, INT8, INT8);
    EXTEND_LEASES = "extend_leases" (UUID_ARRAY, INT4_ARRAY, UUID_ARRAY) -> [
        id, lease_counter, lease_expires_at, cancel_requested, lease_secret, renewed
    ];
    EXTERNAL_PAYLOADS = "external_payloads" (UUID_ARRAY);
    FIND_ENDED_ATTEMPTS = "find_ended_attempts" (UUID_ARRAY, INT4_ARRAY, UUID_ARRAY);
    FIND_FINISHED_PARENTS = "find_finished_parents" (UUID_ARRAY, TEXT_ARRAY);
    FIND_IDEMPOTENCY_KEYS = "find_idempotency_keys" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    FIND_JOB_LIFECYCLE = "find_job_lifecycle" (UUID);
    FIND_KEY = "find_key" (TEXT);
    FIND_OCCURRENCES = "find_occurrences" (TEXT_ARRAY, TIMESTAMPTZ_ARRAY);
    FIND_OPERATION = "find_operation" (UUID);
    FIND_TENANT = "find_tenant" (TEXT);
    FIND_TURNS_BY_LANE = "find_turns_by_lane" (TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, INT8_ARRAY, INT8) -> [
        n, rank, ring, eligible_at, first_id
    ];
    FIND_TURNS_BY_QUEUE = "find_turns_by_queue" (TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, INT8_ARRAY, INT8) -> [
        n, rank, ring, eligible_at, first_id
    ];
    FIND_TURNS_BY_TYPE = "find_turns_by_type" (TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, INT8_ARRAY, INT8) -> [
        n, rank, ring, eligible_at, first_id
    ];
    FIND_TURNS_OF_ANY = "find_turns_of_any" (TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, INT8_ARRAY, INT8) -> [
        n, rank, ring, eligible_at, first_id
    ];
    FIND_SCHEDULE = "find_schedule" (TEXT, TEXT);
    FINISH_AUDIT_ENTRY = "finish_audit_entry" (INT8, TEXT);
    FOLD_DEPTHS = "fold_depths" (INT8);
    FORGET_NODES = "forget_nodes" (INT8, INT8);
    FORGET_SETTLED_PARENTS = "forget_settled_parents" (INT8);
    FORGET_WORKERS = "forget_workers" (INT8, INT8);
    GET_JOB = "get_job" (UUID);
    HAS_RETAINED_JOBS = "has_retained_jobs" (TEXT, INT8, INT8);
    HEARTBEAT_NODE = "heartbeat_node" (TEXT, TEXT, TEXT_ARRAY);
    HEARTBEAT_WORKER = "heartbeat_worker" (TEXT, INT4, BOOL, TEXT);
    INLINE_PAYLOADS = "inline_payloads" (TEXT, INT8);
    INSERT_DEPENDENCIES = "insert_dependencies" (UUID_ARRAY, UUID_ARRAY, BOOL_ARRAY);
    INSERT_OCCURRENCES = "insert_occurrences" (
        TEXT_ARRAY, TIMESTAMPTZ_ARRAY, TIMESTAMPTZ_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY,
        TIMESTAMPTZ_ARRAY
    );
    JOB_LOGS = "job_logs" (UUID, INT8, INT8);
    JOB_STATES = "job_states" (UUID_ARRAY);
    JOB_SUMMARIES = "job_summaries" (UUID_ARRAY);
    JOB_SUMMARY = "job_summary" (UUID);
    LEADER_TERM = "leader_term" ();
    LIMIT_LOCK_WAIT = "limit_lock_wait" (INT8);
    LIST_AUDIT_ENTRIES = "list_audit_entries" (TIMESTAMPTZ, INT8, TIMESTAMPTZ, INT8, TEXT, TEXT, TEXT, INT8);
    LIST_JOBS = "list_jobs" (
        UUID, INT8, TEXT_ARRAY, TEXT, TEXT, TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, INT8, TEXT_ARRAY, UUID
    );
    LIST_KEYS = "list_keys" (TEXT, INT8);
    LIST_LEASED_JOBS = "list_leased_jobs" (
        UUID, TEXT_ARRAY, TEXT, TEXT, TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, INT8, UUID
    );
    LIST_NODES = "list_nodes" (TEXT, INT8);
    LIST_OCCURRENCES = "list_occurrences" (TEXT, TIMESTAMPTZ, INT8, TEXT);
    LIST_OPERATIONS = "list_operations" (UUID, INT8);
    LIST_SCHEDULES = "list_schedules" (TEXT, INT8);
    LIST_TENANT_AUDIT_ENTRIES = "list_tenant_audit_entries" (
        TIMESTAMPTZ, INT8, TIMESTAMPTZ, INT8, TEXT, TEXT, TEXT, INT8, TEXT
    );
    LIST_TENANT_OPERATIONS = "list_tenant_operations" (UUID, INT8, TEXT);
    LIST_TENANT_SCHEDULES = "list_tenant_schedules" (TEXT, INT8, TEXT);
    LIST_TENANTS = "list_tenants" (TEXT, INT8);
    LIST_WAITING_JOBS = "list_waiting_jobs" (
        UUID, INT8, TEXT_ARRAY, TEXT, TEXT, TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, INT8, UUID
    );
    LIST_WORKERS = "list_workers" (TEXT, INT8);
    LOCK_DUE_SCHEDULES = "lock_due_schedules" (INT8, TEXT, INT8);
    LOCK_EPOCH = "lock_epoch" ();
    LOCK_FINISHED_JOBS = "lock_finished_jobs" (UUID_ARRAY);
    LOCK_FINISHED_JOBS_SKIP_LOCKED = "lock_finished_jobs_skip_locked" (UUID_ARRAY);
    LOCK_JOBS = "lock_jobs" (UUID_ARRAY);
    LOCK_JOBS_SKIP_LOCKED = "lock_jobs_skip_locked" (UUID_ARRAY);
    LOCK_OPERATION = "lock_operation" (UUID);
    LOCK_OPERATION_TABLE = "lock_operation_table" ();
    LOCK_PARENTS = "lock_parents" (UUID_ARRAY, TEXT_ARRAY);
    LOCK_RESUMING_QUEUE = "lock_resuming_queue" (TEXT);
    LOCK_SCHEDULE = "lock_schedule" (TEXT, TEXT);
    LOGS_AFTER = "logs_after" (UUID_ARRAY, INT8_ARRAY, INT8);
    NEXT_EXPIRY = "next_expiry" ();
    NEXT_FIRING = "next_firing" (TEXT);
    NEXT_LEASE_EXPIRY = "next_lease_expiry" ();
    NEXT_PROMOTION = "next_promotion" ();
    NEXT_SWEEP_TIMES = "next_sweep_times" (TEXT);
    NEXT_TIMEOUT = "next_timeout" ();
    NOTIFY = "notify" (TEXT);
    OLDEST_CLAIMABLE = "oldest_claimable" (TEXT, TEXT, INT8);
    OPEN_DEPENDENCIES = "open_dependencies" (INT8, UUID_ARRAY, INT8);
    OPEN_OPERATIONS = "open_operations" (INT8);
    OVERDUE_ATTEMPTS = "overdue_attempts" (INT8);
    PARK_BATCHES = "park_batches" (TEXT_ARRAY, INT8);
    PAUSE_QUEUE = "pause_queue" (TEXT, BOOL);
    PAUSE_SCHEDULE = "pause_schedule" (TEXT, TIMESTAMPTZ);
    PAUSED_QUEUES = "paused_queues" ();
    POSTPONE_SCHEDULES = "postpone_schedules" (TEXT_ARRAY, INT8, TEXT);
    PROMOTE_JOBS = "promote_jobs" (INT8);
    PRUNE_AUDIT = "prune_audit" (INT8, INT8);
    PRUNE_DEPENDENCIES = "prune_dependencies" (TEXT, INT8);
    PRUNE_JOBS = "prune_jobs" (INT8, INT8, INT8, INT8, INT8);
    PRUNE_LOGS = "prune_logs" (INT8, INT8);
    PRUNE_OCCURRENCES = "prune_occurrences" (INT8, INT8);
    PRUNE_OPERATIONS = "prune_operations" (INT8, INT8);
    PRUNE_READY = "prune_ready" (TEXT, TEXT, INT2, INT8, TIMESTAMPTZ, UUID, INT8);
    PRUNE_REDRIVEN = "prune_redriven" (INT8, INT8);
    QUEUE_DEPTH = "queue_depth" (TEXT);
    QUEUE_DEPTHS = "queue_depths" (TEXT, INT8);
    READ_ATTEMPTS = "read_attempts" (UUID_ARRAY, INT4_ARRAY, UUID_ARRAY);
    RECENT_CHANGES = "recent_changes" (
        TIMESTAMPTZ, INT8, TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, UUID, INT8, TIMESTAMPTZ, UUID, INT8
    ) -> [
        kind, id, state, job_type, queue, tenant, at, lease
    ];
    RECORD_PROGRESS = "record_progress" (UUID, INT4, UUID, TEXT, TEXT);
    REGISTER_WORKER = "register_worker" (TEXT, TEXT_ARRAY, TEXT_ARRAY, INT4, TEXT, INT8, INT8);
    RELEASE_HELD_JOB = "release_held_job" (UUID);
    REMEMBER_KEY_STATES = "remember_key_states" (TEXT, UUID, INT8);
    REMOVE_NODE = "remove_node" (TEXT);
    REMOVE_WORKER = "remove_worker" (TEXT, TEXT);
    RENEW_TERM = "renew_term" (TEXT, INT8, INT8);
    REPAIR_PARKED = "repair_parked" (INT8);
    REPRIORITIZE_JOB = "reprioritize_job" (UUID, INT2);
    REPRIORITIZE_JOBS = "reprioritize_jobs" (UUID_ARRAY, INT2);
    REQUEST_CANCEL = "request_cancel" (UUID);
    REQUEST_CANCEL_MANY = "request_cancel_many" (UUID_ARRAY);
    RESIGN_LEADERSHIP = "resign_leadership" (TEXT, INT8);
    RESTORE_LOCK_WAIT = "restore_lock_wait" (TEXT);
    RESTORE_READY = "restore_ready" (UUID, INT8);
    RETRY_JOBS = "retry_jobs" (UUID_ARRAY);
    REVOKE_KEY = "revoke_key" (TEXT);
    SET_TENANT = "set_tenant" (TEXT, INT4);
    SETTLE_JOBS = "settle_jobs" (
        UUID_ARRAY, INT4_ARRAY, UUID_ARRAY, TEXT_ARRAY, BOOL_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY,
        INT2_ARRAY, INT2_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY
    );
    SUMMARIZE_HISTORY = "summarize_history" ();
    TAKE_OVER_LEADERSHIP = "take_over_leadership" (TEXT, INT8);
    UNBLOCK_JOBS = "unblock_jobs" (UUID_ARRAY, UUID_ARRAY, BOOL_ARRAY);
    UNFINISHED_JOB_STATES = "unfinished_job_states" (UUID_ARRAY);
    UNFINISHED_JOB_SUMMARIES = "unfinished_job_summaries" (UUID_ARRAY);
    UNFINISHED_JOBS = "unfinished_jobs" (UUID_ARRAY);
    UNPARK_BATCHES = "unpark_batches" (TEXT, INT8);
    UPDATE_SCHEDULE = "update_schedule" (TEXT, TEXT, BOOL, TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, TEXT);
}

#[cfg(test)]
mod tests {
    use orchestrix_testkit::TestDatabase;
    use tokio_postgres::NoTls;

    use crate::{PostgresOptions, PostgresStore};

    #[tokio::test]
    async fn every_statement_prepares_with_its_listed_types_and_columns() {
        let database = TestDatabase::create("prepare").unwrap();
        let _store = PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap();
        let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        for statement in super::ALL.iter().chain(super::CLAIMS) {
            let prepared = client.prepare_typed(statement.sql, statement.types).await;
            let prepared =
                prepared.unwrap_or_else(|error| panic!("{}: {}", statement.name, crate::error::describe(&error)));
            assert_eq!(prepared.params(), statement.types, "{}", statement.name);
            if !statement.columns.is_empty() {
                let columns: Vec<&str> = prepared.columns().iter().map(|column| column.name()).collect();
                assert_eq!(columns, statement.columns, "{}", statement.name);
            }
        }
    }

    #[test]
    fn every_query_file_has_a_statement() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/queries");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let statements = super::ALL.iter().map(|statement| statement.name);
        let mut names: Vec<&str> = statements.chain(super::CLAIM_FILES.iter().copied()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(files, names);
    }
}
