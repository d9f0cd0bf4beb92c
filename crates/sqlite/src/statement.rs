//! Every SQL statement of this store, named after its file in `queries/`. The text is fixed at compile time. Tests
//! prepare each statement and check its query plan.

/// One statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement {
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests report it by name"))]
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

macro_rules! statements {
    ($($constant:ident = $file:literal;)*) => {
        $(pub(crate) const $constant: Statement = Statement {
            name: $file,
            sql: include_str!(concat!("../queries/", $file, ".sql")),
        };)*

        /// All statements.
        pub(crate) const ALL: &[Statement] = &[$($constant),*];
    };
}

statements! {
    ABORT_OPERATION = "abort_operation";
    ADVANCE_OPERATION = "advance_operation";
    ADVANCE_SCHEDULE = "advance_schedule";
    APPEND_LOG = "append_log";
    AUDIT_ENTRY_TIME = "audit_entry_time";
    BEGIN_AUDIT_ENTRY = "begin_audit_entry";
    BEGIN_OPERATION = "begin_operation";
    CHANGE_DEPTH = "change_depth";
    CHANGES_ENQUEUED = "changes_enqueued";
    CHANGES_FINISHED = "changes_finished";
    CHANGES_IDS = "changes_ids";
    CHANGES_LEASED = "changes_leased";
    CHANGES_REDRIVEN = "changes_redriven";
    CLAIM_JOB = "claim_job";
    CLAIMABLE_JOBS = "claimable_jobs";
    COUNT_RUNNING_OPERATIONS = "count_running_operations";
    CREATE_KEY = "create_key";
    DELETE_ATTEMPTS = "delete_attempts";
    DELETE_CHECKPOINT = "delete_checkpoint";
    DELETE_DEPENDENCIES = "delete_dependencies";
    DELETE_DEPTH = "delete_depth";
    DELETE_JOB = "delete_job";
    DELETE_LANE = "delete_lane";
    DELETE_OCCURRENCE = "delete_occurrence";
    DELETE_OCCURRENCES = "delete_occurrences";
    DELETE_PAYLOAD = "delete_payload";
    DELETE_SCHEDULE = "delete_schedule";
    DEPENDENCY_RESULTS = "dependency_results";
    DIAGNOSE_DEAD_JOBS = "diagnose_dead_jobs";
    DIRECT_WORKER = "direct_worker";
    DUE_JOBS = "due_jobs";
    DUE_SCHEDULES = "due_schedules";
    ENQUEUE_JOB = "enqueue_job";
    EXPIRED_JOBS = "expired_jobs";
    EXPIRED_LEASES = "expired_leases";
    EXTEND_LEASE = "extend_lease";
    FIND_CHECKPOINT = "find_checkpoint";
    FIND_ENDED_ATTEMPT = "find_ended_attempt";
    FIND_IDEMPOTENCY_KEY = "find_idempotency_key";
    FIND_JOB = "find_job";
    FIND_KEY = "find_key";
    FIND_LANE = "find_lane";
    FIND_OCCURRENCE = "find_occurrence";
    FIND_OPERATION = "find_operation";
    FIND_PARENT = "find_parent";
    FIND_PAYLOAD = "find_payload";
    FIND_SCHEDULE = "find_schedule";
    FIND_TENANT = "find_tenant";
    FINISH_AUDIT_ENTRY = "finish_audit_entry";
    FIRST_OF_LANE = "first_of_lane";
    FORGET_NODES = "forget_nodes";
    FORGET_SETTLED_PARENT = "forget_settled_parent";
    FORGET_WORKERS = "forget_workers";
    GET_JOB = "get_job";
    HEARTBEAT_NODE = "heartbeat_node";
    HEARTBEAT_WORKER = "heartbeat_worker";
    INSERT_ATTEMPT = "insert_attempt";
    INSERT_DEPENDENCY = "insert_dependency";
    INSERT_IDEMPOTENCY_KEY = "insert_idempotency_key";
    INSERT_OCCURRENCE = "insert_occurrence";
    INSERT_PAYLOAD = "insert_payload";
    IS_PAUSED = "is_paused";
    JOB_LOGS = "job_logs";
    JOB_SUMMARY = "job_summary";
    LATEST_OPERATION = "latest_operation";
    LEADER_TERM = "leader_term";
    LIST_ATTEMPTS = "list_attempts";
    LIST_AUDIT_ENTRIES = "list_audit_entries";
    LIST_DEAD_JOBS = "list_dead_jobs";
    LIST_JOBS = "list_jobs";
    LIST_KEYS = "list_keys";
    LIST_NODES = "list_nodes";
    LIST_OCCURRENCES = "list_occurrences";
    LIST_OPERATIONS = "list_operations";
    LIST_PARENTS = "list_parents";
    LIST_SCHEDULES = "list_schedules";
    LIST_TENANT_AUDIT_ENTRIES = "list_tenant_audit_entries";
    LIST_TENANT_OPERATIONS = "list_tenant_operations";
    LIST_TENANT_SCHEDULES = "list_tenant_schedules";
    LIST_TENANTS = "list_tenants";
    LIST_WORKERS = "list_workers";
    LOG_BATCH_END = "log_batch_end";
    LOWER_LANE = "lower_lane";
    MARK_DEPENDENCY_MET = "mark_dependency_met";
    MARK_PARENT = "mark_parent";
    NEXT_EXPIRY = "next_expiry";
    NEXT_FIRING = "next_firing";
    NEXT_LANE = "next_lane";
    NEXT_LANES = "next_lanes";
    NEXT_LANES_OF_PAIR = "next_lanes_of_pair";
    NEXT_LANES_OF_QUEUE = "next_lanes_of_queue";
    NEXT_LANES_OF_TYPE = "next_lanes_of_type";
    NEXT_LEASE_EXPIRY = "next_lease_expiry";
    NEXT_PROMOTION = "next_promotion";
    NEXT_SETTLED = "next_settled";
    NEXT_TIMEOUT = "next_timeout";
    OLDEST_LANES = "oldest_lanes";
    OPEN_DEPENDENCIES = "open_dependencies";
    OPEN_OPERATIONS = "open_operations";
    OVERDUE_ATTEMPTS = "overdue_attempts";
    PAST_RETENTION = "past_retention";
    PAUSE_LANES = "pause_lanes";
    PAUSE_QUEUE = "pause_queue";
    PAUSE_SCHEDULE = "pause_schedule";
    PAUSED_QUEUES = "paused_queues";
    PAUSED_QUEUES_AFTER = "paused_queues_after";
    POSTPONE_SCHEDULE = "postpone_schedule";
    PROMOTE_JOB = "promote_job";
    PRUNE_AUDIT = "prune_audit";
    PRUNE_LOGS = "prune_logs";
    PRUNE_OCCURRENCES = "prune_occurrences";
    PRUNE_OPERATIONS = "prune_operations";
    PRUNE_REDRIVEN = "prune_redriven";
    PUT_CHECKPOINT = "put_checkpoint";
    PUT_SCHEDULE = "put_schedule";
    QUEUE_DEPTH = "queue_depth";
    QUEUE_DEPTHS = "queue_depths";
    RAISE_LANE = "raise_lane";
    RECORD_PROGRESS = "record_progress";
    RECORD_REDRIVEN = "record_redriven";
    RECORD_SETTLED = "record_settled";
    REGISTER_WORKER = "register_worker";
    REMEMBER_KEY_STATE = "remember_key_state";
    REMOVE_NODE = "remove_node";
    REMOVE_WORKER = "remove_worker";
    REPRIORITIZE_JOB = "reprioritize_job";
    REQUEST_CANCEL = "request_cancel";
    RESUME_QUEUE = "resume_queue";
    RETRY_JOB = "retry_job";
    REVOKE_KEY = "revoke_key";
    SET_TENANT = "set_tenant";
    SET_TERM = "set_term";
    SETTLE_JOB = "settle_job";
    STALE_TZDB_SCHEDULES = "stale_tzdb_schedules";
    UNBLOCK_JOB = "unblock_job";
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use rusqlite::Connection;

    use super::*;
    use crate::migrate;

    /// Statements that may scan: they stop early, or the table stays small.
    const SCANS: &[(&str, &str)] = &[
        ("count_running_operations", "an index of at most a hundred entries"),
        ("diagnose_dead_jobs", "a limited number of entries of an index that holds nothing else"),
        ("heartbeat_worker", "one row of constants"),
        ("latest_operation", "the last row"),
        ("log_batch_end", "a limited number of the oldest lines"),
        ("next_promotion", "the first entry of an index that holds nothing else"),
        ("next_settled", "the first row of a table that is almost always empty"),
        ("open_operations", "an index of at most a hundred entries"),
        ("paused_queues", "one row per queue that an operator paused"),
        ("prune_audit", "a limited number of the oldest entries"),
        ("register_worker", "one row of constants"),
    ];

    /// Checks that a statement selects the `declared` columns in their order. It may omit trailing ones.
    pub(crate) fn assert_columns(statement: Statement, declared: &[&str]) {
        let connection = migrated();
        let prepared = connection.prepare(statement.sql).unwrap();
        let selected = prepared.column_names();
        assert!(declared.starts_with(&selected), "{} selects {selected:?}", statement.name);
    }

    /// An empty database with the current schema.
    fn migrated() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        migrate::migrate(&connection, Path::new("memory"), 0).unwrap();
        connection
    }

    fn plan(connection: &Connection, statement: &Statement) -> Vec<String> {
        let mut prepared = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {}", statement.sql))
            .unwrap_or_else(|error| panic!("{}: {error}", statement.name));
        let mut rows = prepared.raw_query();
        let mut steps = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            steps.push(row.get(3).unwrap());
        }
        steps
    }

    /// The indexes that the header comment of a statement names.
    fn relies_on(statement: &Statement) -> Vec<&'static str> {
        let named = statement.sql.split("Relies on ").skip(1);
        named.map(|rest| rest.split('.').next().unwrap()).collect()
    }

    #[test]
    fn every_statement_prepares_against_the_migrated_schema() {
        let connection = migrated();
        for statement in ALL {
            let prepared = connection.prepare(statement.sql);
            let prepared = prepared.unwrap_or_else(|error| panic!("{}: {error}", statement.name));
            // A gap in the numbers would be a parameter that is never bound.
            for i in 1..=prepared.parameter_count() {
                assert_eq!(prepared.parameter_name(i), Some(format!("?{i}").as_str()), "{}", statement.name);
            }
        }
    }

    #[test]
    fn every_query_file_is_a_statement() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/queries");
        let mut files: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let mut names: Vec<&str> = ALL.iter().map(|statement| statement.name).collect();
        names.sort_unstable();
        assert_eq!(files, names);
    }

    #[test]
    fn no_statement_scans_a_table_or_sorts() {
        let connection = migrated();
        let mut scanning = Vec::new();
        for statement in ALL {
            let plan = plan(&connection, statement);
            assert!(plan.iter().all(|step| !step.contains("TEMP B-TREE")), "{} sorts: {plan:?}", statement.name);
            assert!(
                plan.iter().all(|step| !step.contains("AUTOMATIC")),
                "{} builds an index: {plan:?}",
                statement.name
            );
            if plan.iter().any(|step| step.starts_with("SCAN")) {
                scanning.push(statement.name);
            }
        }
        let allowed: Vec<&str> = SCANS.iter().map(|(name, _)| *name).collect();
        assert_eq!(scanning, allowed);
    }

    #[test]
    fn every_statement_uses_the_index_that_its_header_names() {
        let connection = migrated();
        for statement in ALL {
            let plan = plan(&connection, statement);
            for index in relies_on(statement) {
                let uses = |step: &String| step.contains(&format!("INDEX {index}"));
                assert!(plan.iter().any(uses), "{} does not use {index}: {plan:?}", statement.name);
            }
            // The header also names every index that is used, except those of primary keys.
            let used = plan.iter().filter_map(|step| step.split("INDEX ").nth(1)?.split(' ').next());
            for index in used.filter(|index| !index.starts_with("sqlite_autoindex")) {
                assert!(relies_on(statement).contains(&index), "{} does not name {index}", statement.name);
            }
        }
    }

    #[test]
    fn every_index_is_used_by_a_statement() {
        let connection = migrated();
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";
        let mut prepared = connection.prepare(sql).unwrap();
        let indexes: BTreeSet<String> = prepared.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(indexes, ALL.iter().flat_map(relies_on).map(str::to_owned).collect());
    }

    #[test]
    fn claims_read_their_index_in_claim_order() {
        let connection = migrated();
        let lane = "queue=? AND job_type=? AND tenant=? AND rank=?";
        let step = format!("SEARCH job USING INDEX job_claim ({lane} AND (eligible_at,id)>(?,?))");
        assert_eq!(plan(&connection, &CLAIMABLE_JOBS), [step]);
        let step = format!("SEARCH job USING COVERING INDEX job_claim ({lane})");
        assert_eq!(plan(&connection, &FIRST_OF_LANE), [step]);
        assert_eq!(
            plan(&connection, &NEXT_LANE),
            ["SEARCH job USING COVERING INDEX job_claim ((queue,job_type)>(?,?))"]
        );
        let keys = "(rank,ring,eligible_at,id)>(?,?,?,?)";
        for (statement, range) in [
            (NEXT_LANES, format!("COVERING INDEX lane_any ({keys})")),
            (NEXT_LANES_OF_TYPE, format!("COVERING INDEX lane_by_type (job_type=? AND {keys})")),
            (NEXT_LANES_OF_QUEUE, format!("COVERING INDEX lane_by_queue (queue=? AND {keys})")),
            (NEXT_LANES_OF_PAIR, "PRIMARY KEY (queue=? AND job_type=? AND (rank,ring,tenant)>(?,?,?))".into()),
        ] {
            let weight = ["CORRELATED SCALAR SUBQUERY 1", "SEARCH tenant USING PRIMARY KEY (name=?)"];
            assert_eq!(plan(&connection, &statement), [&*format!("SEARCH lane USING {range}"), weight[0], weight[1]]);
        }
        assert_eq!(plan(&connection, &FIND_LANE), ["SEARCH lane USING PRIMARY KEY (queue=? AND job_type>?)"]);
        assert_eq!(plan(&connection, &OLDEST_LANES), ["SEARCH lane USING COVERING INDEX lane_by_age (queue=?)"]);
        for statement in [CLAIM_JOB, FIND_JOB, EXTEND_LEASE, SETTLE_JOB] {
            assert_eq!(plan(&connection, &statement), ["SEARCH job USING PRIMARY KEY (id=?)"], "{}", statement.name);
        }
    }
}
