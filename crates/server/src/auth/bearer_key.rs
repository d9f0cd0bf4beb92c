//! API keys: `ox_`, the key's id, `_`, and a secret. The whole key is shown once, when it is created.
//!
//! The store keeps a SHA-256 digest of the secret. The secret has 256 random bits, so a slow password hash would add
//! nothing but latency.

use std::fmt;

use orchestrix_core::KeyId;
use orchestrix_store::KeyDigest;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const PREFIX: &str = "ox_";
const ID_ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
/// The length of a secret: 32 bytes as hexadecimal digits.
pub(super) const SECRET_DIGITS: usize = 64;

/// An API key with its secret.
pub(crate) struct BearerKey {
    pub(crate) id: KeyId,
    secret: String,
}

// Keeps the secret out of logs.
impl fmt::Debug for BearerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BearerKey({})", self.id)
    }
}

impl BearerKey {
    /// A new random key.
    pub(crate) fn generate() -> Self {
        // The modulo favours some letters slightly, which is harmless: ids are public.
        let letters =
            rand::random::<[u8; KeyId::LENGTH]>().map(|byte| ID_ALPHABET[usize::from(byte) % ID_ALPHABET.len()]);
        let id = KeyId::trusted(std::str::from_utf8(&letters).expect("the alphabet is ASCII"));
        let secret = rand::random::<[u8; 32]>().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { id, secret }
    }

    /// Parses a whole key; `None` if it is malformed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let well_formed = secret.len() == SECRET_DIGITS && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
        let secret = well_formed.then_some(secret)?;
        Some(Self { id: KeyId::new(id).ok()?, secret: secret.to_owned() })
    }

    /// The whole key, including the secret.
    pub(crate) fn reveal(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, self.secret)
    }

    /// The digest of the secret, which the store keeps.
    pub(crate) fn digest(&self) -> KeyDigest {
        KeyDigest(Sha256::digest(self.secret.as_bytes()).into())
    }
}

/// Compares two digests in constant time.
pub(crate) fn digests_match(one: &KeyDigest, other: &KeyDigest) -> bool {
    one.0.ct_eq(&other.0).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revealed_key_parses_back_and_matches_only_itself() {
        let key = BearerKey::generate();
        let parsed = BearerKey::parse(&key.reveal()).unwrap();
        assert_eq!(parsed.id, key.id);
        assert!(digests_match(&parsed.digest(), &key.digest()));
        assert!(!digests_match(&BearerKey::generate().digest(), &key.digest()));
        assert!(!format!("{key:?}").contains(&key.secret));
        let text = key.reveal();
        for malformed in
            ["", "ox_", "ox__", &text[1..], &text[..text.len() - 1], &format!("{text}0"), &text.replace('_', "-")]
        {
            assert!(BearerKey::parse(malformed).is_none(), "{malformed}");
        }
    }
}
