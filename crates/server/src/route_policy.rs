//! The policy of every route, in one place: who may call it, how large its body may be, and whether it is audited.

use axum::http::Method;
use orchestrix_api::{
    admin::{dlq, job_state, key, operation, queue, tenant},
    schedule,
};
use orchestrix_core::{Role, Timestamp};

use crate::{
    auth::{authenticator::StoreUse, principal::Principal},
    body::{MAX_BATCH_BODY, MAX_BODY},
};

/// The policy of one route.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoutePolicy {
    pub(crate) roles: AllowedRoles,
    /// Whether a key that is bound to a tenant may call it: only where the handler restricts it to the tenant's data.
    pub(crate) tenant_keys: bool,
    /// The largest body, in bytes. `None` exempts the route from admission control: health checks, metrics and
    /// documentation are served even by an overloaded server.
    pub(crate) max_body: Option<usize>,
    pub(crate) audit: AuditPolicy,
}

impl RoutePolicy {
    /// Routes that are exempt from admission control do not use the store.
    pub(crate) const fn store_use(&self) -> StoreUse {
        match self.max_body {
            Some(_) => StoreUse::Required,
            None => StoreUse::None,
        }
    }
}

/// The roles that may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedRoles {
    /// Everyone, also without a key.
    Public,
    /// Clients, operators and admins.
    Client,
    /// Workers, operators and admins.
    Worker,
    /// Operators and admins.
    Operator,
    Admin,
}

/// Whether a request writes an audit entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AuditPolicy {
    Never,
    /// If an operator calls a client's route. Clients call it too, and would flood the audit log.
    Operators,
    /// If an operator calls a worker's route with a key. Workers call it all the time, and without a key when the
    /// server requires none.
    OperatorKeys,
    /// Always, with the body if the filter accepts it.
    Always(Option<BodyFilter>),
}

/// Accepts a body that the route can parse. Such a body is recorded whole. Any other is not recorded, because it may
/// contain anything.
pub(crate) type BodyFilter = fn(&str) -> bool;

impl AuditPolicy {
    /// Whether a request of this caller writes an audit entry, and the filter of the body that it records.
    pub(crate) fn applies_to(self, caller: &Principal) -> Option<Option<BodyFilter>> {
        let operator = AllowedRoles::Operator.allow(caller.role());
        match self {
            Self::Never => None,
            Self::Operators => operator.then_some(None),
            Self::OperatorKeys => (operator && caller.key().is_some()).then_some(None),
            Self::Always(filter) => Some(filter),
        }
    }
}

impl AllowedRoles {
    pub(crate) const fn allow(self, role: Role) -> bool {
        match self {
            Self::Public => true,
            Self::Client => matches!(role, Role::Client | Role::Operator | Role::Admin),
            Self::Worker => matches!(role, Role::Worker | Role::Operator | Role::Admin),
            Self::Operator => matches!(role, Role::Operator | Role::Admin),
            Self::Admin => matches!(role, Role::Admin),
        }
    }
}

/// The policy of the matched route, or of a request without one.
pub(crate) fn route_policy(method: &Method, route: Option<&str>) -> RoutePolicy {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let Some(route) = route else {
        return RoutePolicy {
            roles: AllowedRoles::Public,
            tenant_keys: true,
            max_body: None,
            audit: AuditPolicy::Never,
        };
    };
    let (roles, tenant_keys) = match route {
        "/healthz" | "/readyz" | "/openapi.json" | "/docs" | "/docs/" | "/docs/{*file}" => (AllowedRoles::Public, true),
        "/metrics" => (AllowedRoles::Operator, false),
        "/ws" => (AllowedRoles::Client, true),
        _ if is_under(route, "/jobs") => (AllowedRoles::Client, true),
        _ if is_under(route, "/schedules") && reads => (AllowedRoles::Client, true),
        _ if is_under(route, "/schedules") => (AllowedRoles::Operator, true),
        // Workers lease jobs of all tenants.
        _ if is_under(route, "/worker") => (AllowedRoles::Worker, false),
        _ if ["/admin/jobs", "/admin/operations", "/admin/audit"].iter().any(|prefix| is_under(route, prefix)) => {
            (AllowedRoles::Operator, true)
        }
        // A purge deletes jobs of all tenants.
        "/admin/dlq/purge" => (AllowedRoles::Operator, false),
        _ if is_under(route, "/admin/dlq") => (AllowedRoles::Operator, true),
        _ if is_under(route, "/admin/keys") => (AllowedRoles::Admin, false),
        // A tenant must not raise its own share.
        _ if is_under(route, "/admin/tenants") => (AllowedRoles::Operator, reads),
        // Queues, workers and nodes belong to no tenant.
        _ if is_under(route, "/admin") => (AllowedRoles::Operator, false),
        // A route that is missing here fails closed.
        _ => (AllowedRoles::Admin, false),
    };
    let max_body = match route {
        "/healthz" | "/readyz" | "/metrics" | "/openapi.json" | "/docs" | "/docs/" | "/docs/{*file}" => None,
        "/jobs/batch" | "/worker/leases/complete-batch" => Some(MAX_BATCH_BODY),
        _ => Some(MAX_BODY),
    };
    let audit = match roles {
        AllowedRoles::Operator | AllowedRoles::Admin if reads => AuditPolicy::Never,
        AllowedRoles::Operator | AllowedRoles::Admin => AuditPolicy::Always(body_filter(method, route)),
        AllowedRoles::Client if matches!(route, "/jobs/{jobId}/cancel" | "/jobs/{jobId}/release") => {
            AuditPolicy::Operators
        }
        // Frequent and harmless.
        AllowedRoles::Worker
            if route == "/worker/heartbeat" || route.ends_with("/progress") || route.ends_with("/logs") =>
        {
            AuditPolicy::Never
        }
        AllowedRoles::Worker => AuditPolicy::OperatorKeys,
        AllowedRoles::Public | AllowedRoles::Client => AuditPolicy::Never,
    };
    RoutePolicy { roles, tenant_keys, max_body, audit }
}

// Bodies of all other routes are not recorded: a schedule's definition, for one, contains a payload.
fn body_filter(method: &Method, route: &str) -> Option<BodyFilter> {
    let filter: BodyFilter = match (method.as_str(), route) {
        ("PUT", "/admin/queues/{name}") => |text| queue::parse_queue(text).is_ok(),
        ("PUT", "/admin/tenants/{name}") => |text| tenant::parse_tenant(text).is_ok(),
        ("POST", "/admin/jobs/{jobId}/priority") => |text| job_state::parse_priority(text).is_ok(),
        ("POST", "/admin/jobs/bulk") => |text| operation::parse_bulk(text).is_ok(),
        ("POST", "/admin/dlq/redrive") => |text| dlq::parse_redrive(text).is_ok(),
        ("POST", "/admin/dlq/purge") => |text| dlq::parse_purge(text).is_ok(),
        ("POST", "/admin/keys") => |text| key::parse_key(text, Timestamp::now()).is_ok(),
        ("POST", "/schedules/{name}/pause") => |text| schedule::parse_pause(text).is_ok(),
        ("POST", "/schedules/{name}/backfill") => |text| schedule::parse_backfill(text).is_ok(),
        _ => return None,
    };
    Some(filter)
}

// Whether the route is this path or below it.
fn is_under(route: &str, prefix: &str) -> bool {
    route.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlisted_route_is_for_admins_without_a_tenant() {
        for route in
            ["/new", "/jobsboard", "/schedules-of/{name}", "/administration", "/workers", "/docs.json", "/ws/all"]
        {
            for method in [Method::GET, Method::HEAD, Method::POST, Method::DELETE] {
                let policy = route_policy(&method, Some(route));
                assert_eq!((policy.roles, policy.tenant_keys), (AllowedRoles::Admin, false), "{method} {route}");
            }
        }
    }

    #[test]
    fn of_the_routes_that_need_a_key_only_metrics_do_without_the_store() {
        let policy = |route| route_policy(&Method::GET, Some(route));
        let metrics = policy("/metrics");
        assert_eq!((metrics.roles, metrics.store_use()), (AllowedRoles::Operator, StoreUse::None));
        for route in ["/ws", "/jobs/{jobId}", "/schedules", "/worker/leases", "/admin/stats", "/admin/keys", "/new"] {
            assert_eq!(policy(route).store_use(), StoreUse::Required, "{route}");
        }
    }
}
