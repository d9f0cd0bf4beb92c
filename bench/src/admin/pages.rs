//! The requested pages.

use anyhow::Result;
use orchestrix_server::Local;
use serde_json::Value;

use super::ask::get;

/// A page and its expected status.
#[derive(Debug)]
pub(super) struct Page {
    /// With placeholders in braces.
    pub(super) path: &'static str,
    pub(super) status: u16,
}

const fn shown(path: &'static str) -> Page {
    Page { path, status: 200 }
}

const fn missing(path: &'static str) -> Page {
    Page { path, status: 404 }
}

/// Every page with every filter: one that matches many rows, one that matches rows far away, and one that matches
/// none.
pub(super) const ALL: &[Page] = &[
    shown("/admin/jobs"),
    shown("/admin/jobs?limit=1000"),
    shown("/admin/jobs?cursor={waiting}"),
    shown("/admin/jobs?cursor={middle}"),
    shown("/admin/jobs?cursor={middle}&limit=1000"),
    shown("/admin/jobs?cursor={last}"),
    shown("/admin/jobs?state=created"),
    shown("/admin/jobs?state=blocked"),
    shown("/admin/jobs?state=scheduled"),
    shown("/admin/jobs?state=pending"),
    shown("/admin/jobs?state=dispatched"),
    shown("/admin/jobs?state=running"),
    shown("/admin/jobs?state=retrying"),
    shown("/admin/jobs?state=completed"),
    shown("/admin/jobs?state=completed&cursor={middle}&limit=1000"),
    shown("/admin/jobs?state=cancelled"),
    shown("/admin/jobs?state=cancelled&limit=1000"),
    shown("/admin/jobs?state=dead"),
    shown("/admin/jobs?state=running,completed"),
    shown("/admin/jobs?queue=queue-3"),
    shown("/admin/jobs?queue=queue-3&limit=1000"),
    shown("/admin/jobs?queue=queue-3&cursor={middle}"),
    shown("/admin/jobs?queue=queue-3&state=completed"),
    shown("/admin/jobs?queue=rare"),
    shown("/admin/jobs?queue=rare&state=pending"),
    shown("/admin/jobs?queue=nobody"),
    shown("/admin/jobs?jobType=type-3"),
    shown("/admin/jobs?jobType=type-3&cursor={middle}"),
    shown("/admin/jobs?jobType=rare"),
    shown("/admin/jobs?jobType=nobody"),
    shown("/admin/jobs?tenant=tenant-3"),
    shown("/admin/jobs?tenant=tenant-3&cursor={middle}"),
    shown("/admin/jobs?tenant=rare"),
    shown("/admin/jobs?tenant=nobody"),
    shown("/admin/jobs?tag=billing"),
    shown("/admin/jobs?tag=billing&cursor={middle}"),
    shown("/admin/jobs?tag=tag-3&state=completed"),
    shown("/admin/jobs?tag=rare"),
    shown("/admin/jobs?tag=nobody"),
    shown("/admin/jobs?q=order-7"),
    shown("/admin/jobs?q=order-7&cursor={middle}"),
    shown("/admin/jobs?q=operator&state=cancelled"),
    shown("/admin/jobs?q=nobody"),
    shown("/admin/jobs?q=nobody&cursor={middle}"),
    shown("/admin/jobs?from={hour}"),
    shown("/admin/jobs?from={days}"),
    shown("/admin/jobs?to={hour}"),
    shown("/admin/jobs?to={days}"),
    shown("/admin/jobs?to={days}&cursor={middle}"),
    shown("/admin/jobs?to={year}"),
    shown("/admin/jobs?from={days}&to={hour}&state=completed"),
    shown(
        "/admin/jobs?queue=queue-3&jobType=type-3&tenant=tenant-3&tag=billing&q=order&state=completed,cancelled&limit=1000",
    ),
    shown("/admin/dlq"),
    shown("/admin/dlq?limit=1000"),
    shown("/admin/dlq?cursor={middle}"),
    shown("/admin/dlq?queue=queue-3"),
    shown("/admin/dlq?queue=rare"),
    shown("/admin/dlq?jobType=type-3"),
    shown("/admin/dlq?tenant=tenant-3"),
    shown("/admin/dlq?tag=billing"),
    shown("/admin/dlq?tag=nobody"),
    shown("/admin/dlq?q=mail"),
    shown("/admin/dlq?q=nobody"),
    shown("/admin/dlq?from={hour}"),
    shown("/admin/dlq?to={days}"),
    shown("/admin/jobs/{pending}"),
    shown("/admin/jobs/{blocked}"),
    shown("/admin/jobs/{completed}"),
    shown("/admin/jobs/{dead}"),
    missing("/admin/jobs/{unknown}"),
    shown("/admin/jobs/{pending}/explain"),
    shown("/admin/jobs/{unserved}/explain"),
    shown("/admin/jobs/{scheduled}/explain"),
    shown("/admin/jobs/{retrying}/explain"),
    shown("/admin/jobs/{blocked}/explain"),
    shown("/admin/jobs/{running}/explain"),
    shown("/admin/jobs/{completed}/explain"),
    shown("/admin/jobs/{dead}/explain"),
    shown("/admin/jobs/{logged}/logs"),
    shown("/admin/jobs/{dead}/logs"),
    shown("/admin/jobs/{dead}/logs?limit=1000"),
    shown("/admin/jobs/{dead}/logs?cursor={line}&limit=1000"),
    shown("/admin/queues"),
    shown("/admin/queues?limit=1000"),
    shown("/admin/queues?cursor=queue-15"),
    shown("/admin/queues/queue-3"),
    shown("/admin/queues/paused-3"),
    shown("/admin/queues/nobody"),
    shown("/admin/workers"),
    shown("/admin/workers?limit=1000"),
    shown("/admin/workers?cursor=worker-5&limit=1000"),
    shown("/admin/nodes"),
    shown("/admin/stats"),
    shown("/admin/operations"),
    shown("/admin/operations?limit=1000"),
    shown("/admin/operations?cursor={operation}&limit=1000"),
    shown("/admin/operations/{operation}"),
    missing("/admin/operations/{unknown}"),
    shown("/admin/keys"),
    shown("/admin/keys?limit=1000"),
    shown("/admin/keys?cursor=kkkkkkkk5000&limit=1000"),
    shown("/admin/audit"),
    shown("/admin/audit?limit=1000"),
    shown("/admin/audit?cursor={entry}&limit=1000"),
    shown("/admin/audit?actor=key%3Aoperator7"),
    shown("/admin/audit?actor=key%3Arare"),
    shown("/admin/audit?actor=key%3Anobody"),
    shown("/admin/audit?tenant=tenant-4"),
    shown("/admin/audit?action=PUT%20%2Fadmin%2Fqueues%2F%7Bname%7D"),
    shown("/admin/audit?target=%2Fadmin%2Fqueues%2Fqueue-3"),
    shown("/admin/audit?from={hour}"),
    shown("/admin/audit?to={days}"),
    shown("/jobs/{pending}"),
    shown("/jobs/{completed}"),
    shown("/jobs/{dead}"),
    missing("/jobs/{unknown}"),
    shown("/jobs/{completed}/result"),
    Page { path: "/jobs/{pending}/result", status: 409 },
    shown("/schedules"),
    shown("/schedules?limit=1000"),
    shown("/schedules?cursor=bench-7&limit=1000"),
    shown("/schedules/bench"),
    missing("/schedules/nobody"),
    shown("/schedules/bench/next?count=10"),
    shown("/schedules/bench/occurrences"),
    shown("/schedules/bench/occurrences?limit=1000"),
    shown("/schedules/bench/occurrences?cursor={days}&limit=1000"),
    shown("/readyz"),
    shown("/healthz"),
    shown("/openapi.json"),
];

/// The documented GET paths that no page covers.
pub(super) async fn forgotten(local: &Local) -> Result<Vec<String>> {
    let api: Value = serde_json::from_slice(&get(local, "/openapi.json", 200).await?)?;
    let described = api["paths"].as_object().into_iter().flatten().filter(|(_, methods)| methods.get("get").is_some());
    let asked = |path: &&String| !ALL.iter().any(|page| is_of(page.path, path));
    Ok(described.map(|(path, _)| path).filter(asked).cloned().collect())
}

/// Whether a page is an instance of a documented path template.
fn is_of(page: &str, described: &str) -> bool {
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
        assert!(is_of("/admin/jobs/{pending}/logs?limit=5", "/admin/jobs/{jobId}/logs"));
        assert!(is_of("/admin/jobs?limit=5", "/admin/jobs"));
        for described in ["/admin/jobs", "/admin/jobs/{jobId}", "/admin/jobs/{jobId}/explain", "/jobs/{jobId}/logs"] {
            assert!(!is_of("/admin/jobs/{pending}/logs", described), "{described}");
        }
    }
}
