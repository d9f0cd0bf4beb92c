//! API keys: who may do what. The secret is answered once, when the key is made.

use std::{ops::RangeInclusive, time::Duration};

use orchestrix_core::{FieldError, KeyId, NewJob, RateLimit, Role, Tenant, Timestamp};
use orchestrix_store::{ApiKey, NewKey};
use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::schema::{KeyName, KeyRole, Lifetime, Name, Time};
use crate::{Object, job::Refusal, seconds::seconds};

/// How long a key may last that ends after a time.
pub(crate) const LIFETIME: RangeInclusive<Duration> = Duration::from_millis(1)..=NewJob::MAX_DELAY;

/// A key that should be made.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyRequest {
    /// What people call it.
    #[cfg_attr(feature = "openapi", schema(value_type = KeyName))]
    pub name: String,
    /// What it allows.
    #[cfg_attr(feature = "openapi", schema(value_type = KeyRole))]
    pub role: String,
    /// The tenant that it is bound to; without one it may name any. Not for workers, who take jobs of every tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>))]
    pub tenant: Option<String>,
    /// When it ends; not at all, unless told otherwise. Instead of `expiresInSeconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>))]
    pub expires_at: Option<Timestamp>,
    /// After how long it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Lifetime>))]
    pub expires_in_seconds: Option<f64>,
    /// How often it may be used, of each server; as often as one likes, unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimitView>,
}

/// How often something may be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RateLimitView {
    /// How many.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000_000))]
    pub count: u32,
    /// In how many seconds.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.001, maximum = 86_400))]
    pub per_seconds: f64,
    /// How many at once; as many as `count`, unless told otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000_000))]
    pub burst: Option<u32>,
}

/// A key that was asked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// What people call it.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// The tenant that it is bound to.
    pub tenant: Option<Tenant>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// How often it may be used.
    pub rate_limit: Option<RateLimit>,
}

/// Reads a [`KeyRequest`]. What should end after a time ends so long after `now`.
pub fn read(text: &str, now: Timestamp) -> Result<Wanted, Refusal> {
    let mut object = Object::read(text)?;
    let name = object.text("name", |text| NewKey::check_name(text).map(|()| text.to_owned()));
    let name = object.required("name", name);
    let role = object.text("role", str::parse::<Role>);
    let role = object.required("role", role);
    let tenant = object.text("tenant", |text| Tenant::new(text));
    if role == Some(Role::Worker) && tenant.is_some() {
        object.bad("tenant", "a worker's key cannot be bound to a tenant: workers take jobs of every tenant");
    }
    let at = object.time("expiresAt");
    let within = object.seconds("expiresInSeconds");
    if at.is_some() && within.is_some() {
        object.bad("expiresInSeconds", "excludes expiresAt");
    }
    let within = within.and_then(|within| {
        let end = LIFETIME.contains(&within).then(|| now.checked_add(within).ok()).flatten();
        object.keep("expiresInSeconds", end.ok_or_else(|| FieldError::new("", "must be from 0.001 to ten years")))
    });
    let expires_at = at.or(within);
    if at.is_some_and(|end| end <= now) {
        object.bad("expiresAt", "is over already");
    }
    let rate_limit = take_rate_limit(&mut object);
    object.end()?;
    match name.zip(role) {
        Some((name, role)) => Ok(Wanted { name, role, tenant, expires_at, rate_limit }),
        None => Err(orchestrix_core::Invalid::from(FieldError::new("name", "is required")).into()),
    }
}

fn take_rate_limit(object: &mut Object<'_>) -> Option<RateLimit> {
    let mut inner = object.object("rateLimit")?;
    let number = |n: i64| u32::try_from(n).unwrap_or(0);
    let count = inner.whole("count").map(number);
    let count = inner.required("count", count);
    let per = inner.seconds("perSeconds");
    let per = inner.required("perSeconds", per);
    let burst = inner.whole("burst").map(number);
    let limit = count.zip(per).map(|(count, per)| RateLimit::new(count, per, burst.unwrap_or(count)));
    object.take_in("rateLimit", inner.end());
    match limit? {
        Ok(limit) => Some(limit),
        Err(error) => {
            object.bad(&error.field, error.message);
            None
        }
    }
}

/// A key as it stands, without its secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyView {
    /// Its id, which is part of the key and may be seen.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key_id: KeyId,
    /// What people call it.
    pub name: String,
    /// What it allows.
    #[cfg_attr(feature = "openapi", schema(value_type = KeyRole))]
    pub role: Role,
    /// The tenant that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub tenant: Option<Tenant>,
    /// How often it may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimitView>,
    /// When it was made.
    #[cfg_attr(feature = "openapi", schema(value_type = Time))]
    pub created_at: Timestamp,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>))]
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
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

/// A key that was made, with its secret: never to be seen again.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyMade {
    /// All of the key, to be sent as `Authorization: Bearer KEY`.
    pub key: String,
    /// What is known of it from here on.
    #[serde(flatten)]
    pub view: KeyView,
}

// Whatever is printed of it by accident is not the secret.
impl std::fmt::Debug for KeyMade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyMade").field("view", &self.view).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Vec<String> {
        match read(text, Timestamp::UNIX_EPOCH) {
            Err(Refusal::Invalid(invalid)) => invalid.errors.iter().map(|error| error.field.clone()).collect(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_key_is_read_and_everything_wrong_with_it_is_told() {
        let text = r#"{"name": "ci", "role": "client", "tenant": "acme", "expiresInSeconds": 60, "rateLimit": {"count": 5, "perSeconds": 1}}"#;
        let wanted = read(text, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(wanted.expires_at, Some("1970-01-01T00:01:00Z".parse().unwrap()));
        assert_eq!(wanted.rate_limit.unwrap().burst(), 5);
        assert_eq!(fields("{}"), ["name", "role"]);
        assert_eq!(fields(r#"{"name": "", "role": "root", "tenant": "ä", "x": 1}"#), ["name", "role", "tenant", "x"]);
        assert_eq!(fields(r#"{"name": "w", "role": "worker", "tenant": "acme"}"#), ["tenant"]);
        let both = r#"{"name": "w", "role": "worker", "expiresAt": "1999-01-01T00:00:00Z", "expiresInSeconds": 1}"#;
        assert_eq!(fields(both), ["expiresInSeconds"]);
        assert_eq!(fields(r#"{"name": "w", "role": "worker", "expiresAt": "1960-01-01T00:00:00Z"}"#), ["expiresAt"]);
        let rate = r#"{"name": "w", "role": "worker", "rateLimit": {"count": 0, "perSeconds": 1, "y": 1}}"#;
        assert_eq!(fields(rate), ["rateLimit.y", "rateLimit.count"]);
    }
}
