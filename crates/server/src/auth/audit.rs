//! Audit entries of operators' actions: opened before the action, closed with its outcome.
//!
//! The middleware writes them, so that no handler can forget to. If the entry cannot be written, the action does not
//! happen. An entry contains the request's body only if `route_policy` allows it for the route and the route can parse
//! the body. Payloads are never recorded, and secrets in the path are redacted.

use std::sync::Arc;

use axum::{http::Uri, response::Response};
use orchestrix_core::LeaseToken;
use orchestrix_store::{NewAuditEntry, Store};
use serde_json::{Value, json};

use super::{bearer_key::SECRET_DIGITS, principal::Principal};
use crate::api_error::{ApiError, ProblemBody};

/// An action that is about to happen.
pub(crate) struct AuditedAction<'a> {
    pub(crate) caller: &'a Principal,
    /// The method and the route.
    pub(crate) action: String,
    pub(crate) uri: &'a Uri,
    /// The request's body, if it may be recorded.
    pub(crate) body: Option<&'a str>,
    pub(crate) request_id: &'a str,
}

/// An audit entry without an outcome.
pub(crate) struct OpenAuditEntry {
    store: Arc<dyn Store>,
    seq: i64,
}

impl OpenAuditEntry {
    /// Writes the entry of an action that is about to happen.
    pub(crate) async fn open(store: &Arc<dyn Store>, action: AuditedAction<'_>) -> Result<Self, ApiError> {
        let mut target = redact_secrets(action.uri.path());
        target.truncate(target.floor_char_boundary(NewAuditEntry::MAX_TEXT));
        let entry = NewAuditEntry {
            actor: action.caller.name().to_owned(),
            tenant: action.caller.tenant().cloned(),
            action: action.action,
            target: Some(target),
            detail: action.body.and_then(detail),
            request_id: action.request_id.to_owned(),
        };
        Ok(Self { seq: store.begin_audit_entry(entry).await?, store: Arc::clone(store) })
    }

    /// Adds the outcome. A failure is only logged: the action has happened, and its entry exists.
    pub(crate) async fn close(self, outcome: &str) {
        if let Err(error) = self.store.finish_audit_entry(self.seq, outcome).await {
            tracing::warn!(%error, seq = self.seq, outcome, "could not write the outcome of an audit entry");
        }
    }
}

/// The outcome of an action: the response's status and its problem code.
pub(crate) fn outcome(response: &Response) -> String {
    let status = response.status().as_u16();
    match response.extensions().get::<ProblemBody>() {
        Some(ProblemBody(problem)) => format!("{status} {}", problem.code.as_str()),
        None => status.to_string(),
    }
}

/// How many levels of percent-encoding are decoded to find a secret.
const MAX_ENCODINGS: usize = 4;

// An operator may paste a whole key where its id belongs, percent-encoded or with other text around it. A path with a
// secret is recorded decoded and redacted; any other as it was sent.
fn redact_secrets(path: &str) -> String {
    let mut decoded = path.to_owned();
    for _ in 0..MAX_ENCODINGS {
        decoded = percent_decode(&decoded);
    }
    let redacted = redact_hex_runs(&redact_lease_tokens(&decoded));
    match redacted == decoded {
        true => path.to_owned(),
        // Audit entries are printed on terminals.
        false => redacted.replace(char::is_control, "\u{fffd}"),
    }
}

// A reader of the audit log may learn which lease it was, but must not be able to use it.
fn redact_lease_tokens(path: &str) -> String {
    let redact = |segment: &str| match segment.parse::<LeaseToken>() {
        Ok(token) => format!("{}.{}.…", token.job, token.counter),
        Err(_) => segment.to_owned(),
    };
    path.split('/').map(redact).collect::<Vec<_>>().join("/")
}

fn percent_decode(text: &str) -> String {
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| byte == b'%').and_then(|two| std::str::from_utf8(two).ok());
        let escaped = digits.filter(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let escaped = escaped.and_then(|two| u8::from_str_radix(two, 16).ok());
        decoded.push(escaped.unwrap_or(byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

// Replaces every run of hexadecimal digits that is at least as long as a secret.
fn redact_hex_runs(text: &str) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let run = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(run);
        redacted.push_str(if run < SECRET_DIGITS { digits } else { "…" });
        let next_run = after.find(|c: char| c.is_ascii_hexdigit()).unwrap_or(after.len());
        let (between, next) = after.split_at(next_run);
        redacted.push_str(between);
        rest = next;
    }
    redacted
}

// The body as it was sent. A body that is too long is recorded without white space, or else by its length. An empty
// one is not recorded.
fn detail(body: &str) -> Option<String> {
    let body = body.trim();
    if body.is_empty() {
        return None;
    }
    if body.len() <= NewAuditEntry::MAX_DETAIL {
        return Some(body.to_owned());
    }
    let compact = serde_json::from_str::<Value>(body).map(|value| value.to_string());
    let compact = compact.ok().filter(|compact| compact.len() <= NewAuditEntry::MAX_DETAIL);
    Some(compact.unwrap_or_else(|| json!({ "bytes": body.len() }).to_string()))
}

#[cfg(test)]
mod tests {
    use axum::http::{Method, StatusCode};
    use orchestrix_memory::MemoryStore;
    use orchestrix_store::{AuditFilter, PageRequest};

    use super::*;
    use crate::{InProcessApi, auth::bearer_key::BearerKey};

    #[tokio::test]
    async fn a_key_in_a_path_is_redacted() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let api = InProcessApi::new(Arc::clone(&store), "test");
        let (id, key) = {
            let key = BearerKey::generate();
            (key.id.to_string(), key.reveal())
        };
        let escaped: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let secret = key.rsplit('_').next().unwrap();
        for (segment, redacted) in [
            (key.clone(), format!("ox_{id}_…")),
            (format!("{key}%0A"), format!("ox_{id}_…\u{fffd}")),
            (format!("Bearer%20{key}"), format!("Bearer ox_{id}_…")),
            (key.replace('_', "%5F"), format!("ox_{id}_…")),
            (escaped.clone(), format!("ox_{id}_…")),
            (escaped.replace('%', "%25"), format!("ox_{id}_…")),
            (format!("{key}0"), format!("ox_{id}_…")),
            (secret.to_uppercase(), "…".into()),
            (format!("%FF{secret}%zz"), "\u{fffd}…%zz".into()),
        ] {
            let (status, _) = api.call(Method::DELETE, &format!("/admin/keys/{segment}"), None).await.unwrap();
            assert_eq!(status, StatusCode::NOT_FOUND);
            let entries =
                store.list_audit_entries(&AuditFilter::default(), &PageRequest::first(1)).await.unwrap().items;
            assert_eq!(entries[0].target, Some(format!("/admin/keys/{redacted}")), "{segment}");
        }
    }

    #[test]
    fn a_lease_token_is_recorded_without_its_secret_part() {
        let token = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70.3.0199d0a4-8f3e-4c21-9b1f-2f6a3e1c5d71";
        assert!(token.parse::<LeaseToken>().is_ok());
        let redacted = "/worker/leases/0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70.3.…/fail";
        for segment in [token.to_owned(), token.replace('.', "%2E"), token.replace('-', "%252D")] {
            assert_eq!(redact_secrets(&format!("/worker/leases/{segment}/fail")), redacted, "{segment}");
        }
    }

    #[test]
    fn a_path_without_a_secret_is_recorded_as_it_was_sent() {
        let digest = "0123456789abcdef".repeat(4);
        for path in ["/admin/queues/a%20b", "/admin/queues/%F0%9F", "/admin/queues/%4", &format!("/x/{}", &digest[1..])]
        {
            assert_eq!(redact_secrets(path), path);
        }
    }

    #[test]
    fn the_detail_holds_the_ids_of_a_whole_redrive_request() {
        let ids: Vec<String> = (0..1_000).map(|n| format!("0199d0a4-8f3e-7c21-9b1f-{n:012}")).collect();
        let body = json!({ "jobIds": ids });
        assert_eq!(detail(&body.to_string()), Some(body.to_string()));
        let wide = format!(
            "{{\"jobIds\":\n[{}]}}",
            ids.iter().map(|id| format!("{:>60}\"{id}\"", "")).collect::<Vec<_>>().join(",")
        );
        assert_eq!(detail(&wide), Some(body.to_string()), "white space is dropped");
        let text = json!({ "q": "x".repeat(NewAuditEntry::MAX_DETAIL) }).to_string();
        assert_eq!(detail(&text), Some(json!({ "bytes": text.len() }).to_string()));
        assert_eq!(detail(" \n"), None);
    }

    #[tokio::test]
    async fn a_long_target_is_truncated_at_a_character_boundary() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        // The limit falls within a two-byte character.
        let path = format!("/admin/queues/x{}", "é".repeat(NewAuditEntry::MAX_TEXT));
        let api = InProcessApi::new(Arc::clone(&store), "test");
        let (status, _) = api.call(Method::PUT, &path, Some(r#"{"paused": true}"#.into())).await.unwrap();
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        let entries = store.list_audit_entries(&AuditFilter::default(), &PageRequest::first(2)).await.unwrap().items;
        let target = entries[0].target.as_deref().unwrap();
        assert!(target.len() == NewAuditEntry::MAX_TEXT - 1 && path.starts_with(target), "{target}");
    }
}
