//! What each route asks of a request, all on one page.

use axum::http::Method;
use orchestrix_api::{
    admin::{dlq, job_state, key, operation, queue},
    schedule,
};
use orchestrix_core::{Role, Timestamp};

use crate::{
    auth::{caller::Caller, keys::Needs},
    body::{MANY, ONE},
};

/// What a route asks of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    /// Who may.
    pub(crate) who: Who,
    /// Whether somebody who is bound to a tenant may: only where it is known whose things are.
    pub(crate) bound: bool,
    /// How large a body it takes, if it is worked on at all: requests about the server itself take no turn, so that they are answered
    /// however much there is to do.
    pub(crate) body: Option<usize>,
    /// Whether it goes into the audit.
    pub(crate) audit: Audit,
}

impl Access {
    /// Requests about the server itself read nothing from the store.
    pub(crate) const fn needs(&self) -> Needs {
        match self.body {
            Some(_) => Needs::Store,
            None => Needs::Nothing,
        }
    }
}

/// Who may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Also those who say nothing of themselves.
    Anybody,
    /// Clients and operators.
    Clients,
    /// Workers and operators.
    Workers,
    Operators,
    Admins,
}

/// Whether something goes into the audit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Audit {
    No,
    /// If an operator does it: a client may do it too, and fills no audit.
    OfOperators,
    /// If it is done with the key of an operator: workers do it all the time, also those of a server that asks for no keys.
    OfOperatorsKeys,
    /// Whoever does it; with what was sent along, if the route says which bodies are worth keeping.
    Always(Option<Keep>),
}

/// Whether a body is one that its route understands. Such a one is kept whole, and what is not understood is not kept at all: nobody knows
/// what is in it.
pub(crate) type Keep = fn(&str) -> bool;

impl Audit {
    /// Whether what they do is written down, and what of their body.
    pub(crate) fn of(self, caller: &Caller) -> Option<Option<Keep>> {
        let operates = Who::Operators.has(caller.role());
        match self {
            Self::No => None,
            Self::OfOperators => operates.then_some(None),
            Self::OfOperatorsKeys => (operates && caller.key().is_some()).then_some(None),
            Self::Always(keep) => Some(keep),
        }
    }
}

impl Who {
    /// Whether whoever has this role is one of them.
    pub(crate) const fn has(self, role: Role) -> bool {
        match self {
            Self::Anybody => true,
            Self::Clients => matches!(role, Role::Client | Role::Operator | Role::Admin),
            Self::Workers => matches!(role, Role::Worker | Role::Operator | Role::Admin),
            Self::Operators => matches!(role, Role::Operator | Role::Admin),
            Self::Admins => matches!(role, Role::Admin),
        }
    }
}

/// Of the route that was found, or of none.
pub(crate) fn access(method: &Method, route: Option<&str>) -> Access {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let Some(route) = route else { return Access { who: Who::Anybody, bound: true, body: None, audit: Audit::No } };
    let (who, bound) = match route {
        "/healthz" | "/readyz" | "/openapi.json" | "/docs" | "/docs/" | "/docs/{*file}" => (Who::Anybody, true),
        "/metrics" => (Who::Operators, false),
        "/ws" => (Who::Clients, true),
        _ if is_at(route, "/jobs") => (Who::Clients, true),
        _ if is_at(route, "/schedules") && reads => (Who::Clients, true),
        _ if is_at(route, "/schedules") => (Who::Operators, true),
        // Jobs are leased whosever they are.
        _ if is_at(route, "/worker") => (Who::Workers, false),
        _ if ["/admin/jobs", "/admin/operations", "/admin/audit"].iter().any(|place| is_at(route, place)) => {
            (Who::Operators, true)
        }
        // It clears away whosever is old.
        "/admin/dlq/purge" => (Who::Operators, false),
        _ if is_at(route, "/admin/dlq") => (Who::Operators, true),
        _ if is_at(route, "/admin/keys") => (Who::Admins, false),
        // Queues, workers and nodes are everybody's.
        _ if is_at(route, "/admin") => (Who::Operators, false),
        // What nobody thought of is for nobody else.
        _ => (Who::Admins, false),
    };
    let body = match route {
        "/healthz" | "/readyz" | "/metrics" | "/openapi.json" | "/docs" | "/docs/" | "/docs/{*file}" => None,
        "/jobs/batch" | "/worker/leases/complete-batch" => Some(MANY),
        _ => Some(ONE),
    };
    let audit = match who {
        Who::Operators | Who::Admins if reads => Audit::No,
        Who::Operators | Who::Admins => Audit::Always(keep(method, route)),
        Who::Clients if matches!(route, "/jobs/{jobId}/cancel" | "/jobs/{jobId}/release") => Audit::OfOperators,
        // Signs of life, and what is said of a job while it runs.
        Who::Workers if route == "/worker/heartbeat" || route.ends_with("/progress") || route.ends_with("/logs") => {
            Audit::No
        }
        Who::Workers => Audit::OfOperatorsKeys,
        Who::Anybody | Who::Clients => Audit::No,
    };
    Access { who, bound, body, audit }
}

// Whatever is not here is not kept: a definition of a schedule has a payload in it.
fn keep(method: &Method, route: &str) -> Option<Keep> {
    let keep: Keep = match (method.as_str(), route) {
        ("PUT", "/admin/queues/{name}") => |text| queue::parse_queue(text).is_ok(),
        ("POST", "/admin/jobs/{jobId}/priority") => |text| job_state::parse_priority(text).is_ok(),
        ("POST", "/admin/jobs/bulk") => |text| operation::parse_bulk(text).is_ok(),
        ("POST", "/admin/dlq/redrive") => |text| dlq::parse_redrive(text).is_ok(),
        ("POST", "/admin/dlq/purge") => |text| dlq::parse_purge(text).is_ok(),
        ("POST", "/admin/keys") => |text| key::parse_key(text, Timestamp::now()).is_ok(),
        ("POST", "/schedules/{name}/pause") => |text| schedule::parse_pause(text).is_ok(),
        ("POST", "/schedules/{name}/backfill") => |text| schedule::parse_backfill(text).is_ok(),
        _ => return None,
    };
    Some(keep)
}

// At this place, or below it.
fn is_at(route: &str, place: &str) -> bool {
    route.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_thought_of_is_for_admins_that_are_bound_to_no_tenant() {
        for route in
            ["/new", "/jobsboard", "/schedules-of/{name}", "/administration", "/workers", "/docs.json", "/ws/all"]
        {
            for method in [Method::GET, Method::HEAD, Method::POST, Method::DELETE] {
                let access = access(&method, Some(route));
                assert_eq!((access.who, access.bound), (Who::Admins, false), "{method} {route}");
            }
        }
    }

    #[test]
    fn of_what_needs_a_key_metrics_alone_need_nothing_of_the_store() {
        let of = |route| access(&Method::GET, Some(route));
        let metrics = of("/metrics");
        assert_eq!((metrics.who, metrics.needs()), (Who::Operators, Needs::Nothing));
        for route in ["/ws", "/jobs/{jobId}", "/schedules", "/worker/leases", "/admin/stats", "/admin/keys", "/new"] {
            assert_eq!(of(route).needs(), Needs::Store, "{route}");
        }
    }
}
