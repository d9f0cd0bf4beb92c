//! Bugs in the SQLite store.

use super::{Mutant, edit};

const SQLITE: &[&str] = &["orchestrix-sqlite"];

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "sqlite-fence-not-checked",
        bug: "a deposed leader's writes are accepted",
        edits: &[edit(
            "crates/sqlite/src/coordination.rs",
            "fence.check(term(self)?.epoch)?;",
            "let _ = term(self)?.epoch;",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-token-predicate-dropped",
        bug: "writes do not check the secret of the lease token",
        edits: &[edit(
            "crates/sqlite/src/row.rs",
            "self.counter == token.counter && self.secret == Some(token.secret)",
            "self.counter == token.counter",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-completion-by-id",
        bug: "an outcome is accepted by job id alone",
        edits: &[edit(
            "crates/sqlite/src/row.rs",
            "self.counter == token.counter && self.secret == Some(token.secret)",
            "self.id == token.job",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-reap-without-expiry-check",
        bug: "leases are reaped before they expire",
        edits: &[edit(
            "crates/sqlite/queries/expired_leases.sql",
            "AND lease_expires_at <= ?1 ",
            "AND ?1 IS NOT NULL ",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-answer-before-commit",
        bug: "operations get their reply before the commit",
        edits: &[edit(
            "crates/sqlite/src/writer.rs",
            "            done += 1;\n",
            "            taken.remove(done).reply(None);\n",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-dependency-unblocked-early",
        bug: "a child is unblocked when its first parent finishes",
        edits: &[
            edit("crates/sqlite/src/dependents.rs", "_ if blocked && job.waits_for == 1 =>", "_ if blocked =>"),
            edit("crates/sqlite/src/dependents.rs", "job.waits_for.saturating_sub(1)", "0"),
        ],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-attempt-counted-twice",
        bug: "an ended attempt is counted twice",
        edits: &[edit("crates/sqlite/queries/settle_job.sql", "attempts = ?8,", "attempts = ?8 + (?8 - attempts),")],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-lane-not-lowered",
        bug: "a job that precedes all others of its lane does not move the lane forward",
        edits: &[edit(
            "crates/sqlite/queries/lower_lane.sql",
            "WHERE (?6, ?7) < (eligible_at, lane.id)",
            "WHERE (?6, ?7) < (-9999, lane.id)",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-lane-not-written-after-promotion",
        bug: "only new jobs enter a lane, so a job that becomes claimable later is hidden",
        edits: &[edit(
            "crates/sqlite/src/session.rs",
            "if to == JobState::Pending {",
            "if to == JobState::Pending && from.is_none() {",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-lane-raised-too-far",
        bug: "a lane gets the key of the last job that a claim read, so the jobs before it are claimed late",
        edits: &[edit(
            "crates/sqlite/src/select.rs",
            "Some(job) => Some(Some(job.key)),",
            "Some(_) => Some(Some(self.last_read)),",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-lane-of-expired-jobs-deleted",
        bug: "a claim that met expired jobs forgets a lane that still holds others",
        edits: &[edit(
            "crates/sqlite/src/select.rs",
            "_ if self.has_expired => None,",
            "_ if self.has_expired => Some(None),",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-lanes-cut-off",
        bug: "a claim reads a limited number of lanes, so many lanes hide jobs",
        edits: &[edit(
            "crates/sqlite/src/lane_list.rs",
            "self.exhausted = ended || read < limit;",
            "self.exhausted = ended || read < limit || limit == MAX_PAGE;",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-lane-ignores-pause",
        bug: "a job that enters a new lane of a paused queue is claimed",
        edits: &[edit(
            "crates/sqlite/queries/lower_lane.sql",
            "EXISTS (SELECT 1 FROM queue WHERE name = ?1 AND paused)",
            "0",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-lanes-of-a-transaction-not-seen",
        bug: "a claim does not see the lanes of earlier operations of its transaction, and returns jobs out of order",
        edits: &[edit("crates/sqlite/src/claim.rs", "        self.write_earlier_lanes()?;\n", "")],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-turn-does-not-move-on",
        bug: "every claim begins with the same tenant",
        edits: &[edit(
            "crates/sqlite/src/claim.rs",
            "self.hints.turns.note_claimed(scope, mem::take(&mut selection.turns));",
            "drop(mem::take(&mut selection.turns));",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-turn-starts-over",
        bug: "a claim gives the tenant whose turn has begun another full turn",
        edits: &[edit("crates/sqlite/src/select.rs", "{ turn.taken } else { 0 }", "{ 0 } else { 0 }")],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-turn-of-weight-1",
        bug: "claims of a queue ignore the weights of tenants",
        edits: &[edit(
            "crates/sqlite/queries/next_lanes_of_queue.sql",
            "coalesce((SELECT weight FROM tenant WHERE name = lane.tenant), 1)",
            "1",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-turn-not-round-the-ring",
        bug: "tenants before the one whose turn it is get no turn until the others have no jobs",
        edits: &[edit(
            "crates/sqlite/src/select.rs",
            "let before_start = first.filter(|first| *first < start)",
            "let before_start = first.filter(|first| *first < start && from_start.is_none())",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-lanes-left-empty",
        bug: "lanes that claims emptied stay, and a later claim reads all of them in vain",
        edits: &[edit(
            "crates/sqlite/src/lanes.rs",
            "self.0.len() > MAX_EMPTY_LANES",
            "self.0.len() > 1_000 * MAX_EMPTY_LANES",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-idempotency-checked-in-memory",
        bug: "idempotency keys are remembered by the process, not by the file",
        edits: &[
            edit("crates/sqlite/queries/insert_idempotency_key.sql", "INSERT INTO", "INSERT OR REPLACE INTO"),
            edit(
                "crates/sqlite/src/enqueue.rs",
                "/// A call that was checked before the writer runs it.\n",
                "static SEEN: std::sync::Mutex<Vec<(std::thread::ThreadId, JobId)>> = std::sync::Mutex::new(Vec::new());\n\n",
            ),
            edit(
                "crates/sqlite/src/enqueue.rs",
                "known.extend(key.map(|key| (i, key)));",
                "known.extend(key.filter(|key| seen(key.job)).map(|key| (i, key)));",
            ),
            edit(
                "crates/sqlite/src/enqueue.rs",
                "        let mut known = HashMap::new();\n",
                r#"        let mut known = HashMap::new();
        let here = std::thread::current().id();
        let seen = |id: JobId| SEEN.lock().expect("no poison").contains(&(here, id));
"#,
            ),
            edit(
                "crates/sqlite/src/enqueue.rs",
                "            for dependency in &job.dependencies {\n",
                "            SEEN.lock().expect(\"no poison\").push((std::thread::current().id(), job.id));\n            for dependency in &job.dependencies {\n",
            ),
        ],
        packages: SQLITE,
    },
];
