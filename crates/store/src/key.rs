//! API keys as a store keeps them: who holds one and what it allows, and never the secret itself.
//!
//! A secret is long and random, so its plain SHA-256 is as good as a slow hash: there is nothing to guess.

use std::{fmt, time::Duration};

use orchestrix_core::{FieldError, KeyId, RateLimit, Role, Tenant, Timestamp};

use crate::clock::{cut, until};

/// The SHA-256 of a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyDigest(pub [u8; 32]);

// Worth nothing to whoever reads it, and nobody's business in a log all the same.
impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest")
    }
}

/// A key that should be known from now on. Whoever makes it makes its id and its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Its identity, which may be seen.
    pub id: KeyId,
    /// What its secret comes to.
    pub digest: KeyDigest,
    /// What people call it.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// The tenant it is bound to; `None` may name any.
    pub tenant: Option<Tenant>,
    /// How often it may be used; `None` for as often as one likes.
    pub rate_limit: Option<RateLimit>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

impl NewKey {
    /// The longest name, in characters.
    pub const MAX_NAME: usize = 128;

    /// Checks a name.
    pub fn check_name(name: &str) -> Result<(), FieldError> {
        let length = name.chars().count();
        if (1..=Self::MAX_NAME).contains(&length) && !name.contains(char::is_control) {
            return Ok(());
        }
        let rule = format!("must have 1 to {} characters, none of them a control character", Self::MAX_NAME);
        Err(FieldError::new("name", rule))
    }

    /// Checks the name and the end.
    pub fn validate(&self) -> Result<(), FieldError> {
        Self::check_name(&self.name)?;
        if self.expires_at.is_some_and(|time| time < Timestamp::UNIX_EPOCH) {
            return Err(FieldError::new("expiresAt", "must not lie before 1970"));
        }
        Ok(())
    }
}

/// A key as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Its identity, which may be seen.
    pub id: KeyId,
    /// What people call it.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// The tenant it is bound to; `None` may name any.
    pub tenant: Option<Tenant>,
    /// How often it may be used.
    pub rate_limit: Option<RateLimit>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
}

impl ApiKey {
    /// What `key` is once it is made.
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

/// A key with what is needed to check who shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// The key.
    pub key: ApiKey,
    /// What its secret comes to.
    pub digest: KeyDigest,
    /// How long it is still good for, by the store's clock; `None` if it does not end by itself.
    pub expires_in: Option<Duration>,
}

impl KeyRecord {
    /// A key as it is looked up at `now`.
    pub fn at(now: Timestamp, key: ApiKey, digest: KeyDigest) -> Self {
        let expires_in = key.expires_at.map(|end| until(now, end));
        Self { key, digest, expires_in }
    }

    /// Whether its time is over, by the store's clock when it was looked up.
    pub fn expired(&self) -> bool {
        self.expires_in.is_some_and(|left| left.is_zero())
    }

    /// Whether whoever has its secret may use it.
    pub fn valid(&self) -> bool {
        !self.expired() && self.key.revoked_at.is_none()
    }
}
