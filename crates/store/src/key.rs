//! API keys as a store keeps them. The secret itself is never stored, only its digest.
//!
//! A secret is long and random, so a plain SHA-256 is as safe as a slow hash: it cannot be guessed.

use std::{fmt, time::Duration};

use orchestrix_core::{FieldError, KeyId, RateLimit, Role, Tenant, Timestamp};

use crate::clock::{cut, until};

/// The SHA-256 of a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyDigest(pub [u8; 32]);

// A digest is useless to a reader, but still does not belong in a log.
impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest")
    }
}

/// A request to create an API key. The caller generates its id and secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// The public id.
    pub id: KeyId,
    /// The digest of the secret.
    pub digest: KeyDigest,
    /// A name for people.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The tenant that it is bound to; `None` for all tenants.
    pub tenant: Option<Tenant>,
    /// The rate limit; `None` for no limit.
    pub rate_limit: Option<RateLimit>,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

impl NewKey {
    /// The greatest length of a name, in characters.
    pub const MAX_NAME: usize = 128;

    /// Validates a name.
    pub fn check_name(name: &str) -> Result<(), FieldError> {
        let length = name.chars().count();
        if (1..=Self::MAX_NAME).contains(&length) && !name.contains(char::is_control) {
            return Ok(());
        }
        let rule = format!("must have 1 to {} characters and no control characters", Self::MAX_NAME);
        Err(FieldError::new("name", rule))
    }

    /// Validates the name and the expiry.
    pub fn validate(&self) -> Result<(), FieldError> {
        Self::check_name(&self.name)?;
        if self.expires_at.is_some_and(|time| time < Timestamp::UNIX_EPOCH) {
            return Err(FieldError::new("expiresAt", "must not lie before 1970"));
        }
        Ok(())
    }
}

/// An API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// The public id.
    pub id: KeyId,
    /// A name for people.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The tenant that it is bound to; `None` for all tenants.
    pub tenant: Option<Tenant>,
    /// The rate limit.
    pub rate_limit: Option<RateLimit>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl ApiKey {
    /// The key that `key` requests, created at `now`.
    pub fn of(key: NewKey, now: Timestamp) -> Self {
        Self {
            id: key.id,
            name: key.name,
            role: key.role,
            tenant: key.tenant,
            rate_limit: key.rate_limit,
            created_at: now,
            expires_at: key.expires_at.map(cut),
            revoked_at: None,
        }
    }
}

/// A key with what is needed to authenticate a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// The key.
    pub key: ApiKey,
    /// The digest of the secret.
    pub digest: KeyDigest,
    /// How long until it expires, by the store's clock; `None` if it does not expire.
    pub expires_in: Option<Duration>,
}

impl KeyRecord {
    /// A key looked up at `now`.
    pub fn at(now: Timestamp, key: ApiKey, digest: KeyDigest) -> Self {
        let expires_in = key.expires_at.map(|end| until(now, end));
        Self { key, digest, expires_in }
    }

    /// Whether it had expired when it was looked up.
    pub fn expired(&self) -> bool {
        self.expires_in.is_some_and(|left| left.is_zero())
    }

    /// Whether it is neither expired nor revoked.
    pub fn valid(&self) -> bool {
        !self.expired() && self.key.revoked_at.is_none()
    }
}
