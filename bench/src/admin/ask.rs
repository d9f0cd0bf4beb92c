//! One page, asked for again and again.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::{body::Bytes, http::Method};
use orchestrix_server::InProcessApi;
use serde_json::Value;

use super::{landmarks::Landmarks, pages::Page};

/// Parts of a list that are followed to the first item, at most.
const FOLLOWED: usize = 100;

/// What was seen of a page.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) path: &'static str,
    /// In the order of length.
    pub(super) took: Vec<Duration>,
    pub(super) bytes: usize,
    /// How many items there were, if it is a list.
    pub(super) items: Option<usize>,
    /// How many more parts had to be asked for until one had an item, and how long that took; for a list whose first part has none.
    pub(super) followed: Option<Followed>,
}

/// How a list went on that began with nothing.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) parts: usize,
    pub(super) took: Duration,
    /// Whether there was an item or the end, and not just more to follow.
    pub(super) ended: bool,
}

/// Asks for a page so many times, one after the other.
pub(super) async fn ask(local: &InProcessApi, page: &Page, landmarks: &Landmarks, rounds: usize) -> Result<Seen> {
    let path = landmarks.fill(page.path);
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
    let followed = match (items, shown["nextCursor"].as_str()) {
        (Some(0), Some(cursor)) => Some(follow(local, &path, cursor.to_owned()).await?),
        _ => None,
    };
    Ok(Seen { path: page.path, took, bytes: body.len(), items, followed })
}

/// Asks once, and insists on the status.
pub(super) async fn get(local: &InProcessApi, path: &str, status: u16) -> Result<Bytes> {
    let (answered, body) = local.call(Method::GET, path, None).await?;
    ensure!(answered == status, "{path}: {answered}: {body:?}");
    Ok(body)
}

async fn follow(local: &InProcessApi, path: &str, mut cursor: String) -> Result<Followed> {
    let clock = Instant::now();
    for parts in 1..=FOLLOWED {
        let body = get(local, &from_cursor(path, &format!("cursor={cursor}")), 200).await?;
        let shown: Value = serde_json::from_slice(&body)?;
        let empty = shown["items"].as_array().context("no items")?.is_empty();
        match shown["nextCursor"].as_str() {
            Some(next) if empty => cursor = next.to_owned(),
            _ => return Ok(Followed { parts, took: clock.elapsed(), ended: true }),
        }
    }
    Ok(Followed { parts: FOLLOWED, took: clock.elapsed(), ended: false })
}

/// The path with this cursor in place of any that it has.
fn from_cursor(path: &str, cursor: &str) -> String {
    let (path, asked) = path.split_once('?').unwrap_or((path, ""));
    let kept = asked.split('&').filter(|part| !part.is_empty() && !part.starts_with("cursor="));
    let all: Vec<&str> = kept.chain([cursor]).collect();
    format!("{path}?{}", all.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_takes_the_place_of_the_one_before() {
        assert_eq!(from_cursor("/admin/jobs", "cursor=b"), "/admin/jobs?cursor=b");
        assert_eq!(from_cursor("/admin/jobs?cursor=a&q=x", "cursor=b"), "/admin/jobs?q=x&cursor=b");
    }
}
