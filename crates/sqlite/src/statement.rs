//! Every statement this store runs, by the name of its file. The text is fixed at compile time; tests prepare each and
//! look at its plan.

/// The text of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement {
    #[cfg_attr(not(test), expect(dead_code, reason = "for the tests that look at each"))]
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

macro_rules! statements {
    ($($constant:ident = $file:literal;)*) => {
        $(pub(crate) const $constant: Statement = Statement {
            name: $file,
            sql: include_str!(concat!("../queries/", $file, ".sql")),
        };)*

        /// All of them.
        pub(crate) const ALL: &[Statement] = &[$($constant),*];
    };
}

statements! {
    ABORT_OPERATION = "abort_operation";
    ADVANCE_OPERATION = "advance_operation";
    API_KEYS = "api_keys";
    APPEND_LOG = "append_log";
    ATTEMPT = "attempt";
    ATTEMPTS = "attempts";
    AUDIT = "audit";
    AUDIT_PLACE = "audit_place";
    BEGIN_AUDIT = "begin_audit";
    BEGIN_OPERATION = "begin_operation";
    CHECKPOINT = "checkpoint";
    CLAIM = "claim";
    CLAIMABLE = "claimable";
    COUNT = "count";
    COUNT_OPERATIONS = "count_operations";
    CREATE_KEY = "create_key";
    DELETE_LINES = "delete_lines";
    DELETE_SCHEDULE = "delete_schedule";
    DEPENDENCY_RESULTS = "dependency_results";
    DEPTH = "depth";
    DEPTHS = "depths";
    DIAGNOSE_DEAD = "diagnose_dead";
    DIRECT_WORKER = "direct_worker";
    DUE = "due";
    DUE_SCHEDULES = "due_schedules";
    END_AUDIT = "end_audit";
    EXPIRED = "expired";
    FIND = "find";
    FIND_API_KEY = "find_api_key";
    FIND_KEY = "find_key";
    FIND_OPERATION = "find_operation";
    FIND_SCHEDULE = "find_schedule";
    FORGET_ATTEMPTS = "forget_attempts";
    FORGET_AUDIT = "forget_audit";
    FORGET_CHECKPOINT = "forget_checkpoint";
    FORGET_DEPENDENCIES = "forget_dependencies";
    FORGET_DEPTH = "forget_depth";
    FORGET_JOB = "forget_job";
    FORGET_LOGS = "forget_logs";
    FORGET_NODES = "forget_nodes";
    FORGET_OCCURRENCE = "forget_occurrence";
    FORGET_OCCURRENCES = "forget_occurrences";
    FORGET_OPERATIONS = "forget_operations";
    FORGET_PAYLOAD = "forget_payload";
    FORGET_REVIVED = "forget_revived";
    FORGET_SETTLED = "forget_settled";
    FORGET_WORKERS = "forget_workers";
    GET = "get";
    HEARTBEAT = "heartbeat";
    HEARTBEAT_NODE = "heartbeat_node";
    HEARTBEAT_WORKER = "heartbeat_worker";
    IS_PAUSED = "is_paused";
    KEEP_CHECKPOINT = "keep_checkpoint";
    KEEP_SCHEDULE = "keep_schedule";
    LANE = "lane";
    LATEST_OPERATION = "latest_operation";
    LEAD = "lead";
    LEADER = "leader";
    LIST = "list";
    LIST_DEAD = "list_dead";
    LOGS = "logs";
    MARK_PARENT = "mark_parent";
    MOVE_SCHEDULE = "move_schedule";
    NEXT_DUE = "next_due";
    NEXT_EXPIRY = "next_expiry";
    NEXT_FIRE = "next_fire";
    NEXT_LEASE = "next_lease";
    NEXT_PAUSED = "next_paused";
    NEXT_SETTLED = "next_settled";
    NEXT_TIMEOUT = "next_timeout";
    NODES = "nodes";
    OCCURRENCE = "occurrence";
    OCCURRENCES = "occurrences";
    OLD_LOGS = "old_logs";
    OLDEST = "oldest";
    OPEN_EDGES = "open_edges";
    OPEN_OPERATIONS = "open_operations";
    OPERATIONS = "operations";
    OTHER_ZONES = "other_zones";
    OVERDUE_ATTEMPTS = "overdue_attempts";
    OVERDUE_LEASES = "overdue_leases";
    PARENT = "parent";
    PARENTS = "parents";
    PAST_RETENTION = "past_retention";
    PAUSE_QUEUE = "pause_queue";
    PAUSED_QUEUES = "paused_queues";
    PAYLOAD = "payload";
    PAUSE_SCHEDULE = "pause_schedule";
    POSTPONE_SCHEDULE = "postpone_schedule";
    PROGRESS = "progress";
    PROMOTE = "promote";
    RECENT_ENDED = "recent_ended";
    RECENT_IDS = "recent_ids";
    RECENT_LEASED = "recent_leased";
    RECENT_RECORDED = "recent_recorded";
    RECENT_REVIVED = "recent_revived";
    RECORD = "record";
    RECORD_ATTEMPT = "record_attempt";
    RECORD_DEPENDENCY = "record_dependency";
    RECORD_KEY = "record_key";
    RECORD_OCCURRENCE = "record_occurrence";
    RECORD_PAYLOAD = "record_payload";
    RECORD_REVIVED = "record_revived";
    REGISTER_WORKER = "register_worker";
    REMEMBER_KEY = "remember_key";
    REMOVE_NODE = "remove_node";
    REMOVE_WORKER = "remove_worker";
    REPRIORITIZE = "reprioritize";
    REQUEST_CANCEL = "request_cancel";
    RESUME_QUEUE = "resume_queue";
    RETRY = "retry";
    REVOKE_KEY = "revoke_key";
    SCHEDULES = "schedules";
    SETTLE = "settle";
    SETTLED = "settled";
    SUMMARY = "summary";
    TENANT_AUDIT = "tenant_audit";
    TENANT_OPERATIONS = "tenant_operations";
    TENANT_SCHEDULES = "tenant_schedules";
    TURN_EDGE = "turn_edge";
    UNBLOCK = "unblock";
    WORKERS = "workers";
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use rusqlite::Connection;

    use super::*;
    use crate::migrate;

    /// Statements that may begin at one end of a table or an index, since they stop early or the table is small.
    const SCANS: &[(&str, &str)] = &[
        ("count_operations", "an index of at most a hundred"),
        ("diagnose_dead", "a limited number of entries of an index that holds nothing else"),
        ("forget_audit", "a limited number of entries from the oldest on"),
        ("heartbeat_worker", "one row of constants"),
        ("latest_operation", "the last row"),
        ("next_due", "the first entry of an index that holds nothing else"),
        ("next_settled", "the first row of a table that is empty but for a moment"),
        ("old_logs", "a limited number of lines from the oldest on"),
        ("open_operations", "an index of at most a hundred"),
        ("paused_queues", "a row per queue that an operator touched"),
        ("register_worker", "one row of constants"),
    ];

    /// The tables as they are.
    fn connection() -> Connection {
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

    /// The indexes that a statement says it relies on, in the comment at its top.
    fn relies_on(statement: &Statement) -> Vec<&'static str> {
        let named = statement.sql.split("Relies on ").skip(1);
        named.map(|rest| rest.split('.').next().unwrap()).collect()
    }

    #[test]
    fn every_statement_prepares_against_the_migrated_schema() {
        let connection = connection();
        for statement in ALL {
            let prepared = connection.prepare(statement.sql);
            let prepared = prepared.unwrap_or_else(|error| panic!("{}: {error}", statement.name));
            // A number that is left out would be a parameter that nobody means.
            for i in 1..=prepared.parameter_count() {
                assert_eq!(prepared.parameter_name(i), Some(format!("?{i}").as_str()), "{}", statement.name);
            }
        }
    }

    #[test]
    fn every_file_is_used() {
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
    fn no_statement_walks_a_table_or_sorts() {
        let connection = connection();
        let mut scanning = Vec::new();
        for statement in ALL {
            let plan = plan(&connection, statement);
            assert!(plan.iter().all(|step| !step.contains("TEMP B-TREE")), "{} sorts: {plan:?}", statement.name);
            assert!(plan.iter().all(|step| !step.contains("AUTOMATIC")), "{} makes an index: {plan:?}", statement.name);
            if plan.iter().any(|step| step.starts_with("SCAN")) {
                scanning.push(statement.name);
            }
        }
        let allowed: Vec<&str> = SCANS.iter().map(|(name, _)| *name).collect();
        assert_eq!(scanning, allowed);
    }

    #[test]
    fn every_statement_uses_the_index_that_it_relies_on() {
        let connection = connection();
        for statement in ALL {
            let plan = plan(&connection, statement);
            for index in relies_on(statement) {
                let uses = |step: &String| step.contains(&format!("INDEX {index}"));
                assert!(plan.iter().any(uses), "{} does not use {index}: {plan:?}", statement.name);
            }
            // And says so: those that SQLite makes for primary keys go without saying.
            let used = plan.iter().filter_map(|step| step.split("INDEX ").nth(1)?.split(' ').next());
            for index in used.filter(|index| !index.starts_with("sqlite_autoindex")) {
                assert!(relies_on(statement).contains(&index), "{} does not name {index}", statement.name);
            }
        }
    }

    #[test]
    fn every_index_is_one_that_a_statement_relies_on() {
        let connection = connection();
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";
        let mut prepared = connection.prepare(sql).unwrap();
        let indexes: BTreeSet<String> = prepared.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(indexes, ALL.iter().flat_map(relies_on).map(str::to_owned).collect());
    }

    #[test]
    fn claims_follow_their_index_in_the_order_of_claims() {
        let connection = connection();
        let step = "SEARCH job USING INDEX job_claim (queue=? AND job_type=? AND (rank,eligible_at,id)>(?,?,?))";
        assert_eq!(plan(&connection, &CLAIMABLE), [step]);
        assert_eq!(plan(&connection, &LANE), ["SEARCH job USING COVERING INDEX job_claim ((queue,job_type)>(?,?))"]);
        for statement in [CLAIM, FIND, HEARTBEAT, SETTLE] {
            assert_eq!(plan(&connection, &statement), ["SEARCH job USING PRIMARY KEY (id=?)"], "{}", statement.name);
        }
    }
}
