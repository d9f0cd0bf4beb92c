//! The bugs that are planted, each a few words changed in a copy of the tree. Each breaks a promise that the product is
//! built on, and every test suite of the crates it names runs until one test fails.

/// A bug to plant.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// What it is called.
    pub(crate) name: &'static str,
    /// What is wrong with it.
    pub(crate) bug: &'static str,
    /// What is changed.
    pub(crate) edits: &'static [Edit],
    /// The packages whose tests must notice.
    pub(crate) packages: &'static [&'static str],
}

/// A change of one file: every occurrence of `from`, of which there must be one at least.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) file: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

const fn edit(file: &'static str, from: &'static str, to: &'static str) -> Edit {
    Edit { file, from, to }
}

const POSTGRES: &[&str] = &["orchestrix-postgres"];
const SQLITE: &[&str] = &["orchestrix-sqlite"];
const WORKER: &[&str] = &["orchestrix-worker"];

/// All of them.
pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "core-attempt-counted-twice",
        bug: "the end of an attempt uses up two of the budget",
        edits: &[edit(
            "crates/core/src/lifecycle.rs",
            "let attempts = self.attempts + u16::from(costs);",
            "let attempts = self.attempts + 2 * u16::from(costs);",
        )],
        packages: &["orchestrix-store"],
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
                "        let parents = check_alone(&job)?;\n",
                r#"        let parents = check_alone(&job)?;
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
        bug: "no write looks at the token's secret",
        edits: &[edit(
            "crates/sqlite/src/row.rs",
            "self.counter == token.counter && self.secret == Some(token.secret)",
            "self.counter == token.counter",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-completion-by-id",
        bug: "a verdict looks at the job's id alone",
        edits: &[edit(
            "crates/sqlite/src/row.rs",
            "self.counter == token.counter && self.secret == Some(token.secret)",
            "self.id == token.job",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-reap-without-expiry-check",
        bug: "leases are taken back whether or not they ran out",
        edits: &[edit(
            "crates/sqlite/queries/overdue_leases.sql",
            "AND lease_expires_at <= ?1 ",
            "AND ?1 IS NOT NULL ",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-answer-before-commit",
        bug: "operations are answered as soon as they are done, before the commit",
        edits: &[edit(
            "crates/sqlite/src/writer.rs",
            "            done += 1;\n",
            "            taken.remove(done).answer(None);\n",
        )],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-dependency-unblocked-early",
        bug: "the first parent that finishes lets its child go",
        edits: &[
            edit("crates/sqlite/src/settle.rs", "_ if blocked && job.waits_for == 1 =>", "_ if blocked =>"),
            edit("crates/sqlite/src/settle.rs", "job.waits_for.saturating_sub(1)", "0"),
        ],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-attempt-counted-twice",
        bug: "the end of an attempt is counted twice",
        edits: &[edit("crates/sqlite/queries/settle.sql", "attempts = ?8,", "attempts = ?8 + (?8 - attempts),")],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-idempotency-checked-in-memory",
        bug: "a key is known to the process that saw it, not to the file",
        edits: &[
            edit("crates/sqlite/queries/record_key.sql", "INSERT INTO", "INSERT OR REPLACE INTO"),
            edit(
                "crates/sqlite/src/enqueue.rs",
                "/// What one job of a call comes to.\n",
                "static SEEN: std::sync::Mutex<Vec<(std::thread::ThreadId, JobId)>> = std::sync::Mutex::new(Vec::new());\n\n",
            ),
            edit(
                "crates/sqlite/src/enqueue.rs",
                "match (known, inside.entry(key)) {",
                "match (known.filter(|known| seen(known.0)), inside.entry(key)) {",
            ),
            edit(
                "crates/sqlite/src/enqueue.rs",
                "        let mut inside = HashMap::new();\n",
                r#"        let mut inside = HashMap::new();
        let here = std::thread::current().id();
        let seen = |id: JobId| SEEN.lock().expect("no poison").contains(&(here, id));
"#,
            ),
            edit(
                "crates/sqlite/src/enqueue.rs",
                "vacant.insert((id, fingerprint));",
                "vacant.insert((id, fingerprint));\n                    SEEN.lock().expect(\"no poison\").push((here, id));",
            ),
        ],
        packages: SQLITE,
    },
    Mutant {
        name: "worker-leases-not-renewed",
        bug: "no lease is ever due to be renewed",
        edits: &[edit(
            "crates/worker/src/lease.rs",
            "if due <= horizon.min(now + lease.context.lease() / 8) && tokens.len() < MAX_TOKENS {",
            "if due <= horizon.min(now + lease.context.lease() / 8) && tokens.len() > MAX_TOKENS {",
        )],
        packages: WORKER,
    },
    Mutant {
        name: "worker-shares-the-applications-thread",
        bug: "all that a worker does is on the runtime that handlers may block",
        edits: &[edit(
            "crates/worker/src/keeper.rs",
            "let drained = runtime.block_on(keep(",
            "let drained = shop.application.clone().block_on(keep(",
        )],
        packages: WORKER,
    },
    Mutant {
        name: "worker-outcomes-forgotten",
        bug: "an outcome that cannot be told at once is forgotten",
        edits: &[edit(
            "crates/worker/src/complete.rs",
            "            pause.warn_once(&error, items.len());\n",
            "            pause.warn_once(&error, items.len());\n            return;\n",
        )],
        packages: WORKER,
    },
    Mutant {
        name: "worker-shutdown-keeps-jobs",
        bug: "jobs that are left at a shutdown are not handed back",
        edits: &[edit(
            "crates/worker/src/execute.rs",
            "        (Some(_) | None, _) => Verdict::Release,",
            "        (Some(_) | None, _) => return None,",
        )],
        packages: WORKER,
    },
    Mutant {
        name: "worker-takes-jobs-of-the-dead",
        bug: "a handler whose lease was lost tells its outcome all the same, and is not stopped",
        edits: &[edit(
            "crates/worker/src/lease.rs",
            "                    lease.context.stop().ask(StopReason::LeaseLost);\n",
            "",
        )],
        packages: WORKER,
    },
];
