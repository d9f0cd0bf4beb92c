//! Bugs in the server: authorization and the audit log.

use super::{Mutant, edit};

const SERVER: &[&str] = &["orchestrix-server"];

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "server-roles-not-checked",
        bug: "every key may do everything",
        edits: &[edit("crates/server/src/middleware.rs", "if !policy.roles.allow(caller.role()) {", "if false {")],
        packages: SERVER,
    },
    Mutant {
        name: "server-other-tenants-jobs-visible",
        bug: "a caller that is bound to a tenant reads and cancels other tenants' jobs",
        edits: &[edit(
            "crates/server/src/auth/principal.rs",
            "self.tenant().is_none_or(|own| own == tenant)",
            "self.tenant().is_none_or(|own| own == tenant || !tenant.as_str().is_empty())",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "server-bound-key-sets-its-weight",
        bug: "a caller that is bound to a tenant raises its own share",
        edits: &[edit(
            "crates/server/src/route_policy.rs",
            r#"is_under(route, "/admin/tenants") => (AllowedRoles::Operator, reads)"#,
            r#"is_under(route, "/admin/tenants") => (AllowedRoles::Operator, true)"#,
        )],
        packages: SERVER,
    },
    Mutant {
        name: "server-revoked-key-gets-jobs",
        bug: "a key that was revoked during its long poll gets jobs",
        edits: &[edit(
            "crates/server/src/workers/leases.rs",
            "                    app.authenticator.recheck(&caller).await?;\n",
            "",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "server-failed-attempts-not-limited",
        bug: "invalid keys are not rate limited",
        edits: &[edit(
            "crates/server/src/auth/authenticator.rs",
            "|client| self.failed_attempts.record(client, Instant::now())",
            "|_| Ok::<(), Duration>(())",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "server-action-without-audit-entry",
        bug: "an action happens though its audit entry cannot be written",
        edits: &[edit(
            "crates/server/src/middleware.rs",
            "Some(OpenAuditEntry::open(&app.store, action).await?)",
            "OpenAuditEntry::open(&app.store, action).await.ok()",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "server-payloads-in-audit-entries",
        bug: "audit entries contain every body",
        edits: &[edit(
            "crates/server/src/middleware.rs",
            ".filter(|text| accepts(text))",
            ".filter(|text| accepts(text) || !text.is_empty())",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "server-lease-tokens-in-audit-entries",
        bug: "audit entries contain usable lease tokens",
        edits: &[edit(
            "crates/server/src/auth/audit.rs",
            "redact_hex_runs(&redact_lease_tokens(&decoded))",
            "redact_hex_runs(&decoded)",
        )],
        packages: SERVER,
    },
    Mutant {
        name: "server-cursor-reveals-another-tenants-job",
        bug: "a page cursor contains the id of a job that the caller may not see",
        edits: &[edit(
            "crates/memory/src/inspect.rs",
            "last.zip(ids.next()).map(|(last, next)| last.cursor_above(next))",
            "last.zip(ids.next()).map(|(last, _)| last)",
        )],
        packages: &["orchestrix-memory"],
    },
    Mutant {
        name: "server-drain-lost-by-a-registration",
        bug: "a worker that registers again loses its drain directive",
        edits: &[edit(
            "crates/sqlite/queries/register_worker.sql",
            "CASE WHEN fresh THEN 'run' ELSE w.directive END",
            "'run'",
        )],
        packages: &["orchestrix-sqlite"],
    },
    Mutant {
        name: "server-drained-worker-stays",
        bug: "a worker that an operator drains never exits",
        edits: &[edit(
            "crates/worker/src/control_thread.rs",
            "() = shared.drain_requested() => false,",
            "() = async { shared.drain_requested().await; std::future::pending().await } => false,",
        )],
        packages: &["orchestrix-worker"],
    },
];
