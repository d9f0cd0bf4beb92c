//! What operators do, written down before it is done, and how it went afterwards.
//!
//! This is done around handlers and not in them, so that none can forget it: whatever changes something and is for operators is
//! written down. If it cannot be, it is not done. Of what was sent along only that is kept which the route understands and names as worth
//! keeping (`access`): payloads, and what nobody knows, never are.

use std::sync::Arc;

use axum::{http::Uri, response::Response};
use orchestrix_core::LeaseToken;
use orchestrix_store::{NewAudit, Store};
use serde_json::json;

use super::{caller::Caller, secret::Shown};
use crate::refusal::{ProblemBody, Refusal};

/// What is about to be done.
pub(crate) struct Deed<'a> {
    pub(crate) caller: &'a Caller,
    /// The method and the route.
    pub(crate) action: String,
    pub(crate) uri: &'a Uri,
    /// What was sent along, if it is worth keeping.
    pub(crate) body: Option<&'a str>,
    pub(crate) request_id: &'a str,
}

/// A line of the audit that waits for its end.
pub(crate) struct Line {
    store: Arc<dyn Store>,
    seq: i64,
}

impl Line {
    /// Writes down what is about to be done.
    pub(crate) async fn begin(store: &Arc<dyn Store>, deed: Deed<'_>) -> Result<Self, Refusal> {
        let mut target = without_secrets(deed.uri.path());
        target.truncate(target.floor_char_boundary(NewAudit::MAX_TEXT));
        let entry = NewAudit {
            actor: deed.caller.name().to_owned(),
            tenant: deed.caller.tenant().cloned(),
            action: deed.action,
            target: Some(target),
            detail: deed.body.and_then(detail),
            request_id: deed.request_id.to_owned(),
        };
        Ok(Self { seq: store.begin_audit(entry).await?, store: Arc::clone(store) })
    }

    /// Writes down how it went.
    pub(crate) async fn end(self, outcome: &str) {
        // It is done, and its line is there: only this word is missing.
        if let Err(error) = self.store.end_audit(self.seq, outcome).await {
            tracing::warn!(%error, seq = self.seq, outcome, "how it went could not be added to the audit");
        }
    }
}

/// How it went, in a word or two.
pub(crate) fn outcome(response: &Response) -> String {
    let status = response.status().as_u16();
    match response.extensions().get::<ProblemBody>() {
        Some(ProblemBody(problem)) => format!("{status} {}", problem.code.as_str()),
        None => status.to_string(),
    }
}

// Somebody may have put a whole key where its id belongs; and whoever reads the audit need not own a job to know which one it was.
fn without_secrets(path: &str) -> String {
    let part = |part: &str| match (Shown::read(part), part.parse::<LeaseToken>()) {
        (Some(key), _) => format!("ox_{}_…", key.id),
        (None, Ok(token)) => format!("{}.{}.…", token.job, token.counter),
        (None, Err(_)) => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

// As it was sent, if it is short enough. A request that says nothing has no particulars.
fn detail(body: &str) -> Option<String> {
    let body = body.trim();
    match body.len() {
        0 => None,
        1..=NewAudit::MAX_DETAIL => Some(body.to_owned()),
        bytes => Some(json!({ "bytes": bytes }).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{Method, StatusCode};
    use orchestrix_store::{AuditFilter, MemoryStore, PageRequest};

    use super::*;
    use crate::Local;

    #[tokio::test]
    async fn a_key_that_was_put_into_a_path_is_not_written_down() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let local = Local::new(Arc::clone(&store), "test");
        let key = Shown::fresh();
        let path = format!("/admin/keys/{}", key.text());
        let (status, _) = local.call(Method::DELETE, &path, None).await.unwrap();
        assert_eq!(status, StatusCode::NOT_FOUND);
        let entries = store.audit(&AuditFilter::default(), &PageRequest::first(2)).await.unwrap().items;
        assert_eq!(entries[0].target, Some(format!("/admin/keys/ox_{}_…", key.id)));
    }

    #[tokio::test]
    async fn what_is_too_long_is_cut_between_letters() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        // A letter of two bytes stands where it is cut.
        let path = format!("/admin/queues/x{}", "é".repeat(NewAudit::MAX_TEXT));
        let local = Local::new(Arc::clone(&store), "test");
        let (status, _) = local.call(Method::PUT, &path, Some(r#"{"paused": true}"#.into())).await.unwrap();
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        let entries = store.audit(&AuditFilter::default(), &PageRequest::first(2)).await.unwrap().items;
        let target = entries[0].target.as_deref().unwrap();
        assert!(target.len() == NewAudit::MAX_TEXT - 1 && path.starts_with(target), "{target}");
    }
}
