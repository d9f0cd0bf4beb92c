//! Every statement this store sends, by the name of its file.
//!
//! The text is fixed at compile time; a test PREPAREs each against the migrated schema. Parameter types are listed so
//! that a statement can also be sent unnamed, in one round trip, where a pooler keeps no prepared ones.

use tokio_postgres::types::Type;

/// The text of a statement and the types of its parameters.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
    pub(crate) types: &'static [Type],
}

macro_rules! statements {
    ($($constant:ident = $file:literal ( $($type:ident),* );)*) => {
        $(pub(crate) const $constant: Statement = Statement {
            name: $file,
            sql: include_str!(concat!("../queries/", $file, ".sql")),
            types: &[$(Type::$type),*],
        };)*

        /// All of them, for the test that prepares each.
        #[cfg(test)]
        pub(crate) const ALL: &[&Statement] = &[$(&$constant),*];
    };
}

statements! {
    ABORT_OPERATION = "abort_operation" (UUID);
    ADVANCE_OPERATION = "advance_operation" (UUID, UUID, UUID, INT8, INT8, INT8, TEXT, TEXT);
    AGENDA = "agenda" (TEXT);
    API_KEYS = "api_keys" (TEXT, INT8);
    APPEND_LOGS = "append_logs" (UUID, INT4, UUID, TIMESTAMPTZ_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    AUDIT = "audit" (TIMESTAMPTZ, INT8, TIMESTAMPTZ, INT8, TEXT, TEXT, TEXT, INT8);
    AUDIT_PLACE = "audit_place" (INT8);
    BEGIN_AUDIT = "begin_audit" (TEXT, TEXT, TEXT, TEXT, TEXT, TEXT);
    BEGIN_OPERATION = "begin_operation" (UUID, TEXT, INT2, TEXT, BOOL, TIMESTAMPTZ, TEXT, TEXT);
    BOUND_LOCKS = "bound_locks" (INT8);
    CLAIM = "claim" (TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, TIMESTAMPTZ_ARRAY, UUID_ARRAY, INT4_ARRAY, TEXT, UUID);
    COMPLETE = "complete" (UUID_ARRAY, INT4_ARRAY, UUID_ARRAY, TEXT_ARRAY);
    COUNT_OPERATIONS = "count_operations" (TEXT);
    CREATE_KEY = "create_key" (TEXT, BYTEA, TEXT, TEXT, TEXT, INT8, INT8, INT8, TIMESTAMPTZ);
    CREATE_SCHEDULE = "create_schedule" (TEXT, TEXT, BOOL, TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, TEXT);
    DELETE_LEDGER = "delete_ledger" (TEXT, INT8);
    DELETE_SCHEDULE = "delete_schedule" (TEXT);
    DEPENDENCY_RESULTS = "dependency_results" (UUID_ARRAY);
    DEPTH = "depth" (TEXT);
    DEPTHS = "depths" (TEXT, INT8);
    DIAGNOSE_CONNECTIONS = "diagnose_connections" ();
    DIAGNOSE_DEAD = "diagnose_dead" (INT8);
    DIAGNOSE_HOLDERS = "diagnose_holders" (INT8);
    DIAGNOSE_PARTITIONS = "diagnose_partitions" ();
    DIAGNOSE_PRIVILEGES = "diagnose_privileges" (INT8);
    DIAGNOSE_SERVER = "diagnose_server" ();
    DIAGNOSE_SETTINGS = "diagnose_settings" (TEXT_ARRAY);
    DIAGNOSE_TABLES = "diagnose_tables" (INT8);
    DIRECT_WORKER = "direct_worker" (TEXT, TEXT);
    DUE_SCHEDULES = "due_schedules" (INT8, TEXT, INT8);
    EDIT_SCHEDULE = "edit_schedule" (TEXT, TEXT, BOOL, TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, TEXT);
    END_AUDIT = "end_audit" (INT8, TEXT);
    EXAMINE = "examine" (UUID_ARRAY, INT4_ARRAY, UUID_ARRAY);
    EXPIRED = "expired" (INT8);
    FENCE = "fence" ();
    FIND_API_KEY = "find_api_key" (TEXT);
    FIND_FINISHED = "find_finished" (UUID_ARRAY, TEXT_ARRAY);
    FIND_JOB = "find_job" (UUID);
    FIND_KEYS = "find_keys" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    FIND_OPERATION = "find_operation" (UUID);
    FIND_SCHEDULE = "find_schedule" (TEXT);
    FOLD = "fold" (INT8);
    FORGET_NODES = "forget_nodes" (INT8, INT8);
    FORGET_SETTLED = "forget_settled" (INT8);
    FORGET_WORKERS = "forget_workers" (INT8, INT8);
    GET = "get" (UUID);
    HEARTBEAT = "heartbeat" (UUID_ARRAY, INT4_ARRAY, UUID_ARRAY);
    HEARTBEAT_NODE = "heartbeat_node" (TEXT, TEXT, TEXT_ARRAY);
    HEARTBEAT_WORKER = "heartbeat_worker" (TEXT, INT4, BOOL, TEXT);
    HOLD_FINISHED = "hold_finished" (UUID_ARRAY);
    HOLD_FREE_FINISHED = "hold_free_finished" (UUID_ARRAY);
    HOLD_FREE_JOBS = "hold_free_jobs" (UUID_ARRAY);
    HOLD_JOBS = "hold_jobs" (UUID_ARRAY);
    KEEP_PAYLOADS = "keep_payloads" (TEXT, INT8);
    KNOWN_OCCURRENCES = "known_occurrences" (TEXT_ARRAY, TIMESTAMPTZ_ARRAY);
    LANES = "lanes" (TEXT_ARRAY, TEXT_ARRAY, INT8);
    LIST = "list" (UUID, INT8, TEXT_ARRAY, TEXT, TEXT, TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, INT8, TEXT_ARRAY, UUID);
    LIST_LEASED = "list_leased" (UUID, TEXT_ARRAY, TEXT, TEXT, TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, INT8, UUID);
    LIST_WAITING = "list_waiting" (UUID, INT8, TEXT_ARRAY, TEXT, TEXT, TEXT, TEXT, TEXT, TIMESTAMPTZ, TIMESTAMPTZ, INT8, UUID);
    LOCK_OPERATION = "lock_operation" (UUID);
    LOCK_OPERATIONS = "lock_operations" ();
    LOCK_PARENTS = "lock_parents" (UUID_ARRAY, TEXT_ARRAY);
    LOCK_SCHEDULE = "lock_schedule" (TEXT);
    LOGS = "logs" (UUID, INT8, INT8);
    MOVE_SCHEDULES = "move_schedules" (
        TEXT_ARRAY, TIMESTAMPTZ_ARRAY, TIMESTAMPTZ_ARRAY, TIMESTAMPTZ_ARRAY, TIMESTAMPTZ_ARRAY, TEXT_ARRAY, TEXT_ARRAY
    );
    NEXT_DUE = "next_due" ();
    NEXT_EXPIRY = "next_expiry" ();
    NEXT_FIRE = "next_fire" (TEXT);
    NEXT_LEASE = "next_lease" ();
    NEXT_TIMEOUT = "next_timeout" ();
    NODES = "nodes" (TEXT, INT8);
    NOTIFY = "notify" (TEXT);
    OCCURRENCES = "occurrences" (TEXT, TIMESTAMPTZ, INT8, TEXT);
    OLDEST = "oldest" (TEXT, TEXT, INT8);
    OPEN_EDGES = "open_edges" (INT8, UUID_ARRAY);
    OPEN_OPERATIONS = "open_operations" (INT8);
    OPEN_STATES = "open_states" (UUID_ARRAY);
    OPEN_SUMMARIES = "open_summaries" (UUID_ARRAY);
    OPERATIONS = "operations" (UUID, INT8);
    OVERDUE_ATTEMPTS = "overdue_attempts" (INT8);
    OVERDUE_LEASES = "overdue_leases" (INT8);
    PARTITIONS = "partitions" (TEXT, INT8, INT8);
    PAUSED_QUEUES = "paused_queues" ();
    PAUSE_QUEUE = "pause_queue" (TEXT, BOOL);
    PAUSE_SCHEDULE = "pause_schedule" (TEXT, TIMESTAMPTZ);
    PAYLOADS = "payloads" (UUID_ARRAY);
    POSTPONE_SCHEDULES = "postpone_schedules" (TEXT_ARRAY, INT8, TEXT);
    PROGRESS = "progress" (UUID, INT4, UUID, TEXT, TEXT);
    PROMOTE = "promote" (INT8);
    PRUNE_AUDIT = "prune_audit" (INT8, INT8);
    PRUNE_DEPENDENCIES = "prune_dependencies" (TEXT, INT8);
    PRUNE_LOGS = "prune_logs" (INT8, INT8);
    PRUNE_OCCURRENCES = "prune_occurrences" (INT8, INT8);
    PRUNE_OPERATIONS = "prune_operations" (INT8, INT8);
    PRUNE_REVIVED = "prune_revived" (INT8, INT8);
    PRUNE_ROWS = "prune_rows" (INT8, INT8, INT8, INT8, INT8);
    RECENT = "recent" (
        TIMESTAMPTZ, INT8, TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ, UUID, INT8, TIMESTAMPTZ, UUID, INT8
    );
    RECORD = "record" (
        UUID_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, INT2_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY
    );
    RECORD_DEPENDENCIES = "record_dependencies" (UUID_ARRAY, UUID_ARRAY, BOOL_ARRAY);
    RECORD_OCCURRENCES = "record_occurrences" (
        TEXT_ARRAY, TIMESTAMPTZ_ARRAY, TIMESTAMPTZ_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, TIMESTAMPTZ_ARRAY
    );
    RECORD_PLAIN = "record_plain" (UUID_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, INT2_ARRAY, TEXT_ARRAY);
    REGISTER_WORKER = "register_worker" (TEXT, TEXT_ARRAY, TEXT_ARRAY, INT4, TEXT, INT8, INT8);
    RELEASE_HOLD = "release_hold" (UUID);
    REMEMBER_KEYS = "remember_keys" (TEXT, UUID, INT8);
    REMOVE_NODE = "remove_node" (TEXT);
    REMOVE_WORKER = "remove_worker" (TEXT, TEXT);
    RENEW_TERM = "renew_term" (TEXT, INT8, INT8);
    REPLACE_OCCURRENCES = "replace_occurrences" (TEXT, TIMESTAMPTZ_ARRAY);
    REPLAY = "replay" (UUID_ARRAY, INT4_ARRAY, UUID_ARRAY);
    REPRIORITIZE = "reprioritize" (UUID, INT2);
    REPRIORITIZE_MANY = "reprioritize_many" (UUID_ARRAY, INT2);
    REQUEST_CANCEL = "request_cancel" (UUID);
    REQUEST_CANCELS = "request_cancels" (UUID_ARRAY);
    RESIGN = "resign" (TEXT, INT8);
    RESTORE_LOCKS = "restore_locks" (TEXT);
    RETRY = "retry" (UUID_ARRAY);
    REVOKE_KEY = "revoke_key" (TEXT);
    SCHEDULES = "schedules" (TEXT, INT8);
    SETTLE = "settle" (
        UUID_ARRAY, INT4_ARRAY, UUID_ARRAY, TEXT_ARRAY, BOOL_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT2_ARRAY, INT2_ARRAY,
        TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY
    );
    STATES = "states" (UUID_ARRAY);
    STILL_KEPT = "still_kept" (TEXT, INT8, INT8);
    SUMMARIZE = "summarize" ();
    SUMMARIES = "summaries" (UUID_ARRAY);
    SUMMARY = "summary" (UUID);
    TAILS = "tails" (UUID_ARRAY, INT8_ARRAY, INT8);
    SURVEY = "survey" (TEXT_ARRAY, TEXT_ARRAY, INT2_ARRAY, TIMESTAMPTZ_ARRAY, UUID_ARRAY, INT4);
    TAKE_OVER = "take_over" (TEXT, INT8);
    TENANT_AUDIT = "tenant_audit" (TIMESTAMPTZ, INT8, TIMESTAMPTZ, INT8, TEXT, TEXT, TEXT, INT8, TEXT);
    TENANT_OPERATIONS = "tenant_operations" (UUID, INT8, TEXT);
    TENANT_SCHEDULES = "tenant_schedules" (TEXT, INT8, TEXT);
    TERM = "term" ();
    TIME = "time" ();
    UNBLOCK = "unblock" (UUID_ARRAY, UUID_ARRAY, BOOL_ARRAY);
    UNFINISHED = "unfinished" (UUID_ARRAY);
    WORKERS = "workers" (TEXT, INT8);
}

#[cfg(test)]
mod tests {
    use orchestrix_testkit::TestDatabase;
    use tokio_postgres::NoTls;

    use crate::{PostgresOptions, PostgresStore};

    #[tokio::test]
    async fn every_statement_prepares_against_the_migrated_schema() {
        let database = TestDatabase::create("prepare").unwrap();
        let _store = PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap();
        let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        for statement in super::ALL {
            let prepared = client.prepare_typed(statement.sql, statement.types).await;
            let prepared =
                prepared.unwrap_or_else(|error| panic!("{}: {}", statement.name, crate::error::describe(&error)));
            assert_eq!(prepared.params(), statement.types, "{}", statement.name);
        }
    }

    #[test]
    fn every_file_is_used() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/queries");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let mut names: Vec<&str> = super::ALL.iter().map(|statement| statement.name).collect();
        names.sort_unstable();
        assert_eq!(files, names);
    }
}
