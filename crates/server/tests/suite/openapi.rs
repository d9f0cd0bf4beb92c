//! The description of the API, and the page that shows it.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, header},
};
use orchestrix_memory::MemoryStore;
use orchestrix_server::{App, ServerOptions, router};
use serde_json::Value;
use tower::ServiceExt;

fn server() -> Router {
    router(App::new(Arc::new(MemoryStore::new()), ServerOptions::default()))
}

/// Status, kind and text of what lies at a path; where it sends one to, if it does.
async fn get(server: &Router, path: &str) -> (u16, String, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let answer = server.clone().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let told = if answer.status().is_redirection() { header::LOCATION } else { header::CONTENT_TYPE };
    let told = answer.headers()[told].to_str().unwrap().to_owned();
    let body = to_bytes(answer.into_body(), 16 * 1024 * 1024).await.unwrap();
    (status, told, String::from_utf8_lossy(&body).into_owned())
}

async fn document() -> Value {
    let (status, kind, text) = get(&server(), "/openapi.json").await;
    assert_eq!((status, kind.as_str()), (200, "application/json"));
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn the_api_is_described() {
    let document = document().await;
    insta::assert_snapshot!("openapi", serde_json::to_string_pretty(&document).unwrap());
}

#[tokio::test]
async fn every_reference_leads_somewhere() {
    let document = document().await;
    let text = document.to_string();
    let places: BTreeSet<&str> =
        text.split(r##""$ref":"#"##).skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(places.len() > 50, "{places:?}");
    for place in places {
        assert!(document.pointer(place).is_some(), "{place}");
    }
    let named = |key: &str| -> BTreeSet<String> {
        let key = format!(r#""{key}":""#);
        text.split(&key).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values());
    let operations: BTreeSet<String> =
        operations.map(|operation| operation["operationId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(named("operationId"), operations, "a link leads nowhere");
}

#[tokio::test]
async fn every_answer_that_is_a_problem_stands_under_its_status() {
    let document = document().await;
    let problems = document["components"]["responses"].as_object().unwrap();
    let mut used = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(operation["summary"].is_string() && operation["operationId"].is_string(), "{method} {path}");
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let Some(name) = answer["$ref"].as_str().map(|place| place.rsplit('/').next().unwrap()) else {
                    continue;
                };
                let schema = &problems[name]["content"]["application/problem+json"]["schema"];
                let told = &schema["allOf"][1]["properties"]["status"]["const"];
                assert_eq!(told.to_string(), *status, "{method} {path}: {name}");
                used.insert(name.to_owned());
            }
        }
    }
    let described: BTreeSet<String> = problems.keys().cloned().collect();
    assert_eq!(used, described, "described, and nobody answers it");
}

#[tokio::test]
async fn the_page_needs_nothing_from_elsewhere() {
    let server = server();
    let (status, place, _) = get(&server, "/docs").await;
    assert_eq!((status, place.as_str()), (308, "/docs/"));
    let (status, kind, page) = get(&server, &place).await;
    assert_eq!((status, kind.as_str()), (200, "text/html"));
    let links: Vec<&str> = page
        .split(['"', '\''])
        .zip(page.split(['"', '\'']).skip(1))
        .filter(|(before, _)| is_link(before))
        .map(|(_, link)| link)
        .collect();
    assert!(links.len() >= 6, "{links:?}");
    assert!(!page.contains("//"), "{page}");
    let mut set_up = false;
    for link in links {
        let path = format!("/docs/{}", link.trim_start_matches("./"));
        let (status, kind, text) = get(&server, &path).await;
        let expected = match link.rsplit('.').next().unwrap() {
            "js" => "text/javascript",
            "css" => "text/css",
            "png" => "image/png",
            other => panic!("{link}: what is a {other}?"),
        };
        assert_eq!((status, kind.as_str()), (200, expected), "{path}");
        if expected == "text/css" {
            assert!(!text.contains("@import"), "{path}");
            let foreign =
                text.split("url(").skip(1).find(|url| !url.trim_start_matches(['"', '\'']).starts_with("data:"));
            assert_eq!(foreign.map(|url| &url[..url.len().min(60)]), None, "{path}");
        }
        if text.contains("window.ui = SwaggerUIBundle(") {
            assert!(text.contains(r#""url": "/openapi.json""#), "{text}");
            // Left alone, it asks a validator on the internet about every document that it shows.
            assert!(text.contains(r#""validatorUrl": "none""#), "{text}");
            assert!(!text.contains("://"), "{text}");
            set_up = true;
        }
    }
    assert!(set_up);
    // Whatever its scripts may want, a browser fetches it from here or not at all.
    let answer = server.clone().oneshot(Request::get("/docs/").body(Body::empty()).unwrap()).await.unwrap();
    let policy = answer.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'self';") && !policy.contains("//"), "{policy}");
    let (status, kind, _) = get(&server, "/docs/nothing.js").await;
    assert_eq!((status, kind.as_str()), (404, "application/problem+json"));
}

fn is_link(before: &str) -> bool {
    before.ends_with("src=") || before.ends_with("href=")
}
