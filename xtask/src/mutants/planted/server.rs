//! Bugs in the server: who may do what, and what is kept of it.

use super::{Mutant, edit};

const SERVER: &[&str] = &["orchestrix-server"];

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "server-roles-not-asked",
        bug: "whoever has a key may do everything",
        edits: &[edit("crates/server/src/around.rs", "if !access.who.has(caller.role()) {", "if false {")],
        packages: SERVER,
    },
    Mutant {
        name: "server-foreign-jobs-are-there",
        bug: "one who is bound to a tenant reads and cancels others' jobs",
        edits: &[edit(
            "crates/server/src/auth/caller.rs",
            "self.tenant().is_none_or(|own| own == tenant)",
            "self.tenant().is_none_or(|own| own == tenant || !tenant.as_str().is_empty())",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "server-lost-key-is-given-jobs",
        bug: "a key that was revoked during a long poll still gets jobs",
        edits: &[edit(
            "crates/server/src/workers/leases.rs",
            "                    app.keys.check(&caller).await?;\n",
            "",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "server-wrong-keys-not-counted",
        bug: "one may try keys for ever",
        edits: &[edit(
            "crates/server/src/auth/keys.rs",
            "|from| self.wrong.count(from, Instant::now())",
            "|_| Ok::<(), Duration>(())",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "server-deed-without-a-line",
        bug: "what cannot be written into the audit is done all the same",
        edits: &[edit(
            "crates/server/src/around.rs",
            "Some(Line::begin(&app.store, deed).await?)",
            "Line::begin(&app.store, deed).await.ok()",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "server-payloads-in-the-audit",
        bug: "the audit keeps whatever was sent",
        edits: &[edit(
            "crates/server/src/around.rs",
            ".filter(|text| keep(text))",
            ".filter(|text| keep(text) || !text.is_empty())",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "server-lease-tokens-in-the-audit",
        bug: "whoever reads the audit can end others' jobs",
        edits: &[edit(
            "crates/server/src/auth/audit.rs",
            "without_runs(&without_tokens(&read))",
            "without_runs(&read)",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "server-cursor-tells-a-foreign-job",
        bug: "where a page ends is the id of a job that was not asked for",
        edits: &[edit(
            "crates/memory/src/inspect.rs",
            "last.zip(ids.next()).map(|(last, next)| last.parted_from(next))",
            "last.zip(ids.next()).map(|(last, _)| last)",
        )],
        packages: &["orchestrix-memory"],
    },
    Mutant {
        name: "server-drain-lost-by-a-registration",
        bug: "a worker that says again who it is forgets that it was told to drain",
        edits: &[edit(
            "crates/sqlite/queries/register_worker.sql",
            "CASE WHEN fresh THEN 'run' ELSE w.directive END",
            "'run'",
        )],
        packages: &["orchestrix-sqlite"],
    },
    Mutant {
        name: "server-drained-worker-stays",
        bug: "a worker that an operator drains never ends",
        edits: &[edit(
            "crates/worker/src/keeper.rs",
            "() = shop.told_to_drain() => false,",
            "() = async { shop.told_to_drain().await; std::future::pending().await } => false,",
        )],
        packages: &["orchestrix-worker"],
    },
];
