//! The expected response of every route, independent of the server's own tables: which roles may call it, whether a key
//! bound to a tenant may, which resource it acts on, and the response for an own, a foreign and an unknown resource.

use serde_json::{Value, json};

// The roles that may call a route.
const PUBLIC: &str = "public";
const CLIENTS: &str = "client operator admin";
const WORKERS: &str = "worker operator admin";
const OPERATORS: &str = "operator admin";
const ADMINS: &str = "admin";

/// The resource of a request. Created anew for each request, because some requests delete it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resource {
    /// No resource with an owner.
    None,
    Pending,
    Held,
    Completed,
    Dead,
    Schedule,
    Operation,
    /// A running job, identified by its lease token.
    Lease,
    Queue,
    Tenant,
    Worker,
    Key,
}

/// A status, and the code if it is a problem.
pub(super) type Expected = (u16, &'static str);

/// One request and its expected responses.
pub(super) struct Row {
    /// The route as documented.
    pub(super) route: &'static str,
    /// The roles that may call the route.
    pub(super) roles: &'static str,
    /// Whether a key bound to a tenant may call the route.
    pub(super) allows_bound: bool,
    pub(super) resource: Resource,
    /// The query string.
    pub(super) query: &'static str,
    /// Builds the body from the id of the resource and a tenant that the caller may name.
    pub(super) body: fn(&str, &str) -> Value,
    /// The response for a resource of the caller's tenant, or of any tenant if the key is not bound.
    pub(super) own: Expected,
    /// The response for a resource of another tenant. If it equals `unknown`, the bodies must be equal too.
    pub(super) foreign: Expected,
    /// The response for a resource that does not exist.
    pub(super) unknown: Expected,
}

impl Row {
    const fn new(
        route: &'static str,
        roles: &'static str,
        allows_bound: bool,
        resource: Resource,
        own: Expected,
        unknown: Expected,
    ) -> Self {
        Self { route, roles, allows_bound, resource, query: "", body: empty, own, foreign: unknown, unknown }
    }

    // A request without a resource that has an owner.
    const fn plain(route: &'static str, roles: &'static str, allows_bound: bool, expected: Expected) -> Self {
        Self::new(route, roles, allows_bound, Resource::None, expected, expected)
    }

    // A client's request about a job.
    const fn job(route: &'static str, resource: Resource, own: Expected) -> Self {
        Self::new(route, CLIENTS, true, resource, own, NO_JOB)
    }

    // An operator's request about a job.
    const fn admin(route: &'static str, resource: Resource, own: Expected) -> Self {
        Self::new(route, OPERATORS, true, resource, own, NO_JOB)
    }

    const fn schedule(route: &'static str, roles: &'static str, own: Expected) -> Self {
        Self::new(route, roles, true, Resource::Schedule, own, NO_SCHEDULE)
    }

    const fn lease(route: &'static str) -> Self {
        Self::new(route, WORKERS, false, Resource::Lease, OK, (409, "lease_lost"))
    }

    const fn with_body(self, body: fn(&str, &str) -> Value) -> Self {
        Self { body, ..self }
    }

    const fn with_query(self, query: &'static str) -> Self {
        Self { query, ..self }
    }

    /// Whether a key with this role may call the route.
    pub(super) fn allows(&self, role: &str, is_bound: bool) -> bool {
        self.roles == PUBLIC || (self.roles.split(' ').any(|one| one == role) && (self.allows_bound || !is_bound))
    }

    /// The request for the resource with this id.
    pub(super) fn request(&self, id: &str) -> String {
        let placeholders = ["{jobId}", "{name}", "{id}", "{leaseToken}", "{workerId}", "{keyId}"];
        let path = placeholders.iter().fold(self.route.to_owned(), |path, placeholder| path.replace(placeholder, id));
        path + self.query
    }
}

fn empty(_: &str, _: &str) -> Value {
    json!({})
}

const OK: Expected = (200, "");
const CREATED: Expected = (201, "");
const ACCEPTED: Expected = (202, "");
const NO_CONTENT: Expected = (204, "");
const INVALID: Expected = (422, "validation_failed");
const NO_JOB: Expected = (404, "job_not_found");
const NO_SCHEDULE: Expected = (404, "schedule_not_found");
const NO_OPERATION: Expected = (404, "operation_not_found");

/// Pages that are not part of the OpenAPI document.
pub(super) const PAGES: &[&str] = &["GET /docs", "GET /docs/", "GET /docs/{*file}"];

/// All requests. Some routes appear twice, because their bodies name a resource with an owner.
pub(super) const ROWS: &[Row] = &[
    Row::plain("GET /healthz", PUBLIC, true, OK),
    Row::plain("GET /readyz", PUBLIC, true, OK),
    Row::plain("GET /openapi.json", PUBLIC, true, OK),
    Row::plain("GET /metrics", OPERATORS, false, OK),
    Row::plain("POST /jobs", CLIENTS, true, ACCEPTED).with_body(|_, _| json!({"jobType": "t"})),
    Row::new("POST /jobs", CLIENTS, true, Resource::Pending, ACCEPTED, INVALID).with_body(dependent_job),
    Row::new("POST /jobs", CLIENTS, true, Resource::Completed, ACCEPTED, INVALID).with_body(dependent_job),
    Row::new("POST /jobs", CLIENTS, true, Resource::Dead, ACCEPTED, INVALID).with_body(dependent_job),
    Row::plain("POST /jobs/batch", CLIENTS, true, ACCEPTED).with_body(|_, _| json!({"jobs": [{"jobType": "t"}]})),
    Row::new("POST /jobs/batch", CLIENTS, true, Resource::Pending, ACCEPTED, INVALID)
        .with_body(|id, tenant| json!({"jobs": [{"jobType": "t"}, dependent_job(id, tenant)]})),
    Row::job("GET /jobs/{jobId}", Resource::Pending, OK),
    Row::job("GET /jobs/{jobId}", Resource::Completed, OK).with_query("?waitSeconds=1"),
    Row::job("GET /jobs/{jobId}/result", Resource::Completed, OK),
    Row::job("GET /jobs/{jobId}/result", Resource::Pending, (409, "not_finished")),
    Row::job("POST /jobs/{jobId}/cancel", Resource::Pending, ACCEPTED),
    Row::job("POST /jobs/{jobId}/cancel", Resource::Dead, (409, "job_finished")),
    Row::job("POST /jobs/{jobId}/release", Resource::Held, ACCEPTED),
    Row::job("GET /jobs/{jobId}/events", Resource::Completed, OK),
    // The subscriptions of the WebSocket are tested in `live`.
    Row::plain("GET /ws", CLIENTS, true, (400, "malformed_request")),
    Row::plain("GET /schedules", CLIENTS, true, OK),
    Row::schedule("GET /schedules/{name}", CLIENTS, OK),
    Row::schedule("GET /schedules/{name}/next", CLIENTS, OK),
    Row::schedule("GET /schedules/{name}/occurrences", CLIENTS, OK),
    // Names are shared by all tenants, so a taken name cannot look free.
    Row { foreign: NO_SCHEDULE, ..Row::new("PUT /schedules/{name}", OPERATORS, true, Resource::Schedule, OK, CREATED) }
        .with_body(schedule_body),
    Row::schedule("DELETE /schedules/{name}", OPERATORS, NO_CONTENT),
    Row::schedule("POST /schedules/{name}/pause", OPERATORS, OK),
    Row::schedule("POST /schedules/{name}/resume", OPERATORS, OK),
    Row::schedule("POST /schedules/{name}/trigger", OPERATORS, ACCEPTED),
    Row::schedule("POST /schedules/{name}/backfill", OPERATORS, ACCEPTED).with_body(past_range),
    Row::plain("POST /worker/register", WORKERS, false, OK)
        .with_body(|_, _| json!({"workerId": "w9", "instanceId": "i"})),
    Row::plain("POST /worker/leases", WORKERS, false, OK)
        .with_body(|_, _| json!({"workerId": "w9", "queues": ["*"], "max": 1})),
    Row::plain("POST /worker/heartbeat", WORKERS, false, OK)
        .with_body(|_, _| json!({"workerId": "w9", "leaseTokens": []})),
    Row::plain("POST /worker/leave", WORKERS, false, NO_CONTENT).with_body(|_, _| json!({"workerId": "w9"})),
    Row::new("POST /worker/leases/complete-batch", WORKERS, false, Resource::Lease, OK, OK)
        .with_body(|token, _| json!({"items": [{"leaseToken": token}]})),
    Row::lease("POST /worker/leases/{leaseToken}/complete"),
    Row::lease("POST /worker/leases/{leaseToken}/fail").with_body(|_, _| json!({"error": "e"})),
    Row::lease("POST /worker/leases/{leaseToken}/progress").with_body(|_, _| json!({"percent": 5})),
    Row::lease("POST /worker/leases/{leaseToken}/logs").with_body(|_, _| json!({"lines": [{"message": "m"}]})),
    Row::lease("POST /worker/leases/{leaseToken}/snooze").with_body(|_, _| json!({"seconds": 1})),
    Row::lease("POST /worker/leases/{leaseToken}/release"),
    Row::plain("GET /admin/jobs", OPERATORS, true, OK),
    Row::admin("GET /admin/jobs/{jobId}", Resource::Dead, OK),
    Row::admin("GET /admin/jobs/{jobId}/logs", Resource::Completed, OK),
    Row::admin("GET /admin/jobs/{jobId}/explain", Resource::Pending, OK),
    Row::admin("POST /admin/jobs/{jobId}/retry", Resource::Dead, OK),
    Row::admin("POST /admin/jobs/{jobId}/retry", Resource::Pending, (409, "not_finished")),
    Row::admin("POST /admin/jobs/{jobId}/cancel", Resource::Pending, ACCEPTED),
    Row::admin("POST /admin/jobs/{jobId}/priority", Resource::Pending, OK).with_body(|_, _| json!({"priority": 7})),
    Row::plain("POST /admin/jobs/bulk", OPERATORS, true, ACCEPTED)
        .with_body(|_, _| json!({"action": "cancel", "filter": {"state": "pending"}, "dryRun": true})),
    Row::plain("GET /admin/operations", OPERATORS, true, OK),
    Row::new("GET /admin/operations/{id}", OPERATORS, true, Resource::Operation, OK, NO_OPERATION),
    Row::new("POST /admin/operations/{id}/abort", OPERATORS, true, Resource::Operation, ACCEPTED, NO_OPERATION),
    Row::plain("GET /admin/audit", OPERATORS, true, OK),
    Row::plain("GET /admin/stats", OPERATORS, false, OK),
    Row::plain("GET /admin/dlq", OPERATORS, true, OK),
    // The response lists each job that was not redriven.
    Row::new("POST /admin/dlq/redrive", OPERATORS, true, Resource::Dead, OK, OK)
        .with_body(|id, _| json!({"jobIds": [id]})),
    Row::plain("POST /admin/dlq/redrive", OPERATORS, true, OK).with_body(|_, _| json!({"all": true})),
    Row::plain("POST /admin/dlq/redrive", OPERATORS, true, INVALID).with_body(|_, _| json!({"filter": {}})),
    Row::plain("POST /admin/dlq/purge", OPERATORS, false, OK).with_body(|_, _| json!({"olderThanSeconds": 3600})),
    Row::plain("GET /admin/queues", OPERATORS, false, OK),
    // An empty queue exists, too.
    Row::new("GET /admin/queues/{name}", OPERATORS, false, Resource::Queue, OK, OK),
    Row::plain("PUT /admin/queues/{name}", OPERATORS, false, OK).with_body(|_, _| json!({"paused": false})),
    Row::plain("GET /admin/tenants", OPERATORS, true, OK),
    Row::new("GET /admin/tenants/{name}", OPERATORS, true, Resource::Tenant, OK, (404, "not_found")),
    Row::new("PUT /admin/tenants/{name}", OPERATORS, false, Resource::Tenant, OK, INVALID)
        .with_body(|_, _| json!({"weight": 2})),
    Row::plain("GET /admin/workers", OPERATORS, false, OK),
    Row::new(
        "POST /admin/workers/{workerId}/drain",
        OPERATORS,
        false,
        Resource::Worker,
        ACCEPTED,
        (404, "worker_not_found"),
    ),
    Row::plain("GET /admin/nodes", OPERATORS, false, OK),
    Row::plain("GET /admin/keys", ADMINS, false, OK),
    Row::plain("POST /admin/keys", ADMINS, false, CREATED).with_body(|_, _| json!({"name": "n", "role": "client"})),
    Row::new("DELETE /admin/keys/{keyId}", ADMINS, false, Resource::Key, NO_CONTENT, (404, "key_not_found")),
];

fn dependent_job(id: &str, tenant: &str) -> Value {
    json!({"jobType": "t", "dependsOn": [id], "tenant": tenant})
}

fn schedule_body(_: &str, tenant: &str) -> Value {
    json!({"everySeconds": 60, "job": {"jobType": "t", "tenant": tenant}})
}

fn past_range(_: &str, _: &str) -> Value {
    json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T02:00:00Z"})
}
