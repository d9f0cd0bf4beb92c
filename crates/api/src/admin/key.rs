//! API keys. The response to the creation of a key is the only one that contains its secret.

use std::{ops::RangeInclusive, time::Duration};

use orchestrix_core::{FieldError, KeyId, NewJob, RateLimit, Role, Tenant, Timestamp};
use orchestrix_store::{ApiKey, NewKey};
use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::schema::{KeyName, KeyRole, Lifetime, Name, Time};
use crate::{ObjectReader, RequestError, seconds::seconds};

/// The range of `expiresInSeconds`.
pub(crate) const LIFETIME: RangeInclusive<Duration> = Duration::from_millis(1)..=NewJob::MAX_DELAY;

/// An API key to create.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateKeyRequest {
    /// The name of the key.
    #[cfg_attr(feature = "openapi", schema(value_type = KeyName))]
    pub name: String,
    /// The role, which determines what the key permits.
    #[cfg_attr(feature = "openapi", schema(value_type = KeyRole))]
    pub role: String,
    /// Binds the key to a tenant. A key without a tenant may act for any tenant.
    /// Not available for the role `worker`, because workers claim jobs of every tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>))]
    pub tenant: Option<String>,
    /// When the key expires. Never by default. Mutually exclusive with `expiresInSeconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>))]
    pub expires_at: Option<Timestamp>,
    /// The number of seconds until the key expires. Mutually exclusive with `expiresAt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Lifetime>))]
    pub expires_in_seconds: Option<f64>,
    /// The rate limit of the key on each server. Unlimited by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimitView>,
}

/// A rate limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RateLimitView {
    /// The number of requests.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000_000))]
    pub count: u32,
    /// The period, in seconds.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.001, maximum = 86_400))]
    pub per_seconds: f64,
    /// The largest burst. Defaults to `count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000_000))]
    pub burst: Option<u32>,
}

/// A parsed [`CreateKeyRequest`].
#[derive(Debug, Clone)]
pub struct KeySpec {
    /// The name of the key.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The tenant that the key is bound to.
    pub tenant: Option<Tenant>,
    /// When the key expires.
    pub expires_at: Option<Timestamp>,
    /// The rate limit.
    pub rate_limit: Option<RateLimit>,
}

/// Parses a [`CreateKeyRequest`]. `expiresInSeconds` counts from `now`.
pub fn parse_key(text: &str, now: Timestamp) -> Result<KeySpec, RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let name = object.string("name", |text| NewKey::check_name(text).map(|()| text.to_owned()));
    let name = object.required("name", name);
    let role = object.string("role", str::parse::<Role>);
    let role = object.required("role", role);
    let tenant = object.string("tenant", |text| Tenant::new(text));
    if role == Some(Role::Worker) && tenant.is_some() {
        object.add_error("tenant", "must be omitted for the role worker: workers claim jobs of every tenant");
    }
    let at = object.time("expiresAt");
    let lifetime = object.seconds("expiresInSeconds");
    if at.is_some() && lifetime.is_some() {
        object.add_error("expiresInSeconds", "cannot be combined with expiresAt");
    }
    let end_of_lifetime = lifetime.and_then(|lifetime| {
        let end = LIFETIME.contains(&lifetime).then(|| now.checked_add(lifetime).ok()).flatten();
        object.record("expiresInSeconds", end.ok_or_else(|| FieldError::new("", "must be from 0.001 to ten years")))
    });
    let expires_at = at.or(end_of_lifetime);
    if at.is_some_and(|end| end <= now) {
        object.add_error("expiresAt", "must be in the future");
    }
    let rate_limit = take_rate_limit(&mut object);
    object.finish()?;
    match name.zip(role) {
        Some((name, role)) => Ok(KeySpec { name, role, tenant, expires_at, rate_limit }),
        None => Err(orchestrix_core::Invalid::from(FieldError::new("name", "is required")).into()),
    }
}

fn take_rate_limit(object: &mut ObjectReader<'_>) -> Option<RateLimit> {
    let mut inner = object.object("rateLimit")?;
    let number = |n: i64| u32::try_from(n).unwrap_or(0);
    let count = inner.integer("count").map(number);
    let count = inner.required("count", count);
    let per = inner.seconds("perSeconds");
    let per = inner.required("perSeconds", per);
    let burst = inner.integer("burst").map(number);
    let limit = count.zip(per).map(|(count, per)| RateLimit::new(count, per, burst.unwrap_or(count)));
    object.add_nested_errors("rateLimit", inner.finish());
    match limit? {
        Ok(limit) => Some(limit),
        Err(error) => {
            object.add_error(&error.field, error.message);
            None
        }
    }
}

/// An API key without its secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyView {
    /// The id of the key. It is part of the key and not secret.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key_id: KeyId,
    /// The name of the key.
    pub name: String,
    /// The role.
    #[cfg_attr(feature = "openapi", schema(value_type = KeyRole))]
    pub role: Role,
    /// The tenant that the key is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub tenant: Option<Tenant>,
    /// The rate limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimitView>,
    /// When the key was created.
    #[cfg_attr(feature = "openapi", schema(value_type = Time))]
    pub created_at: Timestamp,
    /// When the key expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>))]
    pub expires_at: Option<Timestamp>,
    /// When the key was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>))]
    pub revoked_at: Option<Timestamp>,
}

impl From<ApiKey> for KeyView {
    fn from(key: ApiKey) -> Self {
        Self {
            key_id: key.id,
            name: key.name,
            role: key.role,
            tenant: key.tenant,
            rate_limit: key.rate_limit.map(|limit| RateLimitView {
                count: limit.count(),
                per_seconds: seconds(limit.per()),
                burst: Some(limit.burst()),
            }),
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
        }
    }
}

/// A created API key with its secret. The secret cannot be retrieved later.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateKeyResponse {
    /// The complete key. Send it as `Authorization: Bearer KEY`.
    pub key: String,
    /// The key without its secret.
    #[serde(flatten)]
    pub view: KeyView,
}

// Omits the secret, so that it cannot leak into a log.
impl std::fmt::Debug for CreateKeyResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreateKeyResponse").field("view", &self.view).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invalid_fields(text: &str) -> Vec<String> {
        match parse_key(text, Timestamp::UNIX_EPOCH) {
            Err(RequestError::Invalid(invalid)) => invalid.errors.iter().map(|error| error.field.clone()).collect(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_key_is_parsed_and_every_invalid_field_is_reported() {
        let text = r#"{"name": "ci", "role": "client", "tenant": "acme", "expiresInSeconds": 60, "rateLimit": {"count": 5, "perSeconds": 1}}"#;
        let key = parse_key(text, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(key.expires_at, Some("1970-01-01T00:01:00Z".parse().unwrap()));
        assert_eq!(key.rate_limit.unwrap().burst(), 5);
        assert_eq!(invalid_fields("{}"), ["name", "role"]);
        assert_eq!(
            invalid_fields(r#"{"name": "", "role": "root", "tenant": "ä", "x": 1}"#),
            ["name", "role", "tenant", "x"]
        );
        assert_eq!(invalid_fields(r#"{"name": "w", "role": "worker", "tenant": "acme"}"#), ["tenant"]);
        let both = r#"{"name": "w", "role": "worker", "expiresAt": "1999-01-01T00:00:00Z", "expiresInSeconds": 1}"#;
        assert_eq!(invalid_fields(both), ["expiresInSeconds"]);
        assert_eq!(
            invalid_fields(r#"{"name": "w", "role": "worker", "expiresAt": "1960-01-01T00:00:00Z"}"#),
            ["expiresAt"]
        );
        let rate = r#"{"name": "w", "role": "worker", "rateLimit": {"count": 0, "perSeconds": 1, "y": 1}}"#;
        assert_eq!(invalid_fields(rate), ["rateLimit.y", "rateLimit.count"]);
    }
}
