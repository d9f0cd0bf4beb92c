//! The OpenAPI document and the page that shows it.

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

/// Status, content type and text of a path. For a redirect, its location instead of the content type.
async fn get(server: &Router, path: &str) -> (u16, String, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = server.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let name = if response.status().is_redirection() { header::LOCATION } else { header::CONTENT_TYPE };
    let value = response.headers()[name].to_str().unwrap().to_owned();
    let body = to_bytes(response.into_body(), 16 * 1024 * 1024).await.unwrap();
    (status, value, String::from_utf8_lossy(&body).into_owned())
}

async fn document() -> Value {
    let (status, kind, text) = get(&server(), "/openapi.json").await;
    assert_eq!((status, kind.as_str()), (200, "application/json"));
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn the_openapi_document_matches_the_snapshot() {
    let document = document().await;
    insta::assert_snapshot!("openapi", serde_json::to_string_pretty(&document).unwrap());
}

#[tokio::test]
async fn every_reference_and_link_resolves() {
    let document = document().await;
    let text = document.to_string();
    let pointers: BTreeSet<&str> =
        text.split(r##""$ref":"#"##).skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(pointers.len() > 50, "{pointers:?}");
    for pointer in pointers {
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
    let named = |key: &str| -> BTreeSet<String> {
        let key = format!(r#""{key}":""#);
        text.split(&key).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values());
    let operations: BTreeSet<String> =
        operations.map(|operation| operation["operationId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(named("operationId"), operations, "a link names an unknown operation");
}

#[tokio::test]
async fn every_error_response_is_documented_under_its_status_and_used() {
    let document = document().await;
    let problems = document["components"]["responses"].as_object().unwrap();
    let mut used = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(operation["summary"].is_string() && operation["operationId"].is_string(), "{method} {path}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                let Some(name) = response["$ref"].as_str().map(|place| place.rsplit('/').next().unwrap()) else {
                    continue;
                };
                let schema = &problems[name]["content"]["application/problem+json"]["schema"];
                let documented = &schema["allOf"][1]["properties"]["status"]["const"];
                assert_eq!(documented.to_string(), *status, "{method} {path}: {name}");
                used.insert(name.to_owned());
            }
        }
    }
    let described: BTreeSet<String> = problems.keys().cloned().collect();
    assert_eq!(used, described, "a documented error response is unused");
}

#[tokio::test]
async fn the_docs_page_loads_nothing_from_other_hosts() {
    let server = server();
    let (status, location, _) = get(&server, "/docs").await;
    assert_eq!((status, location.as_str()), (308, "/docs/"));
    let (status, kind, page) = get(&server, &location).await;
    assert_eq!((status, kind.as_str()), (200, "text/html"));
    let links: Vec<&str> = page
        .split(['"', '\''])
        .zip(page.split(['"', '\'']).skip(1))
        .filter(|(before, _)| is_link(before))
        .map(|(_, link)| link)
        .collect();
    assert!(links.len() >= 6, "{links:?}");
    assert!(!page.contains("//"), "{page}");
    let mut has_initializer = false;
    for link in links {
        let path = format!("/docs/{}", link.trim_start_matches("./"));
        let (status, kind, text) = get(&server, &path).await;
        let expected = match link.rsplit('.').next().unwrap() {
            "js" => "text/javascript",
            "css" => "text/css",
            "png" => "image/png",
            other => panic!("{link}: unexpected file type {other}"),
        };
        assert_eq!((status, kind.as_str()), (200, expected), "{path}");
        if expected == "text/css" {
            assert!(!text.contains("@import"), "{path}");
            let external =
                text.split("url(").skip(1).find(|url| !url.trim_start_matches(['"', '\'']).starts_with("data:"));
            assert_eq!(external.map(|url| &url[..url.len().min(60)]), None, "{path}");
        }
        if text.contains("window.ui = SwaggerUIBundle(") {
            assert!(text.contains(r#""url": "/openapi.json""#), "{text}");
            // By default Swagger UI sends the document to an external validator.
            assert!(text.contains(r#""validatorUrl": "none""#), "{text}");
            assert!(!text.contains("://"), "{text}");
            has_initializer = true;
        }
    }
    assert!(has_initializer);
    // The content security policy forbids other hosts.
    let response = server.clone().oneshot(Request::get("/docs/").body(Body::empty()).unwrap()).await.unwrap();
    let policy = response.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'self';") && !policy.contains("//"), "{policy}");
    let (status, kind, _) = get(&server, "/docs/nothing.js").await;
    assert_eq!((status, kind.as_str()), (404, "application/problem+json"));
}

fn is_link(before: &str) -> bool {
    before.ends_with("src=") || before.ends_with("href=")
}
