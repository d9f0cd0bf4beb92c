//! Lists by a key that is bound to a tenant, among many things of others.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::Place;

/// Follows a list from page to page; the text of every answer.
async fn pages(place: &Place, path: &str, key: &str) -> Vec<Value> {
    let mut pages = Vec::new();
    let mut next = String::new();
    // Far more than there are.
    for _ in 0..100 {
        let (status, page) = place.ask(&format!("GET {path}?limit=2{next}"), Some(key), &json!({})).await;
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
async fn no_list_tells_of_what_is_another_tenants_not_even_by_its_cursors() {
    let place = Place::new();
    let (own, other) = (place.key("operator", Some("acme")).await, place.key("operator", Some("other")).await);
    let operator = place.key("operator", None).await;
    let mut foreign = Vec::new();
    let bulk = json!({"action": "cancel", "filter": {"state": "pending"}, "dryRun": true});
    for n in 0..15 {
        // Names of theirs and of others in turn, so that those of others come first, last and between.
        let (name, tenant) =
            if n % 4 == 2 { (format!("s{n:02}-mine"), "acme") } else { (format!("s{n:02}-secret"), "other") };
        place.schedule(&name, tenant).await;
        let key = if n % 4 == 2 {
            &own
        } else if n % 4 == 3 {
            &operator
        } else {
            &other
        };
        let (status, begun) = place.ask("POST /admin/jobs/bulk", Some(key), &bulk).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{begun}");
        foreign.extend((n % 4 != 2).then(|| begun["operationId"].as_str().unwrap().to_owned()));
    }
    foreign.push("secret".into());
    for (path, items) in [("/schedules", 4), ("/admin/operations", 4), ("/admin/audit", 4)] {
        let pages = pages(&place, path, &own).await;
        let shown: Vec<&Value> = pages.iter().flat_map(|page| page["items"].as_array().unwrap()).collect();
        assert_eq!(shown.len(), items, "{path}");
        let full = pages[..pages.len() - 1].iter().all(|page| page["items"].as_array().unwrap().len() == 2);
        assert!(full, "{path} has pages that are empty for no reason that is theirs to know");
        for page in pages {
            let text = page.to_string();
            assert!(foreign.iter().all(|name| !text.contains(name)), "{path}: {text}");
        }
    }
    // A cursor that is a name of another tells nothing either.
    for (path, cursor) in [("/schedules", "s00-secret"), ("/admin/operations", foreign[3].as_str())] {
        let (_, page) = place.ask(&format!("GET {path}?cursor={cursor}"), Some(&own), &json!({})).await;
        let text = page.to_string();
        assert!(foreign.iter().all(|name| !text.contains(name)), "{path}: {text}");
    }
    // Nor does taking the name.
    let body = json!({"everySeconds": 60, "job": {"jobType": "t"}});
    let (status, answer) = place.ask("PUT /schedules/s00-secret", Some(&own), &body).await;
    assert_eq!((status, answer["code"].as_str()), (StatusCode::NOT_FOUND, Some("schedule_not_found")));
    // Whoever is bound to none sees all, and gives no schedule to another tenant.
    let all = pages(&place, "/schedules", &operator).await;
    assert_eq!(all.iter().map(|page| page["items"].as_array().unwrap().len()).sum::<usize>(), 15);
    let body = json!({"everySeconds": 60, "job": {"jobType": "t", "tenant": "acme"}});
    let (status, answer) = place.ask("PUT /schedules/s00-secret", Some(&operator), &body).await;
    let message = "must stay `other`: delete the schedule to change its tenant";
    let errors = json!([{"field": "job.tenant", "message": message}]);
    assert_eq!((status, &answer["errors"]), (StatusCode::UNPROCESSABLE_ENTITY, &errors));
    assert_eq!(place.ask("GET /schedules/s00-secret", Some(&own), &json!({})).await.0, StatusCode::NOT_FOUND);
    assert_eq!(place.ask("DELETE /schedules/s00-secret", Some(&operator), &json!({})).await.0, StatusCode::NO_CONTENT);
    assert_eq!(place.ask("PUT /schedules/s00-secret", Some(&operator), &body).await.0, StatusCode::CREATED);
    assert_eq!(place.ask("GET /schedules/s00-secret", Some(&own), &json!({})).await.0, StatusCode::OK);
    assert_eq!(place.ask("GET /schedules/s00-secret", Some(&other), &json!({})).await.0, StatusCode::NOT_FOUND);
}
