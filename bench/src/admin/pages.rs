//! The requested pages.

use anyhow::Result;
use orchestrix_server::InProcessApi;
use serde_json::Value;

use super::request::get;

/// A page and its expected status.
#[derive(Debug)]
pub(super) struct Page {
    /// With placeholders in braces.
    pub(super) path: &'static str,
    pub(super) status: u16,
}

const fn ok(path: &'static str) -> Page {
    Page { path, status: 200 }
}

const fn not_found(path: &'static str) -> Page {
    Page { path, status: 404 }
}

/// Every page with every filter: one that matches many rows, one that matches rows far away, and one that matches
/// none.
pub(super) const ALL: &[Page] = &[
    ok("/admin/jobs"),
    ok("/admin/jobs?limit=1000"),
    ok("/admin/jobs?cursor={waiting}"),
    ok("/admin/jobs?cursor={middle}"),
    ok("/admin/jobs?cursor={middle}&limit=1000"),
    ok("/admin/jobs?cursor={last}"),
    ok("/admin/jobs?state=created"),
    ok("/admin/jobs?state=blocked"),
    ok("/admin/jobs?state=scheduled"),
    ok("/admin/jobs?state=pending"),
    ok("/admin/jobs?state=dispatched"),
    ok("/admin/jobs?state=running"),
    ok("/admin/jobs?state=retrying"),
    ok("/admin/jobs?state=completed"),
    ok("/admin/jobs?state=completed&cursor={middle}&limit=1000"),
    ok("/admin/jobs?state=cancelled"),
    ok("/admin/jobs?state=cancelled&limit=1000"),
    ok("/admin/jobs?state=dead"),
    ok("/admin/jobs?state=running,completed"),
    ok("/admin/jobs?queue=queue-3"),
    ok("/admin/jobs?queue=queue-3&limit=1000"),
    ok("/admin/jobs?queue=queue-3&cursor={middle}"),
    ok("/admin/jobs?queue=queue-3&state=completed"),
    ok("/admin/jobs?queue=rare"),
    ok("/admin/jobs?queue=rare&state=pending"),
    ok("/admin/jobs?queue=none"),
    ok("/admin/jobs?jobType=type-3"),
    ok("/admin/jobs?jobType=type-3&cursor={middle}"),
    ok("/admin/jobs?jobType=rare"),
    ok("/admin/jobs?jobType=none"),
    ok("/admin/jobs?tenant=tenant-3"),
    ok("/admin/jobs?tenant=tenant-3&cursor={middle}"),
    ok("/admin/jobs?tenant=rare"),
    ok("/admin/jobs?tenant=none"),
    ok("/admin/jobs?tag=billing"),
    ok("/admin/jobs?tag=billing&cursor={middle}"),
    ok("/admin/jobs?tag=tag-3&state=completed"),
    ok("/admin/jobs?tag=rare"),
    ok("/admin/jobs?tag=none"),
    ok("/admin/jobs?q=order-7"),
    ok("/admin/jobs?q=order-7&cursor={middle}"),
    ok("/admin/jobs?q=operator&state=cancelled"),
    ok("/admin/jobs?q=none"),
    ok("/admin/jobs?q=none&cursor={middle}"),
    ok("/admin/jobs?from={hour}"),
    ok("/admin/jobs?from={days}"),
    ok("/admin/jobs?to={hour}"),
    ok("/admin/jobs?to={days}"),
    ok("/admin/jobs?to={days}&cursor={middle}"),
    ok("/admin/jobs?to={year}"),
    ok("/admin/jobs?from={days}&to={hour}&state=completed"),
    ok(
        "/admin/jobs?queue=queue-3&jobType=type-3&tenant=tenant-3&tag=billing&q=order&state=completed,cancelled&limit=1000",
    ),
    ok("/admin/dlq"),
    ok("/admin/dlq?limit=1000"),
    ok("/admin/dlq?cursor={middle}"),
    ok("/admin/dlq?queue=queue-3"),
    ok("/admin/dlq?queue=rare"),
    ok("/admin/dlq?jobType=type-3"),
    ok("/admin/dlq?tenant=tenant-3"),
    ok("/admin/dlq?tag=billing"),
    ok("/admin/dlq?tag=none"),
    ok("/admin/dlq?q=mail"),
    ok("/admin/dlq?q=none"),
    ok("/admin/dlq?from={hour}"),
    ok("/admin/dlq?to={days}"),
    ok("/admin/jobs/{pending}"),
    ok("/admin/jobs/{blocked}"),
    ok("/admin/jobs/{completed}"),
    ok("/admin/jobs/{dead}"),
    not_found("/admin/jobs/{unknown}"),
    ok("/admin/jobs/{pending}/explain"),
    ok("/admin/jobs/{unserved}/explain"),
    ok("/admin/jobs/{scheduled}/explain"),
    ok("/admin/jobs/{retrying}/explain"),
    ok("/admin/jobs/{blocked}/explain"),
    ok("/admin/jobs/{running}/explain"),
    ok("/admin/jobs/{completed}/explain"),
    ok("/admin/jobs/{dead}/explain"),
    ok("/admin/jobs/{logged}/logs"),
    ok("/admin/jobs/{dead}/logs"),
    ok("/admin/jobs/{dead}/logs?limit=1000"),
    ok("/admin/jobs/{dead}/logs?cursor={line}&limit=1000"),
    ok("/admin/queues"),
    ok("/admin/queues?limit=1000"),
    ok("/admin/queues?cursor=queue-15"),
    ok("/admin/queues/queue-3"),
    ok("/admin/queues/paused-3"),
    ok("/admin/queues/none"),
    ok("/admin/workers"),
    ok("/admin/workers?limit=1000"),
    ok("/admin/workers?cursor=worker-5&limit=1000"),
    ok("/admin/nodes"),
    ok("/admin/stats"),
    ok("/admin/operations"),
    ok("/admin/operations?limit=1000"),
    ok("/admin/operations?cursor={operation}&limit=1000"),
    ok("/admin/operations/{operation}"),
    not_found("/admin/operations/{unknown}"),
    ok("/admin/keys"),
    ok("/admin/keys?limit=1000"),
    ok("/admin/keys?cursor=kkkkkkkk5000&limit=1000"),
    ok("/admin/audit"),
    ok("/admin/audit?limit=1000"),
    ok("/admin/audit?cursor={entry}&limit=1000"),
    ok("/admin/audit?actor=key%3Aoperator7"),
    ok("/admin/audit?actor=key%3Arare"),
    ok("/admin/audit?actor=key%3Anone"),
    ok("/admin/audit?tenant=tenant-4"),
    ok("/admin/audit?action=PUT%20%2Fadmin%2Fqueues%2F%7Bname%7D"),
    ok("/admin/audit?target=%2Fadmin%2Fqueues%2Fqueue-3"),
    ok("/admin/audit?from={hour}"),
    ok("/admin/audit?to={days}"),
    ok("/jobs/{pending}"),
    ok("/jobs/{completed}"),
    ok("/jobs/{dead}"),
    not_found("/jobs/{unknown}"),
    ok("/jobs/{completed}/result"),
    Page { path: "/jobs/{pending}/result", status: 409 },
    ok("/schedules"),
    ok("/schedules?limit=1000"),
    ok("/schedules?cursor=bench-7&limit=1000"),
    ok("/schedules/bench"),
    not_found("/schedules/none"),
    ok("/schedules/bench/next?count=10"),
    ok("/schedules/bench/occurrences"),
    ok("/schedules/bench/occurrences?limit=1000"),
    ok("/schedules/bench/occurrences?cursor={days}&limit=1000"),
    ok("/readyz"),
    ok("/healthz"),
    ok("/openapi.json"),
];

/// The documented GET paths that no page covers.
pub(super) async fn uncovered_paths(local: &InProcessApi) -> Result<Vec<String>> {
    let api: Value = serde_json::from_slice(&get(local, "/openapi.json", 200).await?)?;
    let described = api["paths"].as_object().into_iter().flatten().filter(|(_, methods)| methods.get("get").is_some());
    let asked = |path: &&String| !ALL.iter().any(|page| matches_template(page.path, path));
    Ok(described.map(|(path, _)| path).filter(asked).cloned().collect())
}

/// Whether a page is an instance of a documented path template.
fn matches_template(page: &str, described: &str) -> bool {
    let page = page.split('?').next().unwrap_or(page);
    let (mut page, mut described) = (page.split('/'), described.split('/'));
    loop {
        match (page.next(), described.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b || b.starts_with('{') => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_matched_to_its_path_template() {
        assert!(matches_template("/admin/jobs/{pending}/logs?limit=5", "/admin/jobs/{jobId}/logs"));
        assert!(matches_template("/admin/jobs?limit=5", "/admin/jobs"));
        for described in ["/admin/jobs", "/admin/jobs/{jobId}", "/admin/jobs/{jobId}/explain", "/jobs/{jobId}/logs"] {
            assert!(!matches_template("/admin/jobs/{pending}/logs", described), "{described}");
        }
    }
}
