//! Every route and what it answers, said here once more and independently of the server: who may use it, whether one who is bound to a
//! tenant may, what it acts on, and what is answered if that is one's own, another's, and not there.

use serde_json::{Value, json};

// Who may use a route.
const ANYBODY: &str = "anybody";
const CLIENTS: &str = "client operator admin";
const WORKERS: &str = "worker operator admin";
const OPERATORS: &str = "operator admin";
const ADMINS: &str = "admin";

/// What a request is about. Made anew for each: some requests are the end of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    /// Nothing that has an owner.
    Nothing,
    Pending,
    Held,
    Completed,
    Dead,
    Schedule,
    Operation,
    /// A job that somebody works on, by the token of its lease.
    Lease,
    Queue,
    Worker,
    Key,
}

/// A status, and the code of the problem if it is one.
pub(super) type Answer = (u16, &'static str);

/// One request.
pub(super) struct Row {
    /// As it is described.
    pub(super) route: &'static str,
    /// The roles.
    pub(super) who: &'static str,
    /// Whether keys that are bound to a tenant may.
    pub(super) bound: bool,
    pub(super) on: On,
    /// What stands behind the path.
    pub(super) query: &'static str,
    /// The body, by the id of what the request is about, and a tenant that may be named.
    pub(super) body: fn(&str, &str) -> Value,
    /// If it is one's own; or anybody's, for whoever is bound to no tenant.
    pub(super) own: Answer,
    /// If it is another tenant's. Where this is what is answered of what is not there, it is so to the letter.
    pub(super) foreign: Answer,
    /// If it is not there.
    pub(super) unknown: Answer,
}

impl Row {
    const fn of(route: &'static str, who: &'static str, bound: bool, on: On, own: Answer, unknown: Answer) -> Self {
        Self { route, who, bound, on, query: "", body: empty, own, foreign: unknown, unknown }
    }

    // About nothing that has an owner.
    const fn plain(route: &'static str, who: &'static str, bound: bool, answer: Answer) -> Self {
        Self::of(route, who, bound, On::Nothing, answer, answer)
    }

    // About a job, by clients.
    const fn job(route: &'static str, on: On, own: Answer) -> Self {
        Self::of(route, CLIENTS, true, on, own, NO_JOB)
    }

    // About a job, by operators.
    const fn admin(route: &'static str, on: On, own: Answer) -> Self {
        Self::of(route, OPERATORS, true, on, own, NO_JOB)
    }

    const fn schedule(route: &'static str, who: &'static str, own: Answer) -> Self {
        Self::of(route, who, true, On::Schedule, own, NO_SCHEDULE)
    }

    const fn lease(route: &'static str) -> Self {
        Self::of(route, WORKERS, false, On::Lease, OK, (409, "lease_lost"))
    }

    const fn with(self, body: fn(&str, &str) -> Value) -> Self {
        Self { body, ..self }
    }

    const fn asking(self, query: &'static str) -> Self {
        Self { query, ..self }
    }

    /// Whether somebody with this role may ask it, bound to a tenant or not.
    pub(super) fn lets(&self, role: &str, is_bound: bool) -> bool {
        self.who == ANYBODY || (self.who.split(' ').any(|one| one == role) && (self.bound || !is_bound))
    }

    /// The request about what is called `it`.
    pub(super) fn request(&self, it: &str) -> String {
        let holes = ["{jobId}", "{name}", "{id}", "{leaseToken}", "{workerId}", "{keyId}"];
        let path = holes.iter().fold(self.route.to_owned(), |path, hole| path.replace(hole, it));
        path + self.query
    }
}

fn empty(_: &str, _: &str) -> Value {
    json!({})
}

const OK: Answer = (200, "");
const CREATED: Answer = (201, "");
const ACCEPTED: Answer = (202, "");
const GONE: Answer = (204, "");
const INVALID: Answer = (422, "validation_failed");
const NO_JOB: Answer = (404, "job_not_found");
const NO_SCHEDULE: Answer = (404, "schedule_not_found");
const NO_OPERATION: Answer = (404, "operation_not_found");

/// Pages for people, which are no part of the description.
pub(super) const PAGES: &[&str] = &["GET /docs", "GET /docs/", "GET /docs/{*file}"];

/// Every request that there is. Some are there twice: their bodies name what has an owner.
pub(super) const ROWS: &[Row] = &[
    Row::plain("GET /healthz", ANYBODY, true, OK),
    Row::plain("GET /readyz", ANYBODY, true, OK),
    Row::plain("GET /openapi.json", ANYBODY, true, OK),
    Row::plain("GET /metrics", OPERATORS, false, OK),
    Row::plain("POST /jobs", CLIENTS, true, ACCEPTED).with(|_, _| json!({"jobType": "t"})),
    Row::of("POST /jobs", CLIENTS, true, On::Pending, ACCEPTED, INVALID).with(after),
    Row::of("POST /jobs", CLIENTS, true, On::Completed, ACCEPTED, INVALID).with(after),
    Row::of("POST /jobs", CLIENTS, true, On::Dead, ACCEPTED, INVALID).with(after),
    Row::plain("POST /jobs/batch", CLIENTS, true, ACCEPTED).with(|_, _| json!({"jobs": [{"jobType": "t"}]})),
    Row::of("POST /jobs/batch", CLIENTS, true, On::Pending, ACCEPTED, INVALID)
        .with(|id, tenant| json!({"jobs": [{"jobType": "t"}, after(id, tenant)]})),
    Row::job("GET /jobs/{jobId}", On::Pending, OK),
    Row::job("GET /jobs/{jobId}", On::Completed, OK).asking("?waitSeconds=1"),
    Row::job("GET /jobs/{jobId}/result", On::Completed, OK),
    Row::job("GET /jobs/{jobId}/result", On::Pending, (409, "not_finished")),
    Row::job("POST /jobs/{jobId}/cancel", On::Pending, ACCEPTED),
    Row::job("POST /jobs/{jobId}/cancel", On::Dead, (409, "job_finished")),
    Row::job("POST /jobs/{jobId}/release", On::Held, ACCEPTED),
    Row::job("GET /jobs/{jobId}/events", On::Completed, OK),
    // Who may hear what over it is in `live`.
    Row::plain("GET /ws", CLIENTS, true, (400, "malformed_request")),
    Row::plain("GET /schedules", CLIENTS, true, OK),
    Row::schedule("GET /schedules/{name}", CLIENTS, OK),
    Row::schedule("GET /schedules/{name}/next", CLIENTS, OK),
    Row::schedule("GET /schedules/{name}/occurrences", CLIENTS, OK),
    // A name is everybody's, so one that is taken cannot seem to be free.
    Row { foreign: NO_SCHEDULE, ..Row::of("PUT /schedules/{name}", OPERATORS, true, On::Schedule, OK, CREATED) }
        .with(hourly),
    Row::schedule("DELETE /schedules/{name}", OPERATORS, GONE),
    Row::schedule("POST /schedules/{name}/pause", OPERATORS, OK),
    Row::schedule("POST /schedules/{name}/resume", OPERATORS, OK),
    Row::schedule("POST /schedules/{name}/trigger", OPERATORS, ACCEPTED),
    Row::schedule("POST /schedules/{name}/backfill", OPERATORS, ACCEPTED).with(past),
    Row::plain("POST /worker/register", WORKERS, false, OK).with(|_, _| json!({"workerId": "w9", "instanceId": "i"})),
    Row::plain("POST /worker/leases", WORKERS, false, OK)
        .with(|_, _| json!({"workerId": "w9", "queues": ["*"], "max": 1})),
    Row::plain("POST /worker/heartbeat", WORKERS, false, OK).with(|_, _| json!({"workerId": "w9", "leaseTokens": []})),
    Row::plain("POST /worker/leave", WORKERS, false, GONE).with(|_, _| json!({"workerId": "w9"})),
    Row::of("POST /worker/leases/complete-batch", WORKERS, false, On::Lease, OK, OK)
        .with(|token, _| json!({"items": [{"leaseToken": token}]})),
    Row::lease("POST /worker/leases/{leaseToken}/complete"),
    Row::lease("POST /worker/leases/{leaseToken}/fail").with(|_, _| json!({"error": "e"})),
    Row::lease("POST /worker/leases/{leaseToken}/progress").with(|_, _| json!({"percent": 5})),
    Row::lease("POST /worker/leases/{leaseToken}/logs").with(|_, _| json!({"lines": [{"message": "m"}]})),
    Row::lease("POST /worker/leases/{leaseToken}/snooze").with(|_, _| json!({"seconds": 1})),
    Row::lease("POST /worker/leases/{leaseToken}/release"),
    Row::plain("GET /admin/jobs", OPERATORS, true, OK),
    Row::admin("GET /admin/jobs/{jobId}", On::Dead, OK),
    Row::admin("GET /admin/jobs/{jobId}/logs", On::Completed, OK),
    Row::admin("GET /admin/jobs/{jobId}/explain", On::Pending, OK),
    Row::admin("POST /admin/jobs/{jobId}/retry", On::Dead, OK),
    Row::admin("POST /admin/jobs/{jobId}/retry", On::Pending, (409, "not_finished")),
    Row::admin("POST /admin/jobs/{jobId}/cancel", On::Pending, ACCEPTED),
    Row::admin("POST /admin/jobs/{jobId}/priority", On::Pending, OK).with(|_, _| json!({"priority": 7})),
    Row::plain("POST /admin/jobs/bulk", OPERATORS, true, ACCEPTED)
        .with(|_, _| json!({"action": "cancel", "filter": {"state": "pending"}, "dryRun": true})),
    Row::plain("GET /admin/operations", OPERATORS, true, OK),
    Row::of("GET /admin/operations/{id}", OPERATORS, true, On::Operation, OK, NO_OPERATION),
    Row::of("POST /admin/operations/{id}/abort", OPERATORS, true, On::Operation, ACCEPTED, NO_OPERATION),
    Row::plain("GET /admin/audit", OPERATORS, true, OK),
    Row::plain("GET /admin/stats", OPERATORS, false, OK),
    Row::plain("GET /admin/dlq", OPERATORS, true, OK),
    // What could not be retried is told one by one.
    Row::of("POST /admin/dlq/redrive", OPERATORS, true, On::Dead, OK, OK).with(|id, _| json!({"jobIds": [id]})),
    Row::plain("POST /admin/dlq/redrive", OPERATORS, true, OK).with(|_, _| json!({"filter": {}})),
    Row::plain("POST /admin/dlq/purge", OPERATORS, false, OK).with(|_, _| json!({"olderThanSeconds": 3600})),
    Row::plain("GET /admin/queues", OPERATORS, false, OK),
    // One that holds nothing is a queue all the same.
    Row::of("GET /admin/queues/{name}", OPERATORS, false, On::Queue, OK, OK),
    Row::plain("PUT /admin/queues/{name}", OPERATORS, false, OK).with(|_, _| json!({"paused": false})),
    Row::plain("GET /admin/workers", OPERATORS, false, OK),
    Row::of("POST /admin/workers/{workerId}/drain", OPERATORS, false, On::Worker, ACCEPTED, (404, "worker_not_found")),
    Row::plain("GET /admin/nodes", OPERATORS, false, OK),
    Row::plain("GET /admin/keys", ADMINS, false, OK),
    Row::plain("POST /admin/keys", ADMINS, false, CREATED).with(|_, _| json!({"name": "n", "role": "client"})),
    Row::of("DELETE /admin/keys/{keyId}", ADMINS, false, On::Key, GONE, (404, "key_not_found")),
];

fn after(id: &str, tenant: &str) -> Value {
    json!({"jobType": "t", "dependsOn": [id], "tenant": tenant})
}

fn hourly(_: &str, tenant: &str) -> Value {
    json!({"everySeconds": 60, "job": {"jobType": "t", "tenant": tenant}})
}

fn past(_: &str, _: &str) -> Value {
    json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T02:00:00Z"})
}
