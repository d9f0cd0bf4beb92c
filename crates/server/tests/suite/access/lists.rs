//! Lists requested with a key bound to a tenant, among resources of other tenants.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::TestServer;

/// Returns all pages of a list.
async fn pages(server: &TestServer, path: &str, key: &str) -> Vec<Value> {
    let mut pages = Vec::new();
    let mut next = String::new();
    // Far more pages than exist.
    for _ in 0..100 {
        let (status, page) = server.request(&format!("GET {path}?limit=2{next}"), Some(key), &json!({})).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        let cursor = page["nextCursor"].as_str().map(|cursor| format!("&cursor={cursor}"));
        pages.push(page);
        match cursor {
            Some(cursor) => next = cursor,
            None => return pages,
        }
    }
    panic!("{path} has no end");
}

#[tokio::test]
async fn no_list_reveals_resources_of_other_tenants_not_even_in_its_cursors() {
    let server = TestServer::new();
    let (own, other) =
        (server.create_key("operator", Some("acme")).await, server.create_key("operator", Some("other")).await);
    let operator = server.create_key("operator", None).await;
    let mut foreign = Vec::new();
    let bulk = json!({"action": "cancel", "filter": {"state": "pending"}, "dryRun": true});
    for n in 0..15 {
        // Interleaves own and foreign names, so that foreign ones come first, last and in between.
        let (name, tenant) =
            if n % 4 == 2 { (format!("s{n:02}-mine"), "acme") } else { (format!("s{n:02}-secret"), "other") };
        server.create_schedule(&name, tenant).await;
        let key = if n % 4 == 2 {
            &own
        } else if n % 4 == 3 {
            &operator
        } else {
            &other
        };
        let (status, operation) = server.request("POST /admin/jobs/bulk", Some(key), &bulk).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{operation}");
        foreign.extend((n % 4 != 2).then(|| operation["operationId"].as_str().unwrap().to_owned()));
    }
    foreign.push("secret".into());
    for (path, items) in [("/schedules", 4), ("/admin/operations", 4), ("/admin/audit", 4)] {
        let pages = pages(&server, path, &own).await;
        let items_shown: Vec<&Value> = pages.iter().flat_map(|page| page["items"].as_array().unwrap()).collect();
        assert_eq!(items_shown.len(), items, "{path}");
        let full = pages[..pages.len() - 1].iter().all(|page| page["items"].as_array().unwrap().len() == 2);
        assert!(full, "{path} has short pages, which reveals hidden items");
        for page in pages {
            let text = page.to_string();
            assert!(foreign.iter().all(|name| !text.contains(name)), "{path}: {text}");
        }
    }
    // A cursor that is a foreign name reveals nothing either.
    for (path, cursor) in [("/schedules", "s00-secret"), ("/admin/operations", foreign[3].as_str())] {
        let (_, page) = server.request(&format!("GET {path}?cursor={cursor}"), Some(&own), &json!({})).await;
        let text = page.to_string();
        assert!(foreign.iter().all(|name| !text.contains(name)), "{path}: {text}");
    }
    // Neither does an attempt to use the name.
    let body = json!({"everySeconds": 60, "job": {"jobType": "t"}});
    let (status, response) = server.request("PUT /schedules/s00-secret", Some(&own), &body).await;
    assert_eq!((status, response["code"].as_str()), (StatusCode::NOT_FOUND, Some("schedule_not_found")));
    // An unbound key sees all schedules and cannot move a schedule to another tenant.
    let all = pages(&server, "/schedules", &operator).await;
    assert_eq!(all.iter().map(|page| page["items"].as_array().unwrap().len()).sum::<usize>(), 15);
    let body = json!({"everySeconds": 60, "job": {"jobType": "t", "tenant": "acme"}});
    let (status, response) = server.request("PUT /schedules/s00-secret", Some(&operator), &body).await;
    let message = "must stay `other`: delete the schedule to change its tenant";
    let errors = json!([{"field": "job.tenant", "message": message}]);
    assert_eq!((status, &response["errors"]), (StatusCode::UNPROCESSABLE_ENTITY, &errors));
    assert_eq!(server.request("GET /schedules/s00-secret", Some(&own), &json!({})).await.0, StatusCode::NOT_FOUND);
    assert_eq!(
        server.request("DELETE /schedules/s00-secret", Some(&operator), &json!({})).await.0,
        StatusCode::NO_CONTENT
    );
    assert_eq!(server.request("PUT /schedules/s00-secret", Some(&operator), &body).await.0, StatusCode::CREATED);
    assert_eq!(server.request("GET /schedules/s00-secret", Some(&own), &json!({})).await.0, StatusCode::OK);
    assert_eq!(server.request("GET /schedules/s00-secret", Some(&other), &json!({})).await.0, StatusCode::NOT_FOUND);
}
