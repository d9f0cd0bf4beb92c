//! The audit: who did what.

use orchestrix_core::{FieldError, Tenant, Timestamp};
use orchestrix_store::{AuditEntry, AuditFilter, NewAuditEntry, PageRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{filter::take_time, page};
#[cfg(feature = "openapi")]
use crate::schema::{AuditText, Name, Time};
use crate::{Object, job::Refusal};

/// Which entries; all that is given must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct AuditRequest {
    /// By this actor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<AuditText>))]
    pub actor: Option<String>,
    /// By an actor that is bound to this tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<Name>))]
    pub tenant: Option<String>,
    /// This action.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<AuditText>))]
    pub action: Option<String>,
    /// To this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<AuditText>))]
    pub target: Option<String>,
    /// At or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<Time>))]
    pub from: Option<Timestamp>,
    /// Before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<Time>))]
    pub to: Option<Timestamp>,
}

/// Reads a question for entries, [`AuditRequest`] with a part of the list.
pub fn read_list(text: &str) -> Result<(AuditFilter, PageRequest<i64>), Refusal> {
    let mut object = Object::read(text)?;
    let filter = AuditFilter {
        actor: object.text("actor", line),
        tenant: object.text("tenant", |text| Tenant::new(text)),
        action: object.text("action", line),
        target: object.text("target", line),
        from: take_time(&mut object, "from"),
        to: take_time(&mut object, "to"),
    };
    let page = page::take(&mut object, |text| text.parse().ok());
    object.end()?;
    Ok((filter, page))
}

fn line(text: &str) -> Result<String, FieldError> {
    match (1..=NewAuditEntry::MAX_TEXT).contains(&text.chars().count()) && !text.contains(char::is_control) {
        true => Ok(text.to_owned()),
        false => {
            let rule =
                format!("must have 1 to {} characters, none of them control characters", NewAuditEntry::MAX_TEXT);
            Err(FieldError::new("", rule))
        }
    }
}

/// What somebody did, or was about to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditView {
    /// Its number; they only rise.
    pub seq: i64,
    /// When it was begun.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// The tenant that they are bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub tenant: Option<Tenant>,
    /// What, in a word.
    pub action: String,
    /// To what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The particulars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
    /// The request that asked for it.
    pub request_id: String,
    /// How it went; absent if nobody knows, as when the server was killed in the middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

impl From<AuditEntry> for AuditView {
    fn from(entry: AuditEntry) -> Self {
        // What is no JSON is shown as the text that it is.
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
    fn a_question_is_written_and_read_alike() {
        let request = AuditRequest {
            actor: Some("key:abc".into()),
            tenant: Some("acme".into()),
            action: Some("POST /jobs/{jobId}/cancel".into()),
            target: Some("/jobs/1".into()),
            from: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            to: None,
        };
        let (filter, page) = read_list(&serde_json::to_string(&request).unwrap()).unwrap();
        assert_eq!((filter.actor, filter.action, filter.target), (request.actor, request.action, request.target));
        assert_eq!((filter.tenant, filter.from, filter.to), (Some(Tenant::trusted("acme")), request.from, None));
        assert_eq!(page, PageRequest::first(page::LIMIT));
        assert_eq!(read_list(r#"{"cursor": "7", "limit": "5"}"#).unwrap().1, PageRequest::after(7, 5));
        let text = r#"{"actor": "", "tenant": "a b", "action": "\n", "from": "now", "cursor": "x", "who": "me"}"#;
        let Err(Refusal::Invalid(invalid)) = read_list(text) else { panic!("taken") };
        let fields: Vec<String> = invalid.errors.into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["actor", "tenant", "action", "from", "cursor", "who"]);
    }
}
