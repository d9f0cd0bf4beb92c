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
            "crates/sqlite/queries/overdue_leases.sql",
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
            edit("crates/sqlite/src/settle.rs", "_ if blocked && job.waits_for == 1 =>", "_ if blocked =>"),
            edit("crates/sqlite/src/settle.rs", "job.waits_for.saturating_sub(1)", "0"),
        ],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-attempt-counted-twice",
        bug: "an ended attempt is counted twice",
        edits: &[edit("crates/sqlite/queries/settle.sql", "attempts = ?8,", "attempts = ?8 + (?8 - attempts),")],
        packages: SQLITE,
    },
    Mutant {
        name: "sqlite-idempotency-checked-in-memory",
        bug: "idempotency keys are remembered by the process, not by the file",
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
];
