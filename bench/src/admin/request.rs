//! Requests one page repeatedly.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::{body::Bytes, http::Method};
use orchestrix_server::InProcessApi;
use serde_json::Value;

use super::{pages::Page, placeholders::Placeholders};

/// The maximum number of empty pages that are empty_pages to the first item.
const MAX_EMPTY_PAGES: usize = 100;

/// The timings of one page.
#[derive(Debug)]
pub(super) struct PageTiming {
    pub(super) path: &'static str,
    /// Sorted.
    pub(super) took: Vec<Duration>,
    pub(super) bytes: usize,
    /// The number of items, if the page is a list.
    pub(super) items: Option<usize>,
    /// The pages after an empty first page of a list.
    pub(super) empty_pages: Option<EmptyPages>,
}

/// The pages of a list from its empty first page to its first item.
#[derive(Debug)]
pub(super) struct EmptyPages {
    pub(super) parts: usize,
    pub(super) took: Duration,
    /// Whether an item or the end was reached.
    pub(super) ended: bool,
}

/// Requests a page `rounds` times, one request after the other.
pub(super) async fn request_page(
    local: &InProcessApi,
    page: &Page,
    placeholders: &Placeholders,
    rounds: usize,
) -> Result<PageTiming> {
    let path = placeholders.fill(page.path);
    let mut took = Vec::with_capacity(rounds);
    let mut body = Bytes::new();
    for _ in 0..rounds {
        let clock = Instant::now();
        body = get(local, &path, page.status).await?;
        took.push(clock.elapsed());
    }
    took.sort_unstable();
    let shown: Value = serde_json::from_slice(&body).unwrap_or_default();
    let items = shown["items"].as_array().map(Vec::len);
    let empty_pages = match (items, shown["nextCursor"].as_str()) {
        (Some(0), Some(cursor)) => Some(follow(local, &path, cursor.to_owned()).await?),
        _ => None,
    };
    Ok(PageTiming { path: page.path, took, bytes: body.len(), items, empty_pages })
}

/// Sends one request and checks its status.
pub(super) async fn get(local: &InProcessApi, path: &str, status: u16) -> Result<Bytes> {
    let (answered, body) = local.call(Method::GET, path, None).await?;
    ensure!(answered == status, "{path}: {answered}: {body:?}");
    Ok(body)
}

async fn follow(local: &InProcessApi, path: &str, mut cursor: String) -> Result<EmptyPages> {
    let clock = Instant::now();
    for parts in 1..=MAX_EMPTY_PAGES {
        let body = get(local, &with_cursor(path, &format!("cursor={cursor}")), 200).await?;
        let shown: Value = serde_json::from_slice(&body)?;
        let empty = shown["items"].as_array().context("no items")?.is_empty();
        match shown["nextCursor"].as_str() {
            Some(next) if empty => cursor = next.to_owned(),
            _ => return Ok(EmptyPages { parts, took: clock.elapsed(), ended: true }),
        }
    }
    Ok(EmptyPages { parts: MAX_EMPTY_PAGES, took: clock.elapsed(), ended: false })
}

/// The path with this cursor; it replaces any other.
fn with_cursor(path: &str, cursor: &str) -> String {
    let (path, asked) = path.split_once('?').unwrap_or((path, ""));
    let kept = asked.split('&').filter(|part| !part.is_empty() && !part.starts_with("cursor="));
    let all: Vec<&str> = kept.chain([cursor]).collect();
    format!("{path}?{}", all.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_replaces_the_previous_one() {
        assert_eq!(with_cursor("/admin/jobs", "cursor=b"), "/admin/jobs?cursor=b");
        assert_eq!(with_cursor("/admin/jobs?cursor=a&q=x", "cursor=b"), "/admin/jobs?q=x&cursor=b");
    }
}
