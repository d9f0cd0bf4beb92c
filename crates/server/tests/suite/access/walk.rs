//! A walk over all routes, by everybody there is, about their own things, about others' and about nothing that is there.

use std::collections::BTreeSet;

use orchestrix_core::WorkerName;
use orchestrix_store::{ClaimRequest, ClaimedJob, Outcome, OutcomeReport, PageRequest, WorkerInfo};
use serde_json::{Value, json};

use super::{
    Place,
    table::{Answer, On, PAGES, ROWS, Row},
};

/// Every tenant's things are called alike, so that answers can be as long.
const OWN: &str = "acme1";
const OTHER: &str = "other";

/// All methods that a route could have; `HEAD` comes with `GET`.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

#[derive(Clone)]
struct Caller {
    role: &'static str,
    bound: bool,
    key: Option<String>,
}

async fn callers(place: &Place) -> Vec<Caller> {
    let wrong = format!("ox_{}_{}", "a".repeat(12), "0".repeat(64));
    let mut callers = [None, Some(wrong)].map(|key| Caller { role: "nobody", bound: false, key }).to_vec();
    for role in ["client", "worker", "operator", "admin"] {
        callers.push(Caller { role, bound: false, key: Some(place.key(role, None).await) });
        // Workers cannot be bound.
        if role != "worker" {
            callers.push(Caller { role, bound: true, key: Some(place.key(role, Some(OWN)).await) });
        }
    }
    callers
}

impl Place {
    async fn claimed(&self, id: &str) -> ClaimedJob {
        let claimed = self.store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), 1_000)).await.unwrap();
        let (mut wanted, others): (Vec<_>, Vec<_>) = claimed.into_iter().partition(|job| job.id().to_string() == id);
        for job in others {
            self.end(job, Outcome::Release).await;
        }
        wanted.remove(0)
    }

    async fn end(&self, job: ClaimedJob, outcome: Outcome) {
        for answer in self.store.finish_attempts(vec![OutcomeReport { token: job.token, outcome }]).await.unwrap() {
            answer.unwrap();
        }
    }

    /// What a request is about, as this tenant's; what it is called.
    async fn make(&self, on: On, tenant: &str) -> String {
        match on {
            On::Nothing => "nothing".into(),
            On::Pending => self.job(tenant).await,
            On::Held => {
                self.call("POST /jobs", json!({"jobType": "t", "tenant": tenant, "hold": true})).await["jobId"].text()
            }
            On::Completed => {
                let id = self.job(tenant).await;
                let job = self.claimed(&id).await;
                self.end(job, Outcome::DONE).await;
                id
            }
            On::Dead => self.dead_job(tenant).await,
            On::Schedule => {
                let name = format!("{tenant}-{:08x}", rand::random::<u32>());
                self.schedule(&name, tenant).await;
                name
            }
            On::Operation => {
                let key = self.key("operator", Some(tenant)).await;
                let body = json!({"action": "cancel", "filter": {"state": "pending"}, "dryRun": true});
                self.ask("POST /admin/jobs/bulk", Some(&key), &body).await.1["operationId"].text()
            }
            On::Lease => {
                let id = self.job(tenant).await;
                self.claimed(&id).await.token.to_string()
            }
            On::Queue => {
                self.job(tenant).await;
                tenant.into()
            }
            On::Worker => {
                let name = WorkerName::new(format!("{tenant}-{:08x}", rand::random::<u32>())).unwrap();
                let info = WorkerInfo::any(name.clone());
                self.store.register_worker(&info).await.unwrap();
                name.to_string()
            }
            On::Key => self.key("client", Some(tenant)).await.split('_').nth(1).unwrap().to_owned(),
        }
    }

    /// All that is kept of it, to see whether anything was done to it.
    async fn kept(&self, on: On, it: &str) -> String {
        match on {
            On::Pending | On::Held | On::Completed | On::Dead => {
                format!("{:?}", self.store.job(it.parse().unwrap()).await.unwrap())
            }
            On::Schedule => {
                let name = it.parse().unwrap();
                let ledger = self.store.list_occurrences(None, &name, &PageRequest::first(10)).await.unwrap();
                format!("{:?} {ledger:?}", self.store.schedule(None, &name).await.unwrap())
            }
            On::Operation => format!("{:?}", self.store.operation(it.parse().unwrap()).await.unwrap()),
            On::Nothing | On::Lease | On::Queue | On::Worker | On::Key => String::new(),
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

// The same, but of nothing that is there.
fn unknown(on: On, known: &str) -> String {
    match on {
        On::Nothing => known.into(),
        On::Queue => "nobodys".into(),
        // Not the last digit: what is made in the same moment may be called by the next number.
        _ => {
            let at = known.len() - 6;
            let other = if &known[at..=at] == "7" { "8" } else { "7" };
            format!("{}{other}{}", &known[..at], &known[at + 1..])
        }
    }
}

// What was answered, as anybody might be told it: the id in it is the only difference that there may be.
fn of_anything(mut body: Value, it: &str) -> String {
    if let Some(body) = body.as_object_mut() {
        body.remove("requestId");
    }
    body.to_string().replace(it, "IT")
}

#[tokio::test]
async fn every_route_answers_everybody_as_the_table_says() {
    // A place for a few of them: so many operations may be under way in one.
    for rows in ROWS.chunks(3) {
        let place = Place::new();
        let callers = callers(&place).await;
        for (row, caller) in rows.iter().flat_map(|row| callers.iter().map(move |caller| (row, caller))) {
            walk(&place, row, caller).await;
        }
    }
}

async fn walk(place: &Place, row: &Row, caller: &Caller) {
    let let_in = row.lets(caller.role, caller.bound);
    let ask = async |it: &str, tenant: &str, expected: Answer| {
        let tenant = if caller.bound { OWN } else { tenant };
        let (status, body) = place.ask(&row.request(it), caller.key.as_deref(), &(row.body)(it, tenant)).await;
        let expected = match caller.role {
            _ if let_in => expected,
            "nobody" => (401, "unauthenticated"),
            _ => (403, "forbidden"),
        };
        let of = if caller.bound { " of a tenant" } else { "" };
        let case = format!("{} on {:?} by {}{of}: {status} {body}", row.route, row.on, caller.role);
        assert_eq!((status.as_u16(), body["code"].as_str().unwrap_or_default()), expected, "{case}");
        (of_anything(body, it), case)
    };
    let own = place.make(row.on, OWN).await;
    let nobodys = unknown(row.on, &own);
    let (not_there, _) = ask(&nobodys, OWN, row.unknown).await;
    if row.on == On::Nothing {
        return;
    }
    let theirs = place.make(row.on, OTHER).await;
    let before = place.kept(row.on, &theirs).await;
    let (foreign, case) = ask(&theirs, OTHER, if caller.bound { row.foreign } else { row.own }).await;
    if caller.bound || !let_in {
        assert_eq!(place.kept(row.on, &theirs).await, before, "it was acted on: {case}");
    }
    if caller.bound && row.foreign == row.unknown {
        assert_eq!(foreign, not_there, "{case}");
    }
    let (answer, case) = ask(&own, OWN, row.own).await;
    if let_in && row.own == row.unknown {
        assert_ne!(answer, not_there, "nothing tells whether it is there: {case}");
    }
}

#[tokio::test]
async fn every_route_of_the_router_is_in_the_table() {
    let known: BTreeSet<&str> = ROWS.iter().map(|row| row.route).collect();
    let place = Place::new();
    let (_, described) = place.ask("GET /openapi.json", None, &json!({})).await;
    let paths = described["paths"].as_object().unwrap().iter();
    let described: BTreeSet<String> = paths
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    assert_eq!(
        described.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        known,
        "a route that nobody has said who it is for"
    );

    // The router says which paths it has, and what it answers which methods they have: so a route is found that is beside the description.
    let admin = place.key("admin", None).await;
    let mut served = BTreeSet::new();
    for path in place.paths() {
        let asked = path.replace("{*file}", "index.html");
        let asked = ["{jobId}", "{name}", "{id}", "{leaseToken}", "{workerId}", "{keyId}"]
            .iter()
            .fold(asked, |path, hole| path.replace(hole, "x"));
        for method in METHODS {
            let (status, _) = place.ask(&format!("{method} {asked}"), Some(&admin), &json!({})).await;
            if status.as_u16() != 405 {
                served.insert(format!("{method} {path}"));
            }
        }
    }
    let known: BTreeSet<&str> = known.into_iter().chain(PAGES.iter().copied()).collect();
    assert_eq!(served.iter().map(String::as_str).collect::<BTreeSet<_>>(), known);
    for page in PAGES {
        let page = page.replace("{*file}", "index.html");
        for caller in callers(&place).await {
            let (status, _) = place.ask(&page, caller.key.as_deref(), &json!({})).await;
            assert!(status.is_success() || status.is_redirection(), "{page} by {}: {status}", caller.role);
        }
    }
}
