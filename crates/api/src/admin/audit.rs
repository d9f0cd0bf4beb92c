//! Audit entries: who did what.

use orchestrix_core::{FieldError, Tenant, Timestamp};
use orchestrix_store::{AuditEntry, AuditFilter, NewAuditEntry, PageRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{filter::take_time, page};
#[cfg(feature = "openapi")]
use crate::schema::{AuditText, Name, Time};
use crate::{ObjectReader, RequestError};

/// Selects audit entries. All given criteria must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct AuditFilterRequest {
    /// The actor of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<AuditText>))]
    pub actor: Option<String>,
    /// The tenant that the actor is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<Name>))]
    pub tenant: Option<String>,
    /// The action.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<AuditText>))]
    pub action: Option<String>,
    /// The target of the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<AuditText>))]
    pub target: Option<String>,
    /// Entries at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<Time>))]
    pub from: Option<Timestamp>,
    /// Entries before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<Time>))]
    pub to: Option<Timestamp>,
}

/// Parses the query of a list of entries: an [`AuditFilterRequest`] and a page.
pub fn parse_list(text: &str) -> Result<(AuditFilter, PageRequest<i64>), RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let filter = AuditFilter {
        actor: object.string("actor", parse_line),
        tenant: object.string("tenant", |text| Tenant::new(text)),
        action: object.string("action", parse_line),
        target: object.string("target", parse_line),
        from: take_time(&mut object, "from"),
        to: take_time(&mut object, "to"),
    };
    let page = page::take_page(&mut object, |text| text.parse().ok());
    object.finish()?;
    Ok((filter, page))
}

fn parse_line(text: &str) -> Result<String, FieldError> {
    match (1..=NewAuditEntry::MAX_TEXT).contains(&text.chars().count()) && !text.contains(char::is_control) {
        true => Ok(text.to_owned()),
        false => {
            let rule =
                format!("must have 1 to {} characters, none of them control characters", NewAuditEntry::MAX_TEXT);
            Err(FieldError::new("", rule))
        }
    }
}

/// An audit entry. It is written before the action runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEntryView {
    /// The sequence number, which only increases.
    pub seq: i64,
    /// When the action started.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// The actor.
    pub actor: String,
    /// The tenant that the actor is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub tenant: Option<Tenant>,
    /// The action.
    pub action: String,
    /// The target of the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The request body, for routes whose bodies are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
    /// The id of the request.
    pub request_id: String,
    /// The result. Absent if it was not recorded, for example because the server was killed during the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

impl From<AuditEntry> for AuditEntryView {
    fn from(entry: AuditEntry) -> Self {
        // Text that is not JSON becomes a JSON string.
        let detail = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
        Self {
            seq: entry.seq,
            at: entry.at,
            actor: entry.actor,
            tenant: entry.tenant,
            action: entry.action,
            target: entry.target,
            detail: entry.detail.map(detail),
            request_id: entry.request_id,
            outcome: entry.outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audit_query_round_trips() {
        let request = AuditFilterRequest {
            actor: Some("key:abc".into()),
            tenant: Some("acme".into()),
            action: Some("POST /jobs/{jobId}/cancel".into()),
            target: Some("/jobs/1".into()),
            from: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            to: None,
        };
        let (filter, page) = parse_list(&serde_json::to_string(&request).unwrap()).unwrap();
        assert_eq!((filter.actor, filter.action, filter.target), (request.actor, request.action, request.target));
        assert_eq!((filter.tenant, filter.from, filter.to), (Some(Tenant::trusted("acme")), request.from, None));
        assert_eq!(page, PageRequest::first(page::DEFAULT_LIMIT));
        assert_eq!(parse_list(r#"{"cursor": "7", "limit": "5"}"#).unwrap().1, PageRequest::after(7, 5));
        let text = r#"{"actor": "", "tenant": "a b", "action": "\n", "from": "now", "cursor": "x", "who": "me"}"#;
        let Err(RequestError::Invalid(invalid)) = parse_list(text) else { panic!("the request was accepted") };
        let fields: Vec<String> = invalid.errors.into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["actor", "tenant", "action", "from", "cursor", "who"]);
    }
}
