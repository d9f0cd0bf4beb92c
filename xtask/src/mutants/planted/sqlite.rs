//! Bugs in the store on SQLite.

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
