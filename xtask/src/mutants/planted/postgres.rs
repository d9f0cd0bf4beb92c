//! Bugs in the store on PostgreSQL, and in what all stores share.

use super::{Mutant, edit};

const POSTGRES: &[&str] = &["orchestrix-postgres"];

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "core-attempt-counted-twice",
        bug: "the end of an attempt uses up two of the budget",
        edits: &[edit(
            "crates/core/src/lifecycle.rs",
            "let attempts = self.attempts + u16::from(costs);",
            "let attempts = self.attempts + 2 * u16::from(costs);",
        )],
        packages: &["orchestrix-memory"],
    },
    Mutant {
        name: "postgres-token-predicate-dropped",
        bug: "a completion does not look at the token's secret",
        edits: &[edit("crates/postgres/queries/complete.sql", " AND j.lease_secret = i.secret", "")],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-completion-by-id",
        bug: "a completion looks at the job's id alone",
        edits: &[edit(
            "crates/postgres/queries/complete.sql",
            " AND j.lease_counter = i.counter AND j.lease_secret = i.secret",
            "",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-reap-without-expiry-check",
        bug: "leases are taken back whether or not they ran out",
        edits: &[
            edit("crates/postgres/queries/overdue_leases.sql", " AND j.lease_expires_at <= now()", ""),
            edit(
                "crates/postgres/queries/settle.sql",
                "AND (i.guard <> 'expired' OR j.lease_expires_at <= now()) ",
                "",
            ),
        ],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-reap-does-not-look-again",
        bug: "a lease that was extended between the look and the reaping is taken back all the same",
        edits: &[edit(
            "crates/postgres/queries/settle.sql",
            "AND (i.guard <> 'expired' OR j.lease_expires_at <= now()) ",
            "",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-answer-before-commit",
        bug: "enqueue is answered while the commit is still on its way to the disk",
        edits: &[edit(
            "crates/postgres/src/database.rs",
            "-c jit=off \\\n",
            "-c jit=off -c synchronous_commit=off \\\n",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-dependency-unblocked-early",
        bug: "the first parent that finishes lets its child go",
        edits: &[
            edit("crates/postgres/queries/unblock.sql", "l.waits_for - c.n AS waits_for", "0 AS waits_for"),
            edit("crates/postgres/queries/unblock.sql", "WHEN l.waits_for > c.n THEN", "WHEN l.waits_for < 0 THEN"),
        ],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-attempt-counted-twice",
        bug: "a completed attempt counts twice",
        edits: &[edit(
            "crates/postgres/queries/complete.sql",
            "attempts + 1, max_attempts",
            "attempts + 2, max_attempts",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-cursor-never-rescanned",
        bug: "what lands behind a lane's cursor is never looked at again",
        edits: &[edit(
            "crates/postgres/src/lanes.rs",
            "lane.head_scan.is_none_or(|(at, took)| now.duration_since(at) >= (took * HEAD_SHARE).min(MAX_STALE))",
            "lane.head_scan.is_none()",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-idempotency-checked-in-memory",
        bug: "a key is known to the process that saw it, not to the database",
        edits: &[
            edit(
                "crates/postgres/queries/record.sql",
                "ON CONFLICT DO NOTHING",
                "ON CONFLICT (tenant, job_type, key) DO UPDATE SET job_id = excluded.job_id, fingerprint = excluded.fingerprint",
            ),
            edit(
                "crates/postgres/src/lib.rs",
                "        let parents = check_job(&job)?;\n",
                r#"        let parents = check_job(&job)?;
        type Seen = (usize, String, orchestrix_core::Fingerprint, JobId);
        static SEEN: std::sync::Mutex<Vec<Seen>> = std::sync::Mutex::new(Vec::new());
        let name = job.idempotency_key.as_ref().map(|key| format!("{} {} {key}", job.tenant, job.job_type));
        let here = Arc::as_ptr(&self.0) as usize;
        let print = orchestrix_core::Fingerprint::of(&job);
        let find = |name: &String| {
            let seen = SEEN.lock().expect("no poison");
            seen.iter().find(|one| one.0 == here && one.1 == *name).cloned()
        };
        if let Some((_, _, first, id)) = name.as_ref().and_then(find) {
            if first != print {
                return Err(orchestrix_store::StoreError::IdempotencyKeyReused { existing: id });
            }
            let state = self.summary(id).await?.map_or(JobState::Completed, |job| job.state);
            return Ok(Enqueued { id, state, duplicate: true });
        }
        if let Some(name) = name {
            let recorded = self.0.coalescer.record(job).await?;
            SEEN.lock().expect("no poison").push((here, name, print, recorded.id));
            return Ok(recorded);
        }
"#,
            ),
        ],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-fence-not-checked",
        bug: "a deposed leader's writes are accepted",
        edits: &[edit("crates/postgres/src/work.rs", "fence.check(Epoch(row.get(0)))?;", "let _ = Epoch(row.get(0));")],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-fence-without-lock",
        bug: "another node may take over while a leader's transaction is open",
        edits: &[edit("crates/postgres/queries/fence.sql", " FOR SHARE", "")],
        packages: &["orchestrix-coordinator"],
    },
    Mutant {
        name: "postgres-leader-without-timeouts",
        bug: "a leader that was stopped in the middle of a transaction keeps everybody from taking over",
        edits: &[edit(
            "crates/postgres/src/work.rs",
            "let patience = millis(patience).max(1);",
            "let patience = 0 * millis(patience);",
        )],
        packages: &["orchestrix-coordinator"],
    },
];
