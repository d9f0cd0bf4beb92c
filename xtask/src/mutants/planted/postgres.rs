//! Bugs in the PostgreSQL store and in the rules that all stores share.

use super::{Mutant, edit};

const POSTGRES: &[&str] = &["orchestrix-postgres"];

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "core-attempt-counted-twice",
        bug: "the end of an attempt counts as two attempts",
        edits: &[edit(
            "crates/core/src/lifecycle.rs",
            "let attempts = self.attempts + u16::from(costs);",
            "let attempts = self.attempts + 2 * u16::from(costs);",
        )],
        packages: &["orchestrix-memory"],
    },
    Mutant {
        name: "postgres-token-predicate-dropped",
        bug: "a completion does not check the token's secret",
        edits: &[edit("crates/postgres/queries/complete_jobs.sql", " AND j.lease_secret = i.secret", "")],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-completion-by-id",
        bug: "a completion checks the job's id only",
        edits: &[edit(
            "crates/postgres/queries/complete_jobs.sql",
            " AND j.lease_counter = i.counter AND j.lease_secret = i.secret",
            "",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-reap-without-expiry-check",
        bug: "leases are reaped before they expire",
        edits: &[
            edit("crates/postgres/queries/expired_leases.sql", " AND j.lease_expires_at <= now()", ""),
            edit(
                "crates/postgres/queries/settle_jobs.sql",
                "AND (i.guard <> 'expired' OR j.lease_expires_at <= now()) ",
                "",
            ),
        ],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-reap-does-not-look-again",
        bug: "a lease that is extended between the reaper's read and write is reaped",
        edits: &[edit(
            "crates/postgres/queries/settle_jobs.sql",
            "AND (i.guard <> 'expired' OR j.lease_expires_at <= now()) ",
            "",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-answer-before-commit",
        bug: "an enqueue returns before its commit is durable",
        edits: &[edit(
            "crates/postgres/src/database.rs",
            "-c jit=off \\\n",
            "-c jit=off -c synchronous_commit=off \\\n",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-dependency-unblocked-early",
        bug: "the first parent that finishes unblocks its child",
        edits: &[
            edit("crates/postgres/queries/unblock_jobs.sql", "j.waits_for - c.n AS waits_for", "0 AS waits_for"),
            edit(
                "crates/postgres/queries/unblock_jobs.sql",
                "WHEN j.waits_for > c.n THEN",
                "WHEN j.waits_for < 0 THEN",
            ),
        ],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-fan-out-in-the-callers-path",
        bug: "the call that finishes a parent waits until all of its children are unblocked",
        edits: &[edit(
            "crates/postgres/src/dependents.rs",
            "const INLINE: usize = 100;",
            "const INLINE: usize = 10_000;",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-cancel-decided-before-locks",
        bug: "a job is cancelled although its parent stopped waiting before it was locked",
        edits: &[
            edit(
                "crates/postgres/src/dependents.rs",
                "StepPlan::new(read_open(tx, scope).await?, ",
                "StepPlan::new(open, ",
            ),
            edit(
                "crates/postgres/src/dependents.rs",
                "if settled.len() != plan.cancelled.len() {",
                "if settled.is_empty() {",
            ),
        ],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-cancel-without-its-parent",
        bug: "a step cancels the dependents of a job that it leaves to the next step",
        edits: &[edit(
            "crates/postgres/src/dependents/plan.rs",
            "} else if !cancelled.contains_key(&parent) {",
            "} else if false {",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-parent-forgotten-early",
        bug: "a finished parent is forgotten although children still wait for it",
        edits: &[edit(
            "crates/postgres/queries/unblock_jobs.sql",
            "AND NOT d.met AND (d.child, d.parent) NOT IN (SELECT child, parent FROM turned) LIMIT 1",
            "AND d.met AND false LIMIT 1",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-attempt-counted-twice",
        bug: "a completed attempt counts twice",
        edits: &[edit(
            "crates/postgres/queries/complete_jobs.sql",
            "attempts + 1, max_attempts",
            "attempts + 2, max_attempts",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-cursor-never-rescanned",
        bug: "jobs that land before the known start of a claim are never found while others are claimed",
        edits: &[edit(
            "crates/postgres/src/known_turns.rs",
            "if now.duration_since(at) < (took * SEARCH_SHARE).min(MAX_STALE) {",
            "if now.duration_since(at) < Duration::MAX {",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-claim-beyond-horizon",
        bug: "a claim over several scans takes jobs although earlier ones may exist",
        edits: &[edit("crates/postgres/queries/claim_jobs.sql", "first_value(nth = $9)", "first_value(nth = -$9)")],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-ready-batch-deleted-early",
        bug: "a claim deletes a ready batch that still lists pending jobs",
        edits: &[edit(
            "crates/postgres/queries/claim_leases.sql",
            "WHERE v.place NOT IN (SELECT batch FROM left_over) AND (l.jobs = cardinality(v.ids)",
            "WHERE (l.jobs >= 1",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-locked-batch-hides-jobs",
        bug: "jobs of a ready batch that another claim has locked are not claimed",
        edits: &[edit(
            "crates/postgres/src/claim.rs",
            "if (end.skipped || self.was_cut) && !self.shared {",
            "if self.was_cut && !self.shared {",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-turn-stays",
        bug: "the same tenant has the first turn of every claim",
        edits: &[edit(
            "crates/postgres/src/claim.rs",
            "known.note_claimed(self.scope, turns.filter(|(rank, ..)| Some(*rank) != moved_on));",
            "drop(turns);",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-weight-ignored",
        bug: "all tenants have the same share",
        edits: &[edit(
            "crates/postgres/queries/claim_jobs.sql",
            "(SELECT t.weight FROM orchestrix.tenant t WHERE t.name = l.tenant)",
            "(SELECT t.weight FROM orchestrix.tenant t WHERE false AND t.name = l.tenant)",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-begun-turn-starts-over",
        bug: "a small claim does not continue the turn of the one before",
        edits: &[edit(
            "crates/postgres/queries/claim_in_turns.sql",
            "(least(c.taken, c.allowance) + row_number()",
            "(0 * c.taken + row_number()",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-some-tenants-without-turns",
        bug: "tenants beyond the first hundreds have no turn while those have jobs",
        edits: &[edit(
            "crates/postgres/src/claim.rs",
            "Some(if starts.len() >= head_limit {",
            "Some(if starts.len() > head_limit {",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-reprioritized-job-in-no-batch",
        bug: "a job with a new priority is in no ready batch",
        edits: &[edit(
            "crates/postgres/queries/reprioritize_job.sql",
            "FROM moved WHERE state = 'pending'\n",
            "FROM moved WHERE state = 'created'\n",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-idempotency-checked-in-memory",
        bug: "an idempotency key is known only to the process that saw it",
        edits: &[
            edit(
                "crates/postgres/queries/enqueue_jobs.sql",
                "ON CONFLICT DO NOTHING",
                "ON CONFLICT (tenant, job_type, key) DO UPDATE SET job_id = excluded.job_id, fingerprint = excluded.fingerprint",
            ),
            edit(
                "crates/postgres/src/job.rs",
                "        let parents = check_job(&job)?;\n",
                r#"        let parents = check_job(&job)?;
        type Seen = (usize, String, orchestrix_core::Fingerprint, JobId);
        static SEEN: std::sync::Mutex<Vec<Seen>> = std::sync::Mutex::new(Vec::new());
        let name = job.idempotency_key.as_ref().map(|key| format!("{} {} {key}", job.tenant, job.job_type));
        let here = std::sync::Arc::as_ptr(&self.0) as usize;
        let print = orchestrix_core::Fingerprint::of(&job);
        let find = |name: &String| {
            let seen = SEEN.lock().expect("no poison");
            seen.iter().find(|one| one.0 == here && one.1 == *name).cloned()
        };
        if let Some((_, _, first, id)) = name.as_ref().and_then(find) {
            if first != print {
                return Err(orchestrix_store::StoreError::IdempotencyKeyReused { existing: id });
            }
            let state = self.job_summary(id).await?.map_or(JobState::Completed, |job| job.state);
            return Ok(Enqueued { id, state, duplicate: true });
        }
        if let Some(name) = name {
            let enqueued = self.0.coalescer.enqueue(job).await?;
            SEEN.lock().expect("no poison").push((here, name, print, enqueued.id));
            return Ok(enqueued);
        }
"#,
            ),
        ],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-fence-not-checked",
        bug: "a deposed leader's writes are accepted",
        edits: &[edit(
            "crates/postgres/src/fenced_tx.rs",
            "fence.check(Epoch(row.get(\"epoch\")))?;",
            "let _ = Epoch(row.get(\"epoch\"));",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-fence-without-lock",
        bug: "another node may take over while a leader's transaction is open",
        edits: &[edit("crates/postgres/queries/lock_epoch.sql", " FOR SHARE", "")],
        packages: &["orchestrix-coordinator"],
    },
    Mutant {
        name: "postgres-leader-without-timeouts",
        bug: "a leader stopped in the middle of a transaction prevents every takeover",
        edits: &[edit(
            "crates/postgres/src/fenced_tx.rs",
            "let timeout = millis(patience).max(1);",
            "let timeout = 0 * millis(patience);",
        )],
        packages: &["orchestrix-coordinator"],
    },
    Mutant {
        name: "postgres-vacuum-never-due",
        bug: "the leader leaves all dead rows to autovacuum",
        edits: &[edit(
            "crates/postgres/src/vacuum.rs",
            "Self::DeadRows => dead > live.max(FEW_ROWS),",
            "Self::DeadRows => dead > i64::MAX / 2 + live,",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-drained-table-never-shrunk",
        bug: "the leader never shrinks a table, so the planner may expect no rows in many pages",
        edits: &[edit(
            "crates/postgres/src/vacuum.rs",
            "let truncate = reason == Reason::EmptyPages;",
            "let truncate = false;",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-vacuum-repeated-in-vain",
        bug: "rows that an old snapshot holds are vacuumed again in every step",
        edits: &[edit("crates/postgres/src/vacuum.rs", "now >= vain.ended + vain.pause", "now >= vain.ended")],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-vacuum-forever-in-vain",
        bug: "a table whose dead rows vacuum could not remove once is never vacuumed again",
        edits: &[edit(
            "crates/postgres/src/vacuum.rs",
            "(|vain| now >= vain.ended + vain.pause)",
            "(|vain| now < vain.ended)",
        )],
        packages: POSTGRES,
    },
    Mutant {
        name: "postgres-leader-without-vacuum",
        bug: "the leader does not vacuum tables",
        edits: &[edit(
            "crates/coordinator/src/services/vacuum_tables.rs",
            "leader.store.vacuum_tables().await?",
            "if leader.options.term.is_zero() { leader.store.vacuum_tables().await? } else { 0 }",
        )],
        packages: &["orchestrix-coordinator"],
    },
];
