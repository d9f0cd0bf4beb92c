//! What operators do, written down before it is done, and how it went afterwards.
//!
//! This is done around handlers and not in them, so that none can forget it: whatever changes something and is for operators is
//! written down. If it cannot be, it is not done. Of what was sent along only that is kept which the route understands and names as worth
//! keeping (`access`): payloads, and what nobody knows, never are.

use std::sync::Arc;

use axum::{http::Uri, response::Response};
use orchestrix_core::LeaseToken;
use orchestrix_store::{NewAuditEntry, Store};
use serde_json::{Value, json};

use super::caller::Caller;
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
        target.truncate(target.floor_char_boundary(NewAuditEntry::MAX_TEXT));
        let entry = NewAuditEntry {
            actor: deed.caller.name().to_owned(),
            tenant: deed.caller.tenant().cloned(),
            action: deed.action,
            target: Some(target),
            detail: deed.body.and_then(detail),
            request_id: deed.request_id.to_owned(),
        };
        Ok(Self { seq: store.begin_audit_entry(entry).await?, store: Arc::clone(store) })
    }

    /// Writes down how it went.
    pub(crate) async fn end(self, outcome: &str) {
        // It is done, and its line is there: only this word is missing.
        if let Err(error) = self.store.finish_audit_entry(self.seq, outcome).await {
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

/// A secret is so many hexadecimal digits.
const SECRET: usize = 64;
/// Texts that were escaped more often than this are nobody's mistake.
const ESCAPED: usize = 4;

// Somebody may have put a whole key where its id belongs, with whatever came along when it was copied, and escaped. A path that has a secret
// in it is kept as it reads, without the secret; any other as it came.
fn without_secrets(path: &str) -> String {
    let mut read = path.to_owned();
    for _ in 0..ESCAPED {
        read = unescaped(&read);
    }
    let cut = without_runs(&without_tokens(&read));
    match cut == read {
        true => path.to_owned(),
        // The audit is read on terminals.
        false => cut.replace(char::is_control, "\u{fffd}"),
    }
}

// Whoever reads the audit need not own a job to know which one it was.
fn without_tokens(path: &str) -> String {
    let part = |part: &str| match part.parse::<LeaseToken>() {
        Ok(token) => format!("{}.{}.…", token.job, token.counter),
        Err(_) => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

fn unescaped(text: &str) -> String {
    let (bytes, mut read, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| byte == b'%').and_then(|two| std::str::from_utf8(two).ok());
        let escaped = digits.filter(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let escaped = escaped.and_then(|two| u8::from_str_radix(two, 16).ok());
        read.push(escaped.unwrap_or(byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&read).into_owned()
}

// Whatever is as long as a secret and looks like one goes, and what it runs on into.
fn without_runs(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let run = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(run);
        kept.push_str(if run < SECRET { digits } else { "…" });
        let other = after.find(|c: char| c.is_ascii_hexdigit()).unwrap_or(after.len());
        let (between, next) = after.split_at(other);
        kept.push_str(between);
        rest = next;
    }
    kept
}

// As it was sent, or without the space between its words if it is too long otherwise. A request that says nothing has no particulars.
fn detail(body: &str) -> Option<String> {
    let body = body.trim();
    if body.is_empty() {
        return None;
    }
    if body.len() <= NewAuditEntry::MAX_DETAIL {
        return Some(body.to_owned());
    }
    let brief = serde_json::from_str::<Value>(body).map(|value| value.to_string());
    let brief = brief.ok().filter(|brief| brief.len() <= NewAuditEntry::MAX_DETAIL);
    Some(brief.unwrap_or_else(|| json!({ "bytes": body.len() }).to_string()))
}

#[cfg(test)]
mod tests {
    use axum::http::{Method, StatusCode};
    use orchestrix_memory::MemoryStore;
    use orchestrix_store::{AuditFilter, PageRequest};

    use super::*;
    use crate::{Local, auth::secret::Shown};

    #[tokio::test]
    async fn a_key_that_was_put_into_a_path_is_not_written_down() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let local = Local::new(Arc::clone(&store), "test");
        let (id, key) = {
            let shown = Shown::fresh();
            (shown.id.to_string(), shown.text())
        };
        let escaped: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let secret = key.rsplit('_').next().unwrap();
        for (put, kept) in [
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
            let (status, _) = local.call(Method::DELETE, &format!("/admin/keys/{put}"), None).await.unwrap();
            assert_eq!(status, StatusCode::NOT_FOUND);
            let entries =
                store.list_audit_entries(&AuditFilter::default(), &PageRequest::first(1)).await.unwrap().items;
            assert_eq!(entries[0].target, Some(format!("/admin/keys/{kept}")), "{put}");
        }
    }

    #[test]
    fn a_lease_token_is_kept_without_what_makes_it_one() {
        let token = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70.3.0199d0a4-8f3e-4c21-9b1f-2f6a3e1c5d71";
        assert!(token.parse::<LeaseToken>().is_ok());
        let kept = "/worker/leases/0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70.3.…/fail";
        for put in [token.to_owned(), token.replace('.', "%2E"), token.replace('-', "%252D")] {
            assert_eq!(without_secrets(&format!("/worker/leases/{put}/fail")), kept, "{put}");
        }
    }

    #[test]
    fn a_path_without_a_secret_is_kept_as_it_came() {
        let digest = "0123456789abcdef".repeat(4);
        for path in ["/admin/queues/a%20b", "/admin/queues/%F0%9F", "/admin/queues/%4", &format!("/x/{}", &digest[1..])]
        {
            assert_eq!(without_secrets(path), path);
        }
    }

    #[test]
    fn the_names_of_as_many_jobs_as_may_be_named_are_kept() {
        let ids: Vec<String> = (0..1_000).map(|n| format!("0199d0a4-8f3e-7c21-9b1f-{n:012}")).collect();
        let body = json!({ "jobIds": ids });
        assert_eq!(detail(&body.to_string()), Some(body.to_string()));
        let wide = format!(
            "{{\"jobIds\":\n[{}]}}",
            ids.iter().map(|id| format!("{:>60}\"{id}\"", "")).collect::<Vec<_>>().join(",")
        );
        assert_eq!(detail(&wide), Some(body.to_string()), "the space between them is not worth keeping");
        let text = json!({ "q": "x".repeat(NewAuditEntry::MAX_DETAIL) }).to_string();
        assert_eq!(detail(&text), Some(json!({ "bytes": text.len() }).to_string()));
        assert_eq!(detail(" \n"), None);
    }

    #[tokio::test]
    async fn what_is_too_long_is_cut_between_letters() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        // A letter of two bytes stands where it is cut.
        let path = format!("/admin/queues/x{}", "é".repeat(NewAuditEntry::MAX_TEXT));
        let local = Local::new(Arc::clone(&store), "test");
        let (status, _) = local.call(Method::PUT, &path, Some(r#"{"paused": true}"#.into())).await.unwrap();
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        let entries = store.list_audit_entries(&AuditFilter::default(), &PageRequest::first(2)).await.unwrap().items;
        let target = entries[0].target.as_deref().unwrap();
        assert!(target.len() == NewAuditEntry::MAX_TEXT - 1 && path.starts_with(target), "{target}");
    }
}
