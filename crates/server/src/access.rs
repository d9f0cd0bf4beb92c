//! What each route asks of a request, all on one page.

use axum::http::Method;

use crate::body::{MANY, ONE};

/// What a route asks of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    /// How large a body it takes, if it is worked on at all: requests about the server itself take no turn, so that they are answered
    /// however much there is to do.
    pub(crate) body: Option<usize>,
}

/// Of the route that was found, or of none.
pub(crate) fn access(_method: &Method, route: Option<&str>) -> Access {
    let body = match route {
        None | Some("/healthz" | "/readyz" | "/metrics" | "/openapi.json" | "/docs" | "/docs/" | "/docs/{*file}") => {
            None
        }
        Some("/jobs/batch" | "/worker/leases/complete-batch") => Some(MANY),
        Some(_) => Some(ONE),
    };
    Access { body }
}
