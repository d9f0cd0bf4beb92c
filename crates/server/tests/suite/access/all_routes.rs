//! Calls every route with every kind of key, on own, foreign and unknown resources.

use std::collections::BTreeSet;

use orchestrix_core::{Tenant, WorkerName};
use orchestrix_store::{ClaimRequest, ClaimedJob, Outcome, OutcomeReport, PageRequest, WorkerInfo};
use serde_json::{Value, json};

use super::{
    TestServer,
    table::{Expected, PAGES, ROWS, Resource, Row},
};

/// Both tenants have names of the same length, so that responses can be compared.
const OWN: &str = "acme1";
const OTHER: &str = "other";

/// All methods that a route could support, except `HEAD`, which comes with `GET`.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

#[derive(Clone)]
struct Caller {
    role: &'static str,
    bound: bool,
    key: Option<String>,
}

async fn callers(server: &TestServer) -> Vec<Caller> {
    let unknown = format!("ox_{}_{}", "a".repeat(12), "0".repeat(64));
    let mut callers = [None, Some(unknown)].map(|key| Caller { role: "none", bound: false, key }).to_vec();
    for role in ["client", "worker", "operator", "admin"] {
        callers.push(Caller { role, bound: false, key: Some(server.create_key(role, None).await) });
        // A worker's key cannot be bound to a tenant.
        if role != "worker" {
            callers.push(Caller { role, bound: true, key: Some(server.create_key(role, Some(OWN)).await) });
        }
    }
    callers
}

impl TestServer {
    async fn claim(&self, id: &str) -> ClaimedJob {
        let claimed = self.store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), 1_000)).await.unwrap();
        let (mut wanted, others): (Vec<_>, Vec<_>) = claimed.into_iter().partition(|job| job.id().to_string() == id);
        for job in others {
            self.finish(job, Outcome::Release).await;
        }
        wanted.remove(0)
    }

    async fn finish(&self, job: ClaimedJob, outcome: Outcome) {
        for result in self.store.finish_attempts(vec![OutcomeReport { token: job.token, outcome }]).await.unwrap() {
            result.unwrap();
        }
    }

    /// Creates a resource of this tenant and returns its id.
    async fn create(&self, resource: Resource, tenant: &str) -> String {
        match resource {
            Resource::None => "nothing".into(),
            Resource::Pending => self.enqueue_job(tenant).await,
            Resource::Held => {
                self.call("POST /jobs", json!({"jobType": "t", "tenant": tenant, "hold": true})).await["jobId"].text()
            }
            Resource::Completed => {
                let id = self.enqueue_job(tenant).await;
                let job = self.claim(&id).await;
                self.finish(job, Outcome::DONE).await;
                id
            }
            Resource::Dead => self.enqueue_dead_job(tenant).await,
            Resource::Schedule => {
                let name = format!("{tenant}-{:08x}", rand::random::<u32>());
                self.create_schedule(&name, tenant).await;
                name
            }
            Resource::Operation => {
                let key = self.create_key("operator", Some(tenant)).await;
                let body = json!({"action": "cancel", "filter": {"state": "pending"}, "dryRun": true});
                self.request("POST /admin/jobs/bulk", Some(&key), &body).await.1["operationId"].text()
            }
            Resource::Lease => {
                let id = self.enqueue_job(tenant).await;
                self.claim(&id).await.token.to_string()
            }
            Resource::Queue => {
                self.enqueue_job(tenant).await;
                tenant.into()
            }
            Resource::Tenant => tenant.into(),
            Resource::Worker => {
                let name = WorkerName::new(format!("{tenant}-{:08x}", rand::random::<u32>())).unwrap();
                let info = WorkerInfo::any(name.clone());
                self.store.register_worker(&info).await.unwrap();
                name.to_string()
            }
            Resource::Key => self.create_key("client", Some(tenant)).await.split('_').nth(1).unwrap().to_owned(),
        }
    }

    /// The stored data of a resource, to check whether a request changed it.
    async fn stored(&self, resource: Resource, id: &str) -> String {
        match resource {
            Resource::Pending | Resource::Held | Resource::Completed | Resource::Dead => {
                format!("{:?}", self.store.job(id.parse().unwrap()).await.unwrap())
            }
            Resource::Schedule => {
                let name = id.parse().unwrap();
                let occurrences = self.store.list_occurrences(None, &name, &PageRequest::first(10)).await.unwrap();
                format!("{:?} {occurrences:?}", self.store.schedule(None, &name).await.unwrap())
            }
            Resource::Operation => format!("{:?}", self.store.operation(id.parse().unwrap()).await.unwrap()),
            Resource::Tenant => {
                format!("{:?}", self.store.tenant_settings(&Tenant::new(id).unwrap()).await.unwrap())
            }
            Resource::None | Resource::Lease | Resource::Queue | Resource::Worker | Resource::Key => String::new(),
        }
    }
}

trait Text {
    fn text(&self) -> String;
}

impl Text for Value {
    fn text(&self) -> String {
        self.as_str().unwrap().to_owned()
    }
}

// An id like this one, of a resource that does not exist.
fn unknown_id(resource: Resource, known: &str) -> String {
    match resource {
        Resource::None => known.into(),
        Resource::Queue => "unused".into(),
        // Every valid name is a tenant.
        Resource::Tenant => "no~name".into(),
        // Changes a digit other than the last: ids created at the same moment differ in the last digits.
        _ => {
            let at = known.len() - 6;
            let other = if &known[at..=at] == "7" { "8" } else { "7" };
            format!("{}{other}{}", &known[..at], &known[at + 1..])
        }
    }
}

// The response without the id of the resource and of the request, the only allowed differences.
fn without_ids(mut body: Value, id: &str) -> String {
    if let Some(body) = body.as_object_mut() {
        body.remove("requestId");
    }
    body.to_string().replace(id, "ID")
}

#[tokio::test]
async fn every_route_responds_to_every_key_as_the_table_says() {
    // A new server for every few rows: the number of concurrent operations per server is limited.
    for rows in ROWS.chunks(3) {
        let server = TestServer::new();
        let callers = callers(&server).await;
        for (row, caller) in rows.iter().flat_map(|row| callers.iter().map(move |caller| (row, caller))) {
            check_row(&server, row, caller).await;
        }
    }
}

async fn check_row(server: &TestServer, row: &Row, caller: &Caller) {
    let allowed = row.allows(caller.role, caller.bound);
    let request = async |id: &str, tenant: &str, expected: Expected| {
        let tenant = if caller.bound { OWN } else { tenant };
        let (status, body) = server.request(&row.request(id), caller.key.as_deref(), &(row.body)(id, tenant)).await;
        let expected = match caller.role {
            _ if allowed => expected,
            "none" => (401, "unauthenticated"),
            _ => (403, "forbidden"),
        };
        let of = if caller.bound { " of a tenant" } else { "" };
        let case = format!("{} on {:?} by {}{of}: {status} {body}", row.route, row.resource, caller.role);
        assert_eq!((status.as_u16(), body["code"].as_str().unwrap_or_default()), expected, "{case}");
        (without_ids(body, id), case)
    };
    let own = server.create(row.resource, OWN).await;
    let unknown = unknown_id(row.resource, &own);
    let (not_found, _) = request(&unknown, OWN, row.unknown).await;
    if row.resource == Resource::None {
        return;
    }
    let theirs = server.create(row.resource, OTHER).await;
    let before = server.stored(row.resource, &theirs).await;
    let (foreign, case) = request(&theirs, OTHER, if caller.bound { row.foreign } else { row.own }).await;
    if caller.bound || !allowed {
        assert_eq!(server.stored(row.resource, &theirs).await, before, "the resource was changed: {case}");
    }
    if caller.bound && row.foreign == row.unknown {
        assert_eq!(foreign, not_found, "{case}");
    }
    let (answer, case) = request(&own, OWN, row.own).await;
    if allowed && row.own == row.unknown {
        assert_ne!(answer, not_found, "the response does not depend on the resource: {case}");
    }
}

#[tokio::test]
async fn every_route_of_the_router_is_in_the_table() {
    let known: BTreeSet<&str> = ROWS.iter().map(|row| row.route).collect();
    let server = TestServer::new();
    let (_, document) = server.request("GET /openapi.json", None, &json!({})).await;
    let paths = document["paths"].as_object().unwrap().iter();
    let described: BTreeSet<String> = paths
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    assert_eq!(
        described.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        known,
        "a documented route is missing in the table"
    );

    // Probes all paths of the router with all methods, which finds routes outside of the OpenAPI document.
    let admin = server.create_key("admin", None).await;
    let mut served = BTreeSet::new();
    for path in server.paths() {
        let url = path.replace("{*file}", "index.html");
        let url = ["{jobId}", "{name}", "{id}", "{leaseToken}", "{workerId}", "{keyId}"]
            .iter()
            .fold(url, |path, placeholder| path.replace(placeholder, "x"));
        for method in METHODS {
            let (status, _) = server.request(&format!("{method} {url}"), Some(&admin), &json!({})).await;
            if status.as_u16() != 405 {
                served.insert(format!("{method} {path}"));
            }
        }
    }
    let known: BTreeSet<&str> = known.into_iter().chain(PAGES.iter().copied()).collect();
    assert_eq!(served.iter().map(String::as_str).collect::<BTreeSet<_>>(), known);
    for page in PAGES {
        let page = page.replace("{*file}", "index.html");
        for caller in callers(&server).await {
            let (status, _) = server.request(&page, caller.key.as_deref(), &json!({})).await;
            assert!(status.is_success() || status.is_redirection(), "{page} by {}: {status}", caller.role);
        }
    }
}
